// cenote::nn: pooling as modules, with PyTorch's names, parameters and printed form.
//
//   cenote::nn::MaxPool2d pool({.kernel_size = 3, .stride = 2, .padding = 1});
//   auto y = pool(x);
//   std::cout << pool;   // MaxPool2d(kernel_size=3, stride=2, padding=1, dilation=1, ceil_mode=False)
#pragma once

#include <cenote/export.hpp>
#include <cenote/functional.hpp>
#include <cenote/options.hpp>
#include <cenote/tensor.hpp>

#include <atomic>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

namespace cenote::nn {

using Pair = functional::Pair;  ///< values, indices

/// Anything with a name, parameters and parts. Modules are handles to their parameters: forward() is const, and a module may
/// be used from many threads at once as long as nobody trains it.
class CENOTE_API Module {
 public:
  virtual ~Module() = default;

  virtual std::string name() const = 0;
  /// What stands between the parentheses when printed.
  virtual std::string extra_repr() const { return {}; }
  /// The modules inside, with their names.
  virtual std::vector<std::pair<std::string, const Module*>> children() const { return {}; }
  /// The tensors that training changes: its own, then its children's.
  virtual std::vector<Tensor> parameters() const;
  void zero_grad() const;

 protected:
  Module() = default;
  Module(const Module&) = default;
  Module& operator=(const Module&) = default;
};

/// As PyTorch prints it.
CENOTE_API std::string to_string(const Module& module);
CENOTE_API std::ostream& operator<<(std::ostream& stream, const Module& module);

/// A module with one tensor in and one out: what can stand in a chain.
class CENOTE_API Layer : public Module {
 public:
  virtual Tensor forward(const Tensor& input) const = 0;
  Tensor operator()(const Tensor& input) const { return forward(input); }
};

namespace detail {
CENOTE_API std::string module_name(const PoolSpec& spec);
CENOTE_API std::string module_repr(const PoolSpec& spec);
/// Refuses what PyTorch's constructor refuses.
CENOTE_API void check_fractional(const PoolSpec& spec);

template <class Options>
concept HasIndices = requires(Options options) {
  options.return_indices;
};
}  // namespace detail

/// A pool with its options. forward_with_indices() is there for the max family, whatever return_indices says; forward()
/// refuses options that ask for indices, because it has no place for them.
template <class Options>
class Pool final : public Layer {
 public:
  explicit Pool(const Options& options) : options_(options) {}

  Tensor forward(const Tensor& input) const override { return functional::pool(input, to_spec(options_)); }
  Pair forward_with_indices(const Tensor& input) const requires detail::HasIndices<Options> {
    return functional::pool_with_indices(input, to_spec(options_));
  }
  const Options& options() const noexcept { return options_; }
  std::string name() const override { return detail::module_name(to_spec(options_)); }
  std::string extra_repr() const override { return detail::module_repr(to_spec(options_)); }

 private:
  Options options_;
};

/// Call number k (from 0) draws its samples with seed + k, unless samples are given.
template <int N>
class FractionalPool final : public Layer {
 public:
  explicit FractionalPool(const FractionalMaxPool<N>& options) : options_(options) {
    PoolSpec spec = to_spec(options_);
    detail::check_fractional(spec);
  }
  FractionalPool(const FractionalPool& other) : Layer(other), options_(other.options_), calls_(other.calls_.load()) {}
  FractionalPool& operator=(const FractionalPool& other) {
    options_ = other.options_;
    calls_ = other.calls_.load();
    return *this;
  }

  Tensor forward(const Tensor& input) const override { return forward(input, {}); }
  Tensor forward(const Tensor& input, const Tensor& random_samples) const {
    return functional::pool(input, to_spec(options_), random_samples, options_.seed + calls_++);
  }
  Pair forward_with_indices(const Tensor& input, const Tensor& random_samples = {}) const {
    return functional::pool_with_indices(input, to_spec(options_), random_samples, options_.seed + calls_++);
  }
  const FractionalMaxPool<N>& options() const noexcept { return options_; }
  std::string name() const override { return detail::module_name(to_spec(options_)); }

 private:
  FractionalMaxPool<N> options_;
  mutable std::atomic<std::uint64_t> calls_{0};
};

/// Puts values back where max pooling found them.
template <int N>
class Unpool final : public Module {
 public:
  explicit Unpool(const MaxUnpool<N>& options) : options_(options) {}

  /// output_size: the size of what was pooled, where the options do not say it.
  Tensor forward(const Tensor& input, const Tensor& indices, const DimList& output_size = {}) const {
    PoolSpec spec = to_spec(options_);
    if (!output_size.empty()) spec.output_size = output_size;
    return functional::unpool(input, indices, spec);
  }
  Tensor operator()(const Tensor& input, const Tensor& indices, const DimList& output_size = {}) const {
    return forward(input, indices, output_size);
  }
  const MaxUnpool<N>& options() const noexcept { return options_; }
  std::string name() const override { return detail::module_name(to_spec(options_)); }
  std::string extra_repr() const override { return detail::module_repr(to_spec(options_)); }

 private:
  MaxUnpool<N> options_;
};

using MaxPool1d = Pool<MaxPool<1>>;
using MaxPool2d = Pool<MaxPool<2>>;
using MaxPool3d = Pool<MaxPool<3>>;
using MinPool1d = Pool<MinPool<1>>;
using MinPool2d = Pool<MinPool<2>>;
using MinPool3d = Pool<MinPool<3>>;
using AvgPool1d = Pool<AvgPool<1>>;
using AvgPool2d = Pool<AvgPool<2>>;
using AvgPool3d = Pool<AvgPool<3>>;
using SumPool1d = Pool<SumPool<1>>;
using SumPool2d = Pool<SumPool<2>>;
using SumPool3d = Pool<SumPool<3>>;
using LPPool1d = Pool<LpPool<1>>;
using LPPool2d = Pool<LpPool<2>>;
using LPPool3d = Pool<LpPool<3>>;
using AdaptiveMaxPool1d = Pool<AdaptiveMaxPool<1>>;
using AdaptiveMaxPool2d = Pool<AdaptiveMaxPool<2>>;
using AdaptiveMaxPool3d = Pool<AdaptiveMaxPool<3>>;
using AdaptiveAvgPool1d = Pool<AdaptiveAvgPool<1>>;
using AdaptiveAvgPool2d = Pool<AdaptiveAvgPool<2>>;
using AdaptiveAvgPool3d = Pool<AdaptiveAvgPool<3>>;
using FractionalMaxPool2d = FractionalPool<2>;
using FractionalMaxPool3d = FractionalPool<3>;
using MaxUnpool1d = Unpool<1>;
using MaxUnpool2d = Unpool<2>;
using MaxUnpool3d = Unpool<3>;

}  // namespace cenote::nn
