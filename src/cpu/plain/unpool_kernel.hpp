// Max unpooling both ways, as a kernel.
#pragma once

#include "plan/kernel.hpp"

#include <memory>

namespace cenote::simd {

/// Null for other ops, and where the positions of the unpooled plane follow no step.
std::unique_ptr<Kernel> make_unpool_kernel(const Described& described);

}  // namespace cenote::simd
