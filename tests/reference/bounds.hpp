// How far a rounded result may lie from the exact one: derived, per element, never tuned.
//
// Sums. Adding n terms in any order, each first divided (c divisions a term, each off by at most a factor 1 + u), gives
// |result - exact| <= gamma(n + c, u) * A with A = sum |t_i| and gamma(m, u) = m*u / (1 - m*u) (every term passes through at most
// n - 1 additions and c divisions). Storing it in the result's type T adds uT * |exact|, and where T underflows half its smallest
// subnormal, etaT.
//
// Powers. See power_tolerance: the same, carried through v^(1/p) to first order, with a factor 2 for what the first order leaves
// out while dv <= |v|/2.
#pragma once

#include "reference/reference.hpp"

#include <cstdint>
#include <vector>

namespace cenote::reference {

double unit_roundoff(DType dtype);            ///< half the distance from 1 to the next number
long double smallest_subnormal(DType dtype);  ///< long double, which also holds half of f64's
double largest(DType dtype);                  ///< largest finite number
DType accumulator(DType dtype);               ///< f32 for f16 and bf16, else the type itself

/// The value of T nearest to an exact one.
double round_to(DType dtype, long double value);

/// Where one implementation rounds.
struct Rounding {
  DType step;    ///< the type each intermediate quantity is kept in
  DType sum;     ///< the type sums accumulate in
  DType result;  ///< the type of the result

  /// cenote keeps everything in the accumulator and rounds once.
  static Rounding once(DType dtype) { return {accumulator(dtype), accumulator(dtype), dtype}; }
  /// Every step in the tensor's own type, as PyTorch's gradients.
  static Rounding every_step(DType dtype) { return {dtype, dtype, dtype}; }
};

/// What a result must be: within `tolerance` of `value`. Tolerance 0: equal (-0 equals +0); NaN: anything goes.
struct Interval {
  long double value = 0;
  long double tolerance = 0;
};

/// The error of one rounded sum whose terms are each the result of `divisions` divisions.
long double sum_tolerance(const Sum& sum, int divisions, const Rounding& rounding);

/// The errors of lp_pool's results, one tolerance an element; NaN where rounding alone decides the result. `exact_sums`: the
/// terms are small integers, whose sums no type rounds.
struct PowerTolerance {
  std::vector<long double> output;
  std::vector<long double> grad_input;
};
PowerTolerance power_tolerance(const Pool& pool, const Reals& input, const Reals& grad_output, const Rounding& rounding,
                               bool exact_sums);

}  // namespace cenote::reference
