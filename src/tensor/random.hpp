// A counter-based generator: draw i of a seed is a function of the two numbers, so tensors fill in any order, in parallel, and
// with the same bits on every machine. Only integer arithmetic, + - * / and sqrt are used, which IEEE 754 defines to the bit.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>

namespace cenote::detail {

/// Two rounds of xor-shift and multiply: a bijection of 64-bit words in which every input bit reaches every output bit.
constexpr std::uint64_t scramble(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// 64 random bits: draw number `counter` of stream `seed`. The seed is scrambled first, so that neighbouring seeds do not
/// give shifted copies of one sequence.
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t counter) noexcept {
  return scramble(scramble(seed + 0x9e3779b97f4a7c15U) + counter * 0x9e3779b97f4a7c15U);
}

/// Uniform in [0, 1): a multiple of 2^-bits, so that it is exact in a type with that many significant bits.
inline double random_uniform(std::uint64_t seed, std::uint64_t counter, int bits) noexcept {
  return std::ldexp(static_cast<double>(random_bits(seed, counter) >> (64 - bits)), -bits);
}

/// Natural logarithm of x in (0, 1), within a few units in the last place: 2 artanh((m-1)/(m+1)) + e ln 2 for x = m 2^e.
/// The C library's log may differ between machines in its last bit.
inline double portable_log(double x) noexcept {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // in [0.5, 1)
  if (mantissa < 0.70710678118654752) {
    mantissa *= 2;
    --exponent;
  }
  const double s = (mantissa - 1) / (mantissa + 1);  // |s| <= 0.1716
  const double square = s * s;
  double series = 0;
  for (int k = 21; k >= 1; k -= 2) series = series * square + 1.0 / k;
  return 2 * s * series + exponent * 0.69314718055994530942;
}

/// A pair of independent normal numbers: Marsaglia's polar method, draw number `pair` of stream `seed`.
inline std::pair<double, double> random_normal(std::uint64_t seed, std::uint64_t pair) noexcept {
  for (std::uint64_t attempt = 0;; ++attempt) {
    const std::uint64_t stream = scramble(seed ^ (attempt * 0xd1342543de82ef95U + 0x2545f4914f6cdd1dU));
    const double u = 2 * random_uniform(stream, 2 * pair, 53) - 1;
    const double v = 2 * random_uniform(stream, 2 * pair + 1, 53) - 1;
    const double s = u * u + v * v;
    if (s > 0 && s < 1) {
      const double factor = std::sqrt(-2 * portable_log(s) / s);
      return {u * factor, v * factor};
    }
  }
}

}  // namespace cenote::detail
