// Maxima, averages and sums of columns of many channels, each output straight from its taps.
#pragma once

#include "cpu/rows/row_work.hpp"

namespace cenote::simd {

/// Nothing where another way is faster.
std::unique_ptr<Kernel> make_straight_columns_kernel(const Described& described, const Target& target,
                                                     const RowWork* rows);

}  // namespace cenote::simd
