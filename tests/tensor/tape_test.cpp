// The gradient tape: what is recorded, what accumulates, what is refused, and that nothing is left behind.
#include "expect.hpp"

namespace cenote::test {
namespace {

Tensor leaf(const Shape& shape, std::uint64_t seed) {
  return randn(shape, {.seed = seed, .dtype = DType::f64, .requires_grad = true});
}

/// Central differences of a function from a tensor to a number. The error is the third derivative's h^2/6 plus rounding of
/// eps/h: about 1e-9 at h = 1e-5 for the functions here, which are polynomials with small coefficients.
void expect_gradient(const std::function<Tensor(const Tensor&)>& function, Tensor x) {
  x.zero_grad();
  function(x).backward();
  const Tensor gradient = x.grad();
  ASSERT_TRUE(gradient.defined());
  ASSERT_EQ(to_list(gradient.shape()), to_list(x.shape()));
  const NoGradGuard guard;
  const double h = 1e-5;
  const Tensor flat_gradient = gradient.contiguous().flatten();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    Tensor probe = x.contiguous().clone();
    probe.flatten().at<double>({i}) += h;
    const double above = function(probe).item();
    probe.flatten().at<double>({i}) -= 2 * h;
    const double below = function(probe).item();
    EXPECT_NEAR(flat_gradient.at<double>({i}), (above - below) / (2 * h), 1e-8) << "element " << i;
  }
}

TEST(Tape, GradientsAgainstFiniteDifferences) {
  const Tensor w = randn({2, 3, 4}, {.seed = 9, .dtype = DType::f64});
  const Tensor row = randn({4}, {.seed = 8, .dtype = DType::f64});
  using Function = std::function<Tensor(const Tensor&)>;
  const std::pair<const char*, Function> functions[] = {
      {"sum", [&](const Tensor& x) { return x.sum(); }},
      {"mean", [&](const Tensor& x) { return (x * x).mean(); }},
      {"add", [&](const Tensor& x) { return ((x + w) * w).sum(); }},
      {"sub", [&](const Tensor& x) { return ((w - x) * w).sum(); }},
      {"used twice", [&](const Tensor& x) { return (x * x * x + x * w).sum(); }},
      {"division", [&](const Tensor& x) { return (x / (w * w + 1) + w / (x * x + 2)).sum(); }},
      {"scalars", [&](const Tensor& x) { return (1 - (x * 2 + 3) / 4).mul(w).sum(); }},
      {"broadcast", [&](const Tensor& x) { return (x * row + row).mul(x).sum(); }},
      {"broadcast leaf", [&](const Tensor& x) { return (x.sum(2, true) * w).sum(); }},
      {"sum of a dimension", [&](const Tensor& x) { return (x.sum(1) * w.select(1, 0)).sum(); }},
      {"slice",
       [&](const Tensor& x) { return (x.slice(2, {.start = 3, .step = -2}) * w.slice(2, {.step = 2})).sum(); }},
      {"overlapping slices", [&](const Tensor& x) { return (x.narrow(2, 0, 3) * x.narrow(2, 1, 3)).sum(); }},
      {"select",
       [&](const Tensor& x) {
         return (x[1] * w[0] + x.select(1, 2).unsqueeze(1).expand({2, 3, 4})[0]).sum();
       }},
      {"permute",
       [&](const Tensor& x) {
         return (x.permute({2, 0, 1}) * w.reshape({4, 2, 3})).sum();
       }},
      {"reshape that copies",
       [&](const Tensor& x) {
         return (x.transpose(0, 2).reshape({2, 12}) * w.reshape({2, 12})).sum();
       }},
      {"view",
       [&](const Tensor& x) {
         return (x.view({6, 4}) * w.view({6, 4})).sum();
       }},
      {"expand",
       [&](const Tensor& x) {
         return (x.unsqueeze(1).expand({2, 5, 3, 4}) * w.unsqueeze(1)).mul(x.unsqueeze(1)).sum();
       }},
      {"squeeze", [&](const Tensor& x) { return (x.unsqueeze(0).squeeze() * w).sum(); }},
      {"clone and types", [&](const Tensor& x) { return (x.clone().contiguous() * w).sum(); }},
      {"diamond",
       [&](const Tensor& x) {
         const Tensor a = x * 2, b = a * a, c = a + w;
         return (b * c + a).sum();
       }},
  };
  for (const auto& [name, function] : functions) {
    SCOPED_TRACE(name);
    expect_gradient(function, leaf({2, 3, 4}, 1));
  }
}

TEST(Tape, StridedLeaves) {
  Tensor x = randn({2, 3, 4, 5}, {.seed = 3, .dtype = DType::f64}).contiguous(MemoryFormat::channels_last);
  x.set_requires_grad();
  (x * x).sum().backward();
  EXPECT_TRUE(x.grad().is_contiguous(MemoryFormat::channels_last)) << "the gradient lies like the leaf";
  EXPECT_TRUE(allclose(x.grad(), x.detach() * 2));
  Tensor y = randn({4, 6}, {.seed = 4, .dtype = DType::f64}).slice(1, {.step = -2});
  y.set_requires_grad();
  (y * y).sum().backward();
  EXPECT_TRUE(allclose(y.grad(), y.detach() * 2));
}

TEST(Tape, TypesOnTheWay) {
  Tensor x = arange(3, {.requires_grad = true});
  (x.to(DType::f64) * 3).to(DType::f16).sum().backward();
  EXPECT_EQ(x.grad().dtype(), DType::f32);
  expect_values(x.grad(), {3, 3, 3});
  EXPECT_FALSE(x.to(DType::i32).requires_grad());
}

TEST(Tape, LeavesAccumulateUntilZeroed) {
  Tensor x = ones({2}, {.requires_grad = true});
  const Tensor y = (x * 3).sum();
  y.backward();
  const Tensor held = x.grad();
  y.backward();
  expect_values(x.grad(), {6, 6});
  expect_values(held, {6, 6});
  x.zero_grad();
  EXPECT_FALSE(x.grad().defined());
  y.backward();
  expect_values(x.grad(), {3, 3});
  expect_values(held, {6, 6});
}

TEST(Tape, TheGradientIsNotTheCallersTensor) {
  Tensor x = ones({2}, {.requires_grad = true});
  Tensor given = tensor<float>({5, 7});
  x.reshape({2, 1}).reshape({2}).backward(given);
  given.fill(0);
  expect_values(x.grad(), {5, 7});
}

TEST(Tape, BackwardWithAGradient) {
  Tensor x = arange(3, {.requires_grad = true});
  (x * x).backward(tensor<float>({1, 10, 100}));
  expect_values(x.grad(), {0, 20, 400});
  expect_refused([&] { (x * x).backward(); }, "grad_output", "one element");
  expect_refused([&] { (x * x).backward(ones({2})); }, "grad_output");
  expect_refused([&] { (x * x).backward(ones({3}, {.dtype = DType::f64})); }, "grad_output", "f64");
}

TEST(Tape, DetachAndNoGrad) {
  Tensor x = ones({2}, {.requires_grad = true});
  EXPECT_FALSE(x.detach().requires_grad());
  EXPECT_TRUE(x.detach().shares_storage_with(x));
  {
    const NoGradGuard guard;
    EXPECT_FALSE(grad_enabled());
    EXPECT_FALSE((x * 2).requires_grad());
    EXPECT_FALSE(x.narrow(0, 0, 1).requires_grad());
  }
  EXPECT_TRUE(grad_enabled());
  EXPECT_TRUE((x * 2).requires_grad());
  (x * x.detach()).sum().backward();
  expect_values(x.grad(), {1, 1});
  EXPECT_TRUE(x.is_leaf());
  EXPECT_FALSE((x * 2).is_leaf());
  EXPECT_EQ((x * 2).grad_fn(), "MulBackward");
}

TEST(Tape, Refusals) {
  expect_refused([] { ones({}).backward(); }, "tensor");
  Tensor x = ones({2}, {.requires_grad = true});
  Tensor y = x * 2;
  expect_refused([&] { y.set_requires_grad(false); }, "requires_grad", "detach()");
  Tensor integers = ones({2}, {.dtype = DType::i32});
  expect_refused([&] { integers.set_requires_grad(); }, "requires_grad", "i32");
}

TEST(Tape, SameBitsEveryTime) {
  const auto once = [] {
    Tensor x = randn({50}, {.seed = 1, .requires_grad = true});
    Tensor sum = zeros({50});
    for (int i = 0; i < 20; ++i) sum = sum + x * (1.0 / (i + 3)) * sum + x;
    sum.mean().backward();
    return x.grad();
  };
  EXPECT_TRUE(equal(once(), once()));
}

TEST(Tape, EveryOpIsWalkedOnce) {
  // Two ways through each of 64 levels: walking every path would take 2^64 steps.
  Tensor x = ones({1}, {.requires_grad = true});
  Tensor y = x;
  for (int i = 0; i < 64; ++i) y = y * 0.25 + y * 0.75;
  y.backward();
  expect_values(x.grad(), {1});
}

TEST(Tape, ALongRecordIsFreedWithoutRecursion) {
  Tensor x = ones({1}, {.requires_grad = true});
  Tensor y = x;
  for (int i = 0; i < 100000; ++i) y = y + 1;
  y.backward();
  expect_values(x.grad(), {1});
  y = Tensor();
}

TEST(Tape, ResultsOutliveTheirInputs) {
  Tensor y;
  Tensor x = ones({3}, {.requires_grad = true});
  {
    const Tensor a = x * 2;
    const Tensor b = a.narrow(0, 1, 2);
    y = (b * b).sum();
  }
  y.backward();
  expect_values(x.grad(), {0, 8, 8});
}

}  // namespace
}  // namespace cenote::test
