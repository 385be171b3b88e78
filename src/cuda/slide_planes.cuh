// Sums, averages and maxima of 3x3 windows one apart over small planes of dense planar tensors: a block keeps a few whole planes in
// shared memory, and so their results, which leave in pieces of 16 bytes wherever rows begin.
#pragma once

#include "cuda/pairs.cuh"
#include "cuda/tiles.cuh"

namespace cenote::gpu {

inline constexpr int kSlideBlock = 128;

/// Elements behind a row that a thread may read and never uses.
inline constexpr int kSlideMargin = 8;

/// A thread walks down a strip of kColumns columns, folds three columns of each row once, then three rows: the order of slide_down. No
/// dilation, no depth; as many outputs as inputs along the width, one column before the first. Sums: the same divisor for all, unless
/// kOwnDivisors. Maxima that are zero or a NaN are folded again in the order that the rule asks for.
template <class T, Fold kFold, int kColumns, bool kOwnDivisors>
__global__ void __launch_bounds__(kSlideBlock, kColumns > 3 ? 8 : 10)
    slide_planes(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Value = Folded<T, kFold>;
  constexpr int kTaps = kColumns + 2;
  const Value nothing = empty_fold<kFold, T>();
  const Tiling<Int>& tiling = p.tiling;
  const Int first_plane = static_cast<Int>(blockIdx.x) * tiling.planes;
  const Int planes = least(tiling.planes, tiling.total_planes - first_plane);
  const Int height = p.axis[1].input, width = p.axis[2].input, out_height = p.axis[1].output;
  const T* source = static_cast<const T*>(at.input) + static_cast<std::int64_t>(first_plane) * (height * width);
  T* target = static_cast<T*>(at.output) + static_cast<std::int64_t>(first_plane) * (out_height * width);
  // A row of nothing stands for those outside. Elements lie in shared memory as in memory, modulo 16 bytes.
  auto* outside = reinterpret_cast<T*>(tile_memory);
  const Int outside_count = width + kSlideMargin;
  char* kept = tile_memory + tiling.pitch;
  const auto* input = reinterpret_cast<const T*>(kept + (reinterpret_cast<std::uintptr_t>(source) & 15));
  auto* results = reinterpret_cast<T*>(tile_memory + tiling.codes_at + (reinterpret_cast<std::uintptr_t>(target) & 15));
  stage_at_once<kSlideBlock>(kept, source, planes * (height * width), false, [&] {
    for (Int i = static_cast<Int>(threadIdx.x); i < outside_count; i += kSlideBlock) outside[i] = identity<kFold, T>();
  });

  auto joined = [](Value a, Value b) {
    if constexpr (is_extreme<kFold>) {
      return larger_or_nan(a, b);
    } else {
      return a + b;
    }
  };
  for (Int item = static_cast<Int>(threadIdx.x); item < tiling.items; item += kSlideBlock) {
    Int plane = item;
    const Int x = take(plane, tiling.items_x) * kColumns, first = take_of(plane, tiling.items_y) * p.strip;
    if (plane >= planes) break;
    const Int end = least(first + p.strip, out_height);
    const Int left = most(x - 1, 0);  // the first column that is read; of the leftmost strip twice
    bool inside[kTaps];
#pragma unroll
    for (int t = 0; t < kTaps; ++t) inside[t] = static_cast<unsigned>(x - 1 + t) < static_cast<unsigned>(width);
    RowDivisors<T, kColumns> divisors;
    Int y = first - p.axis[1].pad_begin;
    const T* from = input + (plane * height + y) * width + x;
    auto value_of = [](T element) {
      if constexpr (is_extreme<kFold>) {
        return element;
      } else {
        return widen(element);
      }
    };
    // Three columns of the next row.
    auto fold_row = [&](Value(&line)[kColumns]) {
      const T* row = static_cast<unsigned>(y) < static_cast<unsigned>(height) ? from : outside + x;
      Value taps[kTaps];
#pragma unroll
      for (int t = 0; t < kTaps; ++t) {
        const Value tap = value_of(row[t == 0 ? left - x : t - 1]);
        taps[t] = inside[t] ? tap : nothing;
      }
#pragma unroll
      for (int i = 0; i < kColumns; ++i) {
        const Value begun = is_extreme<kFold> ? taps[i] : joined(nothing, taps[i]);  // no sum is -0
        line[i] = joined(joined(begun, taps[i + 1]), taps[i + 2]);
      }
      from += width;
      ++y;
    };
    // The row before, and with it the one before that.
    Value last[kColumns], both[kColumns];
    fold_row(both);
    fold_row(last);
#pragma unroll
    for (int i = 0; i < kColumns; ++i) both[i] = joined(both[i], last[i]);
    T* result = results + (plane * out_height + first) * width + x;
#pragma unroll 2
    for (Int out = first; out < end; ++out) {
      Value line[kColumns], window[kColumns];
      fold_row(line);
#pragma unroll
      for (int i = 0; i < kColumns; ++i) {
        window[i] = joined(both[i], line[i]);
        both[i] = joined(last[i], line[i]);
        last[i] = line[i];
      }
      if constexpr (is_extreme<kFold>) {
        bool doubtful = false;
#pragma unroll
        for (int i = 0; i < kColumns; ++i) doubtful = doubtful || is_doubtful(window[i]);
        if (doubtful) {
          for (Int r = most(y - 3, 0); r < least(y, height); ++r) {
            const T* row = input + (plane * height + r) * width + x;
#pragma unroll
            for (int i = 0; i < kColumns; ++i) {
              bool begun = r > most(y - 3, 0);
#pragma unroll
              for (int t = i; t < i + 3; ++t) {
                if (!inside[t]) continue;
                const T tap = row[t - 1];
                if (!begun || beats<kFold>(tap, window[i])) window[i] = tap;
                begun = true;
              }
            }
          }
        }
#pragma unroll
        for (int i = 0; i < kColumns; ++i) {
          if (inside[i + 1]) result[i] = window[i];
        }
      } else {
        if constexpr (kOwnDivisors) {
          divisors.follow(p, 1, out, x);
#pragma unroll
          for (int i = 0; i < kColumns; ++i)
            window[i] = quotient(window[i], divisors.divisor[i], divisors.reciprocal[i]);
        } else {
          divide_all<T>(p, window);
        }
#pragma unroll
        for (int i = 0; i < kColumns; ++i) {
          if (inside[i + 1]) result[i] = narrow<T>(window[i]);
        }
      }
      result += width;
    }
  }
  __syncthreads();
  store_run<kSlideBlock>(target, results, planes * (out_height * width));
}

}  // namespace cenote::gpu
