#include "problems/random.hpp"

#include <algorithm>
#include <limits>

namespace cenote::testing {
namespace {

using PaddingMode = PaddingList::Mode;

template <class T, std::size_t N>
T pick(Random& random, const T (&choices)[N]) {
  return choices[random.between(0, static_cast<std::int64_t>(N) - 1)];
}

/// Mostly the small ones, now and then any up to `most`.
std::int64_t mostly_small(Random& random, std::int64_t least, std::int64_t usual, std::int64_t most) {
  return random.between(least, random.chance(0.85) ? std::min(usual, most) : most);
}

/// One number for all axes where they are equal (half of the time made equal), else a list.
DimList as_dims(Random& random, std::vector<std::int64_t>& values) {
  if (random.chance(0.4)) {
    values.assign(values.size(), values[0]);
    return DimList(values[0]);
  }
  return DimList(std::span<const std::int64_t>(values));
}

std::vector<std::int64_t> draw_each(Random& random, int dims, std::int64_t least, std::int64_t usual,
                                    std::int64_t most) {
  std::vector<std::int64_t> values;
  for (int i = 0; i < dims; ++i) values.push_back(mostly_small(random, least, usual, most));
  return values;
}

Op draw_op(Random& random, int dims) {
  constexpr Op kOps[] = {Op::max_pool,          Op::max_pool,          Op::max_pool,   Op::min_pool,
                         Op::avg_pool,          Op::avg_pool,          Op::sum_pool,   Op::lp_pool,
                         Op::adaptive_max_pool, Op::adaptive_avg_pool, Op::max_unpool, Op::fractional_max_pool};
  const Op op = pick(random, kOps);
  return op == Op::fractional_max_pool && dims == 1 ? Op::max_pool : op;
}

DType draw_dtype(Random& random, Op op) {
  constexpr DType kFloating[] = {DType::f32, DType::f32, DType::f64, DType::f16, DType::bf16};
  constexpr DType kIntegers[] = {DType::i8, DType::u8, DType::i16, DType::i32, DType::i64};
  const bool floating_only = op == Op::lp_pool || op == Op::fractional_max_pool;
  return floating_only || random.chance(0.65) ? pick(random, kFloating) : pick(random, kIntegers);
}

ValueKind draw_values(Random& random, Op op, DType dtype) {
  if (random.chance(0.45)) return ValueKind::normal;
  constexpr ValueKind kAll[] = {ValueKind::ties,  ValueKind::ties, ValueKind::negative,
                                ValueKind::nan,   ValueKind::inf,  ValueKind::neginf,
                                ValueKind::zeros, ValueKind::tiny, ValueKind::extreme};
  constexpr ValueKind kSums[] = {ValueKind::ties, ValueKind::negative, ValueKind::nan,
                                 ValueKind::inf,  ValueKind::zeros,    ValueKind::tiny};
  constexpr ValueKind kPowers[] = {ValueKind::ties, ValueKind::negative, ValueKind::zeros};
  if (op == Op::lp_pool) return pick(random, kPowers);
  const bool sums = op == Op::avg_pool || op == Op::sum_pool || op == Op::adaptive_avg_pool;
  return sums && is_floating(dtype) ? pick(random, kSums)
                                    : pick(random, kAll);  // integers wrap, so their extremes have sums
}

Layout draw_layout(Random& random) {
  constexpr Layout kLayouts[] = {Layout::planar,        Layout::planar,        Layout::planar,
                                 Layout::channels_last, Layout::channels_last, Layout::strided,
                                 Layout::spaced,        Layout::flipped,       Layout::broadcast};
  return pick(random, kLayouts);
}

Shape draw_shape(Random& random, int dims, Extent extent) {
  const bool large = extent == Extent::large;
  const std::int64_t most_elements = large ? 60000 : 2500;
  constexpr std::int64_t kUsual[] = {40, 14, 7}, kMost[] = {300, 70, 20};
  while (true) {
    std::vector<std::int64_t> shape;
    if (random.chance(0.8)) shape.push_back(random.chance(0.03) ? 0 : mostly_small(random, 1, 2, 5));
    shape.push_back(mostly_small(random, 1, 5, 40));
    for (int i = 0; i < dims; ++i) {
      shape.push_back(mostly_small(random, 1, large ? kMost[dims - 1] : kUsual[dims - 1], kMost[dims - 1]));
    }
    std::int64_t elements = 1;
    for (std::int64_t size : shape) elements *= std::max<std::int64_t>(size, 1);
    if (elements <= most_elements) return Shape(std::span<const std::int64_t>(shape));
  }
}

void draw_window(Random& random, PoolSpec& spec) {
  constexpr std::int64_t kUsual[] = {6, 4, 3}, kMost[] = {31, 15, 7};
  const int dims = spec.dims;
  auto kernel = draw_each(random, dims, 1, kUsual[dims - 1], kMost[dims - 1]);
  spec.kernel_size = as_dims(random, kernel);
  if (spec.op == Op::lp_pool && dims == 1) spec.kernel_size = DimList(kernel[0]);  // lp_pool1d takes no list
  auto stride = kernel;
  if (random.chance(0.7)) {
    stride = draw_each(random, dims, 1, 3, 7);
    spec.stride = as_dims(random, stride);
  }
  std::vector<std::int64_t> dilation(static_cast<std::size_t>(dims), 1);
  if (random.chance(0.3)) {
    dilation = draw_each(random, dims, 1, 3, 4);
    spec.dilation = as_dims(random, dilation);
  }
  spec.ceil_mode = random.chance(0.4);
  const double mode = random.uniform();
  std::vector<std::int64_t> begin, end;
  if (mode < 0.45) return;
  if (mode < 0.75) {
    for (std::int64_t k : kernel) begin.push_back(random.between(0, k / 2));
    if (random.chance(0.5)) begin.assign(begin.size(), *std::min_element(begin.begin(), begin.end()));
    spec.padding = PaddingList(DimList(std::span<const std::int64_t>(begin)));
  } else if (mode < 0.9) {
    for (std::size_t i = 0; i < kernel.size(); ++i) {
      const std::int64_t extent = (kernel[i] - 1) * dilation[i] + 1;
      begin.push_back(random.between(0, extent - 1));
      end.push_back(random.between(0, extent - 1));
    }
    spec.padding =
        PaddingList(DimList(std::span<const std::int64_t>(begin)), DimList(std::span<const std::int64_t>(end)));
  } else {
    spec.padding.mode = random.chance(0.5) ? PaddingMode::same_upper : PaddingMode::same_lower;
  }
}

void draw_adaptive(Random& random, PoolSpec& spec) {
  constexpr std::int64_t kUsual[] = {9, 6, 4}, kMost[] = {70, 24, 9};
  auto sizes = draw_each(random, spec.dims, 1, kUsual[spec.dims - 1], kMost[spec.dims - 1]);
  spec.output_size = as_dims(random, sizes);
  if (spec.dims > 1 && !spec.output_size.scalar && random.chance(0.2)) {
    spec.output_size.values[random.between(0, spec.dims - 1)] = keep;
  }
}

void draw_fractional(Random& random, PoolSpec& spec, const Shape& shape) {
  std::vector<std::int64_t> kernel, sizes;
  for (int i = 0; i < spec.dims; ++i) {
    const std::int64_t input = shape[shape.rank() - spec.dims + i], room = input - (spec.dims == 3 ? 1 : 0);
    kernel.push_back(random.between(1, std::clamp<std::int64_t>(room, 1, 4)));
    sizes.push_back(random.between(0, std::max<std::int64_t>(room - kernel.back() + 1, 0)));
    sizes.back() = std::max<std::int64_t>(sizes.back(), room >= kernel.back() ? 1 : 0);
  }
  spec.kernel_size = DimList(std::span<const std::int64_t>(kernel));
  spec.output_size = DimList(std::span<const std::int64_t>(sizes));
}

void draw_unpool(Random& random, PoolSpec& spec) {
  const int dims = spec.dims;
  auto kernel = draw_each(random, dims, 1, 3, 5);
  spec.kernel_size = as_dims(random, kernel);
  if (random.chance(0.5)) {
    auto stride = draw_each(random, dims, 1, 3, 5);
    spec.stride = as_dims(random, stride);
  }
  if (random.chance(0.3)) {
    std::vector<std::int64_t> padding;
    for (std::int64_t k : kernel) padding.push_back(random.between(0, k / 2));
    spec.padding = PaddingList(DimList(std::span<const std::int64_t>(padding)));
  }
}

bool every_window_has_a_tap(const Pool& pool) {
  for (int axis = 0; axis < 3; ++axis) {
    for (std::int64_t o = 0; o < pool.output[axis]; ++o) {
      const auto taps = window(pool, axis, o, 0).taps;
      if (std::none_of(taps.begin(), taps.end(), [&](std::int64_t tap) { return tap >= 0 && tap < pool.input[axis]; }))
        return false;
    }
  }
  return true;
}

/// What SEMANTICS refuses although its pieces are in range, and what would make a test slow.
bool is_usable(const Problem& problem, const Pool& pool, Extent extent) {
  for (int axis = 0; axis < 3; ++axis) {
    if (pool.output[axis] < 1 || pool.input[axis] < 1) return false;
    const bool fits_3d = problem.spec.padding.mode != PaddingMode::symmetric || pool.input[axis] >= pool.kernel[axis];
    if ((pool.op == Op::avg_pool || pool.op == Op::lp_pool) && pool.dims == 3 && !fits_3d) return false;
  }
  if (pool.op == Op::max_unpool && !every_window_has_a_tap(pool)) return false;
  const std::int64_t work = pool.planes() * std::max(pool.output_plane() * most_taps(pool), pool.input_plane());
  return work <= (extent == Extent::large ? 3000000 : 60000);
}

}  // namespace

Problem draw_problem(Random& random, Extent extent) {
  while (true) {
    Problem problem;
    PoolSpec& spec = problem.spec;
    spec.dims = static_cast<int>(random.between(1, 3));
    spec.op = draw_op(random, spec.dims);
    problem.dtype = draw_dtype(random, spec.op);
    problem.layout = draw_layout(random);
    problem.shape = draw_shape(random, spec.dims, extent);
    problem.values = draw_values(random, spec.op, problem.dtype);
    problem.seed = static_cast<std::uint64_t>(random.between(1, 99999));
    switch (spec.op) {
      case Op::adaptive_max_pool:
      case Op::adaptive_avg_pool: draw_adaptive(random, spec); break;
      case Op::fractional_max_pool: draw_fractional(random, spec, problem.shape); break;
      case Op::max_unpool: draw_unpool(random, spec); break;
      default: draw_window(random, spec);
    }
    if (spec.op == Op::avg_pool) {
      spec.count_include_pad = random.chance(0.6);
      if (random.chance(0.2)) spec.divisor_override = random.chance(0.3) ? -random.between(1, 9) : random.between(1, 9);
    }
    if (spec.op == Op::lp_pool) {
      constexpr double kNorms[] = {1,
                                   2,
                                   2,
                                   3,
                                   0.5,
                                   4,
                                   2.5,
                                   -1,
                                   std::numeric_limits<double>::infinity(),
                                   -std::numeric_limits<double>::infinity()};
      spec.norm_type = pick(random, kNorms);
    }
    const Pool pool = reference::resolve(spec, problem.dtype, problem.shape);
    if (!is_usable(problem, pool, extent)) continue;
    if (spec.op == Op::max_unpool && random.chance(0.5)) {  // name the size, the default one or a neighbour of it
      std::vector<std::int64_t> sizes;
      for (int axis = 3 - spec.dims; axis < 3; ++axis) {
        sizes.push_back(pool.input[axis] +
                        (random.chance(0.5) ? random.between(1 - pool.stride[axis], pool.stride[axis] - 1) : 0));
      }
      spec.output_size = DimList(std::span<const std::int64_t>(sizes));
      if (!is_usable(problem, reference::resolve(spec, problem.dtype, problem.shape), extent)) continue;
    }
    return problem;
  }
}

}  // namespace cenote::testing
