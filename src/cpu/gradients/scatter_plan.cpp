#include "cpu/gradients/scatter_plan.hpp"

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
    while (o < axis.output && last_tap(o) < first) ++o;  // bands ascend: those passed by are passed by for good
    band.output_first = band.output_end = o;
    while (band.output_end < axis.output && earliest_tap(axis, band.output_end) < first + band.slices)
      ++band.output_end;
    bands.push_back(band);
  }
  return bands;
}

/// Adaptive windows of different sizes.
bool is_uneven(const Problem& p) {
  return std::any_of(std::begin(p.axis), std::end(p.axis),
                     [](const Axis& axis) { return axis.rule == WindowRule::adaptive; });
}

/// Taps of windows small enough for bytes, and whose places fit in 64 bits. The sizes of uneven ones differ by one: what is no tap of a window may lie
/// four times as deep, which must still be a byte.
bool has_tap_tables(const Problem& p) {
  std::int64_t taps = 1;
  for (const Axis& axis : p.axis) {
    if (axis.kernel > UINT8_MAX) return false;
    if (axis.dilation > INT32_MAX || (axis.kernel - 1) * axis.dilation > INT32_MAX) return false;
    taps *= axis.kernel;
  }
  const bool deep = is_uneven(p) && p.axis[0].kernel > UINT8_MAX / 4;
  return p.index_kind == IndexKind::window && taps <= kTabledTaps && !deep;
}

std::uint32_t in_bytes(std::int64_t d, std::int64_t h, std::int64_t w) {
  return static_cast<std::uint32_t>(d << 16 | h << 8 | w);
}

/// Whether a tap's row is the upper half of a 16-bit multiplication, and its distance from the window's first has 16 bits: half of them for its row, half for
/// its column. What is no tap counts as one of the row behind the last, or of one twice as far where windows are uneven, which must be a byte that no empty
/// window skips; see FlatTaps.
bool has_flat_taps(const Problem& p) {
  const Axis &depth = p.axis[0], &height = p.axis[1], &width = p.axis[2];
  const std::int64_t most = std::int64_t{1} << 16;
  auto reach = [](const Axis& axis) { return (axis.kernel - 1) * axis.dilation; };
  const std::int64_t least_wide = width.rule == WindowRule::adaptive ? width.input / width.output + 1 : width.kernel;
  return depth.kernel == 1 && window(depth, depth.output - 1).count == 1 && least_wide > 1 &&
         height.kernel < UINT8_MAX / (is_uneven(p) ? 2 : 1) && height.kernel * width.kernel * width.kernel <= most &&
         (p.index_dtype == DType::u8 || p.index_dtype == DType::u16) && reach(width) < most / 2 &&
         (reach(height) == 0 || width.input < most / 2 / reach(height));
}

/// Of windows that are all alike.
void make_tap_offsets(const Problem& p, ScatterPlan& plan) {
  const Axis &depth = p.axis[0], &height = p.axis[1], &width = p.axis[2];
  for (std::int64_t z = 0; z < depth.kernel; ++z) {
    for (std::int64_t y = 0; y < height.kernel; ++y) {
      for (std::int64_t x = 0; x < width.kernel; ++x) {
        const std::int64_t line = z * depth.dilation * height.input + y * height.dilation;
        plan.tap_offsets.push_back(static_cast<std::uint32_t>(line * width.input + x * width.dilation));
        plan.tap_places.push_back(in_bytes(z, y, x));
      }
    }
  }
  plan.tap_offsets.resize(plan.tap_offsets.size() + kTableSlack);
  plan.tap_places.resize(plan.tap_offsets.size(), kNowhere);
}

void make_tap_tables(const Problem& p, ScatterPlan& plan) {
  const Axis &depth = p.axis[0], &height = p.axis[1], &width = p.axis[2];
  const bool uneven = is_uneven(p);
  if (!uneven) make_tap_offsets(p, plan);

  const bool flat = has_flat_taps(p);
  const bool few =
      !flat && !uneven && depth.kernel * height.kernel * width.kernel <= kFewTaps && p.index_dtype == DType::u8;
  auto taps_left = [](const Window& d, const Window& h, const Window& w) {
    std::uint32_t bits = 0;
    for (std::int64_t z = d.skipped; z < d.skipped + d.count; ++z) {
      for (std::int64_t y = h.skipped; y < h.skipped + h.count; ++y) {
        for (std::int64_t x = w.skipped; x < w.skipped + w.count; ++x) bits |= 1U << ((z * h.whole + y) * w.whole + x);
      }
    }
    return bits;
  };
  auto origin = [](const Window& w) { return w.first - w.skipped * w.step; };
  auto add = [&](std::int64_t first, const Window& d, const Window& h, const Window& w) {
    plan.origins.push_back(static_cast<std::uint32_t>(first));
    plan.skips.push_back(in_bytes(skipped_byte(d), skipped_byte(h), skipped_byte(w)));
    plan.limits.push_back(in_bytes(last_byte(d), last_byte(h), last_byte(w)));
    if (uneven) {
      plan.wides.push_back(static_cast<std::uint32_t>(w.whole));
      if (!plan.rows.empty()) plan.highs.push_back(static_cast<std::uint32_t>(h.whole));
    }
    if (flat) plan.flat_wides.push_back(static_cast<std::uint16_t>(w.whole));
  };
  if (plan.rows.empty()) {
    const Window whole{0, 1, 1, 0, 1, 1};
    for (std::int64_t i = 0; i < width.output * plan.wide(); ++i) {
      const Window w = window(width, i / plan.wide());
      add(origin(w), whole, whole, w);
    }
  } else {
    std::vector<Window> heights, widths;
    for (std::int64_t oh = 0; oh < height.output; ++oh) heights.push_back(window(height, oh));
    for (std::int64_t ow = 0; ow < width.output; ++ow) widths.push_back(window(width, ow));
    for (std::int64_t od = 0; od < depth.output; ++od) {
      const Window d = window(depth, od);
      for (const Window& h : heights) {
        for (const Window& w : widths) {
          const std::int64_t first = (origin(d) * height.input + origin(h)) * width.input + origin(w);
          const std::uint32_t left = few ? taps_left(d, h, w) : 0;
          for (std::int64_t c = 0; c < plan.inner; ++c) {
            add(first, d, h, w);
            if (few) plan.left.push_back(left);
            if (few || flat) plan.corners.push_back(static_cast<std::uint32_t>(first * plan.inner + c));
          }
        }
      }
    }
    const std::size_t outputs = plan.origins.size();
    auto repeat = [&](auto& table) {
      table.resize(table.empty() ? 0 : outputs * static_cast<std::size_t>(plan.tabled));
      for (std::size_t i = outputs; i < table.size(); ++i) table[i] = table[i - outputs];
    };
    for (auto* table : {&plan.origins, &plan.skips, &plan.limits, &plan.left, &plan.wides, &plan.highs, &plan.corners})
      repeat(*table);
    repeat(plan.flat_wides);
    for (std::size_t i = outputs; i < plan.corners.size(); ++i)
      plan.corners[i] +=
          static_cast<std::uint32_t>(i / outputs) * static_cast<std::uint32_t>(plane_size(p) * plan.inner);
  }
  for (auto* table : {&plan.origins, &plan.skips, &plan.limits, &plan.corners, &plan.left}) {
    if (!table->empty()) table->resize(table->size() + kTableSlack);
  }
  for (auto* table : {&plan.wides, &plan.highs}) {
    if (!table->empty()) table->resize(table->size() + kTableSlack, 1);
  }
  for (const std::uint32_t wide : plan.wides) plan.wide_magics.push_back(tap_magic(wide));
  for (const std::uint32_t high : plan.highs) plan.high_magics.push_back(tap_magic(high));
  auto narrow = [&](const std::vector<std::uint32_t>& table, std::vector<std::uint16_t>& to) {
    for (const std::uint32_t bytes : table) to.push_back(static_cast<std::uint16_t>(bytes));
  };
  if (flat) {
    narrow(plan.skips, plan.flat_skips);
    narrow(plan.limits, plan.flat_limits);
    plan.flat_wides.resize(plan.flat_skips.size(), 2);
    for (const std::uint16_t wide : plan.flat_wides)
      plan.flat_magics.push_back(static_cast<std::uint16_t>(UINT16_MAX / wide + 1));
  }
}

/// Where windows are no deeper than a slice, every slice is a plane of its own, if they are as far apart as a channel's are from the next one's.
/// Taps know nothing of their depth; flat indices do.
void slices_to_channels(Problem& p) {
  const std::int64_t depth = p.axis[0].input;
  if (!is_identity(p.axis[0]) || depth == 1 || p.index_kind != IndexKind::window) return;
  auto even = [&](const Layout& l) { return p.channels == 1 || l.c == depth * l.d; };
  if (is_channels_last(p, p.grad_input) || p.grad_input.d == 1 || !even(p.grad_input) || !even(p.grad_output) ||
      !even(p.indices))
    return;
  p.channels *= depth;
  p.axis[0] = {WindowRule::sliding, 1, 1, 1, 1, 1, 0, 0};
  for (Layout* l : {&p.grad_input, &p.grad_output, &p.indices}) l->c = l->d;
}

/// Windows that are whole planes: an index is then a place in the plane, whatever its kind, and a plane without gaps is one row.
void planes_to_rows(Problem& p) {
  Axis &depth = p.axis[0], &height = p.axis[1], &width = p.axis[2];
  const Layout& l = p.grad_input;
  const bool linear =
      (height.input == 1 || l.h == width.input * l.w) && (depth.input == 1 || l.d == height.input * width.input * l.w);
  if (p.index_dtype == DType::u8 || !is_whole(depth) || !is_whole(height) || !is_whole(width) || !linear) return;
  width.input = width.kernel = depth.input * height.input * width.input;
  depth = height = {WindowRule::sliding, 1, 1, 1, 1, 1, 0, 0};
  p.index_kind = IndexKind::flat64;
}

/// Many outputs in a row have one winner.
bool has_long_runs(const Axis& width) {
  return width.rule == WindowRule::sliding && width.dilation == 1 && width.kernel / width.stride >= kLongRuns;
}

/// How far planes that are added to in turns are ahead of each other, in outputs: what is read of one must not look like what was just written to another, a multiple of
/// kAliasBytes away.
std::int64_t lag_of(const Axis& width, std::int64_t plane_bytes, std::int64_t lane, std::int64_t outputs) {
  const std::int64_t ahead = smaller(kLagOutputs, outputs / 8);
  auto apart = [&](std::int64_t lag) {
    std::int64_t least = kAliasBytes;
    for (std::int64_t planes = 1; planes < kPlanesInTurns; ++planes) {
      const std::int64_t step = lag * (width.stride % kAliasBytes) * lane;
      const std::int64_t distance = planes * (plane_bytes - step) % kAliasBytes;
      const std::int64_t bytes = distance < 0 ? -distance : distance;
      least = smaller(least, smaller(bytes, kAliasBytes - bytes));
    }
    return least;
  };
  return apart(0) < kLagBytes && apart(ahead) > apart(0) ? ahead : 0;
}

/// Tables for whole planes, where they are small enough and their outputs lie one after the other.
bool make_plane_tables(const Problem& p, std::int64_t lane, ScatterPlan& plan) {
  const Layout& small = p.grad_output;
  const Axis &depth = p.axis[0], &height = p.axis[1], &width = p.axis[2];
  const std::int64_t inner = plan.inner, outputs = plane_outputs(p) * inner, row = width.output * inner;
  auto follows = [&](const Layout& l) {
    return (inner == 1 || width.output == 1 || l.w == inner) && (height.output == 1 || l.h == row) &&
           (depth.output == 1 || l.d == height.output * row);
  };
  // Flat indices are looked for in each row of a window, or (dilated) in each tap; taps know theirs.
  const bool by_taps = p.index_kind == IndexKind::window;
  const std::int64_t pieces = width.dilation == 1 || by_taps ? 1 : width.kernel;
  std::int64_t rows = 1;  // of tables
  for (const std::int64_t more : {depth.kernel, height.kernel, pieces}) {
    if (more > kMostPlaneRows / rows) return false;
    rows *= more;
  }
  if ((inner != 1 && (row > kSegment || plan.chunks != 1 || plan.compares)) || plan.bands.size() != 1 ||
      plan.slabs != 1 || plan.capacity != p.axis[plan.axis].input || (by_taps && !has_tap_tables(p)) ||
      (pieces > 1 && width.dilation > INT32_MAX) || outputs > kMostPlaneOutputs ||
      outputs * (by_taps ? 1 : rows) > kMostPlaneEntries || !follows(small) || !follows(p.indices))
    return false;
  // So many planes at once as fill a segment, where each follows the one before.
  const std::int64_t plane = plane_size(p) * inner;
  auto planes_follow = [&](const Layout& l, std::int64_t size) {
    if (inner > 1) return p.batch == 1 || l.n == size;
    return (p.channels == 1 || l.c == size) && (p.batch == 1 || l.n == p.channels * size);
  };
  const bool together = plan.linear && plan.position == inner && planes_follow(small, outputs) &&
                        planes_follow(p.indices, outputs) && planes_follow(p.grad_input, plane);
  plan.group = plan.tabled = 1;
  if (together) {
    const bool overlap = depth.kernel > depth.stride || height.kernel > height.stride || width.kernel > width.stride;
    const std::int64_t wanted = larger(kSegment / outputs, kPlanesInTurns);
    const std::int64_t most = (overlap ? kGroupBytes : kApartBytes) / (plane * lane);
    plan.group = std::clamp<std::int64_t>(smaller(wanted, most), 1, plan.outer);
    if (plan.group > kPlanesInTurns) plan.group = plan.group / kPlanesInTurns * kPlanesInTurns;
    // Planes of few outputs are located together, others each with the same tables.
    if (plan.group * outputs <= kSegment) plan.tabled = plan.group;
    plan.lag = lag_of(width, plane * lane, lane, outputs);
  }
  // Wide windows of planes that take no turns: row by row, sums stay in registers, see AddRuns.
  if (plan.group < kPlanesInTurns && has_long_runs(width) && width.output >= 2 * kTableSlack) return false;
  for (std::int64_t z = 0; z < depth.kernel; ++z) {
    for (std::int64_t y = 0; y < height.kernel; ++y) {
      for (std::int64_t x = 0; x < pieces; ++x) {
        const std::int64_t line = z * depth.dilation * height.input + y * height.dilation;
        plan.rows.push_back(static_cast<std::uint32_t>(line * width.input + x * width.dilation));
      }
    }
  }
  const std::int64_t located = outputs * plan.tabled;
  plan.segment = ceil_div(located, ceil_div(located, kPlaneSegment));
  const std::size_t pitch = static_cast<std::size_t>(located + kTableSlack);
  plan.first.assign(pitch, 0);
  plan.taps.assign(by_taps ? pitch : pitch * plan.rows.size(), 0);
  plan.channel.assign(pitch, 0);
  std::size_t at = 0;
  for (std::int64_t od = 0; od < depth.output; ++od) {
    for (std::int64_t oh = 0; oh < height.output; ++oh) {
      for (std::int64_t x = 0; x < row; ++x, ++at) {
        const Window d = window(depth, od), h = window(height, oh), w = window(width, x / inner);
        plan.channel[at] = static_cast<std::uint32_t>(x % inner);
        plan.first[at] = static_cast<std::uint32_t>((d.first * height.input + h.first) * width.input + w.first);
        for (std::int64_t z = 0; !by_taps && z < d.count; ++z) {
          for (std::int64_t y = 0; y < h.count; ++y) {
            const std::int64_t first = (z * height.kernel + y) * pieces;
            for (std::int64_t piece = 0; piece < (pieces == 1 ? 1 : w.count); ++piece)
              plan.taps[static_cast<std::size_t>(first + piece) * pitch + at] =
                  static_cast<std::uint32_t>(pieces == 1 ? w.count : 1);
          }
        }
      }
    }
  }
  for (; at < static_cast<std::size_t>(located); ++at) {
    const std::size_t before = at - static_cast<std::size_t>(outputs);
    plan.first[at] = plan.first[before];
    plan.channel[at] = plan.channel[before] + static_cast<std::uint32_t>(plane);
    for (std::size_t r = 0; !by_taps && r < plan.rows.size(); ++r)
      plan.taps[r * pitch + at] = plan.taps[r * pitch + before];
  }
  plan.skipped.assign(pitch, 0);
  return true;
}

}  // namespace

bool make_scatter_plan(const Described& described, std::size_t lane, ScatterPlan& plan) {
  plan = ScatterPlan{};
  plan.problem = described.problem;
  for (Axis& axis : plan.problem.axis) axis = simplified(axis);
  planes_to_rows(plan.problem);
  slices_to_channels(plan.problem);
  const Problem& p = plan.problem;
  const Axis* axis = p.axis;
  const Layout &large = p.grad_input, &small = p.grad_output;
  const bool channels_last = is_channels_last(p, large);
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
  const bool flat_windows = is_identity(axis[0]) && axis[1].input > 1;
  plan.slabs = flat_windows ? axis[0].input : 1;
  plan.axis = axis[0].input > plan.slabs ? 0 : axis[1].input > 1 ? 1 : 2;
  plan.slice = plane_size(p) / plan.slabs / axis[plan.axis].input;
  plan.position = large.w;
  plan.linear = (axis[1].input == 1 || large.h == axis[2].input * large.w) &&
                (axis[0].input == 1 || large.d == axis[1].input * axis[2].input * large.w);
  if (axis[2].input == 1) {
    plan.position = axis[1].input == 1 ? large.d : large.h;
    plan.linear = axis[1].input == 1 || axis[0].input == 1 || large.d == axis[1].input * large.h;
  }

  // Scratch holds a few windows; columns of so many channels that they do not fit are taken apart.
  const Axis& cut_axis = axis[plan.axis];
  const std::int64_t reach = cut_axis.rule == WindowRule::adaptive
                                 ? cut_axis.kernel
                                 : smaller((cut_axis.kernel - 1) * cut_axis.dilation + 1, cut_axis.input);
  const std::int64_t column_bytes = plan.slice * static_cast<std::int64_t>(lane);
  plan.chunk = plan.inner;
  auto halve = [&] { plan.chunk = ceil_div(plan.chunk / 2, kLeastChunk) * kLeastChunk; };
  // Outputs that are few beside their inputs are located again for every band that their windows reach into, so that bands need not be higher than windows.
  const std::int64_t share = plane_size(p) / plane_outputs(p);  // inputs to an output
  const std::int64_t wanted = ceil_div(cut_axis.input, ceil_div(kFewestUnits, plan.outer * plan.slabs));
  const bool low_bands =
      share >= kLocatedAgain && (reach * column_bytes * plan.inner > kBandBytes || wanted < 4 * reach);
  const std::int64_t lowest = low_bands ? ceil_div(reach * kLocatedAgain, share) : reach;
  while (plan.chunk >= 2 * kLeastChunk && lowest * column_bytes * plan.chunk > kMostBandBytes) halve();
  // So few bands that threads have nothing to share: taps of some channels are short enough to be read in pieces.
  const std::int64_t alone = plan.outer * plan.slabs * ceil_div(cut_axis.input, larger(1, 4 * reach));
  while (!low_bands && has_tap_tables(p) && plan.chunk >= 2 * kWideColumn &&
         alone * ceil_div(plan.inner, plan.chunk) < kFewestUnits / 2)
    halve();
  plan.chunks = ceil_div(plan.inner, plan.chunk);
  const std::int64_t slice_bytes = column_bytes * plan.chunk;
  plan.streams = described.bytes_moved >= kStreamBytes;
  plan.in_place = !plan.streams && lane == size_of(p.dtype) && plan.linear && plan.chunk == plan.position;
  plan.capacity = smaller(cut_axis.input, larger(kBandBytes / slice_bytes, reach + cut_axis.stride));
  const std::int64_t bands = ceil_div(kFewestUnits, plan.outer * plan.chunks * plan.slabs);  // for the threads to share
  std::int64_t slices = ceil_div(cut_axis.input, bands), least = 4 * reach;
  if (low_bands) {
    slices = smaller(slices, kBandBytes / slice_bytes);
    least = lowest;
  }
  slices = smaller(cut_axis.input, larger(slices, least));
  auto count = static_cast<std::uint64_t>(ceil_div(cut_axis.input, slices));
  if (plan.outer == 1 && plan.chunks * plan.slabs == 1 && !low_bands) count = std::bit_floor(count);
  slices = ceil_div(cut_axis.input, static_cast<std::int64_t>(count));  // bands of one size
  plan.bands = cut(cut_axis, slices);
  plan.capacity = low_bands || plan.in_place ? slices : smaller(plan.capacity, slices);
  // PyTorch's indices; most of what the tape keeps is gathered, see gather_columns-inl.h.
  plan.compares =
      is_floating(p.dtype) && p.index_dtype == DType::i64 && plan.chunk >= kComparedChannels && taps <= kComparedTaps;

  const std::int64_t columns = axis[2].output;
  if (columns > kMostColumns) return false;
  plan.expanded = channels_last && !plan.compares && plan.inner < kWideColumn && columns <= kMostColumns / plan.inner &&
                  plan.chunk == plan.inner && (small.w == plan.inner || columns == 1) &&
                  (p.indices.w == plan.inner || columns == 1);
  plan.segment = kSegment;
  if (plan.axis == 2 && !low_bands) {  // no longer than scratch
    const std::int64_t step = cut_axis.rule == WindowRule::adaptive ? cut_axis.kernel : cut_axis.stride;
    const std::int64_t fitting = (plan.capacity - reach) / step * plan.wide();
    plan.segment = std::clamp<std::int64_t>(fitting, 1, kSegment);
  }
  const bool tabled = make_plane_tables(p, static_cast<std::int64_t>(lane), plan);
  for (std::int64_t i = 0; !tabled && i < columns * plan.wide(); ++i) {
    const Window w = window(axis[2], i / plan.wide());
    plan.first.push_back(static_cast<std::uint32_t>(smaller(w.first, INT32_MAX)));
    plan.taps.push_back(static_cast<std::uint32_t>(w.count));
    plan.skipped.push_back(static_cast<std::uint32_t>(smaller(w.skipped, INT32_MAX)));
    if (plan.expanded) plan.channel.push_back(static_cast<std::uint32_t>(i % plan.wide()));
  }
  for (auto* table : {&plan.first, &plan.taps, &plan.skipped, &plan.channel}) {
    if (!tabled) table->resize(table->size() + kTableSlack);
  }
  plan.width = Divider(axis[2].input);
  plan.height = Divider(axis[1].input);
  for (int a = 0; a < 3; ++a) {
    plan.step[a] = static_cast<std::uint32_t>(smaller(axis[a].dilation, INT32_MAX));
    if (axis[a].rule == WindowRule::sliding && axis[a].dilation > 1) plan.dilated = true;
  }

  if (!tabled) plan.group = plan.tabled = 1, plan.lag = 0;
  plan.wide_windows = plan.inner == 1 && !tabled && has_long_runs(axis[2]);
  if (has_tap_tables(p)) make_tap_tables(p, plan);
  plan.by_taps =
      !tabled && !plan.flat_skips.empty() && p.index_dtype == DType::u8 && plan.column_by_column() && plan.axis != 2;
  auto aligned = [](std::size_t bytes) { return (bytes + 63) / 64 * 64; };
  plan.spots_at = plan.in_place ? 0
                                : aligned(static_cast<std::size_t>(plan.capacity * slice_bytes * plan.group) +
                                          static_cast<std::size_t>(kSpare) * lane);
  if (plan.capacity * plan.slice >= INT32_MAX / plan.chunk) return false;
  const std::int64_t segment =
      larger(larger(kSegment, plan.segment * (plan.group / plan.tabled)), plan.chunk) + kTableSlack;
  plan.values_at = plan.spots_at + aligned(static_cast<std::size_t>(segment) * 4);
  plan.bytes = plan.values_at + aligned(static_cast<std::size_t>(segment) * lane);
  return true;
}

void set_tables(const ScatterPlan& plan, std::int64_t x, LocateJob& job) {
  job.first = plan.first.data() + x;
  job.taps = plan.taps.data() + x;
  job.skipped = plan.skipped.data() + x;
  if (!plan.origins.empty()) {
    job.origins = plan.origins.data() + x;
    job.skips = plan.skips.data() + x;
    job.limits = plan.limits.data() + x;
  }
  if (!plan.wides.empty()) {
    job.wides = plan.wides.data() + x;
    job.wide_magics = plan.wide_magics.data() + x;
  }
  if (!plan.highs.empty()) {
    job.highs = plan.highs.data() + x;
    job.high_magics = plan.high_magics.data() + x;
  }
  if (!plan.corners.empty()) job.corners = plan.corners.data() + x;
  if (!plan.left.empty()) job.left = plan.left.data() + x;
  if (!plan.flat_skips.empty()) {
    job.flat_skips = plan.flat_skips.data() + x;
    job.flat_limits = plan.flat_limits.data() + x;
    job.flat_wides = plan.flat_wides.data() + x;
    job.flat_magics = plan.flat_magics.data() + x;
  }
  job.channel = plan.expanded || !plan.rows.empty() ? plan.channel.data() + x : nullptr;
}

ScatterUnit::ScatterUnit(const ScatterPlan& plan, std::int64_t unit)
    : band(plan.bands[static_cast<std::size_t>(unit % static_cast<std::int64_t>(plan.bands.size()))]) {
  std::int64_t rest = unit / static_cast<std::int64_t>(plan.bands.size());
  slab = rest % plan.slabs;
  rest /= plan.slabs;
  channel = rest % plan.chunks * plan.chunk;
  channels = smaller(plan.chunk, plan.inner - channel);
  rest /= plan.chunks;
  if (plan.group > 1) {
    rest *= plan.group;
    planes = smaller(plan.group, plan.outer - rest);
  }
  major = rest / plan.outer_minor_count;
  minor = rest % plan.outer_minor_count;
  for (int a = 0; a < 3; ++a) {
    outputs_first[a] = a == plan.axis ? band.output_first : 0;
    outputs_end[a] = a == plan.axis ? band.output_end : plan.problem.axis[a].output;
  }
  if (plan.slabs > 1) {
    outputs_first[0] = slab;
    outputs_end[0] = slab + 1;
  }
}

}  // namespace cenote::simd
