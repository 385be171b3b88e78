#include <cenote/executor.hpp>

#if defined(_OPENMP)
#include <omp.h>
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
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (std::int64_t i = 0; i < count; ++i) body(context, i);
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
