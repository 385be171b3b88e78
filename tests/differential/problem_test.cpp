// Problem strings: each survives parsing and printing, and a wrong one says which word is wrong.
#include "problems/expected.hpp"
#include "problems/random.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace cenote::testing {
namespace {

TEST(ProblemString, PrintsWhatItParsed) {
  for (const char* text : {
           "max2d f32 nchw n2c17 h30w31 k3x2 s2x2 p1x1 d1x1 ceil",
           "max1d i8 cw c3 w70 k31 s7 d4 extreme",
           "min3d f64 ndhwc n1c2 d4h5w6 k2 same_upper",
           "avg2d bf16 hwc c4 h9w8 k4 s3 p2 ceil nopad div-7",
           "sum2d i64 strided n2c3 h7w7 k3 p1x0:2x1 seed99",
           "lp2d f16 flipped c3 h7w7 k3 norm2.5 ceil",
           "max2d f32 spaced n2c3 h7w30 k3",
           "amax2d f32 nhwc n1c5 h13w11 out5x* idx:window ties",
           "aavg3d f32 broadcast n2c5 d3h13w11 out5",
           "fmax2d f64 nchw n1c5 h13w11 k2 ratio0.5x0.6 nan",
           "fmax3d f64 ncdhw n1c5 d9h13w11 k2x3x2 out3x4x5 fwd",
           "unpool1d u8 ncw n1c5 w13 k2 out27 idx:flat32 bwd",
           "max2d f32 nchw shape3x4 k[2]",
       }) {
    EXPECT_EQ(to_string(parse_problem(text)), text);
  }
}

TEST(ProblemString, MeansWhatItSays) {
  const Problem problem =
      parse_problem("avg3d bf16 ncdhw n2c17 d4h30w31 k3x2x1 p1x0x0:2x1x0 nopad div7 seed5 bwd ties");
  EXPECT_EQ(problem.spec.op, Op::avg_pool);
  EXPECT_EQ(problem.spec.dims, 3);
  EXPECT_EQ(problem.dtype, DType::bf16);
  EXPECT_EQ(problem.shape, (Shape{2, 17, 4, 30, 31}));
  EXPECT_EQ(problem.spec.kernel_size, (DimList{3, 2, 1}));
  EXPECT_EQ(problem.spec.padding, PaddingList(DimList{1, 0, 0}, DimList{2, 1, 0}));
  EXPECT_FALSE(problem.spec.count_include_pad);
  EXPECT_EQ(problem.spec.divisor_override, 7);
  EXPECT_EQ(problem.seed, 5U);
  EXPECT_EQ(problem.passes, Passes::backward);
  EXPECT_EQ(problem.values, ValueKind::ties);
}

TEST(ProblemString, RandomOnesSurvive) {
  Random random(3);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = to_string(draw_problem(random, Extent::small));
    ASSERT_EQ(to_string(parse_problem(text)), text);
  }
}

TEST(ProblemString, WrongOnesNameTheWord) {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "begins with"},
      {"mex2d f32 nchw n1c1 h4w4 k2", "'mex2d'"},
      {"max4d f32 nchw n1c1 h4w4 k2", "'max4d'"},
      {"max2d f31 nchw n1c1 h4w4 k2", "'f31'"},
      {"max2d f32 ncw n1c1 h4w4 k2", "'ncw'"},
      {"max2d f32 nchw n1c1 h4w4 k2z", "'k2z'"},
      {"max2d f32 nchw n1c1 h4w4 k", "'k'"},
      {"max2d f32 nchw n1c1 h4w4 k2 flat", "'flat'"},
      {"max2d f32 nchw n1c1 h4w4 k2 idx:flat", "'idx:flat'"},
      {"max2d f32 nchw n1c1 h4w4 k2 p1:2:3", "'p1:2:3'"},
      {"fmax3d f32 ncdhw n1c1 d9h9w9 k2 ratio0.5x0.5", "'ratio0.5x0.5'"},
      {"max2d f32 nchw n1c1 h4w4 k99999999999999999999", "'k99999999999999999999'"},
      {"max2d f32 nchw n1c1 w4 k2", "sizes do not fit"},
      {"max2d f32 nchw c1 h4w4 k2", "batch size is missing"},
      {"max2d f32 chw n1c1 h4w4 k2", "says unbatched"},
      {"max2d f32 nchw h4w4 k2", "channels are missing"},
  };
  for (const auto& [text, message] : wrong) {
    try {
      parse_problem(text);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const ProblemError& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << text << ": " << error.what();
    }
  }
}

/// "Anything goes" is for results that rounding alone decides (a sum that cancels to nothing under a root): were it common, the
/// comparisons would compare nothing.
TEST(Tolerances, DecideAllButAFew) {
  Random random(5);
  std::int64_t elements = 0, undecided = 0;
  const auto count = [&](const Values<double>& values) {
    for (long double tolerance : values.tolerance) ++elements, undecided += std::isnan(tolerance) ? 1 : 0;
  };
  for (int i = 0; i < 2000; ++i) {
    const Problem problem = draw_problem(random, Extent::small);
    if (!is_floating(problem.dtype)) continue;
    const Pool pool = reference::resolve(problem.spec, problem.dtype, problem.shape);
    const auto expectation = expect_reference(problem, pool, draw_given<double>(problem, pool));
    count(expectation.output);
    if (expectation.grad_input) count(*expectation.grad_input);
  }
  EXPECT_GT(elements, 100000);
  EXPECT_LT(undecided * 1000, elements);
}

}  // namespace
}  // namespace cenote::testing
