// PNG pictures, row by row in both directions, so that no picture need fit in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cenote::tool {

/// What the rows hold: `channels` samples a pixel (1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha) of 8 or 16 bits in the
/// machine's byte order. Palettes are looked up, 1-, 2- and 4-bit greys widened to 8 bits, transparent colours made alpha.
struct PictureFormat {
  std::int64_t width = 0;
  std::int64_t height = 0;
  int channels = 1;
  int bits = 8;

  std::int64_t row_bytes() const noexcept { return width * channels * (bits / 8); }
  std::int64_t bytes() const noexcept { return row_bytes() * height; }
};

/// Most bytes a decoded picture may have.
inline constexpr std::int64_t kMaxPictureBytes = std::int64_t{8} << 30;
/// Interlaced pictures must be decoded whole, in memory.
inline constexpr std::int64_t kMaxInterlacedBytes = std::int64_t{1} << 30;

/// Whether a file that starts so is a .png file, or the first bytes of one.
bool starts_like_png(std::span<const std::byte> start);

/// Bytes a .png file that starts so can have, by the size of the picture it claims: twice the bare pixels, for the worst that
/// deflate and chunks make of them, and room for the chunks that are no pixels. Refuses a claim beyond kMaxPictureBytes.
std::int64_t largest_png_file(std::span<const std::byte> start, const std::string& name);

/// Reads as much of the span from an offset of the file as there is.
using ReadAt = std::function<std::size_t(std::int64_t offset, std::span<std::byte>)>;
/// Follows the chunks of a .png file to its IEND. Refuses a file that ends before it and one that goes on after it.
void check_png_chunks(const ReadAt& read_at, std::int64_t file_size, const std::string& name);

class PngReader {
 public:
  /// Fills as much of the span as there is; 0 at the end.
  using ReadSome = std::function<std::size_t(std::span<std::byte>)>;

  /// Reads the header. Refuses what cannot be true before allocating for it: a picture larger than the limits above, or larger
  /// than `file_size` bytes can hold at deflate's best ratio of 1032 to 1.
  PngReader(ReadSome source, std::int64_t file_size, const std::string& name);
  ~PngReader();
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  const PictureFormat& format() const noexcept { return format_; }
  /// The next row; call format().height times. `row` has row_bytes() bytes.
  void read_row(std::span<std::byte> row);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
  PictureFormat format_;
};

class PngWriter {
 public:
  using Write = std::function<void(std::span<const std::byte>)>;
  PngWriter(Write sink, const PictureFormat& format, const std::string& name);
  ~PngWriter();
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;

  /// Rows from the top, format.height of them; the last one completes the file.
  void write_row(std::span<const std::byte> row);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace cenote::tool
