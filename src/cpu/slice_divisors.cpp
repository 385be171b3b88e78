#include "cpu/slice_divisors.hpp"

#include "cpu/thresholds.hpp"

#include <algorithm>
#include <cmath>

namespace cenote::simd {

double factor_of(const RowPlan& rows, int axis, std::int64_t o) {
  const auto& factors = rows.row_factors[static_cast<std::size_t>(axis)];
  return factors.empty() ? 1 : factors[static_cast<std::size_t>(o)];
}

bool make_slice_divisors(const RowPlan& rows, std::int64_t slack, SliceDivisors& result, bool apart) {
  const Problem& p = rows.problem;
  result = {1, true, {}, 0};
  if (p.reduction != Reduction::average && p.reduction != Reduction::power) return true;
  // Slices and rows beyond number have no tables.
  if (p.divisor_override == 0 && (rows.row_factors[0].empty() || rows.row_factors[1].empty())) return false;
  const std::int64_t depth = p.axis[0].output, height = p.axis[1].output, width = p.axis[2].output;
  bool alike = true;
  for (std::int64_t z = 1; z < depth; ++z) alike = alike && factor_of(rows, 0, z) == factor_of(rows, 0, 0);
  if (!alike && !apart) return false;
  const auto& factors = rows.row_factors[1];
  const bool uniform = alike && rows.column_factor.empty() &&
                       std::all_of(factors.begin(), factors.end(), [&](double one) { return one == factors[0]; });
  if (uniform) {
    result.all = static_cast<float>(factor_of(rows, 0, 0) * factor_of(rows, 1, 0) * rows.uniform_factor);
    result.multiplies = rows.factor_is_power_of_two && result.all > 0;
    return true;
  }
  result = {0, false, {}, alike ? 0 : height * width};
  const std::int64_t slices = alike ? 1 : depth;
  if (width > kMostDivisors / height / slices) return false;
  for (std::int64_t z = 0; z < slices; ++z) {
    for (std::int64_t y = 0; y < height; ++y) {
      for (std::int64_t x = 0; x < width; ++x) {
        const double column =
            rows.column_factor.empty() ? rows.uniform_factor : rows.column_factor[static_cast<std::size_t>(x)];
        result.each.push_back(static_cast<float>(factor_of(rows, 0, z) * factor_of(rows, 1, y) * column));
      }
    }
  }
  result.each.resize(result.each.size() + static_cast<std::size_t>(slack), 1);
  return true;
}

bool make_slice_powers(const RowPlan& rows, std::int64_t slack, SlicePowers& result) {
  result = {};
  const Problem& p = rows.problem;
  if (p.reduction != Reduction::power) return true;
  constexpr double kMostFactors = 3;
  if (p.norm_type < 1 || p.norm_type > kMostFactors || p.norm_type != std::floor(p.norm_type)) return false;
  result.factors = static_cast<int>(p.norm_type);
  result.roots = true;
  result.root_kind = rows.root_kind;
  result.root = 1 / p.norm_type;
  result.whole = static_cast<float>(rows.power_factor);
  return make_slice_divisors(rows, slack, result.taps);
}

}  // namespace cenote::simd
