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

}  // namespace cenote::testing
