// What must hold for every pool, whatever its numbers.
#include "problems/execute.hpp"
#include "problems/expected.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace cenote::testing {
namespace {

constexpr IndexKind kKinds[] = {IndexKind::flat64, IndexKind::flat32, IndexKind::window};

/// The unpool that undoes a pool: same windows, and the pool's input size.
Problem undo(const Problem& pool, const Shape& pooled) {
  Problem problem = pool;
  problem.spec.op = Op::max_unpool;
  problem.shape = pooled;
  problem.spec.output_size = {};
  problem.spec.output_size.count = pool.spec.dims;
  for (int i = 0; i < pool.spec.dims; ++i) {
    problem.spec.output_size.values[i] = pool.shape[pool.shape.rank() - pool.spec.dims + i];
  }
  return problem;
}

/// max_unpool(max_pool(x)) has every maximum where it was and zeros elsewhere.
TEST(Properties, UnpoolRestoresMaxima) {
  for (const char* line : {
           "max1d f32 ncw n2c3 w31 k3",
           "max2d f32 nchw n2c3 h8w10 k2",
           "max2d f64 nhwc n2c5 h9w9 k3x2",
           "max2d bf16 strided n1c3 h9w12 k2x3 seed3",
           "max2d i16 nchw n1c3 h9w12 k2x3",
           "max3d f32 ncdhw n1c2 d4h6w8 k2",
           "max3d u8 ndhwc n1c7 d5h6w9 k2x2x3",
       }) {
    for (IndexKind kind : kKinds) {
      SCOPED_TRACE(std::string(line) + " " + name_of(kind));
      const Problem problem = parse_problem(line);
      const Pool pool = reference::resolve(problem.spec, problem.dtype, problem.shape);
      Random random(5);
      Given<double> whole;  // integers too: small ones, which double holds as well
      for (std::int64_t i = 0; i < element_count(problem.shape); ++i)
        whole.input.push_back(static_cast<double>(random.between(0, 99)));
      const auto pooled = run_forward(problem, whole, kind, {});
      ASSERT_EQ(pooled.trouble, "");
      const auto flat = run_forward(problem, whole, IndexKind::flat64, {});
      ASSERT_EQ(flat.trouble, "");

      Given<double> back;
      back.input = pooled.result;
      back.flat = back.ordinal = pooled.indices;
      const auto restored = run_forward(undo(problem, pooled.shape), back, kind, {});
      ASSERT_EQ(restored.trouble, "");
      ASSERT_EQ(restored.shape, problem.shape);
      std::vector<double> expected(whole.input.size(), 0);
      for (std::int64_t o = 0; o < static_cast<std::int64_t>(flat.indices.size()); ++o) {
        const std::int64_t i = o / pool.output_plane() * pool.input_plane() + flat.indices[static_cast<std::size_t>(o)];
        expected[static_cast<std::size_t>(i)] = whole.input[static_cast<std::size_t>(i)];
      }
      EXPECT_EQ(restored.result, expected);
    }
  }
}

/// Moves plane (n, c) of `values` to (order_n[n], order_c[c]).
std::vector<double> permuted(const std::vector<double>& values, const std::vector<std::int64_t>& order_n,
                             const std::vector<std::int64_t>& order_c) {
  std::vector<double> result(values.size());
  const auto batch = static_cast<std::int64_t>(order_n.size()), channels = static_cast<std::int64_t>(order_c.size());
  const std::int64_t plane = static_cast<std::int64_t>(values.size()) / (batch * channels);
  for (std::int64_t n = 0; n < batch; ++n) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t to = order_n[static_cast<std::size_t>(n)] * channels + order_c[static_cast<std::size_t>(c)];
      std::copy_n(values.begin() + (n * channels + c) * plane, plane, result.begin() + to * plane);
    }
  }
  return result;
}

std::vector<std::int64_t> shuffled(std::int64_t count, Random& random) {
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < count; ++i) order.push_back(i);
  for (std::int64_t i = count - 1; i > 0; --i) {
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(random.between(0, i))]);
  }
  return order;
}

/// No plane sees another: pooling permuted samples and channels is permuting the pooled ones, to the bit.
TEST(Properties, PermutingBatchAndChannelsCommutes) {
  for (const char* line : {
           "max2d f32 nchw n3c5 h9w11 k3 s2 p1",
           "max2d f32 nhwc n3c19 h9w11 k3 s2 p1 ties",
           "avg2d f32 nhwc n2c37 h9w11 k3 s2 p1",
           "avg3d f64 ncdhw n3c4 d4h5w6 k2",
           "lp2d f32 nhwc n2c9 h7w7 k2 norm2",
           "aavg2d bf16 nhwc n2c21 h9w11 out4x3",
           "amax1d f16 ncw n4c6 w31 out7",
           "sum2d f32 strided n3c5 h9w11 k3 s1 seed2",
       }) {
    SCOPED_TRACE(line);
    const Problem problem = parse_problem(line);
    const Pool pool = reference::resolve(problem.spec, problem.dtype, problem.shape);
    auto given = draw_given<double>(problem, pool);
    Random random(11);
    const auto order_n = shuffled(pool.batch, random), order_c = shuffled(pool.channels, random);
    const auto plain = run_forward(problem, given, std::nullopt, {});
    given.input = permuted(given.input, order_n, order_c);
    const auto moved = run_forward(problem, given, std::nullopt, {});
    ASSERT_EQ(plain.trouble + moved.trouble, "");
    EXPECT_EQ(moved.result, permuted(plain.result, order_n, order_c));
  }
}

}  // namespace
}  // namespace cenote::testing
