// The network everybody starts with: convolution, ReLU, pool, twice, and a linear layer. 32x32 -> 16x16 -> 8x8.
// Shows the shape after each step, then learns to tell which way stripes run.
//
//   cenote-simple-cnn [--short] [FOLDER]    FOLDER gets a picture of what each pool leaves
#include "common.hpp"
#include "picture.hpp"
#include "stripes.hpp"

#include <cenote/cenote.hpp>
#include <cenote/layers.hpp>

#include <cstdio>
#include <iostream>

namespace {

using cenote::Tensor;
namespace nn = cenote::nn;
namespace F = cenote::functional;

nn::Sequential make_network() {
  return nn::Sequential(nn::Conv2d({.in_channels = 3, .out_channels = 32, .kernel_size = 3, .padding = 1, .seed = 1}),
                        nn::ReLU(),                         //
                        nn::MaxPool2d({.kernel_size = 2}),  //
                        nn::Conv2d({.in_channels = 32, .out_channels = 64, .kernel_size = 3, .padding = 1, .seed = 2}),
                        nn::ReLU(),                         //
                        nn::MaxPool2d({.kernel_size = 2}),  //
                        nn::Flatten(),                      //
                        nn::Linear({.in_features = 64 * 8 * 8, .out_features = example::kDirections, .seed = 3}));
}

void print_shapes(const nn::Sequential& network, const Tensor& input) {
  std::printf("%-12s %s\n", "input", to_string(input.shape()).c_str());
  Tensor x = input;
  for (std::size_t i = 0; i < network.size(); ++i) {
    x = network[i](x);
    std::printf("%-12s %s\n", network[i].name().c_str(), to_string(x.shape()).c_str());
  }
}

/// One row for a picture of each class: the picture, then the first channels after each pool, brightened to their maximum.
std::filesystem::path draw_features(const nn::Sequential& network, const std::filesystem::path& folder) {
  constexpr int kChannels = 8;
  constexpr int kCell = 64 + 8;
  example::Picture sheet(kCell * (1 + 2 * kChannels) + 24, kCell * example::kDirections + 8);
  example::Random random(99);
  for (int label = 0; label < example::kDirections;) {
    const example::Stripes one = draw_stripes(1, 32, 32, random);
    if (one.labels.at<std::int64_t>({0}) != label) continue;
    const int y = 8 + kCell * label++;
    sheet.paste(one.images[0] * 0.5 + 0.5, 8, y, 2);
    Tensor x = one.images;
    int left = 8 + kCell + 8;
    for (std::size_t i = 0; i < 6; ++i) {
      x = network[i](x);
      if (network[i].name() != "MaxPool2d") continue;
      const double brightest = F::global_max_pool3d(x).item();  // one window: all channels and the whole plane
      for (int channel = 0; channel < kChannels; ++channel) {
        sheet.paste(x[0].narrow(0, channel, 1) / brightest, left, y, 64 / x.size(3));
        left += kCell;
      }
      left += 8;
    }
  }
  return sheet.write(folder / "simple_cnn");
}

int show(const example::Arguments& arguments) {
  const nn::Sequential network = make_network();
  std::cout << network << "\n\n";

  example::Random random(2024);
  const example::Stripes test = draw_stripes(arguments.brief ? 64 : 256, 32, 32, random);
  print_shapes(network, test.images.narrow(0, 0, 1));

  cenote::optim::Adam optimizer(network.parameters(), {.lr = 1e-3});
  const int steps = arguments.brief ? 20 : 50;
  double first_loss = 0, loss = 0, right = 0;
  std::printf("\n%6s  %8s  %s\n", "step", "loss", "accuracy on pictures it has not seen");
  for (int step = 0; step <= steps; ++step) {
    if (step % (steps / 5) == 0) {
      const cenote::NoGradGuard no_tape;
      const Tensor scores = network(test.images);
      loss = F::cross_entropy(scores, test.labels).item();
      right = example::accuracy(scores, test.labels);
      if (step == 0) first_loss = loss;
      std::printf("%6d  %8.4f  %5.1f%%\n", step, loss, 100 * right);
      std::fflush(stdout);
    }
    const example::Stripes batch = draw_stripes(16, 32, 32, random);
    optimizer.zero_grad();
    F::cross_entropy(network(batch.images), batch.labels).backward();
    optimizer.step();
  }

  if (!arguments.folder.empty()) {
    const cenote::NoGradGuard no_tape;
    std::cout << "\nWhat the pools leave: " << draw_features(network, arguments.folder).string() << "\n";
  }
  const bool learnt = loss < 0.7 * first_loss && right > (arguments.brief ? 0.6 : 0.9);
  if (!learnt) std::cerr << "It has not learnt.\n";
  return learnt ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return example::run(argc, argv, show); }
