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
  const Int thread = thread_of_grid<Int>();
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
  RowDivisors<T, 1> divisors;
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
        divisors.follow(p, 1, y + r, place.x);
        divide_by(own, divisors.divisor[0], divisors.reciprocal[0]);
      }
      Vector<T, kLanes> result;
#pragma unroll
      for (int i = 0; i < kLanes; ++i) result.lane[i] = narrow<T>(own[i]);
      if (y + r < end) store(output, result);
      output += p.output.h;
    }
  }
}

/// Columns of a warp that make outputs: what those at its ends need of their neighbours is lent by two more.
inline constexpr int kSlideLanes = 30;

/// The same for planar tensors and as many outputs as inputs along the width, one column before the first: a lane loads its own column,
/// its neighbours lend theirs.
template <class T, int kChunk>
__global__ void __launch_bounds__(kBlock)
    slide_lanes(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Sum = Accumulator<T>;
  const Int lane = static_cast<Int>(threadIdx.x) % 32;
  const Int item =
      (static_cast<Int>(blockIdx.x) * (kBlock / 32) + static_cast<Int>(threadIdx.x) / 32) * kSlideLanes + lane - 1;
  const bool makes = lane > 0 && lane <= kSlideLanes && item < p.grid.threads;
  Place<Int> place = p.grid.place(least(most(item, 0), p.grid.threads - 1));
  place.y *= p.strip;
  const Int height = p.axis[1].input, top = place.y - p.axis[1].pad_begin;
  const bool first = place.x == 0, last = place.x + 1 == p.axis[2].input;
  const T* column = static_cast<const T*>(at.input) + p.input.plane(place.n, place.c) + place.x;
  auto fetch = [&](Int row) {
    const Int y = top + row;
    T value = narrow<T>(Sum{0});
    if (static_cast<unsigned>(y) < static_cast<unsigned>(height))
      value = load_constant<1>(column + y * p.input.h).lane[0];
    return value;
  };
  auto add = [&](T value) {
    const Sum own = widen(value);
    const Sum left = __shfl_up_sync(0xffffffffU, own, 1), right = __shfl_down_sync(0xffffffffU, own, 1);
    return (first ? Sum{0} : left) + own + (last ? Sum{0} : right);
  };
  Sum above[2];
  T ahead[kChunk];
  {
    const T upper = fetch(0), lower = fetch(1);
#pragma unroll
    for (int r = 0; r < kChunk; ++r) ahead[r] = fetch(2 + r);
    above[0] = add(upper);
    above[1] = add(lower);
  }
  const Int count = makes ? least(p.strip, p.axis[1].output - place.y) : 0;
  T* output = static_cast<T*>(at.output) + p.output.plane(place.n, place.c) + p.output.at(0, place.y, place.x);
  RowDivisors<T, 1> divisors;
  for (Int row = 0; row < p.strip; row += kChunk) {
    Sum sum[kChunk];
#pragma unroll
    for (int r = 0; r < kChunk; ++r) {
      const Sum line = add(ahead[r]);
      sum[r] = Sum{0} + above[0] + above[1] + line;  // no sum is -0
      above[0] = above[1];
      above[1] = line;
    }
    if (row + kChunk < p.strip) {
#pragma unroll
      for (int r = 0; r < kChunk; ++r) ahead[r] = fetch(row + kChunk + 2 + r);
    }
    if (p.uniform_divisor) {
      divide_all<T>(p, sum);
    } else {
#pragma unroll
      for (int r = 0; r < kChunk; ++r) {
        divisors.follow(p, 1, place.y + row + r, place.x);
        sum[r] = quotient(sum[r], divisors.divisor[0], divisors.reciprocal[0]);
      }
    }
#pragma unroll
    for (int r = 0; r < kChunk; ++r) {
      if (row + r < count) *output = narrow<T>(sum[r]);
      output += p.output.h;
    }
  }
}

}  // namespace cenote::gpu
