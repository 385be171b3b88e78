// Views: other shapes and strides over the same elements, and the way back for their gradients.
#include "tensor/impl.hpp"
#include "tensor/refuse.hpp"

#include <algorithm>

namespace cenote {

using detail::alias;
using detail::normalise_dim;
using detail::record;

namespace {

/// The gradient of a view that picks some of the elements: zero, but for the elements picked.
template <class Pick>
detail::Backward scatter_backward(const Tensor& input, Pick pick) {
  return [desc = input.desc(), pick](const Tensor& grad) {
    Tensor grad_input = zeros(desc.shape, {.dtype = desc.dtype});
    pick(grad_input).copy_from(grad);
    return std::vector<Tensor>{grad_input.to(desc.device)};
  };
}

detail::Backward reshape_backward(const Tensor& input) {
  return [shape = input.shape()](const Tensor& grad) { return std::vector<Tensor>{grad.reshape(shape)}; };
}

Shape without(const Shape& shape, int dim) {
  std::int64_t kept[kMaxRank];
  std::size_t count = 0;
  for (int d = 0; d < shape.rank(); ++d) {
    if (d != dim) kept[count++] = shape[d];
  }
  return Shape(std::span<const std::int64_t>(kept, count));
}

Shape with(const Shape& shape, int dim, std::int64_t value) {
  std::int64_t values[kMaxRank + 1];
  std::size_t count = 0;
  for (int d = 0; d <= shape.rank(); ++d) {
    if (d == dim) values[count++] = value;
    if (d < shape.rank()) values[count++] = shape[d];
  }
  return Shape(std::span<const std::int64_t>(values, count));
}

/// Fills in a size of -1.
Shape resolve(const Tensor& tensor, const Shape& asked) {
  Shape shape = asked;
  int open = -1;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] == -1 && open < 0) {
      open = d;
      shape[d] = 1;
    } else if (shape[d] < 0) {
      refuse("shape",
             "shape " + to_string(asked) + " is not valid: one size may be -1, the others must not be negative");
    }
  }
  const std::int64_t known = element_count(shape);
  if (open >= 0) {
    if (known == 0 || tensor.numel() % known != 0) {
      refuse("shape", "shape " + to_string(asked) + " does not fit the " + std::to_string(tensor.numel()) +
                          " elements of shape " + to_string(tensor.shape()));
    }
    shape[open] = tensor.numel() / known;
  } else if (known != tensor.numel()) {
    refuse("shape", "shape " + to_string(asked) + " has " + std::to_string(known) + " elements, but shape " +
                        to_string(tensor.shape()) + " has " + std::to_string(tensor.numel()));
  }
  return shape;
}

/// PyTorch's rule: the old dimensions fall into chunks that continue each other in memory, and each new dimension must lie
/// inside one chunk. False where it does not.
bool view_strides(const Tensor& tensor, const Shape& shape, Strides& strides) {
  strides = contiguous_strides(shape);
  if (tensor.numel() == 0 || tensor.rank() == 0) return true;
  int next = shape.rank() - 1;
  std::int64_t step = tensor.strides()[tensor.rank() - 1];
  std::int64_t chunk = 1;    // elements in the current chunk
  std::int64_t covered = 1;  // of those, elements covered by new dimensions
  for (int d = tensor.rank() - 1; d >= 0; --d) {
    chunk *= tensor.shape()[d];
    const bool ends = d == 0 || (tensor.shape()[d - 1] != 1 && tensor.strides()[d - 1] != chunk * step);
    if (!ends) continue;
    while (next >= 0 && (covered < chunk || shape[next] == 1)) {
      strides[next] = covered * step;
      covered *= shape[next];
      --next;
    }
    if (covered != chunk) return false;
    if (d > 0) {
      step = tensor.strides()[d - 1];
      chunk = covered = 1;
    }
  }
  return next < 0;
}

}  // namespace

Tensor Tensor::narrow(int dim, std::int64_t start, std::int64_t length) const {
  const int d = normalise_dim(dim, rank());
  const std::int64_t size = this->size(d);
  if (start < -size || start > size) {
    refuse("start", "start " + std::to_string(start) + " is outside a dimension of size " + std::to_string(size));
  }
  const std::int64_t first = start < 0 ? start + size : start;
  if (length < 0 || length > size - first) {
    refuse("length", "length " + std::to_string(length) + " from " + std::to_string(first) +
                         " does not fit a dimension of size " + std::to_string(size));
  }
  return slice(d, {.start = first, .stop = first + length});
}

Tensor Tensor::slice(int dim, const Slice& slice) const {
  const int d = normalise_dim(dim, rank());
  const std::int64_t size = this->size(d);
  const std::int64_t step = slice.step;
  if (step == 0) refuse("step", "step 0 picks no elements: it must be positive or negative");
  // Python's rules: bounds from the end when negative, then clamped; backwards, "before the first" is -1.
  const std::int64_t low = step > 0 ? 0 : -1;
  const std::int64_t high = step > 0 ? size : size - 1;
  const auto bound = [&](const std::optional<std::int64_t>& given, std::int64_t otherwise) {
    if (!given) return otherwise;
    const std::int64_t value = *given < 0 ? (*given < -size ? low : *given + size) : *given;
    return std::clamp(value, low, high);
  };
  const std::int64_t first = bound(slice.start, step > 0 ? low : high);
  const std::int64_t last = bound(slice.stop, step > 0 ? high : low);
  const std::int64_t distance = step > 0 ? last - first : first - last;
  std::int64_t count = 0;
  if (distance > 0) count = step == INT64_MIN ? 1 : (distance - 1) / std::abs(step) + 1;
  Shape shape = this->shape();
  Strides strides = this->strides();
  shape[d] = count;
  strides[d] *= count > 1 ? step : 1;
  return record("SliceBackward", alias(*this, shape, strides, count > 0 ? first * this->strides()[d] : 0), {*this},
                scatter_backward(*this, [d, slice](const Tensor& t) { return t.slice(d, slice); }));
}

Tensor Tensor::select(int dim, std::int64_t index) const {
  if (rank() == 0) refuse("dim", "a tensor of rank 0 has no dimension to select from");
  const int d = normalise_dim(dim, rank());
  const std::int64_t size = shape()[d];
  if (index < -size || index >= size) {
    refuse("index", "index " + std::to_string(index) + " is outside a dimension of size " + std::to_string(size));
  }
  const std::int64_t at = index < 0 ? index + size : index;
  return record("SelectBackward", alias(*this, without(shape(), d), without(strides(), d), at * strides()[d]), {*this},
                scatter_backward(*this, [d, at](const Tensor& t) { return t.select(d, at); }));
}

Tensor Tensor::transpose(int dim0, int dim1) const {
  int dims[kMaxRank];
  for (int d = 0; d < rank(); ++d) dims[d] = d;
  const int a = normalise_dim(dim0, rank(), "dim0");
  const int b = normalise_dim(dim1, rank(), "dim1");
  if (rank() > 0) std::swap(dims[a], dims[b]);
  return permute(std::span<const int>(dims, static_cast<std::size_t>(rank())));
}

Tensor Tensor::permute(std::span<const int> dims) const {
  if (dims.size() != shape().size()) {
    refuse("dims",
           "permute needs " + std::to_string(rank()) + " dimensions, " + std::to_string(dims.size()) + " are given");
  }
  Shape new_shape = shape();
  Strides new_strides = strides();
  std::vector<int> inverse(dims.size(), -1);
  for (int d = 0; d < rank(); ++d) {
    const int from = normalise_dim(dims[static_cast<std::size_t>(d)], rank(), "dims");
    int& slot = inverse[static_cast<std::size_t>(from)];
    if (slot >= 0) refuse("dims", "dimension " + std::to_string(from) + " appears twice in permute");
    slot = d;
    new_shape[d] = shape()[from];
    new_strides[d] = strides()[from];
  }
  return record("PermuteBackward", alias(*this, new_shape, new_strides), {*this},
                [inverse](const Tensor& grad) { return std::vector<Tensor>{grad.permute(inverse)}; });
}

Tensor Tensor::squeeze() const {
  Tensor result = *this;
  for (int d = rank() - 1; d >= 0; --d) result = result.squeeze(d);
  return result;
}

Tensor Tensor::squeeze(int dim) const {
  const int d = normalise_dim(dim, rank());
  if (rank() == 0 || shape()[d] != 1) return *this;
  return record("SqueezeBackward", alias(*this, without(shape(), d), without(strides(), d)), {*this},
                reshape_backward(*this));
}

Tensor Tensor::unsqueeze(int dim) const {
  const int d = normalise_dim(dim, rank() + 1);
  const std::int64_t stride = d < rank() ? shape()[d] * strides()[d] : 1;
  return record("UnsqueezeBackward", alias(*this, with(shape(), d, 1), with(strides(), d, stride)), {*this},
                reshape_backward(*this));
}

Tensor Tensor::expand(const Shape& asked) const {
  const int added = asked.rank() - rank();
  if (added < 0) {
    refuse("shape", "expand to " + to_string(asked) + " would drop dimensions of shape " + to_string(shape()));
  }
  Shape new_shape = asked;
  Strides new_strides = asked;
  for (int d = 0; d < asked.rank(); ++d) {
    const std::int64_t size = d < added ? 1 : shape()[d - added];
    if (asked[d] == -1 && d >= added) new_shape[d] = size;
    if (new_shape[d] < 0 || (size != 1 && size != new_shape[d])) {
      refuse("shape", "cannot expand shape " + to_string(shape()) + " to " + to_string(asked) +
                          ": only dimensions of size 1 can grow");
    }
    new_strides[d] = d < added || (size == 1 && new_shape[d] != 1) ? 0 : strides()[d - added];
  }
  element_count(new_shape);  // refuses counts beyond 63 bits
  return record("ExpandBackward", alias(*this, new_shape, new_strides), {*this},
                [shape = shape()](const Tensor& grad) { return std::vector<Tensor>{detail::sum_to(grad, shape)}; });
}

Tensor Tensor::view(const Shape& asked) const {
  const Shape new_shape = resolve(*this, asked);
  Strides new_strides;
  if (!view_strides(*this, new_shape, new_strides)) {
    refuse("shape", "shape " + to_string(asked) + " cannot share memory with shape " + to_string(shape()) +
                        " and strides " + to_string(strides()) + ": use reshape(), which copies where it must");
  }
  return record("ViewBackward", alias(*this, new_shape, new_strides), {*this}, reshape_backward(*this));
}

Tensor Tensor::reshape(const Shape& asked) const {
  const Shape new_shape = resolve(*this, asked);
  Strides new_strides;
  return view_strides(*this, new_shape, new_strides) ? view(new_shape) : contiguous().view(new_shape);
}

Tensor Tensor::flatten(int start_dim, int end_dim) const {
  const int first = normalise_dim(start_dim, rank(), "start_dim");
  const int last = normalise_dim(end_dim, rank(), "end_dim");
  if (first > last) refuse("start_dim", "flatten: start_dim comes after end_dim");
  if (rank() == 0) return reshape({1});
  std::int64_t sizes[kMaxRank];
  std::size_t count = 0;
  for (int d = 0; d < rank(); ++d) {
    if (d > first && d <= last) {
      sizes[count - 1] *= shape()[d];
    } else {
      sizes[count++] = shape()[d];
    }
  }
  return reshape(Shape(std::span<const std::int64_t>(sizes, count)));
}

}  // namespace cenote
