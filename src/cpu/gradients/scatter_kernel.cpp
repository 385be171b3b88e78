// Runs a scatter: cuts it for the executor and reports wrong indices.
#include "cpu/gradients/scatter_kernel.hpp"

#include "cpu/check_indices.hpp"
#include "cpu/scratch.hpp"
#include "cpu/split.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

namespace cenote::simd {
namespace {

class ScatterKernel final : public Kernel {
 public:
  ScatterKernel(const Described& described, ScatterPlan plan, ScatterFn scatter, LocateFn locate)
      : problem_(described.problem),
        plan_(std::move(plan)),
        scatter_(scatter),
        locate_(locate),
        bytes_(described.bytes_moved),
        empty_windows_(has_empty_windows(problem_)),
        scratch_(slot_count(), plan_.bytes) {}

  Status run(const RunArgs& args) const noexcept override {
    const Problem& p = problem_;
    const ScatterPointers pointers{args.saved_indices, args.grad_output, args.grad_input};
    std::atomic<bool> valid{true};
    split(args.executor, plan_.units(), bytes_, [&](std::int64_t begin, std::int64_t end) {
      const ScratchPool::Lease lease(scratch_);
      if (!scatter_(plan_, locate_, pointers, begin, end, lease.data())) valid.store(false, std::memory_order_relaxed);
    });
    // A window without taps reaches into no band, so that nothing above has looked at its index.
    if (valid && (!empty_windows_ || empty_windows_are_none(p, args.saved_indices))) return {};
    return find_invalid_index(p, args.saved_indices);
  }

 private:
  Problem problem_;
  ScatterPlan plan_;
  ScatterFn scatter_;
  LocateFn locate_;
  std::int64_t bytes_;
  bool empty_windows_;
  ScratchPool scratch_;
};

/// Whether no element is seen by two outputs, so that gradients are only moved.
bool share_nothing(const Problem& p) {
  return std::all_of(std::begin(p.axis), std::end(p.axis), [](const Axis& given) {
    const Axis axis = simplified(given);
    return axis.output == 1 || (axis.rule == WindowRule::sliding && axis.dilation == 1 && axis.kernel <= axis.stride);
  });
}

}  // namespace

std::unique_ptr<Kernel> make_scatter_kernel(const Described& described, const RowKernels& kernels,
                                            const Target& target) {
  const Problem& p = described.problem;
  if (p.pass != Pass::backward || !p.with_indices || p.op == Op::fractional_max_pool || p.op == Op::max_unpool)
    return nullptr;
  // Halves that are only moved stay halves, in place: nothing is converted. (Two threads, bf16, channels-last: windows of whole planes of
  // 28 x 28, 6.4 MB, 131 us in f32 and 26 so, 6x6/6 over 60 x 60, 7.7 MB, 169 and 55; planar 175 and 65.)
  const bool moved = kernels.scatter_moved != nullptr && share_nothing(p);
  ScatterPlan plan;
  if (!make_scatter_plan(described, moved ? size_of(p.dtype) : kernels.fold_lane, plan)) return nullptr;
  plan.by_taps = plan.by_taps && kernels.vector_bytes > 1;  // there must be lanes to look at them in
  std::string explain = std::string("scatter: each gradient is added where its index points, ") +
                        (plan.in_place ? "in place; " : "in scratch; ") +
                        (plan.by_taps ? "columns whose taps are looked at together; " : "") +
                        std::to_string(plan.bands.size()) + (plan.bands.size() == 1 ? " band" : " bands") + " of " +
                        std::to_string(plan.bands.front().slices * plan.slice) + " positions";
  if (plan.chunks > 1) explain += ", " + std::to_string(plan.chunk) + " channels at a time";
  auto kernel = std::make_unique<ScatterKernel>(
      described, std::move(plan), moved ? kernels.scatter_moved : kernels.scatter_add, locate(target.index));
  kernel->explain = std::move(explain);
  return kernel;
}

}  // namespace cenote::simd
