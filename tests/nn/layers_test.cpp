// Layers, losses and optimisers: gradients against finite differences, values worked out by hand, printed forms.
#include <cenote/layers.hpp>

#include "expect.hpp"

namespace cenote::test {
namespace {

namespace F = functional;

/// Every leaf's gradient against central differences: h^2/6 times the third derivative (below 10 here) plus eps/h, under 1e-8.
void expect_gradients(const std::function<Tensor()>& loss, const std::vector<Tensor>& leaves) {
  for (const Tensor& leaf : leaves) leaf.zero_grad();
  loss().backward();
  const NoGradGuard guard;
  const double h = 1e-5;
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    const std::vector<double> gradient = leaves[k].grad().to_vector();
    const std::span<double> values = leaves[k].span<double>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double value = values[i];
      values[i] = value + h;
      const double above = loss().item();
      values[i] = value - h;
      const double below = loss().item();
      values[i] = value;
      ASSERT_NEAR(gradient[i], (above - below) / (2 * h), 1e-8) << "leaf " << k << ", element " << i;
    }
  }
}

Tensor leaf(const Shape& shape, std::uint64_t seed) {
  return randn(shape, {.seed = seed, .dtype = DType::f64, .requires_grad = true});
}

TEST(Layers, Gradients) {
  const Tensor a = leaf({3, 4}, 1), b = leaf({4, 2}, 2), w = leaf({5, 4}, 3), bias = leaf({5}, 4);
  const Tensor mask = randn({3, 5}, {.seed = 5, .dtype = DType::f64});
  expect_gradients([&] { return (F::matmul(a, b) * F::matmul(a, b)).sum(); }, {a, b});
  expect_gradients([&] { return (F::linear(a, w, bias) * mask).sum(); }, {a, w, bias});
  expect_gradients([&] { return (F::relu(F::linear(a, w, bias)) * mask).sum(); }, {a, w, bias});
  expect_gradients([&] { return F::mse_loss(F::linear(a, w), mask); }, {a, w});
  const Tensor labels = tensor<std::int64_t>({1, 0, 4});
  expect_gradients([&] { return F::cross_entropy(F::linear(a, w, bias), labels) * 3; }, {a, w, bias});
}

TEST(Layers, ConvolutionGradients) {
  const Tensor x = leaf({2, 3, 5, 6}, 1), w = leaf({4, 3, 3, 2}, 2), bias = leaf({4}, 3);
  for (const Convolution& options : {Convolution{}, Convolution{.stride = {2, 1}, .padding = {1, 2}}}) {
    const auto loss = [&] {
      const Tensor y = F::conv2d(x, w, bias, options);
      return (y * y).mean();
    };
    expect_gradients(loss, {x, w, bias});
  }
  const auto strided = [&] {
    return (F::conv2d(x.transpose(2, 3).contiguous(MemoryFormat::channels_last), w, bias) *
            F::conv2d(x.transpose(2, 3), w, bias))
        .mean();
  };
  expect_gradients(strided, {w});
}

TEST(Layers, Values) {
  // 1..9 under a 2x2 kernel of 1 10 100 1000, by hand.
  const Tensor x = arange(1, 10).reshape({1, 3, 3}), w = tensor<float>({1, 10, 100, 1000}, {1, 1, 2, 2});
  expect_values(F::conv2d(x, w), {5421, 6532, 8754, 9865});
  expect_values(F::conv2d(x, w, {}, {.stride = 2, .padding = 1}), {1000, 3200, 7040, 9865});
  expect_values(F::conv2d(x, w, tensor<float>({0.5})), {5421.5, 6532.5, 8754.5, 9865.5});
  expect_values(F::relu(tensor<float>({-1, 0, 2, NAN})), {0, 0, 2, NAN});
  expect_values(F::matmul(tensor<float>({1, 2, 3, 4}, {2, 2}), tensor<float>({5, 6, 7, 8}, {2, 2})), {19, 22, 43, 50});
  // -log(e^3 / (e + e^2 + e^3)) = log(1 + e^-1 + e^-2)
  EXPECT_NEAR(F::cross_entropy(tensor<double>({1, 2, 3}, {1, 3}), tensor<std::int64_t>({2})).item(),
              std::log(1 + std::exp(-1) + std::exp(-2)), 1e-15);
  EXPECT_NEAR(F::cross_entropy(tensor<double>({1001, 1002, 1003}, {1, 3}), tensor<std::int64_t>({2})).item(),
              std::log(1 + std::exp(-1) + std::exp(-2)), 1e-12);
  EXPECT_EQ(F::mse_loss(tensor({1.0, 2.0}), tensor({3.0, 5.0})).item(), 6.5);
}

TEST(Layers, Refusals) {
  const Tensor x = ones({2, 3});
  expect_refused([&] { F::matmul(x, x); }, "b");
  expect_refused([&] { F::linear(x, ones({4, 2})); }, "input");
  expect_refused([&] { F::conv2d(ones({1, 2, 4, 4}), ones({1, 3, 2, 2})); }, "weight");
  expect_refused([&] { F::conv2d(ones({1, 2, 2, 2}), ones({1, 2, 3, 3})); }, "weight");
  expect_refused([&] { F::conv2d(ones({1, 2, 4, 4}), ones({1, 2, 2, 2}), {}, {.stride = 0}); }, "stride");
  expect_refused([&] { F::conv2d(ones({1, 2, 4, 4}), ones({1, 2, 2, 2}), {}, {.padding = -1}); }, "padding");
  expect_refused([&] { F::cross_entropy(x, tensor<std::int64_t>({0, 3})); }, "target", "class 3");
  expect_refused([&] { F::cross_entropy(x, ones({2})); }, "target");
  expect_refused([&] { F::mse_loss(x, ones({3, 2})); }, "target");
  expect_refused([&] { F::relu(ones({2}, {.dtype = DType::i32})); }, "input");
  expect_refused([&] { nn::Linear({.in_features = 0, .out_features = 2}); }, "in_features");
  expect_refused([&] { optim::SGD({x}, {}); }, "parameters");
}

TEST(Layers, PrintAsPyTorch) {
  const nn::Sequential network(nn::Conv2d({.in_channels = 3, .out_channels = 32, .kernel_size = 3, .padding = 1}),
                               nn::ReLU(), nn::MaxPool2d({.kernel_size = 2}), nn::Flatten(),
                               nn::Linear({.in_features = 8192, .out_features = 10, .bias = false}));
  EXPECT_EQ(to_string(network),
            "Sequential(\n"
            "  (0): Conv2d(3, 32, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))\n"
            "  (1): ReLU()\n"
            "  (2): MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)\n"
            "  (3): Flatten(start_dim=1, end_dim=-1)\n"
            "  (4): Linear(in_features=8192, out_features=10, bias=False)\n"
            ")");
  EXPECT_EQ(network.parameters().size(), 3U);
  EXPECT_EQ(to_list(network(zeros({2, 3, 32, 32})).shape()), (std::vector<std::int64_t>{2, 10}));
}

TEST(Optimisers, StepsByHand) {
  Tensor p = tensor({1.0}).set_requires_grad();
  optim::SGD sgd({p}, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.5});
  (p * 2).sum().backward();
  sgd.step();  // v = 2 + 0.5 * 1 = 2.5, p = 1 - 0.25
  EXPECT_DOUBLE_EQ(p.item(), 0.75);
  sgd.step();  // v = 0.9 * 2.5 + 2 + 0.5 * 0.75 = 4.625
  EXPECT_DOUBLE_EQ(p.item(), 0.75 - 0.4625);
  sgd.zero_grad();
  sgd.step();
  EXPECT_DOUBLE_EQ(p.item(), 0.75 - 0.4625) << "no gradient, no step";

  Tensor q = tensor({1.0}).set_requires_grad();
  optim::Adam adam({q}, {.lr = 0.1, .eps = 0});
  (q * 3).sum().backward();
  adam.step();  // the first step is lr in the direction of the gradient, whatever its size
  EXPECT_NEAR(q.item(), 0.9, 1e-15);
  q.zero_grad();
  (q * -1).sum().backward();
  adam.step();
  // m = 0.9*0.3 - 0.1 = 0.17, over 1 - 0.81; s = 0.999*0.009 + 0.001 = 0.009991, over 1 - 0.998001
  EXPECT_NEAR(q.item(), 0.9 - 0.1 * (0.17 / 0.19) / std::sqrt(0.009991 / 0.001999), 1e-13);
}

TEST(Optimisers, LearnASmallTask) {
  // Is the bright pixel in the upper or in the lower half? Convolution, pooling and a linear layer find out.
  const nn::Sequential network(
      nn::Conv2d({.in_channels = 1, .out_channels = 4, .kernel_size = 3, .padding = 1, .seed = 1}), nn::ReLU(),
      nn::MaxPool2d({.kernel_size = 2}), nn::Flatten(), nn::Linear({.in_features = 64, .out_features = 2, .seed = 2}));
  Tensor images = zeros({64, 1, 8, 8});
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < 64; ++i) {
    images.at<float>({i, 0, i / 8, i % 8}) = 3;
    labels.push_back(i / 8 < 4 ? 0 : 1);
  }
  const Tensor targets = tensor(labels, {64});
  optim::Adam adam(network.parameters(), {.lr = 0.01});
  double first = 0, last = 0;
  for (int step = 0; step < 60; ++step) {
    adam.zero_grad();
    const Tensor loss = F::cross_entropy(network(images), targets);
    loss.backward();
    adam.step();
    last = loss.item();
    if (step == 0) first = last;
  }
  EXPECT_GT(first, 0.5);
  EXPECT_LT(last, 0.05);
}

}  // namespace
}  // namespace cenote::test
