// Printed forms, as PyTorch prints the same values (with cenote's dtype names).
#include "expect.hpp"

#include <sstream>

namespace cenote::test {
namespace {

TEST(Print, AsPyTorch) {
  struct Case {
    Tensor tensor;
    const char* expected;
  };
  const double inf = INFINITY;
  const Case cases[] = {
      {tensor<float>({1, 2, 3, 4}, {2, 2}), "tensor([[1., 2.],\n        [3., 4.]])"},
      {tensor<float>({-1, 10}), "tensor([-1., 10.])"},
      {tensor<float>({1.5, -10}), "tensor([  1.5000, -10.0000])"},
      {tensor({1.0, 2.0}), "tensor([1., 2.], dtype=f64)"},
      {tensor<std::int64_t>({1, -20, 3}), "tensor([  1, -20,   3])"},
      {tensor<std::uint8_t>({3, 3}), "tensor([3, 3], dtype=u8)"},
      {scalar(3.14159265), "tensor(3.1416)"},
      {scalar(5), "tensor(5.)"},
      {tensor<float>({1e-5F}), "tensor([1.0000e-05])"},
      {tensor<float>({5e-4F}), "tensor([0.0005])"},
      {tensor<float>({1, 2000}), "tensor([1.0000e+00, 2.0000e+03])"},
      {tensor<float>({1, 1000}), "tensor([   1., 1000.])"},
      {tensor<float>({1e9F}), "tensor([1.0000e+09])"},
      {tensor<float>({0.5F, 1e-4F}), "tensor([5.0000e-01, 1.0000e-04])"},
      {tensor<float>({0, 0}), "tensor([0., 0.])"},
      {tensor<float>({1, static_cast<float>(inf), -static_cast<float>(inf), NAN}), "tensor([1., inf, -inf, nan])"},
      {tensor<float>({1.5, static_cast<float>(inf)}), "tensor([1.5000,    inf])"},
      {zeros({0}), "tensor([])"},
      {zeros({0, 3}), "tensor([], size=(0, 3))"},
      {zeros({0}, {.dtype = DType::i64}), "tensor([], dtype=i64)"},
      {zeros({2}, {.requires_grad = true}), "tensor([0., 0.], requires_grad=True)"},
      {ones({2}, {.requires_grad = true}).mul(2), "tensor([2., 2.], grad_fn=<MulBackward>)"},
      {arange(8).reshape({2, 2, 2}),
       "tensor([[[0., 1.],\n         [2., 3.]],\n\n        [[4., 5.],\n         [6., 7.]]])"},
      {arange(8).reshape({2, 4}).transpose(0, 1),
       "tensor([[0., 4.],\n        [1., 5.],\n        [2., 6.],\n        [3., 7.]])"},
      {arange(24),
       "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,\n"
       "        14., 15., 16., 17., 18., 19., 20., 21., 22., 23.])"},
      {arange(0, 1001, 1, {.dtype = DType::i64}), "tensor([   0,    1,    2,  ...,  998,  999, 1000])"},
      {zeros({2, 1000}), "tensor([[0., 0., 0.,  ..., 0., 0., 0.],\n        [0., 0., 0.,  ..., 0., 0., 0.]])"},
      {zeros({1001, 1}, {.dtype = DType::i32}),
       "tensor([[0],\n        [0],\n        [0],\n        ...,\n        [0],\n        [0],\n        [0]], dtype=i32)"},
      {Tensor(), "tensor(undefined)"},
  };
  for (const Case& c : cases) EXPECT_EQ(to_string(c.tensor), c.expected);
}

TEST(Print, ASuffixThatDoesNotFitGoesToItsOwnLine) {
  const Tensor x = arange(13, {.dtype = DType::f64, .requires_grad = true});
  EXPECT_EQ(to_string(x),
            "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12.],\n       dtype=f64, "
            "requires_grad=True)");
}

TEST(Print, Streams) {
  std::ostringstream stream;
  stream << arange(2);
  EXPECT_EQ(stream.str(), "tensor([0., 1.])");
}

}  // namespace
}  // namespace cenote::test
