// Gradients of every op, every rank, through the tape, against finite differences.
#include "expect.hpp"

#include <cenote/functional.hpp>

namespace cenote::test {
namespace {

struct Case {
  std::string name;
  Shape shape;
  std::function<Tensor(const Tensor&)> op;
};

/// Inputs are far enough apart (0.01 and more) that a step of 1e-5 never changes which element wins, and positive, so that
/// every power is smooth.
Tensor spread(const Shape& shape, MemoryFormat format) {
  const std::int64_t count = element_count(shape);
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(0.5 + 0.01 * static_cast<double>(i * 37 % count));
  Tensor x = tensor(values, shape);
  if (format == MemoryFormat::channels_last && shape.rank() >= 4) x = x.contiguous(format);
  return x.set_requires_grad();
}

template <class Options, class Function>
Case make(const char* name, const Shape& shape, const Function& function, const Options& options) {
  return {name, shape, [=](const Tensor& x) { return function(x, options); }};
}

std::vector<Case> all_cases() {
  namespace F = functional;
  const Shape s1{2, 3, 11}, s2{2, 3, 7, 6}, s3{1, 2, 5, 4, 6};
  std::vector<Case> cases;
  const auto families = [&]<int N>(std::integral_constant<int, N>, const Shape& shape, auto max, auto min, auto avg,
                                   auto sum, auto lp, auto adaptive_max, auto adaptive_avg) {
    cases.push_back(make("max", shape, max, MaxPool<N>{.kernel_size = 3, .stride = 2, .padding = 1}));
    cases.push_back(
        make("max dilated", shape, max, MaxPool<N>{.kernel_size = 2, .stride = 1, .dilation = 2, .ceil_mode = true}));
    cases.push_back(
        make("max same", shape, max, MaxPool<N>{.kernel_size = 2, .stride = 2, .padding = Padding<N>::same_upper()}));
    cases.push_back(make("min", shape, min, MinPool<N>{.kernel_size = 3, .stride = 1, .padding = 1}));
    cases.push_back(
        make("avg", shape, avg, AvgPool<N>{.kernel_size = 3, .stride = 2, .padding = 1, .ceil_mode = true}));
    cases.push_back(make("avg exclude", shape, avg,
                         AvgPool<N>{.kernel_size = 3, .stride = 1, .padding = 1, .count_include_pad = false}));
    cases.push_back(make("avg divisor", shape, avg, AvgPool<N>{.kernel_size = 2, .divisor_override = -3}));
    cases.push_back(make("sum", shape, sum, SumPool<N>{.kernel_size = 2, .stride = 1}));
    cases.push_back(make("lp 2", shape, lp, LpPool<N>{.norm_type = 2, .kernel_size = 3, .stride = 1}));
    cases.push_back(make("lp 1.5", shape, lp, LpPool<N>{.norm_type = 1.5, .kernel_size = 2, .ceil_mode = true}));
    cases.push_back(make("lp inf", shape, lp, LpPool<N>{.norm_type = INFINITY, .kernel_size = 2}));
    cases.push_back(make("adaptive max", shape, adaptive_max, AdaptiveMaxPool<N>{.output_size = 3}));
    cases.push_back(make("adaptive avg", shape, adaptive_avg, AdaptiveAvgPool<N>{.output_size = 3}));
  };
  families(std::integral_constant<int, 1>{}, s1, F::max_pool1d, F::min_pool1d, F::avg_pool1d, F::sum_pool1d,
           F::lp_pool1d, F::adaptive_max_pool1d, F::adaptive_avg_pool1d);
  families(std::integral_constant<int, 2>{}, s2, F::max_pool2d, F::min_pool2d, F::avg_pool2d, F::sum_pool2d,
           F::lp_pool2d, F::adaptive_max_pool2d, F::adaptive_avg_pool2d);
  families(std::integral_constant<int, 3>{}, s3, F::max_pool3d, F::min_pool3d, F::avg_pool3d, F::sum_pool3d,
           F::lp_pool3d, F::adaptive_max_pool3d, F::adaptive_avg_pool3d);
  cases.push_back(make("fractional 2d", s2, F::fractional_max_pool2d,
                       FractionalMaxPool<2>{.kernel_size = 2, .output_size = {4, 3}, .seed = 5}));
  cases.push_back(make("fractional 3d", s3, F::fractional_max_pool3d,
                       FractionalMaxPool<3>{.kernel_size = 2, .output_size = 2, .seed = 5}));
  cases.push_back({"with flat indices", s2,
                   [](const Tensor& x) { return F::max_pool2d_with_indices(x, {.kernel_size = 2}).first; }});
  cases.push_back({"global max", s2, [](const Tensor& x) { return F::global_max_pool2d(x); }});
  cases.push_back({"global min", s3, [](const Tensor& x) { return F::global_min_pool3d(x); }});
  cases.push_back({"global avg", s2, [](const Tensor& x) { return F::global_avg_pool2d(x); }});
  cases.push_back({"global sum", s1, [](const Tensor& x) { return F::global_sum_pool1d(x); }});
  cases.push_back({"unbatched", {3, 6, 6}, [](const Tensor& x) { return F::max_pool2d(x, {.kernel_size = 2}); }});
  cases.push_back({"of a view", {2, 4, 6, 7}, [](const Tensor& x) {
                     return F::avg_pool2d(x.slice(3, {.step = -2}).transpose(0, 1), {.kernel_size = 2, .stride = 1});
                   }});
  cases.push_back({"used twice", s2, [](const Tensor& x) {
                     return F::max_pool2d(x, {.kernel_size = 2}) * F::avg_pool2d(x, {.kernel_size = 2}).mul(3);
                   }});
  cases.push_back({"unpool", s2, [](const Tensor& x) {
                     const auto [y, indices] = F::max_pool2d_with_indices(x, {.kernel_size = 2});
                     return F::max_unpool2d(y * y, indices, {.kernel_size = 2, .output_size = {7, 6}});
                   }});
  cases.push_back({"unpool 3d, window indices", {1, 2, 4, 4, 6}, [](const Tensor& x) {
                     const auto [y, indices] =
                         F::max_pool3d_with_indices(x, {.kernel_size = 2, .index_kind = IndexKind::window});
                     return F::max_unpool3d(y, indices, {.kernel_size = 2, .index_kind = IndexKind::window});
                   }});
  return cases;
}

TEST(Gradient, EveryOpAgainstFiniteDifferences) {
  // Central differences err by h^2/6 times the third derivative (below 100 for these powers on [0.5, 3]) and eps/h in
  // rounding: together below 1e-8 for h = 1e-5.
  const double h = 1e-5;
  for (const MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last}) {
    for (const Case& c : all_cases()) {
      SCOPED_TRACE(c.name + " " + to_string(c.shape));
      const Tensor x = spread(c.shape, format);
      const Tensor y = c.op(x);
      const Tensor weight = randn(y.shape(), {.seed = 1, .dtype = DType::f64});
      (y * weight).sum().backward();
      const std::vector<double> gradient = x.grad().to_vector();
      const NoGradGuard guard;
      Tensor probe = x.contiguous().clone();
      const std::span<double> values = probe.span<double>();
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double value = values[i];
        values[i] = value + h;
        const double above = (c.op(probe) * weight).sum().item();
        values[i] = value - h;
        const double below = (c.op(probe) * weight).sum().item();
        values[i] = value;
        ASSERT_NEAR(gradient[i], (above - below) / (2 * h), 1e-8) << "element " << i;
      }
    }
  }
}

TEST(Gradient, GoesNowhereFromAnEmptyWindow) {
  Tensor x = tensor<float>({5, 6}, {1, 1, 1, 2}).set_requires_grad();
  functional::max_pool2d(x, {.kernel_size = {1, 2}, .stride = 1, .padding = {0, 1}, .dilation = {1, 3}})
      .sum()
      .backward();
  expect_values(x.grad(), {0, 0});
}

TEST(Gradient, HalfPrecisionAccumulatesInSingle) {
  // Twenty overlapping windows give one element a gradient of 0.1 each. Rounded to f16 after every addition the sum would be
  // 1.9961; added in f32 and rounded once it is the f16 nearest to 20 times the f16 nearest to 0.1.
  Tensor x = zeros({1, 39}, {.dtype = DType::f16});
  x.narrow(1, 19, 1).fill(1);
  x.set_requires_grad();
  const Tensor y = functional::max_pool1d(x, {.kernel_size = 20, .stride = 1});
  y.backward(full(y.shape(), 0.1, {.dtype = DType::f16}));
  EXPECT_EQ(x.grad().dtype(), DType::f16);
  EXPECT_EQ(x.grad().select(1, 19).item(), 2);
}

TEST(Gradient, IntegersHaveNone) {
  Tensor x = ones({1, 4, 4}, {.dtype = DType::i32});
  expect_refused([&] { x.set_requires_grad(); }, "requires_grad");
  EXPECT_FALSE(functional::max_pool2d(x, {.kernel_size = 2}).requires_grad());
}

}  // namespace
}  // namespace cenote::test
