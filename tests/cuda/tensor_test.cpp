// Tensors on a CUDA device through `functional` and `nn`: forward and backward give what they give on the CPU.
#include <cenote/functional.hpp>
#include <cenote/nn.hpp>

#include <gtest/gtest.h>

namespace cenote::testing {
namespace {

namespace F = functional;

/// Pools x on the CPU and on the GPU, both ways; bits where the op promises them, else close.
template <class Pool>
void expect_same(const char* what, const Tensor& x, bool exact, Pool pool) {
  Tensor here = x.clone(), there = x.to(cuda);
  here.set_requires_grad();
  there.set_requires_grad();
  const Tensor expected = pool(here), result = pool(there);
  ASSERT_EQ(result.device(), cuda) << what;
  const Tensor grad = randn(expected.shape(), {.seed = 7}).to(expected.dtype());
  expected.backward(grad);
  result.backward(grad.to(cuda));
  const Tensor gradient = there.grad();
  ASSERT_EQ(gradient.device(), cuda) << what;
  for (const auto& [name, a, b] :
       {std::tuple{"result", result.to(cpu), expected}, std::tuple{"gradient", gradient.to(cpu), here.grad()}}) {
    EXPECT_TRUE(exact ? equal(a, b) : allclose(a, b, {.atol = 1e-6})) << what << ": " << name;
  }
}

TEST(GpuTensor, PoolsAsOnTheCpu) {
  const Tensor x = randn({2, 6, 19, 23}, {.seed = 1});
  expect_same("max_pool2d", x, true,
              [](const Tensor& t) { return F::max_pool2d(t, {.kernel_size = 3, .stride = 2, .padding = 1}); });
  expect_same("max_pool2d, long windows", x, true,
              [](const Tensor& t) { return F::max_pool2d(t, {.kernel_size = 9, .stride = 1, .padding = 4}); });
  expect_same("adaptive_max_pool2d", x, true, [](const Tensor& t) {
    return F::adaptive_max_pool2d(t, {.output_size = {5, 7}});
  });
  expect_same("avg_pool2d", x, false,
              [](const Tensor& t) { return F::avg_pool2d(t, {.kernel_size = 3, .stride = 1, .padding = 1}); });
  expect_same("lp_pool2d", x, false,
              [](const Tensor& t) { return F::lp_pool2d(t, {.norm_type = 2, .kernel_size = 2}); });
  expect_same("adaptive_avg_pool2d", x, false, [](const Tensor& t) {
    return F::adaptive_avg_pool2d(t, {.output_size = {5, 7}});
  });
}

TEST(GpuTensor, ModulesPoolAndUnpoolAsOnTheCpu) {
  const Tensor x = randn({2, 4, 12, 16}, {.seed = 2});
  expect_same("MaxPool2d", x, true, nn::MaxPool2d({.kernel_size = 2}));
  expect_same("AvgPool2d", x, false, nn::AvgPool2d({.kernel_size = 2}));
  const auto [here, here_indices] = F::max_pool2d_with_indices(x, {.kernel_size = 2});
  const auto [there, there_indices] = F::max_pool2d_with_indices(x.to(cuda), {.kernel_size = 2});
  EXPECT_TRUE(equal(there.to(cpu), here));
  EXPECT_TRUE(equal(there_indices.to(cpu), here_indices));
  EXPECT_TRUE(equal(F::max_unpool2d(there, there_indices, {.kernel_size = 2}).to(cpu),
                    F::max_unpool2d(here, here_indices, {.kernel_size = 2})));
}

}  // namespace
}  // namespace cenote::testing
