// What a tensor is: description, element access, copies between layouts, types and devices.
#include "tensor/impl.hpp"
#include "tensor/loops.hpp"
#include "tensor/refuse.hpp"

#include <cmath>

namespace cenote {
namespace detail {

int normalise_dim(int dim, int rank, const char* argument) {
  const int room = std::max(rank, 1);  // PyTorch lets 0 and -1 name "the" dimension of a scalar
  if (dim < -room || dim >= room) {
    refuse(argument, std::string(argument) + " " + std::to_string(dim) + " is out of range for a tensor of rank " +
                         std::to_string(rank) + ": expected " + std::to_string(-room) + " to " +
                         std::to_string(room - 1));
  }
  return dim < 0 ? dim + room : dim;
}

Extent extent_of(const Shape& shape, const Strides& strides) {
  Extent extent{0, 1};
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] == 0) return {0, 0};
    const std::int64_t reach = (shape[d] - 1) * strides[d];
    (reach < 0 ? extent.below : extent.beyond) += reach;
  }
  return extent;
}

Tensor make_tensor(const TensorDesc& desc, std::shared_ptr<Storage> storage, std::int64_t offset) {
  auto impl = std::make_shared<TensorImpl>();
  impl->desc = desc;
  impl->storage = std::move(storage);
  impl->offset = offset;
  return Access::make(std::move(impl));
}

Tensor alias(const Tensor& tensor, const Shape& shape, const Strides& strides, std::int64_t offset) {
  const TensorImpl& impl = *Access::impl(tensor);
  TensorDesc desc = impl.desc;
  desc.shape = shape;
  desc.strides = strides;
  return make_tensor(desc, impl.storage, impl.offset + offset);
}

void refuse_element_type(const Tensor& tensor, DType asked) {
  refuse("dtype", std::string("elements were asked for as ") + name_of(asked) + ", but the tensor holds " +
                      name_of(tensor.dtype()));
}

namespace {

template <class To, class From>
void copy_row(void* to, const void* from, std::int64_t count, std::int64_t to_step, std::int64_t from_step) {
  To* t = static_cast<To*>(to);
  const From* s = static_cast<const From*>(from);
  for (std::int64_t i = 0; i < count; ++i, t += to_step, s += from_step) {
    if constexpr (std::is_same_v<To, From>) {
      *t = *s;
    } else {
      *t = convert<To>(load(*s));
    }
  }
}

/// Strided copy with conversion between two CPU tensors of equal shape. Only the rows know the types.
void copy_elements(const Tensor& to, const Tensor& from) {
  void (*row)(void*, const void*, std::int64_t, std::int64_t, std::int64_t) = nullptr;
  visit_dtype(to.dtype(), [&](auto to_tag) {
    visit_dtype(from.dtype(), [&](auto from_tag) {
      row = copy_row<typename decltype(to_tag)::type, typename decltype(from_tag)::type>;
    });
  });
  auto* const target = static_cast<char*>(to.data());
  const auto* const source = static_cast<const char*>(from.data());
  const auto to_size = static_cast<std::int64_t>(size_of(to.dtype())),
             from_size = static_cast<std::int64_t>(size_of(from.dtype()));
  for_each_row<2>(to.shape(), {to.strides(), from.strides()}, true,
                  [&](const auto& offsets, std::int64_t count, const auto& steps) {
                    row(target + offsets[0] * to_size, source + offsets[1] * from_size, count, steps[0], steps[1]);
                  });
}

/// The layout a copy of the tensor gets: its own order of dimensions where it is dense, otherwise contiguous.
TensorDesc dense_like(const TensorDesc& desc) {
  if (desc.is_channels_last()) return TensorDesc::channels_last(desc.dtype, desc.shape, desc.device);
  return TensorDesc::contiguous(desc.dtype, desc.shape, desc.device);
}

/// Any layout, any dtype, any device, to a new tensor of the description given. Off the tape.
Tensor copy_as(const Tensor& source, const TensorDesc& desc) {
  Tensor result = empty(desc);
  result.copy_from(source);
  return result;
}

/// A CPU tensor with the same strides: the span of memory that the elements lie in travels as one piece.
Tensor fetch(const Tensor& tensor) {
  const TensorView view = tensor.as_view();
  const Extent extent = extent_of(view.shape, view.strides);
  const auto width = static_cast<std::int64_t>(size_of(view.dtype));
  const std::int64_t bytes = (extent.beyond - extent.below) * width;
  auto storage = Storage::allocate(bytes, cpu);
  copy_bytes(storage->data(), cpu, static_cast<const char*>(view.data) + extent.below * width, view.device, bytes);
  TensorDesc desc = view;
  desc.device = cpu;
  return make_tensor(desc, std::move(storage), -extent.below);
}

}  // namespace
}  // namespace detail

using detail::record;

const TensorDesc& Tensor::desc() const {
  if (!impl_) refuse("tensor", "the tensor is undefined (default-constructed, or a gradient that was never computed)");
  return impl_->desc;
}

std::int64_t Tensor::size(int dim) const {
  if (rank() == 0) refuse("dim", "a tensor of rank 0 has no dimensions to ask the size of");
  return shape()[detail::normalise_dim(dim, rank())];
}

bool Tensor::is_contiguous(MemoryFormat format) const {
  if (format == MemoryFormat::contiguous) return desc().is_contiguous();
  if (rank() < 3 || rank() > 5) return false;
  const Strides wanted = channels_last_strides(shape());
  for (int d = 0; d < rank(); ++d) {
    if (shape()[d] != 1 && strides()[d] != wanted[d]) return false;
  }
  return true;
}

TensorView Tensor::as_view() const {
  TensorView view;
  static_cast<TensorDesc&>(view) = desc();
  view.data = data();
  return view;
}

bool Tensor::shares_storage_with(const Tensor& other) const noexcept {
  return impl_ && other.impl_ && impl_->storage == other.impl_->storage;
}

void* Tensor::data() const {
  const auto width = static_cast<std::int64_t>(size_of(dtype()));
  return static_cast<char*>(impl_->storage->data()) + impl_->offset * width;
}

void* Tensor::checked_data(DType asked) const {
  if (dtype() != asked) detail::refuse_element_type(*this, asked);
  if (device().type != DeviceType::cpu) {
    refuse("device", "elements on " + to_string(device()) +
                         " cannot be reached from here: use to(cpu), or data() for the address");
  }
  return data();
}

void* Tensor::checked_span(DType asked) const {
  if (!is_contiguous()) {
    refuse("strides", "span() needs a contiguous tensor, this one has shape " + to_string(shape()) + " and strides " +
                          to_string(strides()) + ": call contiguous() first");
  }
  return checked_data(asked);
}

std::int64_t Tensor::offset_of(const Shape& index) const {
  if (index.rank() != rank()) {
    refuse("index", "index " + to_string(index) + " has " + std::to_string(index.rank()) +
                        " entries for a tensor of rank " + std::to_string(rank()));
  }
  std::int64_t offset = 0;
  for (int d = 0; d < rank(); ++d) {
    const std::int64_t size = shape()[d];
    if (index[d] < -size || index[d] >= size) {
      refuse("index", "index " + to_string(index) + " is outside the shape " + to_string(shape()));
    }
    offset += (index[d] < 0 ? index[d] + size : index[d]) * strides()[d];
  }
  return offset;
}

namespace {
template <class T>
T item_of(const Tensor& tensor) {
  if (tensor.numel() != 1) {
    refuse("tensor", "item() needs exactly one element, the shape is " + to_string(tensor.shape()));
  }
  const Tensor here = tensor.device().type == DeviceType::cpu ? tensor : detail::fetch(tensor);
  return detail::visit_dtype(here.dtype(), [&](auto tag) {
    using Element = typename decltype(tag)::type;
    return detail::convert<T>(detail::load(*static_cast<const Element*>(here.data())));
  });
}
}  // namespace

double Tensor::item_as_double() const { return item_of<double>(*this); }
std::int64_t Tensor::item_as_int64() const { return item_of<std::int64_t>(*this); }

std::vector<double> Tensor::to_vector() const {
  const NoGradGuard guard;
  std::vector<double> values(static_cast<std::size_t>(numel()));
  TensorView view;
  static_cast<TensorDesc&>(view) = TensorDesc::contiguous(DType::f64, shape());
  view.data = values.data();
  from_view(view, Ownership::borrow).copy_from(*this);
  return values;
}

Tensor& Tensor::fill(double value) {
  if (device().type != DeviceType::cpu) return copy_from(full({}, value, {.dtype = dtype()}).expand(shape()));
  detail::visit_dtype(dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T element = detail::convert<T>(value);
    T* const target = static_cast<T*>(data());
    detail::for_each_row<1>(shape(), {strides()}, true,
                            [&](const auto& offsets, std::int64_t count, const auto& steps) {
                              T* t = target + offsets[0];
                              for (std::int64_t i = 0; i < count; ++i, t += steps[0]) *t = element;
                            });
  });
  return *this;
}

Tensor& Tensor::copy_from(const Tensor& other) {
  if (shape() != other.shape()) {
    refuse("other", "cannot copy elements of shape " + to_string(other.shape()) + " into shape " + to_string(shape()));
  }
  const NoGradGuard guard;
  if (numel() == 0) return *this;
  const detail::Extent extent = detail::extent_of(shape(), strides());
  const bool dense = extent.beyond - extent.below == numel();
  const auto width = static_cast<std::int64_t>(size_of(dtype()));
  const bool on_cpu = device().type == DeviceType::cpu && other.device().type == DeviceType::cpu;
  if (!on_cpu && dense && dtype() == other.dtype() && strides() == other.strides()) {
    const std::int64_t first = extent.below * width;
    copy_bytes(static_cast<char*>(data()) + first, device(), static_cast<const char*>(other.data()) + first,
               other.device(), numel() * width);
    return *this;
  }
  const Tensor source = other.device().type == DeviceType::cpu ? other : detail::fetch(other);
  if (device().type == DeviceType::cpu) {
    // Memory shared in another order (x into its own transpose) would be overwritten before it is read.
    detail::copy_elements(*this, shares_storage_with(source) ? source.clone() : source);
    return *this;
  }
  if (!dense) {
    refuse("strides", "only dense tensors can be written on " + to_string(device()) + ", this one has shape " +
                          to_string(shape()) + " and strides " + to_string(strides()));
  }
  auto storage = Storage::allocate(numel() * width, cpu);
  void* const staged = storage->data();
  TensorDesc desc = this->desc();
  desc.device = cpu;
  detail::copy_elements(detail::make_tensor(desc, std::move(storage), -extent.below), source);
  copy_bytes(static_cast<char*>(data()) + extent.below * width, device(), staged, cpu, numel() * width);
  return *this;
}

Tensor Tensor::contiguous(MemoryFormat format) const {
  if (is_contiguous(format)) return *this;
  const TensorDesc wanted = format == MemoryFormat::contiguous ? TensorDesc::contiguous(dtype(), shape(), device())
                                                               : TensorDesc::channels_last(dtype(), shape(), device());
  return record("CloneBackward", detail::copy_as(*this, wanted), {*this},
                [](const Tensor& grad) { return std::vector<Tensor>{grad}; });
}

Tensor Tensor::clone() const {
  return record("CloneBackward", detail::copy_as(*this, detail::dense_like(desc())), {*this},
                [](const Tensor& grad) { return std::vector<Tensor>{grad}; });
}

Tensor Tensor::to(DType dtype) const {
  if (dtype == this->dtype()) return *this;
  TensorDesc wanted = detail::dense_like(desc());
  wanted.dtype = dtype;
  Tensor result = detail::copy_as(*this, wanted);
  if (!is_floating(dtype)) return result;
  return record("ToCopyBackward", std::move(result), {*this},
                [from = this->dtype()](const Tensor& grad) { return std::vector<Tensor>{grad.to(from)}; });
}

Tensor Tensor::to(Device device) const {
  if (device == this->device()) return *this;
  TensorDesc wanted = detail::dense_like(desc());
  wanted.device = device;
  return record("ToCopyBackward", detail::copy_as(*this, wanted), {*this},
                [from = this->device()](const Tensor& grad) { return std::vector<Tensor>{grad.to(from)}; });
}

}  // namespace cenote
