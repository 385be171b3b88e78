// What a call must answer, and the comparison with what it did answer.
#pragma once

#include "problems/data.hpp"
#include "reference/bounds.hpp"

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace cenote::testing {

/// Expected elements. Without tolerances they must be equal, NaN to NaN; with them, within the element's own (0: equal; NaN:
/// anything goes, rounding alone decides). -0 equals +0 unless signed_zeros.
template <class T>
struct Values {
  using Exact = std::conditional_t<std::is_same_v<T, double>, long double, std::int64_t>;
  std::vector<Exact> value;
  std::vector<long double> tolerance{};
  bool signed_zeros = false;

  static Values bits(const std::vector<T>& values) { return {{values.begin(), values.end()}, {}, true}; }
};

template <class T>
struct Expectation {
  Values<T> output;
  Integers flat{};     ///< max family
  Integers ordinal{};  ///< max family
  std::optional<Values<T>> grad_input{};
};

/// What the reference says, with the tolerance of one rounded result around its exact one.
template <class T>
Expectation<T> expect_reference(const Problem& problem, const Pool& pool, const Given<T>& given);

/// Sums as values with tolerances. A single undivided term is not rounded at all.
Values<double> values_of(const std::vector<reference::Sum>& sums, int divisions, const reference::Rounding& rounding);

/// The divisions behind each term of this op's sums.
int divisions_of(const Pool& pool);

/// "output[n0 c1 h2 w3]: expected 1.5, got 2" for the first element that differs, empty when none does.
template <class T>
std::string first_difference(const char* what, DType dtype, const Shape& shape, const Values<T>& expected,
                             const std::vector<T>& got);
std::string first_difference(const char* what, const Shape& shape, const Integers& expected, const Integers& got);

}  // namespace cenote::testing
