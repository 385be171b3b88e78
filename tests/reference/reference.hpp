// Every pool, from its definition: five loops and an `if`. Slow, independent of the library, and meant to be read.
//
// Elements are in logical (N, C, D, H, W) order, floating-point ones as double (exact for every dtype), integers as int64.
// What rounding may change is not rounded here: sums come back exact (in long double), with what an error bound needs.
#pragma once

#include "reference/pool.hpp"

#include <cstdint>
#include <vector>

namespace cenote::reference {

using Reals = std::vector<double>;
using Integers = std::vector<std::int64_t>;

/// The result of the max family. No element in the window: the identity, and -1 in both kinds of index.
template <class T>
struct Extremum {
  std::vector<T> value;
  Integers flat;     ///< position in the input's plane (flat64, flat32)
  Integers ordinal;  ///< which tap of the whole window (window)
};

/// max_pool, min_pool, adaptive_max_pool, fractional_max_pool, for T = double and std::int64_t.
template <class T>
Extremum<T> extremum(const Pool& pool, const std::vector<T>& input, const Reals& samples = {});

/// An exact sum, its terms' magnitudes and their number.
struct Sum {
  long double exact = 0;
  long double magnitude = 0;
  long double finite = 0;  ///< magnitudes of the finite terms, before any division: what may overflow halfway
  std::int64_t terms = 0;

  void add(long double term);
};

/// sum_pool, avg_pool, adaptive_avg_pool on floating-point elements: terms x_i / divisor.
std::vector<Sum> sum(const Pool& pool, const Reals& input);
/// The same on integers: sums wrap around, averages truncate toward zero, both are kept modulo 2^bits.
Integers sum(const Pool& pool, const Integers& input);

/// Backward of sum and averages: terms grad_output_j / divisor_j over the windows that hold the element.
std::vector<Sum> sum_backward(const Pool& pool, const Reals& grad_output);

/// Backward of the max family: every output's gradient goes to the element it selected; flat -1 goes nowhere.
std::vector<Sum> extremum_backward(const Pool& pool, const Reals& grad_output, const Integers& flat);

/// One window of lp_pool: v = scale * sum x_i^p, y = v^(1/p).
struct Power {
  std::int64_t terms = 0;
  long double scale = 1;  ///< taps of the whole kernel / taps before the end of the right padding
  long double v = 0;
  long double magnitude = 0;  ///< scale * sum |x_i^p|
  long double largest = 0;    ///< the largest |x_i^p|
  long double y = 0;
};
/// lp_pool with a finite norm_type.
std::vector<Power> power(const Pool& pool, const Reals& input);

/// dy/dv * scale * grad_output of one window: what each x_i's own derivative p * x_i^(p-1) is multiplied with. 0 where v is 0.
long double power_slope(const Pool& pool, const Power& window, double grad_output);

/// Backward of lp_pool with a finite norm_type: terms h_j, before the factor below.
std::vector<Sum> power_backward(const Pool& pool, const std::vector<Power>& windows, const Reals& grad_output);
/// p * x^(p-1)
long double power_derivative(const Pool& pool, double x);

/// lp_pool with norm_type +inf or -inf is the largest or smallest |x|.
Extremum<double> infinite_norm(const Pool& pool, const Reals& input);
std::vector<Sum> infinite_norm_backward(const Pool& pool, const Reals& input, const Reals& grad_output,
                                        const Integers& flat);

/// max_unpool: zeros, and each element at its index; where two meet, the last in row-major order stays.
template <class T>
std::vector<T> unpool(const Pool& pool, const std::vector<T>& input, const Integers& flat);
/// Backward of max_unpool: each element takes the gradient at its index.
template <class T>
std::vector<T> unpool_backward(const Pool& pool, const std::vector<T>& grad_output, const Integers& flat);

/// The smallest value of an integer type; wrap() keeps a value modulo 2^bits.
std::int64_t lowest(DType dtype);
std::int64_t highest(DType dtype);
std::int64_t wrap(DType dtype, std::int64_t value);

}  // namespace cenote::reference
