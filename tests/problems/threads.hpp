// An Executor a caller might bring: plain std::threads, as many as asked for.
#pragma once

#include <cenote/executor.hpp>

namespace cenote::testing {

class Threads final : public Executor {
 public:
  explicit Threads(int count) : count_(count) {}
  int concurrency() const noexcept override { return count_; }
  void parallel_for(std::int64_t count, Body body, void* context) const noexcept override;

 private:
  int count_;
};

/// One thread that takes the pieces from the last to the first: what a piece writes beyond its own is not overwritten by the next.
class LastFirst final : public Executor {
 public:
  int concurrency() const noexcept override { return 3; }
  void parallel_for(std::int64_t count, Body body, void* context) const noexcept override {
    while (count > 0) body(context, --count);
  }
};

}  // namespace cenote::testing
