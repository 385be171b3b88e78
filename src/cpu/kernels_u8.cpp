// Row kernels for u8, once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels_u8.cpp"
#include <hwy/foreach_target.h>

#include "cpu/kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {
const RowKernels* KernelsU8() {
  static constexpr RowKernels kernels = MakeKernels<std::uint8_t>();
  return &kernels;
}
}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(KernelsU8);
const RowKernels* kernels_u8(std::size_t target) { return HWY_DISPATCH_TABLE(KernelsU8)[target](); }
}  // namespace cenote::simd
#endif
