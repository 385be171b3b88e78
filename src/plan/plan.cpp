// Plan: a checked problem and the kernel chosen for it. What run() still has to check is memory, not geometry.
#include "plan/kernel.hpp"

#include <cstdint>

namespace cenote {

struct Plan::State {
  Pass pass = Pass::forward;
  PoolSpec spec;
  Described described;
  std::unique_ptr<Kernel> kernel;
};

Plan::Plan(std::unique_ptr<const State> state) noexcept : state_(std::move(state)) {}
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;
Plan::~Plan() = default;

Plan Plan::make(Pass pass, const TensorDesc& input, const PoolSpec& spec, const PlanOptions& options) {
  auto state = std::make_unique<State>();
  state->pass = pass;
  state->spec = spec;
  describe(pass, input, spec, options, state->described).raise();
  Status status;
  state->kernel = input.device.type == DeviceType::cpu ? make_cpu_kernel(state->described, options, status)
                                                       : make_cuda_kernel(state->described, options, status);
  status.raise();
  return Plan(std::move(state));
}

Status Plan::check() const noexcept { return state_->kernel->check(); }
Pass Plan::pass() const noexcept { return state_->pass; }
const PoolSpec& Plan::spec() const noexcept { return state_->spec; }
const TensorDesc& Plan::input() const noexcept { return state_->described.input; }
const TensorDesc& Plan::output() const noexcept { return state_->described.output; }
const TensorDesc& Plan::grad_output() const noexcept { return state_->described.grad_output; }
const TensorDesc& Plan::grad_input() const noexcept { return state_->described.grad_input; }
const TensorDesc& Plan::indices() const noexcept { return state_->described.indices; }
const TensorDesc& Plan::random_samples() const noexcept { return state_->described.random_samples; }
const std::string& Plan::explain() const noexcept { return state_->kernel->explain; }
const std::string& Plan::target() const noexcept { return state_->kernel->target; }
std::int64_t Plan::bytes_moved() const noexcept { return state_->described.bytes_moved; }

namespace {

/// A buffer of the run with the description it must match.
struct Buffer {
  const char* argument;
  const void* data;
  const TensorDesc* desc;
  bool written;
};

struct Bytes {
  std::uintptr_t begin, end;  // empty when equal
};

bool is_empty(const Shape& shape) noexcept {
  for (std::int64_t size : shape) {
    if (size == 0) return true;
  }
  return false;
}

Bytes bytes_of(const Buffer& buffer) noexcept {
  if (is_empty(buffer.desc->shape)) return {0, 0};
  std::int64_t low = 0, high = 0;
  for (int i = 0; i < buffer.desc->rank(); ++i) {
    const std::int64_t reach = buffer.desc->strides[i] * (buffer.desc->shape[i] - 1);
    (reach < 0 ? low : high) += reach;
  }
  const auto element = static_cast<std::int64_t>(size_of(buffer.desc->dtype));
  const auto base = reinterpret_cast<std::uintptr_t>(buffer.data);
  return {base + static_cast<std::uintptr_t>(low * element), base + static_cast<std::uintptr_t>((high + 1) * element)};
}

}  // namespace

Status Plan::run(const RunArgs& args) const noexcept {
  const Described& d = state_->described;
  const Problem& p = d.problem;
  const bool forward = p.pass == Pass::forward;
  Buffer buffers[6];
  int count = 0;
  if (forward || p.reduction == Reduction::power || p.absolute)
    buffers[count++] = {"input", args.input, &d.input, false};
  if (p.with_indices) {
    const bool written = forward && p.op != Op::max_unpool;
    buffers[count++] = {written ? "indices" : "saved_indices", written ? args.indices : args.saved_indices, &d.indices,
                        written};
  }
  if (d.random_samples.rank() != 0)
    buffers[count++] = {"random_samples", args.random_samples, &d.random_samples, false};
  if (forward) {
    buffers[count++] = {"output", args.output, &d.output, true};
  } else {
    buffers[count++] = {"grad_output", args.grad_output, &d.grad_output, false};
    buffers[count++] = {"grad_input", args.grad_input, &d.grad_input, true};
  }
  for (int i = 0; i < count; ++i) {
    const Buffer& buffer = buffers[i];
    if (buffer.data == nullptr && !is_empty(buffer.desc->shape)) {
      return Status::failure(ErrorCode::invalid_argument, buffer.argument, "%s%dd: %s is null", name_of(p.op), p.dims,
                             buffer.argument);
    }
    if (reinterpret_cast<std::uintptr_t>(buffer.data) % size_of(buffer.desc->dtype) != 0) {
      return Status::failure(ErrorCode::invalid_argument, buffer.argument,
                             "%s%dd: %s must be aligned to its elements (%zu bytes)", name_of(p.op), p.dims,
                             buffer.argument, size_of(buffer.desc->dtype));
    }
    for (int j = 0; j < i; ++j) {
      if (!buffer.written && !buffers[j].written) continue;
      const Bytes a = bytes_of(buffer), b = bytes_of(buffers[j]);
      if (a.begin < b.end && b.begin < a.end) {
        return Status::failure(ErrorCode::invalid_argument, buffer.argument,
                               "%s%dd: the memory of %s overlaps that of %s", name_of(p.op), p.dims, buffer.argument,
                               buffers[j].argument);
      }
    }
  }
  if (is_empty((forward ? d.output : d.grad_input).shape)) return {};
  return state_->kernel->run(args);
}

}  // namespace cenote
