// Ranks, empty dimensions and element counts.
#include "support.hpp"

/// Under the address sanitizer, too, memory that is not to be had is an answer and not the end of the program.
extern "C" [[gnu::visibility("default"), gnu::used]] const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }

namespace cenote::testing {
namespace {

TEST(Ranks, OtherThanTheOpsAreRefused) {
  for (const Op op : kAllOps) {
    for (const int dims : {1, 2, 3}) {
      if (!exists(op, dims)) continue;
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        for (int rank = 0; rank <= kMaxRank; ++rank) {
          if (rank == dims + 1 || rank == dims + 2) continue;
          SCOPED_TRACE(label(op, dims, pass) + " of rank " + std::to_string(rank));
          const Shape all{2, 3, 6, 6, 6, 2, 2, 2};
          const Shape shape(std::span<const std::int64_t>(all.begin(), static_cast<std::size_t>(rank)));
          const std::vector<std::string> words = {std::to_string(dims + 1) + " dimensions", to_string(shape)};
          expect_refusal(refusal_of([&] {
                           Plan::make(pass, {DType::f32, shape}, valid_spec(op, dims));
                         }),
                         "input", words);
          if (pass == Pass::backward) continue;
          expect_refusal(refusal_of([&] {
                           const Tensor input = ones(shape);
                           if (op == Op::max_unpool) {
                             functional::unpool(input, zeros(shape, {.dtype = DType::i64}), valid_spec(op, dims));
                           } else {
                             functional::pool(input, valid_spec(op, dims));
                           }
                         }),
                         "input", words);
        }
      }
    }
  }
}

TEST(Ranks, BeyondEightAreRefusedByTheShape) {
  expect_refusal(refusal_of([] { Shape({1, 2, 3, 4, 5, 6, 7, 8, 9}); }), "shape", {"9 dimensions", "at most 8"});
}

TEST(Ranks, OpsHaveOneToThreeAxes) {
  for (const Op op : kAllOps) {
    for (const int dims : {-1, 0, 4, 7, 1000, 1 << 30}) {
      SCOPED_TRACE(std::string(name_of(op)) + std::to_string(dims));
      PoolSpec spec = valid_spec(op, 2);
      if (!spec.kernel_size.empty()) spec.kernel_size = {2, 2};
      spec.dims = dims;
      const std::vector<std::string> words = {"1, 2 or 3", std::to_string(dims)};
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        expect_refusal(refusal_of([&] { Plan::make(pass, valid_input(2), spec); }), "dims", words);
      }
      Tensor input = ones(valid_shape(2));
      input.set_requires_grad();
      expect_refusal(refusal_of([&] {
                       if (op == Op::max_unpool) {
                         functional::unpool(input, zeros(valid_shape(2), {.dtype = DType::i64}), spec);
                       } else {
                         functional::pool(input, spec);
                       }
                     }),
                     "dims", words);
    }
  }
  PoolSpec spec = valid_spec(Op::fractional_max_pool, 2);
  spec.dims = 1;
  expect_refusal(refusal_of([&] { Plan::make(Pass::forward, valid_input(1), spec); }), "dims", {"2 or 3", "1"});
}

/// Which empty dimensions each op accepts: a table of the specification, as PyTorch has it.
struct Emptiness {
  Op op;
  int dims;
  bool batched_channel, lone_channel;  // C = 0 with and without a batch; N = 0 is always accepted, an empty axis never
};
constexpr Emptiness kEmptiness[] = {
    {Op::max_pool, 1, false, false},
    {Op::max_pool, 2, false, false},
    {Op::max_pool, 3, false, false},
    {Op::min_pool, 1, false, false},
    {Op::min_pool, 2, false, false},
    {Op::min_pool, 3, false, false},
    {Op::avg_pool, 1, false, false},
    {Op::avg_pool, 2, false, false},
    {Op::avg_pool, 3, false, false},
    {Op::sum_pool, 1, false, false},
    {Op::sum_pool, 2, false, false},
    {Op::sum_pool, 3, false, false},
    {Op::lp_pool, 1, false, false},
    {Op::lp_pool, 2, false, false},
    {Op::lp_pool, 3, false, false},
    {Op::adaptive_max_pool, 1, false, true},
    {Op::adaptive_max_pool, 2, false, true},
    {Op::adaptive_max_pool, 3, false, true},
    {Op::adaptive_avg_pool, 1, true, true},
    {Op::adaptive_avg_pool, 2, true, true},
    {Op::adaptive_avg_pool, 3, false, true},
    {Op::fractional_max_pool, 2, false, true},
    {Op::fractional_max_pool, 3, false, true},
    {Op::max_unpool, 1, false, true},
    {Op::max_unpool, 2, false, true},
    {Op::max_unpool, 3, false, true},
};

void expect_accepted(const Emptiness& row, const Shape& shape) {
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    SCOPED_TRACE(label(row.op, row.dims, pass) + " of " + to_string(shape));
    const Refusal refusal = refusal_of([&] {
      const Plan plan = Plan::make(pass, {DType::f32, shape}, valid_spec(row.op, row.dims));
      Shape expected = shape;
      const std::int64_t size = plan.output_shape()[shape.rank() - 1];
      for (int i = shape.rank() - row.dims; i < shape.rank(); ++i) expected[i] = size;
      EXPECT_GT(size, 0);
      EXPECT_EQ(plan.output_shape(), expected);
      EXPECT_EQ(plan.output().numel(), 0);
      plan.run({}).raise();  // nothing to read or write: null is fine everywhere
    });
    EXPECT_EQ(refusal.message, "");
  }
  if (row.op == Op::max_unpool) return;
  SCOPED_TRACE(label(row.op, row.dims, Pass::forward) + " of " + to_string(shape) + " on the tape");
  EXPECT_EQ(refusal_of([&] {
              Tensor input = zeros(shape);
              input.set_requires_grad();
              functional::pool(input, valid_spec(row.op, row.dims)).sum().backward();
              EXPECT_EQ(input.grad().shape(), shape);
            }).message,
            "");
}

void expect_refused(const Emptiness& row, const Shape& shape) {
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    SCOPED_TRACE(label(row.op, row.dims, pass) + " of " + to_string(shape));
    expect_refusal(refusal_of([&] {
                     Plan::make(pass, {DType::f32, shape}, valid_spec(row.op, row.dims));
                   }),
                   "input", {"empty", to_string(shape)});
  }
}

TEST(EmptyDimensions, AreAcceptedWhereTheSpecificationSays) {
  for (const Emptiness& row : kEmptiness) {
    Shape batched = valid_shape(row.dims), lone = valid_shape(row.dims, false);
    batched[0] = 0;
    expect_accepted(row, batched);
    batched = valid_shape(row.dims);
    batched[1] = 0;
    lone[0] = 0;
    (row.batched_channel ? expect_accepted : expect_refused)(row, batched);
    (row.lone_channel ? expect_accepted : expect_refused)(row, lone);
    for (int i = 0; i < row.dims; ++i) {
      batched = valid_shape(row.dims), lone = valid_shape(row.dims, false);
      batched[2 + i] = lone[1 + i] = 0;
      expect_refused(row, batched);
      expect_refused(row, lone);
      batched[0] = 0;  // an empty batch excuses nothing
      expect_refused(row, batched);
    }
  }
}

TEST(EmptyDimensions, DoNotHideWrongArguments) {
  PoolSpec spec = valid_spec(Op::max_pool, 2);
  spec.padding = 2;
  expect_refusal(refusal_of([&] { Plan::make(Pass::forward, {DType::f32, {0, 3, 6, 6}}, spec); }), "padding", {"2"});
}

TEST(EmptyDimensions, OfTheOutputHaveNoBackward) {
  const PoolSpec specs[] = {
      {.op = Op::adaptive_max_pool, .dims = 2, .output_size = {0, 3}},
      {.op = Op::adaptive_avg_pool, .dims = 2, .output_size = {3, 0}},
      {.op = Op::adaptive_avg_pool, .dims = 1, .output_size = 0},
      {.op = Op::fractional_max_pool, .dims = 2, .kernel_size = 2, .output_size = 0},
      {.op = Op::fractional_max_pool, .dims = 2, .kernel_size = 2, .output_ratio = {0.1, 0.1}},
      {.op = Op::max_unpool, .dims = 1, .kernel_size = 2, .stride = 1, .padding = 3, .output_size = {}},
      {.op = Op::max_unpool, .dims = 1, .kernel_size = 2, .stride = 2, .padding = 6, .output_size = 0},
  };
  for (const PoolSpec& spec : specs) {
    SCOPED_TRACE(label(spec.op, spec.dims, Pass::backward));
    Shape shape = valid_shape(spec.dims);
    if (spec.op == Op::max_unpool && spec.output_size.empty()) shape[2] = 5;  // 4 + 2 - 6 = 0
    const Plan forward = Plan::make(Pass::forward, {DType::f32, shape}, spec);
    EXPECT_EQ(forward.output().numel(), 0);
    Buffers run(forward);
    EXPECT_TRUE(run.run().ok());
    const bool ratio = spec.output_ratio[0].has_value();
    expect_refusal(refusal_of([&] {
                     Plan::make(Pass::backward, {DType::f32, shape}, spec);
                   }),
                   ratio ? "output_ratio" : "output_size", {"0", "no backward"});
  }
}

struct Overflow {
  const char* name;
  TensorDesc input;
  std::vector<std::string> words;
};

TEST(ElementCounts, ThatOverflowAreRefusedEvenWhenEmpty) {
  constexpr std::int64_t kHuge = 4634247419717959497;
  const std::int64_t half = std::int64_t{1} << 62;
  const Overflow cases[] = {
      {"elements", {DType::i8, {1, 3, kHuge, kHuge}}, {"63 bits", "4634247419717959497"}},
      {"elements beside an empty batch", {DType::i8, {0, 3, kHuge, kHuge}}, {"63 bits", "[0, 3, 4634247419717959497"}},
      {"elements beside an empty channel", {DType::i8, {2, 0, kHuge, 6}}, {"63 bits", "[2, 0, 4634247419717959497"}},
      {"elements beside an empty axis", {DType::i8, {2, 3, 0, kHuge}}, {"63 bits", "[2, 3, 0, 4634247419717959497"}},
      {"bytes", {DType::f32, {1, 1, 2, std::int64_t{1} << 61}}, {"63 bits", "2305843009213693952"}},
      {"negative", {DType::f32, {2, 3, -6, 6}}, {"negative", "[2, 3, -6, 6]"}},
      {"smallest", {DType::f32, {2, 3, kInt64Min, 6}}, {"negative", "-9223372036854775808"}},
      {"strides", {DType::f32, {2, 3, 6, 6}, {half, 36, 6, 1}}, {"63 bits", "4611686018427387904"}},
      {"the smallest stride", {DType::f32, {2, 3, 6, 6}, {kInt64Min, 36, 6, 1}}, {"63 bits", "-9223372036854775808"}},
      {"a negative stride", {DType::f32, {2, 3, 6, 6}, {-half, 36, 6, 1}}, {"63 bits", "-4611686018427387904"}},
      {"strides too few", {DType::f32, {2, 3, 6, 6}, {36, 6, 1}}, {"3 strides for 4 dimensions"}},
      {"strides too many", {DType::f32, {2, 3, 6, 6}, {108, 36, 6, 1, 1}}, {"5 strides for 4 dimensions"}},
  };
  for (const Overflow& one : cases) {
    for (const Op op : kAllOps) {
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        SCOPED_TRACE(label(op, 2, pass) + ", " + one.name);
        expect_refusal(refusal_of([&] { Plan::make(pass, one.input, valid_spec(op, 2)); }), "input", one.words);
      }
    }
  }
  expect_refusal(refusal_of([&] { TensorDesc::contiguous(DType::i8, {0, kHuge, kHuge}); }), "shape", {"63 bits"});
  expect_refusal(refusal_of([&] { element_count({2, -1}); }), "shape", {"negative", "[2, -1]"});
}

/// Outputs that fit in 63 bits but in no machine: the plan may be made, memory for the result is not to be had.
TEST(ElementCounts, ThatNoMachineHoldsAreRefusedSoon) {
  const std::int64_t huge = std::int64_t{1} << 60;
  for (const Op op : {Op::adaptive_avg_pool, Op::adaptive_max_pool}) {
    for (const DimList& size : {DimList{huge, 1}, DimList{1, huge}, DimList{keep, huge}}) {
      for (const Shape& shape : {Shape{1, 1, 1}, Shape{1, 2, 2}}) {
        SCOPED_TRACE(name_of(op));
        const Refusal refusal = refusal_of(
            [&] { functional::pool(ones(shape, {.dtype = DType::i8}), {.op = op, .dims = 2, .output_size = size}); });
        EXPECT_EQ(static_cast<int>(refusal.code), static_cast<int>(ErrorCode::out_of_memory)) << refusal.message;
      }
    }
  }
}

TEST(DTypes, WithoutAMeaningAreRefused) {
  for (const Op op : kAllOps) {
    const bool integers = op != Op::lp_pool && op != Op::fractional_max_pool;
    for (const DType dtype : {DType::i8, DType::u8, DType::i16, DType::i32, DType::i64, DType::u16, DType::u32}) {
      SCOPED_TRACE(std::string(name_of(op)) + " of " + name_of(dtype));
      const Refusal refusal = refusal_of([&] { Plan::make(Pass::forward, valid_input(2, dtype), valid_spec(op, 2)); });
      if (integers && dtype != DType::u16 && dtype != DType::u32) {
        EXPECT_EQ(refusal.message, "");
      } else {
        expect_refusal(refusal, "input", {"dtype", name_of(dtype)});
      }
    }
  }
}

}  // namespace
}  // namespace cenote::testing
