// What averages are divided by, and how sums of powers become norms, for kernels that go through planes a slice at a time.
#pragma once

#include "cpu/rows/rows.hpp"

#include <cstdint>
#include <vector>

namespace cenote::simd {

struct SliceDivisors {
  float all;                // of every output; 0 where they differ
  bool multiplies;          // by its inverse, which is exact; sums: by 1
  std::vector<float> each;  // where they differ: of each output of a slice, and some ones behind
  std::int64_t slice;       // there: entries from one slice's to the next one's; 0 where slices have the same
};

/// What the outputs of a slice (0) or of a row (1) have to do with their divisors; nothing where one is given for all.
double factor_of(const RowPlan& rows, int axis, std::int64_t o);

/// `slack`: ones behind. False where there are too many to have a table, or slices have divisors of their own, unless `apart`.
bool make_slice_divisors(const RowPlan& rows, std::int64_t slack, SliceDivisors& result, bool apart = false);

/// Lp: x^p as a product, and what becomes of its sums.
struct SlicePowers {
  int factors = 1;  // 1 of sums and averages, too
  bool roots = false;
  int root_kind = 0;
  double root = 1;
  float whole = 1;     // taps of a window that nothing cuts off
  SliceDivisors taps;  // of each window
};

/// False where powers are no products of three factors at most, or there are too many windows to have a table.
bool make_slice_powers(const RowPlan& rows, std::int64_t slack, SlicePowers& result);

}  // namespace cenote::simd
