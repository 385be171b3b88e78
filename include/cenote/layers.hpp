// What people put around pooling: convolution, linear layers, ReLU, chains, losses. On the CPU, f32 and f64, with gradients.
//
// An optional part of the library: it is built where Eigen is found (its matrix products are Eigen's).
#pragma once

#include <cenote/export.hpp>
#include <cenote/nn.hpp>

#include <memory>

namespace cenote {

struct Convolution {
  Dims<2> stride = 1;
  Dims<2> padding = 0;
};

namespace functional {

/// max(0, x); NaN stays NaN. The gradient at 0 is 0.
CENOTE_API Tensor relu(const Tensor& input);
/// (n, k) times (k, m).
CENOTE_API Tensor matmul(const Tensor& a, const Tensor& b);
/// input (n, in) times weight (out, in) transposed, plus bias (out) where one is given.
CENOTE_API Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias = {});
/// Cross-correlation, as everybody's conv2d: input (N, C, H, W) or (C, H, W), weight (out, C, kernel height, kernel width).
CENOTE_API Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                         const Convolution& options = {});
/// Mean of the squared differences.
CENOTE_API Tensor mse_loss(const Tensor& input, const Tensor& target);
/// Mean over n of -log(softmax(input)[n, target[n]]): input (n, classes), target (n) of i64 class numbers.
CENOTE_API Tensor cross_entropy(const Tensor& input, const Tensor& target);

}  // namespace functional

namespace nn {

class CENOTE_API ReLU final : public Layer {
 public:
  Tensor forward(const Tensor& input) const override { return functional::relu(input); }
  std::string name() const override { return "ReLU"; }
};

/// (N, ...) to (N, everything else).
class CENOTE_API Flatten final : public Layer {
 public:
  Tensor forward(const Tensor& input) const override { return input.flatten(1); }
  std::string name() const override { return "Flatten"; }
  std::string extra_repr() const override { return "start_dim=1, end_dim=-1"; }
};

struct LinearOptions {
  std::int64_t in_features = 0;
  std::int64_t out_features = 0;
  bool bias = true;
  std::uint64_t seed = 0;  ///< weights and bias start uniform in +-1/sqrt(inputs), as PyTorch's
  DType dtype = DType::f32;
};

class CENOTE_API Linear final : public Layer {
 public:
  explicit Linear(const LinearOptions& options);
  Tensor forward(const Tensor& input) const override { return functional::linear(input, weight, bias); }
  std::string name() const override { return "Linear"; }
  std::string extra_repr() const override;
  std::vector<Tensor> parameters() const override;

  Tensor weight;
  Tensor bias;  ///< undefined where options.bias is false
};

struct Conv2dOptions {
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  Dims<2> kernel_size;
  Dims<2> stride = 1;
  Dims<2> padding = 0;
  bool bias = true;
  std::uint64_t seed = 0;
  DType dtype = DType::f32;
};

class CENOTE_API Conv2d final : public Layer {
 public:
  explicit Conv2d(const Conv2dOptions& options);
  Tensor forward(const Tensor& input) const override;
  std::string name() const override { return "Conv2d"; }
  std::string extra_repr() const override;
  std::vector<Tensor> parameters() const override;
  const Conv2dOptions& options() const noexcept { return options_; }

  Tensor weight;
  Tensor bias;

 private:
  Conv2dOptions options_;
};

/// Layers one after the other: Sequential(Conv2d({...}), ReLU(), MaxPool2d({...})).
class CENOTE_API Sequential final : public Layer {
 public:
  template <class... Layers>
  explicit Sequential(Layers... layers) {
    (layers_.push_back(std::make_shared<Layers>(std::move(layers))), ...);
  }
  Tensor forward(const Tensor& input) const override;
  std::string name() const override { return "Sequential"; }
  std::vector<std::pair<std::string, const Module*>> children() const override;
  std::size_t size() const noexcept { return layers_.size(); }
  const Layer& operator[](std::size_t index) const { return *layers_.at(index); }

 private:
  std::vector<std::shared_ptr<const Layer>> layers_;
};

}  // namespace nn

namespace optim {

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double weight_decay = 0;
};

/// Stochastic gradient descent with momentum, by PyTorch's formulas. Parameters without a gradient stay as they are.
class CENOTE_API SGD {
 public:
  SGD(std::vector<Tensor> parameters, const SGDOptions& options);
  void step();
  void zero_grad() const;
  SGDOptions options;  ///< may be changed between steps

 private:
  std::vector<Tensor> parameters_, velocity_;
};

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
};

/// Adam, by PyTorch's formulas.
class CENOTE_API Adam {
 public:
  Adam(std::vector<Tensor> parameters, const AdamOptions& options);
  void step();
  void zero_grad() const;
  AdamOptions options;

 private:
  std::vector<Tensor> parameters_, mean_, square_;
  std::int64_t steps_ = 0;
};

}  // namespace optim
}  // namespace cenote
