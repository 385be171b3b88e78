// Many small planes at once: transposed into channels-last columns in scratch, folded there, transposed back.
#pragma once

#include "cpu/rows/row_work.hpp"

namespace cenote::simd {

/// Null where the tensors are no evenly spaced planes, or where their rows are as good on their own. `rows`: the work of the
/// same problem without transposing, null where there is none.
std::unique_ptr<Kernel> make_block_kernel(const Described& described, const RowKernels& kernels, const Target& target,
                                          const RowWork* rows);

}  // namespace cenote::simd
