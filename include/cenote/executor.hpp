// Who runs the pieces of a plan: the caller's threads, OpenMP's, or nobody but the calling thread.
#pragma once

#include <cenote/export.hpp>

#include <cstdint>

namespace cenote {

/// A parallel loop. Engines with a thread pool of their own derive from it and hand it to Plan::run.
class CENOTE_API Executor {
 public:
  virtual ~Executor() = default;

  /// How many pieces can run at once; the plan cuts its work by it. The result does not depend on it.
  virtual int concurrency() const noexcept = 0;

  /// Calls body(context, i) once for every i in [0, count), in any order and on any threads, and returns when all are done.
  /// The body does not throw.
  using Body = void (*)(void* context, std::int64_t i) noexcept;
  virtual void parallel_for(std::int64_t count, Body body, void* context) const noexcept = 0;
};

/// Runs everything on the calling thread.
CENOTE_API const Executor& serial_executor() noexcept;

/// OpenMP with `threads` threads; 0: as many as OpenMP says (OMP_NUM_THREADS). Serial in a build without OpenMP.
class CENOTE_API OpenMPExecutor final : public Executor {
 public:
  explicit OpenMPExecutor(int threads = 0) noexcept : threads_(threads) {}
  int concurrency() const noexcept override;
  void parallel_for(std::int64_t count, Body body, void* context) const noexcept override;

 private:
  int threads_;
};

/// What is used where none is given: OpenMP with its default number of threads.
CENOTE_API const Executor& default_executor() noexcept;

}  // namespace cenote
