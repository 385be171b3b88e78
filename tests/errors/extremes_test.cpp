// Arguments at the ends of their range: what overflows is refused, what has a meaning gives the right answer.
#include "support.hpp"

#include <chrono>
#include <cmath>

namespace cenote::testing {
namespace {

// --- max_pool1d without indices: PyTorch's one path with 64-bit arguments -------------------------------------------------

struct Wide {
  const char* name;
  MaxPool<1> options;
  const char* argument;
  std::vector<std::string> words;
};

TEST(Extremes, OfMaxPool1dAre64BitAndDoNotOverflow) {
  const std::int64_t large = std::int64_t{1} << 40;
  const Wide cases[] = {
      {"kernel", {.kernel_size = kInt64Max}, "input", {"9223372036854775807"}},
      {"kernel in ceil mode",
       {.kernel_size = kInt64Max, .ceil_mode = true},
       "kernel_size",
       {"9223372036854775807", "63 bits"}},
      {"kernel * dilation",
       {.kernel_size = large, .stride = 1, .dilation = large},
       "dilation",
       {"1099511627776", "63 bits"}},
      {"dilation",
       {.kernel_size = 3, .stride = 1, .dilation = kInt64Max},
       "dilation",
       {"9223372036854775807", "63 bits"}},
      {"padding",
       {.kernel_size = kInt64Max, .stride = 1, .padding = kInt64Max / 2},
       "padding",
       {"4611686018427387903"}},
      {"padding of a short kernel",
       {.kernel_size = 2, .padding = kInt64Max},
       "padding",
       {"9223372036854775807", "half"}},
      {"smallest padding", {.kernel_size = 2, .padding = kInt64Min}, "padding", {"-9223372036854775808"}},
      {"smallest kernel", {.kernel_size = kInt64Min}, "kernel_size", {"-9223372036854775808"}},
      {"smallest stride", {.kernel_size = 2, .stride = kInt64Min}, "stride", {"-9223372036854775808"}},
      {"smallest dilation", {.kernel_size = 2, .dilation = kInt64Min}, "dilation", {"-9223372036854775808"}},
  };
  for (const Wide& one : cases) {
    SCOPED_TRACE(one.name);
    expect_refusal(refusal_of([&] { Plan::make(valid_input(1), one.options); }), one.argument, one.words);
    PoolSpec with_indices = to_spec(one.options);
    with_indices.return_indices = true;
    EXPECT_EQ(refusal_of([&] { Plan::make(Pass::forward, valid_input(1), with_indices); }).code,
              ErrorCode::invalid_argument);
  }
}

// --- plans of large windows ------------------------------------------------------------------------------

/// Their tables do not grow with the window, not even where the number of its taps overflows; a row's are made in no time.
TEST(Extremes, OfBackwardPlansTakeNeitherMemoryNorTime) {
  PoolSpec cube{.op = Op::max_pool, .dims = 3, .kernel_size = 1 << 22, .stride = 1, .dilation = {1, 1, 2}};
  cube.padding = PaddingList(DimList{(1 << 21) - 1, (1 << 21) - 1, (1 << 22) - 1}, DimList{1 << 21, 1 << 21, 1 << 22});
  EXPECT_EQ(Plan::make(Pass::backward, TensorDesc::contiguous(DType::f32, {1, 1, 3, 3, 3}), cube).output_shape().size(),
            5U);

  PoolSpec row{.op = Op::max_pool, .dims = 1, .kernel_size = 3, .stride = 2, .padding = 1};
  row.index_kind = IndexKind::window;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Plan::make(Pass::backward, TensorDesc::contiguous(DType::f32, {1, 1, 2'000'000'000}), row).output_shape(),
            (Shape{1, 1, 1'000'000'000}));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

/// Scratch of scattered gradients is bounded however much windows overlap; nothing is multiplied beyond 63 bits where channels lie as far apart as they can.
TEST(Extremes, OfLayoutsAndOverlapsTakeNeitherMemoryNorOverflow) {
  const PoolSpec tall{.op = Op::max_pool, .dims = 2, .kernel_size = {1000, 32}, .stride = {1, 32}};
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Plan::make(Pass::backward, TensorDesc::channels_last(DType::f32, {1, 1024, 2000, 64}), tall).output_shape(),
            (Shape{1, 1024, 1001, 2}));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));

  const std::int64_t far = std::int64_t{1} << 61;
  for (const std::int64_t batch : {1, 2}) {
    TensorDesc apart = TensorDesc::contiguous(DType::u8, {batch, 4, 1, 16});
    apart.strides = {batch == 1 ? far : 1, batch == 1 ? far : far - 1, 16, 1};
    const PoolSpec row{.op = Op::max_pool, .dims = 2, .kernel_size = {1, 2}};
    EXPECT_EQ(Plan::make(Pass::forward, apart, row).output_shape(), (Shape{batch, 4, 1, 8}));
  }
}

// --- accepted -------------------------------------------------------------------------------------------

struct Accepted {
  const char* name;
  PoolSpec spec;
  Shape input;  // elements 1, 2, 3, ...
  std::vector<double> expected;
};

TEST(Extremes, WithAMeaningGiveTheRightAnswer) {
  constexpr Op kMax = Op::max_pool, kAvg = Op::avg_pool;
  const std::int64_t wide = std::int64_t{1} << 62;
  const Accepted cases[] = {
      {"kernel 2^31-1 in ceil mode", {.op = kMax, .dims = 1, .kernel_size = kInt32Max, .ceil_mode = true}, {1, 5}, {5}},
      {"kernel 2^31-1 in ceil mode",
       {.op = kMax, .dims = 2, .kernel_size = kInt32Max, .ceil_mode = true},
       {1, 2, 3},
       {6}},
      {"kernel 2^31-1 in ceil mode",
       {.op = kMax, .dims = 3, .kernel_size = kInt32Max, .ceil_mode = true},
       {1, 3, 2, 2},
       {12}},
      {"kernel 2^31-1 in ceil mode",
       {.op = Op::sum_pool, .dims = 3, .kernel_size = kInt32Max, .ceil_mode = true},
       {1, 3, 2, 2},
       {78}},
      {"kernel 2^31-1 in ceil mode",
       {.op = kAvg, .dims = 2, .kernel_size = kInt32Max, .ceil_mode = true},
       {1, 2, 3},
       {3.5}},
      {"kernel 2^62 of max_pool1d in ceil mode",
       {.op = kMax, .dims = 1, .kernel_size = wide, .ceil_mode = true},
       {1, 5},
       {5}},
      {"stride 2^31-1", {.op = kMax, .dims = 2, .kernel_size = 2, .stride = kInt32Max}, {1, 3, 3}, {5}},
      {"stride 2^31-1 in ceil mode",
       {.op = kMax, .dims = 2, .kernel_size = 2, .stride = kInt32Max, .ceil_mode = true},
       {1, 3, 3},
       {5}},
      {"stride 2^31-1", {.op = kAvg, .dims = 1, .kernel_size = 2, .stride = kInt32Max}, {1, 3}, {1.5}},
      {"stride 2^63-1 of max_pool1d", {.op = kMax, .dims = 1, .kernel_size = 2, .stride = kInt64Max}, {1, 3}, {2}},
      {"dilation 2^31-1 of one tap",
       {.op = kMax, .dims = 1, .kernel_size = 1, .stride = 2, .dilation = kInt32Max},
       {1, 5},
       {1, 3, 5}},
      {"dilation 2^31-1 of one tap",
       {.op = kMax, .dims = 3, .kernel_size = 1, .stride = 2, .dilation = kInt32Max},
       {1, 1, 2, 3},
       {1, 3}},
      {"dilation 2^31-1 of one tap",
       {.op = kAvg, .dims = 2, .kernel_size = 1, .stride = 1, .dilation = kInt32Max},
       {1, 1, 3},
       {1, 2, 3}},
      {"dilation 2^63-1 of one tap",
       {.op = kMax, .dims = 1, .kernel_size = 1, .stride = 2, .dilation = kInt64Max},
       {1, 5},
       {1, 3, 5}},
      {"dilation 1879048192 into overhang",
       {.op = kMax, .dims = 1, .kernel_size = 2, .stride = 1879048192, .dilation = 1879048192, .ceil_mode = true},
       {1, 5},
       {5 - 4}},
      {"padding more than the input",
       {.op = kMax, .dims = 1, .kernel_size = 20, .stride = 1, .padding = 10},
       {1, 3},
       {3, 3, 3, 3}},
      {"padding more than the input",
       {.op = kAvg, .dims = 1, .kernel_size = 20, .stride = 3, .padding = 10},
       {1, 3},
       {0.3, 0.3}},
      {"padding 2^30-1",
       {.op = kMax, .dims = 1, .kernel_size = kInt32Max, .stride = 1, .padding = kInt32Max / 2},
       {1, 3},
       {3, 3, 3}},
      {"asymmetric padding next to the window's extent",
       {.op = kMax, .dims = 1, .kernel_size = 3, .stride = 1, .padding = PaddingList(DimList(2), DimList(0))},
       {1, 3},
       {1, 2, 3}},
      {"divisor -2", {.op = kAvg, .dims = 1, .kernel_size = 2, .divisor_override = -2}, {1, 4}, {-1.5, -3.5}},
      {"divisor -2^63",
       {.op = kAvg, .dims = 1, .kernel_size = 1, .divisor_override = kInt64Min},
       {1, 2},
       {-0x1p-63, -0x1p-62}},
      {"divisor 2^63-1",
       {.op = kAvg, .dims = 1, .kernel_size = 1, .divisor_override = kInt64Max},
       {1, 2},
       {0x1p-63, 0x1p-62}},
      {"more outputs than inputs", {.op = Op::adaptive_max_pool, .dims = 1, .output_size = 5}, {1, 3}, {1, 2, 2, 3, 3}},
      {"output 0", {.op = Op::adaptive_avg_pool, .dims = 2, .output_size = {0, 2}}, {1, 3, 3}, {}},
      {"output 0", {.op = Op::adaptive_max_pool, .dims = 1, .output_size = 0}, {1, 3}, {}},
      {"output keep", {.op = Op::adaptive_max_pool, .dims = 2, .output_size = {1, keep}}, {1, 2, 2}, {3, 4}},
      {"fractional output 0",
       {.op = Op::fractional_max_pool, .dims = 2, .kernel_size = 2, .output_size = 0},
       {1, 3, 3},
       {}},
      {"norm infinite", {.op = Op::lp_pool, .dims = 1, .kernel_size = 2, .norm_type = HUGE_VAL}, {1, 4}, {2, 4}},
      {"norm -infinite", {.op = Op::lp_pool, .dims = 1, .kernel_size = 2, .norm_type = -HUGE_VAL}, {1, 4}, {1, 3}},
      {"norm -1", {.op = Op::lp_pool, .dims = 1, .kernel_size = 1, .norm_type = -1}, {1, 4}, {1, 2, 3, 4}},
  };
  for (const Accepted& one : cases) {
    SCOPED_TRACE(std::string(name_of(one.spec.op)) + ", " + one.name);
    const Plan plan = Plan::make(Pass::forward, TensorDesc::contiguous(DType::f64, one.input), one.spec);
    Buffers run(plan);
    for (std::int64_t i = 0; i < run.input.count(); ++i) run.input.set(i, static_cast<double>(i + 1));
    const Status status = run.run();
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(run.output.values().size(), one.expected.size());
    for (std::size_t i = 0; i < one.expected.size(); ++i)
      EXPECT_DOUBLE_EQ(run.output.values()[i], one.expected[i]) << i;
    EXPECT_TRUE(run.guards_intact());
  }
}

/// An extreme window's indices find their way back: no product of taps may overflow on the way.
TEST(Extremes, HaveAGradient) {
  const PoolSpec specs[] = {
      {.op = Op::max_pool, .dims = 1, .kernel_size = kInt32Max, .ceil_mode = true},
      {.op = Op::max_pool, .dims = 2, .kernel_size = kInt32Max, .ceil_mode = true},
      {.op = Op::max_pool, .dims = 3, .kernel_size = kInt32Max, .ceil_mode = true},
      {.op = Op::max_pool, .dims = 3, .kernel_size = 1, .stride = 6, .dilation = kInt32Max},
      {.op = Op::max_pool, .dims = 2, .kernel_size = 2, .stride = kInt32Max},
      {.op = Op::max_pool,
       .dims = 3,
       .kernel_size = 1,
       .stride = 6,
       .dilation = kInt32Max,
       .index_kind = IndexKind::window},
      {.op = Op::max_pool, .dims = 2, .kernel_size = 2, .stride = kInt32Max, .index_kind = IndexKind::window},
      {.op = Op::max_pool,
       .dims = 3,
       .kernel_size = 2,
       .stride = 1879048192,
       .dilation = 1879048192,
       .ceil_mode = true,
       .index_kind = IndexKind::window},
      {.op = Op::avg_pool, .dims = 2, .kernel_size = kInt32Max, .ceil_mode = true},
      {.op = Op::sum_pool, .dims = 3, .kernel_size = kInt32Max, .ceil_mode = true},
      {.op = Op::avg_pool, .dims = 3, .kernel_size = 1, .stride = 6, .dilation = kInt32Max},
      {.op = Op::sum_pool, .dims = 1, .kernel_size = 2, .stride = kInt32Max, .dilation = 5},
  };
  for (const PoolSpec& spec : specs) {
    SCOPED_TRACE(label(spec.op, spec.dims, Pass::backward));
    const Plan plan = Plan::make(Pass::backward, valid_input(spec.dims), spec);
    Buffers run(plan);
    run.grad_output.fill(1);
    const Status status = run.run();
    ASSERT_TRUE(status.ok()) << status.message();
    double sum = 0;
    for (const double value : run.grad_input.values()) sum += value;
    const double planes = 6, plane = static_cast<double>(run.grad_input.count()) / planes;
    const bool sums = spec.op == Op::sum_pool;
    EXPECT_NEAR(sum, sums ? planes * (spec.dims == 3 ? plane : 2) : planes, 1e-3);  // one window a plane
    EXPECT_TRUE(run.guards_intact());
  }
}

TEST(Extremes, IndexKindsThatCannotHoldTheIndexAreRefused) {
  PoolSpec spec{
      .op = Op::max_pool, .dims = 2, .kernel_size = 2, .return_indices = true, .index_kind = IndexKind::flat32};
  expect_refusal(refusal_of([&] {
                   Plan::make(Pass::forward, TensorDesc::contiguous(DType::i8, {1, 1, 65536, 65536}), spec);
                 }),
                 "index_kind", {"flat32", "4294967296"});
  spec = {.op = Op::max_pool,
          .dims = 2,
          .kernel_size = {kInt32Max, 3},
          .ceil_mode = true,
          .return_indices = true,
          .index_kind = IndexKind::window};
  expect_refusal(refusal_of([&] { Plan::make(Pass::forward, valid_input(2), spec); }), "index_kind",
                 {"window", "6442450941"});
  spec.kernel_size = kInt32Max;
  spec.dims = 3;
  expect_refusal(refusal_of([&] { Plan::make(Pass::forward, valid_input(3), spec); }), "index_kind", {"window"});
}

TEST(Extremes, UnknownTargetsAreRefused) {
  expect_refusal(
      refusal_of([&] { Plan::make(Pass::forward, valid_input(2), valid_spec(Op::max_pool, 2), {.target = "Z80"}); }),
      "target", {"Z80"});
}

}  // namespace
}  // namespace cenote::testing
