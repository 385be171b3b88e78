// Backward of maxima over planes whose windows are two, three or five columns wide: what its kernels need besides pointers.
#pragma once

#include "cpu/rows/rows.hpp"
#include "cpu/vectors/paced.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cenote::simd {

/// The one output slice that sees an input slice.
struct SlicePair {
  std::int64_t output;  // -1: none
  std::int64_t tap;
};

/// A column whose windows are cut off at an edge: a bit for each tap of theirs that is inside.
struct EdgeColumn {
  std::int64_t column;
  std::uint32_t taps;
};

/// Made once per plan, read-only in run(). Planes lie `*_pitch` elements apart and are dense. Every window has a tap inside, and no two slices of
/// windows share one.
struct GatherPlan {
  std::int64_t planes, source_pitch, target_pitch, index_pitch;
  std::int64_t size;  // of an element, in bytes
  Axis axis[3];
  std::vector<SlicePair> slices;  // of each input slice
  std::int64_t bands, band;       // that a slice is cut into, for threads to share; rows of each
  std::vector<EdgeColumn> edges;
  // Of the taps, of as many rows for each slice as a window has columns: each kNumberBytes times, for vectors to be compared with.
  std::vector<std::uint8_t> numbers;
  bool flat;                            // indices are positions of 8 bytes, not taps of 1
  std::vector<std::int32_t> positions;  // flat: of each tap, from the first tap of its window were there no padding
  std::int64_t whole_first, whole_end;  // output rows whose windows are not cut off
  // Vectors may reach beyond rows of gradients that are not among the first or last of these, in a plane with none beside it on that side.
  std::int64_t copied_first, copied_last;
  std::int64_t copied_planes;  // those with none behind them, where planes follow each other
  PacedPlan paced;             // of the target's rows

  // Scratch, bytes from the start of a slot.
  std::int64_t code_rows, code_pitch;  // rows of taps that are kept
  std::int64_t value_extent;           // elements of a copied row of gradients
  std::int64_t carry_pitch;            // elements of a row of sums
  std::size_t codes_at, values_at, carry_at, paced_at, bytes;

  std::int64_t units() const { return planes * axis[0].input * bands; }
};

/// The most columns, and rows, of a window.
inline constexpr int kMostGathered = 5;
/// The number of no tap; as a byte, one that no index is that is right, nor kNoTap.
inline constexpr std::uint32_t kNoNumber = 256;
inline constexpr std::uint8_t kNoNumberByte = 254;
inline constexpr std::int64_t kNumberBytes = 16;
/// What whole vectors may read beside a row of taps or gradients.
inline constexpr std::int64_t kGatherMargin = 16;

/// Units [begin, end): bands of slices of planes. False if an index is no tap of its window.
using GatherPlanesFn = bool (*)(const GatherPlan&, const RowPointers&, std::int64_t begin, std::int64_t end,
                                char* scratch);

}  // namespace cenote::simd
