#include "cpu/gradients/expand_kernel.hpp"

#include "cpu/dense_planes.hpp"
#include "cpu/thresholds.hpp"
#include "cpu/unit_kernel.hpp"

#include <algorithm>
#include <utility>

namespace cenote::simd {
namespace {

/// The first columns of vectors that cover a row, the ragged end from its last whole vector.
template <class Visit>
bool for_vectors(std::int64_t columns, std::int64_t lanes, const Visit& visit) {
  bool fine = true;
  for (std::int64_t next = 0; fine && next < columns; next += lanes)
    fine = visit(larger(0, smaller(next, columns - lanes)));
  return fine;
}

/// False where a vector of columns is seen by more outputs than fill one.
bool make_vectors(const Axis& axis, std::int64_t lanes, ExpandPlan& plan) {
  return for_vectors(axis.input, lanes, [&](std::int64_t column) {
    const std::int64_t end = smaller(column + lanes, axis.input);
    std::int64_t first = axis.output - 1, last = 0;
    for (std::int64_t x = column; x < end; ++x) {
      const Cover seen = cover(axis, x);
      if (seen.count == 0) continue;
      first = smaller(first, seen.first);
      last = larger(last, seen.first);
    }
    if (last - first >= lanes) return false;
    for (std::int64_t x = column; x < column + lanes; ++x) {
      const Cover seen = cover(axis, smaller(x, end - 1));
      const std::int64_t lane = seen.count == 0 ? -1 : seen.first - first;
      plan.lanes.push_back(static_cast<std::int32_t>(lane));
      plan.short_lanes.push_back(static_cast<std::int16_t>(lane));
    }
    plan.vectors.push_back({column, first});
    return true;
  });
}

/// Of rows that follow each other and that one output row sees.
void make_runs(const std::vector<RowRange>& rows, ExpandPlan& plan) {
  for (const RowRange& range : rows) {
    const std::int64_t seen = range.count == 0 ? -1 : range.first;
    const std::int64_t row = plan.runs.empty() ? 0 : plan.runs.back().row + plan.runs.back().rows;
    if (row == 0 || plan.runs.back().seen != seen) plan.runs.push_back({row, 0, seen});
    ++plan.runs.back().rows;
  }
}

/// As many runs each as see few rows of outputs. Returns the most rows that one sees.
std::int64_t make_groups(std::int64_t most, ExpandPlan& plan) {
  std::int64_t widest = 1;
  const auto runs = static_cast<std::int64_t>(plan.runs.size());
  for (std::int64_t i = 0; i < runs;) {
    ExpandGroup group{i, i, 0, 0};
    for (; i < runs; ++i) {
      const std::int64_t seen = plan.runs[static_cast<std::size_t>(i)].seen;
      if (seen >= 0) {
        const bool none = group.seen == 0;
        const std::int64_t first = none ? seen : smaller(group.first_seen, seen);
        const std::int64_t end = none ? seen + 1 : larger(group.first_seen + group.seen, seen + 1);
        if (!none && end - first > most) break;
        group.first_seen = first;
        group.seen = end - first;
      }
      group.end_run = i + 1;
    }
    widest = larger(widest, group.seen);
    plan.groups.push_back(group);
  }
  return widest;
}

}  // namespace

std::unique_ptr<Kernel> make_expand_kernel(const Described& described, const RowKernels& kernels, const RowWork* rows) {
  if (kernels.expand_planes == nullptr || rows == nullptr || described.problem.pass != Pass::backward) return nullptr;
  const RowPlan& row_plan = rows->plan();
  const Problem& p = row_plan.problem;
  if (row_plan.inner != 1 || row_plan.tall || (p.reduction != Reduction::sum && p.reduction != Reduction::average))
    return nullptr;
  const Axis &depth = p.axis[0], &height = p.axis[1], &width = p.axis[2];
  const DensePlanes source = dense_planes(p, p.grad_output, false), target = dense_planes(p, p.grad_input, true);
  if (!source.dense || !target.dense || width.input > kMostExpanded) return nullptr;
  // Slices and rows beyond number have no tables.
  if (row_plan.source_rows[0].empty() || row_plan.source_rows[1].empty()) return nullptr;

  ExpandPlan plan{};
  const auto size = static_cast<std::int64_t>(size_of(p.dtype));
  const auto lanes = static_cast<std::int64_t>(kernels.vector_bytes) / size;
  plan.planes = p.batch * p.channels;
  plan.source_pitch = source.pitch;
  plan.target_pitch = target.pitch;
  plan.extent = source.pitch * (plan.planes - 1) + source.count;
  plan.heights = height.input;
  plan.width = width.input;
  plan.rows = height.output;
  plan.columns = width.output;
  for (const std::vector<RowRange>& ranges : row_plan.source_rows) {
    if (std::any_of(ranges.begin(), ranges.end(), [](const RowRange& seen) { return seen.count > 1; })) return nullptr;
  }
  for (std::int64_t x = 0; x < width.input; ++x) {
    if (cover(width, x).count > 1) return nullptr;
  }
  if (!make_vectors(width, lanes, plan)) return nullptr;
  for (const RowRange& seen : row_plan.source_rows[0]) plan.slices.push_back(seen.count == 0 ? -1 : seen.first);
  make_runs(row_plan.source_rows[1], plan);
  plan.paced = {described.bytes_moved >= kStreamBytes, plan.width * size,
                larger(1, kStagedBytes / (plan.width * size))};
  if (plan.paced.streams && plan.width * size > kTileBytes)
    return nullptr;  // a row that is put together must stay in L1
  if (plan.width < (size < 4 ? 2 * kLeastExpanded : kLeastExpanded)) return nullptr;
  if (!make_slice_divisors(row_plan, lanes, plan.divisors, true)) return nullptr;
  const std::int64_t row_bytes = plan.columns * size;
  const std::int64_t seen = make_groups(larger(1, kDividedBytes / row_bytes), plan);
  // Few slices are shared between threads in bands.
  const auto groups = static_cast<std::int64_t>(plan.groups.size());
  plan.bands = smaller(ceil_div(kFewestUnits, plan.planes * depth.input), groups);
  plan.band = ceil_div(groups, plan.bands);
  plan.bands = ceil_div(groups, plan.band);
  plan.divided_at = (plan.paced.bytes() + 63) / 64 * 64;
  plan.bytes = plan.divided_at + static_cast<std::size_t>(seen * row_bytes) + 2 * kernels.vector_bytes;
  const std::int64_t units = plan.units();
  return make_unit_kernel(
      described, std::move(plan), units, kernels.expand_planes,
      "vectors of each row of gradients, turned into the columns that they were averages of, because its windows share "
      "nothing");
}

}  // namespace cenote::simd
