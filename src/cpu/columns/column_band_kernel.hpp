// Maxima of columns of many channels, several rows of outputs at a time.
#pragma once

#include "cpu/rows/row_work.hpp"

namespace cenote::simd {

/// Nothing where another way is faster.
std::unique_ptr<Kernel> make_column_band_kernel(const Described& described, const Target& target, const RowWork* rows);

}  // namespace cenote::simd
