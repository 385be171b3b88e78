// The backward of maxima over whole planes, as a kernel.
#pragma once

#include "plan/kernel.hpp"

#include <memory>

namespace cenote::simd {

/// Null for other ops, where planes have gaps, and where there are too few of them for threads to share.
std::unique_ptr<Kernel> make_winner_kernel(const Described& described);

}  // namespace cenote::simd
