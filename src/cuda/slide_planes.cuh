// Sums and averages of 3x3 windows one apart over small planes of dense planar tensors: a block keeps a few whole planes in shared
// memory, and so their results, which leave in pieces of 16 bytes wherever rows begin.
#pragma once

#include "cuda/tiles.cuh"

namespace cenote::gpu {

inline constexpr int kSlideBlock = 128;

/// Elements behind a row that a thread may read and never uses.
inline constexpr int kSlideMargin = 8;

/// A thread walks down a strip of kColumns columns, first adds up three rows, then three columns. No dilation, no depth; as many outputs
/// as inputs along the width, one column before the first; the same divisor for all.
template <class T, int kColumns>
__global__ void __launch_bounds__(kSlideBlock, kColumns > 3 ? 8 : 10)
    slide_planes(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Sum = Accumulator<T>;
  constexpr int kTaps = kColumns + 2;
  const Tiling<Int>& tiling = p.tiling;
  const Int first_plane = static_cast<Int>(blockIdx.x) * tiling.planes;
  const Int planes = least(tiling.planes, tiling.total_planes - first_plane);
  const Int height = p.axis[1].input, width = p.axis[2].input, out_height = p.axis[1].output;
  const T* source = static_cast<const T*>(at.input) + static_cast<std::int64_t>(first_plane) * (height * width);
  T* target = static_cast<T*>(at.output) + static_cast<std::int64_t>(first_plane) * (out_height * width);
  // A row of zeros stands for those outside. Elements lie in shared memory as in memory, modulo 16 bytes.
  auto* zeros = reinterpret_cast<T*>(tile_memory);
  const Int zeros_count = width + kSlideMargin;
  char* kept = tile_memory + tiling.pitch;
  const auto* input = reinterpret_cast<const T*>(kept + (reinterpret_cast<std::uintptr_t>(source) & 15));
  auto* results = reinterpret_cast<T*>(tile_memory + tiling.codes_at + (reinterpret_cast<std::uintptr_t>(target) & 15));
  stage_run<kSlideBlock>(kept, source, planes * (height * width));
  for (Int i = static_cast<Int>(threadIdx.x); i < zeros_count; i += kSlideBlock) zeros[i] = narrow<T>(Sum{0});
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();

  for (Int item = static_cast<Int>(threadIdx.x); item < tiling.items; item += kSlideBlock) {
    Int plane = item;
    const Int x = take(plane, tiling.items_x) * kColumns, first = take_of(plane, tiling.items_y) * p.strip;
    if (plane >= planes) break;
    const Int end = least(first + p.strip, out_height);
    const Int left = most(x - 1, 0);  // the first column that is read; of the leftmost strip twice
    bool inside[kTaps];
#pragma unroll
    for (int t = 0; t < kTaps; ++t) inside[t] = static_cast<unsigned>(x - 1 + t) < static_cast<unsigned>(width);
    Int y = first - p.axis[1].pad_begin;
    const T* from = input + (plane * height + y) * width + x;
    auto fetch = [&](Sum(&taps)[kTaps]) {
      const T* row = static_cast<unsigned>(y) < static_cast<unsigned>(height) ? from : zeros + x;
      taps[0] = widen(row[left - x]);
#pragma unroll
      for (int t = 1; t < kTaps; ++t) taps[t] = widen(row[t - 1]);
      from += width;
      ++y;
    };
    // Of every column: the row before, and its sum with the one before that.
    Sum last[kTaps], both[kTaps];
    {
      Sum upper[kTaps];
      fetch(upper);
      fetch(last);
#pragma unroll
      for (int t = 0; t < kTaps; ++t) both[t] = upper[t] + last[t];
    }
    T* result = results + (plane * out_height + first) * width + x;
#pragma unroll 2
    for (Int out = first; out < end; ++out) {
      Sum taps[kTaps], column[kTaps], sum[kColumns];
      fetch(taps);
#pragma unroll
      for (int t = 0; t < kTaps; ++t) {
        column[t] = inside[t] ? both[t] + taps[t] : Sum{0};
        both[t] = last[t] + taps[t];
        last[t] = taps[t];
      }
#pragma unroll
      for (int i = 0; i < kColumns; ++i) sum[i] = Sum{0} + column[i] + column[i + 1] + column[i + 2];  // no sum is -0
      divide_all<T>(p, sum);
#pragma unroll
      for (int i = 0; i < kColumns; ++i) {
        if (inside[i + 1]) result[i] = narrow<T>(sum[i]);
      }
      result += width;
    }
  }
  __syncthreads();
  store_run<kSlideBlock>(target, results, planes * (out_height * width));
}

}  // namespace cenote::gpu
