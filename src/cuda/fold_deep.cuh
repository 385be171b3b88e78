// Maxima of 3x3x3 windows one or two apart along every axis: a thread makes outputs of some slices, which share others, and walks down a
// strip of them, so that rows and slices that windows share cross to the multiprocessor little more than once.
#pragma once

#include "cuda/fold_down.cuh"

namespace cenote::gpu {

/// Slices of outputs to a thread.
template <int kStride>
inline constexpr int kDeepOutputs = kStride == 1 ? 4 : 2;

/// kLanes outputs are neighbouring channels, or columns of planar tensors with aligned rows. First along a row, then along the depth,
/// then down: where every order gives the same bits, that is. Where a result is zero or a NaN, it is folded again in the order that the
/// rule asks for. No dilation, no empty window.
template <class T, int kLanes, Lanes kAs, int kPadding, int kStride>
__global__ void __launch_bounds__(kBlock, kStride == 1 ? 2 : 3)
    fold_deep(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  constexpr int kOutputs = kDeepOutputs<kStride>, kSlices = (kOutputs - 1) * kStride + 3, kKept = 3 - kStride;
  const Int thread = thread_of_grid<Int>();
  if (thread >= p.grid.threads) return;
  Place<Int> place = p.grid.place(thread);
  place.y *= p.strip;
  place.z *= kOutputs;
  if constexpr (kAs == Lanes::columns) place.x *= kLanes;
  const RowReader<T, kLanes, kAs, Fold::max, false, 3, kStride, kPadding> reader(p, place.x);
  const T* input = static_cast<const T*>(at.input) + p.input.plane(place.n, place.c);
  const Int height = p.axis[1].input, depth = p.axis[0].input;
  const Int front = kStride * place.z - p.axis[0].pad_begin;
  // Outside, the nearest row and slice again: maxima do not change by it.
  auto row_near = [&](Int z, Int y) {
    return input + least(most(z, 0), depth - 1) * p.input.d + least(most(y, 0), height - 1) * p.input.h;
  };
  using Lane = Vector<T, kLanes>;
  auto larger_of = [](const Lane& a, const Lane& b) {
    Lane result;
#pragma unroll
    for (int i = 0; i < kLanes; ++i) result.lane[i] = larger_or_nan(a.lane[i], b.lane[i]);
    return result;
  };
  /// Row y of all slices, folded for each output along the depth.
  auto fold_row = [&](Int y, Lane(&rows)[kOutputs]) {
    Lane slices[kSlices];
#pragma unroll
    for (int s = 0; s < kSlices; ++s) {
      Lane taps[3];
      reader.load_taps(row_near(front + s, y), true, taps);
      slices[s] = larger_of(larger_of(taps[0], taps[1]), taps[2]);
    }
#pragma unroll
    for (int j = 0; j < kOutputs; ++j)
      rows[j] = larger_of(larger_of(slices[kStride * j], slices[kStride * j + 1]), slices[kStride * j + 2]);
  };
  const Int end = least(place.y + p.strip, p.axis[1].output);
  T* output = static_cast<T*>(at.output) + p.output.plane(place.n, place.c) + p.output.at(place.z, place.y, place.x);
  Lane rows[3][kOutputs];
#pragma unroll
  for (int r = 0; r < kKept; ++r) fold_row(kStride * place.y - p.axis[1].pad_begin + r, rows[r]);
  for (Int y = place.y; y < end; ++y) {
    const Int top = kStride * y - p.axis[1].pad_begin;
#pragma unroll
    for (int r = kKept; r < 3; ++r) fold_row(top + r, rows[r]);
#pragma unroll
    for (int j = 0; j < kOutputs; ++j) {
      Lane result = larger_of(larger_of(rows[0][j], rows[1][j]), rows[2][j]);
      bool doubtful = false;
#pragma unroll
      for (int i = 0; i < kLanes; ++i) doubtful = doubtful || is_doubtful(result.lane[i]);
      if (doubtful) {
        for (Int tap = 0; tap < 9; ++tap) {
          const Int z = tap / 3, y_tap = tap - 3 * z;
          Lane taps[3];
          reader.load_taps(row_near(front + kStride * j + z, top + y_tap), true, taps);
#pragma unroll
          for (int t = 0; t < 3; ++t) {
#pragma unroll
            for (int i = 0; i < kLanes; ++i) {
              if ((tap == 0 && t == 0) || beats<Fold::max>(taps[t].lane[i], result.lane[i]))
                result.lane[i] = taps[t].lane[i];
            }
          }
        }
      }
      if (place.z + j < p.axis[0].output) {
        T* to = output + j * p.output.d;
        if (kAs == Lanes::channels || p.paired_columns) {
          store(to, result);
        } else {
#pragma unroll
          for (int i = 0; i < kLanes; ++i) {
            if (place.x + i < p.axis[2].output) to[i] = result.lane[i];
          }
        }
      }
#pragma unroll
      for (int r = 0; r < kKept; ++r) rows[r][j] = rows[r + kStride][j];
    }
    output += p.output.h;
  }
}

}  // namespace cenote::gpu
