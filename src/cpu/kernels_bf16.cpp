// Row kernels for bf16, once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels_bf16.cpp"
#include <hwy/foreach_target.h>

#include "cpu/kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {
const RowKernels* KernelsBF16() {
  static constexpr RowKernels kernels = MakeKernels<bf16>();
  return &kernels;
}
}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(KernelsBF16);
const RowKernels* kernels_bf16(std::size_t target) { return HWY_DISPATCH_TABLE(KernelsBF16)[target](); }
}  // namespace cenote::simd
#endif
