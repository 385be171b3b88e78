// A problem cut into rows, with the functions that fold them.
#pragma once

#include "cpu/kernels.hpp"
#include "plan/kernel.hpp"

#include <memory>
#include <optional>
#include <string>

namespace cenote::simd {

/// Rows of one problem, whatever its op and pass. Immutable; run() allocates nothing.
class RowWork {
 public:
  /// Nothing where the row kernels cannot number the rows, or another way is faster.
  static std::optional<RowWork> make(const Problem& problem, const RowKernels& kernels);

  const RowPlan& plan() const { return plan_; }
  std::int64_t units() const { return plan_.units(); }
  std::size_t scratch_bytes() const;
  std::string explain() const;
  /// Whether indices are read, which run() must find `outputs` of in all.
  bool reads_indices() const { return task_ == RowTask::max_backward; }

  /// Units [begin, end). Returns how many indices were found in their windows; 0 where none are read.
  std::int64_t run(const RowPointers& pointers, std::int64_t begin, std::int64_t end, char* scratch) const;

 private:
  RowTask task_ = RowTask::fold;
  RowPlan plan_{};
  RowPlan forward_{};  // Lp backward: its sums are folded again
  FoldRowsFn fold_ = nullptr;
  SumBackwardFn sum_backward_ = nullptr;
  GatherRowsFn gather_ = nullptr;
};

/// The pointers of a run as the row kernels name them.
RowPointers row_pointers(const Problem& p, const RunArgs& args);

/// Ok where as many indices were found as there are outputs in `planes` planes; otherwise it is looked for what is wrong.
Status check_found(const Problem& p, std::int64_t found, std::int64_t planes, const void* indices) noexcept;

std::unique_ptr<Kernel> make_row_kernel(const Described& described, RowWork work);

}  // namespace cenote::simd
