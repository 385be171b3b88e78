// x^p for Lp pooling: the exponents that have an operation of their own by that operation, the others by the C library.
#if defined(CENOTE_CPU_VECTORS_POWER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_VECTORS_POWER_INL_H_
#undef CENOTE_CPU_VECTORS_POWER_INL_H_
#else
#define CENOTE_CPU_VECTORS_POWER_INL_H_
#endif

#include "cpu/slice_divisors.hpp"
#include "cpu/vectors/convert-inl.h"
#include "cpu/vectors/power.hpp"

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

/// x^p where p is a small whole number, the same bits as PowerOf's.
template <class V>
HWY_INLINE V Product(V v, int factors) {
  if (factors == 1) return v;
  const V square = hn::Mul(v, v);
  return factors == 2 ? square : hn::Mul(square, v);
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
/// Sums of powers become norms, in place: those of outputs [first, first + count) of a slice.
HWY_NOINLINE inline void TakeRoots(const SlicePowers& powers, std::int64_t first, std::int64_t count,
                                   float* HWY_RESTRICT sums) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const bool differ = powers.taps.all == 0;
  const float* taps = differ ? powers.taps.each.data() + first : nullptr;
  const auto whole = hn::Set(d, powers.whole);
  auto by = hn::Set(d, powers.taps.all);
  const bool scales = differ || powers.taps.all != powers.whole;
  for (std::int64_t i = 0; i < count; i += lanes) {
    auto v = hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(count - i)), d, sums + i);
    if (scales) {
      if (differ) by = hn::LoadU(d, taps + i);
      v = hn::IfThenElse(hn::Eq(by, whole), v, hn::Mul(hn::Div(v, by), whole));
    }
    v = powers.root_kind == kPowerHalf ? hn::Sqrt(v) : PowerOf(d, v, powers.root_kind, powers.root);
    StoreFirst(d, v, count - i, sums + i);
  }
}
#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
