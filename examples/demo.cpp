// What pooling does, on inputs small enough to follow by eye: input, output, indices, gradient, side by side.
#include <cenote/cenote.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

namespace {

using cenote::Tensor;

/// A titled grid of numbers, ready to stand beside others: one section of lines for each channel.
struct Block {
  std::string title;
  std::vector<std::vector<std::string>> sections;
  std::size_t width = 0;
};

std::string number(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

/// As many decimals as all the numbers need, four at most.
int decimals_of(const std::vector<double>& values) {
  int decimals = 0;
  for (const double value : values) {
    while (decimals < 4 && std::stod(number(value, decimals)) != value) ++decimals;
  }
  return decimals;
}

/// A (channels, height, width) tensor.
Block block(const std::string& title, const Tensor& planes) {
  Block result{.title = title, .sections = {}, .width = title.size()};
  const int decimals = decimals_of(planes.to_vector());
  std::size_t column = 0;
  for (const double value : planes.to_vector()) column = std::max(column, number(value, decimals).size());
  for (std::int64_t channel = 0; channel < planes.size(0); ++channel) {
    auto& lines = result.sections.emplace_back();
    for (std::int64_t y = 0; y < planes.size(1); ++y) {
      std::string& line = lines.emplace_back();
      for (const double value : planes[channel][y].to_vector()) {
        const std::string text = number(value, decimals);
        line += std::string(column - text.size() + (line.empty() ? 0 : 2), ' ') + text;
      }
      result.width = std::max(result.width, line.size());
    }
  }
  return result;
}

/// One line across all blocks.
template <class Text>
void print_line(const std::vector<Block>& blocks, const Text& text_of) {
  std::string line = "  ";
  for (const Block& one : blocks) {
    const std::string text = text_of(one);
    line += "  " + text + std::string(one.width - text.size() + 2, ' ');
  }
  line.erase(line.find_last_not_of(' ') + 1);
  std::cout << line << "\n";
}

void print(const std::vector<Block>& blocks) {
  print_line(blocks, [](const Block& one) { return one.title; });
  print_line(blocks, [](const Block& one) { return std::string(one.width, '-'); });
  for (std::size_t section = 0; section < blocks[0].sections.size(); ++section) {
    std::size_t rows = 0;
    for (const Block& one : blocks) rows = std::max(rows, one.sections[section].size());
    for (std::size_t row = 0; row < rows; ++row) {
      print_line(blocks, [&](const Block& one) {
        return row < one.sections[section].size() ? one.sections[section][row] : std::string();
      });
    }
    std::cout << "\n";
  }
}

void heading(const std::string& title, const cenote::nn::Module& module, const std::string& remark) {
  static int count = 0;
  std::cout << ++count << ". " << title << "\n   " << module << "\n   " << remark << "\n\n";
}

/// Max pooling of one image: values, indices in two kinds, and where a gradient of ones goes.
void show_max(const std::string& title, const std::string& remark, Tensor image, const cenote::MaxPool<2>& options) {
  const cenote::nn::MaxPool2d pool(options);
  heading(title, pool, remark);
  image.set_requires_grad();
  const auto [output, indices] = pool.forward_with_indices(image);
  cenote::MaxPool<2> in_window = options;
  in_window.index_kind = cenote::IndexKind::window;
  const Tensor taps = cenote::functional::max_pool2d_with_indices(image.detach(), in_window).second;
  output.sum().backward();
  print({block("input", image), block("output", output), block("indices", indices), block("in window", taps),
         block("gradient", image.grad())});
}

void show_average(const std::string& title, const std::string& remark, Tensor image,
                  const cenote::AvgPool<2>& options) {
  const cenote::nn::AvgPool2d pool(options);
  heading(title, pool, remark);
  image.set_requires_grad();
  const Tensor output = pool(image);
  output.sum().backward();
  print({block("input", image), block("output", output), block("gradient", image.grad())});
}

void show_round_trip(const std::string& title, const std::string& remark, Tensor image) {
  const cenote::nn::MaxPool2d pool({.kernel_size = 2});
  const cenote::nn::MaxUnpool2d unpool({.kernel_size = 2});
  heading(title, unpool, remark);
  image.set_requires_grad();
  const auto [output, indices] = pool.forward_with_indices(image);
  const Tensor restored = unpool(output, indices);
  restored.sum().backward();
  print({block("input", image), block("pooled", output), block("indices", indices), block("unpooled", restored),
         block("gradient", image.grad())});
}

void show_all() {
  const Tensor sixteen = cenote::arange(1, 17).reshape({1, 4, 4});
  const Tensor six = cenote::tensor<float>({1, 3, 2, 4, 6, 8,  //
                                            5, 6, 1, 2, 3, 7,  //
                                            4, 2, 7, 8, 1, 0,  //
                                            3, 5, 9, 4, 2, 1,  //
                                            8, 7, 6, 3, 5, 2,  //
                                            1, 0, 4, 7, 8, 9},
                                           {1, 6, 6});

  std::cout << "cenote: PyTorch's pooling, standalone.\n"
               "Each example: input, output, which input won (counted in its plane, and in its window),\n"
               "and the gradient of the output's sum.\n\n";

  show_max("The numbers 1 to 16", "Indices count through the plane, row by row from 0: the 6 is at 5.", sixteen.clone(),
           {.kernel_size = 2});

  show_max("Overlapping windows, padded",
           "5x5 stays 5x5. A number that wins in several windows collects all their gradients.",
           cenote::arange(1, 26).reshape({1, 5, 5}), {.kernel_size = 3, .stride = 1, .padding = 1});

  Tensor two = cenote::empty({2, 4, 4});
  two[0].copy_from(sixteen[0]);
  two[1].copy_from(17 - sixteen[0]);
  show_max("Two channels", "Channels are pooled on their own, and each counts its indices from 0.", two,
           {.kernel_size = 2});

  show_max("A 6x6 image, maximum", "Each 2x2 block keeps its largest number.", six.clone(), {.kernel_size = 2});
  show_average("The same image, average", "Each 2x2 block becomes its mean, and the gradient spreads evenly.",
               six.clone(), {.kernel_size = 2});

  const Tensor negative = cenote::arange(-9, 0).reshape({1, 3, 3});
  show_max("All negative, padded: maximum", "Padding never wins a maximum: it counts as minus infinity, not as 0.",
           negative.clone(), {.kernel_size = 2, .padding = 1});
  show_average("All negative, padded: average",
               "An average does count padding, as zeros, unless count_include_pad is false.", negative.clone(),
               {.kernel_size = 2, .padding = 1});

  show_round_trip("There and back", "Unpooling puts every maximum back where it was; everything but the winners is 0.",
                  six.clone());

  const auto large = cenote::TensorDesc::contiguous(cenote::DType::f32, {8, 64, 112, 112});
  const auto plan = cenote::Plan::make(large, cenote::MaxPool<2>{.kernel_size = 3, .stride = 2, .padding = 1});
  std::cout << "For larger tensors a plan picks the code. On this machine, for f32 " << cenote::to_string(large.shape)
            << " and a 3x3\nwindow with stride 2: " << plan.explain() << "\n";
}

}  // namespace

int main() {
  try {
    show_all();
  } catch (const cenote::Error& error) {
    std::cerr << "cenote-demo: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
