// Which kernels a backward pool takes, and max_unpool, which is one without sums. How it is gathered and how it is spread have files of
// their own.
#pragma once

#include "cuda/choose.hpp"

namespace cenote::gpu {

class Backward : public Choice {
 public:
  explicit Backward(const Choice& choice) : Choice(choice) {}

  void choose(Launches& result);
  void unpool(Launches& result);
  void unpool_backward(Launches& result);

 private:
  /// About how many outputs see one element.
  std::int64_t seen_by() const;
  /// The backward of sums with stride 1 is the forward of the same sums over the gradient, mirrored.
  bool transposed_sum(Launches& result);
  /// The backward of small square windows with so few elements that what counts is how soon a thread begins.
  bool gather_few(Launches& result, Share share);
  /// The backward of small square windows, by threads that walk down.
  bool gather_down(Launches& result, Share share);
  /// The backward of forward_rows, and max_unpool; `result` holds another way already, for what is not aligned in a run.
  void gather_aligned_rows(Launches& result, Share share);
  /// The backward of 3x3 max windows with padding 1: planar rows that are aligned, or 16-bit channels two apart; `result` holds another way
  /// already, for what is not aligned in a run. False: not for this problem.
  bool gather_columns(Launches& result);
  /// The backward of 3x3x3 max windows two apart, planar tensors with aligned rows; `result` holds another way already, for what is not
  /// aligned in a run.
  void gather_slices(Launches& result);
  /// The backward of small max windows that overlap, through shared memory; `result` holds another way already, for what is not aligned
  /// in a run. False: not for this problem.
  bool gather_staged(Launches& result);
  void gather_staged_channels(Launches& result);
  /// The backward of planar tensors, and max_unpool, through shared memory.
  bool gather_tiles(Launches& result, Gather gather);
  /// How many windows have an element in common along height and width. False: not of those kinds, or none have.
  bool count_common(std::int64_t (&common)[2]) const;
  /// The backward of windows that overlap or lie along rows, dense planar tensors, through shared memory; `result` holds another way
  /// already, for what is not aligned in a run.
  void gather_tile_windows(Launches& result, Share share);
  /// The backward of windows that overlap, seen by few outputs, straight from memory.
  bool gather_direct(Launches& result, Share share);
  /// The backward of sums over windows that overlap, seen by few outputs, each row of which is added up once.
  bool gather_sums(Launches& result);
  /// Long windows with little stride, where asking every output that sees an element costs more than walking through all.
  bool by_winners(Launches& result);
  /// Whatever the windows: outputs in ascending order.
  void ordered(Launches& result);
  /// The backward of windows that overlap little.
  bool spread_down(Launches& result, Share share);
  /// The backward of windows that are whole planes; `result` holds another way already.
  void spread_whole_planes(Launches& result, Share share);
  /// The backward of averages of adaptive windows of different sizes.
  bool spread_adaptive(Launches& result);
  /// The backward of lp_pool where windows overlap, dense planar tensors, through shared memory; `result` holds another way already.
  void gather_norms(Launches& result);
  /// The backward of lp_pool where windows lie side by side.
  bool spread_norms(Launches& result);
  /// The backward of small windows side by side that cover the plane; `result` holds another way already.
  void spread_whole_windows(Launches& result, Share share);
  /// The same for 2x2 windows of planar tensors whose rows are too narrow for more.
  bool spread_packed_pairs(Launches& result, Share share);
  /// The backward of small windows that share nothing, along rows of planar tensors wherever these begin; `result` holds another way already.
  void spread_row_windows(Launches& result, Share share);
  /// The backward of sums over windows that share nothing, where channels fill no vector, or of planes.
  bool spread_channel_rows(Launches& result, bool planar);
  /// The backward of windows of several rows that do not overlap, dense planar tensors; `result` holds another way already.
  void spread_apart(Launches& result, Share share);
  /// The backward of windows that do not overlap, planar tensors with aligned rows; `result` holds another way already.
  void spread_aligned_runs(Launches& result, Share share);
  /// Small gradients and indices of large windows are wanted in the L2 cache before stores fill it.
  void keep_small_operands(Launch& launch, Share share) const;
};

/// Rows of a strip where what two strips share, or a thread's beginning, costs more than what lies far apart: all that leaves
/// four threads for each that a large GPU runs at a time, so that the last ones to finish are few.
std::int64_t tall_strip(const Problem& p, const Function& function);

}  // namespace cenote::gpu
