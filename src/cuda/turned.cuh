// Pools from channels-last tensors into planar ones: neighbouring threads read neighbouring channels, and a turn in shared memory
// lets them write neighbouring columns.
#pragma once

#include "cuda/forward.cuh"

namespace cenote::gpu {

inline constexpr int kTurned = 32;  // channels and columns of a block
inline constexpr int kTurnedWarps = kBlock / 32;

/// Any windows but drawn ones. A block makes kTurned columns of one row of outputs, for kTurned channels.
template <class T, Fold kFold, bool kIndices>
__global__ void __launch_bounds__(kBlock)
    fold_turned(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  using Int = std::int32_t;
  constexpr int kEach = kTurned / kTurnedWarps;  // columns of a thread
  __shared__ T values[kTurned][kTurned + 1];
  __shared__ Int codes[kIndices ? kTurned : 1][kTurned + 1];
  Int rest = static_cast<Int>(blockIdx.x);
  const Int first_c = take(rest, p.turned.channel_groups) * kTurned,
            first_x = take(rest, p.turned.column_groups) * kTurned;
  const Int y = take(rest, p.axis[1].by_output), z = take(rest, p.axis[0].by_output);
  const std::int64_t n = rest;
  const Int lane = static_cast<Int>(threadIdx.x) % 32, warp = static_cast<Int>(threadIdx.x) / 32;
  const Int channels = p.turned.channels, out_width = p.axis[2].output;
  const Taps<Int> deep = taps_of(p.axis[0], z), down = taps_of(p.axis[1], y);
  {
    const Int c = least(first_c + lane, channels - 1);
    const T* input = static_cast<const T*>(at.input) + n * p.input.n + c * p.input.c;
    Taps<Int> across[kEach];
    Folded<T, kFold> fold[kEach];
    Int best[kEach];
    Int most_taps = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      across[i] = taps_of<Int>(p.axis[2], least(first_x + warp + i * kTurnedWarps, out_width - 1));
      most_taps = most(most_taps, across[i].count());
      fold[i] = empty_fold<kFold, T>();
      const bool empty = deep.count() == 0 || down.count() == 0 || across[i].count() == 0;
      const Coding<Int> coding = coding_of(p, deep, down, across[i]);
      best[i] = empty ? -1 : coding.base + deep.low * coding.d + down.low * coding.h + across[i].low * coding.w;
    }
    for (Int tz = deep.low; tz < deep.high; ++tz) {
      for (Int ty = down.low; ty < down.high; ++ty) {
        const T* row = input + (deep.start + tz * p.axis[0].dilation) * p.input.d +
                       (down.start + ty * p.axis[1].dilation) * p.input.h;
        for (Int t = 0; t < most_taps; ++t) {
#pragma unroll
          for (int i = 0; i < kEach; ++i) {
            if (t >= across[i].count()) continue;
            const Int tx = across[i].low + t;
            const T value = load_constant<1>(row + (across[i].start + tx * p.axis[2].dilation) * p.input.w).lane[0];
            if constexpr (is_extreme<kFold>) {
              if (beats<kFold>(value, fold[i])) {
                fold[i] = value;
                if constexpr (kIndices) {
                  const Coding<Int> coding = coding_of(p, deep, down, across[i]);
                  best[i] = coding.base + tz * coding.d + ty * coding.h + tx * coding.w;
                }
              }
            } else {
              fold[i] += term<kFold>(value, p.norm_type);
            }
          }
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      values[warp + i * kTurnedWarps][lane] =
          finish<kFold, T>(p, fold[i], counted_taps<kFold>(p, deep, down, across[i]));
      if constexpr (kIndices) codes[warp + i * kTurnedWarps][lane] = best[i];
    }
  }
  __syncthreads();
  const Int x = first_x + lane;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const Int local = warp + i * kTurnedWarps, c = first_c + local;
    if (x >= out_width || c >= channels) continue;
    static_cast<T*>(at.output)[n * p.output.n + c * p.output.c + p.output.at(z, y, x)] = values[lane][local];
    if constexpr (kIndices) {
      const Int code[1] = {codes[lane][local]};
      store_codes(at.indices, p.index_dtype, n * p.indices.n + c * p.indices.c + p.indices.at(z, y, x), code);
    }
  }
}

}  // namespace cenote::gpu
