// What takes part in a comparison: cenote itself and each peer, behind one interface.
#pragma once

#include "suite.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace cenote::bench {

/// One row with its memory, the same for every competitor. Tensors are dense, in the row's layout, in PyTorch's logical order;
/// the indices are int64 in the layout of the values they belong to. Pointers a pass does not need may be null.
struct Workload {
  Row row;
  int threads = 1;
  const void* input = nullptr;
  void* output = nullptr;
  std::int64_t* indices = nullptr;
  const std::int64_t* saved_indices = nullptr;
  const void* grad_output = nullptr;
  void* grad_input = nullptr;

  const Geometry& geometry() const { return row.pool->geometry; }
  const PoolSpec& spec() const { return row.pool->spec; }
  bool channels_last() const { return row.layout == MemoryFormat::channels_last; }
};

/// A workload made ready: everything that can be done once has been done. Throws std::exception where a call fails.
class Call {
 public:
  virtual ~Call() = default;
  virtual void run() = 0;
  /// After a run that will be checked, never timed: rewrites results in the suite's conventions where the peer has its own.
  virtual void present_result() {}
};

class Competitor {
 public:
  virtual ~Competitor() = default;
  virtual std::string name() const = 0;     ///< as in the JSON: "torch"
  virtual std::string version() const = 0;  ///< for people
  /// Null where the competitor has no such operation. May throw std::exception to the same effect.
  virtual std::unique_ptr<Call> prepare(const Workload& workload) = 0;
  /// Thread pools spin for a while after a call before they sleep; the next competitor waits until they do.
  virtual std::chrono::milliseconds settles_in() const { return std::chrono::milliseconds(3); }
};

std::unique_ptr<Competitor> make_cenote();
/// What cenote's plan for this row says about itself.
std::string explain_plan(const Row& row);

}  // namespace cenote::bench
