#include "geometry/checked.hpp"

#include <cenote/view.hpp>

#include <algorithm>

namespace cenote {

std::string to_string(Device device) {
  return device.type == DeviceType::cpu ? "cpu" : "cuda:" + std::to_string(device.index);
}

Shape::Shape(std::span<const std::int64_t> values) {
  if (values.size() > static_cast<std::size_t>(kMaxRank)) {
    Status::failure(ErrorCode::invalid_argument, "shape", "shape: %zu dimensions given, a tensor has at most %d",
                    values.size(), kMaxRank)
        .raise();
  }
  rank_ = static_cast<int>(values.size());
  std::copy(values.begin(), values.end(), values_);
}

bool Shape::operator==(const Shape& other) const noexcept {
  return std::equal(begin(), end(), other.begin(), other.end());
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

std::int64_t element_count(const Shape& shape) {
  // The product of the non-zero sizes must fit too: strides are computed from it even when the tensor is empty.
  std::int64_t product = 1;
  bool empty = false;
  for (std::int64_t size : shape) {
    if (size < 0) {
      Status::failure(ErrorCode::invalid_argument, "shape", "shape: %s has a negative size", to_string(shape).c_str())
          .raise();
    }
    if (size == 0) {
      empty = true;
    } else if (!checked_mul(product, size, product)) {
      Status::failure(ErrorCode::invalid_argument, "shape",
                      "shape: the number of elements of %s does not fit in 63 bits", to_string(shape).c_str())
          .raise();
    }
  }
  return empty ? 0 : product;
}

Strides contiguous_strides(const Shape& shape) {
  element_count(shape);  // refuses what overflows
  Strides strides = shape;
  std::int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= std::max<std::int64_t>(shape[i], 1);
  }
  return strides;
}

Strides channels_last_strides(const Shape& shape) {
  if (shape.rank() < 3 || shape.rank() > 5) {
    Status::failure(ErrorCode::invalid_argument, "shape",
                    "shape: %s has no channels-last layout, which needs N, C and 1 to 3 axes", to_string(shape).c_str())
        .raise();
  }
  element_count(shape);
  Strides strides = shape;
  strides[1] = 1;
  std::int64_t step = std::max<std::int64_t>(shape[1], 1);
  for (int i = shape.rank() - 1; i >= 2; --i) {
    strides[i] = step;
    step *= std::max<std::int64_t>(shape[i], 1);
  }
  strides[0] = step;
  return strides;
}

TensorDesc TensorDesc::contiguous(DType dtype, const Shape& shape, Device device) {
  return {dtype, shape, contiguous_strides(shape), device};
}

TensorDesc TensorDesc::channels_last(DType dtype, const Shape& shape, Device device) {
  return {dtype, shape, channels_last_strides(shape), device};
}

namespace {

/// The strides of dimensions of size 1 never matter.
bool same_placement(const Shape& shape, const Strides& a, const Strides& b) noexcept {
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] > 1 && a[i] != b[i]) return false;
  }
  return true;
}

bool is_empty(const Shape& shape) noexcept { return std::find(shape.begin(), shape.end(), 0) != shape.end(); }

}  // namespace

bool TensorDesc::is_contiguous() const noexcept {
  if (strides.empty() || is_empty(shape)) return true;
  std::int64_t step = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (shape[i] > 1 && strides[i] != step) return false;
    step *= shape[i];
  }
  return true;
}

bool TensorDesc::is_channels_last() const noexcept {
  if (strides.empty() || is_empty(shape) || rank() < 4 || rank() > 5 || is_contiguous()) return false;
  Strides expected = shape;
  expected[1] = 1;
  std::int64_t step = shape[1];
  for (int i = rank() - 1; i >= 2; --i) {
    expected[i] = step;
    step *= shape[i];
  }
  expected[0] = step;
  return same_placement(shape, strides, expected);
}

}  // namespace cenote
