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

}  // namespace cenote::gpu
