#include "cpu/columns/straight_columns_kernel.hpp"

#include "cpu/check_indices.hpp"
#include "cpu/columns/column_bands.hpp"
#include "cpu/columns/straight_columns.hpp"
#include "cpu/thresholds.hpp"
#include "cpu/unit_kernel.hpp"

#include <algorithm>
#include <utility>

namespace cenote::simd {
namespace {

/// Whether windows see elements that others see too.
bool shares(const Axis& axis) {
  return axis.output > 1 && axis.rule == WindowRule::sliding && axis.stride < (axis.kernel - 1) * axis.dilation + 1;
}

/// Rows that any window sees along an axis, at most.
std::int64_t most_of(const std::vector<RowRange>& rows) {
  std::int64_t most = 1;
  for (const RowRange& seen : rows) most = larger(most, seen.count);
  return most;
}

/// Whether maxima whose windows share elements are folded faster otherwise: column bands take several rows of outputs at a time, but in shorter stretches.
bool have_better_ways(const Problem& p, bool shares_rows, std::int64_t vectors) {
  double readings = 1;
  std::int64_t taps = 1;
  for (const Axis& axis : p.axis) {
    if (axis.output > 1) readings *= static_cast<double>(axis.kernel) / static_cast<double>(axis.stride);
    if (&axis != &p.axis[0]) taps = smaller(taps * smaller(axis.kernel, kMostColumnTaps + 1), kMostColumnTaps + 1);
  }
  if (readings > kMostReadings) return true;
  const bool has_bands = !p.with_indices && shares_rows && taps <= kMostColumnTaps;
  return has_bands && (p.axis[1].stride == 1 || vectors < kSharedVectors);
}

/// Outputs [first, last) of a row, alike ones together. `factors`: of the divisors, one for all where there is but one.
std::vector<AlikeOutputs> runs_of(const Axis& axis, const std::vector<double>& factors, std::int64_t first,
                                  std::int64_t last) {
  std::vector<AlikeOutputs> runs;
  for (std::int64_t o = first; o < last; ++o) {
    const Window w = window(axis, o);
    const double factor = factors.size() == 1 ? factors[0] : factors[static_cast<std::size_t>(o)];
    if (!runs.empty() && runs.back().taps == w.count && runs.back().factor == factor &&
        runs.back().skipped == w.skipped) {
      AlikeOutputs& run = runs.back();
      const std::int64_t apart = w.first - (run.column + (run.count - 1) * run.apart);
      if (run.count == 1) run.apart = apart;
      if (apart == run.apart) {
        ++run.count;
        continue;
      }
    }
    runs.push_back({o, 1, w.first, w.count, 1, w.skipped, factor});
  }
  return runs;
}

/// What a unit of work is: rows that windows share stay in an L1; otherwise columns are cut where threads would have too few of them. `joined`: columns that are one.
void cut_into_tiles(const Problem& p, const std::vector<double>& factors, std::int64_t joined, bool shares_rows,
                    std::int64_t lanes, StraightColumnsPlan& plan) {
  const Axis& width = p.axis[2];
  const std::int64_t columns = width.output / joined, channels = plan.channels;
  const std::int64_t slice_rows = p.batch * static_cast<std::int64_t>(plan.slices.size());
  const auto heights = static_cast<std::int64_t>(plan.rows.size());
  const std::int64_t stretch = kTileVectors * lanes;
  std::int64_t tile_columns = columns, tile_channels = channels;
  plan.band = 1;
  plan.tiles_apart = 1;
  if (shares_rows) {
    plan.band = larger(1, heights / ceil_div(kManyUnits, slice_rows));
    const auto size = static_cast<std::int64_t>(size_of(p.dtype));
    // What comes from memory is read as it lies there.
    const bool fetches = plan.fetch_ahead != 0;
    const std::int64_t bytes = fetches ? kWideTileBytes : kStraightTileBytes;
    const std::int64_t elements = bytes / (most_of(plan.slices) * most_of(plan.rows) * size);  // of a row
    if (!fetches) tile_channels = smaller(channels, larger(1, elements / kFewestTileColumns / stretch) * stretch);
    tile_columns = smaller(columns, larger(kFewestTileColumns, elements / tile_channels / width.stride));
  } else if (slice_rows * heights < kManyUnits) {
    const std::int64_t parts = ceil_div(kManyUnits, slice_rows * heights);
    tile_channels = smaller(channels, larger(1, channels / stretch / parts) * stretch);
    plan.tiles_apart = ceil_div(channels, tile_channels);
  }
  for (std::int64_t c = 0; c < channels; c += tile_channels) {
    // The last vector of a tile ends with it.
    const std::int64_t end = channels - c < tile_channels + lanes ? channels : c + tile_channels;
    for (std::int64_t o = 0; o < columns; o += tile_columns) {
      plan.tiles.push_back({c, end,
                            joined == 1 ? runs_of(width, factors, o, smaller(o + tile_columns, columns))
                                        : std::vector<AlikeOutputs>{{0, 1, 0, 1, 1, 0, factors[0]}}});
    }
    if (end == channels) break;
  }
  if (plan.tiles_apart > 1) plan.tiles_apart = static_cast<std::int64_t>(plan.tiles.size());
}

}  // namespace

std::unique_ptr<Kernel> make_straight_columns_kernel(const Described& described, const Target& target,
                                                     const RowWork* rows) {
  if (rows == nullptr || described.problem.pass != Pass::forward) return nullptr;
  const RowPlan& row_plan = rows->plan();
  const Problem& p = row_plan.problem;
  const Axis &height = p.axis[1], &width = p.axis[2];
  const bool max = p.reduction == Reduction::max && !p.absolute;
  const bool squares = p.reduction == Reduction::power && p.norm_type == 2;
  if (!max && !squares && p.reduction != Reduction::sum && p.reduction != Reduction::average) return nullptr;
  const StraightColumnsFn function = squares          ? norm_of_columns(target.index, p.dtype)
                                     : !max           ? sum_of_columns(target.index, p.dtype)
                                     : p.with_indices ? indexed_max_of_columns(target.index, p.dtype)
                                                      : max_of_columns(target.index, p.dtype);
  // Halves are converted to f32, but for sums of bf16, which share its lanes.
  const bool paired = !max && p.dtype == DType::bf16;
  const std::int64_t lanes = static_cast<std::int64_t>(kernels_of(p.dtype, target)->vector_bytes) / (paired ? 2 : 4);
  // Where windows are one column wide and next to each other, a row is one column of all its channels.
  const std::int64_t joined = is_identity(width) && !p.with_indices ? width.input : 1,
                     channels = joined * row_plan.inner;
  const bool narrow_indices = p.with_indices && size_of(p.index_dtype) == 2;
  if (function == nullptr || narrow_indices || row_plan.inner == 1 || channels < lanes || !row_plan.source.dense ||
      !row_plan.target.dense || (p.with_indices && !row_plan.indices.dense) || width.output > kMostColumns ||
      has_empty_windows(p))
    return nullptr;
  const bool shares_rows = shares(p.axis[0]) || shares(height), shares_columns = shares(width);
  if (max && (shares_rows || shares_columns) && have_better_ways(p, shares_rows, channels / lanes)) return nullptr;
  const bool needs_many = !p.with_indices || (shares_columns && width.stride == 1);
  if (max && needs_many && channels < kStraightVectors * lanes) return nullptr;
  // Sums of tall windows, and of long ones side by side, are taken in another order.
  const bool doubles = width.rule == WindowRule::sliding && width.stride == 1 && width.kernel >= kDoublingTaps;
  const bool long_ones = row_plan.sums_in_lanes && shares_columns && kFewReadings * width.stride < width.kernel;
  if (!max && (row_plan.tall || doubles || long_ones || (squares && row_plan.sums_in_lanes))) return nullptr;
  // Rows of large calls that do not follow each other are fetched early elsewhere, but for maxima with indices.
  const bool fetched = !squares && row_plan.fetch_ahead != 0 && shares_rows && !p.with_indices;
  if (row_plan.streams && (!row_plan.whole_lines || fetched)) return nullptr;
  const bool divides = squares || (p.reduction == Reduction::average && p.divisor_override == 0);
  for (int a = 0; a < 2; ++a) {
    if (row_plan.source_rows[a].empty() || (divides && row_plan.row_factors[a].empty())) return nullptr;
  }

  StraightColumnsPlan plan{};
  plan.source = row_plan.source;
  plan.target = row_plan.target;
  plan.indices = row_plan.indices;
  plan.codes = {row_plan.code_kind == Codes::flat, height.input, width.input,
                row_plan.uneven_windows ? 0 : width.kernel, width.dilation};
  plan.index_bytes = p.with_indices ? static_cast<std::int64_t>(size_of(p.index_dtype)) : 0;
  plan.channels = channels;
  plan.step = width.kernel > 1 ? width.dilation : 1;
  plan.slices = row_plan.source_rows[0];
  plan.rows = row_plan.source_rows[1];
  // What is behind a single tap is never looked at, wherever its dilation would put it.
  for (auto* ranges : {&plan.slices, &plan.rows}) {
    for (RowRange& seen : *ranges) seen.step = seen.count > 1 ? seen.step : 1;
  }
  if (divides) std::copy_n(row_plan.row_factors.begin(), 2, plan.row_factors);
  std::vector<double> factors = row_plan.column_factor;
  if (factors.empty()) factors.push_back(row_plan.uniform_factor);
  plan.whole = static_cast<float>(row_plan.power_factor);
  plan.in_lanes = row_plan.sums_in_lanes;
  if (p.with_indices) {
    plan.fetch_ahead = row_plan.fetch_ahead;
    plan.fetch_rows = row_plan.fetch_rows;
    plan.fetch_pitch = row_plan.fetch_pitch;
    plan.fetch_depth_pitch = row_plan.fetch_depth_pitch;
  }
  plan.streams = p.with_indices ? row_plan.streams : streams_columns(row_plan, described.bytes_moved);
  if (plan.streams && !shares_rows && !shares_columns)
    plan.ahead = kStraightAheadBytes / static_cast<std::int64_t>(size_of(p.dtype));

  cut_into_tiles(p, factors, joined, shares_rows, lanes, plan);
  if (plan.tiles_apart > 1) plan.fetch_ahead = 0;  // rows are asked for whole, and others take the rest of them
  // Windows of many rows are read as memory lies, in whole vectors.
  std::int64_t most_taps = 1;
  for (const ColumnTile& tile : plan.tiles) {
    for (const AlikeOutputs& run : tile.runs) most_taps = larger(most_taps, run.taps);
  }
  const std::int64_t sums = most_taps * channels * 4;
  if (!max && !squares && plan.in_lanes && plan.step == 1 && most_of(plan.rows) >= kTallRows &&
      plan.tiles.front().end == channels && channels % lanes == 0 && sums <= kBlockBytes)
    plan.bytes = static_cast<std::size_t>(sums);
  const std::int64_t units = plan.units(p.batch);
  return make_unit_kernel(described, std::move(plan), units, function,
                          "vectors across channels, as many as registers hold: each output straight from its taps");
}

}  // namespace cenote::simd
