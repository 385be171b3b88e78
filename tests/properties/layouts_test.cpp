// Which memory format a result has when nobody asks for one: PyTorch's choice for each op.
#include "problems/buffer.hpp"
#include "problems/problem.hpp"

#include <gtest/gtest.h>

namespace cenote::testing {
namespace {

TensorDesc default_output(const char* line, bool indices = false) {
  const Problem problem = parse_problem(line);
  PoolSpec spec = problem.spec;
  spec.return_indices = indices;
  const TensorDesc input = describe(problem.layout, problem.dtype, problem.shape, spec.dims, 0);
  const Plan plan = Plan::make(Pass::forward, input, spec);
  return indices ? plan.indices() : plan.output();
}

TEST(Layouts, ChannelsLastIsKeptWherePyTorchKeepsIt) {
  for (const char* line : {
           "max2d f32 nhwc n2c3 h8w8 k2",
           "avg2d f32 nhwc n2c3 h8w8 k2",
           "lp2d f32 nhwc n2c3 h8w8 k2",
           "amax2d f32 nhwc n2c3 h8w8 out3",
           "aavg2d f32 nhwc n2c3 h8w8 out3",
           "unpool2d f32 nhwc n2c3 h4w4 k2",
           "max3d f32 ndhwc n2c3 d4h8w8 k2",
       }) {
    EXPECT_TRUE(default_output(line).is_channels_last()) << line;
  }
  EXPECT_TRUE(default_output("max2d f32 nhwc n2c3 h8w8 k2", true).is_channels_last());
}

TEST(Layouts, OtherResultsAreContiguous) {
  for (const char* line : {
           "max2d f32 nchw n2c3 h8w8 k2", "max2d f32 strided n2c3 h8w8 k2", "max2d f32 hwc c3 h8w8 k2",
           "max1d f32 nwc n2c3 w8 k2", "avg3d f32 ndhwc n2c3 d4h8w8 k2", "amax3d f32 ndhwc n2c3 d4h8w8 out3",
           "aavg3d f32 ndhwc n2c3 d4h8w8 out3", "fmax2d f32 nhwc n2c3 h8w8 k2 out3",
           "unpool3d f32 ndhwc n2c3 d4h4w4 k2",
           "max2d f32 nhwc n2c1 h1w1 k1",  // the strides fit both readings
       }) {
    EXPECT_TRUE(default_output(line).is_contiguous()) << line;
  }
}

}  // namespace
}  // namespace cenote::testing
