// Records what PyTorch computes for the small network of recorded_test.cpp, line by line: a name, then numbers.
//
//   g++ -std=c++17 record_layers.cpp -I/usr/include/torch/csrc/api/include -ltorch -ltorch_cpu -lc10 -o record_layers
//   ./record_layers > layers_recorded.txt
//
// Not a part of the build: layers_recorded.txt is what counts.
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace F = torch::nn::functional;

namespace {

torch::Tensor wave(std::vector<std::int64_t> shape, double frequency, bool learns) {
  torch::Tensor t = torch::empty(shape, torch::kF64);
  for (std::int64_t i = 0; i < t.numel(); ++i)
    t.data_ptr<double>()[i] = 0.5 * std::sin(frequency * static_cast<double>(i + 1));
  return t.set_requires_grad(learns);
}

void print(const std::string& name, const torch::Tensor& t) {
  std::printf("%s", name.c_str());
  const torch::Tensor flat = t.detach().contiguous();
  for (std::int64_t i = 0; i < flat.numel(); ++i) std::printf(" %.17g", flat.data_ptr<double>()[i]);
  std::printf("\n");
}

void record(const std::string& name, bool adam) {
  const torch::Tensor x = wave({3, 2, 7, 8}, 1.3, false), target = torch::tensor({2, 0, 3}, torch::kI64);
  std::vector<torch::Tensor> p = {wave({3, 2, 3, 2}, 0.7, true), wave({3}, 0.9, true), wave({4, 24}, 1.1, true),
                                  wave({4}, 0.3, true)};
  std::unique_ptr<torch::optim::Optimizer> optimiser;
  if (adam)
    optimiser = std::make_unique<torch::optim::Adam>(p, torch::optim::AdamOptions(0.05).weight_decay(0.01));
  else
    optimiser = std::make_unique<torch::optim::SGD>(p, torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01));
  std::vector<double> losses;
  for (int step = 0; step < 6; ++step) {
    optimiser->zero_grad();
    torch::Tensor y = F::conv2d(x, p[0], F::Conv2dFuncOptions().bias(p[1]).stride({2, 1}).padding({1, 1}));
    y = F::max_pool2d(torch::relu(y), F::MaxPool2dFuncOptions(2)).flatten(1);
    y = torch::linear(y, p[2], p[3]);
    const torch::Tensor loss = F::cross_entropy(y, target) + F::mse_loss(y, torch::ones_like(y)) * 0.5;
    loss.backward();
    if (step == 0 && !adam) {
      print("output", y);
      for (std::size_t i = 0; i < p.size(); ++i) print("gradient" + std::to_string(i), p[i].grad());
    }
    losses.push_back(loss.item<double>());
    optimiser->step();
  }
  print(name + ".losses", torch::tensor(losses, torch::kF64));
  for (std::size_t i = 0; i < p.size(); ++i) print(name + ".parameter" + std::to_string(i), p[i]);
}

}  // namespace

int main() {
  record("sgd", false);
  record("adam", true);
}
