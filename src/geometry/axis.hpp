// The one place with window arithmetic: which taps does an output see, which outputs see an input. Host and device.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define CENOTE_HOST_DEVICE __host__ __device__
#else
#define CENOTE_HOST_DEVICE
#endif

namespace cenote {

enum class WindowRule : std::uint8_t {
  sliding,     // starts at o*stride - pad_begin, kernel taps dilation apart
  adaptive,    // from floor(o*input/output) to ceil((o+1)*input/output)
  fractional,  // starts given per plane in a table, kernel taps
};

/// One spatial axis of a pool. For max_unpool, `input` is the large (unpooled) side and `output` the small (pooled) one.
struct Axis {
  WindowRule rule;
  std::int64_t input;
  std::int64_t output;
  std::int64_t kernel;  // adaptive: the most taps any window has
  std::int64_t stride;
  std::int64_t dilation;
  std::int64_t pad_begin;
  std::int64_t pad_end;
};

/// Each output sees the one input at its own position.
CENOTE_HOST_DEVICE constexpr bool is_identity(const Axis& axis) {
  return axis.rule == WindowRule::sliding && axis.kernel == 1 && axis.stride == 1 && axis.pad_begin == 0 &&
         axis.input == axis.output;
}

/// One window, which is the axis.
CENOTE_HOST_DEVICE constexpr bool is_whole(const Axis& axis) {
  return axis.rule == WindowRule::sliding && axis.output == 1 && axis.kernel == axis.input && axis.pad_begin == 0 &&
         axis.pad_end == 0 && axis.dilation == 1;
}

/// The taps of one window along one axis: first, first + step, ..., count of them, all inside the input.
struct Window {
  std::int64_t first;
  std::int64_t count;
  std::int64_t step;
  std::int64_t skipped;  // taps of the whole window before `first`
  std::int64_t whole;    // taps of the whole, unclipped window
  std::int64_t padded;   // taps before the end of the right padding: what count_include_pad counts
};

/// The outputs that see one input position: first, first + step, ..., count of them.
/// Output number m of them sees the input with tap first_tap - m * tap_step.
struct Cover {
  std::int64_t first;
  std::int64_t count;
  std::int64_t step;
  std::int64_t first_tap;
  std::int64_t tap_step;
};

CENOTE_HOST_DEVICE constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}
CENOTE_HOST_DEVICE constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return -floor_div(-a, b); }
CENOTE_HOST_DEVICE constexpr std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
CENOTE_HOST_DEVICE constexpr std::int64_t larger(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

CENOTE_HOST_DEVICE constexpr std::int64_t adaptive_start(const Axis& axis, std::int64_t o) {
  return o * axis.input / axis.output;
}
CENOTE_HOST_DEVICE constexpr std::int64_t adaptive_end(const Axis& axis, std::int64_t o) {
  return 1 + ((o + 1) * axis.input - 1) / axis.output;
}

/// Taps first + step*i, i in [0, whole), clipped to [0, input). A fractional window takes its start from the caller's table.
CENOTE_HOST_DEVICE constexpr Window window_at(const Axis& axis, std::int64_t start) {
  // Nearly every window lies wholly inside the input: nothing to clip, nothing to divide.
  if (start >= 0 && start + (axis.kernel - 1) * axis.dilation < axis.input) {
    return {start, axis.kernel, axis.dilation, 0, axis.kernel, axis.kernel};
  }
  const std::int64_t skipped = start >= 0 ? 0 : smaller(ceil_div(-start, axis.dilation), axis.kernel);
  const std::int64_t end = start >= axis.input ? 0 : smaller(axis.kernel, ceil_div(axis.input - start, axis.dilation));
  const std::int64_t padded = smaller(axis.kernel, ceil_div(axis.input + axis.pad_end - start, axis.dilation));
  return {
      start + skipped * axis.dilation, end > skipped ? end - skipped : 0, axis.dilation, skipped, axis.kernel, padded};
}

/// Not for fractional axes, whose starts differ from plane to plane: use window_at with the table's start.
CENOTE_HOST_DEVICE constexpr Window window(const Axis& axis, std::int64_t o) {
  if (axis.rule == WindowRule::adaptive) {
    const std::int64_t start = adaptive_start(axis, o);
    const std::int64_t taps = adaptive_end(axis, o) - start;
    return {start, taps, 1, 0, taps, taps};
  }
  return window_at(axis, o * axis.stride - axis.pad_begin);
}

/// Sliding and adaptive axes.
CENOTE_HOST_DEVICE constexpr Cover cover(const Axis& axis, std::int64_t i) {
  if (axis.rule == WindowRule::adaptive) {
    // start(o) <= i < end(o)
    std::int64_t first = i * axis.output / axis.input;  // the last o whose ideal interval begins at or before i
    while (first > 0 && adaptive_end(axis, first - 1) > i) --first;
    std::int64_t last = first;
    while (last + 1 < axis.output && adaptive_start(axis, last + 1) <= i) ++last;
    return {first, last - first + 1, 1, i - adaptive_start(axis, first), 0};
  }
  // o*stride - pad + tap*dilation = i with 0 <= tap < kernel, 0 <= o < output
  const std::int64_t shifted = i + axis.pad_begin;
  const std::int64_t reach = (axis.kernel - 1) * axis.dilation;
  if (axis.stride == 1 && axis.dilation == 1) {
    const std::int64_t first = larger(0, shifted - reach), last = smaller(axis.output - 1, shifted);
    return {first, larger(0, last - first + 1), 1, shifted - first, 1};
  }
  std::int64_t low = shifted > reach ? ceil_div(shifted - reach, axis.stride) : 0;
  const std::int64_t high = smaller(axis.output - 1, shifted / axis.stride);
  std::int64_t step = 1;
  if (axis.dilation > 1) {
    std::int64_t a = axis.stride % axis.dilation, b = axis.dilation;
    while (a != 0) {  // gcd(stride, dilation)
      const std::int64_t r = b % a;
      b = a;
      a = r;
    }
    step = axis.dilation / b;
    std::int64_t tried = 0;
    while (low <= high && tried < step && (shifted - low * axis.stride) % axis.dilation != 0) ++low, ++tried;
    if (tried == step) return {low, 0, step, 0, 0};
  }
  if (low > high) return {low, 0, step, 0, 0};
  return {low, (high - low) / step + 1, step, (shifted - low * axis.stride) / axis.dilation,
          step * axis.stride / axis.dilation};
}

/// Adaptive windows that are all alike slide, which takes fewer divisions.
constexpr Axis simplified(const Axis& axis) {
  if (axis.rule != WindowRule::adaptive || axis.input == 0 || axis.output == 0) return axis;
  if (axis.input % axis.output != 0) return axis;
  const std::int64_t size = axis.input / axis.output;
  return {WindowRule::sliding, axis.input, axis.output, size, size, 1, 0, 0};
}

}  // namespace cenote
