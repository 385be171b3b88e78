// Row kernels for i16, once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels_i16.cpp"
#include <hwy/foreach_target.h>

#include "cpu/kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {
const RowKernels* KernelsI16() {
  static constexpr RowKernels kernels = MakeKernels<std::int16_t>();
  return &kernels;
}
}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(KernelsI16);
const RowKernels* kernels_i16(std::size_t target) { return best_up_to(HWY_DISPATCH_TABLE(KernelsI16), target)(); }
}  // namespace cenote::simd
#endif
