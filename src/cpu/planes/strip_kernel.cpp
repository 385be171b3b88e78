#include "cpu/planes/strip_kernel.hpp"

#include "cpu/check_indices.hpp"
#include "cpu/dense_planes.hpp"
#include "cpu/thresholds.hpp"
#include "cpu/unit_kernel.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace cenote::simd {
namespace {

bool has_whole_windows(const Axis& axis) {
  return axis.pad_begin == 0 && (axis.output - 1) * axis.stride + axis.kernel <= axis.input;
}

/// 2x2 windows two apart, 3x3 windows two apart, or one apart (maxima: with any dilation); 2x2 windows one apart of f32 without indices, too.
bool is_small_square(const Problem& p) {
  const Axis &height = p.axis[1], &width = p.axis[2];
  if (height.kernel != width.kernel || height.stride != width.stride) return false;
  const bool dilated = height.dilation != 1 || width.dilation != 1;
  if (width.kernel == 3) return width.stride == 1 || (width.stride == 2 && !dilated);
  if (width.kernel != 2 || dilated) return false;
  return width.stride == 2 || (width.stride == 1 && p.dtype == DType::f32 && !p.with_indices);
}

void make_first_codes(const Problem& p, std::int64_t slack, StripPlan& plan) {
  const Axis &depth = p.axis[0], &height = p.axis[1], &width = p.axis[2];
  for (std::int64_t z = 0; z < depth.output; ++z) {
    const Window d = window(depth, z);
    for (std::int64_t y = 0; y < height.output; ++y) {
      const Window h = window(height, y);
      for (std::int64_t x = 0; x < width.output; ++x) {
        const Window w = window(width, x);
        const std::int64_t code = plan.flat ? (d.first * height.input + h.first) * width.input + w.first
                                            : (d.skipped * height.kernel + h.skipped) * width.kernel + w.skipped;
        plan.first_codes.push_back(static_cast<std::int32_t>(code));
      }
    }
  }
  plan.first_codes.resize(plan.first_codes.size() + static_cast<std::size_t>(slack));
}

/// Whether planes with indices that one strip each covers are folded several in one go, see FoldNarrowPlanes.
bool may_follow_each_other(std::int64_t lanes, const StripPlan& plan) {
  const std::int64_t outputs = plan.rows * plan.columns;
  return plan.columns <= lanes && plan.slices == 1 && plan.together == 1 && plan.kept == 0 && plan.parts == 1 &&
         !plan.streams && plan.row_step == 1 && plan.target_pitch == outputs && plan.index_pitch == outputs &&
         outputs <= kNarrowOutputs;
}

void place_scratch(std::int64_t lanes, std::size_t element, bool with_indices, StripPlan& plan) {
  const std::size_t code = larger(element, sizeof(std::int32_t));
  std::size_t at = 0;
  const auto take = [&](std::int64_t elements, std::size_t size) {
    const std::size_t start = at;
    at += (static_cast<std::size_t>(elements + 4 * lanes) * size + 63) / 64 * 64;
    return start;
  };
  const std::int64_t slice = plan.rows * plan.columns;
  plan.slice_pitch = slice + lanes;
  const std::int64_t rows =
      plan.together > 1  // of the source: those that a band sees, or all
          ? plan.together * plan.heights
          : smaller(plan.heights, (plan.band - 1) * plan.stride + (plan.taps - 1) * plan.row_step + 1);
  plan.packed_at = take(plan.left + (rows - 1) * plan.width + larger(plan.row_reach, plan.width), element);
  plan.slices_at = take(plan.kept * plan.slice_pitch, element);
  plan.slice_codes_at = take(with_indices ? plan.kept * plan.slice_pitch : 0, code);
  const std::int64_t results = plan.kept > 0 ? slice : smaller(plan.band, plan.rows) * plan.columns;
  plan.result_at = take(plan.staged ? results : 0, element);
  plan.codes_at = take(with_indices ? larger(results, plan.narrow_planes * slice) : 0, code);
  plan.bytes = at;
}

}  // namespace

std::unique_ptr<Kernel> make_strip_kernel(const Described& described, const RowKernels& kernels, const RowWork* rows) {
  if (rows == nullptr || rows->plan().inner != 1 || described.problem.pass != Pass::forward) return nullptr;
  const RowPlan& row_plan = rows->plan();
  const Problem& p = row_plan.problem;
  const bool powers = p.reduction == Reduction::power;
  const bool sums = powers || p.reduction == Reduction::sum || p.reduction == Reduction::average;
  if (p.absolute || (!sums && p.reduction != Reduction::max) || (powers && (p.dtype != DType::f32 || p.norm_type > 2)))
    return nullptr;
  const StripsFn function = sums             ? kernels.sum_strips
                            : p.with_indices ? kernels.max_strips_indexed
                                             : kernels.max_strips;
  if (function == nullptr) return nullptr;
  const Axis &depth = p.axis[0], &height = p.axis[1], &width = p.axis[2];
  const auto size = static_cast<std::int64_t>(size_of(p.dtype));
  if (!is_small_square(p)) return nullptr;
  const DensePlanes source = dense_planes(p, p.input, true), target = dense_planes(p, p.output, false);
  const DensePlanes indices = dense_planes(p, p.indices, false);
  if (!source.dense || !target.dense || (p.with_indices && !indices.dense)) return nullptr;
  const bool single = depth.kernel == 1 && depth.pad_begin == 0;  // an output slice sees one slice
  // Or two, like its rows, which no other sees.
  const bool pairs =
      width.kernel == 2 && width.stride == 2 && depth.kernel == 2 && depth.stride >= 2 && has_whole_windows(depth);
  if (sums && !single && !pairs) return nullptr;  // summed up in another order
  const bool has_first_codes = p.with_indices && (width.pad_begin > 0 || height.pad_begin > 0);
  if (depth.kernel > kRowBlock || source.count > std::numeric_limits<std::int32_t>::max() ||
      (has_first_codes && target.count > kMostStripOutputs))
    return nullptr;
  const std::int64_t planes = p.batch * p.channels;
  const bool keeps = !single && !pairs, shared = described.bytes_moved >= kSerialBytes;
  if (keeps && planes < kFewestUnits && shared) return nullptr;  // slices are kept by one thread
  const bool sliding = std::all_of(std::begin(p.axis), std::end(p.axis),
                                   [](const Axis& axis) { return axis.rule == WindowRule::sliding; });
  if (!sliding || depth.dilation != 1 || has_empty_windows(p) || row_plan.source_rows[0].empty()) return nullptr;

  auto lanes = static_cast<std::int64_t>(kernels.vector_bytes) / larger(size, sizeof(float));
  // Rows of dilated windows that follow each other are not folded one after the other: none may write beyond its end.
  const bool dilated = height.dilation > 1 || width.dilation > 1;
  if (dilated && (sums || width.output < lanes)) return nullptr;
  const bool halves = size < static_cast<std::int64_t>(sizeof(float));
  StripPlan plan{};
  // Columns are numbered in the lanes of keys, from the padding in front to the last vector's end.
  const bool numbered = width.input <= std::numeric_limits<std::int16_t>::max() / 2;
  plan.keys = halves && !sums && !p.with_indices && numbered && !dilated;
  if (plan.keys) lanes *= 2;
  plan.planes = planes;
  plan.source_pitch = source.pitch;
  plan.target_pitch = target.pitch;
  plan.index_pitch = indices.pitch;
  plan.extent = source.pitch * (plan.planes - 1) + source.count;
  plan.heights = height.input;
  plan.width = width.input;
  plan.slices = depth.output;
  plan.rows = height.output;
  plan.columns = width.output;
  plan.taps = width.kernel;
  plan.stride = width.stride;
  plan.step = width.dilation;
  plan.row_step = height.dilation;
  plan.left = width.pad_begin;
  plan.top = height.pad_begin;
  const std::int64_t span =
      (width.output - 1) * width.stride + (width.kernel - 1) * width.dilation + 1 - width.pad_begin;
  plan.padded = plan.left > 0 || span > plan.width;
  plan.row_reach = ceil_div(plan.columns, lanes) * lanes * plan.stride + plan.taps * plan.step;
  plan.reach = ((pairs ? 2 : 1) * plan.heights - 1) * plan.width + plan.row_reach;
  // Rows that bands share are folded twice, and each strip of a band takes some instructions to begin. Long rows of 2x2 windows are taken as they lie.
  const std::int64_t row_bytes = plan.width * plan.stride * size;
  const bool long_rows = kFewestStripRows * row_bytes > kBandRowBytes;
  if (long_rows && single && plan.taps == plan.stride && size == sizeof(float) && !p.with_indices) return nullptr;
  plan.band = larger(kFewestStripRows, kStripBytes / row_bytes);
  // Few planes are shared between threads by parts of their rows.
  if (shared && planes < kFewestUnits)
    plan.parts = smaller(ceil_div(plan.rows, plan.band), ceil_div(kManyUnits, planes));
  plan.streams = described.bytes_moved >= kStreamIndexBytes;
  plan.together = pairs ? 2 : 1;
  plan.kept = keeps ? depth.kernel : 0;
  // Where the last vectors would reach beyond the plane, see StoreUpTo.
  plan.staged = plan.streams || (halves && (plan.columns < lanes || plan.kept > 0));
  if (described.bytes_moved >= kFetchedBytes) plan.ahead = smaller(plan.band, plan.rows) * plan.stride * plan.width;
  plan.flat = row_plan.code_kind != Codes::taps;
  plan.index_dtype = p.index_dtype;
  plan.depth_rows = row_plan.source_rows[0];
  if (!make_slice_powers(row_plan, lanes, plan.powers)) return nullptr;
  plan.divisors = {1, true, {}, 0};
  if (sums && !powers && !make_slice_divisors(row_plan, lanes, plan.divisors)) return nullptr;
  if (has_first_codes) make_first_codes(p, lanes, plan);
  plan.narrow_planes =
      p.with_indices && may_follow_each_other(lanes, plan) ? ceil_div(kNarrowOutputs, plan.rows * plan.columns) : 0;
  place_scratch(lanes, size_of(p.dtype), p.with_indices, plan);
  if (plan.bytes > static_cast<std::size_t>(kMostStripBytes)) return nullptr;
  const std::string why = "vectors of columns down the rows of each plane, " + std::to_string(plan.band) +
                          " rows of outputs at a time, because its windows are small";
  const std::int64_t units = plan.planes * plan.parts;
  return make_unit_kernel(described, std::move(plan), units, function, why);
}

}  // namespace cenote::simd
