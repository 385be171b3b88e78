// Row kernels for f64, once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels_f64.cpp"
#include <hwy/foreach_target.h>

#include "cpu/kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {
const RowKernels* KernelsF64() {
  static constexpr RowKernels kernels = MakeKernels<double>();
  return &kernels;
}
}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(KernelsF64);
const RowKernels* kernels_f64(std::size_t target) { return HWY_DISPATCH_TABLE(KernelsF64)[target](); }
}  // namespace cenote::simd
#endif
