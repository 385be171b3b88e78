// The interface between plan and backends: a Described problem in, something that runs out.
#pragma once

#include "geometry/problem.hpp"

#include <cenote/plan.hpp>

#include <memory>
#include <string>

namespace cenote {

/// A problem bound to the code that solves it. Immutable; run() may be called from many threads at once.
class Kernel {
 public:
  virtual ~Kernel() = default;

  /// The plan has checked that every buffer needed is there and that none overlap.
  virtual Status run(const RunArgs& args) const noexcept = 0;

  /// What earlier asynchronous runs found wrong with their data and no call has returned yet.
  virtual Status check() const noexcept { return {}; }

  std::string target;   // "AVX3", "cuda"
  std::string explain;  // which algorithm, and why
};

/// Null and a failed status where the backend cannot do it (no such target, no device, no memory).
std::unique_ptr<Kernel> make_cpu_kernel(const Described& described, const PlanOptions& options, Status& status);
std::unique_ptr<Kernel> make_cuda_kernel(const Described& described, const PlanOptions& options, Status& status);

}  // namespace cenote
