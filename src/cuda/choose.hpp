// Which kernels solve a problem.
#pragma once

#include "cuda/launch.hpp"

#include <initializer_list>

namespace cenote::gpu {

/// What a plan launches, in order. Where channels can be taken several at a time, `vector` says how, for aligned pointers.
struct Launches {
  Launch vector, scalar, then;
  Problem problem;              // the one that is run
  bool aligned_unpool = false;  // `vector` takes an unpool's tensors as gradients
  bool mirrored = false;        // a backward run as a forward: from grad_output to grad_input
  std::string name;
};

/// The problem as it is solved, and the questions that every choice asks of it.
class Choice {
 public:
  explicit Choice(const Problem& p);

  const Problem& problem() const { return p_; }
  bool is_wide() const { return wide_; }

 protected:
  Fold fold() const;
  /// Whether channels can be taken so many at a time (0: 16 bytes of them).
  bool channel_vectors(std::initializer_list<const Layout*> layouts, int lanes = 0) const;
  /// Whether rows begin at multiples of so many elements.
  static bool has_aligned_rows(const Layout& layout, std::int64_t elements);
  /// Square windows of at most three taps across, none empty.
  static bool is_small_square(const Problem& p);
  static std::int64_t count_elements(const Problem& p, bool large);
  /// Fewer results than a large GPU has threads: the shortest way to each of them, no barriers.
  bool is_few(bool large) const;
  /// Never run, but planned.
  bool is_empty() const;
  /// Windows of two to so many taps along rows, without dilation, and without padding unless `padded`.
  bool has_row_windows(std::int64_t most_taps, bool padded = false) const;
  /// Windows along height and width that share nothing, without padding or dilation, over dense tensors of these layouts, large and small:
  /// channels next to each other that fill no vector of so many; or planar, elements of four bytes.
  bool has_channel_rows(const Layout& large, const Layout& small, bool planar, int lanes) const;
  /// The problem as the kernels for those see it: planes are batch entries of one channel.
  Problem one_by_one(bool planar) const;
  /// Windows of 2x2 side by side that cover their planes, so that rows of them follow each other through all planes.
  bool is_packed_pairs() const;
  /// Adaptive windows of different sizes along height and width, no more of them than elements; `more_windows`: or more.
  bool is_adaptive_plane(bool more_windows = false) const;
  /// A launch whose threads walk down strips of `rows` rows. `phase`: columns before the plane where the first strip begins.
  static Launch walk(const Problem& p, Function function, bool large, bool channels_fastest, std::int64_t rows,
                     std::int64_t phase = 0);

  /// walk() for the kernels that go straight to memory: strips of one height, at most `most_rows`, as long as there are threads for all of a
  /// large GPU; several columns to a thread instead where there are few rows.
  static Launch walk_directly(const Problem& p, const Function& function, bool large, bool channels_fastest,
                              std::int64_t most_rows);
  /// Blocks that take so many results each, which follow each other through the whole tensor.
  void through_planes(Launch& launch, bool large, std::int64_t together) const;
  /// A thread to each result, places from the shape of blocks and grid; `large`: results are elements. False: the tensors reach too far.
  bool shape_few(Launch& launch, const Layout& read, const Layout& written, bool large, bool channels_fastest) const;

  Problem p_;
  const Kernels& kernels_;
  bool wide_;  // positions need 64 bits
};

void choose_forward(const Choice& choice, Launches& result);
void choose_backward(const Choice& choice, Launches& result);
void choose_unpool(const Choice& choice, Launches& result);

/// Fails where the arguments leave out what the problem needs.
Status choose(const Problem& p, Launches& result);

}  // namespace cenote::gpu
