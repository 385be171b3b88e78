// Per-axis arguments, as PyTorch takes them: one number for every axis, or one for each.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

namespace cenote {

/// PyTorch's None in `output_size`: keep the input's size of that axis.
struct Keep {};
inline constexpr Keep keep{};

/// One entry of a per-axis argument.
struct Dim {
  std::int64_t value = 0;
  bool is_keep = false;

  Dim() = default;
  Dim(std::int64_t v) noexcept : value(v) {}
  Dim(Keep) noexcept : is_keep(true) {}
  bool operator==(const Dim&) const = default;
};

/// A per-axis argument whose rank is checked later, when the op is known: remembers what the caller wrote, right or wrong.
struct DimList {
  static constexpr int kCapacity = 5;  ///< max_unpool's output_size may repeat N and C

  Dim values[kCapacity];
  int count = 0;        ///< entries given; may exceed kCapacity, then only the first ones are kept
  bool scalar = false;  ///< one number for all axes, as opposed to a list of one

  DimList() = default;
  DimList(std::int64_t value) noexcept : count(1), scalar(true) { values[0] = value; }
  DimList(Keep) noexcept : count(1), scalar(true) { values[0] = keep; }
  DimList(std::initializer_list<Dim> list) noexcept { assign(list.begin(), list.size()); }
  explicit DimList(std::span<const Dim> list) noexcept { assign(list.data(), list.size()); }
  explicit DimList(std::span<const std::int64_t> list) noexcept : count(static_cast<int>(list.size())) {
    for (int i = 0; i < count && i < kCapacity; ++i) values[i] = list[static_cast<std::size_t>(i)];
  }

  bool empty() const noexcept { return count == 0; }
  bool operator==(const DimList&) const = default;

 private:
  void assign(const Dim* list, std::size_t size) noexcept {
    count = static_cast<int>(size);
    for (int i = 0; i < count && i < kCapacity; ++i) values[i] = list[i];
  }
};

/// `3` or `{3, 2}`; empty means "as documented" (stride: the kernel_size). N is the spatial rank the argument belongs to.
template <int N>
struct Dims : DimList {
  static_assert(N >= 1 && N <= 3, "pooling has one, two or three spatial axes");
  using DimList::DimList;
  Dims() = default;
  Dims(int value) noexcept : DimList(std::int64_t{value}) {}
};

/// Padding: symmetric as PyTorch's, different at both ends of an axis as ONNX's, or chosen so that output = ceil(input / stride).
struct PaddingList {
  enum class Mode : std::uint8_t { symmetric, asymmetric, same_upper, same_lower };

  DimList begin = 0;
  DimList end = 0;
  Mode mode = Mode::symmetric;

  PaddingList() = default;
  PaddingList(std::int64_t value) noexcept : begin(value), end(value) {}
  PaddingList(std::initializer_list<Dim> list) noexcept : begin(list), end(list) {}
  PaddingList(const DimList& both) noexcept : begin(both), end(both) {}
  PaddingList(const DimList& b, const DimList& e) noexcept : begin(b), end(e), mode(Mode::asymmetric) {}
  bool operator==(const PaddingList&) const = default;
};

template <int N>
struct Padding : PaddingList {
  using PaddingList::PaddingList;
  Padding() = default;
  Padding(int value) noexcept : PaddingList(std::int64_t{value}) {}
  Padding(const Dims<N>& both) noexcept : PaddingList(static_cast<const DimList&>(both)) {}

  static Padding asymmetric(const Dims<N>& begin, const Dims<N>& end) noexcept { return Padding(begin, end); }
  /// The odd cell goes to the end (TensorFlow's SAME).
  static Padding same_upper() noexcept { return with_mode(Mode::same_upper); }
  /// The odd cell goes to the beginning.
  static Padding same_lower() noexcept { return with_mode(Mode::same_lower); }

 private:
  Padding(const Dims<N>& first, const Dims<N>& last) noexcept
      : PaddingList(static_cast<const DimList&>(first), static_cast<const DimList&>(last)) {}
  static Padding with_mode(Mode mode) noexcept {
    Padding padding;
    padding.mode = mode;
    return padding;
  }
};

}  // namespace cenote
