// Backward of maxima over small planes whose windows overlap, as a kernel.
#pragma once

#include "cpu/rows/row_work.hpp"

namespace cenote::simd {

/// Null where the problem is another.
std::unique_ptr<Kernel> make_collect_kernel(const Described& described, const RowKernels& kernels);

}  // namespace cenote::simd
