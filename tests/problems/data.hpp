// The numbers a problem is tried with: drawn from its seed, the same on every machine.
#pragma once

#include "problems/problem.hpp"
#include "reference/reference.hpp"

#include <cstdint>
#include <vector>

namespace cenote::testing {

using reference::Integers;
using reference::Pool;
using reference::Reals;

/// splitmix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  ///< [0, 1)
  double normal();
  std::int64_t between(std::int64_t low, std::int64_t high);  ///< both included
  bool chance(double probability) { return uniform() < probability; }

 private:
  std::uint64_t state_;
};

/// What is handed to a call, in logical order. T is double for floating-point dtypes, std::int64_t for integers.
template <class T>
struct Given {
  std::vector<T> input;
  std::vector<T> grad_output;
  Reals samples{};  ///< fractional: one per plane and axis
  Shape samples_shape{};
  Integers flat{};     ///< unpool: where each element goes, in the output's plane
  Integers ordinal{};  ///< unpool: the same as a tap of its window
};

/// Values of an element type: representable, so that nothing rounds on the way into memory.
template <class T>
std::vector<T> draw(ValueKind kind, DType dtype, std::int64_t count, Random& random);

/// Everything a valid problem needs. Throws ProblemError where an unpool has no index of the kind asked for.
template <class T>
Given<T> draw_given(const Problem& problem, const Pool& pool);

}  // namespace cenote::testing
