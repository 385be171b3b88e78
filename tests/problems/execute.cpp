#include "problems/execute.hpp"

#include "problems/buffer.hpp"

namespace cenote::testing {
namespace {

bool chooses_layouts(const Problem& problem) {
  // Dense inputs leave the results' layout to the plan, except that every other channels-last problem asks for channels-last
  // results where PyTorch's rule would give contiguous ones.
  if (problem.layout == Layout::planar) return false;
  return problem.layout != Layout::channels_last || problem.seed % 2 == 1;
}

/// Results may not share memory, so a broadcast problem writes strided ones.
TensorDesc result_desc(const Problem& problem, DType dtype, const Shape& shape, std::uint64_t variant) {
  const Layout layout = problem.layout == Layout::broadcast ? Layout::strided : problem.layout;
  return describe(layout, dtype, shape, problem.spec.dims, problem.seed + variant);
}

/// The buffers of one run: inputs frozen, results poisoned.
struct Memory {
  Buffer input, saved_indices, samples, grad_output;  // read
  Buffer result, indices;                             // written

  template <class T>
  static void* fill(Buffer& buffer, const TensorDesc& desc, const std::vector<T>& values) {
    buffer = Buffer(desc);
    buffer.store(values);
    buffer.freeze();
    return buffer.data();
  }

  /// Nothing may look beyond a tensor while a plan runs.
  Status run_guarded(const Plan& plan, const RunArgs& args) const {
    const Buffer* buffers[] = {&input, &saved_indices, &samples, &grad_output, &result, &indices};
    for (const Buffer* buffer : buffers) buffer->guard();
    Status status = plan.run(args);
    for (const Buffer* buffer : buffers) buffer->unguard();
    return status;
  }

  std::string trouble() const {
    for (const Buffer* read : {&input, &saved_indices, &samples, &grad_output}) {
      if (auto text = read->changed(); !text.empty()) return text;
    }
    if (auto text = result.stray_write(); !text.empty()) return "result: " + text;
    if (auto text = indices.stray_write(); !text.empty()) return "indices: " + text;
    return {};
  }
};

/// Unsigned "no element" (all ones) becomes -1.
Integers load_indices(const Buffer& buffer) {
  Integers indices = buffer.load<std::int64_t>();
  const DType dtype = buffer.desc().dtype;
  const std::int64_t all_ones = dtype == DType::u8    ? 0xff
                                : dtype == DType::u16 ? 0xffff
                                : dtype == DType::u32 ? 0xffffffff
                                                      : -1;
  for (std::int64_t& index : indices) {
    if (index == all_ones) index = -1;
  }
  return indices;
}

Device device_of(const Setting& setting) { return setting.elsewhere == nullptr ? cpu : setting.elsewhere->device(); }

TensorDesc on(const Setting& setting, TensorDesc desc) {
  desc.device = device_of(setting);
  return desc;
}

TensorDesc input_desc(const Problem& problem, const Setting& setting) {
  return on(setting, describe(problem.layout, problem.dtype, problem.shape, problem.spec.dims, problem.seed));
}

TensorDesc samples_desc(const Problem& problem, const Shape& shape, const Setting& setting) {
  return {problem.dtype, shape, {}, device_of(setting)};
}

/// The same run on copies of the buffers; what the device finds out later counts as refused, too.
Status run_elsewhere(const Plan& plan, const RunArgs& here, Memory& memory, Elsewhere& elsewhere) {
  RunArgs there = here;
  Buffer* buffers[] = {&memory.input,       &memory.saved_indices, &memory.samples,
                       &memory.grad_output, &memory.result,        &memory.indices};
  elsewhere.forget();
  for (Buffer* buffer : buffers) {
    void* data =
        elsewhere.send(buffer->bytes().data(), buffer->bytes().size(), static_cast<std::size_t>(buffer->origin()));
    auto translate = [&](auto*& pointer) {
      if (pointer != nullptr && pointer == buffer->data()) pointer = data;
    };
    translate(there.input);
    translate(there.output);
    translate(there.indices);
    translate(there.saved_indices);
    translate(there.random_samples);
    translate(there.grad_output);
    translate(there.grad_input);
  }
  const Status status = plan.run(there);
  for (std::size_t i = 0; i < std::size(buffers); ++i) elsewhere.fetch(i, buffers[i]->bytes().data());
  return status.ok() ? plan.check() : status;
}

template <class T>
void finish(const Plan& plan, const RunArgs& args, Memory& memory, const Setting& setting, Outcome<T>& outcome) {
  const Status status = setting.elsewhere == nullptr ? memory.run_guarded(plan, args)
                                                     : run_elsewhere(plan, args, memory, *setting.elsewhere);
  outcome.trouble = memory.trouble();  // nothing outside a call's results is touched, refused or not
  if (outcome.trouble.empty() && !status.ok()) outcome.trouble = std::string("refused by run: ") + status.message();
  if (outcome.trouble.empty()) {
    outcome.result = memory.result.load<T>();
    if (args.indices != nullptr) outcome.indices = load_indices(memory.indices);
  }
}

}  // namespace

template <class T>
Outcome<T> run_forward(const Problem& problem, const Given<T>& given, std::optional<IndexKind> kind,
                       const Setting& setting) {
  Outcome<T> outcome;
  try {
    const bool unpool = problem.spec.op == Op::max_unpool;
    PoolSpec spec = problem.spec;
    spec.return_indices = kind.has_value() && !unpool;
    spec.index_kind = kind.value_or(IndexKind::flat64);
    PlanOptions options;
    options.target = setting.target;
    if (!given.samples_shape.empty()) options.random_samples = samples_desc(problem, given.samples_shape, setting);
    const TensorDesc input = input_desc(problem, setting);
    if (chooses_layouts(problem)) {
      const Plan probe = Plan::make(Pass::forward, input, spec, options);
      options.output = on(setting, result_desc(problem, problem.dtype, probe.output().shape, 1));
      if (kind) options.indices = on(setting, result_desc(problem, probe.indices().dtype, probe.indices().shape, 2));
    }
    const Plan plan = Plan::make(Pass::forward, input, spec, options);

    Memory memory;
    RunArgs args;
    args.executor = setting.executor != nullptr ? setting.executor : &serial_executor();
    args.input = Memory::fill(memory.input, input, given.input);
    memory.result = Buffer(plan.output());
    args.output = memory.result.data();
    if (kind) {
      outcome.indices_shape = plan.indices().shape;
      if (unpool) {
        const Integers& saved = *kind == IndexKind::window ? given.ordinal : given.flat;
        args.saved_indices = Memory::fill(memory.saved_indices, plan.indices(), saved);
      } else {
        memory.indices = Buffer(plan.indices());
        args.indices = memory.indices.data();
      }
    }
    if (options.random_samples)
      args.random_samples = Memory::fill(memory.samples, plan.random_samples(), given.samples);
    outcome.shape = plan.output().shape;
    finish(plan, args, memory, setting, outcome);
  } catch (const Error& error) {
    outcome.trouble = std::string("refused: ") + error.what();
  }
  return outcome;
}
template Outcome<double> run_forward(const Problem&, const Given<double>&, std::optional<IndexKind>, const Setting&);
template Outcome<std::int64_t> run_forward(const Problem&, const Given<std::int64_t>&, std::optional<IndexKind>,
                                           const Setting&);

template <class T>
Outcome<T> run_backward(const Problem& problem, const Given<T>& given, IndexKind kind, const Integers& saved,
                        const Setting& setting) {
  Outcome<T> outcome;
  try {
    PoolSpec spec = problem.spec;
    spec.index_kind = kind;
    PlanOptions options;
    options.target = setting.target;
    // Only the window kind needs to know where a fractional pool's windows were.
    const bool needs_samples = !given.samples_shape.empty() && kind == IndexKind::window;
    if (needs_samples) options.random_samples = samples_desc(problem, given.samples_shape, setting);
    const TensorDesc input = input_desc(problem, setting);
    if (chooses_layouts(problem)) {
      const Plan probe = Plan::make(Pass::backward, input, spec, options);
      options.grad_output = on(setting, result_desc(problem, problem.dtype, probe.grad_output().shape, 3));
      options.grad_input = on(setting, result_desc(problem, problem.dtype, probe.grad_input().shape, 4));
      if (!saved.empty())
        options.indices = on(setting, result_desc(problem, probe.indices().dtype, probe.indices().shape, 5));
    }
    const Plan plan = Plan::make(Pass::backward, input, spec, options);

    Memory memory;
    RunArgs args;
    args.executor = setting.executor != nullptr ? setting.executor : &serial_executor();
    if (spec.op == Op::lp_pool) args.input = Memory::fill(memory.input, input, given.input);
    args.grad_output = Memory::fill(memory.grad_output, plan.grad_output(), given.grad_output);
    if (plan.indices().rank() > 0) args.saved_indices = Memory::fill(memory.saved_indices, plan.indices(), saved);
    if (needs_samples) args.random_samples = Memory::fill(memory.samples, plan.random_samples(), given.samples);
    memory.result = Buffer(plan.grad_input());
    args.grad_input = memory.result.data();
    outcome.shape = plan.grad_input().shape;
    finish(plan, args, memory, setting, outcome);
  } catch (const Error& error) {
    outcome.trouble = std::string("refused: ") + error.what();
  }
  return outcome;
}
template Outcome<double> run_backward(const Problem&, const Given<double>&, IndexKind, const Integers&, const Setting&);
template Outcome<std::int64_t> run_backward(const Problem&, const Given<std::int64_t>&, IndexKind, const Integers&,
                                            const Setting&);

}  // namespace cenote::testing
