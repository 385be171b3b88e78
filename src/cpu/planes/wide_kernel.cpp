#include "cpu/planes/wide_kernel.hpp"

#include "cpu/check_indices.hpp"
#include "cpu/dense_planes.hpp"
#include "cpu/planes/wide_windows.hpp"
#include "cpu/thresholds.hpp"
#include "cpu/unit_kernel.hpp"

#include <algorithm>
#include <utility>

namespace cenote::simd {
namespace {

/// The most taps of windows that are counted as floats, which are exact.
constexpr std::int64_t kMostOwnTaps = std::int64_t{1} << 22;

/// Whether enough is folded down for each output.
bool is_worth_folding(const Problem& p, bool blocks_refused, std::int64_t taps) {
  const std::int64_t outputs = p.axis[0].output * p.axis[1].output * p.axis[2].output;
  const std::int64_t rows = p.axis[0].kernel * p.axis[1].kernel;
  return p.axis[2].input >= kLeastWideColumns && 2 * plane_size(p) >= kLeastWideShare * outputs &&
         (blocks_refused || rows >= kLeastWideRows || (rows == 2 && taps >= kLeastWideTaps));
}

/// Of the rows of a plane; and of the outputs of a group, and of as many lanes behind them.
void make_tables(const RowPlan& rows, std::int64_t lanes, WideWindows& plan) {
  const std::int64_t heights = rows.problem.axis[1].input, widest = rows.problem.axis[2].kernel;
  const bool flat = rows.code_kind != Codes::taps;
  plan.row_codes = static_cast<std::int32_t>(flat ? plan.row_step : widest);
  for (const RowRange& depth : rows.source_rows[0]) {
    for (const RowRange& height : rows.source_rows[1]) {
      const std::int64_t first = (depth.first * heights + height.first) * plan.width;
      const std::int64_t skipped = (depth.skipped * height.whole + height.skipped) * widest;
      plan.seen.push_back({first, static_cast<std::int32_t>(depth.count), static_cast<std::int32_t>(height.count),
                           static_cast<std::int32_t>(flat ? first : skipped),
                           static_cast<std::int32_t>(flat ? plan.slice_step : height.whole * widest)});
    }
  }
  for (std::int64_t row = 0; row < plan.group; ++row) {
    for (std::size_t x = 0; x < rows.table.first.size(); ++x) {
      plan.positions.push_back(static_cast<std::int32_t>(row * plan.row_pitch) + rows.table.first[x]);
      plan.counts.push_back(rows.table.count[x]);
      plan.codes.push_back(flat ? rows.table.first[x] : rows.table.skipped[x]);
    }
  }
  const std::size_t size = plan.positions.size() + static_cast<std::size_t>(lanes);
  for (auto* table : {&plan.positions, &plan.counts, &plan.codes}) table->resize(size);
}

/// Divisors that differ, of a plane and the group that begins with its last row.
void repeat_divisors(const SliceDivisors& of_slices, std::size_t heights, std::int64_t lanes, WideWindows& plan) {
  plan.divisors = of_slices;
  if (of_slices.all != 0) return;
  const auto slice = static_cast<std::size_t>(plan.columns) * heights;
  const std::size_t plane = plan.seen.size() * static_cast<std::size_t>(plan.columns);
  plan.divisors.each.clear();
  const std::size_t wanted = plane + static_cast<std::size_t>(plan.group * plan.columns + lanes);
  for (std::size_t i = 0; i < wanted; ++i)
    plan.divisors.each.push_back(of_slices.each[i % (of_slices.slice == 0 ? slice : plane)]);
}

void place_scratch(std::int64_t lanes, WideWindows& plan) {
  std::size_t at = 0;
  const auto take = [&](std::int64_t elements) {
    const std::size_t start = at;
    at += (static_cast<std::size_t>(elements + 4 * lanes) * sizeof(float) + 63) / 64 * 64;
    return start;
  };
  // Windows that are cut off are taken as if they were not.
  plan.values_at = take(plan.group * plan.row_pitch + plan.taps);
  plan.row_codes_at = take(plan.group * plan.row_pitch + plan.taps);
  plan.codes_at = take(plan.group * plan.columns);
  plan.bytes = at;
}

}  // namespace

std::unique_ptr<Kernel> make_wide_kernel(const Described& described, const Target& target, const RowWork* rows,
                                         bool blocks_refused) {
  if (rows == nullptr || rows->plan().inner != 1 || described.problem.pass != Pass::forward) return nullptr;
  const RowPlan& row_plan = rows->plan();
  const Problem& p = row_plan.problem;
  const bool sums = p.reduction == Reduction::sum || p.reduction == Reduction::average;
  if (p.absolute || (!sums && p.reduction != Reduction::max)) return nullptr;
  if (row_plan.columns != Columns::gathered && row_plan.columns != Columns::spanned) return nullptr;
  const WideWindowsFolds folds = wide_windows_of(target.index, p.dtype);
  const WideWindowsFn function = sums ? folds.sum : p.with_indices ? folds.max_indexed : folds.max;
  if (function == nullptr) return nullptr;
  const Axis &depth = p.axis[0], &height = p.axis[1], &width = p.axis[2];
  if (row_plan.uneven_windows && depth.kernel * height.kernel * width.kernel >= kMostOwnTaps) return nullptr;
  // Tall windows are summed up otherwise.
  if ((sums && row_plan.tall) || has_empty_windows(p) || row_plan.table.step != 1) return nullptr;
  const std::int64_t plane_rows = depth.output * height.output;
  if (row_plan.table.first.empty() || plane_rows > kMostRows) return nullptr;
  if (!is_worth_folding(p, sums || blocks_refused, row_plan.table.most) || width.input > kWidestRow ||
      width.output > kWidestRow)
    return nullptr;
  const DensePlanes source = dense_planes(p, p.input, true), result = dense_planes(p, p.output, false);
  const DensePlanes indices = dense_planes(p, p.indices, false);
  const auto follow = [](const DensePlanes& planes) { return planes.dense && planes.pitch == planes.count; };
  const std::int64_t planes = p.batch * p.channels;
  if (!source.dense || (planes > 1 && (!follow(result) || (p.with_indices && !follow(indices)))) || !result.dense ||
      (p.with_indices && !indices.dense)) {
    return nullptr;
  }

  WideWindows plan{};
  plan.columns = width.output;
  plan.rows = planes * plane_rows;
  plan.width = width.input;
  plan.source_pitch = source.pitch;
  plan.slice_step = depth.dilation * height.input * plan.width;
  plan.row_step = height.dilation * plan.width;
  const std::int64_t vectors = ceil_div(plan.width, folds.lanes);
  plan.row_pitch = vectors * folds.lanes;
  plan.vectors = vectors == 1 ? 1 : vectors > 3 && (vectors % 4 == 0 || vectors % 4 == 3) ? 4 : 2;
  const std::int64_t row_bytes = larger(plan.row_pitch, plan.columns) * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t most = larger(1, kWideBytes / row_bytes);
  // Few rows are shared between threads column by column.
  const bool shared = described.bytes_moved >= kSerialBytes;
  if (shared && plan.rows < kManyUnits) return nullptr;
  plan.group = smaller(most, shared ? plan.rows / kManyUnits : plan.rows);
  plan.taps = row_plan.table.most;
  plan.even = row_plan.even;
  plan.in_lanes = row_plan.sums_in_lanes;
  plan.streams = described.bytes_moved >= kStreamIndexBytes;
  plan.counts_own_taps = row_plan.uneven_windows;
  plan.fresh = larger(1, height.input / height.output) * plan.width;
  if (described.bytes_moved >= kFetchedBytes) plan.ahead = kWideAhead / static_cast<std::int64_t>(sizeof(float));
  plan.index_dtype = p.index_dtype;
  make_tables(row_plan, folds.lanes, plan);
  if (sums) {
    SliceDivisors divisors;
    if (!make_slice_divisors(row_plan, 0, divisors, true)) return nullptr;
    if (divisors.all == 0 && plane_rows > kMostDivisors / plan.columns) return nullptr;
    repeat_divisors(divisors, row_plan.source_rows[1].size(), folds.lanes, plan);
  }
  place_scratch(folds.lanes, plan);
  const std::int64_t units = ceil_div(plan.rows, plan.group);
  const std::string why = "rows of windows down to one each, " + std::to_string(plan.group) +
                          " of them at a time, and outputs taken from those, because its windows are wide";
  return make_unit_kernel(described, std::move(plan), units, function, why);
}

}  // namespace cenote::simd
