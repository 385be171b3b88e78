// Backward of sums and averages over planes whose inputs few outputs see, as a kernel.
#pragma once

#include "cpu/rows/row_work.hpp"

namespace cenote::simd {

/// Null where the problem is another. `rows`: the same problem in rows, null where it has none.
std::unique_ptr<Kernel> make_expand_kernel(const Described& described, const RowKernels& kernels, const RowWork* rows);

}  // namespace cenote::simd
