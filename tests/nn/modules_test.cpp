// Modules: printed forms as PyTorch's, calls that equal the functions', constructors' refusals.
#include "expect.hpp"

#include <cenote/nn.hpp>

#include <sstream>

namespace cenote::test {
namespace {

TEST(Modules, PrintAsPyTorch) {
  using namespace nn;
  const std::pair<std::string, const char*> cases[] = {
      {to_string(nn::MaxPool2d({.kernel_size = 2})),
       "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)"},
      {to_string(nn::MaxPool2d({.kernel_size = {3, 2}, .stride = {2, 1}, .padding = {1, 0}, .ceil_mode = true})),
       "MaxPool2d(kernel_size=(3, 2), stride=(2, 1), padding=(1, 0), dilation=1, ceil_mode=True)"},
      {to_string(nn::MaxPool1d({.kernel_size = 3, .stride = 2})),
       "MaxPool1d(kernel_size=3, stride=2, padding=0, dilation=1, ceil_mode=False)"},
      {to_string(nn::MaxPool3d({.kernel_size = 3, .dilation = {1, 2, 1}})),
       "MaxPool3d(kernel_size=3, stride=3, padding=0, dilation=(1, 2, 1), ceil_mode=False)"},
      {to_string(nn::MaxUnpool2d({.kernel_size = 2})),
       "MaxUnpool2d(kernel_size=(2, 2), stride=(2, 2), padding=(0, 0))"},
      {to_string(nn::MaxUnpool1d({.kernel_size = 3, .stride = 2, .padding = 1})),
       "MaxUnpool1d(kernel_size=(3,), stride=(2,), padding=(1,))"},
      {to_string(nn::MaxUnpool3d({.kernel_size = {1, 2, 3}})),
       "MaxUnpool3d(kernel_size=(1, 2, 3), stride=(1, 2, 3), padding=(0, 0, 0))"},
      {to_string(nn::AvgPool1d({.kernel_size = 3, .stride = 2})),
       "AvgPool1d(kernel_size=(3,), stride=(2,), padding=(0,))"},
      {to_string(nn::AvgPool2d({.kernel_size = 3, .stride = 2, .padding = 1})),
       "AvgPool2d(kernel_size=3, stride=2, padding=1)"},
      {to_string(nn::AvgPool3d({.kernel_size = {3, 2, 2}})),
       "AvgPool3d(kernel_size=(3, 2, 2), stride=(3, 2, 2), padding=0)"},
      {to_string(nn::LPPool2d({.norm_type = 2, .kernel_size = 3})),
       "LPPool2d(norm_type=2, kernel_size=3, stride=None, ceil_mode=False)"},
      {to_string(nn::LPPool1d({.norm_type = 1.5, .kernel_size = 3, .stride = 2, .ceil_mode = true})),
       "LPPool1d(norm_type=1.5, kernel_size=3, stride=2, ceil_mode=True)"},
      {to_string(nn::LPPool3d({.norm_type = INFINITY, .kernel_size = {3, 2, 1}})),
       "LPPool3d(norm_type=inf, kernel_size=(3, 2, 1), stride=None, ceil_mode=False)"},
      {to_string(nn::AdaptiveMaxPool1d({.output_size = 5})), "AdaptiveMaxPool1d(output_size=5)"},
      {to_string(nn::AdaptiveMaxPool2d({.output_size = {5, keep}})), "AdaptiveMaxPool2d(output_size=(5, None))"},
      {to_string(nn::AdaptiveAvgPool2d({.output_size = {5, 7}})), "AdaptiveAvgPool2d(output_size=(5, 7))"},
      {to_string(nn::AdaptiveAvgPool3d({.output_size = 1})), "AdaptiveAvgPool3d(output_size=1)"},
      {to_string(nn::FractionalMaxPool2d({.kernel_size = 3, .output_size = 4})), "FractionalMaxPool2d()"},
      {to_string(nn::MinPool2d({.kernel_size = 2, .padding = Padding<2>::same_upper()})),
       "MinPool2d(kernel_size=2, stride=2, padding='same_upper', dilation=1, ceil_mode=False)"},
      {to_string(nn::SumPool1d({.kernel_size = 2, .padding = Padding<1>::asymmetric(0, 1)})),
       "SumPool1d(kernel_size=2, stride=2, padding=(0, 1))"},
  };
  for (const auto& [printed, expected] : cases) EXPECT_EQ(printed, expected);
  std::ostringstream stream;
  stream << nn::AvgPool2d({.kernel_size = 2});
  EXPECT_EQ(stream.str(), "AvgPool2d(kernel_size=2, stride=2, padding=0)");
}

TEST(Modules, ComputeWhatTheFunctionsDo) {
  const Tensor x = randn({2, 3, 9, 9}, {.seed = 1});
  EXPECT_TRUE(equal(nn::MaxPool2d({.kernel_size = 3, .stride = 2})(x),
                    functional::max_pool2d(x, {.kernel_size = 3, .stride = 2})));
  EXPECT_TRUE(equal(nn::AvgPool2d({.kernel_size = 3, .padding = 1})(x),
                    functional::avg_pool2d(x, {.kernel_size = 3, .padding = 1})));
  EXPECT_TRUE(equal(nn::LPPool2d({.norm_type = 2, .kernel_size = 3}).forward(x),
                    functional::lp_pool2d(x, {.norm_type = 2, .kernel_size = 3})));
  EXPECT_TRUE(
      equal(nn::AdaptiveAvgPool2d({.output_size = 4})(x), functional::adaptive_avg_pool2d(x, {.output_size = 4})));
  const nn::MaxPool2d pool({.kernel_size = 2, .return_indices = true});
  const auto [values, indices] = pool.forward_with_indices(x);
  const nn::MaxUnpool2d unpool({.kernel_size = 2});
  EXPECT_THROW(unpool(values, indices), Error) << "indices into 9 x 9 do not fit the inferred 8 x 8";
  const Tensor restored = unpool(values, indices, {2, 3, 9, 9});
  EXPECT_TRUE(equal(functional::max_pool2d(restored * restored, {.kernel_size = 2}), values * values));
  expect_refused([&] { pool(x); }, "return_indices", "forward_with_indices");
  const nn::Layer& layer = pool;
  EXPECT_TRUE(layer.parameters().empty());
}

TEST(Modules, FractionalDrawsAnewAtEachCall) {
  const Tensor x = randn({1, 4, 16, 16}, {.seed = 2});
  const FractionalMaxPool<2> options{.kernel_size = 2, .output_ratio = 0.6, .seed = 40};
  const nn::FractionalMaxPool2d pool(options);
  const Tensor first = pool(x), second = pool(x);
  EXPECT_EQ(to_list(first.shape()), (std::vector<std::int64_t>{1, 4, 9, 9}));
  EXPECT_FALSE(equal(first, second));
  const nn::FractionalMaxPool2d again(options);
  EXPECT_TRUE(equal(again(x), first)) << "the same seed, the same sequence of draws";
  EXPECT_TRUE(equal(again(x), second));
  const nn::FractionalMaxPool2d copy = again;
  EXPECT_TRUE(equal(copy(x), again(x))) << "a copy goes on where the original is";
}

TEST(Modules, FractionalConstructorRefuses) {
  expect_refused([] { nn::FractionalMaxPool2d({.kernel_size = 2}); }, "output_size", "neither");
  expect_refused([] { nn::FractionalMaxPool2d({.kernel_size = 2, .output_size = 3, .output_ratio = 0.5}); },
                 "output_size", "both");
  expect_refused([] { nn::FractionalMaxPool2d({.kernel_size = 2, .output_ratio = 1.0}); }, "output_ratio");
  expect_refused([] { nn::FractionalMaxPool2d({.kernel_size = 2, .output_ratio = {0.5, 0.0}}); }, "output_ratio");
  expect_refused([] { nn::FractionalMaxPool3d({.kernel_size = 2, .output_ratio = {0.5, 0.5, NAN}}); }, "output_ratio");
  expect_refused([] { nn::FractionalMaxPool3d({.kernel_size = {2, 0, 2}, .output_ratio = 0.5}); }, "kernel_size");
}

TEST(Modules, TreesPrintIndentedAndCollectParameters) {
  struct Scale final : nn::Layer {
    Tensor factor = scalar(2, {.requires_grad = true});
    std::string name() const override { return "Scale"; }
    std::vector<Tensor> parameters() const override { return {factor}; }
    Tensor forward(const Tensor& input) const override { return input * factor; }
  };
  struct Pair final : nn::Layer {
    Scale scale;
    nn::MaxPool1d pool{nn::MaxPool1d({.kernel_size = 2})};
    std::string name() const override { return "Pair"; }
    std::vector<std::pair<std::string, const nn::Module*>> children() const override {
      return {{"scale", &scale}, {"pool", &pool}};
    }
    Tensor forward(const Tensor& input) const override { return pool(scale(input)); }
  };
  const Pair pair;
  EXPECT_EQ(to_string(pair),
            "Pair(\n  (scale): Scale()\n  (pool): MaxPool1d(kernel_size=2, stride=2, padding=0, dilation=1, "
            "ceil_mode=False)\n)");
  ASSERT_EQ(pair.parameters().size(), 1U);
  pair(tensor<float>({1, 5, 3, 2}, {1, 4})).sum().backward();
  EXPECT_EQ(pair.parameters()[0].grad().item(), 8);
  pair.zero_grad();
  EXPECT_FALSE(pair.parameters()[0].grad().defined());
}

}  // namespace
}  // namespace cenote::test
