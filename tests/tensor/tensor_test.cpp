// Factories, element access, layouts, types.
#include "expect.hpp"

#include <cstdint>
#include <numeric>

namespace cenote::test {
namespace {

TEST(Factories, ShapeTypeAndValues) {
  expect_values(zeros({2, 2}), {0, 0, 0, 0});
  expect_values(ones({3}, {.dtype = DType::i16}), {1, 1, 1});
  expect_values(full({2}, -7.5, {.dtype = DType::bf16}), {-7.5, -7.5});
  expect_values(arange(4), {0, 1, 2, 3});
  expect_values(arange(1, 2, 0.25, {.dtype = DType::f64}), {1, 1.25, 1.5, 1.75});
  expect_values(arange(3, 0, -1, {.dtype = DType::i64}), {3, 2, 1});
  expect_values(tensor<std::int32_t>({1, 2, 3, 4}, {2, 2}), {1, 2, 3, 4});
  expect_values(tensor({0.5, 1.5}), {0.5, 1.5});
  expect_values(tensor(std::vector<std::uint8_t>{255, 0}, {1, 2}), {255, 0});
  EXPECT_EQ(tensor({0.5}).dtype(), DType::f64);
  EXPECT_EQ(scalar(2).rank(), 0);
  EXPECT_EQ(zeros({0, 3}).numel(), 0);
  EXPECT_TRUE(zeros({2}, {.requires_grad = true}).requires_grad());
}

TEST(Factories, MemoryIsAlignedTo64Bytes) {
  for (std::int64_t size : {1, 3, 17, 1000}) {
    const Tensor t = empty({size}, {.dtype = DType::u8});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(t.data()) % 64, 0U) << size;
  }
}

TEST(Factories, Refusals) {
  expect_refused([] { tensor<float>({1, 2, 3}, {2, 2}); }, "shape", "4 elements, but 3 values");
  expect_refused([] { arange(0, 4, 0); }, "step");
  expect_refused([] { arange(0, 4, -1); }, "end");
  expect_refused([] { rand({2}, {.dtype = DType::i32}); }, "dtype", "not i32");
  expect_refused([] { zeros({std::int64_t{1} << 40, std::int64_t{1} << 40}); }, "shape");
  expect_refused([] { zeros({0, std::int64_t{1} << 40, std::int64_t{1} << 40}); }, "shape");
  expect_refused([] { zeros({std::int64_t{1} << 61}, {.dtype = DType::f64}); }, "shape");
  expect_refused([] { zeros({2, -1}); }, "shape");
  expect_refused([] { zeros({2}, {.dtype = DType::i64, .requires_grad = true}); }, "requires_grad", "i64");
  expect_refused([] { Tensor().shape(); }, "tensor", "undefined");
  expect_refused([] { from_view({TensorDesc::contiguous(DType::f32, {2}), nullptr}); }, "data");
}

TEST(Random, SameBitsEverywhere) {
  // Recorded once: a change of the generator, of its use of the counter, or of its arithmetic shows here.
  const RandomOptions options{.seed = 7, .dtype = DType::f64};
  expect_values(rand({4}, options),
                {0x1.d2d6af319ae2ep-2, 0x1.7169852efd579p-1, 0x1.4ca60bfa671d9p-1, 0x1.1947976d94c62p-1});
  expect_values(randn({4}, options),
                {0x1.4aadad19de9dcp+0, 0x1.4fcdd113e47c6p-2, -0x1.13705e3c0305cp+0, -0x1.08eb0250eaa92p-1});
  expect_values(rand({4}, {.seed = 7, .dtype = DType::bf16}), {0x1.dp-2, 0x1.7p-1, 0x1.4cp-1, 0x1.18p-1});
  EXPECT_TRUE(equal(rand({3}, {.seed = 7}), rand({3}, {.seed = 7})));
  EXPECT_FALSE(equal(rand({3}, {.seed = 7}), rand({3}, {.seed = 8})));
  // A prefix is a prefix: element i depends on the seed and i alone.
  EXPECT_TRUE(equal(randn({5}, {.seed = 3}), randn({9}, {.seed = 3}).narrow(0, 0, 5)));
  EXPECT_TRUE(equal(randn({2, 3}, {.seed = 3}).flatten(), randn({6}, {.seed = 3})));
}

TEST(Random, Distribution) {
  const std::int64_t count = 100000;
  const std::vector<double> uniform = rand({count}, {.seed = 1, .dtype = DType::f64}).to_vector();
  const std::vector<double> normal = randn({count}, {.seed = 1, .dtype = DType::f64}).to_vector();
  const auto moment = [&](const std::vector<double>& values, auto function) {
    double sum = 0;
    for (const double value : values) sum += function(value);
    return sum / static_cast<double>(values.size());
  };
  // Five standard deviations of each estimate: sqrt(variance of the term / count).
  const double root = std::sqrt(static_cast<double>(count));
  EXPECT_NEAR(moment(uniform, [](double x) { return x; }), 0.5, 5 * std::sqrt(1 / 12.0) / root);
  EXPECT_NEAR(moment(normal, [](double x) { return x; }), 0, 5 / root);
  EXPECT_NEAR(moment(normal, [](double x) { return x * x; }), 1, 5 * std::sqrt(2.0) / root);
  EXPECT_NEAR(moment(normal, [](double x) { return x * x * x * x; }), 3, 5 * std::sqrt(96.0) / root);
  EXPECT_NEAR(moment(normal, [](double x) { return std::abs(x) > 1.959963984540054 ? 1.0 : 0.0; }), 0.05,
              5 * std::sqrt(0.05 * 0.95) / root);
}

TEST(Random, UniformStaysBelowOneInEveryType) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    double largest = 0;
    for (const double value : rand({20000}, {.seed = 2, .dtype = dtype}).to_vector()) {
      ASSERT_GE(value, 0);
      largest = std::max(largest, value);
    }
    EXPECT_LT(largest, 1) << name_of(dtype);
    EXPECT_GT(largest, 0.99) << name_of(dtype);
  }
}

TEST(Elements, AccessAndRefusals) {
  Tensor t = arange(6).reshape({2, 3});
  EXPECT_EQ(t.at<float>({1, 2}), 5);
  EXPECT_EQ(t.at<float>({-1, -3}), 3);
  t.at<float>({0, 1}) = 9;
  EXPECT_EQ(t.transpose(0, 1).at<float>({1, 0}), 9) << "a view sees what is written";
  EXPECT_EQ(t.span<float>()[1], 9);
  EXPECT_EQ(scalar(2.5).item(), 2.5);
  EXPECT_EQ(tensor<std::int64_t>({INT64_MAX}).item<std::int64_t>(), INT64_MAX);
  expect_refused([&] { t.at<double>({0, 0}); }, "dtype", "f32");
  expect_refused([&] { t.at<float>({0}); }, "index", "rank 2");
  expect_refused([&] { t.at<float>({0, 3}); }, "index");
  expect_refused([&] { t.at<float>({-3, 0}); }, "index");
  expect_refused([&] { t.item(); }, "tensor");
  expect_refused([&] { t.transpose(0, 1).span<float>(); }, "strides", "contiguous()");
  expect_refused([&] { t.size(2); }, "dim");
}

TEST(Elements, CopiesShareAndClonesDoNot) {
  Tensor a = zeros({2});
  Tensor b = a, c = a.clone();
  a.fill(1);
  expect_values(b, {1, 1});
  expect_values(c, {0, 0});
  EXPECT_TRUE(a.shares_storage_with(b));
  EXPECT_FALSE(a.shares_storage_with(c));
}

TEST(Elements, CopyIntoOwnTranspose) {
  Tensor t = arange(4).reshape({2, 2});
  t.transpose(0, 1).copy_from(t);
  expect_values(t, {0, 2, 1, 3});
}

TEST(Views, BorrowedMemoryIsSharedAndCopiedMemoryIsNot) {
  float data[4] = {1, 2, 3, 4};
  TensorView view;
  static_cast<TensorDesc&>(view) = TensorDesc::contiguous(DType::f32, {2, 2});
  view.data = data;
  Tensor borrowed = from_view(view, Ownership::borrow), copied = from_view(view);
  data[0] = 9;
  EXPECT_EQ(borrowed.at<float>({0, 0}), 9);
  EXPECT_EQ(copied.at<float>({0, 0}), 1);
}

TEST(Layout, ChannelsLast) {
  const Tensor x = arange(2 * 3 * 2 * 2).reshape({2, 3, 2, 2});
  const Tensor last = x.contiguous(MemoryFormat::channels_last);
  EXPECT_EQ(to_list(last.strides()), (std::vector<std::int64_t>{12, 1, 6, 3}));
  EXPECT_TRUE(last.is_contiguous(MemoryFormat::channels_last));
  EXPECT_FALSE(last.is_contiguous());
  EXPECT_TRUE(equal(last, x)) << "the layout changes nothing";
  EXPECT_TRUE(last.clone().is_contiguous(MemoryFormat::channels_last)) << "a copy keeps a dense layout";
  EXPECT_TRUE(equal(last.contiguous(), x));
  EXPECT_TRUE(last.contiguous().is_contiguous());
  EXPECT_TRUE(x.contiguous().shares_storage_with(x)) << "nothing to do, nothing copied";
}

TEST(Types, Conversions) {
  expect_values(tensor<double>({1.9, -1.9, 300.0, -300.0, NAN}).to(DType::i8), {1, -1, 127, -128, 0});
  expect_values(tensor({1e30, -1e30, 9.3e18}).to(DType::i64), {0x1p63, -0x1p63, 0x1p63});
  expect_values(tensor({-1.0, 256.0}).to(DType::u8), {0, 255});
  expect_values(tensor<std::int32_t>({300, -1}).to(DType::u8), {44, 255});
  expect_values(tensor({1.0 + 0x1p-11, 65520.0, 65519.0}).to(DType::f16), {1, INFINITY, 65504});
  expect_values(tensor({1.0 + 0x1p-8}).to(DType::bf16), {1});
  EXPECT_EQ(tensor<std::int64_t>({(std::int64_t{1} << 24) + 1}).to(DType::f32).item(), 0x1p24);
}

TEST(Devices, CudaIsRefusedWithoutABackendOrRoundTrips) {
  const Tensor x = arange(6).reshape({2, 3});
  EXPECT_EQ(x.device(), cpu);
  EXPECT_TRUE(x.to(cpu).shares_storage_with(x));
  try {
    const Tensor there = x.to(cuda);
    EXPECT_EQ(there.device(), cuda);
    EXPECT_TRUE(equal(there.transpose(0, 1).to(cpu), x.transpose(0, 1)));
    expect_refused([&] { there.at<float>({0, 0}); }, "device");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device) << error.what();
  }
}

}  // namespace
}  // namespace cenote::test
