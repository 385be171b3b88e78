#include "cpu/rows/row_work.hpp"

#include "cpu/check_indices.hpp"
#include "cpu/scratch.hpp"
#include "cpu/split.hpp"

#include <atomic>
#include <utility>

namespace cenote::simd {
namespace {

struct Fold {
  FoldRowsFn function;
  std::size_t lane;
};

/// The largest sum of `taps` values of an integer type that still fits in 32 bits.
bool sums_fit_in_32_bits(const Problem& p) {
  std::int64_t taps = 1;
  for (const Axis& axis : p.axis) taps *= smaller(axis.kernel, axis.input);
  const int bits = static_cast<int>(size_of(p.dtype)) * 8;
  return bits < 32 && taps < (std::int64_t{1} << (31 - bits));
}

Fold choose_fold(const Problem& p, const RowKernels& k) {
  switch (p.reduction) {
    case Reduction::max:
      if (p.absolute) return {k.max_absolute, k.max_lane};
      return p.with_indices ? Fold{k.max_indexed, k.fold_lane} : Fold{k.max, k.max_lane};
    case Reduction::min:
      if (p.absolute) return {k.min_absolute, k.max_lane};
      return p.with_indices ? Fold{k.min_indexed, k.fold_lane} : Fold{k.min, k.max_lane};
    case Reduction::sum: return {k.sum, k.fold_lane};  // integers wrap: low bits are all that is kept
    case Reduction::average:
      if (is_floating(p.dtype) || sums_fit_in_32_bits(p)) return {k.sum, k.fold_lane};
      return {k.sum_wide, k.wide_lane};
    case Reduction::power: return {k.power, k.fold_lane};
  }
  return {};
}

/// Why the columns of a row are folded as they are.
std::string reason_of(const RowPlan& plan) {
  const Axis& axis = plan.problem.axis[2];
  const std::string stride = "stride " + std::to_string(axis.stride);
  switch (plan.columns) {
    case Columns::consecutive: return "stride 1 makes neighbouring outputs read neighbouring columns";
    case Columns::strided: return "planar rows with " + stride + " can be deinterleaved";
    case Columns::phased: return "planar rows with " + stride + " can be interleaved from their phases";
    case Columns::per_channel: return std::to_string(plan.inner) + " channels fill whole vectors";
    case Columns::spanned:
      return "windows of up to " + std::to_string(plan.table.most) + " taps are worth a vector each";
    case Columns::gathered:
      return plan.inner > 1 ? std::to_string(plan.inner) + " channels do not fill a vector"
                            : "short windows follow each other at no step that loads could follow";
  }
  return {};
}

class RowKernel final : public Kernel {
 public:
  RowKernel(const Described& described, RowWork work)
      : work_(std::move(work)), bytes_(described.bytes_moved), scratch_(slot_count(), work_.scratch_bytes()) {
    explain = work_.explain();
  }

  Status run(const RunArgs& args) const noexcept override {
    const RowPointers pointers = row_pointers(work_.plan().problem, args);
    std::atomic<std::int64_t> found{0};
    split(args.executor, work_.units(), bytes_, [&](std::int64_t begin, std::int64_t end) {
      const ScratchPool::Lease lease(scratch_);
      found.fetch_add(work_.run(pointers, begin, end, lease.data()), std::memory_order_relaxed);
    });
    const Problem& p = work_.plan().problem;
    return work_.reads_indices() ? check_found(p, found, p.batch * p.channels, pointers.indices) : Status{};
  }

 private:
  RowWork work_;
  std::int64_t bytes_;
  ScratchPool scratch_;
};

}  // namespace

std::optional<RowWork> RowWork::make(const Problem& p, const RowKernels& kernels) {
  RowWork work;
  const std::size_t vector = kernels.vector_bytes;
  const bool max = p.reduction == Reduction::max || p.reduction == Reduction::min;
  if (p.op == Op::fractional_max_pool || p.op == Op::max_unpool) return std::nullopt;
  if (p.pass == Pass::forward) {
    Fold fold = choose_fold(p, kernels);
    if (fold.function == nullptr) return std::nullopt;
    if (!make_row_plan(p, RowTask::fold, fold.lane, vector, work.plan_)) return std::nullopt;
    if (work.plan_.columns == Columns::gathered && fold.lane < 4) {
      // There is no gather of bytes: carry codes nobody asked for, in lanes that can be gathered.
      fold = {p.reduction == Reduction::min ? kernels.min_indexed : kernels.max_indexed, kernels.fold_lane};
      if (!make_row_plan(p, RowTask::fold, fold.lane, vector, work.plan_)) return std::nullopt;
    }
    work.fold_ = fold.function;
    return work;
  }
  if (max && p.absolute) return std::nullopt;
  if (max) {
    work.task_ = RowTask::max_backward;
    if (!p.with_indices || !make_row_plan(p, work.task_, kernels.fold_lane, vector, work.plan_)) return std::nullopt;
    work.gather_ = work.plan_.inner > 1 ? kernels.gather_columns : kernels.gather;
    if (work.gather_ == nullptr) return std::nullopt;
    return work;
  }
  work.task_ = RowTask::sum_backward;
  if (!make_row_plan(p, work.task_, kernels.fold_lane, vector, work.plan_)) return std::nullopt;
  const bool power = p.reduction == Reduction::power;
  // The forward's rows are cut like the backward's, whatever the input's layout.
  if (power && !make_row_plan(p, RowTask::fold, kernels.fold_lane, vector, work.forward_, work.plan_.inner)) {
    return std::nullopt;
  }
  work.sum_backward_ = power ? kernels.power_backward : kernels.sum_backward;
  return work;
}

std::size_t RowWork::scratch_bytes() const {
  // Lp backward: the forward's scratch and a row for its sums lie behind.
  return plan_.bytes + (forward_.bytes > 0 ? forward_.bytes + plan_.packed_pitch : 0);
}

std::int64_t RowWork::run(const RowPointers& pointers, std::int64_t begin, std::int64_t end, char* scratch) const {
  switch (task_) {
    case RowTask::fold: fold_(plan_, pointers, begin, end, scratch); return 0;
    case RowTask::sum_backward: sum_backward_(plan_, &forward_, pointers, begin, end, scratch); return 0;
    case RowTask::max_backward: return gather_(plan_, pointers, begin, end, scratch);
  }
  return 0;
}

Status check_found(const Problem& p, std::int64_t found, std::int64_t planes, const void* indices) noexcept {
  if (found == planes * p.axis[0].output * p.axis[1].output * p.axis[2].output) return {};
  return find_invalid_index(p, indices);
}

std::string RowWork::explain() const {
  const char* what = task_ == RowTask::sum_backward   ? "gather from the rows of grad_output"
                     : task_ == RowTask::max_backward ? "each input gathers from the outputs whose index points to it"
                     : plan_.direct || plan_.stencil  ? "fold each output straight from its taps"
                     : plan_.tall                     ? "fold down the rows in blocks, then along them"
                                                      : "fold down the rows, then along them";
  return std::string(what) + "; rows of " + (plan_.inner == 1 ? "single planes" : "channels-last columns") + " in " +
         std::to_string(plan_.tiles.size()) + (plan_.tiles.size() == 1 ? " tile; " : " tiles; ") +
         name_of(plan_.columns) + ", because " + reason_of(plan_);
}

RowPointers row_pointers(const Problem& p, const RunArgs& args) {
  if (p.pass == Pass::forward) return {args.input, args.output, p.with_indices ? args.indices : nullptr, nullptr};
  void* indices = p.with_indices ? const_cast<void*>(args.saved_indices) : nullptr;
  return {args.grad_output, args.grad_input, indices, args.input};
}

std::unique_ptr<Kernel> make_row_kernel(const Described& described, RowWork work) {
  return std::make_unique<RowKernel>(described, std::move(work));
}

}  // namespace cenote::simd
