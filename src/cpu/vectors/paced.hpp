// How results are written around the caches while others are made: what plans must know of it.
#pragma once

#include <cstdint>

namespace cenote::simd {

inline constexpr std::int64_t kLine = 64;

/// Rows of `row` bytes that are put together, and what they take in scratch.
struct PacedPlan {
  bool streams;  // around the caches; otherwise there is no scratch
  std::int64_t row;
  std::int64_t rows;

  /// Of one of the two buffers: behind the bytes of a line that was not whole.
  std::int64_t buffer() const { return (kLine + rows * row + kLine - 1) / kLine * kLine; }
  std::size_t bytes() const { return streams ? static_cast<std::size_t>(2 * buffer()) : 0; }
};

}  // namespace cenote::simd
