// The backward of fold_rows, and max_unpool of the same windows: a thread makes kRows x kColumns elements that lie next to each
// other and loads the outputs that see them in vectors, straight from memory.
#pragma once

#include "cuda/backward.cuh"
#include "cuda/rows.cuh"

namespace cenote::gpu {

template <int kCount>
__device__ inline void load_codes_aligned(const void* indices, DType dtype, std::int64_t offset,
                                          std::int32_t (&codes)[kCount], bool& beyond) {
  std::int64_t wide[kCount];
  load_codes(indices, dtype, offset, wide);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    codes[i] = static_cast<std::int32_t>(wide[i]);
    beyond = beyond || wide[i] != codes[i];
  }
}

/// kKernel taps, stride kStride, padding kPadding along height and width. The width is a multiple of kColumns, the output's width
/// of kColumns / kStride, and rows begin aligned. Depth is free. For max_unpool (Share::last) grad_output means the pooled values
/// and grad_input the result.
template <class T, Share kShare, bool kTaps, int kKernel, int kStride, int kPadding, int kRows, int kColumns>
__global__ void __launch_bounds__(kBlock)
    gather_rows(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  constexpr bool kIndexed = kShare != Share::sum;
  // Element j of a cell is seen by outputs ceil((j + p - k + 1) / s) .. floor((j + p) / s), counted from the cell's own first one.
  constexpr int kFirst = ceil_quotient(kPadding - kKernel + 1, kStride);
  constexpr int kOutputRows = floor_quotient(kPadding + kRows - 1, kStride) - kFirst + 1;
  constexpr int kOutputColumns = floor_quotient(kPadding + kColumns - 1, kStride) - kFirst + 1;
  constexpr int kOwn = kColumns / kStride;
  constexpr int kLeft = -kFirst, kRight = kOutputColumns - kOwn - kLeft;
  static_assert(kLeft >= 0 && kRight >= 0);
  const Int thread = thread_of_grid<Int>();
  if (thread >= p.grid.threads) return;
  Place<Int> place = p.grid.place(thread);
  place.y *= kRows;
  place.x *= kColumns;
  const Int height = p.axis[1].input, width = p.axis[2].input, out_height = p.axis[1].output,
            out_width = p.axis[2].output;
  const Int first_row = place.y / kStride + kFirst, own_column = place.x / kStride;
  const bool flat_depth = p.grid.flat && p.axis[0].output == 1 && p.axis[0].kernel == 1;
  const Reach<Int> depth = flat_depth ? Reach<Int>{0, 0} : cover_of(p.axis[0], place.z);
  const T* grad = static_cast<const T*>(at.grad_output) + p.grad_output.plane(place.n, place.c) + own_column;
  const std::int64_t indices = p.indices.plane(place.n, place.c) + own_column;
  const Int flat = (place.z * height + place.y) * width + place.x;
  Accumulator<T> sum[kRows][kColumns] = {};
  bool right = true;
  for (Int oz = depth.first; oz <= depth.last; ++oz) {
    const Int tz = flat_depth ? Int{0} : tap_of(p.axis[0], oz, place.z);
    if (tz < 0) continue;
    const bool vouches_z = tz == 0 || place.z < p.axis[0].dilation;
#pragma unroll
    for (int r = 0; r < kOutputRows; ++r) {
      const Int oy = first_row + r;
      if (static_cast<unsigned>(oy) >= static_cast<unsigned>(out_height)) continue;
      T sent[kOutputColumns];
      Int codes[kOutputColumns];
      bool beyond = false;
      const T* from = grad + oz * p.grad_output.d + oy * p.grad_output.h;
      const std::int64_t index = indices + oz * p.indices.d + oy * p.indices.h;
      {
        T own[kOwn];
        load_aligned(from, own);
        Int own_codes[kOwn];
        if constexpr (kIndexed) load_codes_aligned(at.saved_indices, p.index_dtype, index, own_codes, beyond);
#pragma unroll
        for (int i = 0; i < kOwn; ++i) {
          sent[kLeft + i] = own[i];
          codes[kLeft + i] = kIndexed ? own_codes[i] : 0;
        }
      }
#pragma unroll
      for (int i = 0; i < kOutputColumns; ++i) {
        if (i >= kLeft && i < kLeft + kOwn) continue;
        const bool exists = static_cast<unsigned>(own_column + i - kLeft) < static_cast<unsigned>(out_width);
        sent[i] = exists ? from[i - kLeft] : narrow<T>(Accumulator<T>{0});
        codes[i] = -1;
        if constexpr (kIndexed) {
          if (exists) {
            std::int64_t code[1];
            load_codes(at.saved_indices, p.index_dtype, index + i - kLeft, code);
            codes[i] = static_cast<Int>(code[0]);
          }
        }
      }
      if constexpr (kIndexed) {
        // The thread whose columns are an output's own vouches for its index, in the rows where its window starts.
        const int start_y = (kFirst + r) * kStride - kPadding;
        if (vouches_z && (start_y >= 0 ? start_y < kRows : place.y == 0)) {
          right = right && !beyond;
          const Taps<Int> taps_z = flat_depth ? Taps<Int>{0, 0, 1, 1, 1} : taps_of(p.axis[0], oz);
#pragma unroll
          for (int i = 0; i < kOwn; ++i) {
            const Int ox = own_column + i;
            const Int top = oy * kStride - kPadding, left = ox * kStride - kPadding, code = codes[kLeft + i];
            if constexpr (kTaps) {
              const Int z = code / (kKernel * kKernel), in_slice = code % (kKernel * kKernel);
              const bool found = code >= 0 && z >= taps_z.low && z < taps_z.high &&
                                 static_cast<unsigned>(top + in_slice / kKernel) < static_cast<unsigned>(height) &&
                                 static_cast<unsigned>(left + in_slice % kKernel) < static_cast<unsigned>(width);
              right = right && (found || code == -1);
            } else {
              // Without a division where arithmetic is what these kernels wait for, and where there is one slice.
              if (sizeof(T) == 2 && kKernel > kStride && kStride > 1 && p.axis[0].kernel == 1) {
                const Int relative = code - (place.z * height + top) * width - left;
                const Int low = most(-left, 0), count = least(kKernel, width - left) - low;
                bool found = kShare != Share::last && code == -1;
#pragma unroll
                for (int row = 0; row < kKernel; ++row) {
                  found =
                      found || (static_cast<unsigned>(relative - row * width - low) < static_cast<unsigned>(count) &&
                                static_cast<unsigned>(top + row) < static_cast<unsigned>(height) && code >= 0);
                }
                right = right && found;
              } else {
                Int position;
                right = right && ((kShare != Share::last && code == -1) ||
                                  is_flat_tap<Int>(p, taps_z, top, left, code, position));
              }
            }
          }
        }
      }
      Accumulator<T> share[kOutputColumns];
#pragma unroll
      for (int i = 0; i < kOutputColumns; ++i) {
        share[i] = widen(sent[i]);
        if constexpr (kShare == Share::sum) {
          if (!p.uniform_divisor && own_column + i - kLeft >= 0 && own_column + i - kLeft < out_width) {
            share[i] = divide<T>(share[i], divisor_of(p, taps_of(p.axis[0], oz), taps_of(p.axis[1], oy),
                                                      taps_of<Int>(p.axis[2], own_column + i - kLeft)));
          }
        }
      }
#pragma unroll
      for (int i = 0; i < kOutputColumns; ++i) {
#pragma unroll
        for (int y = 0; y < kRows; ++y) {
#pragma unroll
          for (int x = 0; x < kColumns; ++x) {
            const int ty = kPadding + y - (kFirst + r) * kStride, tx = kPadding + x - (kFirst + i) * kStride;
            if (ty < 0 || ty >= kKernel || tx < 0 || tx >= kKernel) continue;
            if constexpr (kShare == Share::sum) {
              sum[y][x] += share[i];
            } else {
              const Int wanted = kTaps ? (tz * kKernel + ty) * kKernel + tx : flat + y * width + x;
              if (codes[i] == wanted) sum[y][x] = kShare == Share::last ? share[i] : sum[y][x] + share[i];
            }
          }
        }
      }
    }
  }
  if constexpr (kIndexed) {
    if (!right) {
      if constexpr (kShare == Share::last) {
        *static_cast<volatile unsigned*>(at.irregular) = 1;
      } else {
        report(at.fault, kFaultIndex);
      }
    }
  }
  T* result = static_cast<T*>(at.grad_input) + p.grad_input.plane(place.n, place.c) +
              p.grad_input.at(place.z, place.y, place.x);
#pragma unroll
  for (int y = 0; y < kRows; ++y) {
    if (place.y + y >= height) break;
    constexpr int kStep = sizeof(T) * kColumns <= 16 ? kColumns : 16 / static_cast<int>(sizeof(T));
#pragma unroll
    for (int x = 0; x < kColumns; x += kStep) {
      Vector<T, kStep> piece;
#pragma unroll
      for (int i = 0; i < kStep; ++i) {
        Accumulator<T> value = sum[y][x + i];
        if constexpr (kShare == Share::sum) {
          if (p.uniform_divisor) value = average_of<T>(p, value, 1);
        }
        piece.lane[i] = narrow<T>(value);
      }
      store(result + y * p.grad_input.h + x, piece);
    }
  }
}

}  // namespace cenote::gpu
