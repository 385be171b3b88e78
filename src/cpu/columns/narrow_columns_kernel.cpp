#include "cpu/columns/narrow_columns_kernel.hpp"

#include "cpu/columns/narrow_columns.hpp"
#include "cpu/thresholds.hpp"
#include "cpu/unit_kernel.hpp"

#include <utility>
#include <vector>

namespace cenote::simd {
namespace {

struct NarrowColumnsPlan {
  RowTensor source, target;
  std::vector<RowRange> slices, rows;  // of inputs that each slice and row of outputs sees
  std::vector<std::int32_t> from, to;  // of each vector of a row of outputs
  struct Run {
    std::int64_t first, vectors, taps;
    NarrowColumnsFn fold;
  };
  std::vector<Run> runs;
  std::int64_t step;  // elements from tap to tap along the row
  std::size_t bytes;  // of scratch: none

  std::int64_t units(std::int64_t batch) const {
    return batch * static_cast<std::int64_t>(slices.size() * rows.size());
  }
};

/// Units [begin, end), a row of outputs each.
void fold_rows(const NarrowColumnsPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
               char*) {
  const auto heights = static_cast<std::int64_t>(plan.rows.size()),
             depths = static_cast<std::int64_t>(plan.slices.size());
  std::int64_t oh = begin % heights, od = begin / heights % depths, n = begin / heights / depths;
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const RowRange &deep = plan.slices[static_cast<std::size_t>(od)], &high = plan.rows[static_cast<std::size_t>(oh)];
    const float* source = static_cast<const float*>(pointers.source) + n * plan.source.outer_major;
    float* target = static_cast<float*>(pointers.target) + n * plan.target.outer_major + od * plan.target.depth +
                    oh * plan.target.height;
    for (const NarrowColumnsPlan::Run& run : plan.runs) {
      const float* taps[kMostNarrowTaps + 1];
      int count = 0;
      for (std::int64_t z = 0; z < deep.count; ++z) {
        for (std::int64_t y = 0; y < high.count; ++y) {
          const float* row = source + (deep.first + z * deep.step) * plan.source.depth +
                             (high.first + y * high.step) * plan.source.height;
          for (std::int64_t x = 0; x < run.taps; ++x) taps[count++] = row + x * plan.step;
        }
      }
      taps[count] = taps[count - 1];
      run.fold(taps, (count + 1) / 2, {plan.from.data() + run.first, plan.to.data() + run.first, run.vectors}, target);
    }
    if (++oh < heights) continue;
    oh = 0;
    if (++od < depths) continue;
    od = 0;
    ++n;
  }
}

}  // namespace

std::unique_ptr<Kernel> make_narrow_columns_kernel(const Described& described, const Target& target,
                                                   const RowWork* rows) {
  if (rows == nullptr || described.problem.pass != Pass::forward || described.problem.dtype != DType::f32)
    return nullptr;
  const RowPlan& row_plan = rows->plan();
  const Problem& p = row_plan.problem;
  if (p.reduction != Reduction::max || p.absolute || p.with_indices || row_plan.inner == 1 || row_plan.tall)
    return nullptr;
  // Rows around the caches are put together before.
  if (!row_plan.source.dense || !row_plan.target.dense || row_plan.streams || has_empty_windows(p)) return nullptr;
  NarrowColumnsPlan plan{};
  // Vectors that columns hold; and wider ones, each for a column and what lies beside it.
  const NarrowColumns within = narrow_columns(target.index, row_plan.inner);
  NarrowColumns beyond = narrow_columns(target.index, 2 * row_plan.inner - 1);
  if (beyond.lanes <= row_plan.inner || beyond.lanes > kMostLanesBeyond) beyond = within;
  if (within.fold == nullptr) return nullptr;
  std::int64_t taps = 1;
  for (const Axis& axis : p.axis) {
    if (axis.kernel > kMostNarrowTaps / taps) return nullptr;
    taps *= axis.kernel;
  }
  // Many channels, and rows that windows share, are worth bands.
  const auto lanes = static_cast<std::int64_t>(kernels_of(p.dtype, target)->vector_bytes / sizeof(float));
  const bool shares = p.axis[1].kernel > p.axis[1].stride;
  if (row_plan.inner >= 4 * lanes || (shares && row_plan.inner % lanes == 0)) return nullptr;
  if (is_identity(p.axis[2])) return nullptr;  // rows are single columns, of many
  if (row_plan.table.first.empty() || row_plan.source_rows[0].empty() || row_plan.source_rows[1].empty())
    return nullptr;
  plan.source = row_plan.source;
  plan.target = row_plan.target;
  plan.slices = row_plan.source_rows[0];
  plan.rows = row_plan.source_rows[1];
  plan.step = row_plan.table.step * row_plan.inner;
  const Axis& width = p.axis[2];
  for (std::int64_t o = 0; o < width.output; ++o) {
    const std::int64_t first = row_plan.table.first[static_cast<std::size_t>(o)],
                       count = row_plan.table.count[static_cast<std::size_t>(o)];
    // Whether the window's last column and the output are followed by others of their rows: what is stored beside an output is overwritten by the next one.
    const bool followed = o + 1 < width.output && first + (count - 1) * row_plan.table.step + 1 < width.input;
    const NarrowColumns& columns = followed ? beyond : within;
    if (plan.runs.empty() || plan.runs.back().taps != count || plan.runs.back().fold != columns.fold)
      plan.runs.push_back({static_cast<std::int64_t>(plan.from.size()), 0, count, columns.fold});
    for (std::int64_t next = 0; next < row_plan.inner; next += columns.lanes) {
      // The ragged end from its last vector.
      const std::int64_t c = larger(0, smaller(next, row_plan.inner - columns.lanes));
      plan.from.push_back(static_cast<std::int32_t>(first * row_plan.inner + c));
      plan.to.push_back(static_cast<std::int32_t>(o * row_plan.inner + c));
      ++plan.runs.back().vectors;
    }
  }
  const std::int64_t units = plan.units(p.batch);
  return make_unit_kernel(described, std::move(plan), units, fold_rows,
                          "vectors across channels, those of several columns at a time straight from their taps, "
                          "because columns have few channels");
}

}  // namespace cenote::simd
