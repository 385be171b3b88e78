#include "cpu/plain/plain.hpp"

#include "geometry/index_math.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace cenote::simd {
namespace {

std::int64_t offset_of(const Layout& l, std::int64_t n, std::int64_t c, std::int64_t d, std::int64_t h,
                       std::int64_t w) {
  return n * l.n + c * l.c + d * l.d + h * l.h + w * l.w;
}

/// Whether flat positions of a plane of these sizes are offsets, too.
bool is_dense_plane(const Layout& l, std::int64_t height, std::int64_t width) {
  return (l.w == 1 || width == 1) && (l.h == width || height == 1) && l.d == height * width;
}

/// Turns flat positions of the plane of a pool's input into offsets from its first element.
class PlaneOffsets {
 public:
  PlaneOffsets(const Problem& p, const Layout& layout)
      : layout_(layout),
        height_(p.axis[1].input),
        width_(p.axis[2].input),
        dense_(
            is_dense_plane(layout, height_, width_) ||
            (p.axis[0].input == 1 && is_dense_plane({0, 0, height_ * width_, layout.h, layout.w}, height_, width_))) {}
  bool dense() const { return dense_; }
  std::int64_t operator()(std::int64_t flat) const {
    if (dense_) return flat;
    return flat / width_ / height_ * layout_.d + flat / width_ % height_ * layout_.h + flat % width_ * layout_.w;
  }

 private:
  Layout layout_;
  std::int64_t height_, width_;
  bool dense_;
};

/// Arithmetic type of an element type: what sums accumulate in.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, f16> || std::is_same_v<T, bf16>, float,
                                std::conditional_t<std::is_integral_v<T>, std::int64_t, T>>;

template <class T>
Wide<T> widened(T value) {
  if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>) {
    return to_float(value);
  } else {
    return static_cast<Wide<T>>(value);
  }
}

template <class T>
T narrowed(Wide<T> value) {
  if constexpr (std::is_same_v<T, f16>) {
    return to_f16(value);
  } else if constexpr (std::is_same_v<T, bf16>) {
    return to_bf16(value);
  } else {
    return static_cast<T>(value);
  }
}

template <class A>
A wrapping_add(A a, A b) {
  if constexpr (std::is_integral_v<A>) {
    return static_cast<A>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else {
    return a + b;
  }
}

/// Divisor of an average over these windows. At least 1 along each axis: a window without taps has the average 0.
double divisor_of(const Problem& p, const OutputWindows& windows) {
  if (p.divisor_override != 0) return static_cast<double>(p.divisor_override);
  double divisor = 1;
  for (const Window& w : windows.axis) {
    divisor *=
        static_cast<double>(p.count_include_pad || p.reduction == Reduction::power ? w.padded : larger(1, w.count));
  }
  return divisor;
}

template <class A>
A divided(const Problem& p, A sum, double divisor) {
  if (divisor == 0) return sum;
  if constexpr (std::is_integral_v<A>) {
    const std::int64_t by = p.divisor_override != 0 ? p.divisor_override : static_cast<std::int64_t>(divisor);
    return by == -1 ? static_cast<A>(0 - static_cast<std::uint64_t>(sum)) : sum / by;
  } else {
    return sum / static_cast<A>(divisor);
  }
}

/// Calls visit(flat position, element offset) for every tap inside the input, in row-major order.
template <class Visit>
void for_each_tap(const Problem& p, const OutputWindows& windows, const Layout& layout, std::int64_t n, std::int64_t c,
                  Visit visit) {
  const Window &wd = windows.axis[0], &wh = windows.axis[1], &ww = windows.axis[2];
  for (std::int64_t z = 0; z < wd.count; ++z) {
    const std::int64_t d = wd.first + z * wd.step;
    for (std::int64_t y = 0; y < wh.count; ++y) {
      const std::int64_t h = wh.first + y * wh.step;
      for (std::int64_t x = 0; x < ww.count; ++x) {
        const std::int64_t w = ww.first + x * ww.step;
        visit((d * p.axis[1].input + h) * p.axis[2].input + w, offset_of(layout, n, c, d, h, w));
      }
    }
  }
}

template <class Body>
void for_each_output(const Problem& p, Body body) {
  for (std::int64_t od = 0; od < p.axis[0].output; ++od) {
    for (std::int64_t oh = 0; oh < p.axis[1].output; ++oh) {
      for (std::int64_t ow = 0; ow < p.axis[2].output; ++ow) body(od, oh, ow);
    }
  }
}

template <class Body>
void for_each_input(const Problem& p, Body body) {
  for (std::int64_t d = 0; d < p.axis[0].input; ++d) {
    for (std::int64_t h = 0; h < p.axis[1].input; ++h) {
      for (std::int64_t w = 0; w < p.axis[2].input; ++w) body(d, h, w);
    }
  }
}

/// Largest (or smallest) element and where it is; -1 for an empty window.
template <class T>
struct Winner {
  Wide<T> value;
  std::int64_t flat = -1;
  std::int64_t offset = 0;
};

template <class T>
Winner<T> winner_of(const Problem& p, const OutputWindows& windows, const T* input, std::int64_t n, std::int64_t c) {
  const bool smallest = p.reduction == Reduction::min;
  using A = Wide<T>;
  Winner<T> best;
  if constexpr (std::is_integral_v<T>) {
    best.value = smallest ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
  } else {
    best.value = smallest ? std::numeric_limits<A>::infinity() : -std::numeric_limits<A>::infinity();
  }
  for_each_tap(p, windows, p.input, n, c, [&](std::int64_t flat, std::int64_t offset) {
    A v = widened(input[offset]);
    if constexpr (!std::is_integral_v<T>) {
      if (p.absolute) v = std::fabs(v);
    }
    if (best.flat < 0 || (smallest ? v < best.value : v > best.value) || v != v) best = {v, flat, offset};
  });
  return best;
}

/// Lp: v = K/n * sum x^p.
template <class T>
Wide<T> power_sum(const Problem& p, const OutputWindows& windows, const T* input, std::int64_t n, std::int64_t c) {
  using A = Wide<T>;
  A sum{0};
  for_each_tap(p, windows, p.input, n, c, [&](std::int64_t, std::int64_t offset) {
    sum += static_cast<A>(std::pow(static_cast<double>(widened(input[offset])), p.norm_type));
  });
  double full = 1;
  for (const Axis& axis : p.axis) full *= static_cast<double>(axis.kernel);
  const double counted = divisor_of(p, windows);
  return counted == full || counted == 0 ? sum : sum / static_cast<A>(counted) * static_cast<A>(full);
}

template <class T>
void forward_as(const PlaneRun& run) {
  const Problem& p = run.problem;
  const auto* input = static_cast<const T*>(run.args.input);
  auto* output = static_cast<T*>(run.args.output);
  for_each_output(p, [&](std::int64_t od, std::int64_t oh, std::int64_t ow) {
    const OutputWindows windows = windows_of(p, run.starts, od, oh, ow);
    T& result = output[offset_of(p.output, run.n, run.c, od, oh, ow)];
    if (p.reduction == Reduction::max || p.reduction == Reduction::min) {
      const Winner<T> best = winner_of(p, windows, input, run.n, run.c);
      result = narrowed<T>(best.value);
      if (p.with_indices) {
        const std::int64_t index = p.index_kind == IndexKind::window ? tap_of_flat(p, windows, best.flat) : best.flat;
        write_index(run.args.indices, p.index_dtype, offset_of(p.indices, run.n, run.c, od, oh, ow), index);
      }
      return;
    }
    if constexpr (!std::is_integral_v<T>) {
      if (p.reduction == Reduction::power) {
        const double v = static_cast<double>(power_sum(p, windows, input, run.n, run.c));
        result = narrowed<T>(static_cast<Wide<T>>(std::pow(v, 1 / p.norm_type)));
        return;
      }
    }
    Wide<T> sum{0};
    for_each_tap(p, windows, p.input, run.n, run.c,
                 [&](std::int64_t, std::int64_t offset) { sum = wrapping_add(sum, widened(input[offset])); });
    result = narrowed<T>(p.reduction == Reduction::average ? divided(p, sum, divisor_of(p, windows)) : sum);
  });
}

/// Scatter: outputs in row-major order, each added where its index points. Half types accumulate in f32 and are rounded once.
template <class T>
void max_backward_as(const PlaneRun& run) {
  const Problem& p = run.problem;
  const auto* grad_output = static_cast<const T*>(run.args.grad_output);
  auto* grad_input = static_cast<T*>(run.args.grad_input);
  auto* sums = reinterpret_cast<float*>(run.sums);
  const PlaneOffsets place(p, p.grad_input);
  T* plane_gradient = grad_input + run.n * p.grad_input.n + run.c * p.grad_input.c;
  for_each_input(p, [&](std::int64_t d, std::int64_t h, std::int64_t w) {
    grad_input[offset_of(p.grad_input, run.n, run.c, d, h, w)] = T{};
    if (sums != nullptr) sums[(d * p.axis[1].input + h) * p.axis[2].input + w] = 0;
  });
  const std::int64_t width = p.axis[2].input, height = p.axis[1].input, plane = plane_size(p);
  const bool windows_known = p.op != Op::fractional_max_pool || p.index_kind == IndexKind::window;
  for_each_output(p, [&](std::int64_t od, std::int64_t oh, std::int64_t ow) {
    std::int64_t flat = -1;
    Wide<T> gradient = widened(grad_output[offset_of(p.grad_output, run.n, run.c, od, oh, ow)]);
    if (p.absolute) {
      const OutputWindows windows = windows_of(p, run.starts, od, oh, ow);
      const auto* input = static_cast<const T*>(run.args.input);
      const Winner<T> best = winner_of(p, windows, input, run.n, run.c);
      flat = best.flat;
      if (flat >= 0) {
        const Wide<T> x = widened(input[best.offset]);
        gradient = x == 0 ? gradient * 0 : x < 0 ? -gradient : gradient;
      }
    } else {
      const std::int64_t index =
          read_index(run.args.saved_indices, p.index_dtype, offset_of(p.indices, run.n, run.c, od, oh, ow));
      if (index == -1) return;
      flat = index;
      if (windows_known) {
        const OutputWindows windows = windows_of(p, run.starts, od, oh, ow);
        if (p.index_kind == IndexKind::window) flat = flat_of_tap(p, windows, index);
        if (flat >= 0 && !has_tap_at(p, windows, flat)) flat = -1;
      }
      if (flat < 0 || flat >= plane) {
        run.invalid->store(1, std::memory_order_relaxed);
        return;
      }
    }
    if (flat < 0) return;
    if (sums != nullptr) {
      sums[flat] += static_cast<float>(gradient);
      return;
    }
    T& sum = plane_gradient[place(flat)];
    sum = narrowed<T>(wrapping_add(widened(sum), gradient));
  });
  if (sums == nullptr) return;
  for_each_input(p, [&](std::int64_t d, std::int64_t h, std::int64_t w) {
    grad_input[offset_of(p.grad_input, run.n, run.c, d, h, w)] =
        narrowed<T>(static_cast<Wide<T>>(sums[(d * height + h) * width + w]));
  });
}

template <class T>
void sum_backward_as(const PlaneRun& run) {
  const Problem& p = run.problem;
  const auto* grad_output = static_cast<const T*>(run.args.grad_output);
  for_each_input(p, [&](std::int64_t d, std::int64_t h, std::int64_t w) {
    const Cover cd = cover(p.axis[0], d), ch = cover(p.axis[1], h), cw = cover(p.axis[2], w);
    Wide<T> sum{0};
    for (std::int64_t i = 0; i < cd.count * ch.count * cw.count; ++i) {
      const std::int64_t od = cd.first + i / (ch.count * cw.count) * cd.step,
                         oh = ch.first + i / cw.count % ch.count * ch.step, ow = cw.first + i % cw.count * cw.step;
      const OutputWindows windows = windows_of(p, run.starts, od, oh, ow);
      Wide<T> gradient = widened(grad_output[offset_of(p.grad_output, run.n, run.c, od, oh, ow)]);
      if (p.reduction == Reduction::average) gradient = divided(p, gradient, divisor_of(p, windows));
      if constexpr (!std::is_integral_v<T>) {
        if (p.reduction == Reduction::power) {
          const auto v =
              static_cast<double>(power_sum(p, windows, static_cast<const T*>(run.args.input), run.n, run.c));
          double full = 1;
          for (const Axis& axis : p.axis) full *= static_cast<double>(axis.kernel);
          const double e = 1 / p.norm_type;
          const double share = v == 0 ? 0 : e * std::pow(v, e - 1) * (full / divisor_of(p, windows));
          gradient = v == 0 ? 0 : static_cast<Wide<T>>(static_cast<double>(gradient) * share);
        }
      }
      sum = wrapping_add(sum, gradient);
    }
    if constexpr (!std::is_integral_v<T>) {
      if (p.reduction == Reduction::power) {
        const auto x = static_cast<double>(
            widened(static_cast<const T*>(run.args.input)[offset_of(p.input, run.n, run.c, d, h, w)]));
        sum = static_cast<Wide<T>>(p.norm_type * std::pow(x, p.norm_type - 1)) * sum;
      }
    }
    static_cast<T*>(run.args.grad_input)[offset_of(p.grad_input, run.n, run.c, d, h, w)] = narrowed<T>(sum);
  });
}

/// The place in the unpooled plane that a pooled element's index names; -1 when it is none.
std::int64_t unpooled_place(const PlaneRun& run, std::int64_t od, std::int64_t oh, std::int64_t ow) {
  const Problem& p = run.problem;
  const std::int64_t index =
      read_index(run.args.saved_indices, p.index_dtype, offset_of(p.indices, run.n, run.c, od, oh, ow));
  const std::int64_t flat =
      p.index_kind == IndexKind::window ? flat_of_tap(p, windows_of(p, run.starts, od, oh, ow), index) : index;
  return flat >= 0 && flat < plane_size(p) ? flat : -1;
}

template <class T>
void unpool_as(const PlaneRun& run) {
  const Problem& p = run.problem;
  auto* output = static_cast<T*>(run.args.output) + run.n * p.output.n + run.c * p.output.c;
  const auto* input = static_cast<const T*>(run.args.input);
  const PlaneOffsets place(p, p.output);
  if (place.dense()) {
    std::memset(output, 0, static_cast<std::size_t>(plane_size(p)) * sizeof(T));
  } else {
    for_each_input(
        p, [&](std::int64_t d, std::int64_t h, std::int64_t w) { output[offset_of(p.output, 0, 0, d, h, w)] = T{}; });
  }
  for_each_output(p, [&](std::int64_t od, std::int64_t oh, std::int64_t ow) {
    const std::int64_t flat = unpooled_place(run, od, oh, ow);
    if (flat < 0) {
      run.invalid->store(1, std::memory_order_relaxed);
      return;
    }
    output[place(flat)] = input[offset_of(p.input, run.n, run.c, od, oh, ow)];
  });
}

template <class T>
void unpool_backward_as(const PlaneRun& run) {
  const Problem& p = run.problem;
  const auto* grad_output =
      static_cast<const T*>(run.args.grad_output) + run.n * p.grad_output.n + run.c * p.grad_output.c;
  const PlaneOffsets place(p, p.grad_output);
  for_each_output(p, [&](std::int64_t od, std::int64_t oh, std::int64_t ow) {
    const std::int64_t flat = unpooled_place(run, od, oh, ow);
    if (flat < 0) {
      run.invalid->store(1, std::memory_order_relaxed);
      return;
    }
    static_cast<T*>(run.args.grad_input)[offset_of(p.grad_input, run.n, run.c, od, oh, ow)] = grad_output[place(flat)];
  });
}

template <class Body>
void with_type(DType dtype, Body body) {
  switch (dtype) {
    case DType::f32: return body(float{});
    case DType::f64: return body(double{});
    case DType::f16: return body(f16{});
    case DType::bf16: return body(bf16{});
    case DType::i8: return body(std::int8_t{});
    case DType::u8: return body(std::uint8_t{});
    case DType::i16: return body(std::int16_t{});
    case DType::i32: return body(std::int32_t{});
    default: return body(std::int64_t{});
  }
}

/// Copies move bits: only the size of the element matters.
template <class Body>
void with_size(DType dtype, Body body) {
  switch (size_of(dtype)) {
    case 1: return body(std::uint8_t{});
    case 2: return body(std::uint16_t{});
    case 4: return body(std::uint32_t{});
    default: return body(std::uint64_t{});
  }
}

}  // namespace

void plain_forward(const PlaneRun& run) {
  with_type(run.problem.dtype, [&](auto tag) { forward_as<decltype(tag)>(run); });
}
void plain_max_backward(const PlaneRun& run) {
  with_type(run.problem.dtype, [&](auto tag) { max_backward_as<decltype(tag)>(run); });
}
void plain_sum_backward(const PlaneRun& run) {
  with_type(run.problem.dtype, [&](auto tag) { sum_backward_as<decltype(tag)>(run); });
}
void plain_unpool(const PlaneRun& run) {
  with_size(run.problem.dtype, [&](auto tag) { unpool_as<decltype(tag)>(run); });
}
void plain_unpool_backward(const PlaneRun& run) {
  with_size(run.problem.dtype, [&](auto tag) { unpool_backward_as<decltype(tag)>(run); });
}

}  // namespace cenote::simd
