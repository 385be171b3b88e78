// Runs a scatter: cuts it for the executor and reports wrong indices.
#include "cpu/scatter_kernel.hpp"

#include "cpu/check_indices.hpp"
#include "cpu/scratch.hpp"
#include "cpu/split.hpp"

#include <atomic>
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

}  // namespace

std::unique_ptr<Kernel> make_scatter_kernel(const Described& described, const RowKernels& kernels,
                                            const Target& target) {
  const Problem& p = described.problem;
  if (p.pass != Pass::backward || !p.with_indices || p.op == Op::fractional_max_pool || p.op == Op::max_unpool)
    return nullptr;
  ScatterPlan plan;
  if (!make_scatter_plan(described, kernels.fold_lane, plan)) return nullptr;
  plan.by_taps = plan.by_taps && kernels.vector_bytes > 1;  // there must be lanes to look at them in
  std::string explain = std::string("scatter: each gradient is added where its index points, ") +
                        (plan.in_place ? "in place; " : "in scratch; ") +
                        (plan.by_taps ? "columns whose taps are looked at together; " : "") +
                        std::to_string(plan.bands.size()) + (plan.bands.size() == 1 ? " band" : " bands") + " of " +
                        std::to_string(plan.bands.front().slices * plan.slice) + " positions";
  if (plan.chunks > 1) explain += ", " + std::to_string(plan.chunk) + " channels at a time";
  auto kernel = std::make_unique<ScatterKernel>(described, std::move(plan), kernels.scatter_add, locate(target.index));
  kernel->explain = std::move(explain);
  return kernel;
}

}  // namespace cenote::simd
