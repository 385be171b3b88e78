#include "cpu/band_kernel.hpp"

#include "cpu/bands.hpp"
#include "cpu/check_indices.hpp"
#include "cpu/dense_planes.hpp"
#include "cpu/scratch.hpp"
#include "cpu/split.hpp"
#include "cpu/thresholds.hpp"

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
              (plan_.shares ? "each row folded along once" : "straight from the taps") +
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
  const std::int64_t rows = p.axis[0].kernel * ((plan.band - 1) * p.axis[1].stride + p.axis[1].kernel);
  const std::int64_t reach = (plan.columns + bands.lanes) * plan.stride + plan.taps;
  plan.packed_at = take(plan.left + rows * plan.width + reach, size_of(p.dtype));
  plan.kept_at = take(plan.shares ? rows * (plan.columns + bands.lanes) : 0, bands.lane);
  plan.result_at = take(plan.streams ? plan.band * plan.columns + bands.lanes : 0, size_of(p.dtype));
  plan.bytes = at;
}

}  // namespace

std::unique_ptr<Kernel> make_band_kernel(const Described& described, const Target& target, const RowWork* rows) {
  if (rows == nullptr || rows->plan().inner != 1 || described.problem.pass != Pass::forward) return nullptr;
  const RowPlan& row_plan = rows->plan();
  const Problem& p = row_plan.problem;
  const Axis &depth = p.axis[0], &height = p.axis[1], &width = p.axis[2];
  const bool sums = p.reduction == Reduction::sum || p.reduction == Reduction::average;
  if (p.absolute || p.with_indices || (!sums && p.reduction != Reduction::max)) return nullptr;
  // Others are summed up in another order, or folded in fewer steps.
  const bool few = row_plan.columns == Columns::strided ||
                   (row_plan.columns == Columns::consecutive && width.kernel < kDoublingTaps);
  if (!few || row_plan.tall) return nullptr;
  const Bands bands = bands_of(target.index, p.dtype, sums);
  if (bands.function == nullptr || (width.stride == 3 && bands.lane != 4)) return nullptr;
  for (const Axis& axis : p.axis) {
    if (axis.rule != WindowRule::sliding || axis.dilation != 1 || axis.kernel > kRowBlock) return nullptr;
  }
  if (depth.kernel * height.kernel > kRowBlock || width.kernel > smaller(kMostBandTaps, bands.lanes) ||
      has_empty_windows(p) || row_plan.source_rows[0].empty() || row_plan.source_rows[1].empty()) {
    return nullptr;
  }
  // Straight from the taps, sums of windows that overlap much load every element again and again: rows that are long enough do it once.
  const std::int64_t row_size = larger(width.input, width.output) * static_cast<std::int64_t>(size_of(p.dtype));
  if (sums && width.kernel > kMostBandOverlap * width.stride && row_size >= kOverlappingRowBytes) return nullptr;
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
  plan.depth_rows = row_plan.source_rows[0];
  plan.height_rows = row_plan.source_rows[1];
  plan.shares = !sums && height.kernel > height.stride;
  const std::int64_t row_bytes = height.stride * plan.width * static_cast<std::int64_t>(size_of(p.dtype));
  const std::int64_t fewest =
      height.kernel > height.stride ? 4 * height.kernel : 1;  // rows that bands share are folded twice
  plan.band = smaller(plan.rows, larger(fewest, kBandRowBytes / row_bytes));
  plan.bands = ceil_div(plan.rows, plan.band);
  plan.streams = described.bytes_moved >= kStreamIndexBytes;
  if (sums && !make_slice_divisors(row_plan, bands.lanes, plan.divisors)) return nullptr;
  place_scratch(p, bands, plan);
  if (plan.bytes > static_cast<std::size_t>(kMostStripBytes)) return nullptr;
  return std::make_unique<BandKernel>(described, std::move(plan), bands.function);
}

}  // namespace cenote::simd
