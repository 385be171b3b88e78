// How a problem is cut into rows, and how the columns of a row are folded: every decision of the row kernels is made here.
#include "cpu/rows/rows.hpp"
#include "cpu/thresholds.hpp"
#include "cpu/vectors/power.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cenote::simd {
namespace {

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();

RowTensor row_tensor(const Layout& l, std::int64_t inner, std::int64_t columns) {
  if (inner == 1) return {l.n, l.c, l.d, l.h, l.w, 1, l.w == 1 || columns == 1};
  return {l.n, 0, l.d, l.h, l.w, l.c, l.c == 1 && (l.w == inner || columns == 1)};
}

/// Whether columns of a tensor are whole cache lines if the first is. `depths`, `heights`: its rows.
bool has_whole_lines(const RowPlan& plan, const RowTensor& tensor, std::int64_t size, std::int64_t depths,
                     std::int64_t heights) {
  const std::int64_t line = 64 / size;
  return tensor.dense && plan.inner % line == 0 && (plan.outer == 1 || tensor.outer_major % line == 0) &&
         (depths == 1 || tensor.depth % line == 0) && (heights == 1 || tensor.height % line == 0);
}

/// The source columns of one target column.
struct Span {
  std::int64_t first, count, step, skipped;
};

Span span_of(const RowPlan& plan, std::int64_t target, bool reversed) {
  const Axis& axis = plan.problem.axis[2];
  if (reversed) {
    const Cover c = cover(axis, target);
    return {c.first, c.count, c.step, 0};
  }
  const Window w = window(axis, target);
  return {w.first, w.count, w.step, w.skipped};
}

/// Taps before the first source column or behind the last one that a whole stretch of regular windows would touch.
bool pads_are_short(const Axis& axis) {
  const std::int64_t reach = (axis.kernel - 1) * axis.dilation;
  const std::int64_t overhang = (axis.output - 1) * axis.stride + reach + 1 - axis.pad_begin - axis.input;
  return axis.kernel <= axis.input + axis.pad_begin + axis.pad_end + 1 && reach <= 4096 && axis.pad_begin <= 4096 &&
         overhang <= 4096;
}

/// Windows that follow each other at a fixed step that loads (or stores, in a backward) can follow.
bool is_regular(const Axis& axis, RowTask task) {
  if (axis.rule != WindowRule::sliding || !pads_are_short(axis)) return false;
  return axis.stride == 1 || (axis.stride <= 4 && (task == RowTask::fold || axis.dilation == 1));
}

/// Loads per output, tap by tap against down the rows and along: equal where windows do not overlap.
bool is_worth_direct(const Problem& p) {
  const bool compiled =
      p.reduction != Reduction::min && (is_floating(p.dtype) || size_of(p.dtype) == 1);  // see kHasDirect
  if (!compiled || p.reduction == Reduction::power || p.absolute) return false;
  const std::int64_t rows = p.axis[0].kernel * p.axis[1].kernel, taps = p.axis[2].kernel;
  if (p.axis[0].kernel > kDirectRows || p.axis[1].kernel > kDirectRows || rows > kDirectRows) return false;
  // Maxima of many taps are read in pieces from all over the window: from beyond the caches rows come faster as they lie.
  const std::int64_t bytes = p.batch * p.channels * plane_size(p) * static_cast<std::int64_t>(size_of(p.dtype));
  if (p.reduction == Reduction::max && rows * taps > kFewDirectTaps && bytes >= kStreamBytes / 2) return false;
  const std::int64_t apart =
      p.axis[2].rule == WindowRule::sliding ? p.axis[2].stride : larger(1, p.axis[2].input / p.axis[2].output);
  return rows * taps <= apart * (rows + kStoreAndLoad) + taps + kPasses;
}

/// Windows so tall, and so much overlapping, that rows are folded in blocks: see tall-inl.h.
bool is_tall(const Problem& p, RowTask task) {
  const Axis& height = p.axis[1];
  const std::int64_t most_overlap = task == RowTask::fold ? height.kernel / 3 : 1;
  return is_identity(p.axis[0]) && p.reduction != Reduction::power && !p.absolute &&
         height.rule == WindowRule::sliding && height.dilation == 1 && height.kernel >= kTallTaps &&
         height.kernel <= kMostTallTaps && height.stride <= most_overlap;
}

Columns choose_columns(const RowPlan& plan, RowTask task, std::int64_t lanes, std::int64_t most, std::int64_t step) {
  const Axis& axis = plan.problem.axis[2];
  const bool regular = is_regular(axis, task);
  if (task == RowTask::max_backward && plan.inner > 1) {
    return plan.inner >= larger(1, lanes) ? Columns::per_channel : Columns::gathered;
  }
  // Columns of many channels and few taps need no buffered row, where there is room for a table of them; more taps are summed up in
  // another order.
  const bool direct = task == RowTask::fold && plan.inner > 1 && plan.inner >= kDirectVectors * lanes &&
                      axis.output <= kMostColumns / plan.inner && plan.source.dense && axis.kernel < kDoublingTaps &&
                      !is_tall(plan.problem, task) && is_worth_direct(plan.problem);
  if (regular && axis.stride == 1 && !direct) return Columns::consecutive;
  if (plan.inner > 1) return plan.inner >= lanes ? Columns::per_channel : Columns::gathered;
  if (regular) return task == RowTask::fold ? Columns::strided : Columns::phased;
  return step == 1 && most >= kSpannedTaps ? Columns::spanned : Columns::gathered;
}

/// Planar rows whose windows plain vectors can follow, all with a tap inside.
bool may_be_stencil(const RowPlan& plan, std::size_t lane, std::int64_t lanes) {
  const Problem& p = plan.problem;
  const Axis& axis = p.axis[2];
  if (plan.inner != 1 || (plan.columns != Columns::consecutive && plan.columns != Columns::strided)) return false;
  const bool compiled = is_floating(p.dtype) || (size_of(p.dtype) == 1 && lane == 1);  // see kHasStencil
  if (!compiled || p.reduction == Reduction::min) return false;
  if (plan.columns == Columns::consecutive && axis.kernel >= kDoublingTaps) return false;  // another order of sums
  if (axis.stride == 3 && lane != size_of(p.dtype)) return false;  // there is no load that takes apart and converts
  if (p.axis[0].kernel > kRowBlock || p.axis[1].kernel > kRowBlock || p.axis[0].kernel * p.axis[1].kernel > kRowBlock)
    return false;
  const bool first_has_taps = (axis.kernel - 1) * axis.dilation >= axis.pad_begin;
  const bool last_has_taps = (axis.output - 1) * axis.stride < axis.pad_begin + axis.input;
  if (plan.may_be_empty || !first_has_taps || !last_has_taps) return false;
  return std::all_of(plan.tiles.begin(), plan.tiles.end(), [&](const Tile& t) { return t.target_columns >= lanes; });
}

/// Instructions per vector of outputs, tap by tap against down the rows and along.
bool is_worth_stencil(const Problem& p) {
  const std::int64_t rows = p.axis[0].kernel * p.axis[1].kernel, taps = p.axis[2].kernel, stride = p.axis[2].stride;
  const std::int64_t load = stride == 1 ? 1 : stride + 1;
  const bool sum = p.reduction == Reduction::average || p.reduction == Reduction::sum;
  const std::int64_t fold = sum ? 1 : p.with_indices ? kIndexedFold : kMaxFold;
  const std::int64_t join = p.with_indices ? kUnorderedFold + load : fold;
  const std::int64_t buffer = stride * (p.with_indices ? 2 : sum ? 1 : 3);
  return rows * taps * (load + fold) <= rows * stride * (1 + fold) + buffer + taps * (load + join) + kRowPass;
}

/// Rows read one after the other come by themselves. Those of windows folded straight that share none are, slice by slice; adaptive ones
/// share few.
bool is_worth_fetching(const RowPlan& plan) {
  const Axis &depth = plan.problem.axis[0], &height = plan.problem.axis[1];
  if (!plan.direct) return !plan.along_first;
  return height.rule == WindowRule::sliding && (height.kernel > height.stride || depth.kernel > 1);
}

/// The source rows that a call reads from memory are asked for a few target rows before.
void fetch_early(RowPlan& plan, bool reversed) {
  const Axis& height = plan.problem.axis[1];
  const auto size = static_cast<std::int64_t>(size_of(plan.problem.dtype));
  const std::int64_t row_bytes = plan.tiles[0].source_columns * plan.inner * size;
  plan.fetch_pitch = plan.source.height * size;
  plan.fetch_depth_pitch = plan.source.depth * plan.problem.axis[0].dilation * size;
  plan.fetch_rows = reversed                             ? 1
                    : height.rule == WindowRule::sliding ? smaller(height.stride, height.kernel)
                                                         : larger(1, height.input / height.output);
  const std::int64_t step = plan.fetch_pitch * (reversed ? 1 : larger(1, height.input / height.output));
  if (row_bytes > 0) plan.fetch_ahead = step * larger(1, kFetchBytes / (plan.fetch_rows * row_bytes));
  // Rows that windows share have been read. (Where dilations and strides do not go together, some are asked for in vain.)
  if (plan.direct) plan.fetch_ahead += plan.fetch_pitch * larger(0, height.kernel - height.stride) * height.dilation;
}

/// Elements that a tensor of nowhere descending strides spans.
std::int64_t extent_of(const Problem& p, const Layout& l) {
  if (l.n < 0 || l.c < 0 || l.d < 0 || l.h < 0 || l.w < 0) return 0;
  return (p.batch - 1) * l.n + (p.channels - 1) * l.c + (p.axis[0].input - 1) * l.d + (p.axis[1].input - 1) * l.h +
         (p.axis[2].input - 1) * l.w + 1;
}

/// Windows that share nothing, in columns without gaps: see pick_columns.cpp.
bool are_stored(const RowPlan& plan) {
  for (const Axis& axis : plan.problem.axis) {
    if (axis.kernel > axis.stride || (axis.kernel > 1 && axis.dilation != 1)) return false;
  }
  const Axis &height = plan.problem.axis[1], &width = plan.problem.axis[2];
  return plan.target.dense && height.stride <= kMostOwned && width.stride <= kMostOwned / height.stride;
}

/// Windows of few taps, all with a tap inside: planar ones that do not overlap along the row, and any in columns of many channels.
/// `slots`: output rows to be kept.
bool gathers(RowPlan& plan, std::int64_t& slots) {
  const Problem& p = plan.problem;
  const Axis& width = p.axis[2];
  const bool columns = plan.inner > 1;
  const std::int64_t most_taps = columns ? UINT8_MAX - 1 : kGatheredTaps;  // UINT8_MAX is "none"
  if (!plan.source.dense || !plan.indices.dense) return false;
  // PyTorch's indices, and what the tape keeps. Flat ones of columns are cheaper compared where they are read, see CompareColumns.
  if (p.index_dtype != DType::u8 && (columns || p.index_dtype != DType::i64)) return false;
  if (columns && plan.columns != Columns::per_channel) return false;
  if (!columns && (plan.columns != Columns::phased || width.kernel > width.stride || width.output < kGatheredColumns))
    return false;
  std::int64_t taps = 1, outputs = 1;  // of a window; that see an input
  slots = 1;
  for (int a = 0; a < 3; ++a) {
    const Axis& axis = p.axis[a];
    if (axis.rule == WindowRule::adaptive || axis.kernel > most_taps) return false;
    taps *= axis.kernel;
    if (a == 2 && !columns) continue;
    if (axis.input > kMostRows || axis.output > kMostRows) return false;
    std::int64_t span = 1;  // of outputs from the first to the last that see an input
    std::int64_t most = 1;  // of them
    for (std::int64_t i = 0; i < axis.input; ++i) {
      const Cover c = cover(axis, i);
      plan.covers[a].push_back(c);
      span = larger(span, (c.count - 1) * c.step + 1);
      most = larger(most, c.count);
    }
    outputs *= most;
    for (std::int64_t o = 0; o < axis.output; ++o) {
      const Window w = window(axis, o);
      if (w.count == 0) return false;
      if (a == 2) {
        plan.windows.push_back(w);
      } else if (span <= kMostSlots) {
        plan.slot_of[a].push_back(static_cast<std::uint8_t>(o % span));
      }
    }
    if (a == 2) continue;
    slots *= span;
    if (a == 1) plan.slot_heights = span;
    if (slots > kMostSlots) return false;
  }
  // Tiles are of one size but for the last.
  for (const Window& w : plan.windows) {
    ++plan.tiles[static_cast<std::size_t>(w.first / plan.tiles[0].target_columns)].owned;
  }
  const bool cheap =
      !columns || taps <= kGatheredColumnTaps || are_stored(plan) || (outputs <= kFewOutputs && plan.streams);
  return taps <= most_taps && cheap && window(width, 0).count > 0;
}

bool is_power_of_two(double value) {
  int exponent = 0;
  return std::frexp(std::fabs(value), &exponent) == 0.5;
}

/// At least 1: a window without taps has the average 0.
double counted_taps(const Problem& p, int axis, std::int64_t o) {
  const Window w = window(p.axis[axis], o);
  return static_cast<double>(p.count_include_pad || p.reduction == Reduction::power ? w.padded : larger(1, w.count));
}

/// Divisors of averages and counts of Lp windows, as a factor per output column.
void make_factors(RowPlan& plan) {
  const Problem& p = plan.problem;
  plan.uniform_factor = 1;
  if (p.reduction != Reduction::average && p.reduction != Reduction::power) return;
  plan.power_factor = 1;
  for (const Axis& axis : p.axis) plan.power_factor *= static_cast<double>(axis.kernel);
  if (p.divisor_override != 0) {
    plan.uniform_factor = static_cast<double>(p.divisor_override);
    plan.factor_is_power_of_two = is_power_of_two(plan.uniform_factor);
    return;
  }
  for (int a = 0; a < 2; ++a) {
    for (std::int64_t o = 0; p.axis[a].output <= kMostRows && o < p.axis[a].output; ++o) {
      plan.row_factors[a].push_back(counted_taps(p, a, o));
    }
  }
  const std::int64_t columns = p.axis[2].output;
  plan.uniform_factor = counted_taps(p, 2, 0);
  bool uniform = true;
  for (std::int64_t o = 1; uniform && o < columns; ++o) uniform = counted_taps(p, 2, o) == plan.uniform_factor;
  if (!uniform) {
    plan.column_factor.resize(static_cast<std::size_t>(columns));
    for (std::int64_t o = 0; o < columns; ++o) plan.column_factor[static_cast<std::size_t>(o)] = counted_taps(p, 2, o);
    return;
  }
  plan.factor_is_power_of_two =
      is_power_of_two(plan.uniform_factor) && !plan.row_factors[0].empty() && !plan.row_factors[1].empty();
  for (const auto& factors : plan.row_factors) {
    for (const double factor : factors)
      plan.factor_is_power_of_two = plan.factor_is_power_of_two && is_power_of_two(factor);
  }
}

void make_table(RowPlan& plan, std::int64_t target_total, bool reversed) {
  ColumnTable& table = plan.table;
  table.most = 0;
  for (std::int64_t t = 0; t < target_total; ++t) {
    const Span span = span_of(plan, t, reversed);
    table.first.push_back(static_cast<std::int32_t>(smaller(span.first, kInt32Max)));
    table.count.push_back(static_cast<std::int32_t>(span.count));
    table.skipped.push_back(static_cast<std::int32_t>(smaller(span.skipped, kInt32Max)));
    table.most = larger(table.most, span.count);
    if (span.count > 1) table.step = span.step;
    if (span.count == 0 && !reversed) plan.may_be_empty = true;
  }
  table.most = larger(1, table.most);  // where every window is empty, each is still given its identity
  plan.even =
      std::all_of(table.count.begin(), table.count.end(), [&](std::int32_t count) { return count == table.most; });
}

/// Runs of output columns that are folded alike.
void make_runs(RowPlan& plan) {
  const ColumnTable& table = plan.table;
  plan.alike.assign(table.first.size(), 1);
  for (std::size_t i = table.first.size(); i-- > 1;) {
    const std::size_t o = i - 1;
    const bool same = table.count[o] == table.count[i] && table.skipped[o] == table.skipped[i] &&
                      (plan.column_factor.empty() || plan.column_factor[o] == plan.column_factor[i]);
    const bool apart = plan.alike[i] == 1 || table.first[i] - table.first[o] == table.first[i + 1] - table.first[i];
    if (same && apart) plan.alike[o] = plan.alike[i] + 1;
  }
}

Tile make_tile(const RowPlan& plan, RowTask task, std::int64_t first, std::int64_t columns, std::int64_t source_total) {
  const Axis& axis = plan.problem.axis[2];
  Tile tile{};
  tile.target_first = first;
  tile.target_columns = columns;
  const bool reversed = task != RowTask::fold;
  std::int64_t low = std::numeric_limits<std::int64_t>::max(),
               high = -1;  // source columns, unclipped in the regular modes
  if (plan.columns == Columns::phased) {
    tile.first_unit = (first + axis.pad_begin) / axis.stride;
    tile.column_shift = (first + axis.pad_begin) % axis.stride;
    const std::int64_t last_unit = (first + columns - 1 + axis.pad_begin) / axis.stride;
    low = tile.first_unit - (ceil_div(axis.kernel, axis.stride) - 1);
    high = last_unit;
  } else if (plan.columns == Columns::consecutive && reversed) {
    low = first + axis.pad_begin - (axis.kernel - 1) * axis.dilation;
    high = first + columns - 1 + axis.pad_begin;
  } else if (plan.columns == Columns::consecutive || plan.columns == Columns::strided) {
    low = first * axis.stride - axis.pad_begin;
    high = (first + columns - 1) * axis.stride - axis.pad_begin + (axis.kernel - 1) * axis.dilation;
  } else {
    for (std::int64_t t = first; t < first + columns; ++t) {
      const Span span = span_of(plan, t, reversed);
      if (span.count == 0) continue;
      low = smaller(low, span.first);
      high = larger(high, span.first + (span.count - 1) * span.step);
    }
    if (high < 0) low = 0;
  }
  tile.source_first = std::clamp<std::int64_t>(low, 0, source_total);
  const std::int64_t source_end = std::clamp<std::int64_t>(high + 1, tile.source_first, source_total);
  tile.source_columns = source_end - tile.source_first;
  tile.pad_left = larger(0, tile.source_first - low);
  tile.pad_right = larger(0, high + 1 - larger(source_end, low));
  if (tile.source_columns == 0 && high + 1 > low) tile.pad_left = 0, tile.pad_right = high + 1 - low;
  return tile;
}

template <class Lane>
void fill_lanes(const RowPlan& plan, std::int64_t target_total, std::int64_t slack, bool with_columns,
                LaneTable<Lane>& lanes) {
  if (plan.columns == Columns::gathered) {
    for (std::int64_t t = 0; t < target_total; ++t) {
      const auto at = static_cast<std::size_t>(t);
      const std::int64_t first = plan.table.count[at] == 0 ? 0 : plan.table.first[at];
      for (std::int64_t c = 0; c < plan.inner; ++c) {
        lanes.position.push_back(static_cast<Lane>(first * plan.inner + c));
        lanes.count.push_back(static_cast<Lane>(plan.table.count[at]));
      }
    }
    for (std::int64_t i = 0; i < slack; ++i) {
      lanes.position.push_back(0);
      lanes.count.push_back(0);
    }
  }
  if (with_columns) {  // the same for every tile, counted from its first column
    std::int64_t most = 0;
    for (const Tile& tile : plan.tiles) most = larger(most, tile.source_columns);
    for (std::int64_t x = 0; x < most * plan.inner; ++x)
      lanes.column_codes.push_back(static_cast<Lane>(x / plan.inner));
  }
}

void place_scratch(RowPlan& plan, std::size_t lane, std::size_t vector_bytes, std::int64_t slots) {
  std::int64_t buffered = 0, result = 0;
  for (const Tile& tile : plan.tiles) {
    buffered = larger(buffered, tile.pad_left + tile.source_columns + tile.pad_right);
    result = larger(result, tile.target_columns + tile.column_shift);
  }
  if (plan.direct) buffered = 0;
  const std::size_t slack = 8 * vector_bytes;  // whole vectors, up to four of them for a strided load
  const std::size_t inner = static_cast<std::size_t>(plan.inner);
  auto bytes = [&](std::int64_t columns, std::size_t element) {
    return (static_cast<std::size_t>(columns) * inner * element + slack + 63) / 64 * 64;
  };
  std::size_t at = 0;
  auto take = [&](std::size_t size) {
    const std::size_t start = at;
    at += size;
    return start;
  };
  plan.buffer_at = take(bytes(buffered, lane));
  plan.codes_at = take(bytes(buffered, lane));
  plan.result_at = take(bytes(result, lane));
  plan.result_codes_at = take(bytes(result, lane));
  const std::int64_t longest = larger(buffered, result);
  // Rows; or, straight from the taps, what is known of a column, see DirectTotals.
  plan.packed_pitch = bytes(plan.direct ? 1 : longest, std::max(lane, size_of(plan.problem.dtype)));
  const Problem& p = plan.problem;
  if (plan.direct && p.reduction != Reduction::max && p.axis[0].kernel * p.axis[1].kernel > kRowsAtOnce &&
      plan.widest <= kBlockBytes / static_cast<std::int64_t>(plan.packed_pitch))
    plan.kept_columns = plan.widest;
  plan.packed_at = take(plan.packed_pitch * static_cast<std::size_t>(kRowBlock + plan.kept_columns));
  plan.slot_pitch = bytes(buffered, lane);
  plan.slots_at = take(static_cast<std::size_t>(slots) * 2 * plan.slot_pitch);
  plan.staged_at = take(bytes(longest, 8));
  plan.tall_pitch = bytes(buffered, lane);
  // A block of suffixes and two prefixes, values and codes.
  plan.tall_at = take(plan.tall ? plan.tall_pitch * static_cast<std::size_t>(plan.problem.axis[1].kernel + 2) * 2 : 0);
  plan.bytes = at;
}

}  // namespace

const char* name_of(Columns columns) {
  switch (columns) {
    case Columns::consecutive: return "consecutive columns";
    case Columns::strided: return "strided columns";
    case Columns::phased: return "interleaved phases";
    case Columns::per_channel: return "vectors across channels";
    case Columns::gathered: return "gathered columns";
    case Columns::spanned: return "vectors along windows";
  }
  return "?";
}

RowRange source_rows_of(const Problem& problem, int axis, std::int64_t target, bool transposed) {
  if (transposed) {
    const Cover c = cover(problem.axis[axis], target);
    return {c.first, c.count, c.step, 0, 0};
  }
  const Window w = window(problem.axis[axis], target);
  return {w.first, w.count, w.step, w.skipped, w.whole};
}

std::int64_t RowPlan::units() const {
  const bool to_input = transposed;
  return outer *
         (to_input ? problem.axis[0].input * problem.axis[1].input : problem.axis[0].output * problem.axis[1].output) *
         static_cast<std::int64_t>(tiles.size());
}

bool make_row_plan(const Problem& problem, RowTask task, std::size_t lane, std::size_t vector_bytes, RowPlan& plan,
                   std::int64_t inner) {
  plan = RowPlan{};
  plan.problem = problem;
  for (Axis& axis : plan.problem.axis) {
    axis = simplified(axis);
    // No window follows: whatever its stride was to be, it is summed up in one order.
    if (is_whole(axis)) axis.stride = axis.kernel;
  }
  const Problem& p = plan.problem;
  const Axis& axis = p.axis[2];
  const bool reversed = task != RowTask::fold;
  plan.transposed = reversed;
  const Layout& leading = reversed ? p.grad_input : p.input;
  plan.inner = inner != 0 ? inner : is_channels_last(p, leading) ? p.channels : 1;
  plan.outer_minor_count = plan.inner == 1 ? p.channels : 1;
  plan.outer = p.batch * plan.outer_minor_count;
  const std::int64_t source_total = reversed ? axis.output : axis.input,
                     target_total = reversed ? axis.input : axis.output;
  plan.source = row_tensor(reversed ? p.grad_output : p.input, plan.inner, source_total);
  plan.target = row_tensor(reversed ? p.grad_input : p.output, plan.inner, target_total);
  plan.indices = row_tensor(p.indices, plan.inner, axis.output);
  plan.input = row_tensor(p.input, plan.inner, axis.input);
  plan.source_extent = reversed ? 0 : extent_of(p, p.input);

  // Codes and table entries are 32-bit numbers in most lanes.
  std::int64_t taps = 1;
  for (const Axis& one : p.axis) taps = taps > kInt32Max / larger(one.kernel, 1) ? kInt32Max : taps * one.kernel;
  if (plane_size(p) >= kInt32Max / 2 || axis.output * plan.inner >= kInt32Max / 2 ||
      axis.input * plan.inner >= kInt32Max / 2)
    return false;
  // Rows divide by a double, which holds whole numbers up to 2^53.
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  if (!is_floating(p.dtype) && (p.divisor_override > kExact || p.divisor_override < -kExact)) return false;
  const bool needs_codes = p.with_indices && p.index_kind == IndexKind::window;
  if (needs_codes && taps >= kInt32Max / 2) return false;

  const auto lanes = static_cast<std::int64_t>(vector_bytes / lane);
  // Regular windows without dilation need no table, however long the row.
  const bool plain = axis.rule == WindowRule::sliding && axis.dilation == 1;
  plan.columns = choose_columns(plan, task, lanes, axis.kernel, 1);
  const bool tabled =
      plan.columns == Columns::per_channel || plan.columns == Columns::gathered || plan.columns == Columns::spanned;
  plan.table.most = axis.kernel;
  if (!plain || tabled) {
    if (target_total > kMostColumns / plan.inner) return false;
    make_table(plan, target_total, reversed);
    plan.columns = choose_columns(plan, task, lanes, plan.table.most, plan.table.step);
  }
  const std::int64_t most = plan.table.most;
  const auto size = static_cast<std::int64_t>(size_of(p.dtype));
  const std::int64_t index_size = p.with_indices ? static_cast<std::int64_t>(size_of(p.index_dtype)) : 0;
  const std::int64_t outputs = p.axis[0].output * p.axis[1].output * p.axis[2].output;
  const std::int64_t bytes = plan.outer * plan.inner * (plane_size(p) * size + outputs * (size + index_size));
  const bool spread = task == RowTask::sum_backward && plan.columns == Columns::per_channel && most == 1;
  plan.streams = bytes >= (spread                       ? kStreamSpreadBytes
                           : reversed && plan.inner > 1 ? kStreamGradientBytes
                                                        : kStreamBytes) ||
                 (!reversed && index_size > 0 && bytes >= kStreamIndexBytes);
  const std::int64_t depths = reversed ? p.axis[0].input : p.axis[0].output,
                     heights = reversed ? p.axis[1].input : p.axis[1].output;
  plan.whole_lines = plan.inner > 1 && has_whole_lines(plan, plan.target, size, depths, heights) &&
                     (reversed || !p.with_indices || has_whole_lines(plan, plan.indices, 8, depths, heights));
  // Gradients that need not be put together before.
  if (task == RowTask::max_backward && plan.whole_lines && size == static_cast<std::int64_t>(lane))
    plan.streams = bytes >= kStreamIndexBytes;
  plan.sums_in_lanes = !is_regular(axis, task) && plan.table.step == 1 && most >= kSpannedTaps;
  plan.tall = is_tall(p, task);
  const bool straight =
      task == RowTask::fold && plan.source.dense && !plan.tall && p.reduction != Reduction::power && !p.absolute;
  const bool keys = size_of(p.dtype) < lane && is_floating(p.dtype) && p.reduction == Reduction::max && !p.with_indices;
  plan.direct = straight && lanes > 1 && plan.columns == Columns::per_channel && is_worth_direct(p) &&
                (!keys || plan.inner >= 2 * lanes);  // see MaxOfKeysRow
  const bool uneven_axis = axis.rule == WindowRule::adaptive;
  if (!p.with_indices) {
    plan.code_kind = Codes::ascending;
  } else if (p.index_kind != IndexKind::window) {
    plan.code_kind = Codes::flat;
  } else {
    plan.code_kind = Codes::taps;
  }
  plan.uneven_windows = plan.code_kind == Codes::taps && uneven_axis;
  plan.widest =
      larger(1, plan.columns == Columns::consecutive || plan.columns == Columns::strided ? axis.kernel : most);

  const std::int64_t column_bytes = plan.inner * static_cast<std::int64_t>(lane);
  const std::int64_t sources_per_target = larger(1, source_total / larger(1, target_total));
  const std::int64_t rows = plan.outer * p.axis[0].output * p.axis[1].output;
  const bool wide = plan.direct && (!plan.streams || plan.whole_lines) && rows >= kManyRows;
  const std::int64_t tile_bytes = wide        ? kWideTileBytes
                                  : plan.tall ? smaller(kTileBytes, kTallBytes / p.axis[1].kernel)
                                  : task == RowTask::max_backward && plan.inner > 1 ? kGatherTileBytes
                                                                                    : kTileBytes;
  std::int64_t tile_columns = larger(1, tile_bytes / column_bytes / sources_per_target);
  // Neighbouring tiles read what their windows share twice: wide windows want wide tiles.
  const std::int64_t shared =
      axis.rule == WindowRule::sliding ? smaller((axis.kernel - 1) * axis.dilation, axis.input) : 0;
  tile_columns = larger(tile_columns, smaller(4 * shared, kWideTileBytes / column_bytes / sources_per_target));
  const std::int64_t tile_count = ceil_div(target_total, tile_columns);
  const std::int64_t even_tile = ceil_div(target_total, tile_count);
  for (std::int64_t t = 0; t < target_total; t += even_tile) {
    plan.tiles.push_back(make_tile(plan, task, t, smaller(even_tile, target_total - t), source_total));
  }

  plan.stencil = straight && may_be_stencil(plan, lane, lanes) && is_worth_stencil(p);
  // Rows that windows share must still be near when the next row of tiles begins.
  const std::int64_t shared_rows = p.axis[1].stride < p.axis[1].kernel ? p.axis[1].kernel : 1;
  // (Lp's gradients keep rows of one tile: 15x15/15 over 256 x 256 x 64, two threads, 16.3 ms along first and 2.4 down.)
  const bool keeps_rows = reversed && p.reduction == Reduction::power;
  plan.along_first = plan.inner > 1 && plan.tiles.size() > 1 && !plan.tall && !keeps_rows &&
                     (shared_rows == 1 || source_total * column_bytes <= kBlockBytes / shared_rows);
  const bool fetches = plan.streams || (plan.inner == 1 && !plan.direct && bytes >= kFetchedBytes);
  if (fetches && plan.source.dense && is_worth_fetching(plan)) fetch_early(plan, reversed);

  make_factors(plan);
  if (plan.direct) make_runs(plan);
  for (int a = 0; a < 2; ++a) {
    const std::int64_t targets = reversed ? p.axis[a].input : p.axis[a].output;
    for (std::int64_t t = 0; targets <= kMostRows && t < targets; ++t) {
      plan.source_rows[a].push_back(source_rows_of(p, a, t, reversed));
    }
  }
  const bool with_columns = task == RowTask::fold && plan.code_kind == Codes::flat;
  if (lane == 8) {
    fill_lanes(plan, target_total, lanes, with_columns, plan.lanes64);
  } else if (lane == 4) {
    fill_lanes(plan, target_total, lanes, with_columns, plan.lanes32);
  }
  if (p.reduction == Reduction::power) {
    const double exponent = p.norm_type;
    plan.power_kind = power_kind_of(exponent);
    plan.root_kind = power_kind_of(1 / exponent);
    plan.slope_kind = power_kind_of(exponent - 1);
    plan.root_slope_kind = power_kind_of(1 / exponent - 1);
  }
  std::int64_t slots = 0;
  if (task == RowTask::max_backward && !gathers(plan, slots)) return false;
  place_scratch(plan, lane, vector_bytes, plan.inner == 1 ? slots : 0);
  return true;
}

bool streams_columns(const RowPlan& plan, std::int64_t bytes) {
  const Problem& p = plan.problem;
  const std::int64_t outputs = p.axis[0].output * p.axis[1].output * p.axis[2].output;
  const bool small = outputs * 2 <= plane_size(p) && bytes >= kStreamSmallBytes;
  return plan.whole_lines && (plan.streams || small);
}

UnitCursor::UnitCursor(const RowPlan& p, std::int64_t unit)
    : plan(p),
      depths(p.transposed ? p.problem.axis[0].input : p.problem.axis[0].output),
      heights(p.transposed ? p.problem.axis[1].input : p.problem.axis[1].output) {
  const auto tiles = static_cast<std::int64_t>(p.tiles.size());
  height = p.along_first ? unit / tiles % heights : unit % heights;
  tile_index = p.along_first ? unit % tiles : unit / heights % tiles;
  depth = unit / heights / tiles % depths;
  const std::int64_t outer = unit / heights / tiles / depths;
  major = outer / p.outer_minor_count;
  minor = outer % p.outer_minor_count;
}

void UnitCursor::next() {
  const auto tiles = static_cast<std::int64_t>(plan.tiles.size());
  if (plan.along_first) {
    if (++tile_index < tiles) return;
    tile_index = 0;
    if (++height < heights) return;
    height = 0;
  } else {
    if (++height < heights) return;
    height = 0;
    if (++tile_index < tiles) return;
    tile_index = 0;
  }
  if (++depth < depths) return;
  depth = 0;
  if (++minor < plan.outer_minor_count) return;
  minor = 0;
  ++major;
}

}  // namespace cenote::simd
