// Tensors beyond 2^31 elements: in one plane, across the batch, in the output. Filled and checked on the device by two naive
// kernels of their own, since the host would take minutes.
#include "cuda/elsewhere.hpp"

#include <cuda_fp16.h>
#include <gtest/gtest.h>

namespace cenote::testing {
namespace {

__host__ __device__ std::uint8_t value_at(std::int64_t i) {
  auto x = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ULL;
  return static_cast<std::uint8_t>(x >> 40);
}

template <class T>
__global__ void fill(T* data, std::int64_t count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < count; i += step) {
    data[i] = static_cast<T>(static_cast<float>(value_at(i)));
  }
}

struct Shape2d {
  std::int64_t planes, height, width, kernel_h, kernel_w, stride, padding, out_h, out_w;
};

/// Counts outputs (and indices, where given) that are not the window's first maximum.
__global__ void count_wrong_max(const std::uint8_t* output, const std::int64_t* indices, Shape2d s,
                                unsigned long long* wrong) {
  const std::int64_t count = s.planes * s.out_h * s.out_w, step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t o = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; o < count; o += step) {
    const std::int64_t plane = o / (s.out_h * s.out_w), y = o / s.out_w % s.out_h, x = o % s.out_w;
    int best = -1;
    std::int64_t where = -1;
    for (std::int64_t j = 0; j < s.kernel_h; ++j) {
      for (std::int64_t i = 0; i < s.kernel_w; ++i) {
        const std::int64_t iy = s.height == 1 ? 0 : y * s.stride - s.padding + j, ix = x * s.stride - s.padding + i;
        if (iy < 0 || iy >= s.height || ix < 0 || ix >= s.width) continue;
        const int v = value_at((plane * s.height + iy) * s.width + ix);
        if (v > best) {
          best = v;
          where = iy * s.width + ix;
        }
      }
    }
    if (output != nullptr && output[o] != best) atomicAdd(wrong, 1ULL);
    if (indices != nullptr && indices[o] != where) atomicAdd(wrong, 1ULL);
  }
}

/// Backward of windows of two that do not overlap, gradient of output o: its value_at, wherever the first maximum is.
__global__ void count_wrong_gradients(const __half* gradient, std::int64_t width, unsigned long long* wrong) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < width; i += step) {
    const std::int64_t o = i / 2;
    const std::int64_t winner = value_at(2 * o + 1) > value_at(2 * o) ? 2 * o + 1 : 2 * o;
    const float expected = i == winner ? static_cast<float>(value_at(o)) : 0.0F;
    if (__half2float(gradient[i]) != expected) atomicAdd(wrong, 1ULL);
  }
}

class Huge : public ::testing::Test {
 protected:
  void SetUp() override {
    std::size_t free_bytes = 0, total = 0;
    require(cudaMemGetInfo(&free_bytes, &total), "asking for memory");
    if (free_bytes < std::size_t{24} << 30) GTEST_SKIP() << "needs 24 GB of device memory";
  }

  template <class Launch>
  unsigned long long count(Launch launch) {
    DeviceArray counter(8);
    require(cudaMemset(counter.as(), 0, 8), "clearing");
    launch(counter.as<unsigned long long>());
    require(cudaGetLastError(), "counting");
    unsigned long long wrong = 0;
    require(cudaMemcpy(&wrong, counter.as(), 8, cudaMemcpyDeviceToHost), "fetching");
    return wrong;
  }

  void expect_max(const Shape& shape, const MaxPool<2>& options, const Shape2d& s) {
    const TensorDesc desc = TensorDesc::contiguous(DType::u8, shape, cuda);
    const Plan plan = Plan::make(desc, options);
    DeviceArray input(desc.numel()), output(plan.output().numel()),
        indices(options.return_indices ? plan.indices().numel() * 8 : 1);
    fill<<<4096, 256>>>(input.as<std::uint8_t>(), desc.numel());
    require(cudaMemset(output.as(), 0, static_cast<std::size_t>(plan.output().numel())), "clearing");
    const Status status = plan.run(
        {.input = input.as(), .output = output.as(), .indices = options.return_indices ? indices.as() : nullptr});
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(count([&](unsigned long long* wrong) {
                count_wrong_max<<<4096, 256>>>(output.as<std::uint8_t>(),
                                               options.return_indices ? indices.as<std::int64_t>() : nullptr, s, wrong);
              }),
              0U)
        << plan.explain();
  }
};

TEST_F(Huge, OnePlane) {
  expect_max({1, 1, 1, 2200000000}, {.kernel_size = {1, 2}, .return_indices = true},
             {1, 1, 2200000000, 1, 2, 2, 0, 1, 1100000000});
}

TEST_F(Huge, AcrossTheBatch) {
  expect_max({3, 1, 28000, 28000}, {.kernel_size = 3, .stride = 2, .padding = 1},
             {3, 28000, 28000, 3, 3, 2, 1, 14000, 14000});
}

TEST_F(Huge, TheOutput) {
  expect_max({3, 1, 27200, 27200}, {.kernel_size = 3, .stride = 1, .padding = 1},
             {3, 27200, 27200, 3, 3, 1, 1, 27200, 27200});
}

TEST_F(Huge, BackwardOfOnePlane) {
  const std::int64_t width = 2200000000;
  const MaxPool<1> options{.kernel_size = 2, .return_indices = true};
  const TensorDesc desc = TensorDesc::contiguous(DType::f16, {1, 1, width}, cuda);
  const Plan forward = Plan::make(desc, options), backward = Plan::make_backward(desc, options);
  DeviceArray input(width * 2), output(width), indices(width * 4);
  fill<<<4096, 256>>>(input.as<__half>(), width);
  ASSERT_TRUE(forward.run({.input = input.as(), .output = output.as(), .indices = indices.as()}).ok());
  fill<<<4096, 256>>>(output.as<__half>(), width / 2);
  const Status status =
      backward.run({.saved_indices = indices.as(), .grad_output = output.as(), .grad_input = input.as()});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(
      count([&](unsigned long long* wrong) { count_wrong_gradients<<<4096, 256>>>(input.as<__half>(), width, wrong); }),
      0U);
  EXPECT_TRUE(backward.check().ok());
}

}  // namespace
}  // namespace cenote::testing
