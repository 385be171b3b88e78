// Averages and sums of bf16 columns of many channels, two channels to a lane.
#pragma once

#include "cpu/row_work.hpp"

namespace cenote::simd {

/// Nothing where another way is faster.
std::unique_ptr<Kernel> make_sum_pairs_kernel(const Described& described, const Target& target, const RowWork* rows);

}  // namespace cenote::simd
