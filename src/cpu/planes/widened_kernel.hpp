// Planes of halves and bytes through the kernels of f32.
#pragma once

#include "cpu/rows/row_work.hpp"

#include <memory>

namespace cenote::simd {

/// Makes a kernel for planes of f32, or null.
using MakeKernelFn = std::unique_ptr<Kernel> (*)(const Described& described, const Target& target);

/// Null where planes have gaps or are too large, rows are long, or there is no kernel for them as f32.
std::unique_ptr<Kernel> make_widened_kernel(const Described& described, const Target& target, const RowWork* rows,
                                            MakeKernelFn make_wide);

}  // namespace cenote::simd
