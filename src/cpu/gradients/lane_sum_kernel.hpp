// Sums and averages over planes, and their backward, whose results are each made of few sums of rows, as a kernel.
#pragma once

#include "cpu/rows/row_work.hpp"

namespace cenote::simd {

/// Null where the problem is another. `rows`: the same problem in rows, null where it has none.
std::unique_ptr<Kernel> make_lane_sum_kernel(const Described& described, const Target& target, const RowWork* rows);

}  // namespace cenote::simd
