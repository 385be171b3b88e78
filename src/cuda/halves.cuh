// Maxima of 3x3 windows two apart over planar rows of 16-bit elements: two of them to a register, first down, then along the
// row. Where every order gives the same bits, that is: a NaN, or zeros of both signs, are folded again in the order that the rule asks
// for.
#pragma once

#include "cuda/rows.cuh"

namespace cenote::gpu {

/// Two 16-bit numbers in a register.
template <class T>
struct Halves;
template <>
struct Halves<__half> {
  using Pair = __half2;
};
template <>
struct Halves<__nv_bfloat16> {
  using Pair = __nv_bfloat162;
};

template <class T>
__device__ inline typename Halves<T>::Pair as_halves(unsigned word) {
  return *reinterpret_cast<const typename Halves<T>::Pair*>(&word);
}
template <class T>
__device__ inline T half_of(unsigned word, int which) {
  const auto bits = static_cast<unsigned short>(which == 0 ? word : word >> 16);
  return *reinterpret_cast<const T*>(&bits);
}

/// The larger of each half; of a number and a NaN, some NaN.
template <class T>
__device__ inline unsigned larger_halves(unsigned a, unsigned b) {
  const auto result = __hmax2_nan(as_halves<T>(a), as_halves<T>(b));
  return *reinterpret_cast<const unsigned*>(&result);
}
/// All ones in the halves that are NaN or zero, whatever its sign.
template <class T>
__device__ inline unsigned doubtful_halves(unsigned word) {
  const auto pair = as_halves<T>(word);
  return __heq2_mask(pair, as_halves<T>(0)) | __hneu2_mask(pair, pair);
}
/// Whether a half is -0 or a NaN.
template <class T>
__device__ inline bool has_special_half(unsigned word) {
  const unsigned flipped = word ^ 0x80008000U;
  const bool negative_zero = ((flipped - 0x00010001U) & ~flipped & 0x80008000U) != 0;
  return negative_zero || __hneu2_mask(as_halves<T>(word), as_halves<T>(word)) != 0;
}

/// kOut outputs beside each other to a thread, which walks down a strip. Padding 1 on the left and above; rows of a multiple of kOut * 2
/// elements, aligned, and as many outputs as half of them.
template <class T, int kOut>
__global__ void __launch_bounds__(kBlock)
    fold_halves(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  constexpr int kWords = kOut + 1;  // two columns each; the first holds the one before the thread's own
  const Int thread = static_cast<Int>(blockIdx.x) * kBlock + static_cast<Int>(threadIdx.x);
  if (thread >= p.grid.threads) return;
  Place<Int> place = p.grid.place(thread);
  place.y *= p.strip;
  place.x *= kOut;
  const Int height = p.axis[1].input, end = least(place.y + p.strip, p.axis[1].output);
  const T* input =
      static_cast<const T*>(at.input) + p.input.plane(place.n, place.c) + place.z * p.input.d + 2 * place.x;
  T* output = static_cast<T*>(at.output) + p.output.plane(place.n, place.c) + p.output.at(place.z, place.y, place.x);
  auto load_row = [&](Int y, unsigned(&row)[kWords]) {
    const T* from = input + least(most(y, 0), height - 1) * p.input.h;
#pragma unroll
    for (int i = 0; i < kOut; i += 4) {
      const uint4 words = __ldg(reinterpret_cast<const uint4*>(from + 2 * i));
      row[1 + i] = words.x;
      row[2 + i] = words.y;
      row[3 + i] = words.z;
      row[4 + i] = words.w;
    }
    // Left of the input the first column stands in once more: it changes nothing.
    row[0] = place.x > 0 ? __ldg(reinterpret_cast<const unsigned*>(from) - 1) : row[1] << 16;
  };
  unsigned rows[3][kWords];
  load_row(2 * place.y - 1, rows[0]);
  for (Int y = place.y; y < end; ++y) {
    load_row(2 * y, rows[1]);
    load_row(2 * y + 1, rows[2]);
    unsigned down[kWords];
#pragma unroll
    for (int i = 0; i < kWords; ++i) down[i] = larger_halves<T>(larger_halves<T>(rows[0][i], rows[1][i]), rows[2][i]);
    unsigned result[kOut / 2], doubtful = 0;
#pragma unroll
    for (int i = 0; i < kOut; i += 2) {
      // Of two outputs: the columns before their own two, and those.
      const unsigned before = __byte_perm(down[i], down[i + 1], 0x7632),
                     left = __byte_perm(down[i + 1], down[i + 2], 0x5410),
                     right = __byte_perm(down[i + 1], down[i + 2], 0x7632);
      result[i / 2] = larger_halves<T>(larger_halves<T>(before, left), right);
      doubtful |= doubtful_halves<T>(result[i / 2]);
    }
    if (doubtful != 0) {
      bool special = false;
#pragma unroll
      for (int r = 0; r < 3; ++r) {
#pragma unroll
        for (int i = 0; i < kWords; ++i) special = special || has_special_half<T>(rows[r][i]);
      }
      if (special) {
#pragma unroll
        for (int i = 0; i < kOut; ++i) {
          T best = half_of<T>(rows[0][i], 1);
#pragma unroll
          for (int r = 0; r < 3; ++r) {
            const T taps[3] = {half_of<T>(rows[r][i], 1), half_of<T>(rows[r][i + 1], 0), half_of<T>(rows[r][i + 1], 1)};
#pragma unroll
            for (int t = r == 0 ? 1 : 0; t < 3; ++t) {
              if (beats<Fold::max>(taps[t], best)) best = taps[t];
            }
          }
          unsigned short bits;
          memcpy(&bits, &best, 2);
          result[i / 2] = i % 2 == 0 ? bits : result[i / 2] | static_cast<unsigned>(bits) << 16;
        }
      }
    }
    if constexpr (kOut == 8) {
      *reinterpret_cast<uint4*>(output) = {result[0], result[1], result[2], result[3]};
    } else {
      *reinterpret_cast<uint2*>(output) = {result[0], result[1]};
    }
    output += p.output.h;
#pragma unroll
    for (int i = 0; i < kWords; ++i) rows[0][i] = rows[2][i];
  }
}

}  // namespace cenote::gpu
