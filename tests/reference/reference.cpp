#include "reference/reference.hpp"

#include <cmath>
#include <limits>

namespace cenote::reference {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

std::int64_t inputs(const Pool& pool) { return pool.planes() * pool.input_plane(); }
std::int64_t outputs(const Pool& pool) { return pool.planes() * pool.output_plane(); }

bool beats(double value, double best, bool smallest) {
  return std::isnan(value) || (smallest ? value < best : value > best);
}
bool beats(std::int64_t value, std::int64_t best, bool smallest) { return smallest ? value < best : value > best; }

double identity(const Pool&, bool smallest, double) {
  const double infinity = std::numeric_limits<double>::infinity();
  return smallest ? infinity : -infinity;
}
std::int64_t identity(const Pool& pool, bool smallest, std::int64_t) {
  return smallest ? highest(pool.dtype) : lowest(pool.dtype);
}

template <class T>
Extremum<T> fold_extremum(const Pool& pool, const std::vector<T>& input, const Reals& samples, bool smallest) {
  Extremum<T> result;
  for_each_box(pool, samples, [&](const Box& box) {
    T best = identity(pool, smallest, T{});
    std::int64_t best_flat = -1, best_ordinal = -1;
    for_each_tap(pool, box, [&](std::int64_t i, std::int64_t flat, std::int64_t ordinal) {
      const bool first = best_ordinal == -1;  // an element equal to the identity is still an element
      if (first || beats(input[at(i)], best, smallest)) {
        best = input[at(i)];
        best_flat = flat;
        best_ordinal = ordinal;
      }
    });
    result.value.push_back(best);
    result.flat.push_back(best_flat);
    result.ordinal.push_back(best_ordinal);
  });
  return result;
}

std::int64_t divisor(const Pool& pool, const Box& box) {
  if (pool.op == Op::sum_pool) return 1;
  if (pool.divisor_override != 0) return pool.divisor_override;
  if (pool.count_include_pad && !pool.is_adaptive()) return box.counted();
  std::int64_t valid = 0;
  for_each_tap(pool, box, [&](std::int64_t, std::int64_t, std::int64_t) { ++valid; });
  return valid;
}

}  // namespace

template <class T>
Extremum<T> extremum(const Pool& pool, const std::vector<T>& input, const Reals& samples) {
  return fold_extremum(pool, input, samples, pool.op == Op::min_pool);
}
template Extremum<double> extremum(const Pool&, const std::vector<double>&, const Reals&);
template Extremum<std::int64_t> extremum(const Pool&, const std::vector<std::int64_t>&, const Reals&);

void Sum::add(long double term) {
  exact += term;
  magnitude += std::fabs(term);
  if (std::isfinite(term)) finite += std::fabs(term);
  ++terms;
}

std::vector<Sum> sum(const Pool& pool, const Reals& input) {
  std::vector<Sum> result;
  for_each_box(pool, {}, [&](const Box& box) {
    Sum total;
    for_each_tap(pool, box, [&](std::int64_t i, std::int64_t, std::int64_t) { total.add(input[at(i)]); });
    if (total.terms > 0) {  // an empty window is 0, whatever its divisor
      const auto by = static_cast<long double>(divisor(pool, box));
      total.exact /= by;
      total.magnitude /= std::fabs(by);
    }
    result.push_back(total);
  });
  return result;
}

Integers sum(const Pool& pool, const Integers& input) {
  Integers result;
  for_each_box(pool, {}, [&](const Box& box) {
    std::uint64_t total = 0;  // unsigned, so that overflow wraps
    std::int64_t terms = 0;
    for_each_tap(pool, box, [&](std::int64_t i, std::int64_t, std::int64_t) {
      total += static_cast<std::uint64_t>(input[at(i)]);
      ++terms;
    });
    const std::int64_t by = terms > 0 ? divisor(pool, box) : 1;
    // The one quotient C++ leaves undefined, INT64_MIN / -1, wraps like every other result.
    const std::int64_t quotient =
        by == -1 ? static_cast<std::int64_t>(0 - total) : static_cast<std::int64_t>(total) / by;
    result.push_back(wrap(pool.dtype, quotient));
  });
  return result;
}

std::vector<Sum> sum_backward(const Pool& pool, const Reals& grad_output) {
  std::vector<Sum> result(at(inputs(pool)));
  for_each_box(pool, {}, [&](const Box& box) {
    const auto by = static_cast<long double>(divisor(pool, box));
    for_each_tap(pool, box, [&](std::int64_t i, std::int64_t, std::int64_t) {
      result[at(i)].add(grad_output[at(box.output)] / by);
    });
  });
  return result;
}

std::vector<Sum> extremum_backward(const Pool& pool, const Reals& grad_output, const Integers& flat) {
  std::vector<Sum> result(at(inputs(pool)));
  for (std::int64_t o = 0; o < outputs(pool); ++o) {
    const std::int64_t plane = o / pool.output_plane();
    if (flat[at(o)] != -1) result[at(plane * pool.input_plane() + flat[at(o)])].add(grad_output[at(o)]);
  }
  return result;
}

std::vector<Power> power(const Pool& pool, const Reals& input) {
  const long double p = pool.norm_type;
  std::vector<Power> result;
  for_each_box(pool, {}, [&](const Box& box) {
    Power window;
    for_each_tap(pool, box, [&](std::int64_t i, std::int64_t, std::int64_t) {
      const long double term = std::pow(static_cast<long double>(input[at(i)]), p);
      window.v += term;
      window.magnitude += std::fabs(term);
      window.largest = std::fmax(window.largest, std::fabs(term));
      ++window.terms;
    });
    if (window.terms > 0) {
      window.scale = static_cast<long double>(pool.kernel_volume()) / static_cast<long double>(box.counted());
      window.v *= window.scale;
      window.magnitude *= window.scale;
    }
    window.y = std::pow(window.v, 1 / p);
    result.push_back(window);
  });
  return result;
}

long double power_slope(const Pool& pool, const Power& window, double grad_output) {
  if (window.v == 0) return 0;
  const long double e = 1 / static_cast<long double>(pool.norm_type);
  return grad_output * e * std::pow(window.v, e - 1) * window.scale;
}

std::vector<Sum> power_backward(const Pool& pool, const std::vector<Power>& windows, const Reals& grad_output) {
  std::vector<Sum> result(at(inputs(pool)));
  for_each_box(pool, {}, [&](const Box& box) {
    const long double slope = power_slope(pool, windows[at(box.output)], grad_output[at(box.output)]);
    for_each_tap(pool, box, [&](std::int64_t i, std::int64_t, std::int64_t) { result[at(i)].add(slope); });
  });
  return result;
}

long double power_derivative(const Pool& pool, double x) {
  const long double p = pool.norm_type;
  return p * std::pow(static_cast<long double>(x), p - 1);
}

Extremum<double> infinite_norm(const Pool& pool, const Reals& input) {
  Reals magnitudes;
  for (double x : input) magnitudes.push_back(std::fabs(x));
  return fold_extremum(pool, magnitudes, {}, pool.norm_type < 0);
}

std::vector<Sum> infinite_norm_backward(const Pool& pool, const Reals& input, const Reals& grad_output,
                                        const Integers& flat) {
  std::vector<Sum> result = extremum_backward(pool, grad_output, flat);
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (input[i] < 0) result[i].exact = -result[i].exact;
    if (input[i] == 0) result[i] = Sum{};
  }
  return result;
}

template <class T>
std::vector<T> unpool(const Pool& pool, const std::vector<T>& input, const Integers& flat) {
  std::vector<T> result(at(inputs(pool)));
  if (result.empty()) return result;  // nowhere to write to: the indices do not matter
  for (std::int64_t o = 0; o < outputs(pool); ++o) {
    result[at(o / pool.output_plane() * pool.input_plane() + flat[at(o)])] = input[at(o)];
  }
  return result;
}
template std::vector<double> unpool(const Pool&, const std::vector<double>&, const Integers&);
template std::vector<std::int64_t> unpool(const Pool&, const std::vector<std::int64_t>&, const Integers&);

template <class T>
std::vector<T> unpool_backward(const Pool& pool, const std::vector<T>& grad_output, const Integers& flat) {
  std::vector<T> result;
  for (std::int64_t o = 0; o < outputs(pool); ++o) {
    result.push_back(grad_output[at(o / pool.output_plane() * pool.input_plane() + flat[at(o)])]);
  }
  return result;
}
template std::vector<double> unpool_backward(const Pool&, const std::vector<double>&, const Integers&);
template std::vector<std::int64_t> unpool_backward(const Pool&, const std::vector<std::int64_t>&, const Integers&);

std::int64_t lowest(DType dtype) {
  switch (dtype) {
    case DType::i8: return std::numeric_limits<std::int8_t>::min();
    case DType::i16: return std::numeric_limits<std::int16_t>::min();
    case DType::i32: return std::numeric_limits<std::int32_t>::min();
    case DType::i64: return std::numeric_limits<std::int64_t>::min();
    default: return 0;
  }
}

std::int64_t highest(DType dtype) {
  switch (dtype) {
    case DType::i8: return std::numeric_limits<std::int8_t>::max();
    case DType::u8: return std::numeric_limits<std::uint8_t>::max();
    case DType::i16: return std::numeric_limits<std::int16_t>::max();
    case DType::i32: return std::numeric_limits<std::int32_t>::max();
    default: return std::numeric_limits<std::int64_t>::max();
  }
}

std::int64_t wrap(DType dtype, std::int64_t value) {
  switch (dtype) {
    case DType::i8: return static_cast<std::int8_t>(value);
    case DType::u8: return static_cast<std::uint8_t>(value);
    case DType::i16: return static_cast<std::int16_t>(value);
    case DType::i32: return static_cast<std::int32_t>(value);
    default: return value;
  }
}

}  // namespace cenote::reference
