#include "problems/threads.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace cenote::testing {

void Threads::parallel_for(std::int64_t count, Body body, void* context) const noexcept {
  std::atomic<std::int64_t> next{0};
  const auto work = [&] {
    for (std::int64_t i = next++; i < count; i = next++) body(context, i);
  };
  std::vector<std::thread> others;
  for (std::int64_t i = 1; i < std::min<std::int64_t>(count_, count); ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
}

}  // namespace cenote::testing
