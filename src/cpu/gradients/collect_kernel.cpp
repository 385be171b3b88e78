#include "cpu/gradients/collect_kernel.hpp"

#include "cpu/dense_planes.hpp"
#include "cpu/thresholds.hpp"
#include "cpu/unit_kernel.hpp"

#include <algorithm>
#include <utility>

namespace cenote::simd {
namespace {

/// What CollectPlane is compiled for: 2 rows one apart, 3 one or two, 4 two apart, as many outputs along the row as down the rows.
bool has_small_windows(const Axis& height, const Axis& width) {
  auto overlap = [](const Axis& axis) { return ceil_div(axis.kernel, axis.stride); };
  const bool rows = (height.stride == 1 && (height.kernel == 2 || height.kernel == 3)) ||
                    (height.stride == 2 && (height.kernel == 3 || height.kernel == 4));
  const bool even = width.rule == WindowRule::sliding && height.rule == WindowRule::sliding && width.dilation == 1 &&
                    height.dilation == 1;
  return even && rows && width.kernel <= 4 && overlap(width) == overlap(height);
}

/// The lanes of each vector take theirs `together` from one vector of outputs, else from one for each of `most`. False where one does not hold them.
bool make_vectors(std::int64_t lanes, bool together, CollectPlan& plan) {
  const Axis& width = plan.width;
  plan.together = together;
  for (std::int64_t next = 0; next < width.input; next += lanes) {
    const std::int64_t column = larger(0, smaller(next, width.input - lanes));  // the ragged end from its last vector
    plan.columns.push_back(column);
    std::int64_t first[4];  // output that a lane takes
    std::fill_n(first, 4, width.output - 1);
    const auto seen_by = [&](std::int64_t x) { return x < width.input ? cover(width, x) : Cover{}; };
    for (std::int64_t x = column; x < column + lanes; ++x) {
      const Cover seen = seen_by(x);
      for (std::int64_t m = 0; m < seen.count; ++m) {
        std::int64_t& least = first[together ? 0 : m];
        least = smaller(least, seen.first + m);
      }
    }
    for (std::int64_t m = 0; m < plan.most; ++m) {
      const std::int64_t from = first[together ? 0 : m];
      plan.firsts.push_back(from);
      for (std::int64_t x = column; x < column + lanes; ++x) {
        const Cover seen = seen_by(x);
        const bool some = m < seen.count;
        if (some && seen.first + m - from >= lanes) return false;
        plan.lanes.push_back(static_cast<std::int32_t>(some ? seen.first + m - from : 0));
        plan.numbers.push_back(static_cast<std::int32_t>(some ? seen.first_tap - m * seen.tap_step : kNoNumber));
      }
    }
  }
  return true;
}

}  // namespace

std::unique_ptr<Kernel> make_collect_kernel(const Described& described, const RowKernels& kernels) {
  const Problem& p = described.problem;
  if (kernels.collect_planes == nullptr || p.pass != Pass::backward || !p.with_indices || p.absolute ||
      p.op == Op::fractional_max_pool || p.op == Op::max_unpool || p.index_dtype != DType::u8)
    return nullptr;
  CollectPlan plan{};
  plan.height = simplified(p.axis[1]);
  plan.width = simplified(p.axis[2]);
  const Axis &height = plan.height, &width = plan.width;
  if (p.axis[0].input != 1 || p.axis[0].output != 1 || p.axis[0].kernel != 1 || !has_small_windows(height, width))
    return nullptr;
  const DensePlanes source = dense_planes(p, p.grad_output, false), indices = dense_planes(p, p.indices, false);
  const DensePlanes target = dense_planes(p, p.grad_input, true);
  if (!source.dense || !indices.dense || !target.dense || described.bytes_moved >= kStreamBytes) return nullptr;
  if (source.count < kLeastCollected || source.count > kMostCollected) return nullptr;

  plan.planes = p.batch * p.channels;
  plan.source_pitch = source.pitch;
  plan.target_pitch = target.pitch;
  plan.index_pitch = indices.pitch;
  plan.source_extent = source.pitch * (plan.planes - 1) + source.count;
  plan.index_extent = indices.pitch * (plan.planes - 1) + indices.count;
  plan.most = ceil_div(width.kernel, width.stride);
  const auto lanes = static_cast<std::int64_t>(kernels.vector_bytes / sizeof(float));
  if (!make_vectors(lanes, height.kernel != 2, plan)) return nullptr;
  for (std::int64_t oh = 0; oh < height.output; ++oh) {
    for (std::int64_t ow = 0; ow < width.output; ++ow) {
      const Window h = window(height, oh), w = window(width, ow);
      std::uint32_t bits = 0;
      for (std::int64_t y = h.skipped; y < h.skipped + h.count; ++y) {
        for (std::int64_t x = w.skipped; x < w.skipped + w.count; ++x) bits |= 1U << (y * width.kernel + x);
      }
      plan.left.push_back(bits);
    }
  }
  const auto line = [](std::int64_t bytes) { return static_cast<std::size_t>(bytes + 63) / 64 * 64; };
  const std::int64_t copied = source.count + lanes;
  plan.taps_at = plan.gradients_at + line(copied * static_cast<std::int64_t>(size_of(p.dtype)));
  plan.bytes = plan.taps_at + line(copied);
  const std::int64_t units = plan.planes;
  return make_unit_kernel(
      described, std::move(plan), units, kernels.collect_planes,
      "each vector of inputs adds up the gradients whose index names it, down the rows, because its windows are "
      "small and few outputs see it");
}

}  // namespace cenote::simd
