#include "cpu/gradients/expand_columns_kernel.hpp"

#include "cpu/gradients/expand_columns.hpp"
#include "cpu/thresholds.hpp"
#include "cpu/unit_kernel.hpp"

#include <algorithm>
#include <utility>

namespace cenote::simd {

std::unique_ptr<Kernel> make_expand_columns_kernel(const Described& described, const Target& target,
                                                   const RowWork* rows) {
  const ExpandColumnsFn function = expand_columns(target.index, described.problem.dtype);
  if (function == nullptr || rows == nullptr || described.problem.pass != Pass::backward) return nullptr;
  const RowPlan& row_plan = rows->plan();
  const Problem& p = row_plan.problem;
  const Axis& width = p.axis[2];
  if (p.reduction != Reduction::sum && p.reduction != Reduction::average) return nullptr;
  const auto lanes = static_cast<std::int64_t>(kernels_of(p.dtype, target)->vector_bytes / sizeof(float));
  if (row_plan.inner == 1 || row_plan.inner < lanes || row_plan.tall || !row_plan.source.dense ||
      !row_plan.target.dense)
    return nullptr;
  if (width.rule != WindowRule::sliding || (width.dilation != 1 && width.kernel > 1)) return nullptr;
  if (ceil_div(width.kernel, width.stride) > kMostSeenColumns) return nullptr;
  // Far apart, rows are spread one column after the other, as memory lies.
  if (width.kernel <= width.stride && width.stride > kMostSpreadColumns) return nullptr;
  // Slices and rows beyond number have no tables.
  const bool divides = p.reduction == Reduction::average && p.divisor_override == 0;
  for (int a = 0; a < 2; ++a) {
    if (row_plan.source_rows[a].empty() || (divides && row_plan.row_factors[a].empty())) return nullptr;
  }
  if (row_plan.streams && !row_plan.whole_lines) return nullptr;

  ExpandColumnsPlan plan{};
  plan.source = row_plan.source;
  plan.target = row_plan.target;
  plan.channels = row_plan.inner;
  plan.width = width.input;
  plan.outputs = width.output;
  plan.kernel = width.kernel;
  plan.stride = width.stride;
  plan.left = width.pad_begin;
  plan.slices = row_plan.source_rows[0];
  std::int64_t most_slices = 0, most_rows = 0;
  for (const RowRange& seen : plan.slices) most_slices = larger(most_slices, seen.count);
  for (std::int64_t y = 0; y < p.axis[1].input; ++y) {
    const RowRange& seen = row_plan.source_rows[1][static_cast<std::size_t>(y)];
    most_rows = larger(most_rows, seen.count);
    if (!plan.rows.empty() && plan.rows.back().seen_by == seen && plan.rows.back().count < kRowsWritten) {
      ++plan.rows.back().count;
    } else {
      plan.rows.push_back({y, 1, seen});
    }
  }
  if (most_slices > kMostSeenRows || most_rows > kMostSeenRows || most_slices * most_rows > kMostSeenRows)
    return nullptr;
  if (divides) std::copy_n(row_plan.row_factors.begin(), 2, plan.row_factors);
  plan.column_factor = row_plan.column_factor;
  if (plan.column_factor.empty()) plan.column_factor.push_back(row_plan.uniform_factor);
  plan.streams = described.bytes_moved >= kStreamGradientBytes && row_plan.whole_lines;
  plan.pitch = static_cast<std::size_t>(plan.channels + 15) / 16 * 16;
  const bool overlap = plan.kernel > plan.stride;
  plan.bytes = overlap ? kMostSeenColumns * plan.pitch * sizeof(float) : 0;
  if (plan.bytes > static_cast<std::size_t>(kBlockBytes)) return nullptr;  // no longer near
  const std::int64_t units = plan.units(p.batch);
  return make_unit_kernel(
      described, std::move(plan), units, function,
      "vectors across channels: each column of gradients is added up and divided once, and stored to all columns and "
      "rows that it is an average of, because few outputs see an input");
}

}  // namespace cenote::simd
