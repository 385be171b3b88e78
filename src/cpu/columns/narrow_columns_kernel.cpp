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
  std::int64_t element;  // bytes
  std::int64_t step;     // elements from tap to tap along the row
  NarrowRowsFn down;     // null where windows are folded straight from their taps
  std::int64_t width;    // elements of a row
  std::size_t bytes;     // of scratch: a row

  std::int64_t units(std::int64_t batch) const {
    return batch * static_cast<std::int64_t>(slices.size() * rows.size());
  }
};

/// Units [begin, end), a row of outputs each.
void fold_rows(const NarrowColumnsPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
               char* scratch) {
  const auto heights = static_cast<std::int64_t>(plan.rows.size()),
             depths = static_cast<std::int64_t>(plan.slices.size());
  std::int64_t oh = begin % heights, od = begin / heights % depths, n = begin / heights / depths;
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const RowRange &deep = plan.slices[static_cast<std::size_t>(od)], &high = plan.rows[static_cast<std::size_t>(oh)];
    const char* source = static_cast<const char*>(pointers.source) + n * plan.source.outer_major * plan.element;
    char* target = static_cast<char*>(pointers.target) +
                   (n * plan.target.outer_major + od * plan.target.depth + oh * plan.target.height) * plan.element;
    const void* seen[kMostNarrowTable];
    int rows = 0;
    for (std::int64_t z = 0; z < deep.count; ++z) {
      for (std::int64_t y = 0; y < high.count; ++y) {
        seen[rows++] = source + ((deep.first + z * deep.step) * plan.source.depth +
                                 (high.first + y * high.step) * plan.source.height) *
                                    plan.element;
      }
    }
    if (plan.down != nullptr && plan.down(seen, rows, plan.width, scratch)) {
      seen[0] = scratch;
      rows = 1;
    }
    for (const NarrowColumnsPlan::Run& run : plan.runs) {
      const void* taps[kMostNarrowTable + 1];
      int count = 0;
      for (int row = 0; row < rows; ++row) {
        for (std::int64_t x = 0; x < run.taps; ++x)
          taps[count++] = static_cast<const char*>(seen[row]) + x * plan.step * plan.element;
      }
      taps[count] = taps[count - 1];
      run.fold(taps, (count + 1) / 2, plan.from.data() + run.first, plan.to.data() + run.first, run.vectors, target);
    }
    if (++oh < heights) continue;
    oh = 0;
    if (++od < depths) continue;
    od = 0;
    ++n;
  }
}

/// Whether the rows of windows are folded first: vectors that are read and written for a row of outputs, in each of which the outputs have `vectors`.
bool is_worth_folding_down(const Problem& p, std::size_t vectors, std::int64_t lanes, std::int64_t elements) {
  constexpr std::int64_t kStored = 2;  // a store, and what waits for it
  const std::int64_t rows = p.axis[0].kernel * p.axis[1].kernel;
  const std::int64_t along = static_cast<std::int64_t>(vectors) * p.axis[2].kernel;
  return rows > 1 && elements >= lanes && elements * 4 <= kBlockBytes &&
         (rows + kStored) * ceil_div(elements, lanes) + along < rows * along;
}

}  // namespace

std::unique_ptr<Kernel> make_narrow_columns_kernel(const Described& described, const Target& target,
                                                   const RowWork* rows) {
  if (rows == nullptr || described.problem.pass != Pass::forward) return nullptr;
  const RowPlan& row_plan = rows->plan();
  const Problem& p = row_plan.problem;
  const std::int64_t channels = row_plan.inner;
  if (p.reduction != Reduction::max || p.absolute || p.with_indices || channels == 1 || row_plan.tall) return nullptr;
  // Rows around the caches are put together before.
  if (!row_plan.source.dense || !row_plan.target.dense || row_plan.streams || has_empty_windows(p)) return nullptr;
  NarrowColumnsPlan plan{};
  // Vectors that columns hold; and wider ones, each for a column and what lies beside it.
  const NarrowColumns within = narrow_columns(target.index, p.dtype, channels);
  NarrowColumns beyond = narrow_columns(target.index, p.dtype, 2 * channels - 1);
  if (beyond.lanes <= channels || beyond.lanes > kMostLanesBeyond) beyond = within;
  if (within.fold == nullptr) return nullptr;
  std::int64_t taps = 1, apart = 1;
  for (const Axis& axis : p.axis) {
    if (axis.kernel > kMostNarrowTable / taps) return nullptr;
    taps *= axis.kernel;
    if (axis.output > 1) apart *= axis.rule == WindowRule::sliding ? axis.stride : larger(1, axis.input / axis.output);
  }
  const Axis& width = p.axis[2];
  const bool one_output = p.axis[0].output * p.axis[1].output * width.output == 1;
  if (taps > kMostNarrowTaps && taps > 2 * apart && !one_output) return nullptr;
  // Many channels, and rows that windows share, are worth bands; halves of many are compared as keys.
  const auto lanes = static_cast<std::int64_t>(kernels_of(p.dtype, target)->vector_bytes / sizeof(float));
  const bool half = p.dtype != DType::f32, shares = p.axis[1].kernel > p.axis[1].stride;
  if (channels >= (half ? 2 : 4) * lanes || (!half && shares && channels % lanes == 0)) return nullptr;
  if (is_identity(width)) return nullptr;  // rows are single columns, of many
  // Windows one apart have no table of their columns: whole rows of them are folded at once.
  if (row_plan.table.first.empty() || row_plan.source_rows[0].empty() || row_plan.source_rows[1].empty())
    return nullptr;
  plan.source = row_plan.source;
  plan.target = row_plan.target;
  plan.element = static_cast<std::int64_t>(size_of(p.dtype));
  plan.slices = row_plan.source_rows[0];
  plan.rows = row_plan.source_rows[1];
  auto close = [&]() {
    for (; !plan.runs.empty() && plan.runs.back().vectors < 4; ++plan.runs.back().vectors) {
      plan.from.push_back(plan.from.back());
      plan.to.push_back(plan.to.back());
    }
  };
  plan.step = row_plan.table.step * channels;
  for (std::int64_t o = 0; o < width.output; ++o) {
    const std::int64_t first = row_plan.table.first[static_cast<std::size_t>(o)],
                       count = row_plan.table.count[static_cast<std::size_t>(o)];
    // Whether the window's last column and the output are followed by others of their rows: what is stored beside an output is overwritten by the next one.
    const bool followed = o + 1 < width.output && first + (count - 1) * row_plan.table.step + 1 < width.input;
    const NarrowColumns& columns = followed ? beyond : within;
    if (plan.runs.empty() || plan.runs.back().taps != count || plan.runs.back().fold != columns.fold) {
      close();
      plan.runs.push_back({static_cast<std::int64_t>(plan.from.size()), 0, count, columns.fold});
    }
    for (std::int64_t next = 0; next < channels; next += columns.lanes) {
      // The ragged end from its last vector.
      const std::int64_t c = larger(0, smaller(next, channels - columns.lanes));
      plan.from.push_back(static_cast<std::int32_t>(first * channels + c));
      plan.to.push_back(static_cast<std::int32_t>(o * channels + c));
      ++plan.runs.back().vectors;
    }
  }
  close();
  plan.width = width.input * channels;
  if (is_worth_folding_down(p, plan.from.size(), lanes, plan.width)) {
    plan.down = within.down;
    plan.bytes = static_cast<std::size_t>(plan.width * plan.element);
  }
  const std::int64_t units = plan.units(p.batch);
  return make_unit_kernel(described, std::move(plan), units, fold_rows,
                          "vectors across channels, those of several columns at a time straight from their taps, "
                          "because columns have few channels");
}

}  // namespace cenote::simd
