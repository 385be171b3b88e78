// Sums of f32 lanes divided by what an average counts.
#if defined(CENOTE_CPU_VECTORS_QUOTIENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_VECTORS_QUOTIENT_INL_H_
#undef CENOTE_CPU_VECTORS_QUOTIENT_INL_H_
#else
#define CENOTE_CPU_VECTORS_QUOTIENT_INL_H_
#endif

#include "cpu/vectors/convert-inl.h"
#include "cpu/vectors/unroll.hpp"

#include <cmath>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// What sums are divided by. Of a -0, which sums are not, the sign is kept or not. A division takes no longer than other instructions here. (In place of it a product with the reciprocal, put right by what it leaves over: averages 3x3/1 over 8 x 35 x 35 x 288
/// 225 us and 180, 3x3/2 over 42 x 42 x 168 89 and 79.)
class Divisor {
 public:
  Divisor() = default;
  HWY_NOINLINE explicit Divisor(float by) : by_(by) {
    if (by == 0.0F || by == 1.0F) return;
    int exponent = 0;
    way_ = by < 0 ? Way::divide_negative : Way::divide;
    if (by < 0 || std::frexp(by, &exponent) != 0.5F) return;
    by_ = 1.0F / by;  // powers of two are as exact turned around
    way_ = Way::multiply;
  }

  template <int kVectors, class D, class V = hn::Vec<D>>
  HWY_INLINE void Apply(D d, V (&values)[kVectors]) const {
    if (way_ == Way::none) return;
    const V by = hn::Set(d, by_);
    if (way_ == Way::multiply) {
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) values[v] = hn::Mul(values[v], by);
      return;
    }
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) values[v] = hn::Div(values[v], by);
    if (HWY_LIKELY(way_ == Way::divide)) return;
    // No -0 of a sum of 0, as in PyTorch.
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) values[v] = hn::Add(values[v], hn::Zero(d));
  }

 private:
  enum class Way : std::uint8_t { none, multiply, divide, divide_negative } way_ = Way::none;
  float by_ = 1;
};

/// What becomes of sums of squares: their roots, those of windows that are cut off by as much more.
class NormOfSquares {
 public:
  NormOfSquares() = default;
  NormOfSquares(float taps, float whole) : taps_(taps), whole_(whole) {}

  template <int kVectors, class D, class V = hn::Vec<D>>
  HWY_INLINE void Apply(D d, V (&values)[kVectors]) const {
    if (HWY_UNLIKELY(taps_ != whole_)) {
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) values[v] = hn::Mul(hn::Div(values[v], hn::Set(d, taps_)), hn::Set(d, whole_));
    }
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) values[v] = hn::Sqrt(values[v]);
  }

 private:
  float taps_ = 1, whole_ = 1;
};

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
