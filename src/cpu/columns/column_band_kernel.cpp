#include "cpu/columns/column_band_kernel.hpp"

#include "cpu/check_indices.hpp"
#include "cpu/columns/column_bands.hpp"
#include "cpu/split.hpp"
#include "cpu/thresholds.hpp"

#include <utility>

namespace cenote::simd {
namespace {

class ColumnBandKernel final : public Kernel {
 public:
  ColumnBandKernel(const Described& described, ColumnBandPlan plan, ColumnBandsFn function)
      : problem_(described.problem), plan_(std::move(plan)), function_(function), bytes_(described.bytes_moved) {
    explain = "vectors across channels, " + std::to_string(plan_.band) + (plan_.band == 1 ? " row" : " rows") +
              " of outputs at a time: each source row is folded along once";
  }

  Status run(const RunArgs& args) const noexcept override {
    const RowPointers pointers = row_pointers(problem_, args);
    split(args.executor, plan_.units(), bytes_,
          [&](std::int64_t begin, std::int64_t end) { function_(plan_, pointers, begin, end); });
    return {};
  }

 private:
  Problem problem_;
  ColumnBandPlan plan_;
  ColumnBandsFn function_;
  std::int64_t bytes_;
};

/// Rows of outputs at once: more where windows share rows, as long as all rows that are read and written together find room in an L1, where rows a
/// multiple of kAliasBytes apart lie in the same lines. `shared`: between threads, which want bands enough.
std::int64_t band_of(const Problem& p, const RowPlan& row_plan, bool shared) {
  const Axis& height = p.axis[1];
  const auto size = static_cast<std::int64_t>(size_of(p.dtype));
  if (height.stride >= height.kernel) return 1;
  std::int64_t band = kColumnRows;
  const std::int64_t units = p.batch * p.axis[0].output;
  while (band > 1 && ((shared && units * ceil_div(height.output, band) < kFewestUnits) ||
                      (band - 1) * height.stride + height.kernel > kMostColumnRows))
    band /= 2;
  const std::int64_t sources = (kColumnRows - 1) * height.stride + height.kernel;
  const std::int64_t apart = row_plan.source.height * size % kAliasBytes;
  const bool alias = smaller(apart, kAliasBytes - apart) * (sources + kColumnRows) < kAliasBytes;
  return alias ? smaller(band, 2) : band;
}

}  // namespace

std::unique_ptr<Kernel> make_column_band_kernel(const Described& described, const Target& target, const RowWork* rows) {
  const ColumnBandsFn function = column_bands(target.index, described.problem.dtype);
  if (function == nullptr || rows == nullptr || described.problem.pass != Pass::forward) return nullptr;
  const RowPlan& row_plan = rows->plan();
  const Problem& p = row_plan.problem;
  const Axis &depth = p.axis[0], &height = p.axis[1], &width = p.axis[2];
  const auto lanes = static_cast<std::int64_t>(kernels_of(p.dtype, target)->vector_bytes / size_of(p.dtype));
  if (p.reduction != Reduction::max || p.absolute || p.with_indices) return nullptr;
  // Where windows are one column wide and next to each other, a row is one column of all its channels.
  const std::int64_t joined = is_identity(width) ? width.input : 1, channels = joined * row_plan.inner;
  // The last vectors of a column are taken from its end.
  if (row_plan.inner == 1 || (channels % lanes != 0 && channels < 4 * lanes)) return nullptr;
  if (!row_plan.source.dense || !row_plan.target.dense || has_empty_windows(p)) return nullptr;
  for (const Axis* axis : {&height, &width}) {
    if (axis->rule != WindowRule::sliding || axis->dilation != 1) return nullptr;
  }
  if (depth.output > kMostColumnSlices || width.kernel > kMostColumnTaps ||
      height.kernel > kMostColumnTaps / width.kernel)
    return nullptr;
  ColumnBandPlan plan{};
  plan.source = row_plan.source;
  plan.target = row_plan.target;
  plan.batch = p.batch;
  plan.channels = channels;
  plan.depths = depth.output;
  plan.rows = height.output;
  plan.columns = width.output / joined;
  plan.heights = height.input;
  plan.width = width.input / joined;
  plan.kernel = height.kernel;
  plan.stride = height.stride;
  plan.top = height.pad_begin;
  plan.taps = width.kernel;
  plan.apart = width.stride;
  plan.left = width.pad_begin;
  plan.band = band_of(p, row_plan, described.bytes_moved >= kSerialBytes);
  plan.bands = ceil_div(plan.rows, plan.band);
  const bool is_read_seldom =
      depth.kernel * plan.kernel * plan.taps <= kMostTiledReadings * depth.stride * plan.stride * plan.apart;
  if (described.bytes_moved >= kStreamBytes && is_read_seldom) {
    const std::int64_t column = plan.apart * plan.channels * static_cast<std::int64_t>(size_of(p.dtype));
    plan.tile = larger(1, smaller(kMostTileColumns, kColumnTileBytes / column));
    if (column > kMostColumnTileBytes || plan.tile * kFewestColumnTiles > plan.columns) plan.tile = 0;
  }
  for (std::int64_t z = 0; z < depth.output; ++z) plan.slices.push_back(source_rows_of(p, 0, z, false));
  plan.streams = streams_columns(row_plan, described.bytes_moved);
  return std::make_unique<ColumnBandKernel>(described, std::move(plan), function);
}

}  // namespace cenote::simd
