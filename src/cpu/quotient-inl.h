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
  explicit Divisor(float by) : by_(by), reciprocal_(1.0F / by) {
    if (by == 0.0F || by == 1.0F) return;
    const bool small = by > 0 && by < 4096.0F && by == std::floor(by);
    int exponent = 0;
    const bool power = small && std::frexp(by, &exponent) == 0.5F;  // whose reciprocal is exact
    way_ = power ? Way::multiply : small ? Way::correct : Way::divide;
  }

  template <int kVectors, class D, class V = hn::Vec<D>>
  HWY_INLINE void Apply(D d, V (&values)[kVectors]) const {
    if (way_ == Way::none) return;
    const V by = hn::Set(d, by_), reciprocal = hn::Set(d, reciprocal_), least = hn::Set(d, 0x1p-100F);
    if (way_ == Way::multiply) {
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) values[v] = hn::Mul(values[v], reciprocal);
      return;
    }
    if (way_ == Way::correct) {
      V quotients[kVectors];
      auto doubtful = hn::MaskFromVec(hn::Zero(d));
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const V near = hn::Mul(values[v], reciprocal);
        const V over = hn::NegMulAdd(near, by, values[v]);
        quotients[v] = hn::MulAdd(over, reciprocal, near);
        const auto ordinary = hn::Or(hn::Ge(hn::Abs(quotients[v]), least), hn::Eq(values[v], hn::Zero(d)));
        doubtful = hn::Or(doubtful, hn::Not(ordinary));
      }
      if (HWY_LIKELY(hn::AllFalse(d, doubtful))) {
        CENOTE_UNROLL
        for (int v = 0; v < kVectors; ++v) values[v] = quotients[v];
        return;
      }
    }
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      values[v] = hn::Div(values[v], by);
      if (by_ < 0) values[v] = hn::Add(values[v], hn::Zero(d));  // no -0 of a sum of 0, as in PyTorch
    }
  }

 private:
  enum class Way : std::uint8_t { none, multiply, correct, divide } way_ = Way::none;
  float by_ = 1, reciprocal_ = 1;
};

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
