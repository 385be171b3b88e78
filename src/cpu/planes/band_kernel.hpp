// Small windows of any shape over planar rows, forward, as a kernel.
#pragma once

#include "cpu/rows/row_work.hpp"

namespace cenote::simd {

/// Null where the problem is another. `rows` is the same problem as rows, null where it cannot be. `joined`: short rows whose windows are one apart, each band of
/// which is one long run.
std::unique_ptr<Kernel> make_band_kernel(const Described& described, const Target& target, const RowWork* rows,
                                         bool joined);

}  // namespace cenote::simd
