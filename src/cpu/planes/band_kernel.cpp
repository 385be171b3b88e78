#include "cpu/planes/band_kernel.hpp"

#include "cpu/check_indices.hpp"
#include "cpu/dense_planes.hpp"
#include "cpu/planes/bands.hpp"
#include "cpu/scratch.hpp"
#include "cpu/split.hpp"
#include "cpu/thresholds.hpp"

#include <numeric>
#include <utility>

namespace cenote::simd {
namespace {

class BandKernel final : public Kernel {
 public:
  BandKernel(const Described& described, BandPlan plan, BandsFn function)
      : plan_(std::move(plan)),
        function_(function),
        units_(described.problem.batch * described.problem.channels * plan_.slices * plan_.bands),
        bytes_(described.bytes_moved),
        scratch_(slot_count(), plan_.bytes) {
    explain = "bands of " + std::to_string(plan_.band) + " rows of outputs, " +
              (!plan_.runs.empty() ? "joined, so that short rows fill vectors"
               : plan_.phases != 0 ? "their columns taken apart"
               : plan_.shares      ? "each row folded along once"
                                   : "straight from the taps") +
              ", because its windows are small";
  }

  Status run(const RunArgs& args) const noexcept override {
    split(args.executor, units_, bytes_, [&](std::int64_t begin, std::int64_t end) {
      const ScratchPool::Lease lease(scratch_);
      function_(plan_, args.input, args.output, begin, end, lease.data());
    });
    return {};
  }

 private:
  BandPlan plan_;
  BandsFn function_;
  std::int64_t units_, bytes_;
  ScratchPool scratch_;
};

void place_scratch(const Problem& p, const Bands& bands, BandPlan& plan) {
  std::size_t at = 0;
  const auto take = [&](std::int64_t elements, std::size_t size) {
    const std::size_t start = at;
    at += (static_cast<std::size_t>(elements) * size + 63) / 64 * 64;
    return start;
  };
  const bool joined = !plan.runs.empty();
  const std::int64_t rows =
      p.axis[0].kernel * ((plan.band - 1) * p.axis[1].stride + (p.axis[1].kernel - 1) * plan.row_step + 1);
  const std::int64_t reach = (plan.columns + 2 * bands.lanes) * plan.stride + plan.taps * plan.step;
  plan.packed_at = take(plan.left + rows * plan.width + reach, size_of(p.dtype));
  if (joined) {
    plan.kept_pitch = ceil_div(rows * plan.columns + plan.left + reach, bands.lanes) * bands.lanes;
    plan.batch = ceil_div(kJoinedBytes, plan.kept_pitch * static_cast<std::int64_t>(bands.lane));
    plan.kept_at = take(plan.batch * plan.kept_pitch + ceil_div(plan.left, bands.lanes) * bands.lanes, bands.lane);
  } else if (plan.phases != 0) {
    plan.kept_rows = ((plan.band - 1) * p.axis[1].stride + (p.axis[1].kernel - 1) * plan.row_step) / plan.row_unit + 1;
    const std::int64_t columns = ceil_div(plan.columns, bands.lanes) * bands.lanes + plan.stride * plan.phase_pitch;
    plan.kept_at = take(plan.kept_rows * columns, bands.lane);
  } else if (plan.shares && p.reduction != Reduction::max) {
    plan.kept_pitch = ceil_div(plan.left + plan.width + reach, bands.lanes) * bands.lanes;
    plan.kept_at = take(plan.band * plan.kept_pitch, bands.lane);
  } else {
    plan.kept_at = take(plan.shares ? rows * (plan.columns + bands.lanes) : 0, bands.lane);
  }
  plan.result_at = take(plan.streams ? plan.band * plan.columns + bands.lanes : 0, size_of(p.dtype));
  plan.bytes = at;
}

/// Small windows one apart whose outputs lie where their middle inputs do. Strips fold 3x3 windows in fewer steps, but lose lanes where two vectors are much
/// longer than a row.
bool may_be_joined(const Problem& p, bool sums, std::int64_t lanes) {
  const Axis &depth = p.axis[0], &height = p.axis[1], &width = p.axis[2];
  if (depth.kernel != 1 || depth.pad_begin != 0 || height.stride != 1 || width.stride != 1) return false;
  if (width.output != width.input || width.input > kLongestJoined) return false;
  const bool in_strips = height.kernel == 3 && width.kernel == 3;
  return !in_strips || (sums && width.input > lanes && width.input * 4 < lanes * 6);
}

/// Loads and stores per vector of outputs: down the rows and then along, and straight from the taps.
bool sums_down_first(std::int64_t rows, const Axis& width) {
  const std::int64_t apart = smaller(width.stride, width.kernel);
  return 4 * ((rows + kStoreAndLoad) * apart + width.kernel) < 3 * rows * width.kernel;
}

/// Planes so small that vectors of their rows would be mostly empty, and enough of them for blocks.
bool are_better_side_by_side(const Problem& p, std::int64_t bytes_moved) {
  const Axis &height = p.axis[1], &width = p.axis[2];
  const std::int64_t few = bytes_moved >= kStreamSmallBytes ? kFewFromMemory
                           : width.kernel <= width.stride   ? kFewApart
                           : width.stride > 1               ? kFewOverlapping
                                                            : kFewOneApart;
  if (height.kernel == 1 || width.output > few) return false;
  const std::int64_t outputs = p.axis[0].output * height.output * width.output;
  return p.batch * p.channels >= 64 / static_cast<std::int64_t>(size_of(p.dtype)) &&
         64 * (plane_size(p) + outputs) <= kBlockBytes;
}

void make_runs(const RowPlan& rows, BandPlan& plan) {
  for (std::int64_t first = 0; first < plan.rows; first += plan.band) {
    JoinedBand band{plan.runs.size(), 0, plan.heights, 0};
    for (std::int64_t row = first; row < smaller(first + plan.band, plan.rows); ++row) {
      const RowRange& seen = rows.source_rows[1][static_cast<std::size_t>(row)];
      // Where rows are dilated, neither the first nor the last need be the ones that see the first or the last.
      band.first_y = smaller(band.first_y, seen.first);
      band.end_y = larger(band.end_y, seen.first + (seen.count - 1) * plan.row_step + 1);
      if (row > first && plan.runs.back().count == seen.count &&
          plan.runs.back().first + plan.runs.back().rows == seen.first) {
        ++plan.runs.back().rows;
      } else {
        plan.runs.push_back({row, 1, seen.first, seen.count});
      }
    }
    band.end_run = plan.runs.size();
    plan.joined.push_back(band);
  }
}

/// Which lanes of a vector have a column, column_of(lane), in their row.
template <class ColumnOf>
void push_lanes(std::int64_t lanes, const ColumnOf& column_of, BandPlan& plan) {
  for (std::int64_t lane = 0; lane < lanes; lane += 8) {
    unsigned bits = 0;
    for (std::int64_t i = 0; i < 8; ++i) {
      const std::int64_t column = column_of(lane + i);
      bits |= static_cast<unsigned>(column >= 0 && column < plan.width) << i;
    }
    plan.inside.push_back(static_cast<std::uint8_t>(bits));
  }
}

void make_inside(std::int64_t lanes, BandPlan& plan) {
  std::int64_t first = 0;
  do {
    for (std::int64_t tap = 0; tap < plan.taps; ++tap) {
      push_lanes(
          lanes, [&](std::int64_t lane) { return (first + lane) % plan.width + tap * plan.step - plan.left; }, plan);
    }
    first = (first + lanes) % plan.width;
  } while (first != 0);
}

void make_phases(std::int64_t lanes, std::int64_t row_stride, BandPlan& plan) {
  plan.row_unit = std::gcd(row_stride, plan.row_step);
  for (std::int64_t tap = 0; tap < plan.taps; ++tap) plan.phases |= 1U << (tap * plan.step % plan.stride);
  const std::int64_t reach = (plan.taps - 1) * plan.step / plan.stride;
  plan.phase_pitch = ceil_div(ceil_div(plan.columns, lanes) * lanes + reach, lanes) * lanes;
  for (std::int64_t i = 0; i < plan.phase_pitch; i += lanes) {
    for (std::int64_t phase = 0; phase < plan.stride; ++phase) {
      push_lanes(
          lanes, [&](std::int64_t lane) { return (i + lane) * plan.stride + phase - plan.left; }, plan);
    }
  }
}

}  // namespace

std::unique_ptr<Kernel> make_band_kernel(const Described& described, const Target& target, const RowWork* rows,
                                         bool joined) {
  if (rows == nullptr || rows->plan().inner != 1 || described.problem.pass != Pass::forward) return nullptr;
  const RowPlan& row_plan = rows->plan();
  const Problem& p = row_plan.problem;
  const Axis &depth = p.axis[0], &height = p.axis[1], &width = p.axis[2];
  const bool powers = p.reduction == Reduction::power;
  const bool sums = powers || p.reduction == Reduction::sum || p.reduction == Reduction::average;
  if (p.absolute || p.with_indices || (!sums && p.reduction != Reduction::max)) return nullptr;
  // Others are summed up in another order, or folded in fewer steps.
  const std::int64_t most_taps = sums                             ? kDoublingTaps - 1
                                 : joined                         ? kMostJoinedTaps
                                 : width.output <= kLongestJoined ? kMostApartTaps
                                                                  : kDoublingTaps - 1;
  const bool few =
      row_plan.columns == Columns::strided || (row_plan.columns == Columns::consecutive && width.kernel <= most_taps);
  if (!few || row_plan.tall) return nullptr;
  const Bands bands = bands_of(target.index, p.dtype, sums);
  const bool dilated = !joined && (height.dilation > 1 || width.dilation > 1);
  if (dilated && (bands.dilated == nullptr || width.output < bands.lanes || width.stride > 3 || depth.kernel != 1 ||
                  depth.pad_begin != 0))
    return nullptr;
  if (joined && (powers || bands.joined == nullptr || !may_be_joined(p, sums, bands.lanes))) return nullptr;
  if (bands.function == nullptr || (width.stride == 3 && bands.lane != 4)) return nullptr;
  if (!joined && are_better_side_by_side(p, described.bytes_moved)) return nullptr;
  for (const Axis& axis : p.axis) {
    if (axis.rule != WindowRule::sliding || (axis.dilation != 1 && &axis == &depth) || axis.kernel > kRowBlock)
      return nullptr;
  }
  if (depth.kernel * height.kernel > kRowBlock || width.kernel > smaller(kMostBandTaps, bands.lanes) ||
      has_empty_windows(p) || row_plan.source_rows[0].empty() || row_plan.source_rows[1].empty()) {
    return nullptr;
  }
  // Straight from the taps, sums of windows that overlap much load every element again and again: rows that are long enough do it once.
  const std::int64_t row_size = larger(width.input, width.output) * static_cast<std::int64_t>(size_of(p.dtype));
  const bool buffers_rows =
      powers && height.output > 1;  // bands add up rows first, too, and have no powers to put down before
  if (!joined && sums && !buffers_rows && width.kernel > kMostBandOverlap * width.stride &&
      row_size >= kOverlappingRowBytes)
    return nullptr;
  const DensePlanes source = dense_planes(p, p.input, true), result = dense_planes(p, p.output, false);
  if (!source.dense || !result.dense) return nullptr;

  BandPlan plan{};
  const std::int64_t planes = p.batch * p.channels;
  plan.source_pitch = source.pitch;
  plan.target_pitch = result.pitch;
  plan.extent = source.pitch * (planes - 1) + source.count;
  plan.heights = height.input;
  plan.width = width.input;
  plan.slices = depth.output;
  plan.rows = height.output;
  plan.columns = width.output;
  plan.taps = width.kernel;
  plan.stride = width.stride;
  plan.left = width.pad_begin;
  plan.step = width.dilation;
  plan.row_step = height.dilation;
  plan.depth_rows = row_plan.source_rows[0];
  plan.height_rows = row_plan.source_rows[1];
  const std::int64_t seen_rows = depth.kernel * height.kernel;
  plan.shares = sums ? (powers && p.norm_type > 2) || sums_down_first(seen_rows, width) : height.kernel > height.stride;
  const std::int64_t row_bytes = height.stride * plan.width * static_cast<std::int64_t>(size_of(p.dtype));
  // Rows that bands share are folded twice.
  const std::int64_t fewest = height.kernel > height.stride ? 4 * ((height.kernel - 1) * plan.row_step + 1) : 1;
  plan.band = smaller(plan.rows, larger(fewest, kBandRowBytes / row_bytes));
  plan.bands = ceil_div(plan.rows, plan.band);
  plan.row_stride = height.stride;
  plan.streams = described.bytes_moved >= kStreamIndexBytes;
  if (plan.streams) plan.ahead = plan.band * height.stride * plan.width;
  if (!make_slice_powers(row_plan, bands.lanes, plan.powers)) return nullptr;
  plan.divisors = {1, true, {}, 0};
  if (sums && !powers && !make_slice_divisors(row_plan, bands.lanes, plan.divisors)) return nullptr;
  if (dilated) make_phases(bands.lanes, height.stride, plan);
  if (joined) {
    make_runs(row_plan, plan);
    make_inside(bands.lanes, plan);
  }
  place_scratch(p, bands, plan);
  if (plan.bytes > static_cast<std::size_t>(kMostStripBytes)) return nullptr;
  return std::make_unique<BandKernel>(described, std::move(plan),
                                      joined    ? bands.joined
                                      : dilated ? bands.dilated
                                                : bands.function);
}

}  // namespace cenote::simd
