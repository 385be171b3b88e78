// Maxima of columns of few channels, several columns at a time.
#pragma once

#include "cpu/kernels.hpp"

#include <cstddef>
#include <cstdint>

namespace cenote::simd {

/// The most taps of a window.
inline constexpr int kMostNarrowTable = 128;

/// Folds pairs of taps, in row-major order: an odd last one is there twice. Of each of at least four vectors, `from`: elements from a tap of the row's first window to its own; `to`: and
/// from the target row's beginning.
using NarrowColumnsFn = void (*)(const void* const* taps, int pairs, const std::int32_t* from, const std::int32_t* to,
                                 std::int64_t vectors, void* target);

/// The maxima of neighbours in `count` rows of at least a vector. False where the order in which they are taken would tell, for there is a NaN or a -0: then they may not be used.
using NarrowRowsFn = bool (*)(const void* const* rows, std::int64_t count, std::int64_t elements, void* maxima);

struct NarrowColumns {
  NarrowColumnsFn fold;  // null where there is none
  NarrowRowsFn down;
  std::int64_t lanes;  // of its vectors: no more than there are channels
};

/// For columns of so many channels.
NarrowColumns narrow_columns(std::size_t target, DType dtype, std::int64_t channels);

}  // namespace cenote::simd
