// Max pools of channels-last tensors of 16-bit floating-point numbers: fold_strips with two channels in a register, compared and
// selected together.
#pragma once

#include "cuda/forward.cuh"

namespace cenote::gpu {

/// All ones in each half where `value` beats `best`.
template <class T>
__device__ inline unsigned beating_halves(unsigned value, unsigned best) {
  if constexpr (Number<T>::dtype == DType::f16) {
    const __half2 v = *reinterpret_cast<const __half2*>(&value), b = *reinterpret_cast<const __half2*>(&best);
    return __hgt2_mask(v, b) | __hneu2_mask(v, v);
  } else {
    const __nv_bfloat162 v = *reinterpret_cast<const __nv_bfloat162*>(&value),
                         b = *reinterpret_cast<const __nv_bfloat162*>(&best);
    return __hgt2_mask(v, b) | __hneu2_mask(v, v);
  }
}

__device__ inline void select_codes(unsigned mask, std::int32_t code, std::int32_t (&codes)[2]) {
  if ((mask & 0xffffU) != 0) codes[0] = code;
  if ((mask >> 16) != 0) codes[1] = code;
}

/// Square windows of kKernel taps, stride kStride along the height, no dilation along height and width, none empty. Outside the
/// input the nearest element is taken again: it is in the window, and being the same changes neither value nor index.
template <class T, bool kIndices, int kKernel, int kStride, int kRows>
__global__ void __launch_bounds__(kBlock)
    fold_pairs(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  using Int = std::int32_t;
  constexpr int kInputRows = (kRows - 1) * kStride + kKernel;
  constexpr int kPairs = 4;
  const Int thread = static_cast<Int>(blockIdx.x) * kBlock + static_cast<Int>(threadIdx.x);
  if (thread >= p.grid.threads) return;
  Place<Int> place = p.grid.place(thread);
  place.y *= kRows;
  const Int height = p.axis[1].input, width = p.axis[2].input;
  const Taps<Int> depth = taps_of(p.axis[0], place.z);
  const Int top = place.y * kStride - p.axis[1].pad_begin, left = place.x * p.axis[2].stride - p.axis[2].pad_begin;
  Int column[kKernel];
#pragma unroll
  for (int tx = 0; tx < kKernel; ++tx) column[tx] = least(most(left + tx, 0), width - 1);
  unsigned fold[kRows][kPairs] = {};
  Int codes[kRows][kPairs][2] = {};
  const T* input = static_cast<const T*>(at.input) + place.n * p.input.n + place.c * p.input.c;
  for (Int tz = depth.low; tz < depth.high; ++tz) {
    const Int source_z = depth.start + tz * p.axis[0].dilation;
#pragma unroll
    for (int r = 0; r < kInputRows; ++r) {
      const Int source_y = least(most(top + r, 0), height - 1);
      const T* row = input + source_z * p.input.d + source_y * p.input.h;
      uint4 value[kKernel];
#pragma unroll
      for (int tx = 0; tx < kKernel; ++tx) value[tx] = *reinterpret_cast<const uint4*>(row + column[tx] * p.input.w);
      const Int row_code = (source_z * height + source_y) * width;
#pragma unroll
      for (int i = 0; i < kPairs; ++i) {
        const unsigned taps[4] = {value[0].x, value[0].y, value[0].z, value[0].w};
        unsigned best = taps[i];
        Int winner[2] = {column[0], column[0]};
#pragma unroll
        for (int tx = 1; tx < kKernel; ++tx) {
          const unsigned next[4] = {value[tx].x, value[tx].y, value[tx].z, value[tx].w};
          const unsigned mask = beating_halves<T>(next[i], best);
          best = (next[i] & mask) | (best & ~mask);
          if constexpr (kIndices) select_codes(mask, column[tx], winner);
        }
#pragma unroll
        for (int j = 0; j < kRows; ++j) {
          if (r - j * kStride < 0 || r - j * kStride >= kKernel) continue;
          const unsigned mask = r == j * kStride && tz == depth.low ? 0xffffffffU : beating_halves<T>(best, fold[j][i]);
          fold[j][i] = (best & mask) | (fold[j][i] & ~mask);
          if constexpr (kIndices) {
            if ((mask & 0xffffU) != 0) codes[j][i][0] = row_code + winner[0];
            if ((mask >> 16) != 0) codes[j][i][1] = row_code + winner[1];
          }
        }
      }
    }
  }
  const std::int64_t output = place.n * p.output.n + place.c * p.output.c + p.output.at(place.z, place.y, place.x);
  const std::int64_t index = place.n * p.indices.n + place.c * p.indices.c + p.indices.at(place.z, place.y, place.x);
#pragma unroll
  for (int j = 0; j < kRows; ++j) {
    if (place.y + j >= p.axis[1].output) break;
    *reinterpret_cast<uint4*>(static_cast<T*>(at.output) + output + j * p.output.h) =
        make_uint4(fold[j][0], fold[j][1], fold[j][2], fold[j][3]);
    if constexpr (kIndices) {
      Int flat[2 * kPairs];
#pragma unroll
      for (int i = 0; i < 2 * kPairs; ++i) {
        flat[i] = codes[j][i / 2][i % 2];
        if (p.index_kind == IndexKind::window) {
          Int place_z = flat[i];
          const Int place_x = take(place_z, p.axis[2].by_input), place_y = take(place_z, p.axis[1].by_input);
          const Int tz = p.axis[0].by_dilation.quotient(place_z - depth.start);
          flat[i] = (tz * kKernel + place_y - (top + j * kStride)) * kKernel + place_x - left;
        }
      }
      store_codes(at.indices, p.index_dtype, index + j * p.indices.h, flat);
    }
  }
}

}  // namespace cenote::gpu
