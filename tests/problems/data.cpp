#include "problems/data.hpp"

#include "reference/bounds.hpp"

#include <cmath>
#include <limits>
#include <numbers>

namespace cenote::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double draw_real(ValueKind kind, DType dtype, Random& random) {
  switch (kind) {
    case ValueKind::ties: return static_cast<double>(random.between(-2, 2));
    case ValueKind::negative: return reference::round_to(dtype, -std::fabs(random.normal()) - 1);
    case ValueKind::neginf: return -kInfinity;
    case ValueKind::zeros: return random.chance(0.5) ? -0.0 : 0.0;
    case ValueKind::tiny:
      return static_cast<double>(random.between(-9, 9)) * static_cast<double>(reference::smallest_subnormal(dtype));
    case ValueKind::nan:
    case ValueKind::inf: {
      const double which = random.uniform();
      if (which < 0.08 && kind == ValueKind::nan) {  // of both signs
        return std::copysign(std::numeric_limits<double>::quiet_NaN(), which < 0.04 ? -1.0 : 1.0);
      }
      if (which > 0.95) return -kInfinity;
      if (which > 0.90) return kInfinity;
      return reference::round_to(dtype, random.normal());
    }
    case ValueKind::extreme: {
      const double sizes[] = {0.0, 1.0, static_cast<double>(reference::smallest_subnormal(dtype)),
                              reference::largest(dtype), kInfinity};
      const double size = sizes[random.between(0, 4)];
      return random.chance(0.5) ? -size : size;
    }
    case ValueKind::normal: break;
  }
  return reference::round_to(dtype, random.normal());
}

std::int64_t draw_integer(ValueKind kind, DType dtype, Random& random) {
  const std::int64_t low = reference::lowest(dtype), high = reference::highest(dtype);
  switch (kind) {
    case ValueKind::ties: return random.between(0, 2);
    case ValueKind::zeros: return 0;
    case ValueKind::neginf: return low;
    case ValueKind::negative: return low == 0 ? random.between(0, 3) : random.between(-100, -1);
    case ValueKind::tiny: return low == 0 ? random.between(0, 1) : random.between(-1, 1);
    case ValueKind::extreme: {
      const std::int64_t ends[] = {low, low + 1, high - 1, high, 0};
      return random.chance(0.5) ? ends[random.between(0, 4)]
                                : reference::wrap(dtype, static_cast<std::int64_t>(random.next()));
    }
    default: return random.between(low == 0 ? 0 : -100, 99);
  }
}

double draw_one(ValueKind kind, DType dtype, Random& random, double) { return draw_real(kind, dtype, random); }
std::int64_t draw_one(ValueKind kind, DType dtype, Random& random, std::int64_t) {
  return draw_integer(kind, dtype, random);
}

/// For every pooled element, a tap of its window inside the unpooled plane.
template <class T>
void draw_indices(const Pool& pool, Random& random, Given<T>& given) {
  for_each_box(pool, {}, [&](const reference::Box& box) {
    Integers flats, ordinals;
    for_each_tap(pool, box, [&](std::int64_t, std::int64_t flat, std::int64_t ordinal) {
      flats.push_back(flat);
      ordinals.push_back(ordinal);
    });
    if (flats.empty()) throw ProblemError("unpool: a window lies wholly outside the output, so no index belongs to it");
    const auto pick = static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(flats.size()) - 1));
    given.flat.push_back(flats[pick]);
    given.ordinal.push_back(ordinals[pick]);
  });
}

}  // namespace

std::uint64_t Random::next() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

double Random::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

std::int64_t Random::between(std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low + 1));
}

template <class T>
std::vector<T> draw(ValueKind kind, DType dtype, std::int64_t count, Random& random) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(draw_one(kind, dtype, random, T{}));
  return values;
}
template std::vector<double> draw(ValueKind, DType, std::int64_t, Random&);
template std::vector<std::int64_t> draw(ValueKind, DType, std::int64_t, Random&);

template <class T>
Given<T> draw_given(const Problem& problem, const Pool& pool) {
  Random random(problem.seed);
  Given<T> given;
  const std::int64_t large = pool.planes() * pool.input_plane(), small = pool.planes() * pool.output_plane();
  const bool unpool = pool.op == Op::max_unpool;
  given.input = draw<T>(problem.values, problem.dtype, unpool ? small : large, random);
  const ValueKind gradients = problem.values == ValueKind::zeros ? ValueKind::zeros : ValueKind::normal;
  given.grad_output = draw<T>(gradients, problem.dtype, unpool ? large : small, random);
  if (problem.layout == Layout::broadcast) {  // every channel is the first one
    const std::int64_t plane = unpool ? pool.output_plane() : pool.input_plane();
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(given.input.size()); ++i) {
      const std::int64_t batch = i / (plane * pool.channels);
      given.input[static_cast<std::size_t>(i)] =
          given.input[static_cast<std::size_t>(batch * plane * pool.channels + i % plane)];
    }
  }
  if (pool.op == Op::fractional_max_pool) {
    given.samples_shape = {pool.batch, pool.channels, pool.dims};
    for (std::int64_t i = 0; i < pool.planes() * pool.dims; ++i) {
      const double sample = reference::round_to(problem.dtype, random.uniform());
      given.samples.push_back(sample < 1 ? sample : 0);
    }
  }
  if (unpool) draw_indices(pool, random, given);
  return given;
}
template Given<double> draw_given(const Problem&, const Pool&);
template Given<std::int64_t> draw_given(const Problem&, const Pool&);

}  // namespace cenote::testing
