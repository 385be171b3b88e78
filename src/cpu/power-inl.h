// x^p for Lp pooling: the exponents that have an operation of their own by that operation, the others by the C library.
#if defined(CENOTE_CPU_POWER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_POWER_INL_H_
#undef CENOTE_CPU_POWER_INL_H_
#else
#define CENOTE_CPU_POWER_INL_H_
#endif

#include "cpu/convert-inl.h"
#include "cpu/power.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// Floating-point lanes only. `kind` is power_kind_of(exponent).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V PowerOf(D d, V v, int kind, double exponent) {
  using C = hn::TFromD<D>;
  if constexpr (!hwy::IsFloat<C>()) {
    return v;
  } else {
    const V one = hn::Set(d, C{1});
    switch (kind) {
      case kPowerZero: return one;
      case kPowerOne: return v;
      case kPowerTwo: return hn::Mul(v, v);
      case kPowerThree: return hn::Mul(hn::Mul(v, v), v);
      case kPowerFour: return hn::Mul(hn::Mul(v, v), hn::Mul(v, v));
      case kPowerHalf: return hn::Sqrt(v);
      case kPowerMinusHalf: return hn::Div(one, hn::Sqrt(v));
      case kPowerMinusOne: return hn::Div(one, v);
      case kPowerMinusTwo: return hn::Div(one, hn::Mul(v, v));
      default: break;
    }
    HWY_ALIGN C lanes[hn::MaxLanes(d)];
    hn::Store(v, d, lanes);
    for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
      lanes[i] = static_cast<C>(std::pow(static_cast<double>(lanes[i]), exponent));
    }
    return hn::Load(d, lanes);
  }
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
