// Maxima of 3x3 windows two apart over planar rows of 16-bit elements, two of them to a register.
#pragma once

#include "cuda/packed_strip.cuh"

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
/// `word` with `value` in one of its halves; the first half is set first.
template <class T>
__device__ inline unsigned with_half(unsigned word, int which, T value) {
  unsigned short bits;
  memcpy(&bits, &value, 2);
  return which == 0 ? bits : word | static_cast<unsigned>(bits) << 16;
}

/// The larger of each half; of a number and a NaN, some NaN.
template <class T>
__device__ inline unsigned larger_halves(unsigned a, unsigned b) {
  const auto result = __hmax2_nan(as_halves<T>(a), as_halves<T>(b));
  return *reinterpret_cast<const unsigned*>(&result);
}
/// All ones in the halves that are equal, zeros of both signs too.
template <class T>
__device__ inline unsigned equal_halves(unsigned a, unsigned b) {
  return __heq2_mask(as_halves<T>(a), as_halves<T>(b));
}
/// All ones in the halves that are NaN.
template <class T>
__device__ inline unsigned nan_halves(unsigned word) {
  return __hneu2_mask(as_halves<T>(word), as_halves<T>(word));
}
/// Whether a half is -0 or a NaN.
template <class T>
__device__ inline bool has_special_half(unsigned word) {
  const unsigned flipped = word ^ 0x80008000U;
  const bool negative_zero = ((flipped - 0x00010001U) & ~flipped & 0x80008000U) != 0;
  return negative_zero || nan_halves<T>(word) != 0;
}
__device__ inline unsigned choose_halves(unsigned mask, unsigned yes, unsigned no) {
  return (yes & mask) | (no & ~mask);
}

/// kOut * 2 columns of a row; the first word holds the one before them in its second half.
template <int kOut>
struct HalvesRow {
  static constexpr int kWords = kOut + 1;
  unsigned word[kWords];

  template <class T>
  __device__ void load(const PackedStrip<T, kOut>& strip, const T* from) {
#pragma unroll
    for (int i = 0; i < kOut; i += 4) {
      const uint4 words = __ldg(reinterpret_cast<const uint4*>(from + 2 * i));
      word[1 + i] = words.x;
      word[2 + i] = words.y;
      word[3 + i] = words.z;
      word[4 + i] = words.w;
    }
    // Left of the input the first column stands in once more: it changes nothing.
    word[0] = strip.place.x > 0 ? __ldg(reinterpret_cast<const unsigned*>(from) - 1) : word[1] << 16;
  }
  /// Column t of the windows of outputs i and i + 1.
  __device__ unsigned taps(int i, int t) const {
    if (t == 0) return __byte_perm(word[i], word[i + 1], 0x7632);
    return __byte_perm(word[i + 1], word[i + 2], t == 1 ? 0x5410 : 0x7632);
  }
  template <class T>
  __device__ T tap(int i, int t) const {
    return t == 0 ? half_of<T>(word[i], 1) : half_of<T>(word[i + 1], t - 1);
  }
};

/// Stores kOut results of a row.
template <class T, int kOut>
__device__ inline void store_halves(T* to, const unsigned (&result)[kOut / 2]) {
  if constexpr (kOut == 8) {
    *reinterpret_cast<uint4*>(to) = {result[0], result[1], result[2], result[3]};
  } else {
    *reinterpret_cast<uint2*>(to) = {result[0], result[1]};
  }
}

/// kOut outputs beside each other to a thread, which walks down a strip; first down, then along the row. Where every order gives the
/// same bits, that is: a NaN, or zeros of both signs, are folded again in the order that the rule asks for. Padding 1 on the left and
/// above; rows of a multiple of kOut * 2 elements, aligned, and as many outputs as half of them.
template <class T, int kOut>
__global__ void __launch_bounds__(kBlock)
    fold_halves(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Row = HalvesRow<kOut>;
  if (thread_of_grid() >= p.grid.threads) return;
  PackedStrip<T, kOut> strip(p, at);
  Row rows[3];
  rows[0].load(strip, strip.row_near(p, 2 * strip.place.y - 1));
  for (Int y = strip.place.y; y < strip.end; ++y) {
    rows[1].load(strip, strip.row_near(p, 2 * y));
    rows[2].load(strip, strip.row_near(p, 2 * y + 1));
    Row down;
#pragma unroll
    for (int i = 0; i < Row::kWords; ++i) {
      down.word[i] = larger_halves<T>(larger_halves<T>(rows[0].word[i], rows[1].word[i]), rows[2].word[i]);
    }
    unsigned result[kOut / 2], doubtful = 0;
#pragma unroll
    for (int i = 0; i < kOut; i += 2) {
      result[i / 2] = larger_halves<T>(larger_halves<T>(down.taps(i, 0), down.taps(i, 1)), down.taps(i, 2));
      doubtful |= equal_halves<T>(result[i / 2], 0) | nan_halves<T>(result[i / 2]);
    }
    if (doubtful != 0) {
      bool special = false;
#pragma unroll
      for (int r = 0; r < 3; ++r) {
#pragma unroll
        for (int i = 0; i < Row::kWords; ++i) special = special || has_special_half<T>(rows[r].word[i]);
      }
      if (special) {
#pragma unroll
        for (int i = 0; i < kOut; ++i) {
          T best = rows[0].template tap<T>(i, 0);
#pragma unroll
          for (int t = 1; t < 9; ++t) {
            const T value = rows[t / 3].template tap<T>(i, t % 3);
            if (beats<Fold::max>(value, best)) best = value;
          }
          result[i / 2] = with_half(result[i / 2], i % 2, best);
        }
      }
    }
    store_halves<T, kOut>(strip.output, result);
    strip.output += p.output.h;
    rows[0] = rows[2];
  }
}

/// The same with indices: the maximum first, then the first row that holds it, then the first of its columns, which also says which of
/// two zeros it is. Where the maximum is a NaN, by the rule, tap by tap. Rows of less than 2^15 elements.
template <class T, int kOut>
__global__ void __launch_bounds__(kBlock)
    find_halves(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Row = HalvesRow<kOut>;
  if (thread_of_grid() >= p.grid.threads) return;
  PackedStrip<T, kOut> strip(p, at);
  const Place<Int>& place = strip.place;
  const Int height = p.axis[1].input, width = p.axis[2].input;
  const bool taps_wanted = p.index_kind == IndexKind::window;
  // From one row of a window to the next, in codes, for both halves of a register.
  const auto unit = static_cast<unsigned>(taps_wanted ? 3 : width), row_step = unit * 0x00010001U;
  // What stands in for the columns left of the input, and for the row above it, is the next.
  const unsigned first_column = place.x == 0 ? 1 : 0;
  std::int64_t index = p.indices.plane(place.n, place.c) + p.indices.at(place.z, place.y, place.x);
  Row rows[3];
  rows[0].load(strip, strip.row_near(p, 2 * place.y - 1));
  for (Int y = place.y; y < strip.end; ++y) {
    rows[1].load(strip, strip.row_near(p, 2 * y));
    rows[2].load(strip, strip.row_near(p, 2 * y + 1));
    // The code of the first output's first tap, and how far the next output's is away.
    const Int corner = taps_wanted ? 0 : (place.z * height + 2 * y - 1) * width + 2 * place.x - 1;
    const Int step = taps_wanted ? 0 : 2;
    unsigned result[kOut / 2], nan = 0;
    Int codes[kOut];
#pragma unroll
    for (int i = 0; i < kOut; i += 2) {
      unsigned taps[3][3], best[3];
#pragma unroll
      for (int r = 0; r < 3; ++r) {
#pragma unroll
        for (int t = 0; t < 3; ++t) taps[r][t] = rows[r].taps(i, t);
        best[r] = larger_halves<T>(larger_halves<T>(taps[r][0], taps[r][1]), taps[r][2]);
      }
      const unsigned largest = larger_halves<T>(larger_halves<T>(best[0], best[1]), best[2]);
      nan |= nan_halves<T>(largest);
      const unsigned upper = equal_halves<T>(best[0], largest), middle = equal_halves<T>(best[1], largest);
      unsigned row[3];
#pragma unroll
      for (int t = 0; t < 3; ++t)
        row[t] = choose_halves(upper, taps[0][t], choose_halves(middle, taps[1][t], taps[2][t]));
      const unsigned left = equal_halves<T>(row[0], largest), centre = equal_halves<T>(row[1], largest);
      result[i / 2] = choose_halves(left, row[0], choose_halves(centre, row[1], row[2]));
      const unsigned away =
          choose_halves(upper, y == 0 ? row_step : 0, choose_halves(middle, row_step, 2 * row_step)) +
          choose_halves(left, i == 0 ? first_column : 0, choose_halves(centre, 0x00010001U, 0x00020002U));
      codes[i] = corner + i * step + static_cast<Int>(away & 0xffffU);
      codes[i + 1] = corner + (i + 1) * step + static_cast<Int>(away >> 16);
    }
    if (nan != 0) {
#pragma unroll
      for (int i = 0; i < kOut; ++i) {
        T best = rows[0].template tap<T>(i, 0);
        int winner = 0;
#pragma unroll
        for (int t = 1; t < 9; ++t) {
          const T value = rows[t / 3].template tap<T>(i, t % 3);
          if (beats<Fold::max>(value, best)) {
            best = value;
            winner = t;
          }
        }
        result[i / 2] = with_half(result[i / 2], i % 2, best);
        const Int row = least(most(2 * y - 1 + winner / 3, 0), height - 1) - (2 * y - 1);
        const Int column = most(winner % 3, i == 0 ? static_cast<Int>(first_column) : 0);
        codes[i] = corner + i * step + row * static_cast<Int>(unit) + column;
      }
    }
    store_halves<T, kOut>(strip.output, result);
    store_codes(at.indices, p.index_dtype, index, codes);
    strip.output += p.output.h;
    index += p.indices.h;
    rows[0] = rows[2];
  }
}

}  // namespace cenote::gpu
