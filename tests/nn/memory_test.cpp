// What the tape keeps: one byte per output of a max pool, and nothing where no gradient is asked for.
#include "expect.hpp"

#include <cenote/functional.hpp>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::int64_t> tensor_bytes{0};

void* aligned(std::size_t size, std::align_val_t alignment) noexcept {
  const auto unit = static_cast<std::size_t>(alignment);
  return std::aligned_alloc(unit, (size + unit - 1) / unit * unit);
}
}  // namespace

// Tensors are the ones that allocate with alignment and without exceptions: count those.
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  tensor_bytes += static_cast<std::int64_t>(size);
  return aligned(size, alignment);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  if (void* data = aligned(size, alignment)) return data;
  throw std::bad_alloc();
}
void operator delete(void* data, std::align_val_t) noexcept { std::free(data); }
void operator delete(void* data, std::size_t, std::align_val_t) noexcept { std::free(data); }

namespace cenote::test {
namespace {

template <class Call>
std::int64_t bytes_of(const Call& call) {
  const std::int64_t before = tensor_bytes;
  const Tensor result = call();
  return tensor_bytes - before;
}

TEST(Memory, OfAMaxPool) {
  const std::int64_t outputs = 32 * 32;
  Tensor x = randn({1, 1, 64, 64}, {.seed = 1});
  const auto pool = [&] { return functional::max_pool2d(x, {.kernel_size = 2}); };
  EXPECT_EQ(bytes_of(pool), outputs * 4) << "no gradient: the values and nothing else";
  x.set_requires_grad();
  EXPECT_EQ(bytes_of(pool), outputs * (4 + 1)) << "with a gradient: one byte more per value";
  {
    const NoGradGuard guard;
    EXPECT_EQ(bytes_of(pool), outputs * 4);
  }
  EXPECT_EQ(bytes_of([&] { return functional::avg_pool2d(x, {.kernel_size = 2}); }), outputs * 4)
      << "an average saves nothing";
}

TEST(Memory, OfABackward) {
  Tensor x = randn({1, 1, 64, 64}, {.seed = 1, .requires_grad = true});
  const Tensor y = functional::max_pool2d(x, {.kernel_size = 2});
  const Tensor ones = ones_like(y);
  const std::int64_t before = tensor_bytes;
  y.backward(ones);
  EXPECT_EQ(tensor_bytes - before, 64 * 64 * 4) << "the leaf takes the gradient over without a copy";
}

}  // namespace
}  // namespace cenote::test
