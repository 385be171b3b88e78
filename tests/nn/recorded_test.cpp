// A small network through both optimisers, against what PyTorch computes for it (layers_recorded.txt, from record_layers.cpp).
#include <cenote/layers.hpp>

#include "expect.hpp"

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace cenote::test {
namespace {

namespace F = functional;

std::map<std::string, std::vector<double>> read_recording() {
  std::map<std::string, std::vector<double>> lines;
  std::ifstream file(CENOTE_LAYERS_RECORDED);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    for (double value = 0; words >> value;) lines[name].push_back(value);
  }
  return lines;
}

Tensor wave(const Shape& shape, double frequency, bool learns) {
  Tensor t = zeros(shape, {.dtype = DType::f64});
  double i = 0;
  for (double& value : t.span<double>()) value = 0.5 * std::sin(frequency * ++i);
  return learns ? t.set_requires_grad() : t;
}

/// Both compute in f64 and add in different orders: 1e-12 is some thousand units in the last place.
void expect_recorded(const Tensor& got, const std::vector<double>& expected, const std::string& what) {
  const std::vector<double> values = got.to_vector();
  ASSERT_EQ(values.size(), expected.size()) << what;
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-12) << what << "[" << i << "]";
}

template <class Optimiser, class Options>
void replay(const std::string& name, const Options& options) {
  const auto recorded = read_recording();
  ASSERT_EQ(recorded.size(), 15U);
  const Tensor x = wave({3, 2, 7, 8}, 1.3, false), target = tensor<std::int64_t>({2, 0, 3});
  const std::vector<Tensor> p = {wave({3, 2, 3, 2}, 0.7, true), wave({3}, 0.9, true), wave({4, 24}, 1.1, true),
                                 wave({4}, 0.3, true)};
  Optimiser optimiser(p, options);
  std::vector<double> losses;
  for (int step = 0; step < 6; ++step) {
    optimiser.zero_grad();
    Tensor y = F::conv2d(x, p[0], p[1], {.stride = {2, 1}, .padding = {1, 1}});
    y = F::max_pool2d(F::relu(y), {.kernel_size = 2}).flatten(1);
    y = F::linear(y, p[2], p[3]);
    const Tensor loss = F::cross_entropy(y, target) + F::mse_loss(y, ones(y.shape(), {.dtype = DType::f64})) * 0.5;
    loss.backward();
    if (step == 0) {
      expect_recorded(y, recorded.at("output"), "output");
      for (std::size_t i = 0; i < p.size(); ++i) {
        const std::string line = "gradient" + std::to_string(i);
        expect_recorded(p[i].grad(), recorded.at(line), line);
      }
    }
    losses.push_back(loss.item());
    optimiser.step();
  }
  expect_recorded(tensor(losses, {6}), recorded.at(name + ".losses"), name + ".losses");
  for (std::size_t i = 0; i < p.size(); ++i) {
    const std::string line = name + ".parameter" + std::to_string(i);
    expect_recorded(p[i], recorded.at(line), line);
  }
}

TEST(Recorded, NetworkWithSgd) {
  replay<optim::SGD>("sgd", optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01});
}
TEST(Recorded, NetworkWithAdam) { replay<optim::Adam>("adam", optim::AdamOptions{.lr = 0.05, .weight_decay = 0.01}); }

}  // namespace
}  // namespace cenote::test
