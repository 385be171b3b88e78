// Arrays in files, whatever the file: a .npy array as it lies in the file, a .png picture as (height, width, channels).
#pragma once

#include "files.hpp"
#include "npy.hpp"
#include "png.hpp"

#include <cenote/view.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cenote::tool {

/// Element strides of a dense array in C (last index fastest) or Fortran order (first index fastest).
Strides dense_strides(const Shape& shape, bool fortran_order);

/// An input, readable a piece at a time.
class ArraySource {
 public:
  /// By content, not by name. A picture's samples become f32, in which their 8 and 16 bits are exact.
  explicit ArraySource(const std::string& path);

  const InputFile& file() const noexcept { return file_; }
  const std::string& path() const noexcept { return path_; }
  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  bool fortran_order() const noexcept { return fortran_order_; }
  Strides strides() const { return dense_strides(shape_, fortran_order_); }
  const std::optional<PictureFormat>& picture() const noexcept { return picture_; }

  /// Elements [first, first + count) as they lie in the file, as dtype(): mapped where the file holds them so, else converted.
  /// Valid until the next load.
  const std::byte* load(std::int64_t first, std::int64_t count);
  void prefetch(std::int64_t first, std::int64_t count) const noexcept;

 private:
  struct Opened;
  explicit ArraySource(Opened opened);
  static Opened open(const std::string& path);

  std::string path_;
  InputFile file_;
  DType stored_ = DType::f32;  // what the file holds
  DType dtype_ = DType::f32;
  bool swapped_ = false;
  bool fortran_order_ = false;
  Shape shape_;
  std::int64_t offset_ = 0;
  std::optional<PictureFormat> picture_;
  Mapping mapping_;
  std::vector<std::byte> converted_;
};

enum class FileFormat : std::uint8_t { npy, png };
/// By the name's ending (.npy, .png, or "-" for a .npy stream); anything else is a Failure that says which endings are known.
FileFormat format_of(const std::string& path);

/// An output, written from the first element to the last.
class ArraySink {
 public:
  /// `bits` (8 or 16) is for pictures, which must be (height, width) or (height, width, 1 to 4) in C order; values are rounded
  /// to the nearest integer (ties to even) and clamped to what the bits can hold. An array's disk space is taken at once.
  ArraySink(const std::string& path, DType dtype, const Shape& shape, bool fortran_order, int bits = 8);

  OutputFile& file() noexcept { return file_; }
  /// Where the first element lies in the file; -1 for pictures and streams, which cannot be mapped.
  std::int64_t mappable_offset() const noexcept { return mappable_offset_; }

  void write(std::span<const std::byte> bytes);

 private:
  void write_picture(std::span<const std::byte> bytes);

  OutputFile file_;
  DType dtype_;
  std::int64_t mappable_offset_ = -1;
  PictureFormat picture_;
  std::unique_ptr<PngWriter> png_;
  std::vector<std::byte> row_;
  std::size_t row_fill_ = 0;
};

/// One element as a number.
double element_as_double(DType dtype, const std::byte* element);
/// The nearest value of `dtype`; integers round to nearest even and clamp, NaN becomes 0.
void store_double(DType dtype, std::byte* element, double value);

}  // namespace cenote::tool
