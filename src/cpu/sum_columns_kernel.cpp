#include "cpu/sum_columns_kernel.hpp"

#include "cpu/sum_columns.hpp"
#include "cpu/thresholds.hpp"
#include "cpu/unit_kernel.hpp"

#include <algorithm>
#include <utility>

namespace cenote::simd {

std::unique_ptr<Kernel> make_sum_columns_kernel(const Described& described, const Target& target, const RowWork* rows) {
  if (rows == nullptr || described.problem.pass != Pass::forward) return nullptr;
  const RowPlan& row_plan = rows->plan();
  const Problem& p = row_plan.problem;
  const SumColumnsFn function = sum_columns(target.index, p.dtype);
  const auto lanes = static_cast<std::int64_t>(kernels_of(p.dtype, target)->vector_bytes / size_of(p.dtype));
  if (function == nullptr || (p.reduction != Reduction::sum && p.reduction != Reduction::average)) return nullptr;
  // Straight from few taps: the many of others are summed up as memory lies.
  if (!row_plan.direct || row_plan.sums_in_lanes || row_plan.may_be_empty || row_plan.inner < lanes ||
      !row_plan.source.dense || !row_plan.target.dense || (row_plan.table.most > 1 && row_plan.table.step != 1))
    return nullptr;
  const bool divides = p.reduction == Reduction::average && p.divisor_override == 0;
  std::int64_t most_rows = 1;
  for (int a = 0; a < 2; ++a) {
    if (row_plan.source_rows[a].empty() || (divides && row_plan.row_factors[a].empty())) return nullptr;
    std::int64_t most = 0;
    for (const RowRange& seen : row_plan.source_rows[a]) {
      if (seen.count == 0 || seen.count > kMostSummedRows) return nullptr;
      most = larger(most, seen.count);
    }
    most_rows *= most;
  }
  if (most_rows > kMostSummedRows || most_rows * row_plan.table.most > kMostSummedTaps) return nullptr;
  // Windows of f32 that share rows or columns have better ways.
  if (p.dtype == DType::f32) {
    for (const Axis& axis : p.axis) {
      if (axis.output > 1 && (axis.rule != WindowRule::sliding || axis.stride < axis.kernel)) return nullptr;
    }
  }
  // Rows that windows share are fetched early elsewhere.
  if (row_plan.streams && (!row_plan.whole_lines || row_plan.fetch_ahead != 0)) return nullptr;

  SumColumnsPlan plan{};
  plan.source = row_plan.source;
  plan.target = row_plan.target;
  plan.channels = row_plan.inner;
  plan.columns = p.axis[2].output;
  plan.slices = row_plan.source_rows[0];
  plan.rows = row_plan.source_rows[1];
  plan.first = row_plan.table.first;
  plan.count = row_plan.table.count;
  if (divides) std::copy_n(row_plan.row_factors.begin(), 2, plan.row_factors);
  plan.column_factor = row_plan.column_factor;
  if (plan.column_factor.empty()) plan.column_factor.push_back(row_plan.uniform_factor);
  plan.streams = row_plan.streams;
  const std::int64_t units = plan.units(p.batch);
  return make_unit_kernel(described, std::move(plan), units, function,
                          "vectors across channels, as many as registers hold: each output straight from its taps");
}

}  // namespace cenote::simd
