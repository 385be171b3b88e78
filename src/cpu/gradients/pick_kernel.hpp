// Backward of maxima over planes whose windows share nothing, as a kernel.
#pragma once

#include "cpu/rows/row_work.hpp"

namespace cenote::simd {

/// Null where the problem is another.
std::unique_ptr<Kernel> make_pick_kernel(const Described& described, const Target& instructions);

}  // namespace cenote::simd
