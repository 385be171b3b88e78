// The backward of averages and sums in columns of many channels that few outputs see.
#pragma once

#include "cpu/rows/row_work.hpp"

namespace cenote::simd {

/// Nothing where another way is faster.
std::unique_ptr<Kernel> make_expand_columns_kernel(const Described& described, const Target& target,
                                                   const RowWork* rows);

}  // namespace cenote::simd
