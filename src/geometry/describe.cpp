// A call becomes a Problem, or the first rule it breaks.
#include "geometry/checked.hpp"
#include "geometry/checks.hpp"

#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace cenote {

Status Call::refuse(const char* argument, const char* format, ...) const {
  char text[420];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return Status::failure(ErrorCode::invalid_argument, argument, "%s: %s", name.c_str(), text);
}

Status check_rank(const Call& call) {
  const int rank = call.input.rank(), dims = call.spec.dims;
  if (dims < 1 || dims > 3) return call.refuse("dims", "dims must be 1, 2 or 3, got %d", dims);
  if (call.spec.op == Op::fractional_max_pool && dims == 1) return call.refuse("dims", "dims must be 2 or 3, got 1");
  if (rank != dims + 1 && rank != dims + 2) {
    return call.refuse("input", "input must have %d dimensions (%d with a batch), got shape %s", dims + 1, dims + 2,
                       to_string(call.input.shape).c_str());
  }
  return {};
}

namespace {

bool is_max_family(Op op) {
  return op == Op::max_pool || op == Op::min_pool || op == Op::adaptive_max_pool || op == Op::fractional_max_pool;
}

bool accepts(Op op, DType dtype) {
  if (dtype == DType::u16 || dtype == DType::u32) return false;
  return is_floating(dtype) || (op != Op::lp_pool && op != Op::fractional_max_pool);
}

/// Which dimensions may be empty differs from op to op (SEMANTICS 12).
Status check_empty_dimensions(const Call& call) {
  const Shape& shape = call.input.shape;
  const int dims = call.spec.dims, rank = shape.rank();
  int first = rank - dims;  // the spatial ones must never be empty
  switch (call.spec.op) {
    case Op::max_pool:
    case Op::min_pool:
    case Op::avg_pool:
    case Op::sum_pool:
    case Op::lp_pool: first = call.batched ? 1 : 0; break;
    case Op::adaptive_avg_pool: first = dims == 3 ? 1 : rank - dims; break;
    case Op::adaptive_max_pool:
    case Op::fractional_max_pool:
    case Op::max_unpool: first = 1; break;
  }
  for (int i = first; i < rank; ++i) {
    if (shape[i] == 0) {
      return call.refuse("input", "input may be empty only in its batch dimension, got shape %s",
                         to_string(shape).c_str());
    }
  }
  return {};
}

Status check_samples(const Call& call, const PlanOptions& options, Described& result) {
  const std::int64_t batch = result.problem.batch, channels = result.problem.channels;
  const int dims = call.spec.dims;
  TensorDesc samples =
      options.random_samples.value_or(TensorDesc{call.input.dtype, {batch, channels, dims}, {}, call.input.device});
  if (samples.dtype != call.input.dtype) {
    return call.refuse("random_samples", "random_samples must have the input's dtype %s, got %s",
                       name_of(call.input.dtype), name_of(samples.dtype));
  }
  if (samples.rank() != 3 || samples.shape[0] < batch || samples.shape[1] != channels || samples.shape[2] != dims) {
    return call.refuse("random_samples", "random_samples must have shape [%lld or more, %lld, %d], got %s",
                       static_cast<long long>(batch), static_cast<long long>(channels), dims,
                       to_string(samples.shape).c_str());
  }
  if (samples.device != call.input.device) {
    return call.refuse("random_samples", "random_samples must be on %s like the input, got %s",
                       to_string(call.input.device).c_str(), to_string(samples.device).c_str());
  }
  CENOTE_RETURN_IF_FAILED(check_strides(call, "random_samples", samples));
  result.random_samples = samples;
  result.problem.random_samples = {samples.strides[0], samples.strides[1], 0, 0, samples.strides[2]};
  return {};
}

/// Whether PyTorch gives this op's result the input's channels-last layout (SEMANTICS 11).
bool output_keeps_channels_last(Op op, int dims) {
  switch (op) {
    case Op::max_pool:
    case Op::min_pool:
    case Op::sum_pool: return true;
    case Op::fractional_max_pool: return false;
    default: return dims == 2;
  }
}

bool gradient_keeps_channels_last(Op op, int dims) {
  return output_keeps_channels_last(op, dims) && op != Op::max_unpool;
}

TensorDesc dense(DType dtype, const Shape& shape, Device device, bool channels_last, bool batched) {
  if (!channels_last) return {dtype, shape, {}, device};
  if (batched) return {dtype, shape, channels_last_strides(shape), device};
  const Shape with_batch = {1, shape[0], shape[1], shape[2], shape[3]};
  const Strides strides = channels_last_strides(with_batch);
  return {dtype, shape, {strides[1], strides[2], strides[3], strides[4]}, device};
}

Reduction reduction_of(const PoolSpec& spec) {
  switch (spec.op) {
    case Op::min_pool: return Reduction::min;
    case Op::sum_pool: return Reduction::sum;
    case Op::avg_pool:
    case Op::adaptive_avg_pool: return Reduction::average;
    case Op::lp_pool:
      return std::isinf(spec.norm_type) ? (spec.norm_type > 0 ? Reduction::max : Reduction::min) : Reduction::power;
    default: return Reduction::max;
  }
}

std::int64_t bytes_of(const TensorDesc& desc) {
  return element_count(desc.shape) * static_cast<std::int64_t>(size_of(desc.dtype));
}

Status describe_tensors(const Call& call, const PlanOptions& options, Described& result) {
  Problem& p = result.problem;
  const bool unpool = call.spec.op == Op::max_unpool, forward = call.pass == Pass::forward;
  const int dims = call.spec.dims;
  Shape shape = call.input.shape;
  std::int64_t taps = 1;
  for (int i = 0; i < dims; ++i) {
    const Axis& axis = p.axis[3 - dims + i];
    shape[shape.rank() - dims + i] = unpool ? axis.input : axis.output;
    if (!checked_mul(taps, axis.kernel, taps)) taps = INT64_MAX;
  }
  const std::int64_t plane = plane_size(p);
  if (p.with_indices && p.index_kind == IndexKind::flat32 && plane > INT32_MAX) {
    return call.refuse("index_kind", "flat32 indices cannot address a plane of %lld elements",
                       static_cast<long long>(plane));
  }
  if (p.with_indices && p.index_kind == IndexKind::window && taps >= UINT32_MAX) {
    return call.refuse("index_kind", "window indices cannot number %lld taps in 32 bits", static_cast<long long>(taps));
  }
  p.index_dtype = index_dtype(p.index_kind, taps);

  const bool channels_last = is_channels_last(call.input, call.batched, dims);
  const bool output_last = channels_last && output_keeps_channels_last(call.spec.op, dims);
  // Sizes first: a shape whose element count overflows has no dense strides.
  TensorDesc probe{call.input.dtype, shape, {}, call.input.device};
  CENOTE_RETURN_IF_FAILED(check_strides(call, "output_size", probe));
  const TensorDesc output = dense(call.input.dtype, shape, call.input.device, output_last, call.batched);
  CENOTE_RETURN_IF_FAILED(check_tensor(call, "output", options.output, output, forward, result.output));
  p.output = layout_of(result.output, call.batched, dims);
  if (p.with_indices) {
    const bool like_output = !unpool;
    TensorDesc indices = dense(p.index_dtype, like_output ? shape : call.input.shape, call.input.device,
                               like_output ? output_last : channels_last, call.batched);
    CENOTE_RETURN_IF_FAILED(check_strides(call, "indices", indices));
    CENOTE_RETURN_IF_FAILED(
        check_tensor(call, "indices", options.indices, indices, forward && !unpool, result.indices));
    p.indices = layout_of(result.indices, call.batched, dims);
  }
  if (!forward) {
    CENOTE_RETURN_IF_FAILED(check_tensor(call, "grad_output", options.grad_output, output, false, result.grad_output));
    const TensorDesc grad_input =
        dense(call.input.dtype, call.input.shape, call.input.device,
              channels_last && gradient_keeps_channels_last(call.spec.op, dims), call.batched);
    CENOTE_RETURN_IF_FAILED(check_tensor(call, "grad_input", options.grad_input, grad_input, true, result.grad_input));
    p.grad_output = layout_of(result.grad_output, call.batched, dims);
    p.grad_input = layout_of(result.grad_input, call.batched, dims);
  }
  const std::int64_t index_bytes = p.with_indices ? bytes_of(result.indices) : 0;
  const bool reads_input = forward || p.reduction == Reduction::power || p.absolute;
  result.bytes_moved = index_bytes + (reads_input ? bytes_of(result.input) : 0) +
                       (forward ? bytes_of(result.output) : bytes_of(result.grad_output) + bytes_of(result.grad_input));
  return {};
}

}  // namespace

Status check_input(Call& call) {
  CENOTE_RETURN_IF_FAILED(check_rank(call));
  const int dims = call.spec.dims;
  call.batched = call.input.rank() == dims + 2;
  for (int i = 0; i < dims; ++i) call.spatial[3 - dims + i] = call.input.shape[call.input.rank() - dims + i];
  if (!accepts(call.spec.op, call.input.dtype)) {
    return call.refuse("input", "input must have %s dtype, got %s",
                       accepts(call.spec.op, DType::i32) ? "a floating-point or integer" : "a floating-point",
                       name_of(call.input.dtype));
  }
  return check_empty_dimensions(call);
}

Status describe(Pass pass, const TensorDesc& input, const PoolSpec& spec, const PlanOptions& options,
                Described& result) {
  result.input = input;
  Call call{spec, pass, result.input, std::string(name_of(spec.op)) + std::to_string(spec.dims) + "d"};
  if (pass == Pass::backward) call.name += " backward";
  CENOTE_RETURN_IF_FAILED(check_strides(call, "input", result.input));
  CENOTE_RETURN_IF_FAILED(check_input(call));

  Problem& p = result.problem;
  p = Problem{};
  p.op = spec.op;
  p.pass = pass;
  p.reduction = reduction_of(spec);
  p.dtype = input.dtype;
  p.index_kind = spec.index_kind;
  p.absolute = spec.op == Op::lp_pool && std::isinf(spec.norm_type);
  p.with_indices =
      spec.op == Op::max_unpool || (is_max_family(spec.op) && (pass == Pass::backward || spec.return_indices));
  p.count_include_pad = spec.count_include_pad;
  p.dims = spec.dims;
  p.batch = call.batched ? result.input.shape[0] : 1;
  p.channels = result.input.shape[call.batched ? 1 : 0];
  p.norm_type = spec.norm_type;
  p.divisor_override = spec.op == Op::avg_pool ? spec.divisor_override.value_or(0) : 0;
  p.input = layout_of(result.input, call.batched, spec.dims);
  CENOTE_RETURN_IF_FAILED(resolve_axes(call, p.axis));
  // A backward from window indices needs to know where the windows were.
  if (spec.op == Op::fractional_max_pool && (pass == Pass::forward || spec.index_kind == IndexKind::window)) {
    CENOTE_RETURN_IF_FAILED(check_samples(call, options, result));
  }
  for (const Axis& axis : p.axis) {
    if (pass == Pass::backward && (axis.output == 0 || axis.input == 0)) {
      const bool from_ratio = spec.op == Op::fractional_max_pool && spec.output_size.empty();
      return call.refuse(from_ratio ? "output_ratio" : "output_size", "an output with a size of 0 has no backward");
    }
  }
  return describe_tensors(call, options, result);
}

}  // namespace cenote
