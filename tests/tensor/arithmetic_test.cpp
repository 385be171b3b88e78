// Sums, elementwise arithmetic, comparisons.
#include "expect.hpp"

namespace cenote::test {
namespace {

TEST(Arithmetic, ElementwiseAndBroadcast) {
  const Tensor a = arange(6).reshape({2, 3}), b = tensor<float>({10, 20, 30});
  expect_values(a + b, {10, 21, 32, 13, 24, 35});
  expect_values(a - b, {-10, -19, -28, -7, -16, -25});
  expect_values(a * b, {0, 20, 60, 30, 80, 150});
  expect_values(b / a.narrow(1, 1, 1), {10, 20, 30, 2.5, 5, 7.5});
  expect_values(a.reshape({2, 3, 1}) * a.reshape({2, 1, 3})[1],
                {0, 0, 0, 3, 4, 5, 6, 8, 10, 9, 12, 15, 12, 16, 20, 15, 20, 25});
  expect_values(1 - a * 2 + 0.5, {1.5, -0.5, -2.5, -4.5, -6.5, -8.5});
  expect_values(-a / 2, {0, -0.5, -1, -1.5, -2, -2.5});
  EXPECT_EQ(to_list((zeros({0, 3}) + b).shape()), (std::vector<std::int64_t>{0, 3}));
}

TEST(Arithmetic, AnyStrides) {
  const Tensor a = arange(24).reshape({2, 3, 2, 2});
  const Tensor last = a.contiguous(MemoryFormat::channels_last);
  EXPECT_TRUE(equal(last + last, a * 2));
  EXPECT_TRUE((last + last).is_contiguous(MemoryFormat::channels_last));
  EXPECT_TRUE(equal(a.slice(3, {.step = -1}) + a, a + a.slice(3, {.step = -1})));
}

TEST(Arithmetic, Types) {
  expect_values(tensor<std::int8_t>({100, -100}) + tensor<std::int8_t>({100, -100}), {-56, 56});
  expect_values(tensor<std::int64_t>({INT64_MAX}) + 1, {-0x1p63});
  expect_values(tensor<std::int32_t>({7, -7}) * 3, {21, -21});
  // 1 + 2^-11 is half way between two f16: the sum is rounded once, to even.
  const Tensor half = full({1}, 1, {.dtype = DType::f16}) + full({1}, 0x1p-11, {.dtype = DType::f16});
  EXPECT_EQ(half.item(), 1);
  expect_refused([] { arange(2) + arange(2, {.dtype = DType::f64}); }, "other", "f32 and f64");
  expect_refused([] { arange(2) + arange(3); }, "other", "broadcast");
  expect_refused([] { tensor<std::int32_t>({1}) * 0.5; }, "scalar", "i32");
  expect_refused([] { tensor<std::int32_t>({1}) / 2; }, "dtype");
  expect_refused([] { tensor<std::int32_t>({1}).mean(); }, "dtype", "i32");
}

TEST(Sums, AllOrAlongOneDimension) {
  const Tensor a = arange(6).reshape({2, 3});
  EXPECT_EQ(a.sum().item(), 15);
  EXPECT_EQ(a.mean().item(), 2.5);
  expect_values(a.sum(0), {3, 5, 7});
  expect_values(a.sum(-1), {3, 12});
  EXPECT_EQ(to_list(a.sum(1, true).shape()), (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(a.transpose(0, 1).sum(0).at<float>({1}), 12);
  EXPECT_EQ(zeros({0, 2}).sum().item(), 0);
  EXPECT_TRUE(std::isnan(zeros({0}).mean().item()));
  const Tensor bytes = full({1000}, 200, {.dtype = DType::u8});
  EXPECT_EQ(bytes.sum().item<std::int64_t>(), 200000);
  EXPECT_EQ(bytes.sum().dtype(), DType::i64);
  // Ten thousand small numbers beside a large one: lost one by one in f16 or f32, kept in f64.
  Tensor x = full({10001}, 0x1p-13, {.dtype = DType::f32});
  x.at<float>({0}) = 4096;
  EXPECT_EQ(x.sum().item(), static_cast<double>(static_cast<float>(4096 + 10000 * 0x1p-13)));
}

TEST(Compare, EqualAndClose) {
  const Tensor a = tensor({1.0, 2.0});
  EXPECT_TRUE(equal(a, a.clone()));
  EXPECT_FALSE(equal(a, a.to(DType::f32)));
  EXPECT_FALSE(equal(a, a.unsqueeze(0)));
  EXPECT_FALSE(equal(tensor<double>({NAN}), tensor<double>({NAN})));
  EXPECT_TRUE(equal(tensor({0.0}), tensor({-0.0})));
  EXPECT_TRUE(allclose(a, a + 1e-9));
  EXPECT_FALSE(allclose(a, a + 1e-3));
  EXPECT_TRUE(allclose(a, a + 1e-3, {.atol = 1e-2}));
  EXPECT_FALSE(allclose(tensor<double>({NAN}), tensor<double>({NAN})));
  EXPECT_TRUE(allclose(tensor<double>({NAN}), tensor<double>({NAN}), {.equal_nan = true}));
  EXPECT_FALSE(allclose(tensor<double>({INFINITY}), tensor<double>({-INFINITY})));
  EXPECT_FALSE(allclose(tensor<double>({INFINITY}), tensor({1.0}), {.rtol = 1}));
}

}  // namespace
}  // namespace cenote::test
