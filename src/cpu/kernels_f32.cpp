// Row kernels for f32, once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels_f32.cpp"
#include <hwy/foreach_target.h>

#include "cpu/kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {
const RowKernels* KernelsF32() {
  static constexpr RowKernels kernels = MakeKernels<float>();
  return &kernels;
}
}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(KernelsF32);
const RowKernels* kernels_f32(std::size_t target) { return HWY_DISPATCH_TABLE(KernelsF32)[target](); }
}  // namespace cenote::simd
#endif
