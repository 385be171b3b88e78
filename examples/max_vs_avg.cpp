// Max or average? Both on the same noisy picture: the average wins against noise, the maximum keeps what is small and bright.
//
//   cenote-max-vs-avg [--short] [FOLDER]    FOLDER gets the pictures side by side
#include "common.hpp"
#include "picture.hpp"

#include <cenote/cenote.hpp>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

namespace {

using cenote::Tensor;
namespace F = cenote::functional;

constexpr float kSky = 0.2f;

/// A night sky: a moon, a ridge, and stars of one pixel. `stars` gets the places of the stars.
Tensor draw_night(std::int64_t size, int star_count, Tensor& stars) {
  Tensor night = cenote::full({1, size, size}, kSky);
  stars = cenote::zeros({1, size, size});
  for (std::int64_t y = 0; y < size; ++y) {
    for (std::int64_t x = 0; x < size; ++x) {
      const double u = static_cast<double>(x) / static_cast<double>(size),
                   v = static_cast<double>(y) / static_cast<double>(size);
      if (std::hypot(u - 0.72, v - 0.26) < 0.13) night.at<float>({0, y, x}) = 0.7f;
      if (v > 0.78 + 0.06 * std::sin(9 * u) + 0.03 * std::sin(23 * u)) night.at<float>({0, y, x}) = 0.05f;
    }
  }
  example::Random random(7);
  for (int placed = 0; placed < star_count;) {
    const std::int64_t y = random.below(static_cast<int>(size * 2 / 3)), x = random.below(static_cast<int>(size));
    if (night.at<float>({0, y, x}) != kSky) continue;
    night.at<float>({0, y, x}) = 1.0f;
    stars.at<float>({0, y, x}) = 1.0f;
    ++placed;
  }
  return night;
}

Tensor with_noise(const Tensor& picture, float strength) {
  Tensor noisy = picture.clone();
  example::Random random(11);
  for (float& value : noisy.span<float>()) value += strength * random.normal();
  return noisy;
}

/// Mean and spread of `values` where `mask` is `wanted`.
struct Statistics {
  double mean = 0, deviation = 0;
};
Statistics statistics(const Tensor& values, const Tensor& mask, bool wanted) {
  const std::vector<double> all = values.to_vector(), chosen = mask.to_vector();
  double count = 0, sum = 0, squares = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if ((chosen[i] != 0) != wanted) continue;
    count += 1;
    sum += all[i];
    squares += all[i] * all[i];
  }
  const double mean = sum / count;
  return {mean, std::sqrt(std::max(0.0, squares / count - mean * mean))};
}

int show(const example::Arguments& arguments) {
  const std::int64_t size = arguments.brief ? 96 : 192;
  const std::int64_t kernel = 4;
  Tensor stars;
  const Tensor clean = draw_night(size, static_cast<int>(size * size / 500), stars);
  const Tensor noisy = with_noise(clean, 0.08f);
  const Tensor largest = F::max_pool2d(noisy, {.kernel_size = kernel});
  const Tensor mean = F::avg_pool2d(noisy, {.kernel_size = kernel});

  // Which windows hold a star, and which lie wholly in the empty sky: pooling answers that too.
  const Tensor star_windows = F::max_pool2d(stars, {.kernel_size = kernel});
  const std::int64_t rows = size / kernel / 3;  // above the moon's lower edge only the left third is sure to be sky
  const auto sky = [&](const Tensor& pooled) { return pooled.narrow(1, 0, rows).narrow(2, 0, rows); };

  std::printf("A %lldx%lld picture with noise of 0.08 around every pixel, pooled %lldx%lld:\n\n",
              static_cast<long long>(size), static_cast<long long>(size), static_cast<long long>(kernel),
              static_cast<long long>(kernel));
  std::printf("%-9s %14s %14s %16s\n", "", "sky is", "noise left", "a star stands out");
  Statistics empty[2], star[2];
  const Tensor pooled[2] = {largest, mean};
  for (int i = 0; i < 2; ++i) {
    empty[i] = statistics(sky(pooled[i]), sky(star_windows), false);
    star[i] = statistics(sky(pooled[i]), sky(star_windows), true);
    std::printf("%-9s %14.3f %14.3f %16.3f\n", i == 0 ? "maximum" : "average", empty[i].mean, empty[i].deviation,
                star[i].mean - empty[i].mean);
  }
  std::printf(
      "\nThe sky is %.1f in truth and a star %.1f above it. The maximum takes noise for signal (its sky is too\n"
      "bright) but keeps the stars; the average finds the sky and dims the stars to a sixteenth.\n",
      static_cast<double>(kSky), 1.0 - static_cast<double>(kSky));

  if (!arguments.folder.empty()) {
    const std::int64_t side = 2 * size, step = side + 8;
    example::Picture sheet(4 * step + 8, side + 16);
    sheet.paste(clean, 8, 8, 2);
    sheet.paste(noisy, 8 + step, 8, 2);
    sheet.paste(largest, 8 + 2 * step, 8, 2 * kernel);
    sheet.paste(mean, 8 + 3 * step, 8, 2 * kernel);
    std::cout << "\nClean, noisy, maximum, average: " << sheet.write(arguments.folder / "max_vs_avg").string() << "\n";
  }
  const bool average_is_true = std::abs(empty[1].mean - kSky) < 0.02 && empty[0].mean > kSky + 0.08;
  const bool maximum_keeps_stars = star[0].mean - empty[0].mean > 5 * (star[1].mean - empty[1].mean);
  return average_is_true && maximum_keeps_stars ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return example::run(argc, argv, show); }
