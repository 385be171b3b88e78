// Optimisers, by PyTorch's formulas.
#include "tensor/loops.hpp"
#include "tensor/refuse.hpp"

#include <cenote/layers.hpp>

#include <cmath>

namespace cenote::optim {
namespace {

void check(const std::vector<Tensor>& parameters) {
  for (const Tensor& parameter : parameters) {
    if (!parameter.is_leaf() || !parameter.requires_grad() || !parameter.is_contiguous() || parameter.device() != cpu) {
      refuse("parameters", "an optimiser takes contiguous CPU leaves that require a gradient, got " +
                               std::string(name_of(parameter.dtype())) + " " + to_string(parameter.shape()));
    }
  }
}

std::vector<Tensor> zeros_of(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> all;
  all.reserve(parameters.size());
  for (const Tensor& parameter : parameters) all.push_back(zeros_like(parameter));
  return all;
}

void forget_gradients(const std::vector<Tensor>& parameters) {
  for (const Tensor& parameter : parameters) parameter.zero_grad();
}

/// Calls body(value, gradient, a, b) for every element: the value is written back, a and b are kept as state.
template <class Body>
void update(const Tensor& parameter, const Tensor& a, const Tensor& b, const Body& body) {
  const Tensor grad = parameter.grad().contiguous();
  detail::visit_dtype(parameter.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (detail::is_float_type<T>) {
      const auto values = parameter.span<T>(), gradients = grad.span<T>(), first = a.span<T>(), second = b.span<T>();
      for (std::size_t i = 0; i < values.size(); ++i) {
        double value = detail::load(values[i]), x = detail::load(first[i]), y = detail::load(second[i]);
        body(value, static_cast<double>(detail::load(gradients[i])), x, y);
        first[i] = detail::convert<T>(x);
        if (&a != &b) second[i] = detail::convert<T>(y);
        values[i] = detail::convert<T>(value);
      }
    }
  });
}

}  // namespace

SGD::SGD(std::vector<Tensor> parameters, const SGDOptions& o) : options(o), parameters_(std::move(parameters)) {
  check(parameters_);
  velocity_ = zeros_of(parameters_);
}

void SGD::zero_grad() const { forget_gradients(parameters_); }

void SGD::step() {
  for (std::size_t k = 0; k < parameters_.size(); ++k) {
    if (!parameters_[k].grad().defined()) continue;
    update(parameters_[k], velocity_[k], velocity_[k],
           [this](double& value, double gradient, double& velocity, double&) {
             velocity = options.momentum * velocity + gradient + options.weight_decay * value;
             value -= options.lr * velocity;
           });
  }
}

Adam::Adam(std::vector<Tensor> parameters, const AdamOptions& o) : options(o), parameters_(std::move(parameters)) {
  check(parameters_);
  mean_ = zeros_of(parameters_);
  square_ = zeros_of(parameters_);
}

void Adam::zero_grad() const { forget_gradients(parameters_); }

void Adam::step() {
  ++steps_;
  const double mean_scale = 1 - std::pow(options.beta1, static_cast<double>(steps_));
  const double square_scale = std::sqrt(1 - std::pow(options.beta2, static_cast<double>(steps_)));
  for (std::size_t k = 0; k < parameters_.size(); ++k) {
    if (!parameters_[k].grad().defined()) continue;
    update(parameters_[k], mean_[k], square_[k], [&](double& value, double gradient, double& mean, double& square) {
      const double g = gradient + options.weight_decay * value;
      mean = options.beta1 * mean + (1 - options.beta1) * g;
      square = options.beta2 * square + (1 - options.beta2) * g * g;
      value -= options.lr / mean_scale * mean / (std::sqrt(square) / square_scale + options.eps);
    });
  }
}

}  // namespace cenote::optim
