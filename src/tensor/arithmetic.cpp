// The arithmetic around pools: enough for a loss, with gradients.
#include "tensor/impl.hpp"
#include "tensor/loops.hpp"
#include "tensor/refuse.hpp"

#include <cmath>

namespace cenote {

using detail::convert;
using detail::for_each_row;
using detail::load;
using detail::record;
using detail::visit_dtype;

namespace {

/// The element on the CPU; sends results back to where the operands were.
Tensor here(const Tensor& tensor) { return tensor.detach().to(cpu); }

Shape broadcast(const Tensor& a, const Tensor& b) {
  Shape shape = a.rank() >= b.rank() ? a.shape() : b.shape();
  for (int i = 1; i <= shape.rank(); ++i) {
    const std::int64_t x = i <= a.rank() ? a.shape()[a.rank() - i] : 1;
    const std::int64_t y = i <= b.rank() ? b.shape()[b.rank() - i] : 1;
    if (x != y && x != 1 && y != 1) {
      refuse("other", "shapes " + to_string(a.shape()) + " and " + to_string(b.shape()) + " do not broadcast");
    }
    shape[shape.rank() - i] = x == 1 ? y : x;
  }
  return shape;
}

/// Integers wrap around: computed as unsigned.
template <class T>
using Wrapping = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;

struct Add {
  static constexpr const char* kName = "AddBackward";
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct Sub {
  static constexpr const char* kName = "SubBackward";
  template <class T>
  T operator()(T a, T b) const {
    return a - b;
  }
};
struct Mul {
  static constexpr const char* kName = "MulBackward";
  template <class T>
  T operator()(T a, T b) const {
    return a * b;
  }
};
struct Div {
  static constexpr const char* kName = "DivBackward";
  template <class T>
  T operator()(T a, T b) const {
    return a / b;
  }
};

/// Elementwise over the broadcast shape, off the tape. The result keeps the first operand's memory format.
template <class Operation>
Tensor binary(const Tensor& a, const Tensor& b, Operation operation) {
  if (a.dtype() != b.dtype()) {
    refuse("other", std::string("dtypes ") + name_of(a.dtype()) + " and " + name_of(b.dtype()) +
                        " differ: convert one of them with to()");
  }
  if (a.device() != b.device()) {
    refuse("other", "devices " + to_string(a.device()) + " and " + to_string(b.device()) + " differ");
  }
  if (std::is_same_v<Operation, Div> && !is_floating(a.dtype())) {
    refuse("dtype", std::string("division is for floating types, these are ") + name_of(a.dtype()));
  }
  const Shape shape = broadcast(a, b);
  const Tensor left = here(a).expand(shape);
  const Tensor right = here(b).expand(shape);
  Tensor result = empty(left.desc().is_channels_last() ? TensorDesc::channels_last(a.dtype(), shape)
                                                       : TensorDesc::contiguous(a.dtype(), shape));
  visit_dtype(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using W = Wrapping<detail::Number<T>>;
    T* const out = static_cast<T*>(result.data());
    const T* const x = static_cast<const T*>(left.data());
    const T* const y = static_cast<const T*>(right.data());
    for_each_row<3>(shape, {result.strides(), left.strides(), right.strides()}, true,
                    [&](const auto& at, std::int64_t count, const auto& step) {
                      for (std::int64_t i = 0; i < count; ++i) {
                        const W p = static_cast<W>(load(x[at[1] + i * step[1]]));
                        const W q = static_cast<W>(load(y[at[2] + i * step[2]]));
                        out[at[0] + i * step[0]] = convert<T>(operation(p, q));
                      }
                    });
  });
  return result.to(a.device());
}

/// A scalar as a rank-0 tensor of the other operand's type.
Tensor operand(const Tensor& like, double value) {
  if (!is_floating(like.dtype()) && value != std::trunc(value)) {
    refuse("scalar", "the scalar " + std::to_string(value) + " is not an integer, but the tensor is " +
                         name_of(like.dtype()) + ": convert it with to(DType::f32)");
  }
  return full({}, value, {.dtype = like.dtype(), .device = like.device()});
}

using Gradients = std::vector<Tensor>;

/// Number type that sums are added in: f64 for floating types, 64-bit wrapping for integers.
template <class T>
using Accumulator = std::conditional_t<detail::is_float_type<T>, double, std::uint64_t>;

DType sum_dtype(DType dtype) { return is_floating(dtype) ? dtype : DType::i64; }

/// Sum over the last dimensions of a CPU tensor, all but the first `kept`, in row-major order.
Tensor sum_last(const Tensor& tensor, int kept, double divisor = 1) {
  const std::span<const std::int64_t> sizes(tensor.shape().begin(), tensor.shape().size());
  const std::span<const std::int64_t> steps(tensor.strides().begin(), tensor.strides().size());
  const auto split = static_cast<std::size_t>(kept);
  const Shape outer(sizes.first(split)), inner(sizes.subspan(split));
  const Strides outer_strides(steps.first(split)), inner_strides(steps.subspan(split));
  Tensor result = empty(outer, {.dtype = sum_dtype(tensor.dtype())});
  visit_dtype(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Result = std::conditional_t<detail::is_float_type<T>, T, std::int64_t>;
    const T* const source = static_cast<const T*>(tensor.data());
    Result* const target = static_cast<Result*>(result.data());
    for_each_row<2>(
        outer, {result.strides(), outer_strides}, false, [&](const auto& at, std::int64_t count, const auto& step) {
          for (std::int64_t i = 0; i < count; ++i) {
            const T* const from = source + at[1] + i * step[1];
            Accumulator<T> sum = 0;
            for_each_row<1>(inner, {inner_strides}, false, [&](const auto& offset, std::int64_t n, const auto& stride) {
              for (std::int64_t k = 0; k < n; ++k) {
                sum += static_cast<Accumulator<T>>(load(from[offset[0] + k * stride[0]]));
              }
            });
            if constexpr (detail::is_float_type<T>) {
              target[at[0] + i * step[0]] = convert<Result>(sum / divisor);
            } else {
              target[at[0] + i * step[0]] = static_cast<Result>(sum);
            }
          }
        });
  });
  return result;
}

}  // namespace

Tensor detail::sum_to(const Tensor& tensor, const Shape& shape) {
  if (tensor.shape() == shape) return tensor;
  const int added = tensor.rank() - shape.rank();
  std::vector<int> order;  // dimensions that stay, then those that are summed
  std::vector<int> summed;
  for (int d = 0; d < tensor.rank(); ++d) {
    const bool stays = d >= added && shape[d - added] == tensor.shape()[d];
    (stays ? order : summed).push_back(d);
  }
  const int kept = static_cast<int>(order.size());
  order.insert(order.end(), summed.begin(), summed.end());
  return sum_last(here(tensor).permute(order), kept).reshape(shape).to(tensor.device());
}

Tensor Tensor::sum() const {
  return record("SumBackward", sum_last(here(*this), 0).to(device()), {*this}, [desc = desc()](const Tensor& grad) {
    return Gradients{full(desc.shape, grad.item(), {.dtype = desc.dtype, .device = desc.device})};
  });
}

Tensor Tensor::mean() const {
  if (!is_floating(dtype())) {
    refuse("dtype", std::string("mean is for floating types, this tensor is ") + name_of(dtype()) +
                        ": convert it with to(DType::f32)");
  }
  const auto count = static_cast<double>(numel());
  return record("MeanBackward", sum_last(here(*this), 0, count).to(device()), {*this},
                [desc = desc(), count](const Tensor& grad) {
                  return Gradients{full(desc.shape, grad.item() / count, {.dtype = desc.dtype, .device = desc.device})};
                });
}

Tensor Tensor::sum(int dim, bool keepdim) const {
  const int d = detail::normalise_dim(dim, rank());
  if (rank() == 0) return sum();
  std::vector<int> order;
  for (int i = 0; i < rank(); ++i) {
    if (i != d) order.push_back(i);
  }
  order.push_back(d);
  Tensor result = sum_last(here(*this).permute(order), rank() - 1);
  if (keepdim) result = result.unsqueeze(d);
  return record("SumBackward", result.to(device()), {*this}, [shape = shape(), d, keepdim](const Tensor& grad) {
    return Gradients{(keepdim ? grad : grad.unsqueeze(d)).expand(shape)};
  });
}

Tensor Tensor::add(const Tensor& other) const {
  return record(Add::kName, binary(*this, other, Add{}), {*this, other},
                [a = shape(), b = other.shape()](const Tensor& grad) {
                  return Gradients{detail::sum_to(grad, a), detail::sum_to(grad, b)};
                });
}

Tensor Tensor::sub(const Tensor& other) const {
  return record(Sub::kName, binary(*this, other, Sub{}), {*this, other},
                [a = shape(), b = other.shape()](const Tensor& grad) {
                  return Gradients{detail::sum_to(grad, a), detail::sum_to(grad, b).neg()};
                });
}

Tensor Tensor::mul(const Tensor& other) const {
  return record(
      Mul::kName, binary(*this, other, Mul{}), {*this, other},
      [a = detach(), b = other.detach(), need_a = requires_grad(), need_b = other.requires_grad()](const Tensor& grad) {
        return Gradients{need_a ? detail::sum_to(grad.mul(b), a.shape()) : Tensor(),
                         need_b ? detail::sum_to(grad.mul(a), b.shape()) : Tensor()};
      });
}

Tensor Tensor::div(const Tensor& other) const {
  return record(
      Div::kName, binary(*this, other, Div{}), {*this, other},
      [a = detach(), b = other.detach(), need_a = requires_grad(), need_b = other.requires_grad()](const Tensor& grad) {
        return Gradients{need_a ? detail::sum_to(grad.div(b), a.shape()) : Tensor(),
                         need_b ? detail::sum_to(grad.mul(a).div(b.mul(b)).neg(), b.shape()) : Tensor()};
      });
}

Tensor Tensor::add(double scalar) const { return add(operand(*this, scalar)); }
Tensor Tensor::sub(double scalar) const { return sub(operand(*this, scalar)); }
Tensor Tensor::mul(double scalar) const { return mul(operand(*this, scalar)); }
Tensor Tensor::div(double scalar) const { return div(operand(*this, scalar)); }
Tensor Tensor::neg() const { return mul(-1); }

bool equal(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  const Tensor left = here(a), right = here(b);
  return visit_dtype(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const x = static_cast<const T*>(left.data());
    const T* const y = static_cast<const T*>(right.data());
    bool same = true;
    for_each_row<2>(a.shape(), {left.strides(), right.strides()}, true,
                    [&](const auto& at, std::int64_t count, const auto& step) {
                      for (std::int64_t i = 0; i < count && same; ++i) {
                        same = load(x[at[0] + i * step[0]]) == load(y[at[1] + i * step[1]]);
                      }
                    });
    return same;
  });
}

bool allclose(const Tensor& a, const Tensor& b, const CloseOptions& options) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  const std::vector<double> x = a.to_vector(), y = b.to_vector();
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (options.equal_nan && std::isnan(x[i]) && std::isnan(y[i]))) continue;
    // Infinities are close to themselves only; NaN fails every comparison.
    if (std::isinf(x[i]) || std::isinf(y[i])) return false;
    if (!(std::abs(x[i] - y[i]) <= options.atol + options.rtol * std::abs(y[i]))) return false;
  }
  return true;
}

}  // namespace cenote
