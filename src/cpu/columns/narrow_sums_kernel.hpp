// Averages and sums of columns of few channels.
#pragma once

#include "cpu/rows/row_work.hpp"

namespace cenote::simd {

/// Nothing where another way is faster.
std::unique_ptr<Kernel> make_narrow_sums_kernel(const Described& described, const Target& target, const RowWork* rows);

}  // namespace cenote::simd
