// Windows of 2x2 side by side over dense planar tensors of even height and width, however narrow: rows of windows follow each other
// through all planes, so that a thread takes 16 bytes of results wherever they lie.
#pragma once

#include "cuda/fold_down.cuh"
#include "cuda/gather_down.cuh"

namespace cenote::gpu {

/// Outputs to a thread.
template <bool kIndices>
inline constexpr int kPackedOutputs = kIndices ? 2 : 4;

/// Maxima of 2x2 windows of 16-bit elements, two to a register: down first, then along. Those that are zero or a NaN are folded again in the
/// order that the rule asks for.
template <class T, int kCount>
__device__ inline Vector<T, kCount> largest_of_pairs(const Vector<T, 2> (&upper)[kCount],
                                                     const Vector<T, 2> (&lower)[kCount]) {
  Vector<T, kCount> result;
#pragma unroll
  for (int i = 0; i < kCount; i += 2) {
    const Vector<T, 2> one = larger_lanes(upper[i], lower[i]), two = larger_lanes(upper[i + 1], lower[i + 1]);
    const Vector<T, 2> left{{one.lane[0], two.lane[0]}}, right{{one.lane[1], two.lane[1]}};
    const Vector<T, 2> best = larger_lanes(left, right);
    result.lane[i] = best.lane[0];
    result.lane[i + 1] = best.lane[1];
  }
  bool doubtful = false;
#pragma unroll
  for (int i = 0; i < kCount; ++i) doubtful = doubtful || is_doubtful(result.lane[i]);
  if (doubtful) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      result.lane[i] = upper[i].lane[0];
      for (const T tap : {upper[i].lane[1], lower[i].lane[0], lower[i].lane[1]}) {
        if (beats<Fold::max>(tap, result.lane[i])) result.lane[i] = tap;
      }
    }
  }
  return result;
}

/// Forward: a thread makes a few outputs from pairs of elements: four, a warp's width apart, so that neighbouring lanes read neighbours;
/// with indices two that follow each other, of which 16 bytes are stored at once.
template <class T, Fold kFold, bool kIndices>
__global__ void __launch_bounds__(kBlock)
    fold_packed_pairs(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  constexpr int kCount = kPackedOutputs<kIndices>, kStep = kIndices ? 1 : 32;
  const Int thread = thread_of_grid<Int>();
  const Int first = kIndices ? thread * kCount : thread / 32 * (32 * kCount) + thread % 32;
  if (first >= p.grid.threads) return;
  const Int width = p.axis[2].input;
  Vector<T, 2> upper[kCount], lower[kCount];
  Int corner[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    Int row = least(first + i * kStep, p.grid.threads - 1);  // of windows, through all planes
    const Int x = take(row, p.axis[2].by_output);
    const T* from = static_cast<const T*>(at.input) + static_cast<std::int64_t>(row) * (2 * width) + 2 * x;
    upper[i] = load_constant<2>(from);
    lower[i] = load_constant<2>(from + width);
    if constexpr (kIndices) corner[i] = 2 * (take(row, p.axis[1].by_output) * width + x);
  }
  Vector<T, kCount> result;
  Int codes[kCount];
  Folded<T, kFold> sums[kCount];
  constexpr bool kHalves = kFold == Fold::max && !kIndices && sizeof(T) == 2;
  if constexpr (kHalves) result = largest_of_pairs(upper, lower);
#pragma unroll
  for (int i = 0; i < kCount && !kHalves; ++i) {
    const T taps[4] = {upper[i].lane[0], upper[i].lane[1], lower[i].lane[0], lower[i].lane[1]};
    if constexpr (is_extreme<kFold>) {
      T best = taps[0];
      Int winner = 0;
#pragma unroll
      for (int t = 1; t < 4; ++t) {
        if (beats<kFold>(taps[t], best)) {
          best = taps[t];
          winner = t;
        }
      }
      result.lane[i] = best;
      codes[i] = p.index_kind == IndexKind::window ? winner : corner[i] + (winner & 1) + (winner >> 1) * width;
    } else {
      sums[i] = (Folded<T, kFold>{0} + widen(taps[0]) + widen(taps[1])) + (widen(taps[2]) + widen(taps[3]));
    }
  }
  if constexpr (!is_extreme<kFold>) {
    divide_all<T>(p, sums);
#pragma unroll
    for (int i = 0; i < kCount; ++i) result.lane[i] = narrow<T>(sums[i]);
  }
  T* output = static_cast<T*>(at.output) + first;
  if (kIndices && first + kCount <= p.grid.threads) {
    store(output, result);
    if constexpr (kIndices) store_codes(at.indices, p.index_dtype, first, codes);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (first + i * kStep >= p.grid.threads) break;
      output[i * kStep] = result.lane[i];
      if constexpr (kIndices) {
        const Int code[1] = {codes[i]};
        store_codes(at.indices, p.index_dtype, first + i * kStep, code);
      }
    }
  }
}

/// Backward: a thread makes 16 bytes of elements, which are pairs of one window each.
template <class T, Share kShare, class Stored>
__global__ void __launch_bounds__(kBlock)
    spread_packed_pairs(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  constexpr int kPairs = 8 / static_cast<int>(sizeof(T));
  const Int first = thread_of_grid<Int>() * kPairs;
  if (first >= p.grid.threads) return;
  const Int pairs = p.axis[2].output, width = p.axis[2].input;
  Int row = first;  // of elements, through all planes
  Int x = take(row, p.axis[2].by_output);
  Int y = row;
  if constexpr (kShare == Share::index) y = take(y, p.axis[1].by_input);
  T sent[kPairs];
  Int codes[kPairs], high[kPairs], mine[kPairs];
  bool upper[kPairs];
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    const Int from = (first + i < p.grid.threads) ? (row >> 1) * pairs + x : 0;
    sent[i] = load_constant<1>(static_cast<const T*>(at.grad_output) + from).lane[0];
    upper[i] = (row & 1) == 0;
    if constexpr (kShare == Share::index) {
      Int code[1], above[1];
      load_stored<Stored>(at.saved_indices, from, code, above);
      codes[i] = code[0];
      high[i] = above[0];
      mine[i] = p.index_kind == IndexKind::window ? (row & 1) * 2 : y * width + 2 * x;
    }
    if (++x == pairs) {
      x = 0;
      ++row;
      if (kShare == Share::index && ++y == p.axis[1].input) y = 0;
    }
  }
  Accumulator<T> share[kPairs];
#pragma unroll
  for (int i = 0; i < kPairs; ++i) share[i] = Accumulator<T>{0} + widen(sent[i]);
  if constexpr (kShare == Share::sum) divide_all<T>(p, share);
  const Int unit = p.index_kind == IndexKind::window ? 2 : width;
  bool right = true;
  Vector<T, 2 * kPairs> result;
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const bool wins = kShare == Share::sum || codes[i] == mine[i] + j;
      result.lane[2 * i + j] = narrow<T>(wins ? share[i] : Accumulator<T>{0});
    }
    if constexpr (kShare == Share::index) {
      // The window's upper row vouches for its index.
      const auto tap = static_cast<unsigned>(codes[i] - mine[i]);
      if (first + i < p.grid.threads && upper[i] && (codes[i] & high[i]) != -1)
        right = right && high[i] == 0 && (tap < 2U || tap - static_cast<unsigned>(unit) < 2U);
    }
  }
  T* to = static_cast<T*>(at.grad_input) + 2 * static_cast<std::int64_t>(first);
  if (first + kPairs <= p.grid.threads) {
    store(to, result);
  } else {
#pragma unroll
    for (int i = 0; i < 2 * kPairs; ++i) {
      if (2 * first + i < 2 * p.grid.threads) to[i] = result.lane[i];
    }
  }
  if constexpr (kShare == Share::index) {
    if (!right) report(at.fault, kFaultIndex);
  }
}

}  // namespace cenote::gpu
