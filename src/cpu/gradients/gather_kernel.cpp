#include "cpu/gradients/gather_kernel.hpp"

#include "cpu/dense_planes.hpp"
#include "cpu/thresholds.hpp"
#include "cpu/unit_kernel.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace cenote::simd {
namespace {

/// Two columns two apart, three columns one or two apart, or five one apart, and no higher than wide. No input slice is seen by two output slices, and no window
/// has more taps than a word has bits.
bool has_narrow_windows(const Axis (&axis)[3]) {
  for (const Axis& one : axis) {
    if (one.rule != WindowRule::sliding || one.dilation != 1 || one.kernel > kMostGathered) return false;
  }
  const Axis &depth = axis[0], &height = axis[1], &width = axis[2];
  const bool two = width.kernel == 2 && width.stride == 2 && width.pad_begin == 0;
  const bool three = width.kernel == 3 && width.stride <= 2;
  const bool five = width.kernel == 5 && width.stride == 1 && height.kernel >= 3;  // rows it lacks are gathered too
  return (two || three || five) && height.kernel <= width.kernel && depth.kernel <= depth.stride &&
         depth.kernel * height.kernel * width.kernel < 32;
}

/// Calls visit(number, depth, height, width) for every tap of a window.
template <class Visit>
void for_taps(const Axis (&axis)[3], const Visit& visit) {
  unsigned number = 0;
  for (std::int64_t z = 0; z < axis[0].kernel; ++z) {
    for (std::int64_t y = 0; y < axis[1].kernel; ++y) {
      for (std::int64_t x = 0; x < axis[2].kernel; ++x) visit(number++, z, y, x);
    }
  }
}

void make_tables(GatherPlan& plan) {
  const Axis &depth = plan.axis[0], &height = plan.axis[1], &width = plan.axis[2];
  for (std::int64_t z = 0; z < depth.input; ++z) {
    const Cover seen = cover(depth, z);
    plan.slices.push_back(seen.count == 0 ? SlicePair{-1, 0} : SlicePair{seen.first, seen.first_tap});
  }
  plan.whole_first = smaller(ceil_div(height.pad_begin, height.stride), height.output);
  plan.whole_end = std::clamp<std::int64_t>(
      floor_div(height.input - height.kernel + height.pad_begin, height.stride) + 1, plan.whole_first, height.output);
  for (std::int64_t x = 0; x < width.output; ++x) {
    const Window inside = window(width, x);
    if (inside.count == width.kernel) continue;
    std::uint32_t bits = 0;
    for_taps(plan.axis, [&](unsigned number, std::int64_t, std::int64_t, std::int64_t tap) {
      if (tap >= inside.skipped && tap < inside.skipped + inside.count) bits |= 1U << number;
    });
    plan.edges.push_back({x, bits});
  }
  for (std::int64_t z = 0; z < depth.kernel; ++z) {
    for (std::int64_t y = 0; y < width.kernel; ++y) {
      for (std::int64_t x = 0; x < width.kernel; ++x) {
        const std::int64_t number = (z * height.kernel + y) * width.kernel + x;
        plan.numbers.insert(plan.numbers.end(), kNumberBytes,
                            y < height.kernel ? static_cast<std::uint8_t>(number) : kNoNumberByte);
      }
    }
  }
  for_taps(plan.axis, [&](unsigned, std::int64_t z, std::int64_t y, std::int64_t x) {
    plan.positions.push_back(static_cast<std::int32_t>((z * height.input + y) * width.input + x));
  });
}

}  // namespace

std::unique_ptr<Kernel> make_gather_kernel(const Described& described, const RowKernels& kernels) {
  const Problem& p = described.problem;
  if (kernels.gather_planes == nullptr || p.pass != Pass::backward || !p.with_indices || p.absolute ||
      p.reduction != Reduction::max || p.op == Op::fractional_max_pool || p.op == Op::max_unpool)
    return nullptr;
  GatherPlan plan{};
  for (int a = 0; a < 3; ++a) plan.axis[a] = simplified(p.axis[a]);
  const Axis &depth = plan.axis[0], &height = plan.axis[1], &width = plan.axis[2];
  if (!has_narrow_windows(plan.axis)) return nullptr;  // all have a tap inside: padding is less than a window
  plan.flat = p.index_kind != IndexKind::window;
  if (p.index_dtype != (plan.flat ? DType::i64 : DType::u8)) return nullptr;
  const bool wide = width.kernel > 3;
  if (plan.flat && wide) return nullptr;  // an index is compared with the positions of all taps
  const DensePlanes source = dense_planes(p, p.grad_output, false), indices = dense_planes(p, p.indices, false);
  const DensePlanes target = dense_planes(p, p.grad_input, true);
  if (!source.dense || !indices.dense || !target.dense) return nullptr;
  // Positions of taps must differ.
  const bool slices_differ = depth.kernel == 1 || height.input >= height.kernel;
  const bool overlap = width.kernel > width.stride;
  const std::int64_t least = wide ? kLeastWide : overlap ? kLeastOverlapping : kLeastGathered;
  if (width.output < least || !slices_differ) return nullptr;
  if (target.count >= std::numeric_limits<std::int32_t>::max() / 4) return nullptr;

  plan.planes = p.batch * p.channels;
  plan.source_pitch = source.pitch;
  plan.target_pitch = target.pitch;
  plan.index_pitch = indices.pitch;
  make_tables(plan);
  // Few slices are shared between threads in bands.
  plan.bands = smaller(ceil_div(kFewestUnits, plan.planes * depth.input), ceil_div(height.input, kLeastBand));
  plan.band = ceil_div(height.input, plan.bands);
  plan.bands = ceil_div(height.input, plan.band);

  const auto size = plan.size = static_cast<std::int64_t>(size_of(p.dtype));
  const auto lanes = static_cast<std::int64_t>(kernels.vector_bytes / sizeof(float));
  const std::int64_t extent = ceil_div(width.input, width.stride * lanes) * lanes;  // outputs, in whole vectors
  const auto line = [](std::int64_t bytes) { return static_cast<std::size_t>(bytes + 63) / 64 * 64; };
  plan.value_extent = larger(extent, width.output) + kGatherMargin;
  const std::int64_t plane_rows = depth.output * height.output;
  static_assert(kGatherMargin <= kLeastGathered);
  plan.copied_first = 1;
  plan.copied_last = smaller(ceil_div(plan.value_extent, width.output) - 1, plane_rows);
  plan.copied_planes = ceil_div(plan.value_extent, source.count);
  plan.code_pitch = static_cast<std::int64_t>(line(plan.value_extent + 2 * kGatherMargin));
  plan.code_rows = larger(1, smaller(height.output, kTapBytes / plan.code_pitch));
  plan.carry_pitch = extent * width.stride;
  plan.paced = {described.bytes_moved >= kStreamBytes, width.input * size,
                larger(height.kernel, kStagedBytes / (width.input * size))};
  plan.values_at = plan.codes_at + line(plan.code_rows * plan.code_pitch);
  plan.carry_at = plan.values_at + line((plan.value_extent + kGatherMargin) * size);
  plan.paced_at = plan.carry_at + line((width.kernel - 1) * plan.carry_pitch * 4);
  plan.bytes = plan.paced_at + plan.paced.bytes();
  const std::int64_t units = plan.units();
  return make_unit_kernel(
      described, std::move(plan), units, kernels.gather_planes,
      "each input gathers from the outputs whose index names it, row after row, because its windows are narrow");
}

}  // namespace cenote::simd
