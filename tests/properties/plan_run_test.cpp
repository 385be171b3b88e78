// Plan::run's promises to engines: it allocates nothing, and one plan serves many threads at once.
#include "problems/buffer.hpp"
#include "problems/data.hpp"
#include "problems/threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define CENOTE_COUNTS_MALLOC 0  // a sanitizer brings its own allocator
#else
#define CENOTE_COUNTS_MALLOC 1
#endif

namespace {

std::atomic<std::int64_t> g_allocations{0};

}  // namespace

// Under a sanitizer only `new` is counted; otherwise everything that ends in malloc, in whichever thread.
#if CENOTE_COUNTS_MALLOC
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t size) { return ++g_allocations, __libc_malloc(size); }
void* calloc(std::size_t count, std::size_t size) { return ++g_allocations, __libc_calloc(count, size); }
void* realloc(void* old, std::size_t size) { return ++g_allocations, __libc_realloc(old, size); }
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return ++g_allocations, __libc_memalign(alignment, size);
}
int posix_memalign(void** result, std::size_t alignment, std::size_t size) {
  *result = (++g_allocations, __libc_memalign(alignment, size));
  return *result == nullptr ? 12 : 0;
}
}
#else
void* operator new(std::size_t size) {
  ++g_allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace cenote::testing {
namespace {

constexpr const char* kLines[] = {
    "max2d f32 nchw n2c5 h30w31 k3 s2 p1",
    "max2d f32 nhwc n2c19 h30w31 k3 s2 p1",
    "max2d f32 strided n2c5 h30w31 k3 s2 p1",
    "max2d i8 nchw n2c5 h40w41 k13 s1 p6",
    "max3d bf16 ndhwc n1c5 d8h9w10 k3 s2 p1 d2",
    "min1d f64 ncw n2c5 w301 k5",
    "avg2d f32 nchw n2c5 h30w31 k3 s2 p1",
    "avg2d f16 nhwc n2c19 h30w31 k13 s1 p6 nopad",
    "sum3d i32 ncdhw n1c5 d8h9w10 k2",
    "lp2d f32 nchw n2c5 h30w31 k3 s2 norm3",
    "amax2d f32 nchw n2c5 h30w31 out7",
    "aavg2d f32 nhwc n2c19 h30w31 out1",
    "fmax2d f32 nchw n2c5 h30w31 k2 out9x8",
    "unpool2d f32 nchw n2c5 h15w16 k2",
    "max2d f32 flipped n2c5 h30w31 k3 s2 p1",
    "avg2d bf16 broadcast n2c5 h30w31 k3 s1",
    "avg1d f32 ncw n8c8 w40 k4",
    "avg3d f32 ndhwc n2c5 d4h8w9 k1x2x2",
    "avg2d bf16 nchw n2c9 h40w70 k2x3",
    "lp2d f16 nchw n2c9 h40w70 k3x2 s2x3 norm2",
};

/// A plan with memory for everything it may touch.
struct Prepared {
  Prepared(const std::string& line, Pass pass)
      : problem(parse_problem(line)),
        plan(make(problem, pass)),
        input(plan.input()),
        output(plan.output()),
        indices(plan.indices()),
        samples(plan.random_samples()),
        grad_output(plan.grad_output()),
        grad_input(plan.grad_input()) {
    Random random(3);
    fill(input, random, 0, 4);
    fill(grad_output, random, 0, 4);
    fill(samples, random, 0, 0);
    // Saved indices: a backward skips -1, "no element"; every place of an unpool's plane is a valid one.
    fill(indices, random, pass == Pass::backward ? -1 : 0, pass == Pass::backward ? -1 : 9);
  }

  static Plan make(const Problem& problem, Pass pass) {
    PoolSpec spec = problem.spec;
    spec.return_indices = true;
    spec.index_kind = IndexKind::flat32;
    return Plan::make(pass, describe(problem.layout, problem.dtype, problem.shape, spec.dims, problem.seed), spec);
  }

  static void fill(Buffer& buffer, Random& random, std::int64_t low, std::int64_t high) {
    Integers values;
    for (std::int64_t i = 0; i < buffer.desc().numel(); ++i) values.push_back(random.between(low, high));
    buffer.store(values);
  }

  RunArgs args(const Executor& executor) {
    RunArgs run;
    run.input = input.data();
    run.output = output.data();
    run.indices = indices.data();
    run.saved_indices = indices.data();
    run.random_samples = samples.data();
    run.grad_output = grad_output.data();
    run.grad_input = grad_input.data();
    run.executor = &executor;
    return run;
  }

  Problem problem;
  Plan plan;
  Buffer input, output, indices, samples, grad_output, grad_input;
};

bool has_backward(const Problem& problem) { return is_floating(problem.dtype) && problem.spec.op != Op::max_unpool; }

TEST(PlanRun, AllocatesNothing) {
  for (const char* line : kLines) {
    for (Pass pass : {Pass::forward, Pass::backward}) {
      if (pass == Pass::backward && !has_backward(parse_problem(line))) continue;
      Prepared prepared(line, pass);
      const RunArgs args = prepared.args(serial_executor());
      const std::int64_t before = g_allocations;
      const Status first = prepared.plan.run(args), second = prepared.plan.run(args);
      const std::int64_t after = g_allocations;
      EXPECT_TRUE(first.ok() && second.ok()) << line << ": " << first.message();
      EXPECT_EQ(after - before, 0) << line << (pass == Pass::forward ? " forward" : " backward");
    }
  }
}

/// Were the counter deaf, the test above could not fail.
TEST(PlanRun, CountsAllocationsAtAll) {
  const std::int64_t before = g_allocations;
  const Buffer buffer(TensorDesc{DType::f32, {3, 4}, {}, cpu});
  EXPECT_GT(g_allocations, before);
}

/// One plan, eight threads, each with its own memory: every thread gets the same bytes as a thread alone.
TEST(PlanRun, ServesManyThreadsAtOnce) {
  for (const char* line : kLines) {
    Prepared shared(line, Pass::forward);
    const Threads two(2);
    ASSERT_TRUE(shared.plan.run(shared.args(serial_executor())).ok()) << line;
    const auto expected = shared.output.load<double>();
    const auto expected_indices = shared.indices.load<std::int64_t>();
    const bool written = has_indices(shared.problem.spec.op) && shared.problem.spec.op != Op::max_unpool;
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        Buffer output(shared.plan.output()), indices(shared.plan.indices());
        for (int i = 0; i < 20; ++i) {
          RunArgs args = shared.args(t % 2 == 0 ? serial_executor() : static_cast<const Executor&>(two));
          args.output = output.data();
          args.indices = indices.data();
          if (!shared.plan.run(args).ok() || output.load<double>() != expected) ++wrong;
          if (written && indices.load<std::int64_t>() != expected_indices) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0) << line;
  }
}

/// Room for indices must not be what decides how large planes are pooled.
TEST(PlanRun, PoolsLargePlanesWithIndicesAsItDoesSmallOnes) {
  const auto way = [](DType dtype, Shape shape, std::int64_t kernel, std::int64_t stride) {
    const auto input = TensorDesc::contiguous(dtype, shape);
    const Plan plan = Plan::max_pool<2>(input, {.kernel_size = kernel, .stride = stride, .return_indices = true});
    return plan.explain().substr(0, plan.explain().find(','));
  };
  for (const DType dtype : {DType::f32, DType::f16, DType::f64}) {
    EXPECT_EQ(way(dtype, {1, 8, 2060, 2060}, 3, 2), way(dtype, {8, 8, 300, 300}, 3, 2)) << name_of(dtype);
    EXPECT_EQ(way(dtype, {1, 8, 1100, 1100}, 3, 1), way(dtype, {8, 8, 300, 300}, 3, 1)) << name_of(dtype);
  }
}

}  // namespace
}  // namespace cenote::testing
