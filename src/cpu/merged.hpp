// Pools that leave an axis alone, as pools of fewer axes.
#pragma once

#include "plan/kernel.hpp"

#include <memory>
#include <optional>

namespace cenote::simd {

/// Where windows are one slice deep, volumes are planes; where they are one row high, too, planes have as many rows as is convenient: lines of a picture, or the
/// channels of a sequence. More kernels are made for what is left. Nothing where tensors do not lie so.
std::optional<Described> merged(const Described& described);

/// Runs the kernel of what `described` was merged into.
std::unique_ptr<Kernel> make_merged_kernel(const Described& described, std::unique_ptr<Kernel> kernel);

}  // namespace cenote::simd
