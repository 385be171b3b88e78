// What a tensor looks like in memory: descriptions and views that own nothing.
#pragma once

#include <cenote/dtype.hpp>
#include <cenote/error.hpp>
#include <cenote/export.hpp>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace cenote {

enum class DeviceType : std::uint8_t { cpu, cuda };

struct Device {
  DeviceType type = DeviceType::cpu;
  int index = 0;
  bool operator==(const Device&) const = default;
};
inline constexpr Device cpu{DeviceType::cpu, 0};
inline constexpr Device cuda{DeviceType::cuda, 0};
CENOTE_API std::string to_string(Device device);  ///< "cpu", "cuda:0"

/// Most dimensions a tensor can have. Pools take at most 5; the rest is there to be refused with a clear message.
inline constexpr int kMaxRank = 8;

/// A short list of 64-bit integers: a shape or a list of strides.
class CENOTE_API Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> values) : Shape(std::span(values.begin(), values.size())) {}
  /// Throws Error when there are more than kMaxRank values.
  explicit Shape(std::span<const std::int64_t> values);

  int rank() const noexcept { return rank_; }
  std::size_t size() const noexcept { return static_cast<std::size_t>(rank_); }
  bool empty() const noexcept { return rank_ == 0; }
  std::int64_t& operator[](int i) noexcept { return values_[i]; }
  std::int64_t operator[](int i) const noexcept { return values_[i]; }
  const std::int64_t* begin() const noexcept { return values_; }
  const std::int64_t* end() const noexcept { return values_ + rank_; }
  std::int64_t* begin() noexcept { return values_; }
  std::int64_t* end() noexcept { return values_ + rank_; }
  bool operator==(const Shape& other) const noexcept;

 private:
  std::int64_t values_[kMaxRank] = {};
  int rank_ = 0;
};
using Strides = Shape;

CENOTE_API std::string to_string(const Shape& shape);  ///< "[1, 64, 112, 112]"

/// Number of elements. Throws Error when it, or the product of the non-zero sizes, does not fit in 63 bits, or when a
/// size is negative.
CENOTE_API std::int64_t element_count(const Shape& shape);

enum class MemoryFormat : std::uint8_t { contiguous, channels_last };

/// Strides in elements of a dense tensor. channels_last needs rank 3 to 5: N, C, spatial (the channel varies fastest).
CENOTE_API Strides contiguous_strides(const Shape& shape);
CENOTE_API Strides channels_last_strides(const Shape& shape);

/// Everything about a tensor but its memory. Empty strides mean contiguous.
struct CENOTE_API TensorDesc {
  DType dtype = DType::f32;
  Shape shape;
  Strides strides{};  ///< in elements; may be negative or zero for inputs
  Device device{};

  static TensorDesc contiguous(DType dtype, const Shape& shape, Device device = cpu);
  static TensorDesc channels_last(DType dtype, const Shape& shape, Device device = cpu);

  int rank() const noexcept { return shape.rank(); }
  std::int64_t numel() const { return element_count(shape); }
  bool is_contiguous() const noexcept;
  /// True for dense channels-last strides that are not contiguous as well. Only batched 2d and 3d tensors (rank 4, 5).
  bool is_channels_last() const noexcept;
  bool operator==(const TensorDesc&) const = default;
};

/// A tensor in somebody else's memory.
struct TensorView : TensorDesc {
  void* data = nullptr;
};

}  // namespace cenote
