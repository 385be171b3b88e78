// From a Problem to launches: parameters in the narrowest integers that hold them, grids, alignment.
#pragma once

#include "cuda/kernels.hpp"
#include "plan/kernel.hpp"

#include <cuda_runtime.h>

#include <string>

namespace cenote::gpu {

/// What most kernels may take of a multiprocessor's shared memory for a block.
inline constexpr int kMostPartBytes = 78 << 10;

/// One kernel with its parameters, ready but for the pointers of a run.
struct Launch {
  const void* entry = nullptr;
  bool wide = false;  // 64-bit positions
  Params<std::int32_t> narrow{};
  Params<std::int64_t> broad{};
  int lanes = 1;                       // channels at once: needs aligned pointers
  int paired = 1;                      // columns stored at once where grad_input is aligned to that many elements
  std::int64_t batch_per_launch = 1;   // the batch is cut where 31 bits cannot count the threads
  std::int64_t threads_per_entry = 1;  // of one batch entry
  int threads_per_result = 1;          // groups of threads share one
  int block = kBlock;
  std::size_t shared_bytes = 0;
  int most_shared_bytes = kMostPartBytes;          // of any plan with this function
  bool blocks_not_threads = false;                 // threads_per_entry counts blocks
  std::int64_t most_blocks = 0;                    // they take several turns then; 0: as many as there is work
  std::int64_t tiles = 0;                          // blocks of a launch that takes the whole batch at once; 0: others
  Few few{};                                       // all that a kernel of few results is given, but for the pointers
  dim3 few_blocks{0, 0, 0}, few_threads{0, 0, 0};  // and how it is launched; 0: another kernel
};

/// Whether positions inside one batch entry, window arithmetic and codes fit in 31 bits.
bool fits_in_31_bits(const Problem& p);
/// Whether what a forward reads had better leave the L2 cache first: windows that overlap little read it about once, it is much more than
/// what they write, and so little that what it would put out of the cache counts (measured on an H200).
bool leaves_first(const Problem& p);
/// Whether every window along an axis holds an element.
bool has_no_empty_window(const Axis& axis);
/// Whether channels lie next to each other, so that neighbouring threads should take neighbouring channels.
bool is_channels_fastest(const Layout& layout, const Problem& p, std::int64_t width);
/// Whether groups of `lanes` channels of these tensors are always aligned alike.
bool has_channel_vectors(const Layout& layout, int lanes);

/// Fills the parameters both widths share. `large`: threads run over the large side of the pool, else over the small one.
Launch make_launch(const Problem& p, const Function& function, bool wide, bool large, bool channels_fastest, int lanes);
/// Blocks that own `range` elements of a plane each.
void cut_planes(Launch& launch, const Problem& p, std::int64_t range, int block, std::size_t bytes_per_element);

/// Warps that own a rectangle of a slice each, of at most that many elements.
void cut_rectangles(Launch& launch, const Problem& p, std::int64_t most_elements, std::size_t bytes_per_element);

/// `early`: blocks may take their places before the kernel ahead of them in the stream is done.
cudaError_t run_launch(const Launch& launch, const Problem& p, const Pointers& pointers, bool early,
                       cudaStream_t stream) noexcept;

}  // namespace cenote::gpu
