// Elementwise layers, losses, chains: what needs no matrix products.
#include "tensor/impl.hpp"
#include "tensor/loops.hpp"
#include "tensor/refuse.hpp"

#include <cenote/layers.hpp>

#include <cmath>

namespace cenote {

using detail::record;

namespace {

using Gradients = std::vector<Tensor>;

void require_f32_or_f64(const Tensor& tensor, const char* argument) {
  if ((tensor.dtype() != DType::f32 && tensor.dtype() != DType::f64) || tensor.device().type != DeviceType::cpu) {
    refuse(argument, std::string(argument) + " must be f32 or f64 on the cpu, got " + name_of(tensor.dtype()) + " on " +
                         to_string(tensor.device()));
  }
}

/// Calls body(T{}) with float or double.
template <class Body>
void visit_real(DType dtype, const Body& body) {
  dtype == DType::f32 ? body(float{}) : body(double{});
}

/// Uniform in +-bound.
Tensor uniform(const Shape& shape, double bound, std::uint64_t seed, DType dtype) {
  Tensor values = (rand(shape, {.seed = seed, .dtype = dtype}) * 2 - 1) * bound;
  return values.set_requires_grad();
}

std::int64_t entry(const Dims<2>& dims, int axis) { return dims.values[dims.count == 1 ? 0 : axis].value; }

std::string pair_text(const Dims<2>& dims) {
  return std::string("(").append(std::to_string(entry(dims, 0))) + ", " + std::to_string(entry(dims, 1)) + ")";
}

}  // namespace

Tensor functional::relu(const Tensor& input) {
  require_f32_or_f64(input, "input");
  const Tensor source = input.detach();
  Tensor output = empty(source.desc().is_channels_last() ? TensorDesc::channels_last(input.dtype(), input.shape())
                                                         : TensorDesc::contiguous(input.dtype(), input.shape()));
  const auto apply = [](Tensor& to, const Tensor& x, const Tensor& value) {  // value where x > 0 or NaN, otherwise 0
    visit_real(x.dtype(), [&](auto tag) {
      using T = decltype(tag);
      T* const t = static_cast<T*>(to.data());
      const T* const p = static_cast<const T*>(x.data());
      const T* const v = static_cast<const T*>(value.data());
      detail::for_each_row<3>(x.shape(), {to.strides(), x.strides(), value.strides()}, true,
                              [&](const auto& at, std::int64_t count, const auto& step) {
                                for (std::int64_t i = 0; i < count; ++i) {
                                  const T element = p[at[1] + i * step[1]];
                                  t[at[0] + i * step[0]] = element <= 0 ? T{0} : v[at[2] + i * step[2]];
                                }
                              });
    });
  };
  apply(output, source, source);
  // The output tells what the input's sign was, and is kept by the next layer anyway.
  return record("ReluBackward", output, {input}, [result = output.detach(), apply](const Tensor& grad) {
    Tensor grad_input = zeros_like(result);
    apply(grad_input, result, grad);
    return Gradients{grad_input};
  });
}

Tensor functional::mse_loss(const Tensor& input, const Tensor& target) {
  if (input.shape() != target.shape()) {
    refuse("target", "mse_loss: target has shape " + to_string(target.shape()) + ", input " + to_string(input.shape()));
  }
  const Tensor difference = input - target;
  return (difference * difference).mean();
}

Tensor functional::cross_entropy(const Tensor& input, const Tensor& target) {
  require_f32_or_f64(input, "input");
  if (input.rank() != 2 || input.numel() == 0) {
    refuse("input", "cross_entropy: input must have shape (n, classes), got " + to_string(input.shape()));
  }
  const std::int64_t count = input.size(0), classes = input.size(1);
  if (target.dtype() != DType::i64 || target.shape() != Shape{count}) {
    refuse("target", "cross_entropy: target must be i64 of shape [" + std::to_string(count) + "], got " +
                         name_of(target.dtype()) + " " + to_string(target.shape()));
  }
  const std::vector<double> logits = input.to_vector();
  std::vector<double> gradient(logits.size());  // softmax, minus 1 at the target, over n
  double loss = 0;
  for (std::int64_t n = 0; n < count; ++n) {
    const std::int64_t label = target.at<std::int64_t>({n});
    if (label < 0 || label >= classes) {
      refuse("target",
             "cross_entropy: class " + std::to_string(label) + " is outside 0 to " + std::to_string(classes - 1));
    }
    const double* const row = logits.data() + n * classes;
    const double largest = *std::max_element(row, row + classes);
    double sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(row[c] - largest);
    loss += std::log(sum) + largest - row[label];
    for (std::int64_t c = 0; c < classes; ++c) {
      gradient[static_cast<std::size_t>(n * classes + c)] =
          (std::exp(row[c] - largest) / sum - (c == label ? 1 : 0)) / static_cast<double>(count);
    }
  }
  const Tensor result = scalar(loss / static_cast<double>(count), {.dtype = input.dtype()});
  return record("CrossEntropyBackward", result, {input},
                [saved = tensor(gradient, input.shape()).to(input.dtype())](const Tensor& grad) {
                  return Gradients{saved * grad.item()};
                });
}

namespace nn {

Linear::Linear(const LinearOptions& options) {
  if (options.in_features <= 0 || options.out_features <= 0) {
    refuse("in_features", "Linear: in_features and out_features must be positive, got " +
                              std::to_string(options.in_features) + " and " + std::to_string(options.out_features));
  }
  const double bound = 1 / std::sqrt(static_cast<double>(options.in_features));
  weight = uniform({options.out_features, options.in_features}, bound, options.seed, options.dtype);
  if (options.bias) bias = uniform({options.out_features}, bound, ~options.seed, options.dtype);
}

std::string Linear::extra_repr() const {
  return "in_features=" + std::to_string(weight.size(1)) + ", out_features=" + std::to_string(weight.size(0)) +
         ", bias=" + (bias.defined() ? "True" : "False");
}

std::vector<Tensor> Linear::parameters() const {
  return bias.defined() ? std::vector<Tensor>{weight, bias} : std::vector<Tensor>{weight};
}

Conv2d::Conv2d(const Conv2dOptions& options) : options_(options) {
  const std::int64_t height = entry(options.kernel_size, 0), width = entry(options.kernel_size, 1);
  if (options.in_channels <= 0 || options.out_channels <= 0 || height <= 0 || width <= 0) {
    refuse("kernel_size", "Conv2d: in_channels, out_channels and kernel_size must be positive, got " +
                              std::to_string(options.in_channels) + ", " + std::to_string(options.out_channels) +
                              " and " + pair_text(options.kernel_size));
  }
  const double bound = 1 / std::sqrt(static_cast<double>(options.in_channels * height * width));
  weight = uniform({options.out_channels, options.in_channels, height, width}, bound, options.seed, options.dtype);
  if (options.bias) bias = uniform({options.out_channels}, bound, ~options.seed, options.dtype);
}

Tensor Conv2d::forward(const Tensor& input) const {
  return functional::conv2d(input, weight, bias, {.stride = options_.stride, .padding = options_.padding});
}

std::string Conv2d::extra_repr() const {
  std::string text = std::to_string(options_.in_channels) + ", " + std::to_string(options_.out_channels) +
                     ", kernel_size=" + pair_text(options_.kernel_size) + ", stride=" + pair_text(options_.stride);
  if (entry(options_.padding, 0) != 0 || entry(options_.padding, 1) != 0)
    text += ", padding=" + pair_text(options_.padding);
  return options_.bias ? text : text + ", bias=False";
}

std::vector<Tensor> Conv2d::parameters() const {
  return bias.defined() ? std::vector<Tensor>{weight, bias} : std::vector<Tensor>{weight};
}

Tensor Sequential::forward(const Tensor& input) const {
  Tensor value = input;
  for (const auto& layer : layers_) value = layer->forward(value);
  return value;
}

std::vector<std::pair<std::string, const Module*>> Sequential::children() const {
  std::vector<std::pair<std::string, const Module*>> all;
  for (const auto& layer : layers_) all.emplace_back(std::to_string(all.size()), layer.get());
  return all;
}

}  // namespace nn
}  // namespace cenote
