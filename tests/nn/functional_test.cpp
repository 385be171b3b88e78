// What functional adds to plans: layouts of results, indices of every kind, by-hand backward, refusals.
#include "expect.hpp"

#include <cenote/functional.hpp>

namespace cenote::test {
namespace {

namespace F = functional;

TEST(Functional, ReturnIndicesIsRefusedWithAHint) {
  const Tensor x = arange(16).reshape({1, 4, 4});
  expect_refused([&] { F::max_pool2d(x, {.kernel_size = 2, .return_indices = true}); }, "return_indices",
                 "max_pool2d_with_indices");
  expect_refused([&] { F::adaptive_max_pool2d(x, {.output_size = 2, .return_indices = true}); }, "return_indices");
}

TEST(Functional, WindowIndicesAreOneByteAndUnpoolReadsThem) {
  const Tensor x = arange(1, 17).reshape({1, 1, 4, 4});
  const auto [values, window] = F::max_pool2d_with_indices(x, {.kernel_size = 2, .index_kind = IndexKind::window});
  EXPECT_EQ(window.dtype(), DType::u8);
  expect_values(window, {3, 3, 3, 3});
  const std::vector<double> expected = {0, 0, 0, 0, 0, 6, 0, 8, 0, 0, 0, 0, 0, 14, 0, 16};
  expect_values(F::max_unpool2d(values, window, {.kernel_size = 2, .index_kind = IndexKind::window}), expected);
  for (const IndexKind kind : {IndexKind::flat64, IndexKind::flat32}) {
    const auto [v, indices] = F::max_pool2d_with_indices(x, {.kernel_size = 2, .index_kind = kind});
    expect_values(F::max_unpool2d(v, indices, {.kernel_size = 2, .index_kind = kind}), expected);
  }
  expect_refused([&] { F::max_unpool2d(values, window, {.kernel_size = 2}); }, "indices", "i64");
}

TEST(Functional, ChannelsLastInChannelsLastOut) {
  const Tensor x = randn({2, 5, 6, 6}, {.seed = 1});
  const Tensor last = x.contiguous(MemoryFormat::channels_last);
  const auto [values, indices] = F::max_pool2d_with_indices(last, {.kernel_size = 2});
  EXPECT_TRUE(values.is_contiguous(MemoryFormat::channels_last));
  EXPECT_TRUE(indices.is_contiguous(MemoryFormat::channels_last));
  EXPECT_TRUE(equal(values, F::max_pool2d(x, {.kernel_size = 2})));
  EXPECT_TRUE(equal(indices, F::max_pool2d_with_indices(x, {.kernel_size = 2}).second));
}

TEST(Functional, AnyStrides) {
  const Tensor x = randn({2, 3, 9, 8}, {.seed = 2});
  const std::pair<const char*, Tensor> views[] = {
      {"backwards", x.slice(3, {.step = -1})},
      {"every second", x.slice(2, {.step = 2})},
      {"transposed", x.transpose(2, 3)},
      {"expanded", x.narrow(1, 0, 1).expand({2, 4, 9, 8})},
      {"unbatched", x[1]},
  };
  for (const auto& [name, view] : views) {
    SCOPED_TRACE(name);
    const Tensor dense = view.contiguous();
    EXPECT_TRUE(equal(F::max_pool2d(view, {.kernel_size = 2}), F::max_pool2d(dense, {.kernel_size = 2})));
    EXPECT_TRUE(equal(F::avg_pool2d(view, {.kernel_size = 3, .stride = 1, .padding = 1}),
                      F::avg_pool2d(dense, {.kernel_size = 3, .stride = 1, .padding = 1})));
    EXPECT_TRUE(
        equal(F::adaptive_max_pool2d(view, {.output_size = 2}), F::adaptive_max_pool2d(dense, {.output_size = 2})));
  }
}

TEST(Functional, BackwardByHandIsTheTapes) {
  Tensor x = randn({2, 3, 8, 8}, {.seed = 3, .requires_grad = true});
  const MaxPool<2> options{.kernel_size = 3, .stride = 2, .padding = 1};
  const auto [y, indices] = F::max_pool2d_with_indices(x, options);
  const Tensor grad_output = randn(y.shape(), {.seed = 4});
  y.backward(grad_output);
  EXPECT_TRUE(equal(x.grad(), F::max_pool2d_backward(grad_output, x, indices, options)));
  EXPECT_TRUE(equal(x.grad(), F::max_pool2d_backward(grad_output, x.desc(), indices, options)));
  x.zero_grad();
  F::max_pool2d(x, options).backward(grad_output);  // from window indices this time
  EXPECT_TRUE(equal(x.grad(), F::max_pool2d_backward(grad_output, x, indices, options)));
  x.zero_grad();
  const LpPool<2> lp{.norm_type = 3, .kernel_size = 2};
  const Tensor z = F::lp_pool2d(x * x, lp);
  const Tensor square = (x * x).detach();
  z.backward(ones_like(z));
  EXPECT_TRUE(allclose(x.grad(), F::lp_pool2d_backward(ones_like(z), square, lp) * x.detach() * 2));
}

TEST(Functional, BackwardByHandRefuses) {
  const Tensor x = randn({1, 1, 4, 4}, {.seed = 5});
  const auto [y, indices] = F::max_pool2d_with_indices(x, {.kernel_size = 2});
  expect_refused(
      [&, i = indices] {
        F::max_pool2d_backward(ones({1, 1, 3, 3}), x, i, {.kernel_size = 2});
      },
      "grad_output");
  expect_refused(
      [&, i = indices] {
        F::max_pool2d_backward(ones({1, 1, 2, 2}, {.dtype = DType::f64}), x, i, {.kernel_size = 2});
      },
      "grad_output", "f64");
  expect_refused(
      [&, i = indices] {
        F::max_pool2d_backward(ones({1, 1, 2, 2}), x, i.narrow(3, 0, 1), {.kernel_size = 2});
      },
      "indices");
  expect_refused([&] { F::max_pool2d_backward(ones({1, 1, 2, 2}), x, {}, {.kernel_size = 2}); }, "indices", "needs");
  Tensor bad = indices.clone();
  bad.at<std::int64_t>({0, 0, 0, 0}) = 15;
  try {
    F::max_pool2d_backward(ones({1, 1, 2, 2}), x, bad, {.kernel_size = 2});
    ADD_FAILURE() << "an index outside its window was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_index);
  }
}

TEST(Functional, FractionalSamplesAreDrawnFromTheSeed) {
  const Tensor x = randn({2, 3, 9, 9}, {.seed = 6});
  const FractionalMaxPool<2> options{.kernel_size = 2, .output_size = 4, .seed = 11};
  const Tensor samples = rand({2, 3, 2}, {.seed = 11});
  EXPECT_TRUE(equal(F::fractional_max_pool2d(x, options), F::fractional_max_pool2d(x, options, samples)));
  EXPECT_FALSE(
      equal(F::fractional_max_pool2d_with_indices(x, options).second,
            F::fractional_max_pool2d_with_indices(x, {.kernel_size = 2, .output_size = 4, .seed = 12}).second));
}

TEST(Functional, Refusals) {
  const Tensor x = randn({1, 1, 6, 6}, {.seed = 7});
  expect_refused([&] { F::max_pool2d(x[0][0], {.kernel_size = 2}); }, "input");
  expect_refused([&] { F::max_pool2d(x, {.kernel_size = {2, 2, 2}}); }, "kernel_size");
  expect_refused([&] { F::max_pool2d(x, {.kernel_size = 0, .stride = 1}); }, "kernel_size");
  expect_refused([&] { F::max_pool2d(x, {.kernel_size = 2, .stride = 0}); }, "stride");
  expect_refused([&] { F::max_pool2d(x, {.kernel_size = 2, .padding = 2}); }, "padding");
  expect_refused([&] { F::max_pool2d(x, {.kernel_size = 7, .stride = 2}); }, "input");
  expect_refused([&] { F::avg_pool2d(x, {.kernel_size = 2, .divisor_override = 0}); }, "divisor_override");
  expect_refused([&] { F::adaptive_avg_pool2d(x, {.output_size = -1}); }, "output_size");
  expect_refused([&] { F::adaptive_avg_pool2d(x, {.output_size = {1, 2, 3}}); }, "output_size");
  expect_refused([&] { F::lp_pool2d(x, {.norm_type = 0, .kernel_size = 2}); }, "norm_type");
  expect_refused([&] { F::lp_pool2d(x.to(DType::i32), {.kernel_size = 2}); }, "input", "i32");
  expect_refused(
      [&] {
        F::fractional_max_pool2d(x, {.kernel_size = 2, .output_size = 3}, ones({1, 2, 2}));
      },
      "random_samples");
  expect_refused(
      [&] {
        F::max_unpool2d(x, zeros({1, 1, 6, 5}, {.dtype = DType::i64}), {.kernel_size = 2});
      },
      "indices");
  expect_refused([&] { F::pool(x, {.op = Op::max_unpool, .kernel_size = 2}); }, "op");
  expect_refused([&] { F::pool_with_indices(x, {.op = Op::avg_pool, .kernel_size = 2}); }, "op");
  expect_refused([&] { F::max_pool2d(Tensor(), {.kernel_size = 2}); }, "tensor", "undefined");
}

TEST(Functional, EmptyBatch) {
  Tensor x = zeros({0, 3, 4, 4}, {.requires_grad = true});
  const Tensor y = F::max_pool2d(x, {.kernel_size = 2});
  EXPECT_EQ(to_list(y.shape()), (std::vector<std::int64_t>{0, 3, 2, 2}));
  y.sum().backward();
  EXPECT_EQ(to_list(x.grad().shape()), to_list(x.shape()));
}

}  // namespace
}  // namespace cenote::test
