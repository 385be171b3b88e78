// The worked examples of the specification: what each call gives, to the bit where the specification says so.
#include "expect.hpp"

#include <cenote/functional.hpp>

#include <limits>

namespace cenote::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
using Values = std::vector<double>;

Tensor row(const Values& values) {
  return tensor(values, {1, 1, static_cast<std::int64_t>(values.size())}).to(DType::f32);
}
Tensor counted(const Shape& shape) { return arange(1, static_cast<double>(element_count(shape)) + 1).reshape(shape); }
Tensor sevens(const Shape& shape) {  // 0 7 14 ... modulo the number of elements
  const std::int64_t count = element_count(shape);
  Values values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(7 * i % count));
  return tensor(values, shape).to(DType::f32);
}

PoolSpec spec1(const MaxPool<1>& o) { return to_spec(o); }
PoolSpec spec2(const MaxPool<2>& o) { return to_spec(o); }
PoolSpec spec3(const MaxPool<3>& o) { return to_spec(o); }
PoolSpec avg1(const AvgPool<1>& o) { return to_spec(o); }
PoolSpec avg2(const AvgPool<2>& o) { return to_spec(o); }
PoolSpec lp1(const LpPool<1>& o) { return to_spec(o); }

struct MaxCase {
  const char* name;
  Tensor input;
  PoolSpec spec;
  Values values, indices;
};

TEST(WorkedExamples, Max) {
  const Tensor ones_to_25 = counted({1, 1, 5, 5});
  const MaxCase cases[] = {
      {"M1", counted({1, 1, 4, 4}), spec2({.kernel_size = 2, .stride = 2}), {6, 8, 14, 16}, {5, 7, 13, 15}},
      {"M2",
       ones_to_25,
       spec2({.kernel_size = {2, 3}, .stride = 2, .padding = 1}),
       {2, 4, 5, 12, 14, 15, 22, 24, 25},
       {1, 3, 4, 11, 13, 14, 21, 23, 24}},
      {"M2 ceil",
       ones_to_25,
       spec2({.kernel_size = {2, 3}, .stride = 2, .padding = 1, .ceil_mode = true}),
       {2, 4, 5, 12, 14, 15, 22, 24, 25},
       {1, 3, 4, 11, 13, 14, 21, 23, 24}},
      {"M3",
       ones_to_25,
       spec2({.kernel_size = 2, .stride = 1, .dilation = 2}),
       {13, 14, 15, 18, 19, 20, 23, 24, 25},
       {12, 13, 14, 17, 18, 19, 22, 23, 24}},
      {"M4",
       row({3, 1, 4, 1, 5, 9}),
       spec1({.kernel_size = 3, .stride = 2, .padding = 1, .dilation = 2}),
       {1, 9},
       {1, 5}},
      {"M5",
       row({3, 1, 4, 1, 5, 9}),
       spec1({.kernel_size = 3, .stride = 2, .padding = 1, .dilation = 2, .ceil_mode = true}),
       {1, 9, 9},
       {1, 5, 5}},
      {"M6",
       sevens({1, 1, 2, 3, 4}),
       spec3({.kernel_size = 2, .stride = {1, 1, 2}}),
       {23, 21, 23, 22},
       {17, 3, 17, 10}},
      {"M7",
       sevens({1, 1, 2, 3, 4}),
       spec3({.kernel_size = 2, .stride = 2, .padding = 1}),
       {0, 14, 21, 8, 22, 5, 12, 19, 9, 20, 23, 17},
       {0, 2, 3, 8, 10, 11, 12, 13, 15, 20, 17, 23}},
      {"M8", row({1, kNaN, 3, kNaN, 2}), spec1({.kernel_size = 5}), {kNaN}, {3}},
      {"M9", row({2, 5, 5, 1}), spec1({.kernel_size = 4}), {5}, {1}},
      {"M10",
       full({1, 1, 4, 4}, -kInf),
       spec2({.kernel_size = 2, .stride = 2, .padding = 1}),
       Values(9, -kInf),
       {0, 1, 3, 4, 5, 7, 12, 13, 15}},
      {"M11",
       full({1, 2, 2}, -128, {.dtype = DType::i8}),
       spec2({.kernel_size = 2, .stride = 1, .padding = 1}),
       Values(9, -128),
       {0, 0, 1, 0, 0, 1, 2, 2, 3}},
      {"M12",
       tensor<float>({5, 6}, {1, 1, 1, 2}),
       spec2({.kernel_size = {1, 2}, .stride = 1, .padding = {0, 1}, .dilation = {1, 3}}),
       {-kInf},
       {-1}},
      {"M13", counted({1, 1, 6, 6}), spec2({.kernel_size = 7, .stride = 2, .ceil_mode = true}), {36}, {35}},
  };
  for (const MaxCase& c : cases) {
    SCOPED_TRACE(c.name);
    expect_values(functional::pool(c.input, c.spec), c.values);
    for (const IndexKind kind : {IndexKind::flat64, IndexKind::flat32}) {
      PoolSpec spec = c.spec;
      spec.index_kind = kind;
      const auto [values, indices] = functional::pool_with_indices(c.input, spec);
      expect_values(values, c.values);
      expect_values(indices, c.indices);
    }
  }
  Tensor x = row({1, 5, 2, 3}).set_requires_grad();
  functional::max_pool1d(x, {.kernel_size = 3, .stride = 1}).sum().backward();
  expect_values(x.grad(), {0, 2, 0, 0});  // M14
}

struct Case {
  const char* name;
  Tensor input;
  PoolSpec spec;
  Values values;
  double tolerance = 0;
};

void expect_cases(std::span<const Case> cases) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    expect_values(functional::pool(c.input, c.spec), c.values, c.tolerance);
  }
}

// One rounding of a quotient near 2 in f32.
constexpr double kUlp = 0x1p-23;

TEST(WorkedExamples, Average) {
  const Tensor five = row({1, 2, 3, 4, 5});
  const Case cases[] = {
      {"A1", five, avg1({.kernel_size = 3, .stride = 2}), {2, 4}},
      {"A2", five, avg1({.kernel_size = 3, .stride = 2, .padding = 1}), {1, 3, 3}},
      {"A2 exclude",
       five,
       avg1({.kernel_size = 3, .stride = 2, .padding = 1, .count_include_pad = false}),
       {1.5, 3, 4.5}},
      {"A3", five, avg1({.kernel_size = 4, .stride = 3, .padding = 2, .ceil_mode = true}), {0.75, 3.5, 5.0 / 3}, kUlp},
      {"A3 exclude",
       five,
       avg1({.kernel_size = 4, .stride = 3, .padding = 2, .ceil_mode = true, .count_include_pad = false}),
       {1.5, 3.5, 5}},
      {"A4", counted({1, 1, 3, 3}), avg2({.kernel_size = 2, .stride = 2, .padding = 1}), {0.25, 1.25, 2.75, 7}},
      {"A4 exclude",
       counted({1, 1, 3, 3}),
       avg2({.kernel_size = 2, .stride = 2, .padding = 1, .count_include_pad = false}),
       {1, 2.5, 5.5, 7}},
      {"A5", counted({1, 1, 4, 4}), avg2({.kernel_size = 3, .stride = 2, .ceil_mode = true}), {6, 7.5, 12, 13.5}},
      {"A6",
       counted({1, 1, 4, 4}),
       avg2({.kernel_size = 3, .stride = 2, .ceil_mode = true, .divisor_override = 3}),
       {18, 15, 24, 18}},
      {"A7", row({1, 2, 3, 4, 5, 6}), avg1({.kernel_size = 7, .stride = 2, .ceil_mode = true}), {3.5}},
      {"A8", tensor<std::int64_t>({-1, -2, 7, 8}, {1, 4}), avg1({.kernel_size = 2}), {-1, 7}},
  };
  expect_cases(cases);
  for (const bool include : {true, false}) {
    Tensor x = row({0, 0, 0, 0}).set_requires_grad();
    functional::avg_pool1d(
        x, {.kernel_size = 3, .stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = include})
        .sum()
        .backward();  // A9
    expect_values(x.grad(),
                  include ? Values{1.0 / 3, 2.0 / 3, 1.0 / 3, 5.0 / 6} : Values{0.5, 5.0 / 6, 1.0 / 3, 4.0 / 3}, kUlp);
  }
  Tensor x = row({0, 0, 0, 0, 0}).set_requires_grad();
  functional::avg_pool1d(x, {.kernel_size = 2, .stride = 3}).sum().backward();
  expect_values(x.grad(), {0.5, 0.5, 0, 0.5, 0.5});  // A10
}

TEST(WorkedExamples, Adaptive) {
  struct Table {
    std::int64_t input, output;
    Values average, argmax;
  };
  const Table tables[] = {
      {5, 3, {1.5, 3, 4.5}, {1, 3, 4}},
      {7, 4, {1.5, 3, 5, 6.5}, {1, 3, 5, 6}},
      {3, 5, {1, 1.5, 2, 2.5, 3}, {0, 1, 1, 2, 2}},
      {10, 7, {1.5, 2.5, 4, 5.5, 7, 8.5, 9.5}, {1, 2, 4, 5, 7, 8, 9}},
      {4, 1, {2.5}, {3}},
  };
  for (const Table& t : tables) {  // D1
    SCOPED_TRACE(t.input);
    const Tensor x = counted({1, 1, t.input});
    expect_values(functional::adaptive_avg_pool1d(x, {.output_size = t.output}), t.average);
    expect_values(functional::adaptive_max_pool1d_with_indices(x, {.output_size = t.output}).second, t.argmax);
  }
  const Tensor x = sevens({1, 1, 3, 5});  // D2
  expect_values(functional::adaptive_avg_pool2d(x, {.output_size = {2, 3}}), {6, 9, 8.25, 7.25, 6.5, 5.75});
  const auto [values, indices] = functional::adaptive_max_pool2d_with_indices(x, {.output_size = {2, 3}});
  expect_values(values, {12, 14, 13, 12, 12, 11});
  expect_values(indices, {6, 2, 4, 6, 6, 8});
  EXPECT_EQ(to_list(functional::adaptive_avg_pool2d(x, {.output_size = {2, keep}}).shape()),
            (std::vector<std::int64_t>{1, 1, 2, 5}));

  Tensor y = row({0, 0, 0, 0, 0}).set_requires_grad();
  functional::adaptive_avg_pool1d(y, {.output_size = 3}).sum().backward();
  expect_values(y.grad(), {0.5, 5.0 / 6, 1.0 / 3, 5.0 / 6, 0.5}, kUlp);  // D3
  Tensor z = row({5, 4, 3, 2, 1}).set_requires_grad();
  functional::adaptive_max_pool1d(z, {.output_size = 3}).sum().backward();
  expect_values(z.grad(), {1, 1, 0, 1, 0});
}

TEST(WorkedExamples, Lp) {
  // The expected values have eight digits; results are within a few units in the last place of f32 (2^-21 near 8).
  const double few_ulp = 0x1p-20;
  const Case cases[] = {
      {"L1", row({-3, 4, 0, 0}), lp1({.norm_type = 2, .kernel_size = 2}), {5, 0}, few_ulp},
      {"L2", row({-1, -2, 3, 4}), lp1({.norm_type = 1, .kernel_size = 2}), {-3, 7}, few_ulp},
      {"L3", row({-1, -2, 3, 1}), lp1({.norm_type = 3, .kernel_size = 2}), {kNaN, 3.0365889}, few_ulp},
      {"L4",
       row({1, 2, 3, 4, 5}),
       lp1({.norm_type = 2, .kernel_size = 2, .ceil_mode = true}),
       {2.2360680, 5, 7.0710678},
       few_ulp},
      {"infinite", row({-3, 1, 2, -1}), lp1({.norm_type = kInf, .kernel_size = 2}), {3, 2}},
      {"minus infinite", row({-3, 1, 2, -1}), lp1({.norm_type = -kInf, .kernel_size = 2}), {1, 1}},
  };
  expect_cases(cases);
  expect_values(functional::lp_pool2d(counted({1, 2, 3}), {.norm_type = 2, .kernel_size = {1, 3}}),
                {3.7416575, 8.7749644},
                few_ulp);  // L6
  Tensor x = row({0, 0, 3, 4}).set_requires_grad();
  functional::lp_pool1d(x, {.norm_type = 2, .kernel_size = 2}).sum().backward();
  expect_values(x.grad(), {0, 0, 0.6, 0.8}, few_ulp);  // L5
}

TEST(WorkedExamples, Fractional) {
  const auto indices2 = functional::fractional_max_pool2d_with_indices(
      counted({1, 1, 7, 7}), {.kernel_size = 2, .output_size = 3}, tensor<float>({0.3F, 0.9F}, {1, 1, 2}));
  expect_values(indices2.second, {8, 11, 13, 22, 25, 27, 43, 46, 48});  // F2
  const auto indices3 = functional::fractional_max_pool3d_with_indices(
      counted({1, 1, 6, 7, 8}), {.kernel_size = 2, .output_size = 2}, tensor<float>({0.1F, 0.5F, 0.9F}, {1, 1, 3}));
  expect_values(indices3.second, {65, 71, 105, 111, 289, 295, 329, 335});  // F3
  // O = trunc(I * r): (7, 9) by (0.5, 0.7) gives (3, 6).
  const Tensor y =
      functional::fractional_max_pool2d(counted({1, 7, 9}), {.kernel_size = 2, .output_ratio = {0.5, 0.7}});
  EXPECT_EQ(to_list(y.shape()), (std::vector<std::int64_t>{1, 3, 6}));
}

TEST(WorkedExamples, Unpool) {
  const Tensor values = row({2, 4}), indices = tensor<std::int64_t>({1, 3}, {1, 1, 2});
  expect_values(functional::max_unpool1d(values, indices, {.kernel_size = 2}), {0, 2, 0, 4});  // U1
  expect_values(functional::max_unpool1d(values, indices, {.kernel_size = 2, .output_size = {1, 1, 5}}),
                {0, 2, 0, 4, 0});  // U2
  try {                            // U3
    functional::max_unpool1d(values, tensor<std::int64_t>({1, 4}, {1, 1, 2}), {.kernel_size = 2});
    ADD_FAILURE() << "an index outside the plane was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_index);
    EXPECT_NE(std::string(error.what()).find('4'), std::string::npos) << error.what();
  }
  Tensor x = row({1, 2, 3}).set_requires_grad();  // U4
  functional::max_unpool1d(x, tensor<std::int64_t>({1, 1, 0}, {1, 1, 3}), {.kernel_size = 2})
      .backward(row({10, 20, 30, 40, 50, 60}));
  expect_values(x.grad(), {20, 20, 10});
}

TEST(WorkedExamples, MinAndSumMirrorMaxAndAverage) {
  const Tensor x = counted({1, 1, 4, 4});
  const auto [values, indices] = functional::min_pool2d_with_indices(x, {.kernel_size = 2});
  expect_values(values, {1, 3, 9, 11});
  expect_values(indices, {0, 2, 8, 10});
  expect_values(functional::sum_pool2d(x, {.kernel_size = 2}), {14, 22, 46, 54});
}

TEST(WorkedExamples, Global) {
  const Tensor x = counted({2, 1, 2, 3});
  expect_values(functional::global_max_pool2d(x), {6, 12});
  expect_values(functional::global_min_pool2d(x), {1, 7});
  expect_values(functional::global_sum_pool2d(x), {21, 57});
  expect_values(functional::global_avg_pool2d(x), {3.5, 9.5});
  expect_values(functional::global_max_pool2d_with_indices(x).second, {5, 5});
  expect_values(functional::global_min_pool2d_with_indices(x).second, {0, 0});
  EXPECT_EQ(to_list(functional::global_min_pool2d(x).shape()), (std::vector<std::int64_t>{2, 1, 1, 1}));
  expect_refused([&] { functional::global_sum_pool3d(counted({2, 3})); }, "input", "global_sum_pool3d");
}

}  // namespace
}  // namespace cenote::test
