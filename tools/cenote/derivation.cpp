#include "derivation.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cenote::tool {
namespace {

std::int64_t entry(const DimList& list, int a, int dims, std::int64_t otherwise) {
  if (list.empty()) return otherwise;
  const int i = list.count == 1 ? 0 : list.count == dims + 2 ? a - (3 - dims) + 2 : a - (3 - dims);
  return i < std::min(list.count, DimList::kCapacity) ? list.values[i].value : otherwise;
}

std::string plural(std::int64_t n, const char* one, const char* many) {
  return fmt::format("{} {}", n, n == 1 ? one : many);
}

std::string range(std::int64_t first, std::int64_t last) {
  return first == last ? fmt::format("{}", first) : fmt::format("{}..{}", first, last);
}

Derivation derive_sliding(const char* name, const Axis& x, bool ceil_mode) {
  Derivation d;
  d.heading = fmt::format("{}: {} -> {}", name, x.input, x.output);
  const std::int64_t padded = x.input + x.pad_begin + x.pad_end;
  const std::int64_t reach = (x.kernel - 1) * x.dilation + 1;
  const std::int64_t room = padded - reach;
  d.steps.push_back({"padded input", x.pad_begin + x.pad_end == 0
                                         ? fmt::format("{} (no padding)", x.input)
                                         : fmt::format("{} + {} + {} = {}", x.input, x.pad_begin, x.pad_end, padded)});
  d.steps.push_back({"a window covers", x.dilation == 1
                                            ? fmt::format("{} (dilation 1: as many cells as taps)", x.kernel)
                                            : fmt::format("({} - 1) * {} + 1 = {}", x.kernel, x.dilation, reach)});
  d.steps.push_back({"room to move", fmt::format("{} - {} = {}", padded, reach, room)});
  const std::int64_t floored = floor_div(room, x.stride), ceiled = ceil_div(room, x.stride);
  const bool exact = floored == ceiled;
  const std::string quotient = number(static_cast<double>(room) / static_cast<double>(x.stride));
  d.steps.push_back({"steps", fmt::format("{} / {} = {}{}", room, x.stride, quotient,
                                          exact ? ""
                                                : fmt::format(", rounded {} to {}", ceil_mode ? "up" : "down",
                                                              ceil_mode ? ceiled : floored))});
  const std::int64_t before_check = (ceil_mode ? ceiled : floored) + 1;
  d.steps.push_back({"windows", fmt::format("{} + 1 = {}", before_check - 1, before_check)});

  const std::int64_t last_start = (x.output - 1) * x.stride - x.pad_begin;
  const std::int64_t next_start = x.output * x.stride - x.pad_begin;
  const std::int64_t next_end = next_start + reach - 1;
  const std::int64_t padded_end = x.input + x.pad_end - 1;
  if (ceil_mode && before_check != x.output) {
    d.steps.push_back(
        {"ceil_mode's rule",
         fmt::format("window {} would start at cell {}, behind the input's last cell {}: dropped, {} left",
                     before_check - 1, (before_check - 1) * x.stride - x.pad_begin, x.input - 1, x.output)});
  } else if (ceil_mode && !exact) {
    d.steps.push_back(
        {"ceil_mode's rule", fmt::format("the last window starts at cell {}, not behind the input's last cell {}: kept",
                                         last_start, x.input - 1)});
  }
  if (!ceil_mode && !exact) {
    const std::int64_t left = room - floored * x.stride;
    d.remarks.push_back(
        fmt::format("Why {} and not {}? One more window would cover cells {}, but the padded input ends at cell {}. "
                    "Rounding down drops it, and the last {} of the padded input {} in no window.",
                    x.output, x.output + 1, range(next_start, next_end), padded_end,
                    left == 1 ? "cell" : plural(left, "cell", "cells"), left == 1 ? "is" : "are"));
    const bool kept = ceiled * x.stride < x.input + x.pad_begin;
    d.remarks.push_back(
        kept ? fmt::format("To get {}: ceil_mode keeps that window; so would {} of input.", x.output + 1,
                           plural(x.stride - left, "more cell", "more cells"))
             : fmt::format(
                   "Even ceil_mode gives {}: that window would start in the right padding, where none may start.",
                   x.output));
  } else if (!ceil_mode) {
    d.remarks.push_back(fmt::format(
        "It fits exactly: a window more would cover cells {}, and the padded input ends at cell {}. "
        "Another {} of input or "
        "padding would make room for it.",
        range(next_start, next_end), padded_end, x.stride == 1 ? "cell" : plural(x.stride, "cell", "cells")));
  }
  if (ceil_mode && last_start + reach - 1 > padded_end) {
    d.remarks.push_back(
        fmt::format("The last window covers cells {} and hangs over the end by {}; what hangs over is ignored, by the "
                    "divisor of an "
                    "average too.",
                    range(last_start, last_start + reach - 1), last_start + reach - 1 - padded_end));
  }
  if (x.output > 1) {
    if (x.stride < reach && x.dilation == 1) {
      d.remarks.push_back(fmt::format("Neighbouring windows share {} (kernel {} minus stride {}).",
                                      plural(reach - x.stride, "cell", "cells"), reach, x.stride));
    } else if (x.stride > reach) {
      d.remarks.push_back(fmt::format("{} between neighbouring windows belong to none (stride {} minus {}).",
                                      plural(x.stride - reach, "cell", "cells"), x.stride, reach));
    }
  }
  return d;
}

Derivation derive_adaptive(const char* name, const Axis& x) {
  Derivation d;
  d.heading = fmt::format("{}: {} -> {}, as asked for", name, x.input, x.output);
  d.steps.push_back(
      {"window o", fmt::format("from floor(o * {0} / {1}) to before ceil((o + 1) * {0} / {1})", x.input, x.output)});
  constexpr std::int64_t kShown = 8;
  bool overlap = false;
  std::int64_t smallest = x.input, largest = 0;
  for (std::int64_t o = 0; o < x.output; ++o) {
    const Window w = window(x, o);
    smallest = smaller(smallest, w.count);
    largest = larger(largest, w.count);
    overlap = overlap || (o > 0 && adaptive_end(x, o - 1) > w.first);
    if (o < kShown) {
      d.steps.push_back({fmt::format("window {}", o),
                         fmt::format("floor({}) = {} to before ceil({}) = {}: cells {}",
                                     number(static_cast<double>(o * x.input) / static_cast<double>(x.output)), w.first,
                                     number(static_cast<double>((o + 1) * x.input) / static_cast<double>(x.output)),
                                     w.first + w.count, range(w.first, w.first + w.count - 1))});
    } else if (o == kShown) {
      d.steps.push_back({"...", fmt::format("{} more", x.output - kShown)});
    }
  }
  d.remarks.push_back(x.output == 0 ? "An output of size 0 has no window."
                      : smallest == largest && !overlap
                          ? fmt::format("{} divides {}: every window has {}, and none overlap.", x.output, x.input,
                                        plural(smallest, "cell", "cells"))
                          : fmt::format("{} does not divide {}: windows have {} to {} cells, and neighbours share a "
                                        "cell where the ends round apart.",
                                        x.output, x.input, smallest, largest));
  return d;
}

Derivation derive_fractional(const char* name, const Axis& x, double sample, const std::vector<std::int64_t>& starts) {
  Derivation d;
  d.heading = fmt::format("{}: {} -> {}", name, x.input, x.output);
  d.steps.push_back({"sample u", fmt::format("{:.4g} (drawn; --seed changes it)", sample)});
  if (x.output > 1) {
    d.steps.push_back(
        {"alpha", fmt::format("({} - {}) / ({} - 1) = {}", x.input, x.kernel, x.output,
                              number(static_cast<double>(x.input - x.kernel) / static_cast<double>(x.output - 1)))});
    d.steps.push_back(
        {"start of window i", "floor((i + u) * alpha) - floor(u * alpha); the last one is put at the end"});
  }
  d.steps.push_back(
      {"starts",
       fmt::format(
           "{}", fmt::join(starts.begin(), starts.begin() + std::min<std::ptrdiff_t>(16, std::ssize(starts)), ", "))});
  return d;
}

bool same_axis(const Axis& a, const Axis& b) {
  return a.rule == b.rule && a.input == b.input && a.output == b.output && a.kernel == b.kernel &&
         a.stride == b.stride && a.dilation == b.dilation && a.pad_begin == b.pad_begin && a.pad_end == b.pad_end &&
         a.rule != WindowRule::fractional;
}

}  // namespace

std::vector<Derivation> derive_sizes(const Story& story) {
  std::vector<Derivation> result;
  bool done[3] = {};
  for (int a = story.first_axis(); a < 3; ++a) {
    if (done[a]) continue;
    std::string name = axis_name(story.spec.dims, a);
    int sharing = 1;
    for (int b = a + 1; b < 3; ++b) {
      if (same_axis(story.axis(a), story.axis(b))) {
        done[b] = true;
        ++sharing;
        name += fmt::format(" and {}", axis_name(story.spec.dims, b));
      }
    }
    if (sharing == 3) name = "depth, height and width";
    const Axis& axis = story.axis(a);
    switch (axis.rule) {
      case WindowRule::sliding: result.push_back(derive_sliding(name.c_str(), axis, story.spec.ceil_mode)); break;
      case WindowRule::adaptive: result.push_back(derive_adaptive(name.c_str(), axis)); break;
      case WindowRule::fractional:
        result.push_back(
            derive_fractional(name.c_str(), axis, story.samples[sample_of_axis(story.spec.dims, a)], story.starts[a]));
        break;
    }
  }
  return result;
}

std::vector<Derivation> derive_refused(const StoryInput& in) {
  const PoolSpec& spec = in.spec;
  if (spec.op == Op::max_unpool) return derive_unpool(in);
  std::vector<Derivation> result;
  if (spec.kernel_size.empty() || spec.op == Op::fractional_max_pool) return result;
  for (int a = 3 - spec.dims; a < 3; ++a) {
    const std::int64_t kernel = entry(spec.kernel_size, a, spec.dims, 0);
    const std::int64_t stride = entry(spec.stride, a, spec.dims, kernel),
                       dilation = entry(spec.dilation, a, spec.dims, 1);
    const std::int64_t begin = entry(spec.padding.begin, a, spec.dims, 0),
                       end = entry(spec.padding.end, a, spec.dims, 0);
    // Only numbers that cannot overflow are worth computing with.
    constexpr std::int64_t kSane = std::int64_t{1} << 30;
    const std::int64_t all[] = {kernel, stride, dilation, begin, end};
    if (std::any_of(std::begin(all), std::end(all), [](std::int64_t v) { return v < 0 || v > kSane; }) || kernel == 0 ||
        stride == 0 || dilation == 0) {
      continue;
    }
    if (spec.padding.mode == PaddingList::Mode::same_upper || spec.padding.mode == PaddingList::Mode::same_lower)
      continue;
    const std::int64_t padded = in.size[a] + begin + end, reach = (kernel - 1) * dilation + 1;
    Derivation d;
    d.heading = fmt::format("{}: {} cells", axis_name(spec.dims, a), in.size[a]);
    d.steps.push_back({"padded input", fmt::format("{} + {} + {} = {}", in.size[a], begin, end, padded)});
    d.steps.push_back({"a window covers", fmt::format("({} - 1) * {} + 1 = {}", kernel, dilation, reach)});
    if (reach > padded) {
      d.remarks.push_back(fmt::format("The window covers {} cells and the padded input has {}: not even one fits{}.",
                                      reach, padded,
                                      spec.ceil_mode ? "" : "; ceil_mode would keep a window that hangs over"));
    }
    if (spec.padding.mode == PaddingList::Mode::symmetric && begin > kernel / 2) {
      d.remarks.push_back(fmt::format(
          "Padding may be at most half of the kernel, {} / 2 = {}, as in PyTorch.{}", kernel, kernel / 2,
          begin < reach
              ? fmt::format(" Written as begin:end ({}:{}) it may be anything less than the window covers, {}.", begin,
                            end, reach)
              : fmt::format(" With {} some window would see nothing but padding.", begin)));
    }
    result.push_back(std::move(d));
  }
  return result;
}

std::vector<Derivation> derive_unpool(const StoryInput& in) {
  const PoolSpec& spec = in.spec;
  std::vector<Derivation> result;
  for (int a = 3 - spec.dims; a < 3; ++a) {
    const std::int64_t kernel = entry(spec.kernel_size, a, spec.dims, 0),
                       stride = entry(spec.stride, a, spec.dims, kernel);
    const std::int64_t padding = entry(spec.padding.begin, a, spec.dims, 0);
    constexpr std::int64_t kSane = std::int64_t{1} << 30;
    if (kernel < 0 || stride < 0 || padding < 0 || kernel > kSane || stride > kSane || padding > kSane) continue;
    const std::int64_t size = (in.size[a] - 1) * stride + kernel - 2 * padding;
    Derivation d;
    const bool given = !spec.output_size.empty();
    const std::int64_t wanted = entry(spec.output_size, a, spec.dims, size);
    const std::string sizes = fmt::format("{} -> {}", in.size[a], wanted);
    d.heading = fmt::format("{}: {}", axis_name(spec.dims, a), sizes);
    d.steps.push_back(
        {"default size", fmt::format("({} - 1) * {} + {} - 2 * {} = {}", in.size[a], stride, kernel, padding, size)});
    d.steps.push_back({"sizes that fit", fmt::format("{} to {} (default - stride < size < default + stride)",
                                                     size - stride + 1, size + stride - 1)});
    if (given) {
      const bool fits = wanted > size - stride && wanted < size + stride;
      d.steps.push_back({"asked for", fmt::format("{}: {}", wanted, fits ? "fits" : "does not fit")});
      if (!fits) {
        const std::int64_t pooled = floor_div(wanted + 2 * padding - kernel, larger(stride, 1)) + 1;
        d.remarks.push_back(
            fmt::format("Why refused? Pooling {} cells with kernel {}, stride {}, padding {} gives {}, not the {} that "
                        "came in: no input of size {} can "
                        "have been pooled to this.",
                        wanted, kernel, stride, padding, pooled, in.size[a], wanted));
      }
    } else if (stride > 1) {
      d.remarks.push_back(
          fmt::format("Several input sizes pool to {}; unpool takes {} unless output_size says which it was. With "
                      "indices from another size the values land "
                      "in the wrong places, or an index points outside and is refused.",
                      in.size[a], size));
    }
    // Axes with the same numbers share one derivation.
    const bool same = !result.empty() && result.back().remarks == d.remarks &&
                      result.back().heading.ends_with(": " + sizes) &&
                      std::equal(d.steps.begin(), d.steps.end(), result.back().steps.begin(), result.back().steps.end(),
                                 [](const auto& one, const auto& other) { return one.arithmetic == other.arithmetic; });
    if (same) {
      std::string& heading = result.back().heading;
      heading.replace(0, heading.size() - sizes.size() - 2,
                      heading.starts_with("depth and height:")
                          ? "depth, height and width"
                          : heading.substr(0, heading.find(':')) + " and " + axis_name(spec.dims, a));
    } else {
      result.push_back(std::move(d));
    }
  }
  return result;
}

}  // namespace cenote::tool
