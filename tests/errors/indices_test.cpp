// Indices a caller hands in are never trusted: one that is no element of its window (backward) or of its plane (unpool, and
// fractional pools with flat indices) is refused by the run that reads it, which touches nothing outside its own result.
#include "support.hpp"

#include <map>

namespace cenote::testing {
namespace {

struct Pool {
  const char* name;
  PoolSpec spec;
  Shape input;
  bool channels_last = false;
  DType dtype = DType::f32;
};

const std::vector<Pool> kPools = {
    {"1d", {.op = Op::max_pool, .dims = 1, .kernel_size = 3, .stride = 2, .padding = 1}, {2, 3, 11}},
    {"2d", {.op = Op::max_pool, .dims = 2, .kernel_size = 2}, {2, 3, 8, 10}},
    {"2d of long rows", {.op = Op::max_pool, .dims = 2, .kernel_size = 2, .ceil_mode = true}, {3, 3, 5, 43}},
    {"2d of tall windows",
     {.op = Op::max_pool, .dims = 2, .kernel_size = {3, 2}, .stride = 2, .padding = {1, 0}},
     {3, 3, 7, 40},
     false,
     DType::bf16},
    {"2d of long rows, one apart",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 3, .stride = 1, .padding = 1},
     {3, 3, 6, 41}},
    {"2d of long rows, two apart",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 3, .stride = 2, .padding = {1, 0}},
     {2, 3, 9, 52},
     false,
     DType::f16},
    {"2d of long rows, much padding",
     {.op = Op::max_pool,
      .dims = 2,
      .kernel_size = 3,
      .stride = 2,
      .padding = PaddingList(DimList{2, 2}, DimList{1, 0})},
     {2, 3, 9, 52}},
    {"3d of long rows, cut off",
     {.op = Op::max_pool, .dims = 3, .kernel_size = {2, 3, 3}, .stride = {2, 1, 1}, .padding = 1},
     {1, 2, 5, 4, 29}},
    {"3d of long rows", {.op = Op::max_pool, .dims = 3, .kernel_size = 2}, {1, 2, 5, 4, 34}},
    {"3d of single slices",
     {.op = Op::max_pool, .dims = 3, .kernel_size = {1, 3, 3}, .stride = {1, 2, 2}, .padding = {0, 1, 1}},
     {2, 3, 4, 9, 11}},
    {"3d of single slices, channels-last",
     {.op = Op::max_pool, .dims = 3, .kernel_size = {1, 2, 2}},
     {2, 5, 4, 6, 8},
     true},
    {"2d of single rows", {.op = Op::max_pool, .dims = 2, .kernel_size = {1, 3}, .stride = {1, 2}}, {2, 6, 4, 13}},
    {"2d overlapping", {.op = Op::max_pool, .dims = 2, .kernel_size = 3, .stride = 2, .padding = 1}, {2, 3, 9, 11}},
    {"2d, nothing shared", {.op = Op::max_pool, .dims = 2, .kernel_size = 2}, {2, 5, 14, 14}},
    {"2d, small and overlapping",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 3, .stride = 2, .ceil_mode = true},
     {2, 3, 14, 20}},
    {"2d, 4x4 and overlapping",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 4, .stride = 2, .padding = {1, 2}},
     {2, 3, 9, 20},
     false,
     DType::bf16},
    {"2d, gaps between", {.op = Op::max_pool, .dims = 2, .kernel_size = {3, 2}, .stride = 4}, {2, 2, 17, 19}},
    {"3d, nothing shared", {.op = Op::max_pool, .dims = 3, .kernel_size = {2, 2, 4}}, {1, 2, 5, 16, 18}},
    {"1d, nothing shared", {.op = Op::max_pool, .dims = 1, .kernel_size = 4}, {3, 5, 20}, false, DType::f16},
    {"2d, nothing shared f64",
     {.op = Op::max_pool, .dims = 2, .kernel_size = {2, 3}, .stride = 3},
     {2, 5, 14, 18},
     false,
     DType::f64},
    {"1d of long rows, overlapping",
     {.op = Op::max_pool, .dims = 1, .kernel_size = 5, .stride = 2, .padding = 2},
     {3, 2, 150}},
    {"2d, overlapping along the rows alone",
     {.op = Op::max_pool, .dims = 2, .kernel_size = {2, 4}, .stride = {3, 1}, .padding = {1, 2}, .ceil_mode = true},
     {2, 2, 8, 71},
     false,
     DType::f64},
    {"2d as large as before",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 3, .stride = 1, .padding = 1},
     {2, 3, 6, 19}},
    {"2d as large as before, dilated",
     {.op = Op::max_pool,
      .dims = 2,
      .kernel_size = 3,
      .stride = 1,
      .padding = PaddingList(DimList{2, 2}, DimList{2, 2}),
      .dilation = 2},
     {2, 3, 7, 20},
     false,
     DType::f16},
    {"2d channels-last, as large as before",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 3, .stride = 1, .padding = 1},
     {2, 5, 6, 7},
     true},
    {"2d channels-last, nothing shared",
     {.op = Op::max_pool, .dims = 2, .kernel_size = {3, 2}, .stride = {4, 3}},
     {2, 5, 13, 17},
     true},
    {"2d of stride 1", {.op = Op::max_pool, .dims = 2, .kernel_size = {3, 2}, .stride = 1}, {2, 3, 9, 21}},
    {"2d f16",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 3, .stride = 2, .padding = 1},
     {2, 3, 9, 11},
     false,
     DType::f16},
    {"2d f64",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 3, .stride = 2, .padding = 1},
     {2, 3, 9, 11},
     false,
     DType::f64},
    {"2d unbatched", {.op = Op::max_pool, .dims = 2, .kernel_size = 3, .stride = 2, .padding = 1}, {3, 9, 11}},
    {"2d gaps", {.op = Op::max_pool, .dims = 2, .kernel_size = 2, .stride = 5}, {1, 2, 12, 13}},
    {"2d ceil", {.op = Op::max_pool, .dims = 2, .kernel_size = 3, .stride = 2, .ceil_mode = true}, {1, 2, 8, 8}},
    {"2d channels-last",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 3, .stride = 2, .padding = 1},
     {2, 20, 9, 11},
     true},
    {"2d channels-last, few channels", {.op = Op::max_pool, .dims = 2, .kernel_size = 2}, {2, 3, 8, 10}, true},
    {"2d channels-last bf16",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 3, .stride = 1},
     {1, 17, 6, 7},
     true,
     DType::bf16},
    {"2d dilated",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 3, .stride = 2, .padding = 1, .dilation = 2},
     {1, 3, 12, 13}},
    {"2d dilated, planes in turns",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 3, .stride = 1, .padding = 1, .dilation = {2, 3}},
     {1, 9, 32, 32}},
    {"2d dilated channels-last",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 2, .stride = 3, .padding = 1, .dilation = {2, 3}},
     {1, 18, 12, 13},
     true},
    {"2d with empty windows",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 2, .stride = 1, .padding = 1, .dilation = 4},
     {1, 2, 3, 3}},
    {"13x13", {.op = Op::max_pool, .dims = 2, .kernel_size = 13, .stride = 1, .padding = 6}, {1, 2, 20, 20}},
    {"13x13 channels-last",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 13, .stride = 1, .padding = 6},
     {1, 16, 14, 14},
     true},
    {"17x17", {.op = Op::max_pool, .dims = 2, .kernel_size = 17, .stride = 4, .padding = 8}, {1, 2, 24, 24}},
    {"300 taps", {.op = Op::max_pool, .dims = 1, .kernel_size = 300, .stride = 100}, {1, 2, 700}},
    {"65536 taps", {.op = Op::max_pool, .dims = 2, .kernel_size = 256, .stride = 8}, {1, 1, 264, 264}},
    {"3d",
     {.op = Op::max_pool, .dims = 3, .kernel_size = {2, 3, 2}, .stride = 2, .padding = {0, 1, 1}},
     {2, 2, 5, 6, 9}},
    {"3d channels-last",
     {.op = Op::max_pool, .dims = 3, .kernel_size = 2, .stride = 1, .padding = 1},
     {1, 9, 3, 4, 5},
     true},
    {"min", {.op = Op::min_pool, .dims = 2, .kernel_size = 3, .stride = 2, .padding = 1}, {2, 3, 9, 11}},
    {"asymmetric",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 3, .stride = 2, .padding = PaddingList(DimList(2), DimList(0))},
     {1, 2, 9, 9}},
    {"adaptive, even", {.op = Op::adaptive_max_pool, .dims = 2, .output_size = {4, 5}}, {2, 3, 8, 10}},
    {"adaptive, uneven", {.op = Op::adaptive_max_pool, .dims = 2, .output_size = {3, 4}}, {2, 3, 8, 11}},
    {"adaptive, uneven channels-last",
     {.op = Op::adaptive_max_pool, .dims = 2, .output_size = {3, 4}},
     {1, 19, 8, 11},
     true},
    {"whole planes", {.op = Op::adaptive_max_pool, .dims = 2, .output_size = 1}, {5, 3, 6, 7}},
    {"five columns wide", {.op = Op::max_pool, .dims = 2, .kernel_size = 5, .stride = 1, .padding = 2}, {2, 3, 9, 70}},
    {"2d channels-last bf16, apart",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 2},
     {1, 40, 6, 8},
     true,
     DType::bf16},
    {"2d channels-last, apart",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 2, .ceil_mode = true},
     {1, 24, 7, 9},
     true},
    {"3d channels-last f64, gaps between",
     {.op = Op::max_pool, .dims = 3, .kernel_size = {2, 2, 3}, .stride = {3, 2, 4}, .padding = 1},
     {1, 10, 5, 6, 9},
     true,
     DType::f64},
    {"adaptive, many planes", {.op = Op::adaptive_max_pool, .dims = 2, .output_size = 4}, {2, 5, 13, 15}},
    {"adaptive, many outputs", {.op = Op::adaptive_max_pool, .dims = 2, .output_size = {65, 66}}, {1, 1, 70, 99}},
    {"adaptive, many channels",
     {.op = Op::adaptive_max_pool, .dims = 2, .output_size = {4, 3}},
     {1, 71, 9, 10},
     true,
     DType::bf16},
    {"adaptive 3d channels-last",
     {.op = Op::adaptive_max_pool, .dims = 3, .output_size = {2, 3, 4}},
     {1, 67, 5, 4, 9},
     true},
    {"adaptive, more outputs than inputs", {.op = Op::adaptive_max_pool, .dims = 1, .output_size = 8}, {2, 3, 5}},
    {"adaptive 3d", {.op = Op::adaptive_max_pool, .dims = 3, .output_size = {2, 3, 4}}, {1, 2, 5, 7, 9}},
    {"fractional", {.op = Op::fractional_max_pool, .dims = 2, .kernel_size = 2, .output_size = 4}, {2, 3, 9, 10}},
    {"fractional f16",
     {.op = Op::fractional_max_pool, .dims = 2, .kernel_size = {2, 3}, .output_size = 4},
     {2, 3, 9, 10},
     false,
     DType::f16},
    {"fractional 3d", {.op = Op::fractional_max_pool, .dims = 3, .kernel_size = 2, .output_size = 3}, {1, 2, 6, 7, 8}},
    {"fractional channels-last",
     {.op = Op::fractional_max_pool, .dims = 2, .kernel_size = 2, .output_size = 4},
     {2, 9, 9, 10},
     true},
    {"many planes of stride 1",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 3, .stride = 1, .padding = 1},
     {3, 5, 6, 7}},
    {"5x5 channels-last",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 5, .stride = 1, .padding = 2},
     {1, 71, 7, 6},
     true},
    {"5x5 channels-last bf16",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 5, .stride = 1, .padding = 2},
     {1, 71, 7, 6},
     true,
     DType::bf16},
    {"9x9 of many channels",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 9, .stride = 1, .padding = 4},
     {1, 256, 10, 20},
     true},
    {"tall and of many channels",
     {.op = Op::max_pool, .dims = 2, .kernel_size = {5, 8}, .stride = 1, .padding = {2, 4}, .dilation = {2, 1}},
     {1, 71, 100, 9},
     true},
    {"slices of many channels",
     {.op = Op::max_pool, .dims = 3, .kernel_size = {1, 6, 7}, .stride = {2, 1, 1}, .padding = {0, 3, 3}},
     {1, 64, 3, 9, 8},
     true},
    {"21x21, wide", {.op = Op::max_pool, .dims = 2, .kernel_size = 21, .stride = 1, .padding = 10}, {1, 2, 24, 190}},
    {"3d channels-last, overlapping",
     {.op = Op::max_pool, .dims = 3, .kernel_size = {2, 3, 3}, .stride = {1, 2, 2}, .padding = {0, 1, 1}},
     {1, 34, 4, 6, 5},
     true},
    {"7x7 of many planes",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 7, .stride = 2, .padding = 3},
     {2, 5, 11, 12}},
    {"large enough for threads",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 3, .stride = 2, .padding = 1},
     {2, 16, 48, 48}},
    {"large enough for threads, channels-last",
     {.op = Op::max_pool, .dims = 2, .kernel_size = 3, .stride = 2, .padding = 1},
     {2, 32, 40, 40},
     true},
};

TensorDesc input_of(const Pool& pool) {
  return pool.channels_last ? TensorDesc::channels_last(pool.dtype, pool.input)
                            : TensorDesc::contiguous(pool.dtype, pool.input);
}

/// Window of output `o` along one axis in its own arithmetic: the positions of all taps, those outside the input included.
std::vector<std::int64_t> taps_along(const PoolSpec& spec, int axis, std::int64_t in, std::int64_t out,
                                     std::int64_t o) {
  const auto entry = [&](const DimList& list) { return list.values[list.count == 1 ? 0 : axis].value; };
  std::vector<std::int64_t> taps;
  if (spec.op == Op::adaptive_max_pool) {
    for (std::int64_t i = 0; i < in; ++i) {
      if (i >= o * in / out && i * out < (o + 1) * in) taps.push_back(i);
    }
    return taps;
  }
  const DimList& stride = spec.stride.empty() ? spec.kernel_size : spec.stride;
  for (std::int64_t t = 0; t < entry(spec.kernel_size); ++t) {
    taps.push_back(o * entry(stride) - entry(spec.padding.begin) + t * entry(spec.dilation));
  }
  return taps;
}

/// For each tap of an output's whole window its flat position, -1 where it lies in the padding.
std::vector<std::int64_t> window_of(const Pool& pool, const Shape& output, std::int64_t at) {
  const int dims = pool.spec.dims, lead = pool.input.rank() - dims;
  std::vector<std::int64_t> flats = {0};
  std::vector<std::int64_t> position(static_cast<std::size_t>(dims));
  for (int i = dims - 1; i >= 0; --i)
    position[static_cast<std::size_t>(i)] = at % output[lead + i], at /= output[lead + i];
  for (int i = 0; i < dims; ++i) {
    const std::int64_t in = pool.input[lead + i];
    std::vector<std::int64_t> next;
    for (const std::int64_t flat : flats) {
      for (const std::int64_t tap :
           taps_along(pool.spec, i, in, output[lead + i], position[static_cast<std::size_t>(i)])) {
        next.push_back(flat < 0 || tap < 0 || tap >= in ? -1 : flat * in + tap);
      }
    }
    flats = next;
  }
  return flats;
}

/// Where a pool of fewer axes does the work, what is wrong is told in the caller's.
TEST(MergedIndices, AreNamedInTheAxesOfTheCall) {
  const PoolSpec spec{.op = Op::max_pool, .dims = 3, .kernel_size = {1, 2, 2}, .index_kind = IndexKind::window};
  const Plan plan = Plan::make(Pass::backward, TensorDesc::contiguous(DType::f32, {2, 3, 4, 6, 8}), spec);
  Buffers run(plan);
  ASSERT_TRUE(plan.run(run.args()).ok());
  run.indices.set_integer((((1 * 3 + 2) * 4 + 3) * 3 + 1) * 4 + 2, 4);
  expect_refusal(refusal_of(plan.run(run.args())), "saved_indices", {"index 4 at (n 1, c 2, d 3, h 1, w 2)"},
                 ErrorCode::invalid_index);
}

/// What no index of this output may be.
std::vector<std::int64_t> bad_indices(const Pool& pool, const Plan& plan, std::int64_t at) {
  const int dims = pool.spec.dims;
  std::int64_t plane = 1, all = 1;
  for (int i = pool.input.rank() - dims; i < pool.input.rank(); ++i) plane *= pool.input[i];
  for (const std::int64_t size : pool.input) all *= size;
  const bool fractional = pool.spec.op == Op::fractional_max_pool;
  std::vector<std::int64_t> bad;
  if (plan.spec().index_kind == IndexKind::window) {
    std::int64_t taps = 1;
    if (fractional) {
      for (int i = 0; i < dims; ++i)
        taps *= pool.spec.kernel_size.values[pool.spec.kernel_size.count == 1 ? 0 : i].value;
    } else {
      const std::vector<std::int64_t> window = window_of(pool, plan.output_shape(), at);
      taps = static_cast<std::int64_t>(window.size());
      const auto padding = std::find(window.begin(), window.end(), -1);
      if (padding != window.end()) bad.push_back(padding - window.begin());
      const auto last = std::find(window.rbegin(), window.rend(), -1);
      if (last != window.rend()) bad.push_back(window.rend() - last - 1);
    }
    const DType dtype = plan.indices().dtype;
    const std::int64_t none = dtype == DType::u8 ? 0xff : dtype == DType::u16 ? 0xffff : 0xffffffff;
    for (const std::int64_t value : {taps, taps + 1, none / 2 + 1, none - 1}) {
      if (value >= taps && value < none) bad.push_back(value);
    }
    return bad;
  }
  const bool wide = plan.spec().index_kind == IndexKind::flat64;
  bad = {-2, plane, plane + 1, all, wide ? kInt64Max : kInt32Max, wide ? kInt64Min : -kInt32Max - 1};
  if (wide) bad.push_back(plane + (std::int64_t{1} << 32)), bad.push_back(std::int64_t{1} << 32);
  if (fractional) return bad;
  std::vector<std::int64_t> window = window_of(pool, plan.output_shape(), at);
  std::sort(window.begin(), window.end());
  const auto is_tap = [&](std::int64_t flat) { return std::binary_search(window.begin(), window.end(), flat); };
  for (const std::int64_t start : {std::int64_t{0}, plane / 2}) {
    std::int64_t flat = start;
    while (flat < plane && is_tap(flat)) ++flat;
    if (flat < plane) bad.push_back(flat);
  }
  for (const std::int64_t tap : window) {  // the neighbours just outside are the easiest to get wrong
    for (const std::int64_t flat : {tap - 1, tap + 1}) {
      if (tap >= 0 && flat >= 0 && flat < plane && !is_tap(flat)) {
        bad.push_back(flat);
        break;
      }
    }
    if (bad.size() > 14) break;
  }
  return bad;
}

std::vector<std::int64_t> some_outputs(std::int64_t count) {
  if (count < 16) {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < count; ++i) all.push_back(i);
    return all;
  }
  return {0, 1, count / 3, count / 2, 2 * count / 3 + 1, count - 2, count - 1};
}

std::int64_t plane_of(const Shape& shape, int dims) {
  std::int64_t plane = 1;
  for (int i = shape.rank() - dims; i < shape.rank(); ++i) plane *= shape[i];
  return plane;
}

class BackwardIndices : public ::testing::TestWithParam<IndexKind> {};

TEST_P(BackwardIndices, OutsideTheirWindowAreRefused) {
  for (const Pool& pool : kPools) {
    PoolSpec spec = pool.spec;
    spec.index_kind = GetParam();
    std::map<std::int64_t, std::vector<std::int64_t>> bad_at;
    {
      const Plan plan = Plan::make(Pass::backward, input_of(pool), spec);
      for (const std::int64_t at : some_outputs(plan.indices().numel())) {
        bad_at[at] = bad_indices(pool, plan, at % plane_of(plan.output_shape(), spec.dims));
      }
    }
    for (const std::string& target : cpu_targets()) {
      const Plan plan = Plan::make(Pass::backward, input_of(pool), spec, {.target = target});
      Buffers run(plan);
      RunArgs args = run.args();
      args.executor = nullptr;  // the default one: large pools run on several threads
      const std::string where = std::string(pool.name) + ", " + name_of(spec.index_kind) + " on " + target + ": ";
      const Status good = plan.run(args);
      ASSERT_TRUE(good.ok()) << where << good.message();
      const std::vector<double> gradient = run.grad_input.values();
      for (const auto& [at, bad_here] : bad_at) {
        const std::int64_t right = run.indices.get_integer(at);
        for (const std::int64_t bad : bad_here) {
          SCOPED_TRACE(where + std::to_string(bad) + " for output " + std::to_string(at));
          run.indices.set_integer(at, bad);
          const auto indices = run.indices.snapshot(), grad_output = run.grad_output.snapshot();
          expect_refusal(refusal_of(plan.run(args)), "saved_indices", {"index " + std::to_string(bad)},
                         ErrorCode::invalid_index);
          EXPECT_TRUE(run.guards_intact());
          EXPECT_EQ(run.indices.snapshot(), indices);
          EXPECT_EQ(run.grad_output.snapshot(), grad_output);
        }
        run.indices.set_integer(at, right);
      }
      // The refusals have left nothing behind in the plan.
      ASSERT_TRUE(plan.run(args).ok()) << where;
      EXPECT_EQ(run.grad_input.values(), gradient) << where;
    }
  }
}

TEST_P(BackwardIndices, OfNoElementTakeNoGradient) {
  for (const Pool& pool : kPools) {
    for (const std::string& target : cpu_targets()) {
      SCOPED_TRACE(std::string(pool.name) + ", " + name_of(GetParam()) + " on " + target);
      PoolSpec spec = pool.spec;
      spec.index_kind = GetParam();
      const Plan plan = Plan::make(Pass::backward, input_of(pool), spec, {.target = target});
      Buffers run(plan);
      run.grad_output.fill(1);
      for (std::int64_t i = 0; i < run.indices.count(); ++i) run.indices.set_integer(i, -1);
      const Status status = run.run();
      ASSERT_TRUE(status.ok()) << status.message();
      const std::vector<double> gradient = run.grad_input.values();
      EXPECT_EQ(std::count(gradient.begin(), gradient.end(), 0.0), run.grad_input.count());
      EXPECT_TRUE(run.guards_intact());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, BackwardIndices,
                         ::testing::Values(IndexKind::flat64, IndexKind::flat32, IndexKind::window),
                         [](const auto& kind) { return std::string(name_of(kind.param)); });

// --- max_unpool -----------------------------------------------------------------------------------------------------------

const std::vector<Pool> kUnpools = {
    {"1d", {.op = Op::max_unpool, .dims = 1, .kernel_size = 2}, {2, 3, 5}},
    {"2d", {.op = Op::max_unpool, .dims = 2, .kernel_size = 2}, {2, 3, 4, 5}},
    {"2d padded", {.op = Op::max_unpool, .dims = 2, .kernel_size = 3, .stride = 2, .padding = 1}, {2, 3, 4, 5}},
    {"2d channels-last", {.op = Op::max_unpool, .dims = 2, .kernel_size = 2}, {2, 17, 4, 5}, true},
    {"2d i8", {.op = Op::max_unpool, .dims = 2, .kernel_size = 2}, {2, 3, 4, 5}, false, DType::i8},
    {"2d f64", {.op = Op::max_unpool, .dims = 2, .kernel_size = 13, .stride = 1}, {1, 2, 4, 5}, false, DType::f64},
    {"2d of a given size", {.op = Op::max_unpool, .dims = 2, .kernel_size = 2, .output_size = {9, 9}}, {1, 2, 4, 5}},
    {"3d", {.op = Op::max_unpool, .dims = 3, .kernel_size = {2, 2, 3}}, {1, 2, 2, 3, 4}},
    {"2d of several bands", {.op = Op::max_unpool, .dims = 2, .kernel_size = 2}, {1, 2, 150, 231}},
    {"2d of several bands, channels-last", {.op = Op::max_unpool, .dims = 2, .kernel_size = 2}, {1, 64, 20, 60}, true},
};

TEST(UnpoolIndices, OutsideThePlaneAreRefused) {
  for (const Pool& pool : kUnpools) {
    for (const IndexKind kind : {IndexKind::flat64, IndexKind::flat32, IndexKind::window}) {
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        PoolSpec spec = pool.spec;
        spec.index_kind = kind;
        const Plan plan = Plan::make(pass, input_of(pool), spec);
        Buffers run(plan);
        std::int64_t taps = 1;
        for (int i = 0; i < spec.dims; ++i) taps *= spec.kernel_size.values[spec.kernel_size.count == 1 ? 0 : i].value;
        if (kind == IndexKind::window)
          run.indices.fill(static_cast<double>(taps / 2));  // the middle lies inside in every pool above
        const Status good = run.run();
        ASSERT_TRUE(good.ok()) << good.message();
        const std::int64_t plane = plane_of(plan.output_shape(), spec.dims), all = plan.output().numel();
        const std::int64_t large = kind == IndexKind::flat32 ? kInt32Max : kInt64Max;
        std::vector<std::int64_t> bad = {-1, -2, plane, plane + 1, all, large, -large - 1};
        if (kind == IndexKind::window) bad = {taps, taps + 1, 254, 255};
        for (const std::int64_t at : some_outputs(run.indices.count())) {
          const std::int64_t right = run.indices.get_integer(at);
          for (const std::int64_t index : bad) {
            SCOPED_TRACE(std::string(pool.name) + ", " + name_of(kind) + " " + label(spec.op, spec.dims, pass) + ": " +
                         std::to_string(index) + " at " + std::to_string(at));
            run.indices.set_integer(at, index);
            const auto input = run.input.snapshot(), indices = run.indices.snapshot();
            const bool none = kind == IndexKind::window && index == 255;
            expect_refusal(refusal_of(run.run()), "saved_indices", {"index " + std::to_string(none ? -1 : index)},
                           ErrorCode::invalid_index);
            EXPECT_TRUE(run.guards_intact());
            EXPECT_EQ(run.input.snapshot(), input);
            EXPECT_EQ(run.indices.snapshot(), indices);
          }
          run.indices.set_integer(at, right);
        }
        EXPECT_TRUE(run.run().ok());
      }
    }
  }
}

TEST(UnpoolIndices, OfAWindowsPaddingAreRefused) {
  // The first window of a padded pool starts outside: its tap 0 is no place.
  const PoolSpec spec{
      .op = Op::max_unpool, .dims = 2, .kernel_size = 3, .stride = 2, .padding = 1, .index_kind = IndexKind::window};
  const Plan plan = Plan::make(Pass::forward, TensorDesc::contiguous(DType::f32, {1, 2, 2}), spec);
  Buffers run(plan);
  run.indices.fill(4);
  ASSERT_TRUE(run.run().ok());
  run.indices.set_integer(0, 0);
  expect_refusal(refusal_of(run.run()), "saved_indices", {"index 0"}, ErrorCode::invalid_index);
}

TEST(UnpoolIndices, ThatMeetKeepTheLastValue) {
  const Plan plan = Plan::make(TensorDesc::contiguous(DType::f32, {1, 3}), MaxUnpool<1>{.kernel_size = 2});
  Buffers run(plan);
  for (int i = 0; i < 3; ++i) run.input.set(i, i + 1), run.indices.set_integer(i, 4);
  ASSERT_TRUE(run.run().ok());
  EXPECT_EQ(run.output.values(), (std::vector<double>{0, 0, 0, 0, 3, 0}));
}

/// Planes that are unpooled in bands, whose indices lead to any of them.
TEST(UnpoolIndices, ThatLeadToAnyBandKeepTheLastValue) {
  for (const bool channels_last : {false, true}) {
    const std::int64_t channels = channels_last ? 32 : 1, height = channels_last ? 40 : 200, width = 231;
    const Pool pool{
        "", {.op = Op::max_unpool, .dims = 2, .kernel_size = 2}, {1, channels, height, width}, channels_last};
    const Plan plan = Plan::make(Pass::forward, input_of(pool), pool.spec);
    Buffers run(plan);
    const std::int64_t outputs = height * width;
    std::vector<double> expected(static_cast<std::size_t>(plan.output().numel()), 0);
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t i = 0; i < outputs; ++i) {
        const std::int64_t place = (i * 7919 + c) % (outputs / 3) * 12, value = (i + c) % 251 + 1;
        run.input.set(c * outputs + i, static_cast<double>(value));
        run.indices.set_integer(c * outputs + i, place);
        expected[static_cast<std::size_t>(c * 4 * outputs + place)] = static_cast<double>(value);
      }
    }
    const Status status = run.run();
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(run.output.values(), expected) << (channels_last ? "channels-last" : "planar");
  }
}

TEST(UnpoolIndices, AreNotReadWhereTheResultIsEmpty) {
  const Plan plan =
      Plan::make(TensorDesc::contiguous(DType::f32, {1, 5}), MaxUnpool<1>{.kernel_size = 2, .stride = 1, .padding = 3});
  Buffers run(plan);
  run.indices.fill(77);
  EXPECT_EQ(plan.output_shape(), (Shape{1, 0}));
  EXPECT_TRUE(run.run().ok());
}

}  // namespace
}  // namespace cenote::testing
