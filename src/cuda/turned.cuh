// Pools from channels-last tensors into planar ones: neighbouring threads read neighbouring channels, and a turn in shared memory
// lets them write neighbouring columns.
#pragma once

#include "cuda/streams.cuh"

namespace cenote::gpu {

inline constexpr int kTurned = 32;  // channels and columns of a block

/// Any windows but drawn ones. A block makes kTurned columns of one row of outputs, for kTurned channels; a thread kLanes channels of a
/// column, or of a few.
template <class T, int kLanes, Fold kFold, bool kIndices>
__global__ void __launch_bounds__(kBlock)
    fold_turned(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  constexpr int kBatch = 8;
  constexpr int kGroups = kTurned / kLanes, kAtOnce = kBlock / kGroups;  // columns
  __shared__ T values[kTurned][kTurned + 1];
  __shared__ Int codes[kIndices ? kTurned : 1][kTurned + 1];
  Int rest = static_cast<Int>(blockIdx.x);
  const Int first_c = take(rest, p.turned.channel_groups) * kTurned,
            first_x = take(rest, p.turned.column_groups) * kTurned;
  const Int y = take(rest, p.axis[1].by_output), z = take(rest, p.axis[0].by_output);
  const Int n = rest;
  const Int channels = p.turned.channels, out_width = p.axis[2].output;
  const Taps<Int> deep = taps_of(p.axis[0], z), down = taps_of(p.axis[1], y);
  const Int own = static_cast<Int>(threadIdx.x) % kGroups * kLanes;
  const T* input =
      static_cast<const T*>(at.input) + p.input.plane(n, least(first_c + own, channels - kLanes)) +
      p.input.at(deep.start + deep.low * p.axis[0].dilation, down.start + down.low * p.axis[1].dilation, Int{0});
  for (Int column = static_cast<Int>(threadIdx.x) / kGroups; column < kTurned; column += kAtOnce) {
    if (first_x + column >= out_width) break;
    const Taps<Int> wide = taps_of<Int>(p.axis[2], first_x + column);
    const Int taps = deep.count() * down.count() * wide.count();
    TapWalk source((wide.start + wide.low * p.axis[2].dilation) * p.input.w, wide.count(), down.count(),
                   p.axis[2].dilation * p.input.w, p.axis[1].dilation * p.input.h, p.axis[0].dilation * p.input.d);
    const Coding<Int> coding = kIndices ? coding_of(p, deep, down, wide) : Coding<Int>{};
    TapWalk names(coding.base + deep.low * coding.d + down.low * coding.h + wide.low * coding.w, wide.count(),
                  down.count(), coding.w, coding.h, coding.d);
    Folded<T, kFold> fold[kLanes];
    Int best[kLanes];
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      fold[i] = empty_fold<kFold, T>();
      best[i] = taps > 0 ? names.at : -1;
    }
    for (Int left = taps; left > 0; left -= kBatch) {
      Vector<T, kLanes> batch[kBatch];
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        const Int here = source.next();
        if (j < left) batch[j] = load_constant<kLanes>(input + here);
      }
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        if (j >= left) break;
        Int code = 0;
        if constexpr (kIndices) code = names.next();
#pragma unroll
        for (int i = 0; i < kLanes; ++i) {
          if constexpr (is_extreme<kFold>) {
            if (beats<kFold>(batch[j].lane[i], fold[i])) {
              fold[i] = batch[j].lane[i];
              if constexpr (kIndices) best[i] = code;
            }
          } else {
            fold[i] += widen(batch[j].lane[i]);
          }
        }
      }
    }
    const std::int64_t counted = counted_taps<kFold>(p, deep, down, wide);
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      values[column][own + i] = finish<kFold, T>(p, fold[i], counted);
      if constexpr (kIndices) codes[column][own + i] = best[i];
    }
  }
  __syncthreads();
  const Int lane = static_cast<Int>(threadIdx.x) % 32, x = first_x + lane;
  if (x >= out_width) return;
#pragma unroll
  for (Int local = static_cast<Int>(threadIdx.x) / 32; local < kTurned; local += kBlock / 32) {
    const Int c = first_c + local;
    if (c >= channels) break;
    static_cast<T*>(at.output)[p.output.plane(n, c) + p.output.at(z, y, x)] = values[lane][local];
    if constexpr (kIndices) {
      const Int code[1] = {codes[lane][local]};
      store_codes(at.indices, p.index_dtype, p.indices.plane(n, c) + p.indices.at(z, y, x), code);
    }
  }
}

}  // namespace cenote::gpu
