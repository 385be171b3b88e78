#include "cpu/gradients/lane_sum_kernel.hpp"

#include "cpu/check_indices.hpp"
#include "cpu/dense_planes.hpp"
#include "cpu/gradients/lane_sums.hpp"
#include "cpu/thresholds.hpp"
#include "cpu/unit_kernel.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace cenote::simd {
namespace {

/// The sums of a row that a column of results is made of: `count` of them from `first` on, `step` apart.
struct SeenColumns {
  std::int64_t first, count, step;
};

SeenColumns seen_columns(const Axis& axis, std::int64_t column, bool forward) {
  if (forward) {
    const Window w = window(axis, column);
    return {w.first, w.count, w.step};
  }
  const Cover c = cover(axis, column);
  return {c.first, c.count, c.step};
}

/// Vectors of results, and the tables of their lanes, each table once.
class VectorMaker {
 public:
  VectorMaker(std::vector<SeenColumns> columns, std::int64_t lanes, LanePlan& plan)
      : columns_(std::move(columns)), width_(static_cast<std::int64_t>(columns_.size())), lanes_(lanes), plan_(plan) {}

  /// Of rows that are one, whose sums begin at `row_sums`. False where two vectors of sums are too little for half a vector of results.
  bool make(const std::vector<std::int64_t>& row_sums) {
    const std::int64_t total = static_cast<std::int64_t>(row_sums.size()) * width_;
    std::int64_t vectors = 0;
    for (std::int64_t at = 0, count = 0; at < total; at += count, ++vectors) {
      count = smaller(lanes_, total - at);
      // The ragged end from its last whole vector.
      if (count < lanes_ && total >= lanes_ && cover_lanes(row_sums, total - lanes_, lanes_)) {
        at = total - lanes_;
        count = lanes_;
      }
      while (count > 0 && !cover_lanes(row_sums, at, count)) --count;
      if (count == 0) return false;
      push(at, count);
    }
    return vectors * lanes_ <= 2 * larger(total, lanes_);
  }

 private:
  /// Finds the two vectors of sums, and the lanes taken from them.
  bool cover_lanes(const std::vector<std::int64_t>& row_sums, std::int64_t at, std::int64_t count) {
    needed_.assign(static_cast<std::size_t>(plan_.most * lanes_), -1);
    for (std::int64_t i = 0; i < count; ++i) {
      const SeenColumns& seen = columns_[static_cast<std::size_t>((at + i) % width_)];
      const std::int64_t row = row_sums[static_cast<std::size_t>((at + i) / width_)];
      for (std::int64_t m = 0; m < seen.count; ++m)
        needed_[static_cast<std::size_t>(m * lanes_ + i)] = row + seen.first + m * seen.step;
    }
    first_ = least(0);
    second_ = least(first_ + lanes_);
    if (second_ == kNone) second_ = first_;
    if (first_ == kNone) first_ = second_ = 0;  // no sum is seen at all
    return std::all_of(needed_.begin(), needed_.end(), [&](std::int64_t one) { return one < second_ + lanes_; });
  }

  std::int64_t least(std::int64_t from) const {
    std::int64_t found = kNone;
    for (const std::int64_t one : needed_) {
      if (one >= from) found = smaller(found, one);
    }
    return found;
  }

  void push(std::int64_t at, std::int64_t count) {
    std::vector<std::int32_t> table;
    for (const std::int64_t one : needed_) {
      const std::int64_t lane = one < 0 ? -1 : one < first_ + lanes_ ? one - first_ : lanes_ + one - second_;
      table.push_back(static_cast<std::int32_t>(lane));
    }
    const auto [known, is_new] = tables_.try_emplace(table, static_cast<std::int32_t>(plan_.lanes.size()));
    if (is_new) plan_.lanes.insert(plan_.lanes.end(), table.begin(), table.end());
    plan_.vectors.push_back({static_cast<std::int32_t>(at), static_cast<std::int32_t>(count),
                             static_cast<std::int32_t>(first_), static_cast<std::int32_t>(second_), known->second});
  }

  static constexpr std::int64_t kNone = INT64_MAX / 2;
  std::vector<SeenColumns> columns_;
  std::int64_t width_, lanes_;
  LanePlan& plan_;
  std::vector<std::int64_t> needed_;  // of each sum of a result and each lane: which one, -1: none
  std::int64_t first_ = 0, second_ = 0;
  std::map<std::vector<std::int32_t>, std::int32_t> tables_;
};

/// Whether the output slices (axis 0) or rows (1) of a range have to do with their divisors alike.
bool are_alike(const RowPlan& rows, int axis, const RowRange& seen) {
  bool alike = true;
  for (std::int64_t i = 1; i < seen.count; ++i)
    alike = alike && factor_of(rows, axis, seen.first + i * seen.step) == factor_of(rows, axis, seen.first);
  return alike;
}

/// The rows that are summed up for some rows of results, each sum once.
class RunMaker {
 public:
  /// `columns`: of a row of the source.
  RunMaker(const RowPlan& rows, bool forward, std::int64_t columns)
      : rows_(rows), forward_(forward), columns_(columns) {}

  /// Sums that one more row asks for.
  std::int64_t sums_with(std::int64_t row) const {
    return (static_cast<std::int64_t>(sums_.size()) + (is_known(row) ? 0 : 1)) * columns_;
  }
  void add(std::int64_t row) {
    const RowRange& seen = seen_by(row);
    if (!is_known(row)) sums_.push_back({seen, !forward_ && are_alike(rows_, 1, seen), -1});
    sum_of_.push_back(sums_.size() - 1);
  }
  /// Where the sums of each row are.
  std::vector<std::int64_t> take(std::vector<LaneRun>& runs) {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      if (sums_[i].at >= 0) continue;
      const RowRange& seen = sums_[i].seen;
      LaneRun run{seen.first * columns_, seen.count, seen.step * columns_, at, 0, sums_[i].alike};
      // Those of rows one further on each join them.
      for (std::size_t j = i, rows = 0; j < sums_.size(); ++j) {
        RowSum& next = sums_[j];
        if (next.at >= 0 || next.alike != run.alike || next.seen.count != seen.count || next.seen.step != seen.step ||
            next.seen.first != seen.first + static_cast<std::int64_t>(rows))
          continue;
        next.at = at;
        at += columns_;
        ++rows;
      }
      run.elements = at - run.at;
      runs.push_back(run);
    }
    std::vector<std::int64_t> row_sums;
    for (const std::size_t sum : sum_of_) row_sums.push_back(sums_[sum].at);
    sums_.clear();
    sum_of_.clear();
    return row_sums;
  }

 private:
  struct RowSum {
    RowRange seen;
    bool alike;
    std::int64_t at;
  };

  const RowRange& seen_by(std::int64_t row) const { return rows_.source_rows[1][static_cast<std::size_t>(row)]; }
  bool is_known(std::int64_t row) const { return !sums_.empty() && sums_.back().seen == seen_by(row); }

  const RowPlan& rows_;
  bool forward_;
  std::int64_t columns_;
  std::vector<RowSum> sums_;
  std::vector<std::size_t> sum_of_;
};

/// Groups of rows, each with no more sums than this, but for those of one row. False where vectors would be mostly empty.
bool make_groups(const RowPlan& rows, std::int64_t height, std::int64_t most_rows, std::int64_t columns, bool joined,
                 VectorMaker& vectors, LanePlan& plan) {
  RunMaker runs(rows, plan.forward, columns);
  for (std::int64_t y = 0; y < height;) {
    LaneGroup group{y,
                    0,
                    static_cast<std::int64_t>(plan.runs.size()),
                    0,
                    static_cast<std::int64_t>(joined ? plan.vectors.size() : 0),
                    0};
    do {
      plan.sum_pitch = larger(plan.sum_pitch, runs.sums_with(y));
      runs.add(y);
      ++y;
      ++group.rows;
    } while (y < height && group.rows < most_rows &&
             runs.sums_with(y) * static_cast<std::int64_t>(sizeof(float)) <= kLaneBytes);
    const std::vector<std::int64_t> row_sums = runs.take(plan.runs);
    group.end_run = static_cast<std::int64_t>(plan.runs.size());
    if (joined) {
      if (!vectors.make(row_sums)) return false;
    } else {
      if (plan.vectors.empty() && !vectors.make({0})) return false;
      plan.row_sums.insert(plan.row_sums.end(), row_sums.begin(), row_sums.end());
    }
    group.end_vector = static_cast<std::int64_t>(plan.vectors.size());
    plan.groups.push_back(group);
  }
  return true;
}

/// Sums and averages that are taken down the rows and then tap by tap along them.
bool is_summed_in_order(const RowPlan& rows, bool forward) {
  const Problem& p = rows.problem;
  const Axis& width = p.axis[2];
  if (rows.inner != 1 || rows.tall || (p.reduction != Reduction::sum && p.reduction != Reduction::average))
    return false;
  // Many columns one apart are summed up in another order.
  if (width.rule == WindowRule::sliding && width.stride == 1 && width.kernel >= kDoublingTaps) return false;
  if (!forward) return true;
  for (const Axis& axis : p.axis) {
    if (axis.rule != WindowRule::sliding) return false;
  }
  return (rows.columns == Columns::strided || rows.columns == Columns::consecutive) && !has_empty_windows(p) &&
         p.axis[0].kernel * p.axis[1].kernel <= kRowBlock;
}

/// Whether an input may be seen by several outputs.
bool share_outputs(const Problem& p) {
  return std::any_of(std::begin(p.axis), std::end(p.axis), [](const Axis& axis) {
    return axis.rule == WindowRule::sliding ? axis.kernel > 1 && (axis.kernel > axis.stride || axis.dilation > 1)
                                            : axis.input % axis.output != 0;
  });
}

/// Windows one row high that leave rows as long as they are: rows that are joined waste nothing.
bool bands_may_join(const Axis& width) {
  return width.stride == 1 && width.output == width.input && width.input <= kLongestJoined;
}

/// Where no other way is faster. (Windows that share nothing, two threads, in blocks and so: 2x2/2 over 4096 planes of 10 x 10 48 us and 40, 8 x 8 34 and 22, f16 21 and 20, 14 x 14 47 and 57, 20 x 20 85 and 97.)
bool is_worth_it(const Problem& p, const SliceDivisors& divisors, std::int64_t bytes_moved) {
  const Axis &depth = p.axis[0], &height = p.axis[1], &width = p.axis[2];
  const bool halves = size_of(p.dtype) < sizeof(float);
  if (p.pass == Pass::backward)
    return halves ? width.input >= kLeastLaneHalves && share_outputs(p) : width.input >= kLeastLaneColumns;
  if (!halves) {
    const bool one_row = depth.kernel == 1 && height.kernel == 1 && !bands_may_join(width);
    const bool short_rows = width.output <= kFewLaneColumns && bytes_moved < kStreamSmallBytes;
    return divisors.slice != 0 ||
           (one_row && (short_rows || (width.kernel > width.stride && bytes_moved < kLaneBytesMoved)));
  }
  if (depth.kernel > 1) return width.kernel != 2 || width.stride != 2;
  if (width.kernel <= width.stride) return false;
  if (height.kernel == 1) return true;
  if (height.stride != 1 || width.stride != 1) return false;
  if (height.kernel == 3 && width.kernel == 3) return width.input <= kLongestLaneHalves;
  return width.kernel <= 3 || width.input > kLongestLaneRow;
}

}  // namespace

std::unique_ptr<Kernel> make_lane_sum_kernel(const Described& described, const Target& target, const RowWork* rows) {
  const LaneSumsFn function = lane_sums(target.index, described.problem.dtype);
  if (function == nullptr || rows == nullptr) return nullptr;
  const RowPlan& row_plan = rows->plan();
  const Problem& p = row_plan.problem;
  const bool forward = p.pass == Pass::forward;
  if (!is_summed_in_order(row_plan, forward)) return nullptr;
  const Axis &height = p.axis[1], &width = p.axis[2];
  const DensePlanes source = dense_planes(p, forward ? p.input : p.grad_output, forward);
  const DensePlanes result = dense_planes(p, forward ? p.output : p.grad_input, !forward);
  const auto sizes = [&](const Axis& axis) {
    return forward ? std::pair(axis.input, axis.output) : std::pair(axis.output, axis.input);
  };
  const auto [columns, target_width] = sizes(width);
  const auto [source_rows, target_rows] = sizes(height);
  if (!source.dense || !result.dense || larger(columns, target_width) > kMostExpanded) return nullptr;
  // Slices and rows beyond number have no tables.
  if (row_plan.source_rows[0].empty() || row_plan.source_rows[1].empty()) return nullptr;

  LanePlan plan{};
  const auto lanes = static_cast<std::int64_t>(kernels_of(p.dtype, target)->vector_bytes / sizeof(float));
  const auto size = static_cast<std::int64_t>(size_of(p.dtype));
  plan.planes = p.batch * p.channels;
  plan.source_pitch = source.pitch;
  plan.target_pitch = result.pitch;
  plan.extent = source.pitch * (plan.planes - 1) + source.count;
  plan.source_slice = source_rows * columns;
  plan.width = target_width;
  plan.target_slice = target_rows * target_width;
  plan.forward = forward;
  for (const RowRange& seen : row_plan.source_rows[0])
    plan.slices.push_back({seen, !forward && are_alike(row_plan, 0, seen)});
  std::int64_t sources = 1;
  for (const std::vector<RowRange>& ranges : row_plan.source_rows) {
    std::int64_t most = 0;
    for (const RowRange& range : ranges) most = larger(most, range.count);
    if (most > kMostLaneSources / sources) return nullptr;
    sources *= larger(1, most);
  }
  std::vector<SeenColumns> seen;
  plan.most = 2;
  for (std::int64_t x = 0; x < target_width; ++x) {
    seen.push_back(seen_columns(width, x, forward));
    plan.most = larger(plan.most, seen.back().count);
  }
  if (plan.most > kMostLaneSums) return nullptr;
  if (plan.most > 3) plan.most = kMostLaneSums;
  if (!make_slice_divisors(row_plan, lanes, plan.divisors, true) ||
      !is_worth_it(p, plan.divisors, described.bytes_moved))
    return nullptr;

  plan.paced = {described.bytes_moved >= kStreamBytes, plan.width * size,
                larger(1, kStagedBytes / (plan.width * size))};
  if (plan.paced.streams && plan.width * size > kTileBytes)
    return nullptr;  // a row that is put together must stay in L1
  const bool joined = plan.width <= kLongestLaneRow && plan.target_slice <= kMostLaneResults;
  const std::int64_t most_rows =
      smaller(plan.paced.streams ? plan.paced.rows : target_rows, joined ? target_rows : kMostLaneRows);
  VectorMaker vectors(std::move(seen), lanes, plan);
  if (!make_groups(row_plan, target_rows, most_rows, columns, joined, vectors, plan)) return nullptr;
  plan.sum_pitch += lanes;  // vectors reach beyond
  const auto groups = static_cast<std::int64_t>(plan.groups.size());
  plan.batch = 1;
  if (!plan.paced.streams && groups == 1) {
    plan.batch = smaller(kLaneBytes / (plan.sum_pitch * static_cast<std::int64_t>(sizeof(float))),
                         plan.slice_count() / kManyUnits);
    plan.batch = larger(1, smaller(plan.batch, kMostLaneRows / (joined ? 1 : target_rows)));
  }
  // Few slices are shared between threads in bands.
  plan.bands = smaller(ceil_div(kFewestUnits, plan.slice_count()), groups);
  plan.band = ceil_div(groups, plan.bands);
  plan.bands = ceil_div(groups, plan.band);

  const auto line = [](std::int64_t bytes) { return static_cast<std::size_t>(bytes + 63) / 64 * 64; };
  plan.paced_at = line((plan.batch * plan.sum_pitch + lanes) * static_cast<std::int64_t>(sizeof(float)));
  plan.bytes = plan.paced_at + plan.paced.bytes();
  const std::int64_t units = plan.units();
  return make_unit_kernel(
      described, std::move(plan), units, function,
      "vectors of results, each of them lanes of two vectors of sums of rows, because few sums make one");
}

}  // namespace cenote::simd
