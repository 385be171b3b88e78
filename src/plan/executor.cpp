#include <cenote/executor.hpp>

#if defined(_OPENMP)
#include <omp.h>

#include <algorithm>
#include <atomic>
#endif

namespace cenote {
namespace {

class SerialExecutor final : public Executor {
 public:
  int concurrency() const noexcept override { return 1; }
  void parallel_for(std::int64_t count, Body body, void* context) const noexcept override {
    for (std::int64_t i = 0; i < count; ++i) body(context, i);
  }
};

}  // namespace

const Executor& serial_executor() noexcept {
  static const SerialExecutor executor;
  return executor;
}

int OpenMPExecutor::concurrency() const noexcept {
#if defined(_OPENMP)
  return threads_ > 0 ? threads_ : omp_get_max_threads();
#else
  return 1;
#endif
}

void OpenMPExecutor::parallel_for(std::int64_t count, Body body, void* context) const noexcept {
#if defined(_OPENMP)
  const int threads = concurrency();
  if (threads > 1 && count > 1) {
    // Each thread begins with a stretch of its own, the same in every call, whose operands may still be in its caches; then it helps the others.
    struct alignas(64) Stretch {
      std::atomic<std::int64_t> next{0};
      std::int64_t end = 0;
    };
    constexpr int kMostStretches = 64;
    Stretch stretches[kMostStretches];
    const int used = static_cast<int>(std::min<std::int64_t>({threads, kMostStretches, count}));
    for (std::int64_t i = 0, first = 0; i < used; ++i) {
      stretches[i].next.store(first, std::memory_order_relaxed);
      stretches[i].end = first += count / used + (i < count % used ? 1 : 0);
    }
#pragma omp parallel num_threads(threads)
    for (int i = 0, own = omp_get_thread_num() % used; i < used; ++i) {
      Stretch& stretch = stretches[(own + i) % used];
      for (;;) {
        const std::int64_t piece = stretch.next.fetch_add(1, std::memory_order_relaxed);
        if (piece >= stretch.end) break;
        body(context, piece);
      }
    }
    return;
  }
#endif
  serial_executor().parallel_for(count, body, context);
}

const Executor& default_executor() noexcept {
  static const OpenMPExecutor executor;
  return executor;
}

}  // namespace cenote
