// Windows of few taps that no other kernel is made for, whatever their shape, distance and dilation: a thread walks down a few outputs
// and folds each straight from memory. Where its columns are is worked out once, and all taps are loaded before any is used.
#pragma once

#include "cuda/pairs.cuh"

namespace cenote::gpu {

/// Where a window begins along an axis, and how many taps it has, those outside included.
struct Reached {
  std::int32_t start, taps;
};

__device__ inline Reached reached_by(const DeviceAxis<std::int32_t>& axis, std::int32_t o) {
  if (axis.rule == WindowRule::adaptive) {
    const std::int32_t start = adaptive_first(axis, o);
    return {start, adaptive_last(axis, o) - start};
  }
  return {o * axis.stride - axis.pad_begin, axis.kernel};
}

/// The first of the columns that a thread takes where each takes `across` of them: those of a warp lie next to each other every time.
__device__ inline std::int32_t first_column(std::int32_t place, std::int32_t across) {
  return across == 1 ? place : place / 32 * (32 * across) + place % 32;
}

/// Windows of at most kHeight x kWidth taps, none empty; no window leaves its slice. kLanes: neighbouring channels.
template <class T, int kLanes, Fold kFold, bool kIndices, int kHeight, int kWidth>
__global__ void __launch_bounds__(kBlock, 3)
    fold_direct(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  const DeviceAxis<Int>&h = p.axis[1], &w = p.axis[2];
  const Int thread = thread_of_grid<Int>();
  if (thread >= p.grid.threads) return;
  Place<Int> place = p.grid.place(thread);
  place.y *= p.strip;
  const T* input = settled(static_cast<const T*>(at.input) + p.input.plane(place.n, place.c) + place.z * p.input.d);
  T* outputs = settled(static_cast<T*>(at.output) + p.output.plane(place.n, place.c) + place.z * p.output.d);
  const std::int64_t indices = p.indices.plane(place.n, place.c) + place.z * p.indices.d;
  const Term<kFold, T> term(p.norm_type);
  place.x = first_column(place.x, p.across);
  for (Int turn = 0; turn < p.across && place.x < w.output; ++turn, place.x += 32) {
    const Int end = least(place.y + p.strip, h.output);
    const Reached across = reached_by(w, place.x);
    Int offset[kWidth];
    bool has_column[kWidth];
#pragma unroll
    for (int t = 0; t < kWidth; ++t) {
      const Int x = across.start + t * w.dilation;
      offset[t] = x * p.input.w;
      has_column[t] = t < across.taps && static_cast<unsigned>(x) < static_cast<unsigned>(w.input);
    }
    T* output = outputs + (place.y * p.output.h + place.x * p.output.w);
    std::int64_t index = indices + (place.y * p.indices.h + place.x * p.indices.w);
    for (Int oy = place.y; oy < end; ++oy) {
      const Reached down = reached_by(h, oy);
      Vector<T, kLanes> taps[kHeight][kWidth];
#pragma unroll
      for (int r = 0; r < kHeight; ++r) {
        const Int y = down.start + r * h.dilation;
        const bool has_row = r < down.taps && static_cast<unsigned>(y) < static_cast<unsigned>(h.input);
        const Int row = y * p.input.h;
#pragma unroll
        for (int t = 0; t < kWidth; ++t) {
#pragma unroll
          for (int l = 0; l < kLanes; ++l) taps[r][t].lane[l] = identity<kFold, T>();
          if (has_row && has_column[t]) taps[r][t] = load_constant<kLanes>(input + (row + offset[t]));
        }
      }
      Folded<T, kFold> fold[kLanes];
      Int winners[kLanes];
      // Of a window of nothing but the lowest values, the first tap wins.
      Int first = 0;
      if constexpr (kIndices) {
        Int first_row = 0, first_column = 0;
#pragma unroll
        for (int r = kHeight - 1; r > 0; --r) {
          if (down.start + (r - 1) * h.dilation < 0) first_row = most<Int>(first_row, r);
        }
#pragma unroll
        for (int t = kWidth - 1; t > 0; --t) {
          if (across.start + (t - 1) * w.dilation < 0) first_column = most<Int>(first_column, t);
        }
        first = first_row * kWidth + first_column;
      }
#pragma unroll
      for (int l = 0; l < kLanes; ++l) {
        fold[l] = empty_fold<kFold, T>();
        winners[l] = first;
      }
      auto for_each_tap = [&](auto take_tap) {
#pragma unroll
        for (int r = 0; r < kHeight; ++r) {
#pragma unroll
          for (int t = 0; t < kWidth; ++t) {
#pragma unroll
            for (int l = 0; l < kLanes; ++l) take_tap(taps[r][t].lane[l], l, r * kWidth + t);
          }
        }
      };
      if constexpr (is_extreme<kFold>) {
        auto in_order = [&](T tap, int l, int number) {
          if (!beats<kFold>(tap, fold[l])) return;
          fold[l] = tap;
          winners[l] = number;
        };
        // Maxima that are zero or a NaN are folded again in the order that the rule asks for, where registers hold all taps so long.
        if constexpr (kFold == Fold::max && !kIndices && kHeight * kWidth * kLanes <= 64) {
          for_each_tap([&](T tap, int l, int) { fold[l] = larger_or_nan(fold[l], tap); });
          bool doubtful = false;
#pragma unroll
          for (int l = 0; l < kLanes; ++l) doubtful = doubtful || is_doubtful(fold[l]);
          if (doubtful) {
#pragma unroll
            for (int l = 0; l < kLanes; ++l) fold[l] = empty_fold<kFold, T>();
            for_each_tap(in_order);
          }
        } else {
          for_each_tap(in_order);
        }
      } else {
        for_each_tap([&](T tap, int l, int) { fold[l] += term(tap); });
      }
      Vector<T, kLanes> result;
      if constexpr (is_extreme<kFold>) {
#pragma unroll
        for (int l = 0; l < kLanes; ++l) result.lane[l] = fold[l];
      } else if constexpr (kFold == Fold::power) {
        const std::int64_t counted =
            counted_taps<kFold>(p, taps_of(p.axis[0], place.z), taps_of(h, oy), taps_of(w, place.x));
#pragma unroll
        for (int l = 0; l < kLanes; ++l) result.lane[l] = finish<kFold, T>(p, fold[l], counted);
      } else {
        if (p.uniform_divisor) {
          divide_all<T>(p, fold);
        } else {
          divide_all_by<T>(fold, divisor_of(p, taps_of(p.axis[0], place.z), taps_of(h, oy), taps_of(w, place.x)));
        }
#pragma unroll
        for (int l = 0; l < kLanes; ++l) result.lane[l] = narrow<T>(fold[l]);
      }
      store(output, result);
      output += p.output.h;
      if constexpr (kIndices) {
        Int codes[kLanes];
#pragma unroll
        for (int l = 0; l < kLanes; ++l) {
          const Int r = static_cast<Int>(static_cast<unsigned>(winners[l]) / kWidth), t = winners[l] - r * kWidth;
          codes[l] = p.index_kind == IndexKind::window
                         ? r * across.taps + t
                         : (place.z * h.input + down.start + r * h.dilation) * w.input + across.start + t * w.dilation;
        }
        store_codes(at.indices, p.index_dtype, index, codes);
        index += p.indices.h;
      }
    }
  }
}

}  // namespace cenote::gpu
