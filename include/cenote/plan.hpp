// A pooling call prepared once and run many times: no allocation, no exception and no check of the geometry in run().
//
//   auto plan = cenote::Plan::make(input_desc, cenote::MaxPool<2>{.kernel_size = 3, .stride = 2, .padding = 1});
//   plan.run({.input = src, .output = dst});
#pragma once

#include <cenote/error.hpp>
#include <cenote/executor.hpp>
#include <cenote/export.hpp>
#include <cenote/options.hpp>
#include <cenote/view.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cenote {

enum class Pass : std::uint8_t { forward, backward };

/// What a plan may be told beyond the op: other layouts than the default ones, and an instruction set for tests.
struct PlanOptions {
  /// Where given, shape and dtype must be the call's; strides are free (no two elements of a result may share memory).
  std::optional<TensorDesc> output{};
  std::optional<TensorDesc> indices{};
  std::optional<TensorDesc> grad_output{};
  std::optional<TensorDesc> grad_input{};
  std::optional<TensorDesc> random_samples{};
  /// One of cpu_targets(); empty: the best the machine has.
  std::string target{};
};

/// The memory of one run. Each pointer is to the first element (index 0 in every dimension) of its tensor.
struct RunArgs {
  const void* input = nullptr;           ///< forward; lp_pool's backward
  void* output = nullptr;                ///< forward
  void* indices = nullptr;               ///< forward with return_indices: written
  const void* saved_indices = nullptr;   ///< max_unpool, and the backward of the max family: read and checked
  const void* random_samples = nullptr;  ///< fractional_max_pool forward
  const void* grad_output = nullptr;     ///< backward
  void* grad_input = nullptr;            ///< backward
  const Executor* executor = nullptr;    ///< null: default_executor()
  void* stream = nullptr;                ///< CUDA: the cudaStream_t to run on
};

/// Immutable once made; run() may be called from any number of threads at once.
class CENOTE_API Plan {
 public:
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;
  ~Plan();

  /// Checks everything that can be checked without data and chooses the kernel. Throws Error.
  /// For max_unpool, `input` is the pooled tensor. For a backward, `input` is the forward's input.
  static Plan make(Pass pass, const TensorDesc& input, const PoolSpec& spec, const PlanOptions& options = {});

  template <class Options>
  static Plan make(const TensorDesc& input, const Options& o, const PlanOptions& options = {}) {
    return make(Pass::forward, input, to_spec(o), options);
  }
  template <class Options>
  static Plan make_backward(const TensorDesc& input, const Options& o, const PlanOptions& options = {}) {
    return make(Pass::backward, input, to_spec(o), options);
  }

#define CENOTE_PLAN_FACTORY(function, Options)                                                                     \
  template <int N>                                                                                                 \
  static Plan function(const TensorDesc& input, const Options<N>& o, const PlanOptions& options = {}) {            \
    return make(Pass::forward, input, to_spec(o), options);                                                        \
  }                                                                                                                \
  template <int N>                                                                                                 \
  static Plan function##_backward(const TensorDesc& input, const Options<N>& o, const PlanOptions& options = {}) { \
    return make(Pass::backward, input, to_spec(o), options);                                                       \
  }
  CENOTE_PLAN_FACTORY(max_pool, MaxPool)
  CENOTE_PLAN_FACTORY(min_pool, MinPool)
  CENOTE_PLAN_FACTORY(avg_pool, AvgPool)
  CENOTE_PLAN_FACTORY(sum_pool, SumPool)
  CENOTE_PLAN_FACTORY(lp_pool, LpPool)
  CENOTE_PLAN_FACTORY(adaptive_max_pool, AdaptiveMaxPool)
  CENOTE_PLAN_FACTORY(adaptive_avg_pool, AdaptiveAvgPool)
  CENOTE_PLAN_FACTORY(fractional_max_pool, FractionalMaxPool)
  CENOTE_PLAN_FACTORY(max_unpool, MaxUnpool)
#undef CENOTE_PLAN_FACTORY

  /// Runs the op. Refuses null and overlapping buffers before writing anything; an invalid saved index, found by the pass that
  /// uses it, leaves the result unspecified and touches nothing else.
  Status run(const RunArgs& args) const noexcept;

  /// CUDA: a run returns before the device has looked at indices and random samples. What it finds wrong with them is returned,
  /// once, by the plan's next run (which then does nothing) or by this, which does not wait: synchronise the stream first.
  /// Always ok on the CPU.
  Status check() const noexcept;

  Pass pass() const noexcept;
  const PoolSpec& spec() const noexcept;
  const TensorDesc& input() const noexcept;
  const TensorDesc& output() const noexcept;  ///< of the forward
  const TensorDesc& grad_output() const noexcept;
  const TensorDesc& grad_input() const noexcept;
  /// Of the indices that a forward writes or a backward and max_unpool read; for other ops its shape is empty.
  const TensorDesc& indices() const noexcept;
  const TensorDesc& random_samples() const noexcept;
  const Shape& output_shape() const noexcept { return output().shape; }

  /// One line: the kernel chosen, the instruction set, and why.
  const std::string& explain() const noexcept;
  /// The instruction set chosen ("AVX3"), or "cuda". Integers of more than a byte are folded with AVX2 at most.
  const std::string& target() const noexcept;
  /// Fewest bytes the op must move: each input read once, each result written once.
  std::int64_t bytes_moved() const noexcept;

 private:
  struct State;
  explicit Plan(std::unique_ptr<const State> state) noexcept;
  std::unique_ptr<const State> state_;
};

/// The instruction sets this machine has and this build knows, best first ("AVX3", "AVX2", ...).
CENOTE_API std::vector<std::string> cpu_targets();

/// Rewrites indices of one kind as another, for the pool described (its forward's input and options): lossless both ways.
/// `from` and `to` have the pool's output shape and the dtype of their kind. Throws Error on an index that is no tap of its
/// window. fractional_max_pool: needs random_samples for the window kind.
CENOTE_API void convert_indices(const TensorDesc& input, const PoolSpec& spec, IndexKind from_kind,
                                const TensorView& from, IndexKind to_kind, const TensorView& to,
                                const TensorView* random_samples = nullptr);

}  // namespace cenote
