// One classifier for pictures of any size: adaptive pooling to 1x1 gives the linear layer the same number of features whatever
// came in. Trained on 24x24 only, used on everything from 12x40 to 72x72.
//
//   cenote-global-pooling [--short] [FOLDER]    FOLDER gets a picture: test pictures, framed green where it is right
#include "common.hpp"
#include "picture.hpp"
#include "stripes.hpp"

#include <cenote/cenote.hpp>
#include <cenote/layers.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>

namespace {

using cenote::Tensor;
namespace nn = cenote::nn;
namespace F = cenote::functional;

struct Size {
  std::int64_t height, width;
};
constexpr Size kSizes[] = {{24, 24}, {16, 16}, {12, 40}, {56, 20}, {33, 47}, {72, 72}};

int show(const example::Arguments& arguments) {
  const nn::Sequential network(
      nn::Conv2d({.in_channels = 3, .out_channels = 16, .kernel_size = 5, .padding = 2, .seed = 1}),
      nn::ReLU(),                         //
      nn::MaxPool2d({.kernel_size = 2}),  //
      nn::Conv2d({.in_channels = 16, .out_channels = 24, .kernel_size = 3, .padding = 1, .seed = 2}),
      nn::ReLU(),                                 //
      nn::AdaptiveAvgPool2d({.output_size = 1}),  // any height and width in, 1x1 out
      nn::Flatten(),                              //
      nn::Linear({.in_features = 24, .out_features = example::kDirections, .seed = 3}));
  std::cout << network << "\n\n";

  example::Random random(5);
  cenote::optim::Adam optimizer(network.parameters(), {.lr = 1e-2});
  const int steps = arguments.brief ? 60 : 250;
  for (int step = 1; step <= steps; ++step) {
    const example::Stripes batch = draw_stripes(16, 24, 24, random);
    optimizer.zero_grad();
    const Tensor loss = F::cross_entropy(network(batch.images), batch.labels);
    loss.backward();
    optimizer.step();
    if (step % (steps / 5) == 0) std::printf("step %3d, 24x24 only: loss %.4f\n", step, loss.item());
  }

  const cenote::NoGradGuard no_tape;
  constexpr int kShown = 3;
  example::Picture sheet(8 + kShown * 160, 8 + 84 * static_cast<std::int64_t>(std::size(kSizes)) / 2);
  std::printf("\n%8s  %-18s %s\n", "picture", "before the pool", "right");
  bool learnt = true;
  std::int64_t cell = 0;
  for (const auto& [height, width] : kSizes) {
    const example::Stripes test = draw_stripes(arguments.brief ? 40 : 200, height, width, random);
    const Tensor scores = network(test.images);
    const double right = example::accuracy(scores, test.labels);
    Tensor features = test.images.narrow(0, 0, 1);
    for (std::size_t i = 0; i < 5; ++i) features = network[i](features);
    std::printf("%4lldx%-3lld  %-18s %5.1f%%\n", static_cast<long long>(height), static_cast<long long>(width),
                to_string(features.shape()).c_str(), 100 * right);
    learnt = learnt && right > (arguments.brief ? 0.6 : 0.85);

    const std::vector<int> guessed = example::guesses(scores);
    for (std::int64_t n = 0; n < kShown; ++n, ++cell) {
      const std::int64_t x = 8 + 80 * (cell % (2 * kShown)), y = 8 + 84 * (cell / (2 * kShown));
      const bool good = guessed[static_cast<std::size_t>(n)] == test.labels.at<std::int64_t>({n});
      sheet.fill(x, y, width + 4, height + 4, good ? example::kGood : example::kBad);
      sheet.paste(test.images[n] * 0.5 + 0.5, x + 2, y + 2, 1);
    }
  }
  if (!arguments.folder.empty()) {
    std::cout << "\nPictures of every size: " << sheet.write(arguments.folder / "global_pooling").string() << "\n";
  }
  if (!learnt) std::cerr << "It has not learnt.\n";
  return learnt ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return example::run(argc, argv, show); }
