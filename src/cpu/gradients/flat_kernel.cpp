#include "cpu/gradients/flat_kernel.hpp"

#include "cpu/check_indices.hpp"
#include "cpu/dense_planes.hpp"
#include "cpu/gradients/gather_flat.hpp"
#include "cpu/thresholds.hpp"
#include "cpu/unit_kernel.hpp"

#include <utility>

namespace cenote::simd {
namespace {

bool stays_as_large(const Axis& axis) {
  return axis.rule == WindowRule::sliding && axis.kernel == kFlatTaps && axis.stride == 1 && axis.input == axis.output;
}

/// Whether the tensor's elements follow each other without a gap. Both sides of the pool are equally large.
bool follows(const Problem& p, const Layout& l, bool columns) {
  const DensePlanes planes = columns ? dense_columns(p, l, true) : dense_planes(p, l, true);
  return planes.dense && (planes.pitch == planes.count || p.batch * (columns ? 1 : p.channels) == 1);
}

/// Bits of the taps along an axis that are outside of a window, the first of them `bit`.
std::uint8_t outside(const Window& w, std::uint8_t bit) {
  std::uint8_t bits = 0;
  for (int tap = 0; tap < kFlatTaps; ++tap) {
    if (tap < w.skipped || tap >= w.skipped + w.count) bits |= static_cast<std::uint8_t>(bit << tap);
  }
  return bits;
}

}  // namespace

std::unique_ptr<Kernel> make_flat_kernel(const Described& described, const Target& instructions) {
  const Problem& p = described.problem;
  const GatherFlatFn function = gather_flat(instructions.index, p.dtype);
  if (function == nullptr || p.pass != Pass::backward || !p.with_indices || p.absolute ||
      p.op == Op::fractional_max_pool || p.op == Op::max_unpool || p.index_dtype != DType::u8)
    return nullptr;
  const Axis depth = simplified(p.axis[0]), height = simplified(p.axis[1]), width = simplified(p.axis[2]);
  if (!is_identity(depth) || !stays_as_large(height) || !stays_as_large(width) || has_empty_windows(p)) return nullptr;
  const std::int64_t inner = is_channels_last(p, p.grad_input) ? p.channels : 1;
  for (const Layout* l : {&p.grad_input, &p.grad_output, &p.indices}) {
    if (!follows(p, *l, inner > 1)) return nullptr;
  }

  FlatPlan plan{};
  const auto lanes = static_cast<std::int64_t>(kernels_of(p.dtype, instructions)->vector_bytes / sizeof(float));
  const auto size = static_cast<std::int64_t>(size_of(p.dtype));
  plan.height = height.input;
  plan.pitch = width.input * inner;
  plan.rows = p.batch * (inner == 1 ? p.channels : 1) * depth.input * plan.height;
  plan.pad = height.pad_begin;
  plan.dilation = height.dilation;
  if (plan.pitch <= lanes || (inner == 1 ? width.input > kMostFlatColumns : inner > kMostFlatChannels)) return nullptr;
  if (width.dilation > width.input || height.dilation > height.input) return nullptr;  // far beyond the tensor
  if (plan.height > kMostRows || plan.pitch > kFlatBytes) return nullptr;              // tables of a tensor's size
  for (int tap = 0; tap < kFlatTaps; ++tap) {
    plan.shifts[tap] = (width.pad_begin - tap * width.dilation) * inner;
    plan.before = larger(plan.before, -plan.shifts[tap]);
  }
  plan.behind = larger(0, plan.shifts[0]);
  plan.safe_first = ceil_div(plan.before, plan.pitch);
  plan.safe_end = larger(plan.safe_first, plan.rows - ceil_div(plan.behind, plan.pitch));
  plan.band = larger(kFlatBytes / (plan.pitch * (2 * size + 1)), 8 * plan.dilation);
  plan.band = larger(1, smaller(plan.band, ceil_div(plan.rows, kFewestUnits)));

  const auto line = [](std::int64_t bytes) { return static_cast<std::size_t>(bytes + 63) / 64 * 64; };
  const std::int64_t beside = plan.before + plan.behind;
  const std::int64_t copied[2] = {plan.safe_first * plan.pitch + beside,
                                  larger(0, plan.rows - plan.safe_end) * plan.pitch + beside};
  for (int edge = 0; edge < 2; ++edge) {
    plan.values_at[edge] = plan.bytes;
    plan.taps_at[edge] = plan.values_at[edge] + line(copied[edge] * size);
    plan.bytes = plan.taps_at[edge] + line(copied[edge]);
  }
  if (plan.bytes > static_cast<std::size_t>(kMostStripBytes)) return nullptr;

  plan.tabled = plan.height * plan.pitch <= kFlatTable ? plan.height : 1;
  for (std::int64_t y = 0; y < plan.height; ++y) {
    const std::uint8_t row = outside(window(height, y), kRowBit);
    plan.row_outside.push_back(static_cast<std::uint8_t>((plan.tabled > 1 ? 0 : row) | kNoTapBit));
    if (y >= plan.tabled) continue;
    for (std::int64_t x = 0; x < width.input; ++x) {
      const std::uint8_t column = outside(window(width, x), kColumnBit);
      const auto bits = static_cast<std::uint8_t>((plan.tabled > 1 ? row : 0) | column);
      plan.outside.insert(plan.outside.end(), static_cast<std::size_t>(inner), bits);
    }
  }
  plan.outside.resize(plan.outside.size() + kFlatSlack);
  const std::int64_t units = plan.units();
  return make_unit_kernel(
      described, std::move(plan), units, function,
      "each vector of inputs goes down the rows and adds up the gradients whose index names it, all planes as one, "
      "because its windows leave them as large as they are");
}

}  // namespace cenote::simd
