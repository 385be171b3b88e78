// Maxima of columns of few channels, several columns at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cenote::simd {

/// Outputs of a row whose windows have as many columns, cut into vectors of channels.
struct NarrowRun {
  const std::int32_t* from;  // of each vector: elements from a tap of the row's first window to its own
  const std::int32_t* to;    // and from the target row's beginning
  std::int64_t vectors;      // at least one
};

/// Folds pairs of taps, in row-major order: an odd last one is there twice.
using NarrowColumnsFn = void (*)(const float* const* taps, int pairs, const NarrowRun& run, float* target);

struct NarrowColumns {
  NarrowColumnsFn fold;  // null where there is none
  std::int64_t lanes;    // of its vectors: no more than there are channels
};

/// For columns of so many f32 channels.
NarrowColumns narrow_columns(std::size_t target, std::int64_t channels);

}  // namespace cenote::simd
