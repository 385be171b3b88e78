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

  /// Units [begin, end).
  void run(const RowPointers& pointers, std::int64_t begin, std::int64_t end, char* scratch) const;

 private:
  RowTask task_ = RowTask::fold;
  RowPlan plan_{};
  RowPlan forward_{};  // Lp backward: its sums are folded again
  FoldRowsFn fold_ = nullptr;
  SumBackwardFn sum_backward_ = nullptr;
};

/// The pointers of a run as the row kernels name them.
RowPointers row_pointers(const Problem& p, const RunArgs& args);

std::unique_ptr<Kernel> make_row_kernel(const Described& described, RowWork work);

}  // namespace cenote::simd
