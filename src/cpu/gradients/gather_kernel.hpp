// Backward of maxima over planar windows two or three columns wide, as a kernel.
#pragma once

#include "cpu/rows/row_work.hpp"

namespace cenote::simd {

/// Null where the problem is another.
std::unique_ptr<Kernel> make_gather_kernel(const Described& described, const RowKernels& kernels);

}  // namespace cenote::simd
