#pragma once

#include "cpu/kernels.hpp"
#include "plan/kernel.hpp"

#include <memory>

namespace cenote::simd {

/// The backward of max pooling. Null for other ops, and where rows or columns of the tensors are not consecutive.
std::unique_ptr<Kernel> make_scatter_kernel(const Described& described, const RowKernels& kernels,
                                            const Target& target);

}  // namespace cenote::simd
