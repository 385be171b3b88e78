// Backward of maxima whose windows of three rows and columns leave planes as large as they are, as a kernel.
#pragma once

#include "cpu/rows/row_work.hpp"

namespace cenote::simd {

/// Null where the problem is another.
std::unique_ptr<Kernel> make_flat_kernel(const Described& described, const Target& instructions);

}  // namespace cenote::simd
