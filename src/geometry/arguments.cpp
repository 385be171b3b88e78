// Window arguments: what the caller wrote becomes three axes, or a refusal.
#include "geometry/checked.hpp"
#include "geometry/checks.hpp"

#include <cmath>
#include <cstdio>
#include <limits>

namespace cenote {
namespace {

using Values = std::int64_t[3];

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kInt32Min = std::numeric_limits<std::int32_t>::min();

/// Whether a list of one stands for every axis.
enum class OneElementList : std::uint8_t { broadcasts, is_refused };

std::string text_of(const DimList& list) {
  auto one = [](const Dim& dim) { return dim.is_keep ? std::string("keep") : std::to_string(dim.value); };
  if (list.scalar) return one(list.values[0]);
  std::string text = "[";
  for (int i = 0; i < list.count && i < DimList::kCapacity; ++i) text += (i == 0 ? "" : ", ") + one(list.values[i]);
  return text + (list.count > DimList::kCapacity ? ", ...]" : "]");
}

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

Status expand(const Call& call, const char* argument, const DimList& list, OneElementList one, Values& values) {
  const int dims = call.spec.dims;
  const bool broadcast = list.count == 1 && (list.scalar || one == OneElementList::broadcasts);
  if (!broadcast && list.count != dims) {
    return call.refuse(argument, "%s must be one integer or a list of %d, got %s", argument, dims,
                       text_of(list).c_str());
  }
  for (int i = 0; i < dims; ++i) {
    const Dim& dim = list.values[broadcast ? 0 : i];
    if (dim.is_keep) return call.refuse(argument, "%s: keep has a meaning only in an adaptive output_size", argument);
    values[3 - dims + i] = dim.value;
  }
  return {};
}

Status check_int32(const Call& call, const char* argument, const Values& values) {
  // PyTorch's one path with 64-bit arguments is max_pool1d without indices.
  if (call.spec.dims == 1 && call.spec.op == Op::max_pool && !call.spec.return_indices && call.pass == Pass::forward)
    return {};
  for (std::int64_t value : values) {
    if (value > kInt32Max || value < kInt32Min) {
      return call.refuse(argument, "%s must fit in 32 bits, got %lld", argument, static_cast<long long>(value));
    }
  }
  return {};
}

Status check_positive(const Call& call, const char* argument, const Values& values) {
  for (std::int64_t value : values) {
    if (value <= 0)
      return call.refuse(argument, "%s must be greater than 0, got %lld", argument, static_cast<long long>(value));
  }
  return {};
}

Status overflow(const Call& call, const char* argument, std::int64_t value) {
  return call.refuse(argument, "the window computed from %s %lld does not fit in 63 bits", argument,
                     static_cast<long long>(value));
}

/// PyTorch's output size, 64-bit and checked: floor((I + begin + end - E + (ceil ? s-1 : 0)) / s) + 1, less one where the last
/// window would start in the right padding.
Status output_size(const Call& call, const Axis& axis, std::int64_t effective, bool ceil_mode, std::int64_t& output) {
  std::int64_t base = 0;
  if (!checked_add(axis.input, axis.pad_begin, base) || !checked_add(base, axis.pad_end, base)) {
    return overflow(call, "padding", axis.pad_end);
  }
  if (!checked_add(base, -effective, base)) return overflow(call, "kernel_size", axis.kernel);
  if (ceil_mode && !checked_add(base, axis.stride - 1, base)) return overflow(call, "stride", axis.stride);
  output = floor_div(base, axis.stride) + 1;
  std::int64_t last_start = 0;
  if (output >= 1) {
    if (!checked_mul(output - 1, axis.stride, last_start)) return overflow(call, "stride", axis.stride);
    if (ceil_mode && last_start >= axis.input + axis.pad_begin) --output;
  }
  return {};
}

Status resolve_padding(const Call& call, Axis& axis, int a, const Values& begin, const Values& end,
                       std::int64_t effective) {
  const PaddingList::Mode mode = call.spec.padding.mode;
  if (mode == PaddingList::Mode::same_upper || mode == PaddingList::Mode::same_lower) {
    axis.output = ceil_div(axis.input, axis.stride);
    std::int64_t total = (axis.output - 1) * axis.stride;  // < input
    if (!checked_add(total, effective - axis.input, total)) return overflow(call, "kernel_size", axis.kernel);
    total = larger(total, 0);
    axis.pad_begin = mode == PaddingList::Mode::same_upper ? total / 2 : total - total / 2;
    axis.pad_end = total - axis.pad_begin;
    return {};
  }
  axis.pad_begin = begin[a];
  axis.pad_end = end[a];
  for (std::int64_t pad : {axis.pad_begin, axis.pad_end}) {
    if (pad < 0) return call.refuse("padding", "padding must not be negative, got %lld", static_cast<long long>(pad));
  }
  if (mode == PaddingList::Mode::symmetric) {
    // Half the plain kernel: dilation does not relax it.
    if (axis.pad_begin > axis.kernel / 2) {
      return call.refuse("padding",
                         "padding must be at most half of kernel_size, got padding %lld with kernel_size %lld",
                         static_cast<long long>(axis.pad_begin), static_cast<long long>(axis.kernel));
    }
  } else if (axis.pad_begin >= effective || axis.pad_end >= effective) {
    return call.refuse("padding",
                       "asymmetric padding must be less than the window's extent %lld, got begin %lld and end %lld",
                       static_cast<long long>(effective), static_cast<long long>(axis.pad_begin),
                       static_cast<long long>(axis.pad_end));
  }
  return {};
}

Status check_pool_3d_fits(const Call& call, const Axis (&axis)[3]) {
  // PyTorch's avg_pool3d (and lp_pool3d through it) demands this even in ceil mode. Padding modes beyond PyTorch are free of it.
  if (call.spec.dims != 3 || (call.spec.op != Op::avg_pool && call.spec.op != Op::lp_pool) ||
      call.spec.padding.mode != PaddingList::Mode::symmetric) {
    return {};
  }
  for (const Axis& one : axis) {
    if (one.input < one.kernel) {
      return call.refuse("kernel_size", "kernel_size %lld is larger than the input's size %lld along that axis",
                         static_cast<long long>(one.kernel), static_cast<long long>(one.input));
    }
  }
  return {};
}

Status resolve_sliding(const Call& call, Axis (&axis)[3]) {
  const PoolSpec& spec = call.spec;
  const bool is_lp = spec.op == Op::lp_pool;
  Values kernel = {1, 1, 1}, stride = {1, 1, 1}, begin = {}, end = {}, dilation = {1, 1, 1};
  if (is_lp && spec.dims == 1 && !spec.kernel_size.scalar) {
    return call.refuse("kernel_size", "kernel_size must be one integer, got %s", text_of(spec.kernel_size).c_str());
  }
  CENOTE_RETURN_IF_FAILED(expand(call, "kernel_size", spec.kernel_size,
                                 is_lp ? OneElementList::is_refused : OneElementList::broadcasts, kernel));
  CENOTE_RETURN_IF_FAILED(check_int32(call, "kernel_size", kernel));
  CENOTE_RETURN_IF_FAILED(
      expand(call, "stride", spec.stride.empty() ? spec.kernel_size : spec.stride, OneElementList::broadcasts, stride));
  CENOTE_RETURN_IF_FAILED(check_int32(call, "stride", stride));
  CENOTE_RETURN_IF_FAILED(expand(call, "padding", spec.padding.begin, OneElementList::broadcasts, begin));
  CENOTE_RETURN_IF_FAILED(check_int32(call, "padding", begin));
  CENOTE_RETURN_IF_FAILED(expand(call, "padding", spec.padding.end, OneElementList::broadcasts, end));
  CENOTE_RETURN_IF_FAILED(check_int32(call, "padding", end));
  CENOTE_RETURN_IF_FAILED(expand(call, "dilation", spec.dilation, OneElementList::broadcasts, dilation));
  CENOTE_RETURN_IF_FAILED(check_int32(call, "dilation", dilation));
  if ((spec.op == Op::avg_pool) && spec.divisor_override && *spec.divisor_override == 0) {
    return call.refuse("divisor_override", "divisor_override must not be 0");
  }
  CENOTE_RETURN_IF_FAILED(check_positive(call, "kernel_size", kernel));
  CENOTE_RETURN_IF_FAILED(check_positive(call, "stride", stride));
  CENOTE_RETURN_IF_FAILED(check_positive(call, "dilation", dilation));

  bool same = false;
  for (int a = 0; a < 3; ++a) {
    axis[a] = {WindowRule::sliding, call.spatial[a], 0, kernel[a], stride[a], dilation[a], 0, 0};
    if (a < 3 - spec.dims) {
      axis[a].output = 1;
      continue;
    }
    std::int64_t effective = 0;
    if (!checked_mul(kernel[a] - 1, dilation[a], effective) || !checked_add(effective, 1, effective)) {
      return overflow(call, "dilation", dilation[a]);
    }
    CENOTE_RETURN_IF_FAILED(resolve_padding(call, axis[a], a, begin, end, effective));
    same = axis[a].output != 0;
    if (!same) CENOTE_RETURN_IF_FAILED(output_size(call, axis[a], effective, spec.ceil_mode, axis[a].output));
    // The kernels form o*stride - pad + (kernel-1)*dilation: it must not overflow anywhere.
    std::int64_t reach = 0;
    if (axis[a].output >= 1 &&
        (!checked_mul(axis[a].output - 1, axis[a].stride, reach) || !checked_add(reach, effective, reach) ||
         !checked_add(reach, axis[a].input, reach) || !checked_add(reach, axis[a].pad_end, reach))) {
      return overflow(call, "kernel_size", kernel[a]);
    }
  }
  CENOTE_RETURN_IF_FAILED(check_pool_3d_fits(call, axis));
  for (const Axis& one : axis) {
    if (one.output < 1) {
      return call.refuse(
          "input",
          "the output would have size %lld along an axis: the window (kernel_size %lld, dilation %lld) does "
          "not fit into the padded input of size %lld",
          static_cast<long long>(one.output), static_cast<long long>(one.kernel), static_cast<long long>(one.dilation),
          static_cast<long long>(one.input + one.pad_begin + one.pad_end));
    }
  }
  return {};
}

Status resolve_adaptive(const Call& call, Axis (&axis)[3]) {
  const DimList& list = call.spec.output_size;
  const int dims = call.spec.dims;
  if (!(list.scalar || list.count == dims)) {
    return call.refuse("output_size", "output_size must be one integer or a list of %d, got %s", dims,
                       text_of(list).c_str());
  }
  for (int a = 0; a < 3; ++a) {
    axis[a] = {WindowRule::adaptive, call.spatial[a], 1, 1, 1, 1, 0, 0};
    if (a < 3 - dims) continue;
    const Dim& dim = list.values[list.scalar ? 0 : a - (3 - dims)];
    if (dim.is_keep && (list.scalar || dims == 1)) {
      return call.refuse("output_size", "output_size: keep must stand in a list, and only in 2d and 3d");
    }
    const std::int64_t size = dim.is_keep ? axis[a].input : dim.value;
    if (size < 0) {
      return call.refuse("output_size", "output_size must not be negative, got %lld", static_cast<long long>(size));
    }
    std::int64_t product = 0;
    if (!checked_mul(size, axis[a].input, product) || !checked_add(product, axis[a].input, product)) {
      return call.refuse("output_size", "output_size %lld times the input's size %lld does not fit in 63 bits",
                         static_cast<long long>(size), static_cast<long long>(axis[a].input));
    }
    axis[a].output = size;
    // Windows have ceil(I/O) taps or one more; when O divides I they all have I/O.
    if (size > 0) axis[a].kernel = ceil_div(axis[a].input, size) + (axis[a].input % size == 0 ? 0 : 1);
    axis[a].kernel = smaller(axis[a].kernel, axis[a].input);
  }
  return {};
}

Status resolve_fractional(const Call& call, Axis (&axis)[3]) {
  const PoolSpec& spec = call.spec;
  const int dims = spec.dims;
  Values kernel = {1, 1, 1}, output = {1, 1, 1};
  CENOTE_RETURN_IF_FAILED(expand(call, "kernel_size", spec.kernel_size, OneElementList::is_refused, kernel));
  if (!spec.output_size.empty()) {
    CENOTE_RETURN_IF_FAILED(expand(call, "output_size", spec.output_size, OneElementList::is_refused, output));
  } else {
    for (int i = 0; i < dims; ++i) {
      const int a = 3 - dims + i;
      if (!spec.output_ratio[i]) {
        return call.refuse("output_size", "one of output_size and output_ratio (with %d entries) must be given", dims);
      }
      const double size = static_cast<double>(call.spatial[a]) * *spec.output_ratio[i];
      if (!(std::fabs(size) < 0x1p62)) {
        return call.refuse("output_ratio", "output_ratio %g does not give an output size", *spec.output_ratio[i]);
      }
      output[a] = static_cast<std::int64_t>(size);  // truncates, as PyTorch's int() does
    }
  }
  CENOTE_RETURN_IF_FAILED(check_positive(call, "kernel_size", kernel));
  for (int a = 0; a < 3; ++a) {
    axis[a] = {WindowRule::fractional, call.spatial[a], output[a], kernel[a], 1, 1, 0, 0};
    if (a < 3 - dims) continue;
    // The output's size is an argument, or comes from one.
    const std::string given =
        spec.output_size.empty() ? "output_ratio " + text_of(*spec.output_ratio[a - (3 - dims)]) + " gives the " : "";
    const char* const argument = given.empty() ? "output_size" : "output_ratio";
    if (output[a] < 0) {
      return call.refuse(argument, "%soutput_size must not be negative, got %lld", given.c_str(),
                         static_cast<long long>(output[a]));
    }
    if (kernel[a] > axis[a].input) {
      return call.refuse("kernel_size", "kernel_size %lld is larger than the input's size %lld along that axis",
                         static_cast<long long>(kernel[a]), static_cast<long long>(axis[a].input));
    }
    // 2d: O + k - 1 <= I; 3d is stricter: O + k - 1 < I.
    const std::int64_t room = axis[a].input - (dims == 3 ? 1 : 0);
    if (output[a] > room || kernel[a] - 1 > room - output[a]) {
      return call.refuse(
          argument, "%soutput_size %lld, which with kernel_size %lld needs an input larger than %lld along that axis",
          given.c_str(), static_cast<long long>(output[a]), static_cast<long long>(kernel[a]),
          static_cast<long long>(axis[a].input));
    }
  }
  return {};
}

Status resolve_unpool(const Call& call, Axis (&axis)[3]) {
  const PoolSpec& spec = call.spec;
  const int dims = spec.dims;
  Values kernel = {1, 1, 1}, stride = {1, 1, 1}, padding = {}, dilation = {1, 1, 1};
  CENOTE_RETURN_IF_FAILED(expand(call, "kernel_size", spec.kernel_size, OneElementList::is_refused, kernel));
  CENOTE_RETURN_IF_FAILED(
      expand(call, "stride", spec.stride.empty() ? spec.kernel_size : spec.stride, OneElementList::is_refused, stride));
  CENOTE_RETURN_IF_FAILED(expand(call, "padding", spec.padding.begin, OneElementList::is_refused, padding));
  CENOTE_RETURN_IF_FAILED(expand(call, "dilation", spec.dilation, OneElementList::broadcasts, dilation));
  CENOTE_RETURN_IF_FAILED(check_positive(call, "kernel_size", kernel));
  CENOTE_RETURN_IF_FAILED(check_positive(call, "stride", stride));
  CENOTE_RETURN_IF_FAILED(check_positive(call, "dilation", dilation));
  const DimList& sizes = spec.output_size;
  const bool given = !sizes.empty();
  if (given && sizes.count != dims && sizes.count != dims + 2 && !sizes.scalar) {
    return call.refuse("output_size", "output_size must have %d or %d entries, got %s", dims, dims + 2,
                       text_of(sizes).c_str());
  }
  for (int a = 0; a < 3; ++a) {
    axis[a] = {WindowRule::sliding, 1, call.spatial[a], kernel[a], stride[a], dilation[a], padding[a], padding[a]};
    if (a < 3 - dims) continue;
    if (padding[a] < 0) {
      return call.refuse("padding", "padding must not be negative, got %lld", static_cast<long long>(padding[a]));
    }
    std::int64_t size = 0, twice = 0, reach = 0;
    const bool default_stride = spec.stride.empty();
    if (!checked_mul(call.spatial[a] - 1, stride[a], size))
      return overflow(call, default_stride ? "kernel_size" : "stride", stride[a]);
    if (!checked_add(size, kernel[a], size)) return overflow(call, "kernel_size", kernel[a]);
    if (!checked_mul(padding[a], 2, twice) || !checked_add(size, -twice, size))
      return overflow(call, "padding", padding[a]);
    if (!checked_mul(kernel[a] - 1, dilation[a], reach) || !checked_add(reach, larger(size, 0), reach)) {
      return overflow(call, dilation[a] > 1 ? "dilation" : "kernel_size", dilation[a] > 1 ? dilation[a] : kernel[a]);
    }
    if (given) {
      const Dim& dim = sizes.values[sizes.scalar ? 0 : a - (3 - dims) + (sizes.count == dims ? 0 : 2)];
      if (dim.is_keep) return call.refuse("output_size", "output_size: keep has a meaning only in adaptive pooling");
      // stride > 0, so neither bound overflows where `size` did not come within a stride of the limit.
      std::int64_t low = 0, high = 0;
      if (!checked_add(size, -stride[a], low) || !checked_add(size, stride[a], high))
        return overflow(call, "stride", stride[a]);
      if (dim.value <= low || dim.value >= high) {
        return call.refuse("output_size", "output_size %lld must lie between %lld and %lld, bounds excluded",
                           static_cast<long long>(dim.value), static_cast<long long>(low),
                           static_cast<long long>(high));
      }
      size = dim.value;
    }
    if (size < 0) {
      return call.refuse("output_size", "the output would have the negative size %lld along an axis",
                         static_cast<long long>(size));
    }
    axis[a].input = size;
  }
  return {};
}

}  // namespace

Status resolve_axes(const Call& call, Axis (&axis)[3]) {
  switch (call.spec.op) {
    case Op::max_pool:
    case Op::min_pool:
    case Op::avg_pool:
    case Op::sum_pool: return resolve_sliding(call, axis);
    case Op::lp_pool:
      if (call.spec.norm_type == 0 || std::isnan(call.spec.norm_type)) {
        return call.refuse("norm_type", "norm_type must be a number other than 0, got %g", call.spec.norm_type);
      }
      return resolve_sliding(call, axis);
    case Op::adaptive_max_pool:
    case Op::adaptive_avg_pool: return resolve_adaptive(call, axis);
    case Op::fractional_max_pool: return resolve_fractional(call, axis);
    case Op::max_unpool: return resolve_unpool(call, axis);
  }
  return call.refuse("op", "unknown op");
}

bool fractional_starts(const Axis& axis, DType dtype, double sample, std::int64_t* starts) {
  if (!(sample >= 0 && sample < 1)) return false;
  const std::int64_t last = axis.input - axis.kernel;
  auto fill = [&](auto u) {
    using T = decltype(u);
    const T alpha = axis.output > 1 ? static_cast<T>(last) / static_cast<T>(axis.output - 1) : T{0};
    const auto offset = static_cast<std::int64_t>(u * alpha);
    for (std::int64_t i = 0; i + 1 < axis.output; ++i) {
      starts[i] = static_cast<std::int64_t>((static_cast<T>(i) + u) * alpha) - offset;
      if (starts[i] > last) starts[i] = last;  // f32 cannot tell neighbouring positions apart beyond 2^24
    }
    if (axis.output > 0) starts[axis.output - 1] = last;
  };
  if (dtype == DType::f64) {
    fill(sample);
  } else {
    fill(static_cast<float>(sample));
  }
  return true;
}

}  // namespace cenote
