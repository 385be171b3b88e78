// The backward of maxima over columns of many channels whose windows share nothing, an output row at a time.
#pragma once

#include "geometry/axis.hpp"

#include <cstddef>
#include <cstdint>

namespace cenote::simd {

/// A tap that no window has, for inputs between windows.
inline constexpr std::uint8_t kGapTap = 254;

/// One of the inputs that belong to an output, a stride of them along each axis: where that of the row's first output lies (which may be before the
/// tensor, where that output is not asked for), and which tap it is.
struct OwnedInput {
  char* target;
  std::uint8_t tap;
};

/// A row of outputs.
struct PickedRow {
  const void* gradients;
  const std::uint8_t* taps;
  std::int64_t channels, apart;  // elements from one output to the next, and from its inputs to the next one's
  bool streams;                  // inputs are written around the caches
};

/// Stores the gradients of outputs [first, end) to `count` inputs of each: zero where the output's tap is another.
using PickColumnsFn = void (*)(const PickedRow&, std::int64_t first, std::int64_t end, const OwnedInput*, int count);

/// Whether the taps of a row of outputs are inside their windows, or "none"; see TapsOfRowInside.
using CheckTapsFn = bool (*)(const Axis*, const Window*, std::int64_t columns, std::int64_t inner, const Window& deep,
                             const Window& high, const std::uint8_t* taps);

struct PickColumns {
  PickColumnsFn pick;  // null where there is none for the instruction set
  CheckTapsFn check;
  std::int64_t lanes;  // channels that a column has at least
};

/// By the size of elements, whatever floating-point type they are.
PickColumns pick_columns(std::size_t target, std::size_t size);

}  // namespace cenote::simd
