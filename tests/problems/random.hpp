// Problems nobody thought of: drawn at random, all valid, with the extremes of every argument among them.
#pragma once

#include "problems/data.hpp"

namespace cenote::testing {

/// Roughly how large a drawn problem is.
enum class Extent : std::uint8_t { small, large };

/// A valid problem of any op, dtype, layout, padding and value kind. The same for the same state of `random`.
Problem draw_problem(Random& random, Extent extent);

}  // namespace cenote::testing
