// The three index kinds say the same thing.
#include "problems/buffer.hpp"
#include "problems/execute.hpp"

#include <gtest/gtest.h>

namespace cenote::testing {
namespace {

constexpr IndexKind kKinds[] = {IndexKind::flat64, IndexKind::flat32, IndexKind::window};

TensorView view_of(Buffer& buffer) {
  TensorView view;
  static_cast<TensorDesc&>(view) = buffer.desc();
  view.data = buffer.data();
  return view;
}

TensorDesc indices_desc(const Problem& problem, IndexKind kind) {
  PoolSpec spec = problem.spec;
  spec.return_indices = true;
  spec.index_kind = kind;
  return Plan::make(Pass::forward, TensorDesc{problem.dtype, problem.shape, {}, cpu}, spec).indices();
}

/// Each kind converted to each other one is what the pool itself would have written, byte for byte.
TEST(Indices, ConvertWithoutLoss) {
  for (const char* line : {
           "max2d f32 nchw n2c3 h9w11 k3 s2 p1 ceil",
           "max2d f32 nchw n2c3 h9w11 k3 s2 p1 d2 ties",
           "max2d f32 nchw n1c1 h1w2 k1x2 s1 p0x1 d1x3",
           "max1d f32 ncw n1c2 w700 k300 s50",
           "max3d f32 ncdhw n1c2 d4h5w6 k3 s2 p1x1x0:1x0x1",
           "min2d i32 nchw n2c3 h9w11 k4 same_upper",
           "amax2d f32 nchw n2c3 h9w11 out4x15",
           "amax3d f32 cdhw c3 d5h9w11 out2x4x3",
           "fmax2d f32 nchw n2c3 h9w11 k3 out4x5",
           "fmax3d f64 ncdhw n2c3 d6h9w11 k3x2x2 out3x4x5",
       }) {
    const Problem problem = parse_problem(line);
    const Pool pool = reference::resolve(problem.spec, problem.dtype, problem.shape);
    const auto given = draw_given<double>(problem, pool);
    const TensorDesc input{problem.dtype, problem.shape, {}, cpu};
    Buffer samples;
    TensorView samples_view;
    if (!given.samples.empty()) {
      samples = Buffer({problem.dtype, given.samples_shape, {}, cpu});
      samples.store(given.samples);
      samples_view = view_of(samples);
    }
    // Floating-point numbers also serve as the integers drawn for integer dtypes: the kinds do not look at values.
    const auto ordinals = extremum(pool, given.input, given.samples);
    for (IndexKind from : kKinds) {
      for (IndexKind to : kKinds) {
        SCOPED_TRACE(std::string(line) + ": " + name_of(from) + " to " + name_of(to));
        Buffer source(indices_desc(problem, from)), target(indices_desc(problem, to)),
            expected(indices_desc(problem, to));
        source.store(from == IndexKind::window ? ordinals.ordinal : ordinals.flat);
        expected.store(to == IndexKind::window ? ordinals.ordinal : ordinals.flat);
        convert_indices(input, problem.spec, from, view_of(source), to, view_of(target),
                        given.samples.empty() ? nullptr : &samples_view);
        EXPECT_EQ(target.load<std::int64_t>(), expected.load<std::int64_t>());
        EXPECT_EQ(target.stray_write(), "");
      }
    }
  }
}

TEST(Indices, ConversionRefusesWhatIsNoTap) {
  const Problem problem = parse_problem("max2d f32 nchw n1c1 h4w4 k2");
  const TensorDesc input{problem.dtype, problem.shape, {}, cpu};
  const auto convert = [&](IndexKind from, IndexKind to, const Integers& indices) {
    Buffer source(indices_desc(problem, from)), target(indices_desc(problem, to));
    source.store(indices);
    convert_indices(input, problem.spec, from, view_of(source), to, view_of(target));
    return target.load<std::int64_t>();
  };
  EXPECT_EQ(convert(IndexKind::flat64, IndexKind::window, {5, 7, 13, 15}), (Integers{3, 3, 3, 3}));
  EXPECT_EQ(convert(IndexKind::window, IndexKind::flat64, {0, 1, 2, 255}), (Integers{0, 3, 12, -1}));
  EXPECT_THROW(convert(IndexKind::flat64, IndexKind::window, {2, 7, 13, 15}),
               Error);  // in the plane, in another window
  EXPECT_THROW(convert(IndexKind::flat64, IndexKind::flat32, {16, 7, 13, 15}), Error);  // outside the plane
  EXPECT_THROW(convert(IndexKind::flat64, IndexKind::window, {-2, 7, 13, 15}), Error);
  EXPECT_THROW(convert(IndexKind::window, IndexKind::flat64, {4, 0, 0, 0}), Error);  // a fifth tap of four
}

TEST(Indices, WindowKindIsAsNarrowAsItsTapsAllow) {
  EXPECT_EQ(indices_desc(parse_problem("max2d f32 nchw n1c1 h20w20 k15x17"), IndexKind::window).dtype, DType::u8);
  EXPECT_EQ(indices_desc(parse_problem("max2d f32 nchw n1c1 h20w20 k16x16"), IndexKind::window).dtype, DType::u16);
  EXPECT_EQ(indices_desc(parse_problem("max1d f32 ncw n1c1 w65536 k65536"), IndexKind::window).dtype, DType::u32);
  EXPECT_EQ(indices_desc(parse_problem("amax2d f32 nchw n1c1 h30w30 out2"), IndexKind::window).dtype, DType::u8);
}

}  // namespace
}  // namespace cenote::testing
