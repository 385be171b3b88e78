// Where functions and modules take more than a plan does: tensors that may be undefined, gradients by hand, constructors.
#include "support.hpp"

#include <cmath>

namespace cenote::testing {
namespace {

namespace F = functional;

struct Call {
  const char* name;
  std::function<void()> call;
  const char* argument;
  std::vector<std::string> words;
  ErrorCode code = ErrorCode::invalid_argument;
};

void expect_refused(const std::vector<Call>& calls) {
  for (const Call& one : calls) {
    SCOPED_TRACE(one.name);
    expect_refusal(refusal_of(one.call), one.argument, one.words, one.code);
  }
}

Tensor indices_of(const Shape& shape, double value = 0) { return full(shape, value, {.dtype = DType::i64}); }

TEST(Functional, RefusesGradientsAndIndicesOfAnotherCall) {
  const Tensor x = ones({2, 3, 6, 6}), y = ones({2, 3, 3, 3});
  const Tensor indices = F::max_pool2d_with_indices(x, {.kernel_size = 2}).second;
  const MaxPool<2> options{.kernel_size = 2};
  ASSERT_EQ(refusal_of([&] { F::max_pool2d_backward(y, x, indices, options); }).message, "");
  expect_refused({
      {"batch",
       [&] {
         F::max_pool2d_backward(ones({9, 3, 3, 3}), x, indices, options);
       },
       "grad_output",
       {"[2, 3, 3, 3]", "[9, 3, 3, 3]"}},
      {"channels",
       [&] {
         F::max_pool2d_backward(ones({2, 4, 3, 3}), x, indices, options);
       },
       "grad_output",
       {"[2, 4, 3, 3]"}},
      {"height",
       [&] {
         F::max_pool2d_backward(ones({2, 3, 2, 3}), x, indices, options);
       },
       "grad_output",
       {"[2, 3, 2, 3]"}},
      {"rank",
       [&] {
         F::max_pool2d_backward(ones({3, 3, 3}), x, indices, options);
       },
       "grad_output",
       {"[3, 3, 3]"}},
      {"dtype", [&] { F::max_pool2d_backward(y.to(DType::f64), x, indices, options); }, "grad_output", {"f32", "f64"}},
      {"indices' batch",
       [&] {
         F::max_pool2d_backward(y, x, indices_of({5, 3, 3, 3}), options);
       },
       "indices",
       {"[5, 3, 3, 3]"}},
      {"indices' width",
       [&] {
         F::max_pool2d_backward(y, x, indices_of({2, 3, 3, 4}), options);
       },
       "indices",
       {"[2, 3, 3, 4]"}},
      {"indices' dtype",
       [&] { F::max_pool2d_backward(y, x, indices.to(DType::i32), options); },
       "indices",
       {"i64", "i32"}},
      {"indices' place",
       [&] {
         F::max_pool2d_backward(y, x, indices_of({2, 3, 3, 3}, 35), options);
       },
       "saved_indices",
       {"index 35"},
       ErrorCode::invalid_index},
      {"no indices", [&] { F::pool_backward(y, x, to_spec(options)); }, "indices", {"indices"}},
      {"indices nobody reads",
       [&] { F::pool_backward(y, x, valid_spec(Op::avg_pool, 2), indices); },
       "indices",
       {"takes no indices"}},
      {"avg batch",
       [&] {
         F::avg_pool2d_backward(ones({1, 3, 3, 3}), x, {.kernel_size = 2});
       },
       "grad_output",
       {"[1, 3, 3, 3]"}},
      {"avg channels",
       [&] {
         F::avg_pool2d_backward(ones({2, 1, 3, 3}), x, {.kernel_size = 2});
       },
       "grad_output",
       {"[2, 1, 3, 3]"}},
      {"avg empty",
       [&] {
         F::avg_pool2d_backward(ones({0, 0, 0, 0}), x, {.kernel_size = 2});
       },
       "grad_output",
       {"[0, 0, 0, 0]"}},
      {"adaptive channels",
       [&] {
         F::adaptive_avg_pool2d_backward(ones({2, 2, 3, 3}), x, {.output_size = 3});
       },
       "grad_output",
       {"[2, 2, 3, 3]"}},
      {"adaptive size",
       [&] {
         F::adaptive_max_pool2d_backward(ones({2, 3, 4, 4}), x, indices, {.output_size = 3});
       },
       "grad_output",
       {"[2, 3, 4, 4]"}},
      {"adaptive size 0",
       [&] {
         F::adaptive_avg_pool2d_backward(ones({2, 3, 0, 3}), x, {.output_size = {0, 3}});
       },
       "output_size",
       {"0"}},
      {"lp batch",
       [&] {
         F::lp_pool2d_backward(ones({1, 3, 3, 3}), x, {.kernel_size = 2});
       },
       "grad_output",
       {"[1, 3, 3, 3]"}},
      {"lp without elements", [&] { F::pool_backward(y, x, valid_spec(Op::lp_pool, 2)); }, "input", {"lp_pool"}},
      {"fractional size",
       [&] {
         F::fractional_max_pool2d_backward(ones({2, 3, 2, 3}), x, indices, {.kernel_size = 2, .output_size = 3});
       },
       "grad_output",
       {"[2, 3, 2, 3]"}},
      {"fractional indices beyond the plane",
       [&] {
         F::fractional_max_pool2d_backward(y, x, indices_of({2, 3, 3, 3}, 36), {.kernel_size = 2, .output_size = 3});
       },
       "saved_indices",
       {"index 36"},
       ErrorCode::invalid_index},
      {"fractional window indices without samples",
       [&] {
         F::fractional_max_pool2d_backward(y, x, zeros({2, 3, 3, 3}, {.dtype = DType::u8}),
                                           {.kernel_size = 2, .output_size = 3, .index_kind = IndexKind::window});
       },
       "random_samples",
       {"random_samples"}},
      {"unpool gradient",
       [&] {
         F::max_unpool2d_backward(ones({2, 3, 6, 5}), y, indices, {.kernel_size = 2});
       },
       "grad_output",
       {"[2, 3, 6, 5]"}},
      {"unpool gradient beyond the plane",
       [&] {
         F::max_unpool2d_backward(x, y, indices_of({2, 3, 3, 3}, 36), {.kernel_size = 2});
       },
       "saved_indices",
       {"index 36"},
       ErrorCode::invalid_index},
  });
}

TEST(Functional, RefusesWhatAnUnpoolCannotRead) {
  const Tensor y = ones({2, 3, 3, 3}), indices = indices_of({2, 3, 3, 3});
  const MaxUnpool<2> options{.kernel_size = 2};
  ASSERT_EQ(refusal_of([&] { F::max_unpool2d(y, indices, options); }).message, "");
  expect_refused({
      {"int32", [&] { F::max_unpool2d(y, indices.to(DType::i32), options); }, "indices", {"i64", "i32"}},
      {"shape",
       [&] {
         F::max_unpool2d(y, indices_of({2, 3, 3, 2}), options);
       },
       "indices",
       {"[2, 3, 3, 2]"}},
      {"batch",
       [&] {
         F::max_unpool2d(y, indices_of({1, 3, 3, 3}), options);
       },
       "indices",
       {"[1, 3, 3, 3]"}},
      {"empty",
       [&] {
         F::max_unpool2d(y, indices_of({0, 3, 3, 3}), options);
       },
       "indices",
       {"[0, 3, 3, 3]"}},
      {"-1",
       [&] {
         F::max_unpool2d(y, indices_of({2, 3, 3, 3}, -1), options);
       },
       "saved_indices",
       {"index -1"},
       ErrorCode::invalid_index},
      {"36",
       [&] {
         F::max_unpool2d(y, indices_of({2, 3, 3, 3}, 36), options);
       },
       "saved_indices",
       {"index 36"},
       ErrorCode::invalid_index},
      {"2^40",
       [&] {
         F::max_unpool2d(y, indices_of({2, 3, 3, 3}, 0x1p40), options);
       },
       "saved_indices",
       {"index 1099511627776"},
       ErrorCode::invalid_index},
      {"another op", [&] { F::unpool(y, indices, valid_spec(Op::max_pool, 2)); }, "op", {"max_pool2d"}},
      {"unpool as a pool", [&] { F::pool(y, valid_spec(Op::max_unpool, 2)); }, "op", {"max_unpool"}},
      {"indices of an op without", [&] { F::pool_with_indices(y, valid_spec(Op::avg_pool, 2)); }, "op", {"avg_pool2d"}},
  });
}

TEST(Functional, RefusesSamples) {
  const Tensor x = ones({2, 3, 6, 6});
  const FractionalMaxPool<2> options{.kernel_size = 2, .output_size = 3};
  ASSERT_EQ(refusal_of([&] { F::fractional_max_pool2d(x, options, full({2, 3, 2}, 0.5)); }).message, "");
  std::vector<Call> calls = {
      {"shape",
       [&] {
         F::fractional_max_pool2d(x, options, full({2, 3, 3}, 0.5));
       },
       "random_samples",
       {"[2, 3, 3]"}},
      {"batch",
       [&] {
         F::fractional_max_pool2d(x, options, full({1, 3, 2}, 0.5));
       },
       "random_samples",
       {"[1, 3, 2]"}},
      {"empty",
       [&] {
         F::fractional_max_pool2d(x, options, zeros({0, 3, 2}));
       },
       "random_samples",
       {"[0, 3, 2]"}},
      {"dtype",
       [&] {
         F::fractional_max_pool2d(x, options, full({2, 3, 2}, 0.5, {.dtype = DType::f64}));
       },
       "random_samples",
       {"f32", "f64"}},
      {"another op",
       [&] {
         F::pool(x, valid_spec(Op::max_pool, 2), full({2, 3, 2}, 0.5));
       },
       "random_samples",
       {"max_pool2d"}},
  };
  for (const double bad : {-0.5, 1.0, double{INFINITY}, double{NAN}}) {
    calls.push_back({"value",
                     [&x, &options, bad] {
                       F::fractional_max_pool2d(x, options, full({2, 3, 2}, bad));
                     },
                     "random_samples",
                     {"[0, 1)"}});
  }
  expect_refused(calls);
}

TEST(Functional, RefusesUndefinedTensors) {
  const Tensor none, x = ones({2, 3, 6, 6});
  for (const Op op : kAllOps) {
    SCOPED_TRACE(name_of(op));
    EXPECT_NE(refusal_of([&] {
                if (op == Op::max_unpool) {
                  F::unpool(none, indices_of({2, 3, 6, 6}), valid_spec(op, 2));
                } else {
                  F::pool(none, valid_spec(op, 2));
                }
              }).message,
              "");
  }
  EXPECT_NE(refusal_of([&] { F::max_unpool2d(x, none, {.kernel_size = 2}); }).message, "");
  EXPECT_NE(refusal_of([&] { F::avg_pool2d_backward(none, x, {.kernel_size = 2}); }).message, "");
  EXPECT_NE(refusal_of([&] { F::lp_pool2d_backward(x, none, {.kernel_size = 2}); }).message, "");
  EXPECT_NE(refusal_of([&] { F::global_max_pool2d(none); }).message, "");
  EXPECT_NE(refusal_of([&] { F::global_sum_pool2d(none); }).message, "");
}

TEST(Functional, RefusesGlobalPoolsOfEmptyPlanesAndWrongRanks) {
  for (const Op op : {Op::max_pool, Op::min_pool, Op::avg_pool, Op::sum_pool}) {
    for (const Shape& shape :
         {Shape{2, 3, 0, 6}, Shape{2, 3, 6, 0}, Shape{6, 6}, Shape{6}, Shape{}, Shape{1, 2, 3, 4, 5}}) {
      SCOPED_TRACE(std::string(name_of(op)) + " of " + to_string(shape));
      expect_refusal(refusal_of([&] { F::global_pool(zeros(shape), op, 2); }), "input", {to_string(shape)});
    }
    for (const int dims : {0, -1, 4, 1000}) {
      EXPECT_EQ(static_cast<int>(refusal_of([&] {
                                   F::global_pool(ones({2, 3, 6, 6}), op, dims);
                                 }).code),
                static_cast<int>(ErrorCode::invalid_argument))
          << dims;
    }
  }
  expect_refusal(refusal_of([&] { F::global_pool(ones({2, 3, 6, 6}), Op::lp_pool, 2); }), "op", {"lp_pool"});
}

TEST(Modules, RefuseLikeTheFunctions) {
  const Tensor x = ones({2, 3, 6, 6});
  expect_refused({
      {"MaxPool2d", [&] { nn::MaxPool2d({.kernel_size = 0})(x); }, "kernel_size", {"got 0"}},
      {"MaxPool2d indices",
       [&] { nn::MaxPool2d({.kernel_size = 2, .return_indices = true})(x); },
       "return_indices",
       {"forward_with_indices"}},
      {"AvgPool2d", [&] { nn::AvgPool2d({.kernel_size = 2, .divisor_override = 0})(x); }, "divisor_override", {"0"}},
      {"LPPool2d", [&] { nn::LPPool2d({.norm_type = 0, .kernel_size = 2})(x); }, "norm_type", {"got 0"}},
      {"AdaptiveMaxPool2d", [&] { nn::AdaptiveMaxPool2d({.output_size = -1})(x); }, "output_size", {"got -1"}},
      {"MaxUnpool2d",
       [&] {
         nn::MaxUnpool2d({.kernel_size = 2})(x, indices_of({2, 3, 6, 6}, 144));
       },
       "saved_indices",
       {"index 144"},
       ErrorCode::invalid_index},
      {"MaxUnpool2d size",
       [&] {
         nn::MaxUnpool2d({.kernel_size = 2})(x, indices_of({2, 3, 6, 6}), {14, 12});
       },
       "output_size",
       {"14"}},
      {"fractional kernel 0",
       [] { nn::FractionalMaxPool2d({.kernel_size = 0, .output_size = 3}); },
       "kernel_size",
       {"0"}},
      {"fractional kernel -1",
       [] {
         nn::FractionalMaxPool3d({.kernel_size = {2, 2, -1}, .output_size = 3});
       },
       "kernel_size",
       {"-1"}},
      {"fractional neither", [] { nn::FractionalMaxPool2d({.kernel_size = 2}); }, "output_size", {"exactly one"}},
      {"fractional both",
       [] { nn::FractionalMaxPool2d({.kernel_size = 2, .output_size = 3, .output_ratio = 0.5}); },
       "output_size",
       {"exactly one"}},
      {"fractional ratio 0",
       [] { nn::FractionalMaxPool2d({.kernel_size = 2, .output_ratio = 0.0}); },
       "output_ratio",
       {"0"}},
      {"fractional ratio 1",
       [] { nn::FractionalMaxPool2d({.kernel_size = 2, .output_ratio = 1.0}); },
       "output_ratio",
       {"1"}},
      {"fractional ratio -0.5",
       [] {
         nn::FractionalMaxPool2d({.kernel_size = 2, .output_ratio = {0.5, -0.5}});
       },
       "output_ratio",
       {"-0.5"}},
      {"fractional ratio NaN",
       [] { nn::FractionalMaxPool2d({.kernel_size = 2, .output_ratio = NAN}); },
       "output_ratio",
       {"nan"}},
      {"fractional kernel []",
       [&] { nn::FractionalMaxPool2d({.kernel_size = {}, .output_size = 3})(x); },
       "kernel_size",
       {"[]"}},
  });
}

/// A refused call leaves nothing on the tape and nothing in the gradient.
TEST(Tape, IsUnchangedByARefusal) {
  Tensor x = ones({2, 3, 6, 6});
  x.set_requires_grad();
  const Tensor y = F::max_pool2d(x, {.kernel_size = 2});
  EXPECT_NE(refusal_of([&] { y.backward(ones({2, 3, 3, 2})); }).message, "");
  EXPECT_NE(refusal_of([&] { y.backward(ones({1, 3, 3, 3})); }).message, "");
  EXPECT_FALSE(x.grad().defined());
  y.backward(ones({2, 3, 3, 3}));
  EXPECT_EQ(x.grad().sum().item(), 54);
}

}  // namespace
}  // namespace cenote::testing
