#include "cpu/gradients/line_kernel.hpp"

#include "cpu/check_indices.hpp"
#include "cpu/dense_planes.hpp"
#include "cpu/gradients/gather_lines.hpp"
#include "cpu/thresholds.hpp"
#include "cpu/unit_kernel.hpp"

#include <utility>

namespace cenote::simd {
namespace {

/// Windows overlap along the row and not down the rows, and no slice of inputs is seen by another slice of outputs than its own.
bool has_line_windows(const Axis& depth, const Axis& height, const Axis& width) {
  const bool rows_apart = height.rule == WindowRule::sliding && height.kernel <= height.stride && height.dilation == 1;
  const bool overlap = width.rule == WindowRule::sliding && (width.kernel > width.stride || width.dilation > 1);
  return is_identity(depth) && rows_apart && overlap && (width.stride <= 2 || width.stride == 4) &&
         ceil_div(width.kernel, width.stride) <= kMostLineOutputs && height.kernel * width.kernel < UINT8_MAX &&
         width.dilation <= kMostLineSpan / width.kernel;
}

void make_tables(LinePlan& plan) {
  const Axis &height = plan.height, &width = plan.width;
  for (std::int64_t phase = 0; phase < width.stride; ++phase) {
    plan.phases.push_back(static_cast<std::int64_t>(plan.taps.size()));
    for (std::int64_t tap = width.kernel - 1; tap >= 0; --tap) {  // outputs ascend
      const std::int64_t distance = phase + width.pad_begin - tap * width.dilation;
      if (distance % width.stride != 0) continue;
      const std::int64_t shift = distance / width.stride;
      plan.taps.push_back({shift, tap * kLineNumberBytes});
      plan.before = larger(plan.before, -shift);
      plan.behind = larger(plan.behind, shift);
    }
  }
  plan.phases.push_back(static_cast<std::int64_t>(plan.taps.size()));
  // Windows are cut off at either end of the row.
  auto cut_off = [&](std::int64_t x) {
    const Window inside = window(width, x);
    if (inside.count == width.kernel) return false;
    plan.edges.push_back({x, inside.skipped, inside.count});
    return true;
  };
  std::int64_t first = 0;
  while (first < width.output && cut_off(first)) ++first;
  for (std::int64_t x = width.output - 1; x > first && cut_off(x);) --x;
  for (std::int64_t tap = 0; tap < height.kernel * width.kernel; ++tap)
    plan.numbers.insert(plan.numbers.end(), kLineNumberBytes, static_cast<std::uint8_t>(tap));
}

}  // namespace

std::unique_ptr<Kernel> make_line_kernel(const Described& described, const Target& instructions) {
  const Problem& p = described.problem;
  const GatherLinesFn function = gather_lines(instructions.index);
  if (function == nullptr || !is_floating(p.dtype) || p.pass != Pass::backward || !p.with_indices || p.absolute ||
      p.op == Op::fractional_max_pool || p.op == Op::max_unpool || p.index_dtype != DType::u8)
    return nullptr;
  LinePlan plan{};
  const Axis depth = simplified(p.axis[0]);
  plan.height = simplified(p.axis[1]);
  plan.width = simplified(p.axis[2]);
  const Axis &height = plan.height, &width = plan.width;
  if (!has_line_windows(depth, height, width) || has_empty_windows(p)) return nullptr;
  if (p.dtype == DType::f64 && ceil_div(width.kernel, width.stride) > kMostLineOutputs64) return nullptr;
  const DensePlanes source = dense_planes(p, p.grad_output, false), indices = dense_planes(p, p.indices, false);
  const DensePlanes target = dense_planes(p, p.grad_input, true);
  if (!source.dense || !indices.dense || !target.dense || width.output < kLeastLine) return nullptr;

  plan.planes = p.batch * p.channels;
  plan.slices = depth.input;
  plan.source_pitch = source.pitch;
  plan.target_pitch = target.pitch;
  plan.index_pitch = indices.pitch;
  plan.source_extent = source.pitch * (plan.planes - 1) + source.count;
  plan.dtype = p.dtype;
  plan.size = static_cast<std::int64_t>(size_of(p.dtype));
  plan.streams = described.bytes_moved >= kStreamBytes;
  make_tables(plan);
  const auto vector_bytes = static_cast<std::int64_t>(kernels_of(p.dtype, instructions)->vector_bytes);
  const std::int64_t lane = larger(4, plan.size), lanes = vector_bytes / lane;
  plan.strides = ceil_div(width.input, width.stride);
  plan.blocks = ceil_div(plan.strides * width.stride * lane, kLineBytes);
  plan.step = kLineVectors * lanes;
  plan.block = ceil_div(ceil_div(plan.strides, plan.blocks), plan.step) * plan.step;
  plan.blocks = ceil_div(plan.strides, plan.block);
  const auto line = [](std::int64_t bytes) { return static_cast<std::size_t>(bytes + 63) / 64 * 64; };
  const std::int64_t extent = plan.before + plan.block + plan.behind;
  plan.values_at = plan.codes_at + line(extent + kLineNumberBytes);
  plan.result_at = plan.values_at + line((extent + lanes) * lane);
  plan.bytes = plan.result_at + line(plan.block * width.stride * lane);
  const std::int64_t units = plan.units();
  return make_unit_kernel(described, std::move(plan), units, function,
                          "each input gathers from the outputs whose index names it, because its windows overlap along "
                          "the rows alone");
}

}  // namespace cenote::simd
