// Several narrow elements in one register, compared and selected together.
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

/// The larger of each pair of bytes.
template <class T>
__device__ inline unsigned larger_bytes(unsigned a, unsigned b) {
  if constexpr (Number<T>::dtype == DType::u8) {
    return __vmaxu4(a, b);
  } else {
    return __vmaxs4(a, b);
  }
}

/// The larger one; of a number and a NaN, some NaN.
template <class T>
__device__ inline T larger_or_nan(T a, T b) {
  if constexpr (sizeof(T) == 2) {
    return __hmax_nan(a, b);
  } else {
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
  }
}
template <class T, int kLanes>
__device__ inline Vector<T, kLanes> larger_lanes(const Vector<T, kLanes>& a, const Vector<T, kLanes>& b) {
  Vector<T, kLanes> result;
  if constexpr (sizeof(T) == 2 && kLanes % 2 == 0) {
    using Pair = std::conditional_t<Number<T>::dtype == DType::f16, __half2, __nv_bfloat162>;
#pragma unroll
    for (int i = 0; i < kLanes; i += 2) {
      Pair first, second;
      memcpy(&first, &a.lane[i], 4);
      memcpy(&second, &b.lane[i], 4);
      first = __hmax2_nan(first, second);
      memcpy(&result.lane[i], &first, 4);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kLanes; ++i) result.lane[i] = larger_or_nan(a.lane[i], b.lane[i]);
  }
  return result;
}

/// Whether a maximum taken in any order may have other bits than the rule asks for: a zero, of which there are two, or a NaN.
template <class T>
__device__ inline bool is_doubtful(T maximum) {
  return !(widen(maximum) < 0.0F || widen(maximum) > 0.0F);
}

/// Whether maxima are taken in any order first, by one instruction, and again as the rule asks for where that may give other bits: of
/// single elements of two bytes, which take several instructions to compare.
template <class T, int kLanes, Fold kFold, bool kIndices>
inline constexpr bool is_in_any_order =
    kFold == Fold::max && !kIndices && kLanes == 1 && sizeof(T) == 2 && Number<T>::floating;

}  // namespace cenote::gpu
