// Window arguments that no op accepts, each with the argument that the refusal must name and the words it must hold.
#include "support.hpp"

#include <cmath>

namespace cenote::testing {
namespace {

using Edit = std::function<void(PoolSpec&)>;

struct Case {
  const char* name;
  std::vector<Op> ops;
  std::vector<int> dims;
  Edit edit;
  const char* argument;
  std::vector<std::string> words;
};

const std::vector<Op> kSliding(std::begin(kSlidingOps), std::end(kSlidingOps));
const std::vector<Op> kAdaptive = {Op::adaptive_max_pool, Op::adaptive_avg_pool};
const std::vector<Op> kFractional = {Op::fractional_max_pool};
const std::vector<Op> kUnpool = {Op::max_unpool};
const std::vector<Op> kKernels = {Op::max_pool, Op::min_pool,   Op::avg_pool,           Op::sum_pool,
                                  Op::lp_pool,  Op::max_unpool, Op::fractional_max_pool};
const std::vector<Op> kStrides = {Op::max_pool, Op::min_pool, Op::avg_pool, Op::sum_pool, Op::lp_pool, Op::max_unpool};
const std::vector<int> k123 = {1, 2, 3}, k12 = {1, 2}, k23 = {2, 3};

Edit kernel(std::int64_t value) {
  return [value](PoolSpec& spec) { spec.kernel_size = value; };
}
Edit stride(std::int64_t value) {
  return [value](PoolSpec& spec) { spec.stride = value; };
}
Edit dilation(std::int64_t value) {
  return [value](PoolSpec& spec) { spec.dilation = value; };
}
Edit padding(std::int64_t value) {
  return [value](PoolSpec& spec) { spec.padding = value; };
}
Edit asymmetric(std::int64_t begin, std::int64_t end) {
  return [=](PoolSpec& spec) { spec.padding = PaddingList(DimList(begin), DimList(end)); };
}
Edit output(std::int64_t value) {
  return [value](PoolSpec& spec) { spec.output_size = value; };
}
Edit ratio(double value) {
  return [value](PoolSpec& spec) {
    spec.output_size = {};
    for (auto& one : spec.output_ratio) one = value;
  };
}
Edit norm(double value) {
  return [value](PoolSpec& spec) { spec.norm_type = value; };
}

/// The input is (2, 3, 6...), windows have 2 taps, outputs of adaptive pools are 4 and of fractional ones 3.
const std::vector<Case> kRefused = {
    {"kernel 0", kKernels, k123, kernel(0), "kernel_size", {"greater than 0", "got 0"}},
    {"kernel -1", kKernels, k123, kernel(-1), "kernel_size", {"greater than 0", "got -1"}},
    {"kernel -2^31", kKernels, k123, kernel(-kInt32Max - 1), "kernel_size", {"greater than 0", "-2147483648"}},
    {"kernel 2^31-1",
     {Op::max_pool, Op::min_pool, Op::sum_pool},
     k123,
     kernel(kInt32Max),
     "input",
     {"2147483647", "does not fit"}},
    {"kernel 2^31-1", {Op::avg_pool, Op::lp_pool}, k12, kernel(kInt32Max), "input", {"2147483647", "does not fit"}},
    {"kernel 2^31-1", {Op::avg_pool, Op::lp_pool}, {3}, kernel(kInt32Max), "kernel_size", {"2147483647", "size 6"}},
    {"kernel 2^31-1", kFractional, k23, kernel(kInt32Max), "kernel_size", {"2147483647", "6"}},
    {"kernel 2^63-1",
     {Op::min_pool, Op::avg_pool, Op::sum_pool, Op::lp_pool},
     k123,
     kernel(kInt64Max),
     "kernel_size",
     {"32 bits", "9223372036854775807"}},
    {"kernel 2^63-1", {Op::max_pool}, k23, kernel(kInt64Max), "kernel_size", {"32 bits", "9223372036854775807"}},
    {"kernel 2^63-1", kFractional, k23, kernel(kInt64Max), "kernel_size", {"9223372036854775807", "6"}},
    {"kernel 2^63-1", kUnpool, k123, kernel(kInt64Max), "kernel_size", {"9223372036854775807", "63 bits"}},
    {"kernel -2^63", kFractional, k23, kernel(kInt64Min), "kernel_size", {"-9223372036854775808"}},
    {"kernel 2^31", {Op::max_pool}, k23, kernel(kInt32Max + 1), "kernel_size", {"32 bits", "2147483648"}},
    {"kernel larger than the input", {Op::max_pool, Op::min_pool, Op::sum_pool}, k123, kernel(7), "input", {"7", "6"}},
    {"kernel one entry too many",
     kKernels,
     k123,
     [](PoolSpec& s) { s.kernel_size = list_of(s.dims + 1, 2); },
     "kernel_size",
     {"[2, 2"}},
    {"kernel nine entries",
     kKernels,
     k123,
     [](PoolSpec& s) { s.kernel_size = list_of(9, 2); },
     "kernel_size",
     {"[2, 2, 2, 2, 2, ...]"}},
    {"kernel two entries of three",
     kKernels,
     {3},
     [](PoolSpec& s) {
       s.kernel_size = {2, 2};
     },
     "kernel_size",
     {"list of 3", "[2, 2]"}},
    {"kernel empty", kKernels, k123, [](PoolSpec& s) { s.kernel_size = {}; }, "kernel_size", {"got []"}},
    {"kernel list of one",
     {Op::lp_pool, Op::fractional_max_pool, Op::max_unpool},
     k23,
     [](PoolSpec& s) { s.kernel_size = list_of(1, 2); },
     "kernel_size",
     {"[2]"}},
    {"kernel list in lp_pool1d",
     {Op::lp_pool},
     {1},
     [](PoolSpec& s) { s.kernel_size = list_of(1, 2); },
     "kernel_size",
     {"[2]"}},
    {"kernel keep", kKernels, k123, [](PoolSpec& s) { s.kernel_size = keep; }, "kernel_size", {"keep"}},
    {"kernel 0 on the last axis",
     kKernels,
     {3},
     [](PoolSpec& s) {
       s.kernel_size = {2, 2, 0};
     },
     "kernel_size",
     {"got 0"}},

    {"stride 0", kStrides, k123, stride(0), "stride", {"greater than 0", "got 0"}},
    {"stride -1", kStrides, k123, stride(-1), "stride", {"greater than 0", "got -1"}},
    {"stride 2^31",
     {Op::min_pool, Op::avg_pool, Op::sum_pool, Op::lp_pool},
     k123,
     stride(kInt32Max + 1),
     "stride",
     {"32 bits", "2147483648"}},
    {"stride 2^63-1",
     {Op::max_pool, Op::avg_pool},
     k23,
     stride(kInt64Max),
     "stride",
     {"32 bits", "9223372036854775807"}},
    {"stride 2^63-1", kUnpool, k123, stride(kInt64Max), "stride", {"9223372036854775807", "63 bits"}},
    {"stride -2^63", kUnpool, k123, stride(kInt64Min), "stride", {"-9223372036854775808"}},
    {"stride one entry too many",
     kStrides,
     k123,
     [](PoolSpec& s) { s.stride = list_of(s.dims + 1, 2); },
     "stride",
     {"[2, 2"}},
    {"stride 0 on one axis",
     kStrides,
     k23,
     [](PoolSpec& s) { s.stride = list_of(s.dims, 1), s.stride.values[1] = 0; },
     "stride",
     {"got 0"}},

    {"dilation 0", kStrides, k123, dilation(0), "dilation", {"greater than 0", "got 0"}},
    {"dilation -1", kStrides, k123, dilation(-1), "dilation", {"greater than 0", "got -1"}},
    {"dilation 2^31-1",
     {Op::max_pool, Op::min_pool, Op::sum_pool, Op::avg_pool, Op::lp_pool},
     k123,
     dilation(kInt32Max),
     "input",
     {"dilation 2147483647", "does not fit"}},
    {"dilation 1879048192",
     {Op::max_pool, Op::min_pool, Op::sum_pool, Op::avg_pool, Op::lp_pool},
     k123,
     dilation(1879048192),
     "input",
     {"dilation 1879048192", "does not fit"}},
    {"dilation 2^31",
     {Op::max_pool, Op::avg_pool},
     k23,
     dilation(kInt32Max + 1),
     "dilation",
     {"32 bits", "2147483648"}},
    {"dilation 2^63-1",
     kUnpool,
     k123,
     [](PoolSpec& s) { s.kernel_size = 3, s.dilation = kInt64Max; },
     "dilation",
     {"9223372036854775807", "63 bits"}},
    {"dilation one entry too many",
     kStrides,
     k123,
     [](PoolSpec& s) { s.dilation = list_of(s.dims + 1, 1); },
     "dilation",
     {"[1, 1"}},

    {"padding -1", kStrides, k123, padding(-1), "padding", {"negative", "got -1"}},
    {"padding more than half the kernel",
     kSliding,
     k123,
     padding(2),
     "padding",
     {"half of kernel_size", "padding 2", "kernel_size 2"}},
    {"padding that only dilation would allow",
     kSliding,
     k123,
     [](PoolSpec& s) { s.dilation = 3, s.padding = 2; },
     "padding",
     {"half of kernel_size", "padding 2"}},
    {"padding more than the input", kSliding, k123, padding(7), "padding", {"half of kernel_size", "padding 7"}},
    {"padding 2^31-1", kSliding, k123, padding(kInt32Max), "padding", {"2147483647"}},
    {"padding 2^63-1",
     {Op::max_pool, Op::avg_pool},
     k23,
     padding(kInt64Max),
     "padding",
     {"32 bits", "9223372036854775807"}},
    {"padding 2^63-1", kUnpool, k123, padding(kInt64Max), "padding", {"9223372036854775807", "63 bits"}},
    {"padding -2^63", kUnpool, k123, padding(kInt64Min), "padding", {"-9223372036854775808"}},
    {"padding one entry too many",
     kStrides,
     k123,
     [](PoolSpec& s) { s.padding = list_of(s.dims + 1, 0); },
     "padding",
     {"[0, 0"}},
    {"begin as long as the window",
     kSliding,
     k123,
     asymmetric(2, 0),
     "padding",
     {"less than the window's extent 2", "begin 2"}},
    {"end as long as the window",
     kSliding,
     k123,
     asymmetric(0, 2),
     "padding",
     {"less than the window's extent 2", "end 2"}},
    {"begin negative", kSliding, k123, asymmetric(-1, 1), "padding", {"got -1"}},
    {"end negative", kSliding, k123, asymmetric(1, -1), "padding", {"got -1"}},
    {"end one entry too many",
     kSliding,
     k12,
     [](PoolSpec& s) { s.padding = PaddingList(list_of(s.dims, 0), list_of(s.dims + 1, 0)); },
     "padding",
     {"[0, 0"}},

    {"kernel larger than a 3d input in ceil mode",
     {Op::avg_pool, Op::lp_pool},
     {3},
     [](PoolSpec& s) { s.kernel_size = 7, s.ceil_mode = true; },
     "kernel_size",
     {"7", "6"}},
    {"kernel that padding would make fit in 3d",
     {Op::avg_pool},
     {3},
     [](PoolSpec& s) { s.kernel_size = 7, s.padding = 3; },
     "kernel_size",
     {"7", "6"}},
    {"divisor 0",
     {Op::avg_pool},
     k123,
     [](PoolSpec& s) { s.divisor_override = 0; },
     "divisor_override",
     {"must not be 0"}},
    {"norm 0", {Op::lp_pool}, k123, norm(0), "norm_type", {"other than 0", "got 0"}},
    {"norm -0", {Op::lp_pool}, k123, norm(-0.0), "norm_type", {"other than 0", "0"}},
    {"norm NaN", {Op::lp_pool}, k123, norm(std::nan("")), "norm_type", {"nan"}},

    {"output -1",
     {Op::adaptive_max_pool, Op::adaptive_avg_pool, Op::fractional_max_pool},
     k123,
     output(-1),
     "output_size",
     {"negative", "got -1"}},
    {"output -2^63",
     {Op::adaptive_max_pool, Op::adaptive_avg_pool, Op::fractional_max_pool},
     k123,
     output(kInt64Min),
     "output_size",
     {"negative", "-9223372036854775808"}},
    {"output near 2^63",
     {Op::adaptive_max_pool, Op::adaptive_avg_pool, Op::fractional_max_pool},
     k123,
     output(9132760301568586890),
     "output_size",
     {"9132760301568586890"}},
    {"output near 2^62",
     {Op::adaptive_max_pool, Op::adaptive_avg_pool, Op::fractional_max_pool},
     k123,
     output(4634247419717959497),
     "output_size",
     {"4634247419717959497"}},
    {"outputs that overflow together", kAdaptive, k23, output(std::int64_t{1} << 40), "output_size", {"63 bits"}},
    {"output empty",
     {Op::adaptive_max_pool, Op::adaptive_avg_pool},
     k123,
     [](PoolSpec& s) { s.output_size = {}; },
     "output_size",
     {"[]"}},
    {"output one entry too many",
     {Op::adaptive_max_pool, Op::adaptive_avg_pool, Op::fractional_max_pool},
     k123,
     [](PoolSpec& s) { s.output_size = list_of(s.dims + 1, 2); },
     "output_size",
     {"[2, 2"}},
    {"output list of one",
     {Op::adaptive_max_pool, Op::adaptive_avg_pool, Op::fractional_max_pool},
     k23,
     [](PoolSpec& s) { s.output_size = list_of(1, 2); },
     "output_size",
     {"[2]"}},
    {"output keep for all axes", kAdaptive, k123, [](PoolSpec& s) { s.output_size = keep; }, "output_size", {"keep"}},
    {"output keep in 1d", kAdaptive, {1}, [](PoolSpec& s) { s.output_size = {keep}; }, "output_size", {"keep"}},
    {"output keep",
     {Op::fractional_max_pool, Op::max_unpool},
     k23,
     [](PoolSpec& s) { s.output_size = DimList(std::vector<Dim>(s.dims, keep)); },
     "output_size",
     {"keep"}},

    {"output larger than the windows allow",
     kFractional,
     {2},
     output(6),
     "output_size",
     {"output_size 6", "kernel_size 2", "6"}},
    {"output larger than 3d's windows allow",
     kFractional,
     {3},
     output(5),
     "output_size",
     {"output_size 5", "kernel_size 2", "6"}},
    {"neither output nor ratio",
     kFractional,
     k23,
     [](PoolSpec& s) { s.output_size = {}; },
     "output_size",
     {"output_ratio"}},
    {"a ratio for one axis only",
     kFractional,
     k23,
     [](PoolSpec& s) { s.output_size = {}, s.output_ratio[0] = 0.5; },
     "output_size",
     {"output_ratio"}},
    {"ratio NaN", kFractional, k23, ratio(std::nan("")), "output_ratio", {"nan"}},
    {"ratio infinite", kFractional, k23, ratio(HUGE_VAL), "output_ratio", {"inf"}},
    {"ratio 1e38", kFractional, k23, ratio(1e38), "output_ratio", {"1e+38"}},
    {"ratio negative", kFractional, k23, ratio(-0.5), "output_ratio", {"-0.5"}},
    {"ratio larger than 1", kFractional, k23, ratio(2), "output_ratio", {"2", "12"}},

    {"unpooled size a stride too small", kUnpool, k123, output(10), "output_size", {"10", "between 10 and 14"}},
    {"unpooled size a stride too large", kUnpool, k123, output(14), "output_size", {"14", "between 10 and 14"}},
    {"unpooled size 0", kUnpool, k123, output(0), "output_size", {"0", "between 10 and 14"}},
    {"unpooled size -1", kUnpool, k123, output(-1), "output_size", {"-1", "between 10 and 14"}},
    {"unpooled size near 2^63", kUnpool, k123, output(9132760301568586890), "output_size", {"9132760301568586890"}},
    {"unpooled size one entry too many",
     kUnpool,
     k123,
     [](PoolSpec& s) { s.output_size = list_of(s.dims + 1, 12); },
     "output_size",
     {"[12, 12"}},
    {"unpooled size three entries too many",
     kUnpool,
     k123,
     [](PoolSpec& s) { s.output_size = list_of(s.dims + 3, 12); },
     "output_size",
     {"[12, 12"}},
    {"unpooled size inferred as negative", kUnpool, k123, padding(7), "output_size", {"-2"}},
};

TEST(Arguments, AreRefusedByPlans) {
  for (const Case& one : kRefused) {
    for (const Op op : one.ops) {
      for (const int dims : one.dims) {
        if (!exists(op, dims)) continue;
        for (const Pass pass : {Pass::forward, Pass::backward}) {
          SCOPED_TRACE(label(op, dims, pass) + ", " + one.name);
          PoolSpec spec = valid_spec(op, dims);
          one.edit(spec);
          expect_refusal(refusal_of([&] { Plan::make(pass, valid_input(dims), spec); }), one.argument, one.words);
        }
      }
    }
  }
}

TEST(Arguments, AreRefusedByFunctionsOnAndOffTheTape) {
  for (const Case& one : kRefused) {
    for (const Op op : one.ops) {
      for (const int dims : one.dims) {
        if (!exists(op, dims)) continue;
        for (const bool tape : {false, true}) {
          SCOPED_TRACE(label(op, dims, Pass::forward) + ", " + one.name + (tape ? ", requires_grad" : ""));
          PoolSpec spec = valid_spec(op, dims);
          one.edit(spec);
          Tensor input = ones(valid_shape(dims));
          input.set_requires_grad(tape);
          expect_refusal(refusal_of([&] {
                           if (op == Op::max_unpool) {
                             functional::unpool(input, zeros(valid_shape(dims), {.dtype = DType::i64}), spec);
                           } else {
                             functional::pool(input, spec);
                           }
                         }),
                         one.argument, one.words);
        }
      }
    }
  }
}

/// The cases above spoil these calls: they must be accepted as they are.
TEST(Arguments, OfTheUnspoiledCallsAreAccepted) {
  for (const Op op : kAllOps) {
    for (const int dims : {1, 2, 3}) {
      if (!exists(op, dims)) continue;
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        SCOPED_TRACE(label(op, dims, pass));
        const Plan plan = Plan::make(pass, valid_input(dims), valid_spec(op, dims));
        Buffers run(plan);
        const Status status = run.run();
        EXPECT_TRUE(status.ok()) << status.message();
        EXPECT_FALSE(run.results_untouched());
        EXPECT_TRUE(run.guards_intact());
      }
    }
  }
}

TEST(Arguments, OneElementListsStandForEveryAxisOfMaxAndAverage) {
  for (const Op op : {Op::max_pool, Op::min_pool, Op::avg_pool, Op::sum_pool}) {
    for (const int dims : {1, 2, 3}) {
      SCOPED_TRACE(label(op, dims, Pass::forward));
      PoolSpec spec = valid_spec(op, dims);
      spec.kernel_size = list_of(1, 3);
      spec.stride = list_of(1, 1);
      spec.padding = list_of(1, 1);
      spec.dilation = list_of(1, 2);
      const Shape shape = Plan::make(Pass::forward, valid_input(dims), spec).output_shape();
      for (int i = 0; i < dims; ++i) EXPECT_EQ(shape[2 + i], 4);
    }
  }
}

}  // namespace
}  // namespace cenote::testing
