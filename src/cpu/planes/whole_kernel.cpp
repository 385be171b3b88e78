#include "cpu/planes/whole_kernel.hpp"

#include "cpu/dense_planes.hpp"
#include "cpu/scratch.hpp"
#include "cpu/split.hpp"
#include "cpu/thresholds.hpp"

#include <algorithm>

namespace cenote::simd {
namespace {

class WholeKernel final : public Kernel {
 public:
  WholeKernel(const Described& described, const WholePlanes& plan, WholePlanesFn function)
      : plan_(plan),
        function_(function),
        forward_(described.problem.pass == Pass::forward),
        bytes_(described.bytes_moved),
        scratch_(slot_count(), static_cast<std::size_t>(kStreamedPiece) * size_of(described.problem.dtype) + 64) {
    explain = described.problem.reduction == Reduction::max ? "fold each plane in the lanes of a vector, then those"
              : forward_ ? "sum up the columns of each plane, then along them for several planes at once"
                         : "fill each plane with its share";
  }

  Status run(const RunArgs& args) const noexcept override {
    const RowPointers pointers{forward_ ? args.input : args.grad_output, forward_ ? args.output : args.grad_input,
                               args.indices, nullptr};
    split(args.executor, ceil_div(plan_.planes, plan_.group), bytes_, [&](std::int64_t begin, std::int64_t end) {
      const ScratchPool::Lease lease(scratch_);
      function_(plan_, pointers, begin, end, lease.data());
    });
    return {};
  }

 private:
  WholePlanes plan_;
  WholePlanesFn function_;
  bool forward_;
  std::int64_t bytes_;
  ScratchPool scratch_;
};

}  // namespace

std::unique_ptr<Kernel> make_whole_kernel(const Described& described, const RowKernels& kernels, const RowWork* rows) {
  const bool forward = described.problem.pass == Pass::forward;
  if (rows == nullptr || rows->plan().inner != 1) return nullptr;
  const RowPlan& row_plan = rows->plan();
  const Problem& p = row_plan.problem;
  const bool maxima = forward && p.reduction == Reduction::max && !p.absolute;
  const bool sums = p.reduction == Reduction::average || (forward && p.reduction == Reduction::sum);
  if (!maxima && !sums) return nullptr;
  const WholePlanesFn function = maxima ? kernels.max_planes : forward ? kernels.average_planes : kernels.spread_planes;
  const Axis &depth = p.axis[0], &height = p.axis[1], &width = p.axis[2];
  if (function == nullptr || !is_whole(depth) || !is_whole(height) || !is_whole(width)) return nullptr;
  const DensePlanes large = dense_planes(p, forward ? p.input : p.grad_input, true);
  const DensePlanes small = dense_planes(p, forward ? p.output : p.grad_output, false);
  WholePlanes plan{};
  plan.planes = p.batch * p.channels;
  plan.pitch = large.pitch;
  if (!large.dense || !small.dense || (plan.planes > 1 && small.pitch != 1)) return nullptr;
  plan.finds = maxima && p.with_indices;
  plan.index_dtype = p.index_dtype;
  const DensePlanes indices = dense_planes(p, p.indices, false);
  if (plan.finds && (!indices.dense || (plan.planes > 1 && indices.pitch != 1))) return nullptr;
  const bool shared = described.bytes_moved >= kSerialBytes;
  plan.group = shared ? std::clamp<std::int64_t>(plan.planes / kFewestUnits, 1, kWholeLanes) : kWholeLanes;
  if (!forward) {
    // Few planes are shared between threads row by row.
    if (ceil_div(plan.planes, kWholeLanes) < kFewestUnits && shared) return nullptr;
    if (large.count * static_cast<std::int64_t>(size_of(p.dtype)) > kBlockBytes) return nullptr;
  }
  plan.rows = depth.input * height.input;
  plan.width = width.input;
  plan.extent = plan.pitch * (plan.planes - 1) + large.count;
  plan.divisor = static_cast<double>(p.reduction == Reduction::sum ? 1
                                     : p.divisor_override != 0     ? p.divisor_override
                                                                   : large.count);
  plan.sums_in_lanes = row_plan.sums_in_lanes;
  plan.streams = described.bytes_moved >= kStreamBytes;
  const auto lanes = static_cast<std::int64_t>(kernels.vector_bytes / kernels.fold_lane);
  if (maxima && large.count < lanes) return nullptr;
  return std::make_unique<WholeKernel>(described, plan, function);
}

}  // namespace cenote::simd
