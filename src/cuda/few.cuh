// Small windows with few outputs. Such a launch takes as long as it is to its first load: places come from the shape of blocks and grid
// instead of divisions, and all that a thread is told lies in two lines of the constant cache. The few instructions are one straight line.
#pragma once

#include "cuda/geometry.cuh"

namespace cenote::gpu {

/// Threads of a block at most.
inline constexpr int kFewBlock = 128;

/// All that such a kernel is told. Outputs along x, y and z of the grid: columns, rows and planes; where channels lie next to each
/// other, channels, columns and the rows of all batch entries.
struct Few {
  const void* input;
  void* output;
  std::int64_t input_n, output_n;
  std::int32_t input_c, input_h, input_w, output_c, output_h, output_w;
  std::int32_t height, width;
  std::int32_t stride_h, stride_w, pad_h, pad_w;
  std::int32_t x, y, z;         // how many there are
  Divisor<std::int32_t> inner;  // channels, or rows of a batch entry
};

/// What one thread of either kernel works on; `exists`: there is such an output (element).
struct FewPlace {
  std::int32_t n, c, y, x;
  bool exists;
};

/// Told is Few or FewGradients.
template <bool kChannelsFastest, class Told>
__device__ inline FewPlace place_of_few(const Told& p) {
  using Int = std::int32_t;
  const Int along = static_cast<Int>(blockIdx.x * blockDim.x + threadIdx.x);
  const Int across = static_cast<Int>(blockIdx.y * blockDim.y + threadIdx.y);
  Int n = static_cast<Int>(blockIdx.z * blockDim.z + threadIdx.z);
  const bool exists = along < p.x && across < p.y && n < p.z;
  const Int inner = take(n, p.inner);
  if constexpr (kChannelsFastest) {
    return {n, along, inner, across, exists};
  } else {
    return {n, inner, across, along, exists};
  }
}

/// Maxima and minima of windows of kKernel x kKernel, no dilation, none empty, no depth.
template <class T, Fold kFold, int kKernel, bool kChannelsFastest>
__global__ void __launch_bounds__(kFewBlock) fold_few(const __grid_constant__ Few p) {
  using Int = std::int32_t;
  const auto [n, c, y, x, exists] = place_of_few<kChannelsFastest>(p);
  if (!exists) return;
  const T* input = static_cast<const T*>(p.input) + n * p.input_n + static_cast<std::int64_t>(c) * p.input_c;
  const Int top = y * p.stride_h - p.pad_h, left = x * p.stride_w - p.pad_w;
  // An element of the window again in place of one outside: it changes nothing.
  Int row[kKernel], column[kKernel];
#pragma unroll
  for (int t = 0; t < kKernel; ++t) {
    row[t] = least(most(top + t, 0), p.height - 1) * p.input_h;
    column[t] = least(most(left + t, 0), p.width - 1) * p.input_w;
  }
  wait_for_grid_before();
  T taps[kKernel * kKernel];
#pragma unroll
  for (int t = 0; t < kKernel * kKernel; ++t)
    taps[t] = load_constant<1>(input + row[t / kKernel] + column[t % kKernel]).lane[0];
  T best = taps[0];
#pragma unroll
  for (int t = 1; t < kKernel * kKernel; ++t) {
    if (beats<kFold>(taps[t], best)) best = taps[t];
  }
  T* output = static_cast<T*>(p.output) + n * p.output_n + static_cast<std::int64_t>(c) * p.output_c;
  output[y * p.output_h + x * p.output_w] = best;
}

}  // namespace cenote::gpu
