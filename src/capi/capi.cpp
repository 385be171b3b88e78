// The C interface: translates structs, catches everything, remembers the last error of each thread.
#include <cenote/cenote.h>
#include <cenote/dlpack.hpp>
#include <cenote/plan.hpp>

#include "cuda/devices.hpp"

#include <cstring>
#include <new>

struct cenote_plan {
  cenote::Plan plan;
};

namespace {

using cenote::ErrorCode;
using cenote::Status;

thread_local Status last_error;

cenote_status fail(const Status& status) noexcept {
  if (!status.ok()) last_error = status;
  return static_cast<cenote_status>(status.code());
}

template <class... Values>
cenote_status refuse(const char* argument, const char* format, Values... values) noexcept {
  // NOLINTNEXTLINE(clang-diagnostic-format-security): every format is a literal
  return fail(Status::failure(ErrorCode::invalid_argument, argument, format, values...));
}

/// Runs `body`, turning whatever it throws into a code and a message.
template <class Body>
cenote_status guarded(Body body) noexcept {
  try {
    return body();
  } catch (const cenote::Error& error) {
    return fail(Status::failure(error.code(), error.argument().c_str(), "%s", error.what()));
  } catch (const std::bad_alloc&) {
    return fail(Status::failure(ErrorCode::out_of_memory, "", "out of memory"));
  } catch (const std::exception& error) {
    return refuse("", "%s", error.what());
  } catch (...) {
    return refuse("", "unknown error");
  }
}

/// Callers compiled against an older header bring a shorter struct: what they do not know of keeps its default.
template <class Struct>
bool take_struct(const Struct* given, const Struct& defaults, Struct& result) noexcept {
  result = defaults;
  if (given == nullptr || given->size < sizeof(std::size_t)) return false;
  std::memcpy(&result, given, given->size < sizeof(Struct) ? given->size : sizeof(Struct));
  result.size = sizeof(Struct);
  return true;
}

cenote_tensor default_tensor() {
  cenote_tensor tensor{};
  tensor.size = sizeof tensor;
  return tensor;
}
cenote_spec default_spec() {
  cenote_spec spec{};
  spec.size = sizeof spec;
  spec.count_include_pad = 1;
  spec.norm_type = 2;
  spec.dilation = cenote_all(1);
  spec.padding = cenote_all(0);
  spec.padding_end = cenote_all(0);
  return spec;
}

Status to_desc(const char* argument, const cenote_tensor* given, cenote::TensorDesc& desc) {
  cenote_tensor tensor;
  if (!take_struct(given, default_tensor(), tensor)) {
    return Status::failure(ErrorCode::invalid_argument, argument, "%s must be made by cenote_tensor_init", argument);
  }
  if (tensor.rank < 0 || tensor.rank > CENOTE_MAX_RANK) {
    return Status::failure(ErrorCode::invalid_argument, argument, "%s must have at most %d dimensions, got %d",
                           argument, CENOTE_MAX_RANK, tensor.rank);
  }
  if (tensor.dtype < 0 || tensor.dtype > static_cast<int>(cenote::DType::u32)) {
    return Status::failure(ErrorCode::invalid_argument, argument, "%s has no known dtype: %d", argument, tensor.dtype);
  }
  if (tensor.device_type != CENOTE_CPU && tensor.device_type != CENOTE_CUDA) {
    return Status::failure(ErrorCode::invalid_argument, argument, "%s has no known device type: %d", argument,
                           tensor.device_type);
  }
  const auto rank = static_cast<std::size_t>(tensor.rank);
  desc.dtype = static_cast<cenote::DType>(tensor.dtype);
  desc.shape = cenote::Shape(std::span<const std::int64_t>(tensor.shape, rank));
  desc.strides = cenote::Strides(std::span<const std::int64_t>(tensor.strides, rank));
  desc.device = {static_cast<cenote::DeviceType>(tensor.device_type), tensor.device_index};
  return {};
}

void from_desc(const cenote::TensorDesc& desc, cenote_tensor& tensor) {
  const std::size_t size = tensor.size;
  tensor = default_tensor();
  tensor.size = size;
  tensor.dtype = static_cast<std::int32_t>(desc.dtype);
  tensor.rank = desc.rank();
  const cenote::Strides strides =
      desc.strides.empty() && desc.rank() > 0 ? cenote::contiguous_strides(desc.shape) : desc.strides;
  for (int i = 0; i < desc.rank(); ++i) {
    tensor.shape[i] = desc.shape[i];
    tensor.strides[i] = strides[i];
  }
  tensor.device_type = static_cast<std::int32_t>(desc.device.type);
  tensor.device_index = desc.device.index;
}

cenote::DimList to_dims(const cenote_dims& dims) {
  if (dims.count == CENOTE_ALL_AXES) {
    return dims.values[0] == CENOTE_KEEP ? cenote::DimList(cenote::keep) : cenote::DimList(dims.values[0]);
  }
  cenote::DimList list;
  list.count = dims.count < 0 ? 0 : dims.count;
  for (int i = 0; i < list.count && i < cenote::DimList::kCapacity; ++i) {
    list.values[i] = dims.values[i] == CENOTE_KEEP ? cenote::Dim(cenote::keep) : cenote::Dim(dims.values[i]);
  }
  return list;
}

Status to_spec(const cenote_spec* given, cenote::PoolSpec& result) {
  cenote_spec spec;
  if (!take_struct(given, default_spec(), spec)) {
    return Status::failure(ErrorCode::invalid_argument, "spec", "spec must be made by cenote_spec_init");
  }
  if (spec.op < 0 || spec.op > CENOTE_MAX_UNPOOL) {
    return Status::failure(ErrorCode::invalid_argument, "op", "there is no op %d", spec.op);
  }
  if (spec.index_kind < 0 || spec.index_kind > CENOTE_WINDOW) {
    return Status::failure(ErrorCode::invalid_argument, "index_kind", "there is no index kind %d", spec.index_kind);
  }
  if (spec.padding_mode < 0 || spec.padding_mode > CENOTE_PADDING_SAME_LOWER) {
    return Status::failure(ErrorCode::invalid_argument, "padding", "there is no padding mode %d", spec.padding_mode);
  }
  result.op = static_cast<cenote::Op>(spec.op);
  result.dims = spec.dims;
  result.kernel_size = to_dims(spec.kernel_size);
  result.stride = to_dims(spec.stride);
  result.padding = cenote::PaddingList(to_dims(spec.padding));
  if (spec.padding_mode == CENOTE_PADDING_ASYMMETRIC) result.padding.end = to_dims(spec.padding_end);
  result.padding.mode = static_cast<cenote::PaddingList::Mode>(spec.padding_mode);
  result.dilation = to_dims(spec.dilation);
  result.output_size = to_dims(spec.output_size);
  for (int i = 0; i < 3; ++i) {
    if (spec.has_output_ratio[i] != 0) result.output_ratio[i] = spec.output_ratio[i];
  }
  result.ceil_mode = spec.ceil_mode != 0;
  result.count_include_pad = spec.count_include_pad != 0;
  if (spec.has_divisor_override != 0) result.divisor_override = spec.divisor_override;
  result.norm_type = spec.norm_type;
  result.return_indices = spec.return_indices != 0;
  result.index_kind = static_cast<cenote::IndexKind>(spec.index_kind);
  return {};
}

Status to_options(const cenote_plan_options* given, cenote::PlanOptions& result) {
  if (given == nullptr) return {};
  cenote_plan_options options;
  cenote_plan_options defaults{};
  defaults.size = sizeof defaults;
  if (!take_struct(given, defaults, options)) {
    return Status::failure(ErrorCode::invalid_argument, "options", "options must be made by cenote_plan_options_init");
  }
  const struct {
    const char* argument;
    const cenote_tensor* given;
    std::optional<cenote::TensorDesc>& desc;
  } tensors[] = {{"output", options.output, result.output},
                 {"indices", options.indices, result.indices},
                 {"grad_output", options.grad_output, result.grad_output},
                 {"grad_input", options.grad_input, result.grad_input},
                 {"random_samples", options.random_samples, result.random_samples}};
  for (const auto& tensor : tensors) {
    if (tensor.given == nullptr) continue;
    tensor.desc.emplace();
    if (Status status = to_desc(tensor.argument, tensor.given, *tensor.desc); !status.ok()) return status;
  }
  if (options.target != nullptr) result.target = options.target;
  return {};
}

}  // namespace

extern "C" {

void cenote_tensor_init(cenote_tensor* tensor, cenote_dtype dtype, int rank, const int64_t* shape) {
  if (tensor == nullptr) return;
  *tensor = default_tensor();
  tensor->dtype = dtype;
  tensor->rank = rank;
  std::int64_t stride = 1;
  for (int i = (rank < CENOTE_MAX_RANK ? rank : CENOTE_MAX_RANK) - 1; i >= 0; --i) {
    tensor->shape[i] = shape[i];
    tensor->strides[i] = stride;
    // A shape too large for its strides is refused when a plan is made from it; wrapping keeps this defined.
    stride = static_cast<std::int64_t>(static_cast<std::uint64_t>(stride) *
                                       static_cast<std::uint64_t>(shape[i] > 1 ? shape[i] : 1));
  }
}

cenote_status cenote_tensor_channels_last(cenote_tensor* tensor) {
  return guarded([&] {
    cenote::TensorDesc desc;
    if (Status status = to_desc("tensor", tensor, desc); !status.ok()) return fail(status);
    if (desc.rank() < 3 || desc.rank() > 5)
      return refuse("tensor", "channels_last needs 3 to 5 dimensions, got %d", desc.rank());
    desc.strides = cenote::channels_last_strides(desc.shape);
    for (int i = 0; i < desc.rank(); ++i) tensor->strides[i] = desc.strides[i];
    return CENOTE_OK;
  });
}

void cenote_spec_init(cenote_spec* spec, cenote_op op, int dims) {
  if (spec == nullptr) return;
  *spec = default_spec();
  spec->op = op;
  spec->dims = dims;
}

void cenote_run_init(cenote_run* run) {
  if (run == nullptr) return;
  *run = cenote_run{};
  run->size = sizeof *run;
}

void cenote_plan_options_init(cenote_plan_options* options) {
  if (options == nullptr) return;
  *options = cenote_plan_options{};
  options->size = sizeof *options;
}

cenote_dims cenote_all(int64_t value) { return {CENOTE_ALL_AXES, {value}}; }

cenote_dims cenote_each(int count, const int64_t* values) {
  cenote_dims dims{count, {}};
  for (int i = 0; i < count && i < 5; ++i) dims.values[i] = values[i];
  return dims;
}

cenote_status cenote_plan_create(cenote_plan** plan, cenote_pass pass, const cenote_tensor* input,
                                 const cenote_spec* spec, const cenote_plan_options* options) {
  if (plan == nullptr) return refuse("plan", "plan is null");
  *plan = nullptr;
  return guarded([&] {
    if (pass != CENOTE_FORWARD && pass != CENOTE_BACKWARD)
      return refuse("pass", "there is no pass %d", static_cast<int>(pass));
    cenote::TensorDesc desc;
    cenote::PoolSpec pool;
    cenote::PlanOptions plan_options;
    if (Status status = to_desc("input", input, desc); !status.ok()) return fail(status);
    if (Status status = to_spec(spec, pool); !status.ok()) return fail(status);
    if (Status status = to_options(options, plan_options); !status.ok()) return fail(status);
    *plan = new cenote_plan{cenote::Plan::make(static_cast<cenote::Pass>(pass), desc, pool, plan_options)};
    return CENOTE_OK;
  });
}

void cenote_plan_destroy(cenote_plan* plan) { delete plan; }

cenote_status cenote_plan_run(const cenote_plan* plan, const cenote_run* run) {
  if (plan == nullptr) return refuse("plan", "plan is null");
  cenote_run given;
  cenote_run defaults{};
  defaults.size = sizeof defaults;
  if (!take_struct(run, defaults, given)) return refuse("run", "run must be made by cenote_run_init");
  if (given.threads < 0) return refuse("threads", "threads must not be negative, got %d", given.threads);
  const cenote::OpenMPExecutor executor(given.threads);
  return fail(plan->plan.run({.input = given.input,
                              .output = given.output,
                              .indices = given.indices,
                              .saved_indices = given.saved_indices,
                              .random_samples = given.random_samples,
                              .grad_output = given.grad_output,
                              .grad_input = given.grad_input,
                              .executor = given.threads > 0 ? &executor : nullptr,
                              .stream = given.stream}));
}

cenote_status cenote_plan_check(const cenote_plan* plan) {
  if (plan == nullptr) return refuse("plan", "plan is null");
  return fail(plan->plan.check());
}

cenote_status cenote_plan_operand(const cenote_plan* plan, cenote_operand which, cenote_tensor* tensor) {
  if (plan == nullptr) return refuse("plan", "plan is null");
  if (tensor == nullptr) return refuse("tensor", "tensor is null");
  return guarded([&] {
    const cenote::Plan& p = plan->plan;
    cenote_tensor result = default_tensor();
    switch (which) {
      case CENOTE_INPUT: from_desc(p.input(), result); break;
      case CENOTE_OUTPUT: from_desc(p.output(), result); break;
      case CENOTE_INDICES: from_desc(p.indices(), result); break;
      case CENOTE_GRAD_OUTPUT: from_desc(p.grad_output(), result); break;
      case CENOTE_GRAD_INPUT: from_desc(p.grad_input(), result); break;
      case CENOTE_RANDOM_SAMPLES: from_desc(p.random_samples(), result); break;
      default: return refuse("which", "there is no operand %d", static_cast<int>(which));
    }
    *tensor = result;
    return CENOTE_OK;
  });
}

int64_t cenote_plan_bytes_moved(const cenote_plan* plan) { return plan == nullptr ? 0 : plan->plan.bytes_moved(); }
const char* cenote_plan_explain(const cenote_plan* plan) { return plan == nullptr ? "" : plan->plan.explain().c_str(); }
const char* cenote_plan_target(const cenote_plan* plan) { return plan == nullptr ? "" : plan->plan.target().c_str(); }

const char* cenote_last_error(void) { return last_error.message(); }
const char* cenote_last_error_argument(void) { return last_error.argument(); }
const char* cenote_version(void) { return CENOTE_VERSION; }

const char* cenote_cpu_targets(void) {
  static const std::string* const targets = [] {
    auto* names = new std::string;
    for (const std::string& name : cenote::cpu_targets()) *names += (names->empty() ? "" : " ") + name;
    return names;
  }();
  return targets->c_str();
}

int cenote_device_count(cenote_device_type type) {
  return type == CENOTE_CPU ? 1 : type == CENOTE_CUDA ? cenote::cuda_device_count() : 0;
}

size_t cenote_dtype_size(cenote_dtype dtype) {
  return static_cast<int>(dtype) < 0 ? 0 : cenote::size_of(static_cast<cenote::DType>(dtype));
}

cenote_status cenote_tensor_from_dlpack(const void* managed, int versioned, cenote_tensor* tensor, void** data) {
  if (managed == nullptr) return refuse("managed", "managed is null");
  if (tensor == nullptr || data == nullptr) return refuse("tensor", "tensor or data is null");
  return guarded([&] {
    cenote::TensorView view;
    const Status status =
        versioned != 0 ? cenote::dlpack::view_of(*static_cast<const cenote::dlpack::VersionedTensor*>(managed), view)
                       : cenote::dlpack::view_of(*static_cast<const cenote::dlpack::ManagedTensor*>(managed), view);
    if (!status.ok()) return fail(status);
    cenote_tensor result = default_tensor();
    from_desc(view, result);
    *tensor = result;
    *data = view.data;
    return CENOTE_OK;
  });
}

cenote_status cenote_tensor_to_dlpack(const cenote_tensor* tensor, void* data, void* owner,
                                      void (*release)(void* owner), int versioned, void** managed) {
  if (managed == nullptr) return refuse("managed", "managed is null");
  *managed = nullptr;
  return guarded([&] {
    cenote::TensorView view;
    if (Status status = to_desc("tensor", tensor, view); !status.ok()) return fail(status);
    view.data = data;
    Status status;
    *managed = versioned != 0 ? static_cast<void*>(cenote::dlpack::versioned(view, owner, release, status))
                              : static_cast<void*>(cenote::dlpack::managed(view, owner, release, status));
    return fail(status);
  });
}

}  // extern "C"
