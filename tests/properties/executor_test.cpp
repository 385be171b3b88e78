// Executors: every piece of a loop is run once, whatever the number of pieces and of threads.
#include <cenote/executor.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <vector>

namespace cenote {
namespace {

/// How often each of `count` pieces is run.
std::vector<int> times_run(const Executor& executor, std::int64_t count) {
  std::vector<std::atomic<int>> times(static_cast<std::size_t>(count));
  executor.parallel_for(
      count,
      [](void* context, std::int64_t i) noexcept {
        ++(*static_cast<std::vector<std::atomic<int>>*>(context))[static_cast<std::size_t>(i)];
      },
      &times);
  return {times.begin(), times.end()};
}

TEST(Executor, RunsEveryPieceOnce) {
  for (const int threads : {0, 1, 2, 3, 7, 100}) {
    const OpenMPExecutor executor(threads);
    EXPECT_GE(executor.concurrency(), 1);
    for (const std::int64_t count : {0, 1, 2, 3, 8, 63, 64, 65, 1000}) {
      EXPECT_EQ(times_run(executor, count), std::vector<int>(static_cast<std::size_t>(count), 1))
          << threads << " threads, " << count << " pieces";
    }
  }
  EXPECT_EQ(times_run(serial_executor(), 17), std::vector<int>(17, 1));
}

/// Within one of its own pieces there are no more threads to be had: the one that is there runs what others would begin with.
TEST(Executor, RunsEveryPieceOnceWithinAnother) {
  const OpenMPExecutor executor(3);
  static std::atomic<int> wrong;
  wrong = 0;
  executor.parallel_for(
      5,
      [](void* context, std::int64_t) noexcept {
        const std::vector<int> times = times_run(*static_cast<const Executor*>(context), 11);
        if (std::any_of(times.begin(), times.end(), [](int t) { return t != 1; })) ++wrong;
      },
      const_cast<OpenMPExecutor*>(&executor));
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace cenote
