// Windows of several rows of planar tensors that overlap little: a group of threads folds a band of rows down to one, a column or a few
// to a thread, straight from memory; then the windows of that one row are folded along it in shared memory.
#pragma once

#include "cuda/pairs.cuh"
#include "cuda/tiles.cuh"

namespace cenote::gpu {

/// Whether an element at `code` replaces the best one, in whatever order they come: the larger, then the earlier; the last NaN.
template <Fold kFold, class T>
__device__ inline bool beats_anywhere(T value, std::int32_t code, T best, std::int32_t best_code) {
  if (is_nan(value)) return !is_nan(best) || code > best_code;
  if (is_nan(best)) return false;
  return value == best ? code < best_code : beats<kFold>(value, best);
}

/// No dilation, no depth, no empty windows. The width is a multiple of kWide, and rows begin aligned to that. Maxima without indices are
/// taken in any order, and those that are zero or a NaN again as the rule asks for.
template <class T, Fold kFold, bool kIndices, int kWide>
__global__ void __launch_bounds__(kBlock)
    fold_bands(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Value = Folded<T, kFold>;
  constexpr bool kAnyOrder = kFold == Fold::max && !kIndices;
  auto* values = reinterpret_cast<Value*>(tile_memory);
  auto* rows = reinterpret_cast<Int*>(tile_memory + p.bands.rows_at);
  const Bands& bands = p.bands;
  const Int width = p.axis[2].input, out_width = p.axis[2].output;
  const Int first_band = static_cast<Int>(blockIdx.x) * bands.in_block;
  const Int in_block = least(bands.in_block, bands.total - first_band);
  {
    Int band = static_cast<Int>(threadIdx.x);
    const Int x = take(band, bands.lanes) * kWide;
    if (band < in_block) {
      Int plane = first_band + band;
      const Int oy = take(plane, p.axis[1].by_output);
      Int n = plane;
      const Int c = take(n, bands.channels);
      const Taps<Int> down = taps_of(p.axis[1], oy);
      const Int begin = down.start + down.low, end = down.start + down.high;
      const T* from = static_cast<const T*>(at.input) + static_cast<std::int64_t>(n) * p.input.n +
                      static_cast<std::int64_t>(c) * p.input.c + begin * p.input.h + x * p.input.w;
      Vector<Value, kWide> fold;
      Int row[kWide];
#pragma unroll
      for (int i = 0; i < kWide; ++i) {
        fold.lane[i] = empty_fold<kFold, T>();
        row[i] = begin;
      }
#pragma unroll 8
      for (Int y = begin; y < end; ++y) {
        const auto value = load_constant<kWide>(from + (y - begin) * p.input.h);
        if constexpr (kAnyOrder) {
          fold = larger_lanes(fold, value);
        } else {
#pragma unroll
          for (int i = 0; i < kWide; ++i) {
            if constexpr (is_extreme<kFold>) {
              if (beats<kFold>(value.lane[i], fold.lane[i])) {
                fold.lane[i] = value.lane[i];
                row[i] = y;
              }
            } else {
              fold.lane[i] += widen(value.lane[i]);
            }
          }
        }
      }
      if constexpr (kAnyOrder) {
        store(values + (band * width + x), fold);
      } else {
#pragma unroll
        for (int i = 0; i < kWide; ++i) {
          values[band * width + x + i] = fold.lane[i];
          if constexpr (is_extreme<kFold>) rows[band * width + x + i] = row[i];
        }
      }
    }
  }
  __syncthreads();
  for (Int i = static_cast<Int>(threadIdx.x); i < in_block * out_width; i += kBlock) {
    Int band = i;
    const Int ox = take(band, p.axis[2].by_output);
    Int plane = first_band + band;
    const Int oy = take(plane, p.axis[1].by_output);
    Int n = plane;
    const Int c = take(n, bands.channels);
    const Taps<Int> across = taps_of(p.axis[2], ox), down = taps_of(p.axis[1], oy);
    const Int begin = across.start + across.low, end = across.start + across.high;
    const Value* line = values + band * width;
    const Int* line_rows = rows + band * width;
    Value fold = line[begin];
    Int code = is_extreme<kFold> && !kAnyOrder ? line_rows[begin] * width + begin : 0;
    for (Int x = begin + 1; x < end; ++x) {
      if constexpr (kAnyOrder) {
        fold = larger_or_nan(fold, line[x]);
      } else if constexpr (is_extreme<kFold>) {
        const Int here = line_rows[x] * width + x;
        if (beats_anywhere<kFold>(line[x], here, fold, code)) {
          fold = line[x];
          code = here;
        }
      } else {
        fold += line[x];
      }
    }
    if constexpr (kAnyOrder) {
      if (is_doubtful(fold)) {
        const T* plane_at = static_cast<const T*>(at.input) + static_cast<std::int64_t>(n) * p.input.n +
                            static_cast<std::int64_t>(c) * p.input.c;
        fold = empty_fold<kFold, T>();
        for (Int y = down.start + down.low; y < down.start + down.high; ++y) {
          for (Int x = begin; x < end; ++x) {
            const T value = load_constant<1>(plane_at + (y * p.input.h + x * p.input.w)).lane[0];
            if (beats<kFold>(value, fold)) fold = value;
          }
        }
      }
    }
    const std::int64_t counted = counted_taps<kFold>(p, taps_of(p.axis[0], Int{0}), down, across);
    static_cast<T*>(at.output)[static_cast<std::int64_t>(n) * p.output.n + static_cast<std::int64_t>(c) * p.output.c +
                               oy * p.output.h + ox * p.output.w] = finish<kFold, T>(p, fold, counted);
    if constexpr (kIndices) {
      if (p.index_kind == IndexKind::window) {
        Int y = code;
        const Int x = take(y, p.axis[2].by_input);
        code = (y - down.start) * across.whole + x - across.start;
      }
      const Int stored[1] = {code};
      store_codes(at.indices, p.index_dtype,
                  static_cast<std::int64_t>(n) * p.indices.n + static_cast<std::int64_t>(c) * p.indices.c +
                      oy * p.indices.h + ox * p.indices.w,
                  stored);
    }
  }
}

}  // namespace cenote::gpu
