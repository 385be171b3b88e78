// Small square windows over planar rows, forward, as a kernel.
#pragma once

#include "cpu/rows/row_work.hpp"

namespace cenote::simd {

/// Null where the problem is another. `rows` is the same problem as rows, null where it cannot be.
std::unique_ptr<Kernel> make_strip_kernel(const Described& described, const RowKernels& kernels, const RowWork* rows);

}  // namespace cenote::simd
