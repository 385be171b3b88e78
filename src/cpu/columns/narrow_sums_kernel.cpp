#include "cpu/columns/narrow_sums_kernel.hpp"

#include "cpu/check_indices.hpp"
#include "cpu/columns/narrow_sums.hpp"
#include "cpu/thresholds.hpp"
#include "cpu/unit_kernel.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace cenote::simd {
namespace {

struct NarrowSumsPlan {
  NarrowSums sums;
  RowTensor source, target;
  std::int64_t element;                // bytes
  std::vector<RowRange> slices, rows;  // of inputs that each slice and row of outputs sees
  std::int64_t step;                   // elements from tap to tap along the row
  bool in_lanes;                       // see LaneSums
  std::vector<std::int32_t> from, to;  // see NarrowSumRun
  std::vector<NarrowSumRun> runs;
  /// Results up to an element that are divided alike.
  struct Divided {
    std::int64_t end;
    double factor;
  };
  std::vector<Divided> divided;
  /// Outputs whose source columns are buffered at once. In elements of the rows; and where its runs and divisors end.
  struct Piece {
    std::int64_t source, source_elements, target;
    std::size_t runs_end, divided_end;
  };
  std::vector<Piece> pieces;
  // Divisor of an output = the row factors of its slice and its row, where there are any, * that of its column.
  std::vector<double> row_factors[2];
  std::size_t results_at, bytes;  // of scratch

  std::int64_t units(std::int64_t batch) const {
    return batch * static_cast<std::int64_t>(slices.size() * rows.size());
  }
};

/// Units [begin, end), a row of outputs each.
void sum_rows(const NarrowSumsPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
              char* scratch) {
  const auto heights = static_cast<std::int64_t>(plan.rows.size()),
             depths = static_cast<std::int64_t>(plan.slices.size());
  char* results = scratch + plan.results_at;
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t oh = unit % heights, od = unit / heights % depths, n = unit / heights / depths;
    const RowRange &deep = plan.slices[static_cast<std::size_t>(od)], &high = plan.rows[static_cast<std::size_t>(oh)];
    const char* source = static_cast<const char*>(pointers.source) + n * plan.source.outer_major * plan.element;
    char* target = static_cast<char*>(pointers.target) +
                   (n * plan.target.outer_major + od * plan.target.depth + oh * plan.target.height) * plan.element;
    const double row_factor = plan.row_factors[0].empty() ? 1
                                                          : plan.row_factors[0][static_cast<std::size_t>(od)] *
                                                                plan.row_factors[1][static_cast<std::size_t>(oh)];
    std::size_t run = 0, divided = 0;
    for (const NarrowSumsPlan::Piece& piece : plan.pieces) {
      const void* rows[kMostNarrowRows];
      std::int64_t count = 0;
      for (std::int64_t z = 0; z < deep.count; ++z) {
        for (std::int64_t y = 0; y < high.count; ++y) {
          rows[count++] = source + ((deep.first + z * deep.step) * plan.source.depth +
                                    (high.first + y * high.step) * plan.source.height + piece.source) *
                                       plan.element;
        }
      }
      plan.sums.down(rows, count, piece.source_elements, scratch);
      for (; run < piece.runs_end; ++run)
        plan.sums.along(scratch, plan.step, plan.in_lanes, plan.runs[run], plan.from.data(), plan.to.data(), results);
      std::int64_t at = 0;
      for (; divided < piece.divided_end; ++divided) {
        const NarrowSumsPlan::Divided& share = plan.divided[divided];
        plan.sums.finish(results + at * static_cast<std::int64_t>(plan.sums.size), share.end - at,
                         static_cast<float>(row_factor * share.factor), target + (piece.target + at) * plan.element);
        at = share.end;
      }
    }
  }
}

/// Outputs [first, last) of a row. Vectors of windows one apart need not end with a column.
void add_piece(const RowPlan& rows, const std::vector<double>& factors, std::int64_t first, std::int64_t last,
               NarrowSumsPlan& plan) {
  const Axis& width = rows.problem.axis[2];
  const std::int64_t channels = rows.inner;
  const bool joined = width.rule == WindowRule::sliding && width.stride == 1;
  const bool whole = joined || channels > plan.sums.few_channels;
  const std::int64_t lanes = whole ? plan.sums.lanes : plan.sums.few_channels;
  std::int64_t low = std::numeric_limits<std::int64_t>::max(), high = 0;
  for (std::int64_t o = first; o < last; ++o) {
    const Window w = window(width, o);
    low = smaller(low, w.first);
    high = larger(high, w.first + (w.count - 1) * w.step + 1);
  }
  const std::size_t begin = plan.runs.size();
  auto close = [&]() {
    for (NarrowSumRun* run = plan.runs.size() > begin ? &plan.runs.back() : nullptr; run != nullptr && run->vectors < 4;
         ++run->vectors) {
      plan.from.push_back(plan.from.back());
      plan.to.push_back(plan.to.back());
    }
  };
  for (std::int64_t o = first, next = first; o < last; o = next) {
    const Window w = window(width, o);
    next = o + 1;
    while (joined && next < last && window(width, next).count == w.count &&
           window(width, next).first == w.first + next - o)
      ++next;
    if (plan.runs.size() == begin || plan.runs.back().taps != w.count) {
      close();
      plan.runs.push_back({static_cast<std::int64_t>(plan.from.size()), 0, w.count, whole});
    }
    for (std::int64_t c = 0; c < (next - o) * channels; c += lanes) {
      plan.from.push_back(static_cast<std::int32_t>((w.first - low) * channels + c));
      plan.to.push_back(static_cast<std::int32_t>((o - first) * channels + c));
      ++plan.runs.back().vectors;
    }
  }
  close();
  for (std::int64_t o = first; o < last; ++o) {
    const double factor = factors.size() == 1 ? factors[0] : factors[static_cast<std::size_t>(o)];
    if (o == first || plan.divided.back().factor != factor) plan.divided.push_back({0, factor});
    plan.divided.back().end = (o + 1 - first) * channels;
  }
  plan.pieces.push_back(
      {low * channels, (high - low) * channels, first * channels, plan.runs.size(), plan.divided.size()});
}

/// Columns that do not fill vectors, or that windows share; and bytes, which others sum up in wider lanes.
bool is_worth_it(const Problem& p, std::int64_t channels, std::int64_t lanes) {
  if (p.dtype == DType::u8) return true;
  const Axis& width = p.axis[2];
  const bool shares = width.rule == WindowRule::sliding && width.stride < (width.kernel - 1) * width.dilation + 1;
  return channels < kMostNarrowSums * lanes && (shares || channels % lanes != 0);
}

}  // namespace

std::unique_ptr<Kernel> make_narrow_sums_kernel(const Described& described, const Target& target, const RowWork* rows) {
  if (rows == nullptr || described.problem.pass != Pass::forward) return nullptr;
  const RowPlan& row_plan = rows->plan();
  const Problem& p = row_plan.problem;
  const bool average = p.reduction == Reduction::average;
  if ((!average && p.reduction != Reduction::sum) || row_plan.inner == 1 || row_plan.tall || row_plan.streams)
    return nullptr;
  const Axis& width = p.axis[2];
  // Long windows next to each other are summed up in another order.
  const bool doubles = width.rule == WindowRule::sliding && width.stride == 1 && width.kernel >= kDoublingTaps;
  if (doubles || !row_plan.source.dense || !row_plan.target.dense || has_empty_windows(p) ||
      width.output > kMostColumns / row_plan.inner)
    return nullptr;
  NarrowSumsPlan plan{};
  plan.sums = narrow_sums(target.index, p.dtype);
  if (plan.sums.down == nullptr || !is_worth_it(p, row_plan.inner, plan.sums.lanes)) return nullptr;
  const bool divides = average && p.divisor_override == 0;
  for (int a = 0; a < 2; ++a) {
    if (row_plan.source_rows[a].empty() || (divides && row_plan.row_factors[a].empty())) return nullptr;
  }
  const bool bytes = size_of(p.dtype) == 1;
  constexpr std::int64_t kMostBytes = 257;  // that 16 bits hold the sum of
  if (bytes && (p.divisor_override < 0 || p.axis[0].kernel > kMostBytes || p.axis[1].kernel > kMostBytes ||
                p.axis[2].kernel > kMostBytes || p.axis[0].kernel * p.axis[1].kernel * p.axis[2].kernel > kMostBytes))
    return nullptr;
  plan.source = row_plan.source;
  plan.target = row_plan.target;
  plan.element = static_cast<std::int64_t>(size_of(p.dtype));
  plan.slices = row_plan.source_rows[0];
  plan.rows = row_plan.source_rows[1];
  auto most_of = [](const std::vector<RowRange>& seen) {
    std::int64_t most = 0, least = 1;
    for (const RowRange& range : seen) most = larger(most, range.count), least = smaller(least, range.count);
    return least > 0 ? smaller(most, kMostNarrowRows + 1) : kMostNarrowRows + 1;
  };
  if (most_of(plan.slices) * most_of(plan.rows) > kMostNarrowRows) return nullptr;
  plan.in_lanes = row_plan.sums_in_lanes;
  if (divides) std::copy_n(row_plan.row_factors.begin(), 2, plan.row_factors);
  std::vector<double> factors = row_plan.column_factor;
  if (factors.empty()) factors.push_back(row_plan.uniform_factor);

  // As many outputs at a time as their columns have room in L1, alike many in each.
  const std::int64_t column = row_plan.inner * static_cast<std::int64_t>(plan.sums.size);
  const std::int64_t apart = width.rule == WindowRule::sliding ? width.stride : larger(1, width.input / width.output);
  std::int64_t outputs = smaller(width.output, larger(1, kTileBytes / column / apart));
  outputs = ceil_div(width.output, ceil_div(width.output, outputs));
  std::int64_t source_elements = 0;
  plan.step = 0;
  for (std::int64_t o = 0; o < width.output; o += outputs) {
    for (std::int64_t i = o; i < smaller(o + outputs, width.output); ++i) {
      const Window w = window(width, i);
      if (w.count == 0) return nullptr;
      if (w.count > 1) plan.step = w.step * row_plan.inner;
    }
    add_piece(row_plan, factors, o, smaller(o + outputs, width.output), plan);
    if (plan.pieces.back().source_elements < plan.sums.lanes) return nullptr;
    source_elements = larger(source_elements, plan.pieces.back().source_elements);
  }
  auto room = [&](std::int64_t elements) {
    return (static_cast<std::size_t>(elements) * plan.sums.size + kNarrowSlackBytes) / 64 * 64 + 64;
  };
  plan.results_at = room(source_elements);
  plan.bytes = plan.results_at + room(outputs * row_plan.inner);
  if (plan.bytes > static_cast<std::size_t>(kBlockBytes)) return nullptr;
  const std::int64_t units = plan.units(p.batch);
  return make_unit_kernel(
      described, std::move(plan), units, sum_rows,
      "rows of a window summed up, then their columns by a table, whichever outputs they belong to");
}

}  // namespace cenote::simd
