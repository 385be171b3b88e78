// Where tensors come from.
#include "tensor/impl.hpp"
#include "tensor/loops.hpp"
#include "tensor/random.hpp"
#include "tensor/refuse.hpp"

#include <cmath>

namespace cenote {

using detail::visit_dtype;

namespace {

Tensor finish(const Tensor& tensor, Device device, bool requires_grad) {
  Tensor placed = tensor.to(device);
  if (requires_grad) placed.set_requires_grad();
  return placed;
}

/// A contiguous CPU tensor with element i = value(i), a double.
template <class Value>
Tensor generate(const Shape& shape, DType dtype, Value value) {
  Tensor tensor = empty(shape, {.dtype = dtype});
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const data = static_cast<T*>(tensor.data());
    const std::int64_t count = tensor.numel();
    for (std::int64_t i = 0; i < count; ++i) data[i] = detail::convert<T>(value(i));
  });
  return tensor;
}

void require_floating(DType dtype, const char* function) {
  if (!is_floating(dtype)) {
    refuse("dtype", std::string(function) + " makes floating types, not " + name_of(dtype));
  }
}

int significant_bits(DType dtype) {
  return dtype == DType::f64 ? 53 : dtype == DType::f32 ? 24 : dtype == DType::f16 ? 11 : 8;
}

}  // namespace

Tensor empty(const TensorDesc& desc) {
  TensorDesc full_desc = desc;
  const std::int64_t count = element_count(desc.shape);
  if (desc.strides.empty()) full_desc.strides = contiguous_strides(desc.shape);
  const auto width = static_cast<std::int64_t>(size_of(desc.dtype));
  if (count > INT64_MAX / width) {
    refuse(ErrorCode::out_of_memory, "shape",
           "shape " + to_string(desc.shape) + " of " + name_of(desc.dtype) + " does not fit in memory");
  }
  std::int64_t reach = count > 0 ? 1 : 0;
  for (int d = 0; d < full_desc.rank() && count > 0; ++d) {
    const std::int64_t size = full_desc.shape[d], stride = full_desc.strides[d];
    if (size > 1 && stride <= 0) {
      refuse("strides", "new memory needs positive strides, got " + to_string(full_desc.strides));
    }
    if (size > 1 && (size - 1) > (INT64_MAX / width - reach) / stride) {
      refuse("strides", "strides " + to_string(full_desc.strides) + " of shape " + to_string(desc.shape) +
                            " reach beyond 63 bits");
    }
    if (size > 1) reach += (size - 1) * stride;
  }
  return detail::make_tensor(full_desc, Storage::allocate(reach * width, desc.device), 0);
}

Tensor empty(const Shape& shape, const TensorOptions& options) {
  return finish(empty(TensorDesc::contiguous(options.dtype, shape, options.device)), options.device,
                options.requires_grad);
}

Tensor full(const Shape& shape, double value, const TensorOptions& options) {
  Tensor tensor = empty(shape, {.dtype = options.dtype});
  tensor.fill(value);
  return finish(tensor, options.device, options.requires_grad);
}

Tensor zeros(const Shape& shape, const TensorOptions& options) { return full(shape, 0, options); }
Tensor ones(const Shape& shape, const TensorOptions& options) { return full(shape, 1, options); }
Tensor scalar(double value, const TensorOptions& options) { return full({}, value, options); }

namespace {
Tensor full_like(const Tensor& other, double value) {
  Tensor tensor = empty(other.desc().is_channels_last() ? TensorDesc::channels_last(other.dtype(), other.shape())
                                                        : TensorDesc::contiguous(other.dtype(), other.shape()));
  tensor.fill(value);
  return tensor.to(other.device());
}
}  // namespace

Tensor zeros_like(const Tensor& other) { return full_like(other, 0); }
Tensor ones_like(const Tensor& other) { return full_like(other, 1); }

Tensor arange(double start, double end, double step, const TensorOptions& options) {
  if (!(step != 0) || !std::isfinite(step) || !std::isfinite(start) || !std::isfinite(end)) {
    refuse("step", "arange needs finite bounds and a finite step other than 0, got " + std::to_string(start) + ", " +
                       std::to_string(end) + ", " + std::to_string(step));
  }
  if ((end - start) / step < 0) {
    refuse("end", "arange: a step of " + std::to_string(step) + " leads away from the end, " + std::to_string(end));
  }
  const double count = std::ceil((end - start) / step);
  if (count >= 0x1p62) refuse("end", "arange: too many elements");
  return finish(generate({static_cast<std::int64_t>(count)}, options.dtype,
                         [=](std::int64_t i) { return start + static_cast<double>(i) * step; }),
                options.device, options.requires_grad);
}

Tensor rand(const Shape& shape, const RandomOptions& options) {
  require_floating(options.dtype, "rand");
  const int bits = significant_bits(options.dtype);
  return finish(generate(shape, options.dtype,
                         [&](std::int64_t i) {
                           return detail::random_uniform(options.seed, static_cast<std::uint64_t>(i), bits);
                         }),
                options.device, options.requires_grad);
}

Tensor randn(const Shape& shape, const RandomOptions& options) {
  require_floating(options.dtype, "randn");
  std::pair<double, double> pair;
  return finish(generate(shape, options.dtype,
                         [&](std::int64_t i) {
                           if (i % 2 != 0) return pair.second;
                           pair = detail::random_normal(options.seed, static_cast<std::uint64_t>(i) / 2);
                           return pair.first;
                         }),
                options.device, options.requires_grad);
}

Tensor from_view(const TensorView& view, Ownership ownership) {
  TensorDesc desc = view;
  if (desc.strides.empty()) desc.strides = contiguous_strides(desc.shape);
  if (desc.strides.rank() != desc.rank()) {
    refuse("strides",
           "strides " + to_string(desc.strides) + " do not match the rank of shape " + to_string(desc.shape));
  }
  if (element_count(desc.shape) > 0 && view.data == nullptr) {
    refuse("data", "a view of shape " + to_string(desc.shape) + " has no data");
  }
  Tensor borrowed = detail::make_tensor(desc, Storage::wrap(view.data, view.device), 0);
  return ownership == Ownership::borrow ? borrowed : borrowed.clone();
}

}  // namespace cenote
