// The backward of Lp of norm 2 where no two windows share an element, as a kernel.
#pragma once

#include "cpu/rows/row_work.hpp"

#include <memory>

namespace cenote::simd {

/// Null where this is another problem, windows share elements, or other ways are as fast.
std::unique_ptr<Kernel> make_norm_gradients_kernel(const Described& described, const Target& target,
                                                   const RowWork* rows);

}  // namespace cenote::simd
