// Values with rules of their own: samples outside [0, 1), norms, and windows of nothing but -inf, NaN or the lowest integer.
#include "support.hpp"

#include <cmath>

namespace cenote::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

TEST(RandomSamples, OutsideTheUnitIntervalAreRefusedBeforeAnythingIsWritten) {
  for (const int dims : {2, 3}) {
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      PoolSpec spec = valid_spec(Op::fractional_max_pool, dims);
      spec.return_indices = true;
      const Plan plan = Plan::make(Pass::forward, valid_input(dims, dtype), spec);
      Buffers run(plan);
      for (const std::int64_t at : {std::int64_t{0}, std::int64_t{3}, run.samples.count() - 1}) {
        for (const double bad : {-0.125, 1.0, 1.5, 1e4, -1e4, kInf, -kInf, kNaN}) {
          SCOPED_TRACE(std::to_string(dims) + "d " + name_of(dtype) + ": " + std::to_string(bad));
          run.samples.fill(0.25).set(at, bad);
          const std::string value = std::isnan(bad) ? "nan" : text_of(run.samples.get(at));
          expect_refusal(refusal_of(run.run()), "random_samples", {"[0, 1)", "got " + value});
          EXPECT_TRUE(run.results_untouched());
        }
      }
      run.samples.fill(0.25).set(0, -0.0);
      EXPECT_TRUE(run.run().ok());
      run.samples.fill(dtype == DType::f64   ? std::nextafter(1.0, 0.0)
                       : dtype == DType::f32 ? std::nextafter(1.0F, 0.0F)
                                             : 0.99609375);
      EXPECT_TRUE(run.run().ok());
      EXPECT_TRUE(run.guards_intact());
      for (const double index : run.indices.values()) EXPECT_TRUE(index >= 0 && index < (dims == 2 ? 36 : 216));
    }
  }
}

TEST(RandomSamples, OfSurplusRowsAreNotLookedAt) {
  const Plan plan = Plan::make(Pass::forward, valid_input(2), valid_spec(Op::fractional_max_pool, 2),
                               {.random_samples = TensorDesc::contiguous(DType::f32, {3, 3, 2})});
  Buffers run(plan);
  for (int i = 12; i < 18; ++i) run.samples.set(i, kNaN);
  EXPECT_TRUE(run.run().ok());
  run.samples.set(11, kNaN);
  EXPECT_FALSE(run.run().ok());
}

TEST(RandomSamples, OfABackwardFromWindowIndicesAreCheckedToo) {
  PoolSpec spec = valid_spec(Op::fractional_max_pool, 2);
  spec.index_kind = IndexKind::window;
  const Plan plan = Plan::make(Pass::backward, valid_input(2), spec);
  Buffers run(plan);
  ASSERT_TRUE(run.run().ok());
  Buffers refused(plan);
  refused.samples.set(5, 1);
  expect_refusal(refusal_of(refused.run()), "random_samples", {"[0, 1)", "got 1"});
  EXPECT_TRUE(refused.results_untouched());
}

// --- norms ----------------------------------------------------------------------------------------------------------------

struct Norm {
  double norm;
  std::vector<double> input, output, gradient;  // windows of 2
};

TEST(Norms, OfEveryKindGiveWhatTheSpecificationSays) {
  const Norm cases[] = {
      {kInf, {-3, 2, 1, -1}, {3, 1}, {-1, 0, 1, 0}},  {-kInf, {-3, 2, -1, 4}, {2, 1}, {0, 1, -1, 0}},
      {kInf, {0, -0.0, kNaN, 1}, {0, kNaN}, {}},      {-1, {1, 2, 0, 5}, {2.0 / 3, 0}, {}},
      {2.3, {-1, 2, 3, -4}, {kNaN, kNaN}, {}},        {2.3, {0, 0, 1, 0}, {0, 1}, {0, 0, 1, 0}},
      {3, {-1, -2, 3, 1}, {kNaN, std::cbrt(28)}, {}}, {1, {-1, -2, 3, 4}, {-3, 7}, {1, 1, 1, 1}},
      {2, {0, 0, 3, 4}, {0, 5}, {0, 0, 0.6, 0.8}},    {0.5, {0, 0, 0, 4}, {0, 4}, {kNaN, kNaN, kInf, 1}},
      {5e-324, {1, 1, 1, 1}, {kInf, kInf}, {}},  // 2^(1/p)
  };
  for (const Norm& one : cases) {
    SCOPED_TRACE(one.norm);
    const LpPool<1> options{.norm_type = one.norm, .kernel_size = 2};
    const TensorDesc desc = TensorDesc::contiguous(DType::f64, {1, 4});
    const Plan forward = Plan::make(desc, options), backward = Plan::make_backward(desc, options);
    Buffers run(forward), back(backward);
    back.grad_output.fill(1);
    for (int i = 0; i < 4; ++i) run.input.set(i, one.input[i]), back.input.set(i, one.input[i]);
    ASSERT_TRUE(run.run().ok());
    ASSERT_TRUE(back.run().ok());
    const auto same = [](const std::vector<double>& got, const std::vector<double>& want) {
      for (std::size_t i = 0; i < want.size(); ++i) {
        if (std::isnan(want[i]) || std::isinf(want[i])) {
          EXPECT_EQ(std::isnan(got[i]), std::isnan(want[i])) << got[i];
          EXPECT_EQ(std::isinf(got[i]), std::isinf(want[i])) << got[i];
        } else {
          EXPECT_NEAR(got[i], want[i], 1e-14) << i;
        }
      }
    };
    same(run.output.values(), one.output);
    same(back.grad_input.values(), one.gradient);
  }
}

// --- windows of one value -------------------------------------------------------------------------------------------------

struct Lowest {
  DType dtype;
  double value;
};

/// An all -inf, all NaN or all-lowest window has an index inside it: the first tap, or the last for NaN. A gradient follows it.
TEST(Windows, OfNothingButTheIdentityHaveAnIndexInsideThem) {
  const Lowest kinds[] = {{DType::f32, -kInf},  {DType::f64, -kInf}, {DType::f16, -kInf},  {DType::bf16, -kInf},
                          {DType::f32, kNaN},   {DType::f64, kNaN},  {DType::f16, kNaN},   {DType::bf16, kNaN},
                          {DType::i8, -128},    {DType::u8, 0},      {DType::i16, -32768}, {DType::i32, -2147483648.0},
                          {DType::i64, -0x1p63}};
  for (const Lowest& kind : kinds) {
    for (const bool smallest : {false, true}) {
      if (smallest && !is_floating(kind.dtype)) continue;
      for (const bool channels_last : {false, true}) {
        for (const std::string& target : cpu_targets()) {
          SCOPED_TRACE(std::string(name_of(kind.dtype)) + " " + std::to_string(kind.value) +
                       (channels_last ? " channels-last" : "") + (smallest ? " min" : "") + " on " + target);
          const Shape shape{1, 18, 4, 4};
          const TensorDesc desc =
              channels_last ? TensorDesc::channels_last(kind.dtype, shape) : TensorDesc::contiguous(kind.dtype, shape);
          PoolSpec spec{.op = smallest ? Op::min_pool : Op::max_pool,
                        .dims = 2,
                        .kernel_size = 2,
                        .stride = 2,
                        .padding = 1,
                        .return_indices = true};
          const double value = smallest ? -kind.value : kind.value;
          const bool nan = std::isnan(value);
          const std::vector<double> expected = nan ? std::vector<double>{0, 2, 3, 8, 10, 11, 12, 14, 15}
                                                   : std::vector<double>{0, 1, 3, 4, 5, 7, 12, 13, 15};
          const Plan plan = Plan::make(Pass::forward, desc, spec, {.target = target});
          Buffers run(plan);
          run.input.fill(value);
          ASSERT_TRUE(run.run().ok());
          for (std::int64_t i = 0; i < run.output.count(); ++i) {
            EXPECT_EQ(run.indices.get_integer(i), static_cast<std::int64_t>(expected[static_cast<std::size_t>(i % 9)]));
            EXPECT_TRUE(nan ? std::isnan(run.output.get(i)) : run.output.get(i) == value) << run.output.get(i);
          }
          EXPECT_TRUE(run.guards_intact());
          if (!is_floating(kind.dtype)) continue;
          const Plan backward = Plan::make(Pass::backward, desc, spec, {.target = target});
          Buffers back(backward);
          for (std::int64_t i = 0; i < back.indices.count(); ++i)
            back.indices.set_integer(i, run.indices.get_integer(i));
          back.grad_output.fill(1);
          ASSERT_TRUE(back.run().ok());
          double sum = 0;
          for (const double gradient : back.grad_input.values()) sum += gradient;
          EXPECT_EQ(sum, 18 * 9);
          EXPECT_TRUE(back.guards_intact());
        }
      }
    }
  }
}

struct Empty {
  const char* name;
  PoolSpec spec;
  Shape input;
  std::vector<bool> empty;  // for each output of a plane
};

/// Dilated windows that fall wholly into the padding: the identity, index -1 and no gradient.
TEST(Windows, WithoutAnElementAreDefined) {
  const Empty cases[] = {
      {"1d", {.dims = 1, .kernel_size = 2, .stride = 2, .padding = 1, .dilation = 2}, {1, 3, 1}, {true}},
      {"a row",
       {.dims = 2, .kernel_size = {1, 2}, .stride = 1, .padding = {0, 1}, .dilation = {1, 3}},
       {1, 3, 1, 2},
       {true}},
      {"3d", {.dims = 3, .kernel_size = 2, .stride = 2, .padding = 1, .dilation = 2}, {1, 3, 1, 1, 1}, {true}},
      {"one axis of two",
       {.dims = 2, .kernel_size = 2, .stride = 1, .padding = 1, .dilation = 4},
       {1, 3, 3, 3},
       {true}},
      {"some of them",
       {.dims = 1, .kernel_size = 2, .stride = 1, .padding = 1, .dilation = 3},
       {1, 3, 3},
       {false, false}},
      {"the first of them",
       {.dims = 1, .kernel_size = 2, .stride = 1, .padding = PaddingList(DimList(3), DimList(2)), .dilation = 4},
       {1, 3, 1},
       {true, false}},
  };
  for (const Empty& one : cases) {
    for (const Op op : kSlidingOps) {
      for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::i8, DType::i32, DType::i64}) {
        for (const IndexKind kind : {IndexKind::flat64, IndexKind::flat32, IndexKind::window}) {
          for (const std::string& target : cpu_targets()) {
            if (op == Op::lp_pool && !is_floating(dtype)) continue;
            if ((op == Op::avg_pool || op == Op::lp_pool) && one.spec.dims == 3)
              continue;  // kernel larger than the input
            SCOPED_TRACE(std::string(one.name) + ": " + name_of(op) + " of " + name_of(dtype) + ", " + name_of(kind) +
                         " on " + target);
            PoolSpec spec = one.spec;
            spec.op = op;
            spec.index_kind = kind;
            spec.return_indices = true;
            const Plan plan =
                Plan::make(Pass::forward, TensorDesc::contiguous(dtype, one.input), spec, {.target = target});
            Buffers run(plan);
            const Status status = run.run();
            ASSERT_TRUE(status.ok()) << status.message();
            ASSERT_EQ(plan.output().numel(), static_cast<std::int64_t>(3 * one.empty.size()));
            const double lowest = is_floating(dtype)    ? -kInf
                                  : dtype == DType::i8  ? -128
                                  : dtype == DType::i32 ? -2147483648.0
                                                        : -0x1p63;
            const double highest = is_floating(dtype)    ? kInf
                                   : dtype == DType::i8  ? 127
                                   : dtype == DType::i32 ? 2147483647.0
                                                         : 0x1p63;
            for (std::int64_t i = 0; i < run.output.count(); ++i) {
              if (!one.empty[static_cast<std::size_t>(i) % one.empty.size()]) continue;
              EXPECT_EQ(run.output.get(i), op == Op::max_pool ? lowest : op == Op::min_pool ? highest : 0) << i;
              if (is_max_family(op)) {
                EXPECT_EQ(run.indices.get_integer(i), kind == IndexKind::window ? 255 : -1);
              }
            }
            EXPECT_TRUE(run.guards_intact());

            const Plan backward =
                Plan::make(Pass::backward, TensorDesc::contiguous(dtype, one.input), spec, {.target = target});
            Buffers back(backward);
            back.grad_output.fill(1);
            const Status ended = back.run();
            ASSERT_TRUE(ended.ok()) << ended.message();
            EXPECT_TRUE(back.guards_intact());
            if (std::find(one.empty.begin(), one.empty.end(), false) == one.empty.end()) {
              for (const double gradient : back.grad_input.values()) EXPECT_EQ(gradient, 0);
            }
          }
        }
      }
    }
  }
}

TEST(Divisors, OfIntegersAreExact) {
  struct {
    std::int64_t value, divisor, expected;
  } const cases[] = {{7, 2, 3},
                     {-7, 2, -3},
                     {7, -2, -3},
                     {7, -1, -7},
                     {kInt64Min, -1, kInt64Min},
                     {5, kInt64Max, 0},
                     {5, kInt64Min, 0},
                     {kInt64Max, kInt64Max, 1},
                     {kInt64Min, kInt64Min, 1}};
  for (const auto& one : cases) {
    SCOPED_TRACE(std::to_string(one.value) + " / " + std::to_string(one.divisor));
    const AvgPool<1> options{.kernel_size = 1, .divisor_override = one.divisor};
    const TensorDesc desc = TensorDesc::contiguous(DType::i64, {1, 3});
    const Plan forward = Plan::make(desc, options), backward = Plan::make_backward(desc, options);
    Buffers run(forward), back(backward);
    for (int i = 0; i < 3; ++i) run.input.set_integer(i, one.value), back.grad_output.set_integer(i, one.value);
    ASSERT_TRUE(run.run().ok());
    ASSERT_TRUE(back.run().ok());
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(run.output.get_integer(i), one.expected);
      EXPECT_EQ(back.grad_input.get_integer(i), one.expected);
    }
  }
}

}  // namespace
}  // namespace cenote::testing
