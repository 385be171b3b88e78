// The same problem with fewer divisions in it.
#pragma once

#include "geometry/problem.hpp"

namespace cenote::gpu {

/// Even adaptive windows slide, batch and channels are one where they lie so, windows that are the whole plane are one long row.
/// What is computed and where it lies does not change.
Problem simplified(const Problem& given);

}  // namespace cenote::gpu
