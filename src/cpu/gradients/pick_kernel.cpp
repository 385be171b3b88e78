#include "cpu/gradients/pick_kernel.hpp"

#include "cpu/dense_planes.hpp"
#include "cpu/gradients/pick_columns.hpp"
#include "cpu/gradients/pick_planes.hpp"
#include "cpu/thresholds.hpp"
#include "cpu/unit_kernel.hpp"

#include <numeric>
#include <utility>

namespace cenote::simd {
namespace {

/// Windows that share nothing, and none of which is cut off.
bool is_apart(const Axis& axis) {
  return axis.rule == WindowRule::sliding && axis.dilation == 1 && axis.kernel <= axis.stride && axis.pad_begin == 0 &&
         (axis.output - 1) * axis.stride + axis.kernel <= axis.input;
}

/// All inputs are seen, so that the windows of one axis after another are those of one long axis.
bool is_tiled(const Axis& axis) { return axis.kernel == axis.stride && axis.output * axis.stride == axis.input; }

void repeat(std::int64_t times, Axis& axis) {
  axis.input *= times;
  axis.output *= times;
}

/// `inner`: elements of a column. Where planes follow each other, they become one. Rows whose windows have one row become one, too, and that is cut into rows of so many whole vectors that every such row is seen alike: what
/// is known of a vector then serves all of them. (4/4 over 8 rows of 8000, one thread: 3.4 us, rows as they are 8.2.) Where none fit in, they become longer ones: fewer beginnings and ends. False where planes stay as they are.
bool join_planes(std::int64_t inputs, std::int64_t outputs, std::int64_t inner, std::int64_t lanes, PickPlan& plan) {
  Axis &depth = plan.axis[0], &height = plan.axis[1], &width = plan.axis[2];
  const bool follow = plan.target_pitch == inputs && plan.source_pitch == outputs && plan.index_pitch == outputs;
  if (!follow || depth.kernel > 1 || !is_tiled(depth) || !is_tiled(height)) return false;
  repeat(plan.planes * depth.input, height);
  depth = {WindowRule::sliding, 1, 1, 1, 1, 1, 0, 0};
  plan.index_pitch = plan.planes * outputs;
  plan.planes = 1;
  if (height.kernel > 1 || !is_tiled(width)) return true;
  const std::int64_t all = height.output * width.input;
  std::int64_t alike = std::lcm(lanes, width.kernel * inner) / inner;
  alike *= ceil_div(kLeastPicked, alike * inner);
  if (all % alike == 0) {
    width.input = alike;
    width.output = alike / width.kernel;
    height.input = height.output = all / alike;
    return true;
  }
  std::int64_t rows = larger(1, kJoinedColumns / (width.input * inner));
  while (height.output % rows != 0) --rows;
  repeat(rows, width);
  height.input = height.output = height.output / rows;
  return true;
}

/// `inner`: elements of a column. False where a vector of inputs is seen by more outputs than fill one.
bool make_tables(std::int64_t inner, std::int64_t lanes, PickPlan& plan) {
  const Axis &depth = plan.axis[0], &width = plan.axis[2];
  for (std::int64_t z = 0; z < depth.input; ++z) {
    const Cover seen = cover(depth, z);
    plan.slices.push_back(seen.count == 0 ? SlicePair{-1, 0} : SlicePair{seen.first, seen.first_tap});
  }
  for (std::int64_t next = 0; next < plan.width; next += lanes) {
    const std::int64_t first = larger(0, smaller(next, plan.width - lanes));  // the ragged end from its last vector
    const std::int64_t end = smaller(first + lanes, plan.width);
    auto seen_by = [&](std::int64_t at) {  // an element; -1: by none
      const Cover seen = at < end ? cover(width, at / inner) : Cover{};
      return seen.count == 0 ? -1 : seen.first * inner + at % inner;
    };
    std::int64_t output = plan.columns - 1, last = 0;
    for (std::int64_t at = first; at < end; ++at) {
      if (seen_by(at) >= 0) output = smaller(output, seen_by(at));
      last = larger(last, seen_by(at));
    }
    if (last - output >= lanes) return false;
    plan.vectors.push_back({first, output});
    for (std::int64_t at = first; at < first + lanes; ++at) {
      const bool some = seen_by(at) >= 0;
      plan.lanes.push_back(static_cast<std::uint32_t>(some ? seen_by(at) - output : 0));
      plan.numbers.push_back(static_cast<std::uint32_t>(some ? cover(width, at / inner).first_tap : kNoNumber));
    }
  }
  return true;
}

}  // namespace

std::unique_ptr<Kernel> make_pick_kernel(const Described& described, const Target& instructions) {
  const Problem& p = described.problem;
  const PickPlanesFn function = pick_planes(instructions.index);
  if (function == nullptr || !is_floating(p.dtype) || p.pass != Pass::backward || !p.with_indices || p.absolute ||
      p.op == Op::fractional_max_pool || p.op == Op::max_unpool || p.index_dtype != DType::u8)
    return nullptr;
  PickPlan plan{};
  plan.taps = 1;
  for (int a = 0; a < 3; ++a) {
    plan.axis[a] = simplified(p.axis[a]);
    if (!is_apart(plan.axis[a]) || plan.axis[a].kernel > kPickedTaps) return nullptr;
    plan.taps *= plan.axis[a].kernel;
  }
  const Axis &depth = plan.axis[0], &height = plan.axis[1], &width = plan.axis[2];
  if (plan.taps > kPickedTaps || height.kernel > kMostPickedRows || width.kernel > kPickedColumns) return nullptr;
  // Channels-last, the planes of a sample are one, whose columns have several elements.
  const std::int64_t inner = is_channels_last(p, p.grad_input) ? p.channels : 1;
  if (inner > 1 && inner >= pick_columns(instructions.index, size_of(p.dtype)).lanes) return nullptr;
  auto planes_of = [&](const Layout& l, bool large) {
    return inner == 1 ? dense_planes(p, l, large) : dense_columns(p, l, large);
  };
  const DensePlanes source = planes_of(p.grad_output, false), indices = planes_of(p.indices, false);
  const DensePlanes target = planes_of(p.grad_input, true);
  if (!source.dense || !indices.dense || !target.dense) return nullptr;

  plan.planes = p.batch * p.channels / inner;
  plan.source_pitch = source.pitch;
  plan.target_pitch = target.pitch;
  plan.index_pitch = indices.pitch;
  plan.source_extent = source.pitch * (plan.planes - 1) + source.count;
  plan.index_extent = indices.pitch * (plan.planes - 1) + indices.count;
  const auto size = plan.size = static_cast<std::int64_t>(size_of(p.dtype));
  const auto vector_bytes = static_cast<std::int64_t>(kernels_of(p.dtype, instructions)->vector_bytes);
  const std::int64_t lanes = vector_bytes / larger(4, size);
  const std::int64_t planes = plan.planes;
  const bool joined = join_planes(target.count, source.count, inner, lanes, plan);
  plan.width = width.input * inner;
  plan.columns = width.output * inner;
  if (plan.width < kLeastPicked || plan.width > kMostExpanded || depth.input > kMostColumnSlices) return nullptr;
  if (!joined && height.input * plan.width < kLeastPickedSlice) return nullptr;
  if (!make_tables(inner, lanes, plan)) return nullptr;
  // Few slices are shared between threads in bands.
  plan.bands = smaller(ceil_div(larger(kFewestUnits, smaller(planes, kMostPickedUnits)), plan.planes * depth.input),
                       height.output);
  plan.band = ceil_div(height.output, plan.bands);
  plan.bands = ceil_div(height.output, plan.band);

  const std::int64_t row = plan.width * size;
  plan.paced = {described.bytes_moved >= kStreamBytes, row, larger(height.stride, kStagedBytes / row)};
  plan.block = plan.paced.streams ? plan.paced.rows / height.stride : plan.band;
  plan.block = smaller(plan.block, larger(1, kPickedBytes / (height.stride * row)));
  const auto line = [](std::int64_t bytes) { return static_cast<std::size_t>(bytes + 63) / 64 * 64; };
  const std::int64_t copied = plan.block * plan.columns + lanes;
  plan.taps_at = plan.gradients_at + line(copied * size);
  plan.paced_at = plan.taps_at + line(copied);
  plan.bytes = plan.paced_at + plan.paced.bytes();
  if (plan.bytes > static_cast<std::size_t>(kMostStripBytes))
    return nullptr;  // rows far apart are put together with all between them
  const std::int64_t units = plan.units();
  return make_unit_kernel(
      described, std::move(plan), units, function,
      "each vector of inputs keeps the gradients whose index names it, because its windows share nothing");
}

}  // namespace cenote::simd
