// Backward of maxima over planar rows whose windows are two columns wide and do not overlap along them: what its kernels need besides pointers.
#pragma once

#include "cpu/rows.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cenote::simd {

/// An output row that sees an input row.
struct SeenBy {
  std::int32_t row;     // of the plane
  std::int32_t number;  // of the first tap of the row of its windows that the input row is
  std::int32_t slot;    // where it is kept
};

/// Made once per plan, read-only in run(). Planes lie `*_pitch` elements apart and are dense. Every window has a tap inside.
struct GatherPlan {
  std::int64_t planes, source_pitch, target_pitch, index_pitch;
  std::int64_t heights, width;         // of the input, slices below each other
  std::int64_t columns;                // of the output
  std::int64_t extent;                 // of a row, in whole vectors
  std::vector<SeenBy> seen_by;         // input row after input row of a plane, in the order of the outputs
  std::vector<std::int32_t> first;     // of each input row's; one more behind the last
  std::vector<std::int32_t> row_taps;  // of each output row: a bit for every tap inside the input's height and depth
  std::vector<std::int32_t> columns_taps;  // of each output column: a bit for every tap inside the width
  bool flat;                               // indices are positions of 8 bytes, not taps of 1
  std::vector<std::int32_t> origins;       // flat: of each output row's first window, were there no padding
  std::vector<std::int32_t> positions;     // flat: of each tap, from there
  bool streams;                            // the target is written around the caches
  std::int64_t slots, slot_pitch;          // output rows that are kept, elements from one to the next
  std::int64_t stage;                      // rows that are put together before they are written

  // Scratch, bytes from the start of a slot.
  std::size_t codes_at, values_at, stage_at, bytes;
};

/// Planes [begin, end). False if an index is no tap of its window, or "none".
using GatherPlanesFn = bool (*)(const GatherPlan&, const RowPointers&, std::int64_t begin, std::int64_t end,
                                char* scratch);

}  // namespace cenote::simd
