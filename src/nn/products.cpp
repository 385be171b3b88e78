// Matrix products by Eigen, and what is made of them: linear layers and convolutions.
#include "tensor/impl.hpp"
#include "tensor/refuse.hpp"

#include <cenote/layers.hpp>

#include <Eigen/Core>

namespace cenote {
namespace {

using detail::record;
using Gradients = std::vector<Tensor>;

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Map = Eigen::Map<Matrix<T>>;
template <class T>
using ConstMap = Eigen::Map<const Matrix<T>>;

void check(const char* function, const char* argument, const Tensor& tensor, int rank, DType dtype) {
  if (tensor.rank() != rank || tensor.dtype() != dtype || (dtype != DType::f32 && dtype != DType::f64) ||
      tensor.device().type != DeviceType::cpu) {
    refuse(argument, std::string(function) + ": " + argument + " must be of rank " + std::to_string(rank) +
                         " and of one type, f32 or f64, on the cpu, got " + name_of(tensor.dtype()) + " " +
                         to_string(tensor.shape()) + " on " + to_string(tensor.device()));
  }
}

template <class Body>
void visit_real(DType dtype, const Body& body) {
  dtype == DType::f32 ? body(float{}) : body(double{});
}

enum class Transposed { none, left, right };

/// out += op(left) op(right), all of them rows one after the other: the one place where Eigen multiplies.
template <class T>
void add_product(const ConstMap<T>& left, const ConstMap<T>& right, Transposed which, Map<T> out) {
  switch (which) {
    case Transposed::none: out.noalias() += left * right; return;
    case Transposed::left: out.noalias() += left.transpose() * right; return;
    case Transposed::right: out.noalias() += left * right.transpose(); return;
  }
}

template <class T>
ConstMap<T> as_map(const Matrix<T>& matrix) {
  return {matrix.data(), matrix.rows(), matrix.cols()};
}

/// op(a) op(b), off the tape.
Tensor product(const Tensor& a, const Tensor& b, Transposed which) {
  const Tensor left = a.detach().contiguous(), right = b.detach().contiguous();
  Tensor result = zeros({left.size(which == Transposed::left ? 1 : 0), right.size(which == Transposed::right ? 0 : 1)},
                        {.dtype = a.dtype()});
  visit_real(a.dtype(), [&](auto tag) {
    using T = decltype(tag);
    add_product<T>({left.data<T>(), left.size(0), left.size(1)}, {right.data<T>(), right.size(0), right.size(1)}, which,
                   {result.data<T>(), result.size(0), result.size(1)});
  });
  return result;
}

/// Where a convolution reads: the same for its three products.
struct Patches {
  std::int64_t channels, height, width;
  std::int64_t kernel_height, kernel_width, stride_y, stride_x, pad_y, pad_x;
  std::int64_t out_height, out_width;

  std::int64_t rows() const { return channels * kernel_height * kernel_width; }
  std::int64_t columns() const { return out_height * out_width; }

  /// Calls body(row, column, offset into the image) for every tap that lies inside the image.
  template <class Body>
  void for_each(const Body& body) const {
    std::int64_t row = 0;
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t ky = 0; ky < kernel_height; ++ky) {
        for (std::int64_t kx = 0; kx < kernel_width; ++kx, ++row) {
          for (std::int64_t oy = 0; oy < out_height; ++oy) {
            const std::int64_t y = oy * stride_y - pad_y + ky;
            if (y < 0 || y >= height) continue;
            for (std::int64_t ox = 0; ox < out_width; ++ox) {
              const std::int64_t x = ox * stride_x - pad_x + kx;
              if (x >= 0 && x < width) body(row, oy * out_width + ox, (c * height + y) * width + x);
            }
          }
        }
      }
    }
  }

  /// One column for each output place, one row for each weight.
  template <class T>
  Matrix<T> gather(const T* image) const {
    Matrix<T> result = Matrix<T>::Zero(rows(), columns());
    for_each([&](std::int64_t row, std::int64_t column, std::int64_t at) { result(row, column) = image[at]; });
    return result;
  }
  template <class T>
  void scatter_add(const Matrix<T>& patches, T* image) const {
    for_each([&](std::int64_t row, std::int64_t column, std::int64_t at) { image[at] += patches(row, column); });
  }
};

std::int64_t entry(const char* argument, const Dims<2>& dims, int axis, std::int64_t least) {
  const std::int64_t value = dims.values[dims.count == 1 ? 0 : axis].value;
  if ((dims.count != 1 && dims.count != 2) || value < least || value > INT32_MAX) {
    refuse(argument, std::string("conv2d: ") + argument + " must be one or two integers of at least " +
                         std::to_string(least) + ", got " + std::to_string(value));
  }
  return value;
}

Patches patches_of(const Tensor& input, const Tensor& weight, const Convolution& options) {
  Patches p{.channels = input.size(1),
            .height = input.size(2),
            .width = input.size(3),
            .kernel_height = weight.size(2),
            .kernel_width = weight.size(3),
            .stride_y = entry("stride", options.stride, 0, 1),
            .stride_x = entry("stride", options.stride, 1, 1),
            .pad_y = entry("padding", options.padding, 0, 0),
            .pad_x = entry("padding", options.padding, 1, 0),
            .out_height = 0,
            .out_width = 0};
  const std::int64_t room_y = p.height + 2 * p.pad_y - p.kernel_height, room_x = p.width + 2 * p.pad_x - p.kernel_width;
  if (p.channels != weight.size(1) || weight.numel() == 0 || room_y < 0 || room_x < 0) {
    refuse("weight", "conv2d: weight of shape " + to_string(weight.shape()) + " does not fit an input of shape " +
                         to_string(input.shape()));
  }
  p.out_height = room_y / p.stride_y + 1;
  p.out_width = room_x / p.stride_x + 1;
  return p;
}

Tensor convolve(const Tensor& input, const Tensor& weight, const Patches& p) {
  Tensor output = zeros({input.size(0), weight.size(0), p.out_height, p.out_width}, {.dtype = input.dtype()});
  visit_real(input.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const ConstMap<T> w(weight.data<T>(), weight.size(0), p.rows());
    for (std::int64_t n = 0; n < input.size(0); ++n) {
      add_product<T>(w, as_map(p.gather(input[n].data<T>())), Transposed::none,
                     {output[n].data<T>(), weight.size(0), p.columns()});
    }
  });
  return output;
}

Gradients convolve_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, const Patches& p) {
  const Tensor grad_output = grad.contiguous();
  Tensor grad_input = zeros_like(input), grad_weight = zeros_like(weight);
  visit_real(input.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const ConstMap<T> w(weight.data<T>(), weight.size(0), p.rows());
    for (std::int64_t n = 0; n < input.size(0); ++n) {
      const ConstMap<T> g(grad_output[n].data<T>(), weight.size(0), p.columns());
      add_product<T>(g, as_map(p.gather(input[n].data<T>())), Transposed::right,
                     {grad_weight.data<T>(), weight.size(0), p.rows()});
      Matrix<T> patches = Matrix<T>::Zero(p.rows(), p.columns());
      add_product<T>(w, g, Transposed::left, {patches.data(), patches.rows(), patches.cols()});
      p.scatter_add(patches, grad_input[n].data<T>());
    }
  });
  return {grad_input, grad_weight};
}

}  // namespace

Tensor functional::matmul(const Tensor& a, const Tensor& b) {
  check("matmul", "a", a, 2, a.dtype());
  check("matmul", "b", b, 2, a.dtype());
  if (a.size(1) != b.size(0)) {
    refuse("b", "matmul: shapes " + to_string(a.shape()) + " and " + to_string(b.shape()) + " do not fit");
  }
  return record("MmBackward", product(a, b, Transposed::none), {a, b},
                [x = a.detach(), y = b.detach()](const Tensor& grad) {
                  return Gradients{product(grad, y, Transposed::right), product(x, grad, Transposed::left)};
                });
}

Tensor functional::linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  check("linear", "input", input, 2, input.dtype());
  check("linear", "weight", weight, 2, input.dtype());
  if (input.size(1) != weight.size(1)) {
    refuse("input", "linear: input has " + std::to_string(input.size(1)) + " features, weight takes " +
                        std::to_string(weight.size(1)));
  }
  const Tensor result =
      record("LinearBackward", product(input, weight, Transposed::right), {input, weight},
             [x = input.detach(), w = weight.detach()](const Tensor& grad) {
               return Gradients{product(grad, w, Transposed::none), product(grad, x, Transposed::left)};
             });
  return bias.defined() ? result + bias : result;
}

Tensor functional::conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, const Convolution& options) {
  if (input.rank() == 3) return conv2d(input.unsqueeze(0), weight, bias, options).squeeze(0);
  check("conv2d", "input", input, 4, input.dtype());
  check("conv2d", "weight", weight, 4, input.dtype());
  const Patches patches = patches_of(input, weight, options);
  const Tensor x = input.detach().contiguous(), w = weight.detach().contiguous();
  const Tensor result = record("ConvolutionBackward", convolve(x, w, patches), {input, weight},
                               [x, w, patches](const Tensor& grad) { return convolve_backward(grad, x, w, patches); });
  return bias.defined() ? result + bias.reshape({bias.numel(), 1, 1}) : result;
}

}  // namespace cenote
