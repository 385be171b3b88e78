// The backward of maxima over columns of many channels whose windows share nothing.
#pragma once

#include "cpu/rows/row_work.hpp"

namespace cenote::simd {

/// Nothing where another way is faster.
std::unique_ptr<Kernel> make_pick_columns_kernel(const Described& described, const Target& target, const RowWork* rows);

}  // namespace cenote::simd
