// The reference against numbers worked out by hand, for what no recording of PyTorch holds: SAME and asymmetric padding, dilated
// averages, windows without a tap, min and sum pooling, integers.
#include "reference/reference.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace cenote::reference {
namespace {

using Mode = PaddingList::Mode;

PoolSpec spec_1d(Op op, std::int64_t kernel, std::int64_t stride, const PaddingList& padding = {},
                 std::int64_t dilation = 1) {
  PoolSpec spec;
  spec.op = op;
  spec.dims = 1;
  spec.kernel_size = kernel;
  spec.stride = stride;
  spec.padding = padding;
  spec.dilation = dilation;
  return spec;
}

PaddingList same(Mode mode) {
  PaddingList padding;
  padding.mode = mode;
  return padding;
}

Reals counting(std::int64_t count) {
  Reals values;
  for (std::int64_t i = 1; i <= count; ++i) values.push_back(static_cast<double>(i));
  return values;
}

Pool row(const PoolSpec& spec, std::size_t width, DType dtype = DType::f64) {
  return resolve(spec, dtype, {1, 1, static_cast<std::int64_t>(width)});
}

Reals averages(PoolSpec spec, const Reals& input, bool count_include_pad) {
  spec.count_include_pad = count_include_pad;
  Reals result;
  for (const Sum& one : sum(row(spec, input.size()), input)) result.push_back(static_cast<double>(one.exact));
  return result;
}

TEST(ReferenceExamples, SamePadding) {
  const auto upper = spec_1d(Op::avg_pool, 4, 2, same(Mode::same_upper)),
             lower = spec_1d(Op::avg_pool, 4, 2, same(Mode::same_lower));
  EXPECT_EQ(averages(upper, counting(5), false), (Reals{2, 3.5, 4.5}));
  EXPECT_EQ(averages(upper, counting(5), true), (Reals{1.5, 3.5, 2.25}));
  EXPECT_EQ(averages(lower, counting(5), false), (Reals{1.5, 2.5, 4}));
  EXPECT_EQ(averages(lower, counting(5), true), (Reals{0.75, 2.5, 3}));
  const auto max_of = [](Mode mode) {
    return extremum(row(spec_1d(Op::max_pool, 2, 1, same(mode)), 5), counting(5)).value;
  };
  EXPECT_EQ(max_of(Mode::same_upper), (Reals{2, 3, 4, 5, 5}));
  EXPECT_EQ(max_of(Mode::same_lower), (Reals{1, 2, 3, 4, 5}));
}

TEST(ReferenceExamples, DilatedAverage) {
  const auto spec = spec_1d(Op::avg_pool, 2, 1, PaddingList(DimList(1), DimList(1)), 3);
  EXPECT_EQ(averages(spec, counting(7), false), (Reals{3, 2.5, 3.5, 4.5, 5.5, 5}));
  EXPECT_EQ(averages(spec, counting(7), true), (Reals{1.5, 2.5, 3.5, 4.5, 5.5, 2.5}));
}

TEST(ReferenceExamples, CeilModeCountsNoOverhang) {
  auto spec = spec_1d(Op::avg_pool, 4, 3, PaddingList(2));
  spec.ceil_mode = true;
  EXPECT_EQ(averages(spec, counting(5), true), (Reals{0.75, 3.5, static_cast<double>(5.0L / 3)}));
  EXPECT_EQ(averages(spec, counting(5), false), (Reals{1.5, 3.5, 5}));
}

TEST(ReferenceExamples, WindowWithoutATap) {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto padding = PaddingList(1);
  const auto largest = extremum(row(spec_1d(Op::max_pool, 2, 2, padding, 2), 1), Reals{1});
  EXPECT_EQ(largest.value, Reals{-infinity});
  EXPECT_EQ(largest.flat, Integers{-1});
  EXPECT_EQ(largest.ordinal, Integers{-1});
  EXPECT_EQ(extremum(row(spec_1d(Op::min_pool, 2, 2, padding, 2), 1), Reals{1}).value, Reals{infinity});
  EXPECT_EQ(extremum(row(spec_1d(Op::max_pool, 2, 2, padding, 2), 1, DType::i8), Integers{1}).value, Integers{-128});
  EXPECT_EQ(extremum(row(spec_1d(Op::min_pool, 2, 2, padding, 2), 1, DType::u8), Integers{1}).value, Integers{255});
  EXPECT_EQ(averages(spec_1d(Op::avg_pool, 2, 2, padding, 2), Reals{1}, false), Reals{0});
  EXPECT_EQ(sum(row(spec_1d(Op::avg_pool, 2, 2, padding, 2), 1, DType::i32), Integers{1}), Integers{0});
  const Pool lp = row(spec_1d(Op::lp_pool, 2, 2, padding, 2), 1);
  EXPECT_EQ(power(lp, Reals{1})[0].y, 0);
  EXPECT_EQ(power_backward(lp, power(lp, Reals{1}), Reals{1})[0].exact, 0);
  EXPECT_EQ(extremum_backward(row(spec_1d(Op::max_pool, 2, 2, padding, 2), 1), Reals{1}, largest.flat)[0].terms, 0);
}

TEST(ReferenceExamples, MinMirrorsMax) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto pooled = extremum(row(spec_1d(Op::min_pool, 4, 4), 8), Reals{5, 2, 2, 7, nan, 1, nan, 0});
  EXPECT_EQ(pooled.flat, (Integers{1, 6}));  // the first of equals, the last NaN
  EXPECT_EQ(pooled.ordinal, (Integers{1, 2}));
  EXPECT_TRUE(std::isnan(pooled.value[1]));
}

TEST(ReferenceExamples, Integers) {
  EXPECT_EQ(sum(row(spec_1d(Op::avg_pool, 2, 2), 4, DType::i64), Integers{-1, -2, 7, 8}), (Integers{-1, 7}));
  EXPECT_EQ(sum(row(spec_1d(Op::sum_pool, 2, 2), 4, DType::i8), Integers{100, 100, -128, -1}), (Integers{-56, 127}));
  EXPECT_EQ(sum(row(spec_1d(Op::sum_pool, 2, 2), 2, DType::u8), Integers{200, 100}), Integers{44});
}

TEST(ReferenceExamples, WindowIndicesCountInTheWholeWindow) {
  // Tap 0 is in the padding, so the first element is tap 1.
  EXPECT_EQ(extremum(row(spec_1d(Op::max_pool, 3, 2, PaddingList(1)), 4), Reals{9, 1, 2, 3}).ordinal, (Integers{1, 2}));
  PoolSpec adaptive;
  adaptive.op = Op::adaptive_max_pool;
  adaptive.dims = 2;
  adaptive.output_size = {2, 3};
  const Reals plane = {0, 7, 14, 6, 13, 5, 12, 4, 11, 3, 10, 2, 9, 1, 8};
  const auto pooled = extremum(resolve(adaptive, DType::f32, {1, 1, 3, 5}), plane);
  EXPECT_EQ(pooled.flat, (Integers{6, 2, 4, 6, 6, 8}));
  EXPECT_EQ(pooled.ordinal, (Integers{3, 1, 1, 1, 0, 0}));  // windows of 2x2, 2x3 and 2x2 taps
}

TEST(ReferenceExamples, UnpoolKeepsTheLast) {
  PoolSpec spec = spec_1d(Op::max_unpool, 2, 2);
  const Pool pool = row(spec, 3);
  EXPECT_EQ(unpool(pool, Reals{7, 8, 9}, {1, 1, 0}), (Reals{9, 8, 0, 0, 0, 0}));
  EXPECT_EQ(unpool_backward(pool, Reals{10, 20, 30, 40, 50, 60}, {1, 1, 0}), (Reals{20, 20, 10}));
}

TEST(ReferenceExamples, FractionalWindows) {
  PoolSpec spec;
  spec.op = Op::fractional_max_pool;
  spec.dims = 2;
  spec.kernel_size = 2;
  spec.output_size = {3, 3};
  const auto pooled = extremum(resolve(spec, DType::f32, {1, 1, 7, 7}), counting(49), Reals{0.3F, 0.9F});
  EXPECT_EQ(pooled.flat, (Integers{8, 11, 13, 22, 25, 27, 43, 46, 48}));
}

}  // namespace
}  // namespace cenote::reference
