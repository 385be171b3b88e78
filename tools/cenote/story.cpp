#include "story.hpp"

#include "failure.hpp"

#include "tensor/random.hpp"

#include <cenote/plan.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace cenote::tool {
namespace {

Shape batched(const StoryInput& in) {
  std::vector<std::int64_t> sizes = {1, 1};
  sizes.insert(sizes.end(), in.size + 3 - in.spec.dims, in.size + 3);
  return Shape(sizes);
}

std::vector<std::int64_t> widened(DType dtype, const std::vector<std::byte>& bytes, std::int64_t count) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t value = 0;
    const std::byte* at = bytes.data() + static_cast<std::size_t>(i) * size_of(dtype);
    if (dtype == DType::i32) {
      std::int32_t narrow = 0;
      std::memcpy(&narrow, at, sizeof narrow);
      value = narrow;
    } else {
      std::memcpy(&value, at, size_of(dtype));  // unsigned kinds and i64: little-endian prefix
      const std::int64_t none = size_of(dtype) == 8 ? -1 : (std::int64_t{1} << (8 * size_of(dtype))) - 1;
      if (value == none) value = -1;
    }
    result.push_back(value);
  }
  return result;
}

/// The forward's indices in one kind.
std::vector<std::int64_t> indices_in(IndexKind kind, const TensorDesc& input, PoolSpec spec, const StoryInput& in,
                                     const double* samples, std::vector<double>& output) {
  spec.return_indices = true;
  spec.index_kind = kind;
  const Plan plan = Plan::make(Pass::forward, input, spec);
  std::vector<std::byte> bytes(static_cast<std::size_t>(plan.indices().numel()) * size_of(plan.indices().dtype));
  plan.run({.input = in.values.data(),
            .output = output.data(),
            .indices = bytes.data(),
            .random_samples = samples,
            .executor = &serial_executor()})
      .raise();
  return widened(plan.indices().dtype, bytes, plan.indices().numel());
}

/// Refuses what would take long to tell and help nobody: huge results, kernels and paddings.
void check_extent(const Story& story) {
  // All windows together: a 64 x 64 input under 16 x 16 taps is still told.
  constexpr std::int64_t kMostTaps = std::int64_t{1} << 20;
  // The input with its padding and what hangs over.
  constexpr std::int64_t kMostPadded = 4 * kMostCells;
  std::int64_t outputs = 1, taps = 1, padded = 1;
  const auto multiply = [](std::int64_t& product, std::int64_t factor, std::int64_t most) {
    product = factor > most / larger(product, 1) ? most + 1 : product * factor;
  };
  for (int a = story.first_axis(); a < 3; ++a) {
    const Axis& axis = story.axis(a);
    multiply(outputs, story.output_size[a], kMostCells);
    multiply(taps, axis.kernel, kMostTaps);
    const std::int64_t reach = axis.rule == WindowRule::adaptive || axis.output == 0
                                   ? axis.input
                                   : (axis.output - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1;
    multiply(padded, larger(reach, axis.pad_begin + axis.input + axis.pad_end), kMostPadded);
  }
  const auto refuse = [](bool too_many, const char* what, std::int64_t most) {
    if (!too_many) return;
    throw Failure::make(ExitCode::usage, "explain: more than {} {} cannot be drawn; take a smaller call", most, what);
  };
  refuse(outputs > kMostCells, "cells of output", kMostCells);
  if (story.spec.op == Op::max_unpool) return;
  multiply(taps, outputs, kMostTaps);
  refuse(taps > kMostTaps, "taps of all windows together", kMostTaps);
  refuse(padded > kMostPadded, "cells of padded input", kMostPadded);
}

void tell_window(const Story& story, std::int64_t output, WindowStory& w) {
  const Problem& p = story.problem;
  Window along[3];
  for (int a = 0; a < 3; ++a) {
    const Axis& axis = p.axis[a];
    const std::int64_t o = w.output[a];
    along[a] = axis.rule == WindowRule::fractional ? window_at(axis, story.starts[a][static_cast<std::size_t>(o)])
                                                   : window(axis, o);
    w.start[a] = along[a].first - along[a].skipped * along[a].step;
    w.step[a] = along[a].step;
    w.count[a] = along[a].whole;
  }
  std::int64_t padded = 1;
  for (const Window& one : along) padded *= one.padded;
  for (std::int64_t i = 0; i < along[0].whole; ++i) {
    for (std::int64_t j = 0; j < along[1].whole; ++j) {
      for (std::int64_t k = 0; k < along[2].whole; ++k) {
        const std::int64_t tap[3] = {i, j, k};
        Tap t{};
        t.place = Place::inside;
        t.counted = true;
        for (int a = 0; a < 3; ++a) {
          t.at[a] = w.start[a] + tap[a] * along[a].step;
          const bool inside = tap[a] >= along[a].skipped && tap[a] < along[a].skipped + along[a].count;
          if (!inside && t.place == Place::inside) t.place = Place::padding;
          if (tap[a] >= along[a].padded) t.place = Place::overhang;
        }
        if (t.place == Place::inside) {
          t.value = story.input[static_cast<std::size_t>(
              (t.at[0] * story.input_size[1] + t.at[1]) * story.input_size[2] + t.at[2])];
          w.sum += t.value;
          ++w.inside;
        } else {
          t.counted = t.place == Place::padding && p.count_include_pad && story.spec.op == Op::avg_pool;
        }
        w.taps.push_back(t);
      }
    }
  }
  w.result = story.output[static_cast<std::size_t>(output)];
  if (story.spec.op == Op::avg_pool) {
    w.divisor = static_cast<double>(p.divisor_override != 0 ? p.divisor_override
                                    : p.count_include_pad   ? padded
                                                            : w.inside);
  } else if (story.spec.op == Op::adaptive_avg_pool) {
    w.divisor = static_cast<double>(w.inside);
  }
  if (!story.flat64.empty()) {
    w.flat = story.flat64[static_cast<std::size_t>(output)];
    w.winner = story.window[static_cast<std::size_t>(output)];
  }
}

}  // namespace

std::int64_t WindowStory::tap_at(const std::int64_t* at) const {
  std::int64_t tap = 0;
  for (int a = 0; a < 3; ++a) {
    const std::int64_t distance = at[a] - start[a];
    if (distance < 0 || distance % step[a] != 0 || distance / step[a] >= count[a]) return -1;
    tap = tap * count[a] + distance / step[a];
  }
  return tap;
}

bool has_winner(Op op) {
  return op == Op::max_pool || op == Op::min_pool || op == Op::adaptive_max_pool || op == Op::fractional_max_pool;
}
bool is_average(Op op) { return op == Op::avg_pool || op == Op::adaptive_avg_pool; }

const char* axis_name(int dims, int axis) {
  if (dims == 1) return "length";
  return axis == 0 ? "depth" : axis == 1 ? "height" : "width";
}

std::string coordinates(const Story& story, const std::int64_t* at) {
  return fmt::format("{}", fmt::join(at + story.first_axis(), at + 3, ", "));
}

std::string number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (value == std::floor(value) && std::abs(value) < 1e6) return fmt::format("{:.0f}", value);
  return fmt::format("{:.4g}", value);
}

Story tell(const StoryInput& in) {
  Story story;
  story.spec = in.spec;
  const TensorDesc input = TensorDesc::contiguous(DType::f64, batched(in));
  PoolSpec spec = in.spec;
  const bool unpool = spec.op == Op::max_unpool;
  spec.return_indices = has_winner(spec.op);
  Described described;
  describe(Pass::forward, input, spec, {}, described).raise();
  story.problem = described.problem;
  story.input = in.values;
  for (int a = 0; a < 3; ++a) {
    story.input_size[a] = unpool ? story.axis(a).output : story.axis(a).input;
    story.output_size[a] = unpool ? story.axis(a).input : story.axis(a).output;
  }
  check_extent(story);
  const Plan plan = Plan::make(Pass::forward, input, in.spec);
  story.output.resize(static_cast<std::size_t>(plan.output().numel()));
  std::vector<double> samples(3);
  if (spec.op == Op::fractional_max_pool) {
    for (int i = 0; i < spec.dims; ++i) {
      samples[static_cast<std::size_t>(i)] = story.samples[i] =
          detail::random_uniform(in.seed, static_cast<std::uint64_t>(i), 53);
    }
    for (int a = story.first_axis(); a < 3; ++a) {
      story.starts[a].resize(static_cast<std::size_t>(story.axis(a).output));
      fractional_starts(story.axis(a), DType::f64, story.samples[sample_of_axis(spec.dims, a)], story.starts[a].data());
    }
    for (int a = 0; a < story.first_axis(); ++a) story.starts[a] = {0};
  }
  const Executor* serial = &serial_executor();
  if (unpool) {
    plan.run({.input = in.values.data(),
              .output = story.output.data(),
              .saved_indices = in.indices.data(),
              .executor = serial})
        .raise();
    story.flat64 = in.indices;
  } else {
    plan.run({.input = in.values.data(),
              .output = story.output.data(),
              .random_samples = samples.data(),
              .executor = serial})
        .raise();
  }
  if (has_winner(spec.op)) {
    story.flat64 = indices_in(IndexKind::flat64, input, in.spec, in, samples.data(), story.output);
    story.flat32 = indices_in(IndexKind::flat32, input, in.spec, in, samples.data(), story.output);
    story.window = indices_in(IndexKind::window, input, in.spec, in, samples.data(), story.output);
  }

  PoolSpec backward_spec = in.spec;
  backward_spec.index_kind = IndexKind::flat64;
  const Plan backward = Plan::make(Pass::backward, input, backward_spec);
  const std::vector<double> ones(story.output.size(), 1.0);
  story.gradient.resize(static_cast<std::size_t>(story.inputs()));
  if (!story.output.empty()) {
    backward
        .run({.input = in.values.data(),
              .saved_indices = story.flat64.empty() ? nullptr : story.flat64.data(),
              .random_samples = samples.data(),
              .grad_output = ones.data(),
              .grad_input = story.gradient.data(),
              .executor = serial})
        .raise();
  }
  if (unpool) return story;
  std::int64_t next = 0;
  for (std::int64_t z = 0; z < story.output_size[0]; ++z) {
    for (std::int64_t y = 0; y < story.output_size[1]; ++y) {
      for (std::int64_t x = 0; x < story.output_size[2]; ++x, ++next) {
        WindowStory w{.output = {z, y, x}, .start = {}, .step = {}, .count = {}, .taps = {}};
        tell_window(story, next, w);
        story.windows.push_back(std::move(w));
      }
    }
  }
  return story;
}

}  // namespace cenote::tool
