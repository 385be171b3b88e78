// A canvas to paste tensors on, written as PNG where libspng is there and as PPM where it is not.
#pragma once

#include <cenote/tensor.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#ifdef CENOTE_EXAMPLES_PNG
#include <spng.h>
#endif

namespace example {

struct Colour {
  std::uint8_t red, green, blue;
};
inline constexpr Colour kPaper{250, 250, 247};
inline constexpr Colour kGood{46, 139, 87};
inline constexpr Colour kBad{200, 40, 40};

class Picture {
 public:
  Picture(std::int64_t width, std::int64_t height, Colour background = kPaper)
      : width_(width), height_(height), pixels_(static_cast<std::size_t>(width * height), background) {}

  void fill(std::int64_t x, std::int64_t y, std::int64_t width, std::int64_t height, Colour colour) {
    for (std::int64_t row = y; row < y + height; ++row) {
      for (std::int64_t column = x; column < x + width; ++column) set(column, row, colour);
    }
  }

  /// A (1 or 3, height, width) f32 tensor with values from 0 to 1, every element a square of `scale` pixels.
  void paste(const cenote::Tensor& image, std::int64_t x, std::int64_t y, std::int64_t scale) {
    const std::int64_t last = image.size(0) - 1;
    for (std::int64_t row = 0; row < image.size(1); ++row) {
      for (std::int64_t column = 0; column < image.size(2); ++column) {
        const auto level = [&](std::int64_t channel) {
          const float value = image.at<float>({std::min(channel, last), row, column});
          return static_cast<std::uint8_t>(std::lround(255 * std::clamp(value, 0.0f, 1.0f)));
        };
        fill(x + column * scale, y + row * scale, scale, scale, {level(0), level(1), level(2)});
      }
    }
  }

  /// Returns the path with the extension it got.
  std::filesystem::path write(std::filesystem::path path) const {
#ifdef CENOTE_EXAMPLES_PNG
    path += ".png";
    spng_ctx* context = spng_ctx_new(SPNG_CTX_ENCODER);
    spng_set_option(context, SPNG_ENCODE_TO_BUFFER, 1);
    spng_ihdr header{};
    header.width = static_cast<std::uint32_t>(width_);
    header.height = static_cast<std::uint32_t>(height_);
    header.bit_depth = 8;
    header.color_type = SPNG_COLOR_TYPE_TRUECOLOR;
    spng_set_ihdr(context, &header);
    int failure = spng_encode_image(context, pixels_.data(), bytes(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
    std::size_t size = 0;
    void* encoded = failure ? nullptr : spng_get_png_buffer(context, &size, &failure);
    if (encoded) std::ofstream(path, std::ios::binary).write(static_cast<const char*>(encoded), std::streamsize(size));
    std::free(encoded);
    spng_ctx_free(context);
    if (failure) throw std::runtime_error(path.string() + ": " + spng_strerror(failure));
    if (std::error_code error; std::filesystem::file_size(path, error) != size) {
      throw std::runtime_error(path.string() + ": cannot be written");
    }
#else
    path += ".ppm";
    std::ofstream file(path, std::ios::binary);
    file << "P6\n" << width_ << " " << height_ << "\n255\n";
    file.write(reinterpret_cast<const char*>(pixels_.data()), std::streamsize(bytes()));
    if (!file.flush()) throw std::runtime_error(path.string() + ": cannot be written");
#endif
    return path;
  }

 private:
  std::size_t bytes() const { return pixels_.size() * sizeof(Colour); }
  void set(std::int64_t x, std::int64_t y, Colour colour) {
    if (x >= 0 && x < width_ && y >= 0 && y < height_) pixels_[static_cast<std::size_t>(y * width_ + x)] = colour;
  }

  std::int64_t width_, height_;
  std::vector<Colour> pixels_;
};

}  // namespace example
