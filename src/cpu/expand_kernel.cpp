#include "cpu/expand_kernel.hpp"

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

/// Of windows one apart.
void make_shifted_vectors(const Axis& axis, std::int64_t lanes, ExpandPlan& plan) {
  const std::int64_t reach = (axis.kernel - 1) * axis.dilation;
  plan.shifted = true;
  plan.most = axis.kernel;
  plan.step = axis.dilation;
  plan.margin = larger(0, reach - axis.pad_begin);
  plan.sum_pitch += plan.margin + reach + axis.pad_begin;
  for_vectors(axis.input, lanes, [&](std::int64_t column) {
    plan.vectors.push_back({column, plan.margin + column + axis.pad_begin - reach});
    return true;
  });
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
      last = larger(last, seen.first + (seen.count - 1) * seen.step);
    }
    if (last - first >= lanes) return false;
    for (std::int64_t i = 0; i < plan.most; ++i) {
      for (std::int64_t x = column; x < column + lanes; ++x) {
        const Cover seen = x < end ? cover(axis, x) : Cover{first, 1, 1, 0, 0};
        plan.lanes.push_back(i < seen.count ? static_cast<std::int32_t>(seen.first + i * seen.step - first) : -1);
      }
    }
    plan.vectors.push_back({column, first});
    return true;
  });
}

/// Whether the output slices (axis 0) or rows (1) of a range have to do with their divisors alike.
bool are_alike(const RowPlan& rows, int axis, const RowRange& seen) {
  bool alike = true;
  for (std::int64_t i = 1; i < seen.count; ++i)
    alike = alike && factor_of(rows, axis, seen.first + i * seen.step) == factor_of(rows, axis, seen.first);
  return alike;
}

/// Of no more rows than `most` each.
void make_runs(const RowPlan& rows, std::int64_t most, ExpandPlan& plan) {
  for (const RowRange& seen : rows.source_rows[1]) {
    if (!plan.runs.empty() && plan.runs.back().seen == seen && plan.runs.back().rows < most) {
      ++plan.runs.back().rows;
    } else {
      plan.runs.push_back({1, seen, are_alike(rows, 1, seen)});
    }
  }
}

/// Of no more runs and rows than these, but for one run of more.
void make_groups(std::int64_t most_runs, std::int64_t most_rows, ExpandPlan& plan) {
  const auto runs = static_cast<std::int64_t>(plan.runs.size());
  for (std::int64_t i = 0, row = 0; i < runs; ++i) {
    const std::int64_t rows = plan.runs[static_cast<std::size_t>(i)].rows;
    if (plan.groups.empty() || plan.groups.back().runs == most_runs || plan.groups.back().rows + rows > most_rows)
      plan.groups.push_back({i, 0, row, 0});
    ++plan.groups.back().runs;
    plan.groups.back().rows += rows;
    row += rows;
  }
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
  // Many columns one apart are summed up in another order.
  if (width.rule == WindowRule::sliding && width.stride == 1 && width.kernel >= kDoublingTaps) return nullptr;

  ExpandPlan plan{};
  const auto lanes = static_cast<std::int64_t>(kernels.vector_bytes / sizeof(float));
  plan.planes = p.batch * p.channels;
  plan.source_pitch = source.pitch;
  plan.target_pitch = target.pitch;
  plan.extent = source.pitch * (plan.planes - 1) + source.count;
  plan.heights = height.input;
  plan.width = width.input;
  plan.rows = height.output;
  plan.columns = width.output;
  plan.most = 1;
  plan.apart = true;
  for (int a = 0; a < 2; ++a) {
    for (const RowRange& seen : row_plan.source_rows[a]) {
      if (seen.count > kMostExpandedOutputs) return nullptr;
      plan.apart = plan.apart && seen.count <= 1;
    }
  }
  for (const RowRange& seen : row_plan.source_rows[0]) plan.slices.push_back({seen, are_alike(row_plan, 0, seen)});
  for (std::int64_t x = 0; x < width.input; ++x) {
    const std::int64_t outputs = cover(width, x).count;
    plan.apart = plan.apart && outputs == 1;
    plan.most = larger(plan.most, outputs);
  }
  if (plan.most > kMostExpandedOutputs) return nullptr;
  if (!plan.apart) plan.most = plan.most <= 2 ? 2 : plan.most == 3 ? 3 : kMostExpandedOutputs;
  plan.sum_pitch = plan.columns + 2 * lanes;  // vectors reach beyond
  const bool one_apart = width.rule == WindowRule::sliding && width.stride == 1 && width.kernel > 1;
  if (one_apart && width.pad_begin + (width.kernel - 1) * width.dilation <= kMostExpanded) {
    make_shifted_vectors(width, lanes, plan);
  } else if (!make_vectors(width, lanes, plan)) {
    return nullptr;
  }
  const auto size = static_cast<std::int64_t>(size_of(p.dtype));
  plan.paced = {described.bytes_moved >= kStreamBytes, plan.width * size,
                larger(1, kStagedBytes / (plan.width * size))};
  if (plan.paced.streams && plan.width * size > kTileBytes)
    return nullptr;  // a row that is put together must stay in L1
  const std::int64_t most_rows = plan.paced.streams && !plan.apart ? plan.paced.rows : height.input;
  make_runs(row_plan, most_rows, plan);
  if (plan.width < (size < 4 ? 2 * kLeastExpanded : kLeastExpanded)) return nullptr;
  if (!make_slice_divisors(row_plan, lanes, plan.divisors, true)) return nullptr;
  const std::int64_t sums = larger(1, kSummedBytes / (plan.sum_pitch * static_cast<std::int64_t>(sizeof(float))));
  make_groups(sums, most_rows, plan);
  // Few slices are shared between threads in bands.
  const auto groups = static_cast<std::int64_t>(plan.groups.size());
  plan.bands = smaller(ceil_div(kFewestUnits, plan.planes * depth.input), groups);
  plan.band = ceil_div(groups, plan.bands);
  plan.bands = ceil_div(groups, plan.band);

  const auto line = [](std::int64_t bytes) { return static_cast<std::size_t>(bytes + 63) / 64 * 64; };
  plan.paced_at = line((plan.apart ? 0 : sums * plan.sum_pitch) * static_cast<std::int64_t>(sizeof(float)));
  plan.bytes = plan.paced_at + plan.paced.bytes();
  const std::int64_t units = plan.units();
  return make_unit_kernel(
      described, std::move(plan), units, kernels.expand_planes,
      "vectors of each row of gradients, turned into the columns that they were averages of, because few outputs "
      "see an input");
}

}  // namespace cenote::simd
