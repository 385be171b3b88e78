#include "cpu/vectors/widen.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/vectors/widen.cpp"
#include <hwy/foreach_target.h>

#include "cpu/vectors/convert-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

template <class T>
void Widen(const void* narrow, float* wide, std::int64_t count) {
  LoadElements(static_cast<const T*>(narrow), wide, count);
}

template <class T>
void Narrow(const float* wide, void* narrow, std::int64_t count) {
  StoreAs(wide, static_cast<T*>(narrow), count);
}

Widening WideningOf(DType dtype) {
  if constexpr (kHasGathers) {
    switch (dtype) {
      case DType::f16: return {Widen<f16>, Narrow<f16>};
      case DType::bf16: return {Widen<bf16>, Narrow<bf16>};
      default: break;
    }
  }
  return {};
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(WideningOf);
Widening widening(std::size_t target, DType dtype) { return HWY_DISPATCH_TABLE(WideningOf)[target](dtype); }
}  // namespace cenote::simd
#endif
