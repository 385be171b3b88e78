#include "cpu/scatter_plan.hpp"

#include "cpu/thresholds.hpp"

#include <algorithm>

namespace cenote::simd {
namespace {

/// Whether the elements of a row (planar) or of a column (channels-last) are consecutive.
bool is_consecutive(const Layout& l, bool channels_last, std::int64_t columns) {
  return channels_last ? l.c == 1 : l.w == 1 || columns == 1;
}

std::vector<Band> cut(const Axis& axis, std::int64_t slices) {
  std::vector<Band> bands;
  std::int64_t o = 0;
  for (std::int64_t first = 0; first < axis.input; first += slices) {
    Band band{first, smaller(slices, axis.input - first), 0, 0};
    auto last_tap = [&](std::int64_t output) {
      const Window w = window(axis, output);
      return w.count == 0 ? std::int64_t{-1} : w.first + (w.count - 1) * w.step;
    };
    while (o < axis.output && last_tap(o) < first) ++o;  // last taps ascend: those passed by are passed by for good
    band.output_first = band.output_end = o;
    while (band.output_end < axis.output && window(axis, band.output_end).first < first + band.slices)
      ++band.output_end;
    bands.push_back(band);
  }
  return bands;
}

}  // namespace

bool make_scatter_plan(const Problem& p, std::size_t lane, ScatterPlan& plan) {
  plan = ScatterPlan{};
  plan.problem = p;
  const Axis* axis = p.axis;
  const bool unpool = p.op == Op::max_unpool, forward = p.pass == Pass::forward;
  const Layout& large = !unpool ? p.grad_input : forward ? p.output : p.grad_output;
  const Layout& small = !unpool ? p.grad_output : forward ? p.input : p.grad_input;
  const bool channels_last = p.channels > 1 && large.c == 1 && (large.w != 1 || axis[2].input == 1);
  if (plane_size(p) >= std::int64_t{1} << 30) return false;
  std::int64_t taps = 1;
  for (const Axis& one : p.axis) taps = taps > INT32_MAX / one.kernel ? INT32_MAX : taps * one.kernel;
  if (p.index_kind == IndexKind::window && taps >= INT32_MAX) return false;
  if (!is_consecutive(small, channels_last, axis[2].output) ||
      !is_consecutive(p.indices, channels_last, axis[2].output))
    return false;

  plan.inner = channels_last ? p.channels : 1;
  plan.outer_minor_count = channels_last ? 1 : p.channels;
  plan.outer = p.batch * plan.outer_minor_count;
  plan.axis = axis[0].input > 1 ? 0 : axis[1].input > 1 ? 1 : 2;
  plan.slice = plane_size(p) / axis[plan.axis].input;
  plan.position = large.w;
  plan.linear = (axis[1].input == 1 || large.h == axis[2].input * large.w) &&
                (axis[0].input == 1 || large.d == axis[1].input * axis[2].input * large.w);
  if (axis[2].input == 1) {
    plan.position = axis[1].input == 1 ? large.d : large.h;
    plan.linear = axis[1].input == 1 || axis[0].input == 1 || large.d == axis[1].input * large.h;
  }

  // Of a column, as many elements as leave a band several windows long; of the axis, as many slices as then fit.
  const Axis& cut_axis = axis[plan.axis];
  const std::int64_t reach = smaller((cut_axis.kernel - 1) * cut_axis.dilation + 1, cut_axis.input);
  const std::int64_t wanted = smaller(cut_axis.input, 8 * reach) * plan.slice * static_cast<std::int64_t>(lane);
  plan.chunk = plan.inner;
  while (plan.chunk >= 2 * kLeastChunk && wanted * plan.chunk > kBandBytes)
    plan.chunk = (plan.chunk / 2 + kLeastChunk - 1) / kLeastChunk * kLeastChunk;
  plan.chunks = ceil_div(plan.inner, plan.chunk);
  const std::int64_t slice_bytes = plan.slice * plan.chunk * static_cast<std::int64_t>(lane);
  std::int64_t slices =
      std::clamp<std::int64_t>(kBandBytes / slice_bytes, smaller(2 * reach, cut_axis.input), cut_axis.input);
  const std::int64_t fewest = ceil_div(kFewestUnits, plan.outer * plan.chunks);  // for the threads to share
  slices = larger(smaller(slices, ceil_div(cut_axis.input, fewest)), smaller(slices, 2 * reach));
  if (unpool) {
    // Its indices may point anywhere in the plane: one band, and no scratch for it.
    if (!plan.linear) return false;
    slices = cut_axis.input;
    plan.bands = {{0, slices, 0, cut_axis.output}};
  } else {
    plan.bands = cut(cut_axis, slices);
  }

  const std::int64_t columns = axis[2].output;
  for (std::int64_t o = 0; o < columns; ++o) {
    const Window w = window(axis[2], o);
    plan.first.push_back(static_cast<std::uint32_t>(smaller(w.first, INT32_MAX)));
    plan.taps.push_back(static_cast<std::uint32_t>(w.count));
    plan.skipped.push_back(static_cast<std::uint32_t>(smaller(w.skipped, INT32_MAX)));
  }
  plan.width = Divider(axis[2].input);
  plan.height = Divider(axis[1].input);
  plan.kernel_width = Divider(smaller(axis[2].kernel, INT32_MAX));
  plan.kernel_height = Divider(smaller(axis[1].kernel, INT32_MAX));
  for (int a = 0; a < 3; ++a) {
    plan.step[a] = static_cast<std::uint32_t>(smaller(axis[a].dilation, INT32_MAX));
    if (axis[a].rule == WindowRule::sliding && axis[a].dilation > 1) plan.dilated = true;
  }

  auto aligned = [](std::size_t bytes) { return (bytes + 63) / 64 * 64; };
  plan.spots_at = unpool ? 0 : aligned(static_cast<std::size_t>(slices * slice_bytes));
  const std::int64_t segment = larger(kSegment, plan.chunk);
  plan.values_at = plan.spots_at + aligned(static_cast<std::size_t>(segment) * 4);
  plan.bytes = plan.values_at + aligned(static_cast<std::size_t>(segment) * lane);
  return true;
}

ScatterUnit::ScatterUnit(const ScatterPlan& plan, std::int64_t unit)
    : band(plan.bands[static_cast<std::size_t>(unit % static_cast<std::int64_t>(plan.bands.size()))]) {
  const std::int64_t rest = unit / static_cast<std::int64_t>(plan.bands.size());
  channel = rest % plan.chunks * plan.chunk;
  channels = smaller(plan.chunk, plan.inner - channel);
  const std::int64_t place = rest / plan.chunks;
  major = place / plan.outer_minor_count;
  minor = place % plan.outer_minor_count;
  base = band.first * plan.slice;
  positions = band.slices * plan.slice;
  for (int a = 0; a < 3; ++a) {
    outputs_first[a] = a == plan.axis ? band.output_first : 0;
    outputs_end[a] = a == plan.axis ? band.output_end : plan.problem.axis[a].output;
  }
}

}  // namespace cenote::simd
