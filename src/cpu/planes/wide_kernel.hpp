// Windows over planar rows that follow each other at no step that loads could follow.
#pragma once

#include "cpu/rows/row_work.hpp"

namespace cenote::simd {

/// Nothing where another way is faster. `blocks_refused`: asked again, for maxima of windows of few rows, too, which blocks are faster for where they take them.
std::unique_ptr<Kernel> make_wide_kernel(const Described& described, const Target& target, const RowWork* rows,
                                         bool blocks_refused);

}  // namespace cenote::simd
