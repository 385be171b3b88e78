// Small windows with few outputs. Such a launch takes as long as it is to its first load: places come from the shape of blocks and grid
// instead of divisions, and all that a thread is told lies in few lines of the constant cache. The few instructions are one straight line.
#pragma once

#include "cuda/forward.cuh"

namespace cenote::gpu {

/// Threads of a block at most.
inline constexpr int kFewBlock = 128;

/// All that such a kernel is told. It reads the input and writes outputs, backward it reads gradients of outputs and writes those of
/// elements. What is written lies along x, y and z of the grid: columns, rows and planes; where channels lie next to each other, channels,
/// columns and the rows of all batch entries. No place is further than 31 bits from where its tensor begins.
struct Few {
  const void* read;
  void* written;
  std::int32_t x, y, z;         // how many there are
  Divisor<std::int32_t> inner;  // channels, or rows of a batch entry
  std::int32_t read_n, read_c, read_h, read_w, written_n, written_c, written_h, written_w;
  std::int32_t height, width, stride_h, stride_w, pad_h, pad_w;
  float divisor, reciprocal;  // of sums
  bool exact_reciprocal;
  IndexKind index_kind;
  DType index_dtype;
  std::int32_t indices_n, indices_c, indices_h, indices_w;
  void* indices;
  std::int32_t out_height, out_width;
  unsigned* fault;
};

/// What one thread works on; `exists`: there is such an output (element).
struct FewPlace {
  std::int32_t n, c, y, x;
  bool exists;
};

template <bool kChannelsFastest>
__device__ inline FewPlace place_of_few(const Few& p) {
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

/// Windows of kKernel x kKernel, no dilation, none empty, no depth; of sums all have one divisor.
template <class T, Fold kFold, bool kIndices, int kKernel, bool kChannelsFastest>
__global__ void __launch_bounds__(kFewBlock) fold_few(const __grid_constant__ Few p) {
  using Int = std::int32_t;
  const auto [n, c, y, x, exists] = place_of_few<kChannelsFastest>(p);
  if (!exists) return;
  const T* input = static_cast<const T*>(p.read) + (n * p.read_n + c * p.read_c);
  const Int top = y * p.stride_h - p.pad_h, left = x * p.stride_w - p.pad_w;
  // An element of the window in place of one outside: maxima do not change by it. No window's first element lies behind the input, and
  // none's last before it.
  auto nearest = [](Int first, int t, Int size) {
    Int at = first + t;
    if (t < kKernel - 1) at = most(at, 0);
    if (t > 0) at = least(at, size - 1);
    return at;
  };
  Int row[kKernel], column[kKernel];
#pragma unroll
  for (int t = 0; t < kKernel; ++t) {
    row[t] = nearest(top, t, p.height);
    column[t] = nearest(left, t, p.width);
  }
  wait_for_grid_before();
  T taps[kKernel * kKernel];
#pragma unroll
  for (int t = 0; t < kKernel * kKernel; ++t)
    taps[t] = load_constant<1>(input + (row[t / kKernel] * p.read_h + column[t % kKernel] * p.read_w)).lane[0];
  T* output = static_cast<T*>(p.written) + (n * p.written_n + c * p.written_c + y * p.written_h + x * p.written_w);
  if constexpr (is_extreme<kFold>) {
    T best = taps[0];
    Int best_row = row[0], best_column = column[0];
#pragma unroll
    for (int t = 1; t < kKernel * kKernel; ++t) {
      if (!beats<kFold>(taps[t], best)) continue;
      best = taps[t];
      best_row = row[t / kKernel];
      best_column = column[t % kKernel];
    }
    *output = best;
    if constexpr (kIndices) {
      const Int code[1] = {p.index_kind == IndexKind::window ? (best_row - top) * kKernel + best_column - left
                                                             : best_row * p.width + best_column};
      store_codes(p.indices, p.index_dtype, n * p.indices_n + c * p.indices_c + y * p.indices_h + x * p.indices_w,
                  code);
    }
  } else {
    Accumulator<T> sum = 0;  // no sum is -0
#pragma unroll
    for (int r = 0; r < kKernel; ++r) {
      Accumulator<T> line = 0;
#pragma unroll
      for (int t = 0; t < kKernel; ++t) {
        const bool inside = row[r] == top + r && column[t] == left + t;
        line += inside ? widen(taps[r * kKernel + t]) : Accumulator<T>{0};
      }
      sum += line;
    }
    *output = narrow<T>(p.exact_reciprocal ? sum * p.reciprocal : sum / p.divisor);
  }
}

}  // namespace cenote::gpu
