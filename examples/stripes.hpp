// A task that is small enough to learn in seconds and hard enough to need a convolution: which way do the stripes run?
#pragma once

#include "common.hpp"

#include <cenote/tensor.hpp>

#include <cmath>
#include <numbers>
#include <vector>

namespace example {

inline constexpr int kDirections = 4;
inline constexpr const char* kDirectionNames[kDirections] = {"|", "/", "-", "\\"};

/// Striped pictures with any two colours, width, phase and some noise. Only the direction tells the classes apart.
struct Stripes {
  cenote::Tensor images;  ///< (count, 3, height, width), values about -1 to 1
  cenote::Tensor labels;  ///< (count), i64
};

inline Stripes draw_stripes(std::int64_t count, std::int64_t height, std::int64_t width, Random& random) {
  Stripes batch{cenote::empty({count, 3, height, width}), cenote::empty({count}, {.dtype = cenote::DType::i64})};
  float* pixel = batch.images.data<float>();
  for (std::int64_t n = 0; n < count; ++n) {
    const int label = random.below(kDirections);
    batch.labels.at<std::int64_t>({n}) = label;
    constexpr float kPi = std::numbers::pi_v<float>;
    const float angle = kPi * (static_cast<float>(label) / kDirections + random.uniform(-0.06f, 0.06f));
    const float frequency = 2 * kPi / random.uniform(4, 8);
    const float phase = random.uniform(0, 2 * kPi);
    for (int channel = 0; channel < 3; ++channel) {
      const float amplitude = random.uniform(0.3f, 0.6f);
      const float level = random.uniform(-0.4f, 0.4f);
      for (std::int64_t y = 0; y < height; ++y) {
        for (std::int64_t x = 0; x < width; ++x) {
          const float along = static_cast<float>(x) * std::cos(angle) + static_cast<float>(y) * std::sin(angle);
          *pixel++ = level + amplitude * std::sin(frequency * along + phase) + 0.1f * random.normal();
        }
      }
    }
  }
  return batch;
}

/// The class with the largest of (count, classes) scores, for each picture.
inline std::vector<int> guesses(const cenote::Tensor& scores) {
  std::vector<int> best;
  for (std::int64_t n = 0; n < scores.size(0); ++n) {
    int top = 0;
    for (int label = 1; label < scores.size(1); ++label) {
      if (scores.at<float>({n, label}) > scores.at<float>({n, top})) top = label;
    }
    best.push_back(top);
  }
  return best;
}

inline double accuracy(const cenote::Tensor& scores, const cenote::Tensor& labels) {
  const std::vector<int> best = guesses(scores);
  int right = 0;
  for (std::size_t n = 0; n < best.size(); ++n) {
    right += best[n] == labels.at<std::int64_t>({static_cast<std::int64_t>(n)});
  }
  return right / static_cast<double>(best.size());
}

}  // namespace example
