#include "reference/pool.hpp"

#include <algorithm>
#include <cmath>

namespace cenote::reference {
namespace {

/// The entry of a per-axis argument for spatial axis i of `dims`; leading extra entries (a batched shape) are skipped.
Dim entry(const DimList& list, int i, int dims) {
  if (list.count == 1) return list.values[0];
  return list.values[i + std::max(0, list.count - dims)];
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  const auto quotient = a / b;
  return a % b < 0 ? quotient - 1 : quotient;  // b > 0
}

std::int64_t round_up_divide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }  // a >= 0, b > 0

void resolve_sliding(Pool& pool, const PoolSpec& spec, int axis, int i) {
  const std::int64_t size = pool.input[axis], stride = pool.stride[axis];
  const std::int64_t extent = (pool.kernel[axis] - 1) * pool.dilation[axis] + 1;
  using Mode = PaddingList::Mode;
  if (spec.padding.mode == Mode::same_upper || spec.padding.mode == Mode::same_lower) {
    pool.output[axis] = round_up_divide(size, stride);
    const std::int64_t total = std::max<std::int64_t>(0, (pool.output[axis] - 1) * stride + extent - size);
    pool.pad_begin[axis] = spec.padding.mode == Mode::same_upper ? total / 2 : total - total / 2;
    pool.pad_end[axis] = total - pool.pad_begin[axis];
    return;
  }
  const std::int64_t begin = entry(spec.padding.begin, i, spec.dims).value;
  const std::int64_t end = entry(spec.padding.end, i, spec.dims).value;
  std::int64_t output = floor_divide(size + begin + end - extent + (spec.ceil_mode ? stride - 1 : 0), stride) + 1;
  if (spec.ceil_mode && (output - 1) * stride >= size + begin) --output;  // it would start in the right padding
  pool.pad_begin[axis] = begin;
  pool.pad_end[axis] = end;
  pool.output[axis] = output;
}

void resolve_unpool(Pool& pool, const PoolSpec& spec, int axis, int i) {
  const std::int64_t small = pool.input[axis], padding = entry(spec.padding.begin, i, spec.dims).value;
  pool.pad_begin[axis] = pool.pad_end[axis] = padding;
  pool.output[axis] = small;
  pool.input[axis] = spec.output_size.empty() ? (small - 1) * pool.stride[axis] + pool.kernel[axis] - 2 * padding
                                              : entry(spec.output_size, i, spec.dims).value;
}

/// Where a fractional window starts. Every operation rounds to Real: f64 for f64 tensors, f32 for all others.
template <class Real>
std::int64_t fractional_start(std::int64_t input, std::int64_t output, std::int64_t kernel, Real sample,
                              std::int64_t o) {
  if (o == output - 1) return input - kernel;
  const Real alpha = static_cast<Real>(input - kernel) / static_cast<Real>(output - 1);
  const Real at = (static_cast<Real>(o) + sample) * alpha;
  const Real offset = sample * alpha;
  return static_cast<std::int64_t>(at) - static_cast<std::int64_t>(offset);
}

Window taps_from(std::int64_t start, std::int64_t count, std::int64_t step) {
  Window window;
  for (std::int64_t j = 0; j < count; ++j) window.taps.push_back(start + j * step);
  window.counted = count;
  return window;
}

}  // namespace

Pool resolve(const PoolSpec& spec, DType dtype, const Shape& shape) {
  Pool pool;
  pool.op = spec.op;
  pool.dims = spec.dims;
  pool.dtype = dtype;
  pool.count_include_pad = spec.count_include_pad;
  pool.divisor_override = spec.divisor_override.value_or(0);
  pool.norm_type = spec.norm_type;
  const bool batched = shape.rank() == spec.dims + 2;
  pool.batch = batched ? shape[0] : 1;
  pool.channels = shape[batched ? 1 : 0];
  for (int i = 0; i < spec.dims; ++i) {
    const int axis = 3 - spec.dims + i;
    pool.input[axis] = shape[shape.rank() - spec.dims + i];
    if (pool.is_adaptive()) {
      const Dim size = entry(spec.output_size, i, spec.dims);
      pool.output[axis] = size.is_keep ? pool.input[axis] : size.value;
      continue;
    }
    pool.kernel[axis] = entry(spec.kernel_size, i, spec.dims).value;
    if (spec.op == Op::fractional_max_pool) {
      pool.output[axis] = spec.output_size.empty()
                              ? static_cast<std::int64_t>(static_cast<double>(pool.input[axis]) * *spec.output_ratio[i])
                              : entry(spec.output_size, i, spec.dims).value;
      continue;
    }
    pool.stride[axis] = entry(spec.stride.empty() ? spec.kernel_size : spec.stride, i, spec.dims).value;
    pool.dilation[axis] = entry(spec.dilation, i, spec.dims).value;
    if (spec.op == Op::max_unpool) {
      resolve_unpool(pool, spec, axis, i);
    } else {
      resolve_sliding(pool, spec, axis, i);
    }
  }
  return pool;
}

Shape output_shape(const Pool& pool, const Shape& shape) {
  Shape result = shape;
  const std::int64_t* sizes = pool.op == Op::max_unpool ? pool.input : pool.output;
  for (int i = 0; i < pool.dims; ++i) result[shape.rank() - pool.dims + i] = sizes[3 - pool.dims + i];
  return result;
}

Window window(const Pool& pool, int axis, std::int64_t o, double sample) {
  const std::int64_t input = pool.input[axis], output = pool.output[axis], kernel = pool.kernel[axis];
  if (axis < 3 - pool.dims) return taps_from(0, 1, 1);
  if (pool.is_adaptive()) {
    const std::int64_t start = o * input / output;
    return taps_from(start, round_up_divide((o + 1) * input, output) - start, 1);
  }
  if (pool.op == Op::fractional_max_pool) {
    const std::int64_t start = pool.dtype == DType::f64
                                   ? fractional_start<double>(input, output, kernel, sample, o)
                                   : fractional_start<float>(input, output, kernel, static_cast<float>(sample), o);
    return taps_from(start, kernel, 1);
  }
  Window window = taps_from(o * pool.stride[axis] - pool.pad_begin[axis], kernel, pool.dilation[axis]);
  const auto in_padded_input = [&](std::int64_t tap) { return tap < input + pool.pad_end[axis]; };
  window.counted = std::count_if(window.taps.begin(), window.taps.end(), in_padded_input);
  return window;
}

std::int64_t most_taps(const Pool& pool) {
  if (!pool.is_adaptive()) return pool.kernel_volume();
  std::int64_t volume = 1;
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t input = pool.input[axis], output = pool.output[axis];
    if (output == 0) continue;
    const std::int64_t most = round_up_divide(input, output) + (input % output == 0 ? 0 : 1);
    volume *= std::min(most, input);
  }
  return volume;
}

}  // namespace cenote::reference
