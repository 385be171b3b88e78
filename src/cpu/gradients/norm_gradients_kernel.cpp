#include "cpu/gradients/norm_gradients_kernel.hpp"

#include "cpu/gradients/norm_gradients.hpp"
#include "cpu/thresholds.hpp"
#include "cpu/unit_kernel.hpp"

#include <algorithm>
#include <utility>

namespace cenote::simd {
namespace {

/// Windows that follow each other from the first element on and share none.
bool are_apart(const Axis& axis) {
  return axis.rule == WindowRule::sliding && axis.pad_begin == 0 && (axis.dilation == 1 || axis.kernel == 1) &&
         axis.kernel <= axis.stride && (axis.output - 1) * axis.stride < axis.input;
}

}  // namespace

std::unique_ptr<Kernel> make_norm_gradients_kernel(const Described& described, const Target& target,
                                                   const RowWork* rows) {
  if (rows == nullptr || described.problem.pass != Pass::backward) return nullptr;
  const RowPlan& row_plan = rows->plan();
  const Problem& p = row_plan.problem;
  if (p.reduction != Reduction::power || p.norm_type != 2 || p.dtype != DType::f32) return nullptr;
  const Axis &depth = p.axis[0], &height = p.axis[1], &width = p.axis[2];
  const bool columns = row_plan.inner > 1;
  const auto lanes = static_cast<std::int64_t>(kernels_of(p.dtype, target)->vector_bytes / sizeof(float));
  const NormGradientsFn function = norm_gradients(target.index, columns);
  if (function == nullptr || !are_apart(depth) || !are_apart(height) || !are_apart(width)) return nullptr;
  if (depth.output * depth.kernel != depth.input || depth.kernel != depth.stride) return nullptr;
  // A window's rows and those behind it that none sees. More taps beside each other are summed up in another order.
  const std::int64_t most_rows = depth.kernel * (2 * height.stride);
  if (most_rows > kRowBlock || width.kernel >= kSpannedTaps) return nullptr;
  if (columns ? row_plan.inner < lanes : width.stride != 2 && width.stride != 4) return nullptr;
  if (!row_plan.source.dense || !row_plan.target.dense || !row_plan.input.dense) return nullptr;
  constexpr double kExact = 1 << 24;  // whole numbers that f32 holds
  if (row_plan.power_factor > kExact || row_plan.row_factors[0].empty() || row_plan.row_factors[1].empty())
    return nullptr;

  NormGradientsPlan plan{};
  plan.source = row_plan.source;
  plan.target = row_plan.target;
  plan.input = row_plan.input;
  plan.minors = row_plan.outer_minor_count;
  plan.channels = row_plan.inner;
  plan.slices = depth.output;
  plan.rows = height.output;
  plan.columns = width.output;
  plan.deep = depth.kernel;
  plan.high = height.kernel;
  plan.wide = width.kernel;
  plan.stride = height.stride;
  plan.apart = width.stride;
  plan.heights = height.input;
  plan.width = width.input;
  plan.whole = static_cast<float>(row_plan.power_factor);
  for (std::size_t a = 0; a < 2; ++a)
    plan.row_taps[a].assign(row_plan.row_factors[a].begin(), row_plan.row_factors[a].end());
  for (std::int64_t x = 0; x < width.output; ++x) {
    plan.column_taps.push_back(static_cast<float>(row_plan.column_factor.empty()
                                                      ? row_plan.uniform_factor
                                                      : row_plan.column_factor[static_cast<std::size_t>(x)]));
  }
  for (const float d : plan.row_taps[0]) {
    for (const float h : plan.row_taps[1]) {
      plan.cut_off = plan.cut_off || d * h * plan.column_taps.front() != plan.whole ||
                     d * h * plan.column_taps.back() != plan.whole;
    }
  }
  plan.column_taps.resize(plan.column_taps.size() + static_cast<std::size_t>(lanes), 1);
  plan.fetches = described.bytes_moved >= kFetchedBytes && depth.kernel == 1;
  plan.streams = row_plan.streams && row_plan.whole_lines;
  const std::int64_t row_bytes = plan.width * static_cast<std::int64_t>(sizeof(float));
  // Rows that are put together follow each other, and stay in L1.
  const bool together = plan.deep == 1 && plan.target.height == plan.width && height.stride * row_bytes <= kTileBytes;
  plan.paced = {!columns && together && described.bytes_moved >= kStreamBytes, row_bytes,
                larger(height.stride, kStagedBytes / larger(1, row_bytes))};
  plan.bytes = plan.paced.bytes();
  const std::int64_t units = plan.units(p.batch);
  return make_unit_kernel(described, std::move(plan), units, function,
                          "each window's sum again and the gradients of its elements right after, because no two "
                          "windows share one");
}

}  // namespace cenote::simd
