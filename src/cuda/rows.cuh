// Small windows along one axis, and of bytes with indices, of planar tensors whose rows are aligned: a thread makes kColumns outputs
// beside and kRows below each other, and loads what they share in vectors, straight from memory. No shared memory, no barrier: the
// loads of many threads are under way at any time.
#pragma once

#include "cuda/forward.cuh"

namespace cenote::gpu {

template <class T, int kCount>
__device__ inline void load_aligned(const T* from, T (&to)[kCount]) {
  constexpr int kStep = sizeof(T) * kCount <= 16 ? kCount : 16 / static_cast<int>(sizeof(T));
#pragma unroll
  for (int i = 0; i < kCount; i += kStep) {
    const auto piece = load<kStep>(from + i);
#pragma unroll
    for (int j = 0; j < kStep; ++j) to[i + j] = piece.lane[j];
  }
}

/// kHeight x kWidth taps, stride kStride and padding kPadding along height and width (a height of 1: stride 1, padding 0), no
/// dilation there. The width is a multiple of kColumns * kStride and rows begin aligned. Depth is free.
template <class T, Fold kFold, bool kIndices, int kHeight, int kWidth, int kStride, int kPadding, int kRows,
          int kColumns>
__global__ void __launch_bounds__(kBlock)
    fold_rows(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  constexpr int kStrideY = kHeight == 1 ? 1 : kStride, kPaddingY = kHeight == 1 ? 0 : kPadding;
  constexpr int kInputRows = (kRows - 1) * kStrideY + kHeight;
  constexpr int kOwn = kColumns * kStride;  // columns that are this thread's alone
  constexpr int kLeft = kPadding;           // and those it shares with its neighbours
  constexpr int kRight = kWidth - kStride - kPadding > 0 ? kWidth - kStride - kPadding : 0;
  constexpr int kSpan = kLeft + kOwn + kRight;
  const Int thread = thread_of_grid<Int>();
  if (thread >= p.grid.threads) return;
  Place<Int> place = p.grid.place(thread);
  place.y *= kRows;
  place.x *= kColumns;
  const Int height = p.axis[1].input, width = p.axis[2].input;
  const Int top = place.y * kStrideY - kPaddingY, left = place.x * kStride;
  const Taps<Int> depth = p.grid.flat && p.axis[0].kernel == 1 ? Taps<Int>{0, 0, 1, 1, 1} : taps_of(p.axis[0], place.z);
  const Term<kFold, T> term(p.norm_type);
  const T* input = static_cast<const T*>(at.input) + p.input.plane(place.n, place.c) + left;
  Folded<T, kFold> fold[kRows][kColumns];
  Int codes[kRows][kColumns];
#pragma unroll
  for (int j = 0; j < kRows; ++j) {
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
      fold[j][i] = empty_fold<kFold, T>();
      codes[j][i] = -1;
    }
  }
  for (Int tz = depth.low; tz < depth.high; ++tz) {
    const Int source_z = depth.start + tz * p.axis[0].dilation;
    const bool first_slice = tz == depth.low;
#pragma unroll
    for (int r = 0; r < kInputRows; ++r) {
      // Outside: the max family takes the nearest row and column again, which are in the window; sums take nothing.
      const Int source_y = least(most(top + r, 0), height - 1);
      const T* row = input + source_z * p.input.d + source_y * p.input.h;
      T value[kSpan];
      {
        T own[kOwn];
        load_aligned(row, own);
#pragma unroll
        for (int i = 0; i < kOwn; ++i) value[kLeft + i] = own[i];
      }
#pragma unroll
      for (int i = 0; i < kLeft; ++i)
        value[i] = left > 0 ? row[i - kLeft] : is_extreme<kFold> ? value[kLeft] : identity<kFold, T>();
#pragma unroll
      for (int i = 0; i < kRight; ++i) {
        value[kLeft + kOwn + i] = left + kOwn + i < width ? row[kOwn + i]
                                  : is_extreme<kFold>     ? value[kLeft + kOwn - 1]
                                                          : identity<kFold, T>();
      }
      const bool row_inside = top + r == source_y;
#pragma unroll
      for (int i = 0; i < kColumns; ++i) {
        if constexpr (is_extreme<kFold>) {
          T best = value[i * kStride];
          Int winner = i * kStride;
#pragma unroll
          for (int tx = 1; tx < kWidth; ++tx) {
            if (i * kStride + tx < kSpan &&
                beats<kFold>(value[i * kStride + tx < kSpan ? i * kStride + tx : 0], best)) {
              best = value[i * kStride + tx < kSpan ? i * kStride + tx : 0];
              winner = i * kStride + tx;
            }
          }
#pragma unroll
          for (int j = 0; j < kRows; ++j) {
            if (r - j * kStrideY >= 0 && r - j * kStrideY < kHeight &&
                ((r == j * kStrideY && first_slice) || beats<kFold>(best, fold[j][i]))) {
              fold[j][i] = best;
              if constexpr (kIndices) {
                codes[j][i] = (source_z * height + source_y) * width + least(most(left + winner - kLeft, 0), width - 1);
              }
            }
          }
        } else {
          // In row-major order, as the kernels for pointers that are not aligned have it.
#pragma unroll
          for (int tx = 0; tx < kWidth; ++tx) {
            const Accumulator<T> tap = row_inside ? term(value[i * kStride + tx]) : Accumulator<T>{0};
#pragma unroll
            for (int j = 0; j < kRows; ++j) {
              if (r - j * kStrideY >= 0 && r - j * kStrideY < kHeight) fold[j][i] += tap;
            }
          }
        }
      }
    }
  }
  const std::int64_t output = p.output.plane(place.n, place.c) + p.output.at(place.z, place.y, place.x);
  const std::int64_t index = p.indices.plane(place.n, place.c) + p.indices.at(place.z, place.y, place.x);
#pragma unroll
  for (int j = 0; j < kRows; ++j) {
    if (place.y + j >= p.axis[1].output) break;
    Vector<T, kColumns> result;
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
      std::int64_t counted = 1;
      if constexpr (!is_extreme<kFold>) {
        if (kFold != Fold::sum || !p.uniform_divisor) {
          counted = counted_taps<kFold>(p, depth, taps_of(p.axis[1], place.y + j), taps_of(p.axis[2], place.x + i));
        }
      }
      result.lane[i] = finish<kFold, T>(p, fold[j][i], counted);
      if constexpr (kIndices) {
        if (p.index_kind == IndexKind::window) {
          Int place_z = codes[j][i];
          const Int place_x = take(place_z, p.axis[2].by_input), place_y = take(place_z, p.axis[1].by_input);
          const Int tz = p.axis[0].by_dilation.quotient(place_z - depth.start);
          codes[j][i] =
              (tz * kHeight + place_y - (top + j * kStrideY)) * kWidth + place_x - (left + i * kStride - kPadding);
        }
      }
    }
    if (p.paired_columns) {
      store(static_cast<T*>(at.output) + output + j * p.output.h, result);
      if constexpr (kIndices) store_codes(at.indices, p.index_dtype, index + j * p.indices.h, codes[j]);
    } else {
#pragma unroll
      for (int i = 0; i < kColumns; ++i) {
        if (place.x + i >= p.axis[2].output) break;
        static_cast<T*>(at.output)[output + j * p.output.h + i] = result.lane[i];
        if constexpr (kIndices) {
          const Int code[1] = {codes[j][i]};
          store_codes(at.indices, p.index_dtype, index + j * p.indices.h + i, code);
        }
      }
    }
  }
}

}  // namespace cenote::gpu
