#include "reference/bounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cenote::reference {
namespace {

constexpr long double kAnything = std::numeric_limits<long double>::quiet_NaN();

long double gamma_factor(long double m, long double u) { return m * u / (1 - m * u); }

/// Roundings of one power with this exponent: what the simple operation costs, or 16 for a general power function.
long double power_roundings(long double exponent) {
  if (exponent == 0 || exponent == 1) return 0;
  if (exponent == 2 || exponent == -1) return 1;
  if (exponent == 3 || exponent == 0.5L || exponent == -2) return 2;
  if (exponent == -0.5L) return 3;
  return 16;
}

/// An exponent that is no multiple of 1/4 is itself rounded: a relative error of |e * ln v| units.
long double exponent_rounding(long double e, long double v) {
  return e * 4 == std::floor(e * 4) ? 0 : std::fabs(e * std::log(std::fabs(v)));
}

}  // namespace

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x1p-53;
    case DType::f16: return 0x1p-11;
    case DType::bf16: return 0x1p-8;
    default: return 0x1p-24;
  }
}

long double smallest_subnormal(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x1p-1074L;
    case DType::f16: return 0x1p-24L;
    case DType::bf16: return 0x1p-133L;
    default: return 0x1p-149L;
  }
}

double largest(DType dtype) {
  switch (dtype) {
    case DType::f64: return std::numeric_limits<double>::max();
    case DType::f16: return 65504;
    case DType::bf16: return 0x1.fep127;
    default: return std::numeric_limits<float>::max();
  }
}

DType accumulator(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

double round_to(DType dtype, long double value) {
  if (dtype == DType::f64) return static_cast<double>(value);
  if (!std::isfinite(value) || value == 0) return static_cast<double>(value);
  const int digits = dtype == DType::f16 ? 11 : dtype == DType::bf16 ? 8 : 24;
  const int smallest = dtype == DType::f16    ? -24
                       : dtype == DType::bf16 ? -133
                                              : -149;  // exponent of the smallest subnormal
  const int unit = std::max(std::ilogb(value) + 1 - digits, smallest);
  const long double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);  // nearest, ties to even
  const double result = static_cast<double>(rounded);
  return std::fabs(result) > largest(dtype) ? std::copysign(std::numeric_limits<double>::infinity(), result) : result;
}

long double sum_tolerance(const Sum& sum, int divisions, const Rounding& rounding) {
  if (sum.terms == 0 || std::isnan(sum.exact)) return 0;         // NaN comes out in any order
  if (sum.finite > largest(rounding.sum) / 2) return kAnything;  // may overflow halfway
  if (!std::isfinite(sum.magnitude)) return 0;                   // so does an infinity
  const auto operations = static_cast<long double>(sum.terms + divisions);
  const long double u = unit_roundoff(rounding.sum), eta = smallest_subnormal(rounding.result) / 2;
  // Where each step is rounded to a narrow type, each may underflow; f32 and f64 additions never do.
  const bool underflows = rounding.sum == DType::f16 || rounding.sum == DType::bf16;
  const long double rounded =
      std::fabs(sum.exact) * unit_roundoff(rounding.result) + (underflows ? operations : 1) * eta;
  return gamma_factor(operations, u) * sum.magnitude + rounded;
}

PowerTolerance power_tolerance(const Pool& pool, const Reals& input, const Reals& grad_output, const Rounding& rounding,
                               bool exact_sums) {
  const long double p = pool.norm_type, e = 1 / p;
  const long double step = unit_roundoff(rounding.step), step_eta = smallest_subnormal(rounding.step) / 2;
  const long double result = unit_roundoff(rounding.result), result_eta = smallest_subnormal(rounding.result) / 2;
  const long double half_range = largest(rounding.step) / 2;
  const auto volume = static_cast<long double>(pool.kernel_volume());
  const std::vector<Power> windows = power(pool, input);

  PowerTolerance tolerance;
  std::vector<long double> slope_tolerance;
  for (std::size_t o = 0; o < windows.size(); ++o) {
    const Power& w = windows[o];
    const long double v = std::fabs(w.v);
    // x^p is off by q(p) roundings a term and underflows at most once a term; the sum by one rounding an addition; scaling by
    // K / n costs two more.
    long double dv = 2 * step * v;
    if (!exact_sums && w.magnitude != 0) {
      dv += w.magnitude *
            (power_roundings(p) * step + static_cast<long double>(w.terms + 1) * unit_roundoff(rounding.sum));
      dv += (2 * volume + 1) * step_eta;
    }
    const bool given = !grad_output.empty();
    const long double h = given ? power_slope(pool, w, grad_output[o]) : 0;
    const bool ordinary = v != 0 && std::isfinite(v);  // otherwise both sides get the same zero, infinity or NaN
    const long double relative = ordinary ? 2 * dv / v : 0;
    // A NaN step (a negative v's root) overflows nothing: both sides must answer NaN.
    const bool overflows = std::fmax(w.largest, v) > half_range || std::fabs(std::pow(w.v, e - 1)) > half_range;
    if (std::isfinite(v) && (dv > v / 2 || (ordinary && overflows))) {
      tolerance.output.push_back(kAnything);
      slope_tolerance.push_back(kAnything);
      continue;
    }
    if (!ordinary) {
      tolerance.output.push_back(0);
      slope_tolerance.push_back(0);
      continue;
    }
    const long double root_roundings = power_roundings(e) + exponent_rounding(e, v);
    const long double y = std::fabs(w.y);
    tolerance.output.push_back(
        std::isfinite(y) ? y * (std::fabs(e) * relative + root_roundings * step + result) + result_eta : 0);
    const long double slope_roundings = power_roundings(e - 1) + 6 + exponent_rounding(e - 1, v);
    if (std::fabs(h) * static_cast<long double>(w.terms) > half_range) {
      slope_tolerance.push_back(kAnything);
    } else {
      const long double error =
          std::fabs(h) * (std::fabs(e - 1) * relative + slope_roundings * step) + (volume + 2) * step_eta;
      slope_tolerance.push_back(std::isfinite(h) ? error : 0);
    }
  }
  if (grad_output.empty()) return tolerance;

  std::vector<Sum> sums = power_backward(pool, windows, grad_output);
  std::vector<long double> slope_errors(sums.size(), 0);
  for_each_box(pool, {}, [&](const Box& box) {
    for_each_tap(pool, box, [&](std::int64_t i, std::int64_t, std::int64_t) {
      slope_errors[static_cast<std::size_t>(i)] += slope_tolerance[static_cast<std::size_t>(box.output)];
    });
  });
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const long double derivative = std::fabs(power_derivative(pool, input[i]));
    const long double gradient = derivative * sums[i].exact;
    if (!std::isfinite(gradient)) {
      tolerance.grad_input.push_back(std::isnan(slope_errors[i]) ? kAnything : 0);
      continue;
    }
    if (derivative > half_range || sums[i].magnitude > half_range) {
      tolerance.grad_input.push_back(kAnything);
      continue;
    }
    const auto additions = static_cast<long double>(std::max<std::int64_t>(sums[i].terms - 1, 0));
    tolerance.grad_input.push_back(derivative * (slope_errors[i] + gamma_factor(additions, step) * sums[i].magnitude) +
                                   ((power_roundings(p - 1) + 2) * step + result) * std::fabs(gradient) +
                                   (std::fabs(p) * sums[i].magnitude + 1) * step_eta +
                                   (rounding.step == rounding.result ? 0 : result_eta));
  }
  return tolerance;
}

}  // namespace cenote::reference
