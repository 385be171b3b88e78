#include "problems/expected.hpp"

#include <cmath>
#include <cstdio>

namespace cenote::testing {
namespace {

using reference::Rounding;
using reference::Sum;

std::string print(std::int64_t value) { return std::to_string(value); }
std::string print(long double value) {
  char text[48];
  std::snprintf(text, sizeof text, "%.17Lg", value);
  return text;
}

std::string position(const Shape& shape, std::size_t element) {
  constexpr const char* kNames[] = {"w", "cw", "ncw", "nchw",
                                    "ncdhw"};  // by rank; an unbatched shape is named from its end
  std::string text = "]";
  auto rest = static_cast<std::int64_t>(element);
  for (int i = shape.rank() - 1; i >= 0; --i) {
    const char letter = shape.rank() <= 5 ? kNames[shape.rank() - 1][i] : 'i';
    text = (i == 0 ? "" : " ") + std::string(1, letter) + std::to_string(rest % shape[i]) + text;
    rest /= shape[i];
  }
  return "[" + text;
}

bool agrees(DType, std::int64_t expected, std::int64_t got, long double, bool) { return expected == got; }

bool agrees(DType dtype, long double expected, double got, long double tolerance, bool signed_zeros) {
  if (std::isnan(tolerance)) return true;
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got);
  if (expected == 0 && got == 0) return !signed_zeros || std::signbit(expected) == std::signbit(got);
  if (expected == got) return true;
  if (std::isinf(expected)) return false;
  if (std::isinf(got)) {  // right where rounding may carry the result past the largest number
    const long double reach = std::fabs(expected) + tolerance;
    return tolerance > 0 && std::signbit(expected) == std::signbit(got) &&
           std::isinf(reference::round_to(dtype, reach));
  }
  return std::fabs(expected - got) <= tolerance;
}

template <class T>
void expect_gradient(const Problem&, const Pool&, const Given<T>&, Expectation<T>&) {}

template <>
void expect_gradient(const Problem& problem, const Pool& pool, const Given<double>& given,
                     Expectation<double>& expectation) {
  const Rounding rounding = Rounding::once(problem.dtype);
  if (pool.input_plane() == 0 || pool.output_plane() == 0) return;  // an output of size 0 has no backward
  if (pool.op == Op::max_unpool) {
    expectation.grad_input = Values<double>::bits(unpool_backward(pool, given.grad_output, given.flat));
  } else if (pool.is_extremum()) {
    expectation.grad_input = values_of(extremum_backward(pool, given.grad_output, expectation.flat), 0, rounding);
  } else {
    expectation.grad_input = values_of(sum_backward(pool, given.grad_output), divisions_of(pool), rounding);
  }
}

/// Small integers to a small integer power: no type rounds their sums.
bool sums_are_exact(const Problem& problem) {
  const double p = problem.spec.norm_type;
  return problem.values == ValueKind::ties && (p == 1 || p == 2 || p == 3);
}

Expectation<double> expect_power(const Problem& problem, const Pool& pool, const Given<double>& given) {
  const Rounding rounding = Rounding::once(problem.dtype);
  Expectation<double> expectation;
  if (std::isinf(pool.norm_type)) {
    const auto norm = infinite_norm(pool, given.input);
    expectation.output = Values<double>::bits(norm.value);
    expectation.grad_input =
        values_of(infinite_norm_backward(pool, given.input, given.grad_output, norm.flat), 0, rounding);
    return expectation;
  }
  const auto windows = power(pool, given.input);
  auto tolerance = power_tolerance(pool, given.input, given.grad_output, rounding, sums_are_exact(problem));
  for (const reference::Power& window : windows) expectation.output.value.push_back(window.y);
  expectation.output.tolerance = std::move(tolerance.output);
  Values<double> gradient;
  const std::vector<Sum> slopes = power_backward(pool, windows, given.grad_output);
  for (std::size_t i = 0; i < slopes.size(); ++i) {
    gradient.value.push_back(power_derivative(pool, given.input[i]) * slopes[i].exact);
  }
  gradient.tolerance = std::move(tolerance.grad_input);
  expectation.grad_input = std::move(gradient);
  return expectation;
}

Values<double> expect_sum(const Pool& pool, const Reals& input) {
  return values_of(sum(pool, input), divisions_of(pool), Rounding::once(pool.dtype));
}
Values<std::int64_t> expect_sum(const Pool& pool, const Integers& input) {
  return Values<std::int64_t>::bits(sum(pool, input));
}

}  // namespace

int divisions_of(const Pool& pool) {
  if (pool.op == Op::avg_pool) return 1;
  return pool.op == Op::adaptive_avg_pool ? pool.dims : 0;
}

Values<double> values_of(const std::vector<Sum>& sums, int divisions, const Rounding& rounding) {
  Values<double> values;
  for (const Sum& sum : sums) {
    const bool copied = sum.terms <= 1 && divisions == 0;
    values.value.push_back(sum.exact);
    values.tolerance.push_back(copied ? 0 : sum_tolerance(sum, divisions, rounding));
  }
  return values;
}

template <class T>
Expectation<T> expect_reference(const Problem& problem, const Pool& pool, const Given<T>& given) {
  if constexpr (std::is_same_v<T, double>) {
    if (pool.op == Op::lp_pool) return expect_power(problem, pool, given);
  }
  Expectation<T> expectation;
  if (pool.op == Op::max_unpool) {
    expectation.output = Values<T>::bits(unpool(pool, given.input, given.flat));
    expectation.flat = given.flat;
    expectation.ordinal = given.ordinal;
  } else if (pool.is_extremum()) {
    auto pooled = extremum(pool, given.input, given.samples);
    expectation.output = Values<T>::bits(pooled.value);
    expectation.flat = std::move(pooled.flat);
    expectation.ordinal = std::move(pooled.ordinal);
  } else {
    expectation.output = expect_sum(pool, given.input);
  }
  expect_gradient(problem, pool, given, expectation);
  return expectation;
}
template Expectation<double> expect_reference(const Problem&, const Pool&, const Given<double>&);
template Expectation<std::int64_t> expect_reference(const Problem&, const Pool&, const Given<std::int64_t>&);

template <class T>
std::string first_difference(const char* what, DType dtype, const Shape& shape, const Values<T>& expected,
                             const std::vector<T>& got) {
  if (expected.value.size() != got.size()) {
    return std::string(what) + ": expected " + std::to_string(expected.value.size()) + " elements, got " +
           std::to_string(got.size());
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    const long double tolerance = expected.tolerance.empty() ? 0 : expected.tolerance[i];
    if (agrees(dtype, expected.value[i], got[i], tolerance, expected.signed_zeros)) continue;
    return what + position(shape, i) + ": expected " + print(expected.value[i]) + ", got " +
           print(typename Values<T>::Exact(got[i])) + (tolerance > 0 ? ", at most " + print(tolerance) + " apart" : "");
  }
  return {};
}
template std::string first_difference(const char*, DType, const Shape&, const Values<double>&,
                                      const std::vector<double>&);
template std::string first_difference(const char*, DType, const Shape&, const Values<std::int64_t>&,
                                      const std::vector<std::int64_t>&);

std::string first_difference(const char* what, const Shape& shape, const Integers& expected, const Integers& got) {
  return first_difference(what, DType::i64, shape, Values<std::int64_t>::bits(expected), got);
}

}  // namespace cenote::testing
