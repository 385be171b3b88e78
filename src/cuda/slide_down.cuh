// Sums and averages of 3x3 windows one apart: a thread walks down a column of outputs, loads the rows of a few outputs at once while
// those before them are finished, and adds each row's three taps once.
#pragma once

#include "cuda/forward.cuh"

namespace cenote::gpu {

/// No dilation, no depth. kPlanar: neighbouring columns lie next to each other; kChunk: rows loaded at once.
template <class T, int kLanes, bool kPlanar, int kChunk>
__global__ void __launch_bounds__(kBlock)
    slide_down(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Sum = Accumulator<T>;
  const Int thread = static_cast<Int>(blockIdx.x) * kBlock + static_cast<Int>(threadIdx.x);
  if (thread >= p.grid.threads) return;
  Place<Int> place = p.grid.place(thread);
  place.y *= p.strip;
  const Int height = p.axis[1].input, step = kPlanar ? 1 : p.input.w;
  const Int left = place.x - p.axis[2].pad_begin, top = place.y - p.axis[1].pad_begin;
  bool inside[3];
#pragma unroll
  for (int t = 0; t < 3; ++t) inside[t] = static_cast<unsigned>(left + t) < static_cast<unsigned>(p.axis[2].input);
  const T* column = static_cast<const T*>(at.input) + p.input.plane(place.n, place.c) + left * step;
  auto fetch = [&](Int y, Vector<T, kLanes>(&taps)[3]) {
    const bool row_inside = static_cast<unsigned>(y) < static_cast<unsigned>(height);
    const T* row = column + y * p.input.h;
#pragma unroll
    for (int t = 0; t < 3; ++t) {
      taps[t] = Vector<T, kLanes>{};
      if (row_inside && inside[t]) taps[t] = load_constant<kLanes>(row + t * step);
    }
  };
  auto add = [&](const Vector<T, kLanes>(&taps)[3], Sum(&line)[kLanes]) {
#pragma unroll
    for (int i = 0; i < kLanes; ++i) line[i] = widen(taps[0].lane[i]) + widen(taps[1].lane[i]) + widen(taps[2].lane[i]);
  };
  Sum above[2][kLanes];
  Vector<T, kLanes> ahead[kChunk][3];
  {
    Vector<T, kLanes> first[2][3];
#pragma unroll
    for (int r = 0; r < 2; ++r) fetch(top + r, first[r]);
#pragma unroll
    for (int r = 0; r < kChunk; ++r) fetch(top + 2 + r, ahead[r]);
#pragma unroll
    for (int r = 0; r < 2; ++r) add(first[r], above[r]);
  }
  const Int end = least(place.y + p.strip, p.axis[1].output);
  T* output = static_cast<T*>(at.output) + p.output.plane(place.n, place.c) + p.output.at(0, place.y, place.x);
  for (Int y = place.y; y < end; y += kChunk) {
    Sum line[kChunk][kLanes];
#pragma unroll
    for (int r = 0; r < kChunk; ++r) add(ahead[r], line[r]);
    if (y + kChunk < end) {
#pragma unroll
      for (int r = 0; r < kChunk; ++r) fetch(y - place.y + top + kChunk + 2 + r, ahead[r]);
    }
    Sum sum[kChunk * kLanes];
#pragma unroll
    for (int r = 0; r < kChunk; ++r) {
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        sum[r * kLanes + i] = Sum{0} + above[0][i] + above[1][i] + line[r][i];  // no sum is -0
        above[0][i] = above[1][i];
        above[1][i] = line[r][i];
      }
    }
    if (p.uniform_divisor) divide_all<T>(p, sum);
#pragma unroll
    for (int r = 0; r < kChunk; ++r) {
      Sum own[kLanes];
#pragma unroll
      for (int i = 0; i < kLanes; ++i) own[i] = sum[r * kLanes + i];
      if (!p.uniform_divisor) {
        divide_all_by<T>(own, divisor_of(p, taps_of(p.axis[0], Int{0}), taps_of<Int>(p.axis[1], y + r),
                                         taps_of(p.axis[2], place.x)));
      }
      Vector<T, kLanes> result;
#pragma unroll
      for (int i = 0; i < kLanes; ++i) result.lane[i] = narrow<T>(own[i]);
      if (y + r < end) store(output, result);
      output += p.output.h;
    }
  }
}

}  // namespace cenote::gpu
