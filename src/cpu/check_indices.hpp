// Which of the indices handed in is wrong: asked only when a pass has found fewer right ones than it looked for.
#pragma once

#include "geometry/problem.hpp"

#include <cenote/error.hpp>

namespace cenote::simd {

/// The starts of windows that are not fractional.
inline constexpr const std::int64_t* kNoStarts[3] = {};

/// Names the first index that is no tap of its window (or no place in its plane); ok where all are, or are "none". `starts`: of fractional windows.
Status find_invalid_index(const Problem& p, const void* indices,
                          const std::int64_t* const (&starts)[3] = kNoStarts) noexcept;

/// Whether some window of a dilated pool has no tap inside the input.
bool has_empty_windows(const Problem& p);

/// No pass looks at the index of an empty window, which must be "none".
bool empty_windows_are_none(const Problem& p, const void* indices) noexcept;

}  // namespace cenote::simd
