// Tensors around plans: what is allocated, what the tape keeps, and the way back.
#include "tensor/impl.hpp"
#include "tensor/refuse.hpp"

#include <cenote/functional.hpp>
#include <cenote/plan.hpp>

#include <algorithm>
#include <cctype>

namespace cenote::functional {
namespace {

bool has_indices(Op op) {
  return op == Op::max_pool || op == Op::min_pool || op == Op::adaptive_max_pool || op == Op::fractional_max_pool;
}

std::string function_name(const PoolSpec& spec) {
  return std::string(name_of(spec.op)) + std::to_string(spec.dims) + "d";
}

/// "MaxPool2dBackward", as PyTorch names its gradient functions.
std::string backward_name(const PoolSpec& spec) {
  std::string name;
  bool upper = true;
  for (const char letter : function_name(spec)) {
    if (letter == '_') {
      upper = true;
      continue;
    }
    name += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(letter))) : letter;
    upper = false;
  }
  return name + "Backward";
}

/// What the tape writes down: `window`, unless a window has more taps than 32 bits can number.
IndexKind saved_kind(const Tensor& input, const PoolSpec& spec) {
  double taps = 1;
  if (spec.op == Op::adaptive_max_pool) {
    taps = static_cast<double>(input.numel());
  } else {
    for (int i = 0; i < std::min(spec.dims, 3); ++i)  // dims is not checked yet
      taps *= static_cast<double>(spec.kernel_size.values[spec.kernel_size.count == 1 ? 0 : i].value);
  }
  return taps < 4294967295.0 ? IndexKind::window : IndexKind::flat64;
}

struct Saved {
  PoolSpec spec;
  TensorDesc input_desc;
  Tensor input;  // lp_pool only
  Tensor indices;
  Tensor random_samples;
};

Tensor run_backward(const Tensor& grad_output, const Saved& saved) {
  PlanOptions options;
  options.grad_output = grad_output.desc();
  if (saved.indices.defined()) options.indices = saved.indices.desc();
  if (saved.random_samples.defined()) options.random_samples = saved.random_samples.desc();
  const Plan plan = Plan::make(Pass::backward, saved.input_desc, saved.spec, options);
  Tensor grad_input = empty(plan.grad_input());
  plan.run({.input = saved.input.defined() ? saved.input.data() : nullptr,
            .saved_indices = saved.indices.defined() ? saved.indices.data() : nullptr,
            .random_samples = saved.random_samples.defined() ? saved.random_samples.data() : nullptr,
            .grad_output = grad_output.data(),
            .grad_input = grad_input.data()})
      .raise();
  return grad_input;
}

Tensor put_on_tape(Tensor output, const Tensor& input, Saved saved) {
  std::string name = backward_name(saved.spec);
  return detail::record(std::move(name), std::move(output), {input},
                        [saved = std::move(saved)](const Tensor& grad_output) {
                          return std::vector<Tensor>{run_backward(grad_output, saved)};
                        });
}

Pair forward(const Tensor& input, PoolSpec spec, Tensor random_samples, std::uint64_t seed, bool want_indices) {
  const bool differentiable = detail::recording(input);
  spec.return_indices = want_indices || (differentiable && has_indices(spec.op));
  if (spec.return_indices && !want_indices) spec.index_kind = saved_kind(input, spec);
  PlanOptions options;
  const bool fractional = spec.op == Op::fractional_max_pool;
  if (random_samples.defined()) {
    if (!fractional) refuse("random_samples", function_name(spec) + " takes no random_samples");
    options.random_samples = random_samples.desc();
  }
  const Plan plan = Plan::make(Pass::forward, input.desc(), spec, options);
  if (fractional && !random_samples.defined()) {
    random_samples =
        rand(plan.random_samples().shape, {.seed = seed, .dtype = input.dtype(), .device = input.device()});
  }
  Tensor output = empty(plan.output());
  Tensor indices = spec.return_indices ? empty(plan.indices()) : Tensor();
  plan.run({.input = input.data(),
            .output = output.data(),
            .indices = indices.defined() ? indices.data() : nullptr,
            .random_samples = fractional ? random_samples.data() : nullptr})
      .raise();
  if (differentiable) {
    output = put_on_tape(std::move(output), input,
                         {.spec = spec,
                          .input_desc = input.desc(),
                          .input = spec.op == Op::lp_pool ? input.detach() : Tensor(),
                          .indices = indices,
                          .random_samples = spec.index_kind == IndexKind::window ? random_samples : Tensor()});
  }
  return {output, want_indices ? indices : Tensor()};
}

/// The op with the whole plane as its window.
PoolSpec global_spec(const Tensor& input, Op op, int dims, IndexKind kind) {
  if (op == Op::avg_pool) return {.op = Op::adaptive_avg_pool, .dims = dims, .output_size = 1};
  if (op == Op::max_pool) return {.op = Op::adaptive_max_pool, .dims = dims, .output_size = 1, .index_kind = kind};
  PoolSpec spec{.op = op, .dims = dims, .index_kind = kind};
  const Shape& shape = input.shape();
  const bool fits = shape.rank() == dims + 1 || shape.rank() == dims + 2;
  bool filled = fits;
  for (int i = shape.rank() - dims; fits && i < shape.rank(); ++i) filled = filled && shape[i] > 0;
  if (!filled) {
    refuse("input", "global_" + function_name(spec) + ": input must have " + std::to_string(dims + 1) +
                        " dimensions (" + std::to_string(dims + 2) + " with a batch), none of the last " +
                        std::to_string(dims) + " empty, got shape " + to_string(shape));
  }
  spec.kernel_size = DimList(std::span<const std::int64_t>(shape.end() - dims, shape.end()));
  return spec;
}

void check_global(Op op) {
  if (op != Op::max_pool && op != Op::min_pool && op != Op::avg_pool && op != Op::sum_pool) {
    refuse("op", std::string("global pooling is max, min, average or sum pooling, not ") + name_of(op));
  }
}

}  // namespace

Tensor pool(const Tensor& input, const PoolSpec& spec, const Tensor& random_samples, std::uint64_t seed) {
  if (spec.op == Op::max_unpool) refuse("op", "max_unpool needs indices: call functional::unpool");
  if (spec.return_indices && has_indices(spec.op)) {
    const std::string name = function_name(spec);
    refuse("return_indices", name + " returns values only: call " + name +
                                 "_with_indices (of a module: forward_with_indices) to get the indices as well");
  }
  return forward(input, spec, random_samples, seed, false).first;
}

Pair pool_with_indices(const Tensor& input, const PoolSpec& spec, const Tensor& random_samples, std::uint64_t seed) {
  if (!has_indices(spec.op)) refuse("op", function_name(spec) + " has no indices to return");
  return forward(input, spec, random_samples, seed, true);
}

Tensor unpool(const Tensor& input, const Tensor& indices, const PoolSpec& spec) {
  if (spec.op != Op::max_unpool) refuse("op", "unpool computes max_unpool, not " + function_name(spec));
  const Plan plan = Plan::make(Pass::forward, input.desc(), spec, {.indices = indices.desc()});
  Tensor output = empty(plan.output());
  plan.run({.input = input.data(), .output = output.data(), .saved_indices = indices.data()}).raise();
  if (!detail::recording(input)) return output;
  return put_on_tape(std::move(output), input,
                     {.spec = spec, .input_desc = input.desc(), .input = {}, .indices = indices, .random_samples = {}});
}

Tensor pool_backward(const Tensor& grad_output, const TensorDesc& input, const PoolSpec& spec, const Tensor& indices,
                     const Tensor& random_samples) {
  if (spec.op == Op::lp_pool) refuse("input", "lp_pool's backward needs the input's elements: call lp_pool_backward");
  const bool reads_indices = has_indices(spec.op) || spec.op == Op::max_unpool;
  if (reads_indices != indices.defined()) {
    refuse("indices",
           function_name(spec) + " backward " + (reads_indices ? "needs the forward's indices" : "takes no indices"));
  }
  const bool reads_samples = spec.op == Op::fractional_max_pool && spec.index_kind == IndexKind::window;
  if (reads_samples && !random_samples.defined()) {
    refuse("random_samples",
           function_name(spec) + " backward needs the forward's random_samples to read indices of kind window");
  }
  return run_backward(grad_output, {.spec = spec,
                                    .input_desc = input,
                                    .input = {},
                                    .indices = indices,
                                    .random_samples = reads_samples ? random_samples : Tensor()});
}

Tensor lp_pool_backward(const Tensor& grad_output, const Tensor& input, const PoolSpec& spec) {
  if (spec.op != Op::lp_pool) refuse("op", "lp_pool_backward is lp_pool's, not " + function_name(spec) + "'s");
  return run_backward(grad_output,
                      {.spec = spec, .input_desc = input.desc(), .input = input, .indices = {}, .random_samples = {}});
}

Tensor global_pool(const Tensor& input, Op op, int dims) {
  check_global(op);
  return pool(input, global_spec(input, op, dims, IndexKind::flat64));
}

Pair global_pool_with_indices(const Tensor& input, Op op, int dims, IndexKind kind) {
  check_global(op);
  return pool_with_indices(input, global_spec(input, op, dims, kind));
}

}  // namespace cenote::functional
