// Gradients by other means than the reference: conservation, and differences of the forward pass.
#include "problems/execute.hpp"
#include "problems/expected.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace cenote::testing {
namespace {

/// The indices a backward needs, by the forward that makes them.
Integers saved_indices(const Problem& problem, const Given<double>& given) {
  return has_indices(problem.spec.op) ? run_forward(problem, given, IndexKind::flat64, {}).indices : Integers{};
}

/// Where each window hands on all it gets, the gradient sums to the gradient given.
TEST(Gradients, SumToTheGradientGiven) {
  for (const char* line : {
           "max2d f64 nchw n2c3 h9w11 k3 s2 p1",
           "max2d f64 nhwc n2c3 h9w11 k3 s1 p1 ties",
           "min3d f64 ncdhw n1c3 d4h5w6 k2 ceil",
           "amax2d f64 nchw n2c3 h9w11 out4x15",
           "fmax2d f64 nchw n2c3 h9w11 k3 out4x5",
           "avg2d f64 nchw n2c3 h9w11 k3 s2 p1 nopad",
           "avg2d f64 nhwc n2c5 h9w11 k4 s3 ceil",
           "avg1d f64 ncw n2c5 w31 k5 s2 d3 nopad",
           "aavg3d f64 ndhwc n1c3 d4h5w6 out3x2x7",
       }) {
    SCOPED_TRACE(line);
    const Problem problem = parse_problem(line);
    const auto given = draw_given<double>(problem, reference::resolve(problem.spec, problem.dtype, problem.shape));
    const auto backward = run_backward(problem, given, IndexKind::flat64, saved_indices(problem, given), {});
    ASSERT_EQ(backward.trouble, "");
    long double in = 0, out = 0, magnitude = 0;
    for (double g : given.grad_output) in += g, magnitude += std::fabs(g);
    for (double g : backward.result) out += g;
    // Each share passes through at most three divisions and one addition for every window; no element has more windows than
    // there are outputs.
    const auto roundings = static_cast<long double>(given.grad_output.size() + 3);
    EXPECT_LE(std::fabs(in - out), roundings * 0x1p-53L * magnitude);
  }
}

/// sum_o grad_output[o] * output[o], and the sum of its terms' magnitudes.
struct Weighted {
  long double value = 0, magnitude = 0;
};
Weighted weighted_output(const Problem& problem, const Given<double>& given) {
  const auto forward = run_forward(problem, given, std::nullopt, {});
  EXPECT_EQ(forward.trouble, "");
  Weighted sum;
  for (std::size_t o = 0; o < forward.result.size(); ++o) {
    const long double term = static_cast<long double>(given.grad_output[o]) * forward.result[o];
    sum.value += term;
    sum.magnitude += std::fabs(term);
  }
  return sum;
}

/// Distinct multiples of 2^-13 in [1, 2), further apart than the step: no maximum changes hands, and powers stay smooth.
Reals spread_values(std::size_t count, Random& random) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = count - 1; i > 0; --i) {
    std::swap(order[i], order[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(i)))]);
  }
  const std::size_t apart = 8192 / count;
  Reals values;
  for (std::size_t rank : order) values.push_back(1 + static_cast<double>(rank * apart) * 0x1p-13);
  return values;
}

TEST(Gradients, AreTheDifferencesOfTheForward) {
  for (const char* line : {
           "max1d f64 ncw n1c2 w17 k3 s2 p1",
           "max2d f64 nchw n1c2 h5w6 k3 s1 p1 d2",
           "min2d f64 nhwc n1c2 h5w6 k2",
           "avg2d f64 nchw n1c2 h5w6 k3 s2 p1 ceil",
           "avg2d f64 nhwc n1c2 h5w6 k3 s2 p1 nopad",
           "avg2d f64 nchw n1c2 h5w6 k2 s1 div-3",
           "avg3d f64 ncdhw n1c1 d3h4w5 k2 s1",
           "sum2d f64 nchw n1c2 h5w6 k3x2 same_lower",
           "amax2d f64 nchw n1c2 h5w6 out3x4",
           "aavg2d f64 nhwc n1c2 h5w6 out3x4",
           "fmax2d f64 nchw n1c2 h6w7 k2 out3x4",
           "lp1d f64 ncw n1c2 w13 k3 s2 norm2 ceil",
           "lp2d f64 nchw n1c2 h5w6 k2 s1 norm3",
           "lp2d f64 nhwc n1c2 h5w6 k3 s2 p1 norm2",
       }) {
    SCOPED_TRACE(line);
    const Problem problem = parse_problem(line);
    auto given = draw_given<double>(problem, reference::resolve(problem.spec, problem.dtype, problem.shape));
    Random random(7);
    given.input = spread_values(given.input.size(), random);
    const auto backward = run_backward(problem, given, IndexKind::flat64, saved_indices(problem, given), {});
    ASSERT_EQ(backward.trouble, "");

    constexpr double kStep = 0x1p-17;
    long double largest_gradient_sum = 0;
    for (double g : given.grad_output) largest_gradient_sum += std::fabs(g);
    for (std::size_t i = 0; i < given.input.size(); ++i) {
      Given<double> above = given, below = given;
      above.input[i] += kStep;  // exact
      below.input[i] -= kStep;
      const Weighted high = weighted_output(problem, above), low = weighted_output(problem, below);
      const long double width = 2 * static_cast<long double>(kStep);
      const long double difference = (high.value - low.value) / width;
      // The forward's own roundings, divided by the width: a window has at most 27 taps, a power costs at most 16 roundings more.
      const long double rounding = 64 * 0x1p-53L * (high.magnitude + low.magnitude) / width;
      // What a central difference leaves out, h^2/6 * f''': max, min, sums and averages are linear here. For p = 2 and 3 on
      // [1, 2), |f'''| <= 24 scale: f is (x^p + a)^(1/p) with x^p <= x^p + a and x^p + a >= 1, whose third derivative has
      // coefficients that sum to 24 at most; the ceil-mode scale is at most 3 (three taps, one inside).
      const bool is_power = problem.spec.op == Op::lp_pool;
      const long double truncation = is_power ? kStep * kStep / 6 * 24 * 3 * largest_gradient_sum : 0;
      EXPECT_NEAR(static_cast<double>(difference), backward.result[i], static_cast<double>(rounding + truncation))
          << "at input element " << i;
    }
  }
}

/// Gradients that are infinite, tiny, NaN or -0 are divided as any others: the same bits in both layouts, which go different ways.
TEST(Gradients, OfExtremesAreDividedAlike) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kExtremes[] = {kInfinity,        -kInfinity, 0x1p-149F, -0x1.8p-127F, 0x1p-126F,
                                 0x1.234p-101F,    -0.0F,      0.0F,      kNaN,         0x1.fffffep127F,
                                 -0x1.fffffep127F, 1.0F,       -0x1p-100F};
  for (const char* line : {
           "avg2d f32 nhwc n2c97 h12w13 k3 s2 p1",
           "avg2d f32 nhwc n2c64 h12w13 k3 s2 p1 nopad",
           "avg2d f32 nhwc n1c80 h9w11 k3 s1 p1 nopad",
           "avg2d f32 nhwc n1c80 h17w17 k5 s3",
           "avg2d f32 nhwc n1c80 h17w17 k3 s4 div-7",
           "avg2d f32 nhwc n1c80 h12w12 k2x3 s2x3 div5000",
       }) {
    const Problem problem = parse_problem(line);
    const Shape& shape = problem.shape;
    const std::int64_t channels = shape[1];
    TensorDesc planar{.dtype = DType::f32, .shape = shape}, last = planar;
    planar.strides = {channels * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1};
    last.strides = {channels * shape[2] * shape[3], 1, channels * shape[3], channels};
    const Plan by_planes = Plan::make(Pass::backward, planar, problem.spec);
    const Plan by_columns = Plan::make(Pass::backward, last, problem.spec);
    auto place = [](const TensorDesc& desc, std::int64_t i) {
      std::int64_t at = 0;
      for (int a = 3; a >= 0; i /= desc.shape[a], --a) at += i % desc.shape[a] * desc.strides[a];
      return static_cast<std::size_t>(at);
    };
    // Mostly ordinary numbers: extremes meet them, and each other, in sums.
    const TensorDesc &planar_output = by_planes.grad_output(), &last_output = by_columns.grad_output();
    std::vector<float> planar_given(static_cast<std::size_t>(planar_output.numel())), last_given(planar_given.size());
    for (std::int64_t i = 0; i < planar_output.numel(); ++i) {
      const bool extreme = i * 2654435761 % 97 < 9;
      const float value = extreme ? kExtremes[i % 13] : static_cast<float>(i * 7919 % 1009) / 64 - 5;
      planar_given[place(planar_output, i)] = last_given[place(last_output, i)] = value;
    }
    std::vector<float> from_planes(static_cast<std::size_t>(planar.numel())), from_columns(from_planes.size());
    ASSERT_TRUE(by_planes.run({.grad_output = planar_given.data(), .grad_input = from_planes.data()}).ok());
    ASSERT_TRUE(by_columns.run({.grad_output = last_given.data(), .grad_input = from_columns.data()}).ok());
    std::int64_t different = 0;
    for (std::int64_t i = 0; i < planar.numel(); ++i) {
      const float a = from_planes[place(planar, i)], b = from_columns[place(last, i)];
      if (std::isnan(a) ? !std::isnan(b) : std::memcmp(&a, &b, sizeof(float)) != 0) ++different;
    }
    EXPECT_EQ(different, 0) << line;
  }
}

}  // namespace
}  // namespace cenote::testing
