// Results do not depend on where operands begin: calls that write around the caches want whole lines, which memory need not give them.
#include "problems/problem.hpp"

#include <cenote/cenote.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace cenote::testing {
namespace {

/// Memory that begins `shift` bytes behind a line.
class Shifted {
 public:
  Shifted(std::int64_t bytes, std::size_t shift) : memory_(static_cast<std::size_t>(bytes) + 128) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory_.data());
    first_ = memory_.data() + (64 - begin % 64) + shift;
  }
  char* data() const { return first_; }

 private:
  std::vector<char> memory_;
  char* first_;
};

std::int64_t bytes_of(const TensorDesc& desc) { return desc.numel() * static_cast<std::int64_t>(size_of(desc.dtype)); }

void fill(const TensorDesc& desc, char* to) {
  auto* values = reinterpret_cast<float*>(to);
  for (std::int64_t i = 0; i < desc.numel(); ++i) values[i] = static_cast<float>((i * 7919) % 1009) - 500;
}

/// Forward, and of averages backward, into memory that begins with a line and into memory that does not.
TEST(Alignment, LargeResultsMayBeginAnywhere) {
  for (const char* line : {
           "max2d f32 nhwc n10c64 h120w112 k3 s2",
           "max2d f32 nhwc n3c64 h200w200 k2",
           "avg2d f32 nhwc n10c64 h120w112 k2",
           "avg2d f32 nhwc n4c64 h120w112 k3 s1 p1",
           "avg2d f32 nhwc n10c64 h120w112 k3 s2 p1",
           "max2d f32 nchw n10c64 h120w112 k3 s2 p1",
           "max2d f32 nchw n10c64 h120w112 k4 s4",
           "avg2d f32 nchw n10c64 h120w112 k2",
           "aavg2d f32 nchw n10c512 h48w40 out1",
       }) {
    const Problem problem = parse_problem(line);
    Shape shape = problem.shape;
    TensorDesc input{.dtype = DType::f32, .shape = shape};
    if (problem.layout == Layout::channels_last) {
      input.strides = {shape[1] * shape[2] * shape[3], 1, shape[1] * shape[3], shape[1]};
    } else {
      input.strides = {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1};
    }
    const Plan forward = Plan::make(Pass::forward, input, problem.spec);
    const Shifted source(bytes_of(input), 0);
    fill(input, source.data());
    const std::int64_t bytes = bytes_of(forward.output());
    const Shifted aligned(bytes, 0);
    ASSERT_TRUE(forward.run({.input = source.data(), .output = aligned.data()}).ok());
    for (const std::size_t shift : {4, 16, 32}) {
      const Shifted other(bytes, shift);
      ASSERT_TRUE(forward.run({.input = source.data(), .output = other.data()}).ok());
      EXPECT_EQ(std::memcmp(aligned.data(), other.data(), static_cast<std::size_t>(bytes)), 0) << line << ", " << shift;
    }
    if (problem.spec.op == Op::max_pool) continue;
    const Plan backward = Plan::make(Pass::backward, input, problem.spec);
    const std::int64_t gradients = bytes_of(input);
    const Shifted line_first(gradients, 0);
    ASSERT_TRUE(backward.run({.grad_output = aligned.data(), .grad_input = line_first.data()}).ok());
    const Shifted elsewhere(gradients, 16);
    ASSERT_TRUE(backward.run({.grad_output = aligned.data(), .grad_input = elsewhere.data()}).ok());
    EXPECT_EQ(std::memcmp(line_first.data(), elsewhere.data(), static_cast<std::size_t>(gradients)), 0) << line;
  }
}

}  // namespace
}  // namespace cenote::testing
