// What are max pooling's indices worth? Two autoencoders, alike in everything but the way back up: one unpools with the indices
// that its pools kept (as SegNet does), the other repeats each element 2x2 and must guess where things were.
//
//   cenote-encoder-decoder [--short] [FOLDER]    FOLDER gets the loss curves (SVG) and a contact sheet
#include "common.hpp"
#include "picture.hpp"

#include <cenote/cenote.hpp>
#include <cenote/layers.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <numbers>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using cenote::Tensor;
namespace nn = cenote::nn;
namespace F = cenote::functional;

constexpr std::int64_t kSize = 32;
constexpr std::int64_t kFeatures = 16;
constexpr int kLevels = 2;  // 32 -> 16 -> 8 and back

enum class Upsampling { indices, nearest };

/// Every element becomes a 2x2 block: views and one copy, so the tape carries the gradient back.
Tensor repeat_2x2(const Tensor& x) {
  const std::int64_t n = x.size(0), c = x.size(1), h = x.size(2), w = x.size(3);
  return x.reshape({n, c, h, 1, w, 1}).expand({n, c, h, 2, w, 2}).reshape({n, c, 2 * h, 2 * w});
}

class Autoencoder final : public nn::Layer {
 public:
  explicit Autoencoder(Upsampling upsampling)
      : upsampling_(upsampling), pool_({.kernel_size = 2}), unpool_({.kernel_size = 2}) {
    for (int level = 0; level < kLevels; ++level) {
      encoder_.push_back(convolution(level == 0 ? 3 : kFeatures, kFeatures));
      decoder_.push_back(convolution(kFeatures, level == kLevels - 1 ? 3 : kFeatures));
    }
  }

  Tensor forward(const Tensor& pictures) const override {
    Tensor x = pictures;
    std::vector<Tensor> kept;
    for (const nn::Conv2d& convolution : encoder_) {
      auto [pooled, indices] = pool_.forward_with_indices(F::relu(convolution(x)));
      x = pooled;
      kept.push_back(indices);
    }
    for (const nn::Conv2d& convolution : decoder_) {
      x = upsampling_ == Upsampling::indices ? unpool_(x, kept.back()) : repeat_2x2(x);
      kept.pop_back();
      x = convolution(x);
      if (&convolution != &decoder_.back()) x = F::relu(x);
    }
    return x;
  }

  std::string name() const override { return "Autoencoder"; }
  std::vector<std::pair<std::string, const nn::Module*>> children() const override {
    std::vector<std::pair<std::string, const nn::Module*>> parts;
    for (const nn::Conv2d& one : encoder_) parts.emplace_back("encoder" + std::to_string(parts.size()), &one);
    parts.emplace_back("pool", &pool_);
    if (upsampling_ == Upsampling::indices) parts.emplace_back("unpool", &unpool_);
    for (const nn::Conv2d& one : decoder_) parts.emplace_back("decoder" + std::to_string(&one - decoder_.data()), &one);
    return parts;
  }

 private:
  nn::Conv2d convolution(std::int64_t from, std::int64_t to) {
    return nn::Conv2d({.in_channels = from, .out_channels = to, .kernel_size = 3, .padding = 1, .seed = seed_++});
  }

  Upsampling upsampling_;
  std::uint64_t seed_ = 1;  // both networks start from the same weights
  nn::MaxPool2d pool_;
  nn::MaxUnpool2d unpool_;
  std::vector<nn::Conv2d> encoder_, decoder_;
};

/// Two lines and two rings in any bright colours on a dark ground: what they are is nearly all where they are.
Tensor draw_pictures(std::int64_t count, example::Random& random) {
  struct Stroke {
    bool ring;
    float x, y, radius, cosine, sine;
    std::array<float, 3> colour;
  };
  constexpr auto kEdge = static_cast<float>(kSize);
  Tensor pictures = cenote::full({count, 3, kSize, kSize}, 0.05);
  for (std::int64_t n = 0; n < count; ++n) {
    for (int i = 0; i < 4; ++i) {
      Stroke stroke{};
      stroke.ring = i % 2 == 1;
      stroke.x = random.uniform(4, kEdge - 4);
      stroke.y = random.uniform(4, kEdge - 4);
      stroke.radius = random.uniform(3, 9);
      const float angle = random.uniform(0, std::numbers::pi_v<float>);
      stroke.cosine = std::cos(angle);
      stroke.sine = std::sin(angle);
      for (float& level : stroke.colour) level = random.uniform(0.3f, 1);
      for (std::int64_t y = 0; y < kSize; ++y) {
        for (std::int64_t x = 0; x < kSize; ++x) {
          const float dx = static_cast<float>(x) - stroke.x, dy = static_cast<float>(y) - stroke.y;
          const float off = stroke.ring ? std::hypot(dx, dy) - stroke.radius : dx * stroke.cosine + dy * stroke.sine;
          if (std::abs(off) >= 1) continue;
          for (std::size_t c = 0; c < 3; ++c) pictures.at<float>({n, std::int64_t(c), y, x}) = stroke.colour[c];
        }
      }
    }
  }
  return pictures;
}

/// On a terminal only, and on stderr: what is piped stays clean.
void show_progress(const char* what, int done, int all, double loss) {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  if (!terminal) return;
  constexpr int kWidth = 32;
  const int filled = kWidth * done / all;
  std::fprintf(stderr, "\r%-16s [%s%s] %d/%d  loss %.4f", what, std::string(filled, '#').c_str(),
               std::string(kWidth - filled, '.').c_str(), done, all, loss);
  if (done == all) std::fprintf(stderr, "\n");
}

/// Returns the loss of every step.
std::vector<double> train(const Autoencoder& network, const char* what, int steps) {
  cenote::optim::Adam optimizer(network.parameters(), {.lr = 5e-3});
  example::Random random(1);  // the same pictures for both
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    optimizer.options.lr = 5e-3 * (1 - 0.9 * step / steps);
    const Tensor pictures = draw_pictures(4, random);
    optimizer.zero_grad();
    const Tensor loss = F::mse_loss(network(pictures), pictures);
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item());
    show_progress(what, step + 1, steps, losses.back());
  }
  return losses;
}

/// Both curves, smoothed, over a logarithmic axis.
void write_curves(const std::filesystem::path& path, const std::vector<double>& with,
                  const std::vector<double>& without) {
  constexpr double kWidth = 640, kHeight = 320, kLeft = 64, kTop = 44, kRight = 616, kBottom = 272;
  const double high = 0, low = -3;  // powers of ten
  const auto x_of = [&](std::size_t step) { return kLeft + (kRight - kLeft) * double(step) / double(with.size() - 1); };
  const auto y_of = [&](double loss) {
    return kTop + (kBottom - kTop) * (high - std::clamp(std::log10(loss), low, high)) / (high - low);
  };
  std::ofstream svg(path);
  svg << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << kWidth << " " << kHeight
      << "\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#333\">\n"
      << "<rect width=\"100%\" height=\"100%\" fill=\"#fafaf7\"/>\n"
      << "<text x=\"" << kLeft << "\" y=\"26\" font-size=\"15\">Mean squared error while training</text>\n";
  for (int power = 0; power >= -3; --power) {
    const double y = y_of(std::pow(10.0, power));
    svg << "<line x1=\"" << kLeft << "\" x2=\"" << kRight << "\" y1=\"" << y << "\" y2=\"" << y
        << "\" stroke=\"#ddd\"/>\n"
        << "<text x=\"" << kLeft - 8 << "\" y=\"" << y + 4 << "\" text-anchor=\"end\">" << std::pow(10.0, power)
        << "</text>\n";
  }
  svg << "<text x=\"" << kLeft << "\" y=\"292\">1</text><text x=\"" << kRight
      << "\" y=\"292\" text-anchor=\"end\">step " << with.size() << "</text>\n";
  const auto draw = [&](const std::vector<double>& losses, const char* colour, const char* label, double label_y) {
    svg << "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" << colour << "\" points=\"";
    double smooth = losses[0];
    for (std::size_t step = 0; step < losses.size(); ++step) {
      smooth += 0.15 * (losses[step] - smooth);
      svg << std::round(10 * x_of(step)) / 10 << "," << std::round(10 * y_of(smooth)) / 10 << " ";
    }
    svg << "\"/>\n<text x=\"" << kRight << "\" y=\"" << label_y << "\" text-anchor=\"end\" fill=\"" << colour << "\">"
        << label << "</text>\n";
  };
  draw(without, "#c0504d", "without indices: nearest upsampling", 62);
  draw(with, "#1f77a4", "with indices: max unpooling", 82);
  svg << "</svg>\n";
  if (!svg.flush()) throw std::runtime_error(path.string() + ": cannot be written");
}

int show(const example::Arguments& arguments) {
  const Autoencoder with(Upsampling::indices), without(Upsampling::nearest);
  std::cout << with << "\n\n";

  const int steps = arguments.brief ? 80 : 800;
  const std::vector<double> losses_with = train(with, "with indices", steps);
  const std::vector<double> losses_without = train(without, "without indices", steps);

  const cenote::NoGradGuard no_tape;
  example::Random random(1000);
  const Tensor unseen = draw_pictures(arguments.brief ? 8 : 64, random);
  const Tensor rebuilt_with = with(unseen), rebuilt_without = without(unseen);
  const double error_with = F::mse_loss(rebuilt_with, unseen).item();
  const double error_without = F::mse_loss(rebuilt_without, unseen).item();
  std::printf("mean squared error on pictures it has not seen, after %d steps:\n", steps);
  std::printf("  with indices     %.5f  (first step: %.5f)\n", error_with, losses_with.front());
  std::printf("  without indices  %.5f  (first step: %.5f)\n", error_without, losses_without.front());
  std::printf("The indices make it %.1f times smaller.\n", error_without / error_with);

  if (!arguments.folder.empty()) {
    constexpr std::int64_t kColumns = 8, kScale = 3, kStep = kSize * kScale + 6;
    example::Picture sheet(kColumns * kStep + 6, 3 * kStep + 6);
    const Tensor* rows[] = {&unseen, &rebuilt_with, &rebuilt_without};
    for (std::int64_t row = 0; row < 3; ++row) {
      for (std::int64_t n = 0; n < kColumns; ++n) {
        sheet.paste((*rows[row])[n], 6 + n * kStep, 6 + row * kStep, kScale);
      }
    }
    const std::filesystem::path curves = arguments.folder / "encoder_decoder_loss.svg";
    write_curves(curves, losses_with, losses_without);
    std::cout << "\nInput, with indices, without: " << sheet.write(arguments.folder / "encoder_decoder").string()
              << "\nLoss: " << curves.string() << "\n";
  }
  const bool learnt = error_with < 0.5 * losses_with.front() && error_with < error_without;
  if (!learnt) std::cerr << "The indices have not helped.\n";
  return learnt ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return example::run(argc, argv, show); }
