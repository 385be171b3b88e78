// Sums of f32 lanes divided by what an average counts.
#if defined(CENOTE_CPU_QUOTIENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_QUOTIENT_INL_H_
#undef CENOTE_CPU_QUOTIENT_INL_H_
#else
#define CENOTE_CPU_QUOTIENT_INL_H_
#endif

#include "cpu/convert-inl.h"
#include "cpu/unroll.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// What sums are divided by. Small integers take no division: a product with the reciprocal, put right by what it leaves over, is rounded as the quotient is (for all
/// elements and divisors below 4096, which was tried), as long as nothing leaves the range of normal numbers. A -0 may become 0.
class Divisor {
 public:
  Divisor() = default;
  HWY_NOINLINE explicit Divisor(float by) : by_(by), reciprocal_(1.0F / by) {
    if (by == 0.0F || by == 1.0F) return;
    const bool small = by > 0 && by < 4096.0F && by == std::floor(by);
    int exponent = 0;
    const bool power_of_two = small && std::frexp(by, &exponent) == 0.5F;  // as exact turned around
    way_ = power_of_two ? Way::multiply : small ? Way::correct : Way::divide;
  }

  template <int kVectors, class D, class V = hn::Vec<D>>
  HWY_INLINE void Apply(D d, V (&values)[kVectors]) const {
    if (way_ != Way::correct) return Divide(d, values);
    // Magnitudes as integers, twice as large: a zero less one is above them all, infinities and NaN are above the largest.
    const hn::Rebind<std::uint32_t, D> bits;
    auto least = hn::Set(bits, UINT32_MAX), most = hn::Zero(bits);
    const V by = hn::Set(d, by_), reciprocal = hn::Set(d, reciprocal_);
    V quotients[kVectors];
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const V near = hn::Mul(values[v], reciprocal);
      const V over = hn::NegMulAdd(near, by, values[v]);
      quotients[v] = hn::MulAdd(over, reciprocal, near);
      const auto magnitude = hn::Add(hn::BitCast(bits, values[v]), hn::BitCast(bits, values[v]));
      least = hn::Min(least, hn::Sub(magnitude, hn::Set(bits, 1U)));
      most = hn::Max(most, magnitude);
    }
    const auto doubtful =
        hn::Or(hn::Lt(least, hn::Set(bits, kLeastMagnitude)), hn::Gt(most, hn::Set(bits, 0xFEFFFFFFU)));
    if (HWY_UNLIKELY(!hn::AllFalse(bits, doubtful))) return Divide(d, values);
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) values[v] = quotients[v];
  }

  /// The same without those products: less code, where memory is waited for anyway.
  template <int kVectors, class D, class V = hn::Vec<D>>
  HWY_INLINE void Divide(D d, V (&values)[kVectors]) const {
    if (way_ == Way::none) return;
    if (way_ == Way::multiply) {
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) values[v] = hn::Mul(values[v], hn::Set(d, reciprocal_));
      return;
    }
    // No -0 of a sum of 0, as in PyTorch.
    const V zero = hn::Set(d, by_ < 0 ? 0.0F : -0.0F);
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) values[v] = hn::Add(hn::Div(values[v], hn::Set(d, by_)), zero);
  }

 private:
  static constexpr std::uint32_t kLeastMagnitude = 2 * (127 - 80)
                                                   << 23;  // of 2^-80, whose quotients are far from subnormal

  enum class Way : std::uint8_t { none, multiply, correct, divide } way_ = Way::none;
  float by_ = 1, reciprocal_ = 1;
};

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
