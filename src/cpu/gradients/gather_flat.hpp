// Backward of maxima whose windows are three rows and three columns, one apart, and leave planes as large as they are: an input and the outputs that see it lie at fixed
// distances from each other, whatever the layout. What the kernel needs besides pointers.
#pragma once

#include "cpu/rows/rows.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cenote::simd {

/// Made once per plan, read-only in run(). The tensors have no gaps: each is `rows` rows of all channels (channels-last) or of one (planar), one after the other.
struct FlatPlan {
  std::int64_t rows, pitch;           // of the tensor; elements of each
  std::int64_t height;                // rows of a plane
  std::int64_t pad, dilation;         // down the rows
  std::int64_t shifts[3];             // elements from an input to the output that sees it with each tap along the row
  std::int64_t band;                  // rows of a unit
  std::int64_t before, behind;        // elements that vectors reach beyond a row
  std::int64_t safe_first, safe_end;  // rows where that is inside the tensor; the outputs of the others are copied
  // Bits that taps must not have, see kColumnBit: of each output of `tabled` rows, all of a small plane or one, and more for each row of a plane.
  std::int64_t tabled;
  std::vector<std::uint8_t> outside, row_outside;

  // Scratch, bytes from the start of a slot: copies of the outputs of the first rows and of the last.
  std::size_t values_at[2], taps_at[2], bytes;

  std::int64_t count() const { return rows * pitch; }
  std::int64_t units() const { return ceil_div(rows, band); }
};

inline constexpr int kFlatTaps = 3;
/// Bits that a tap has for its column, the first of three, and for its row; what is none has one that no window allows.
inline constexpr std::uint8_t kColumnBit = 1, kRowBit = 1 << kFlatTaps, kNoTapBit = 1 << 2 * kFlatTaps;

/// Bytes that vectors may read behind `outside`.
inline constexpr std::int64_t kFlatSlack = 64;

/// Units [begin, end): bands of rows. False if an index is no tap of its window.
using GatherFlatFn = bool (*)(const FlatPlan&, const RowPointers&, std::int64_t begin, std::int64_t end, char* scratch);

/// Null where there is none for the instruction set and type.
GatherFlatFn gather_flat(std::size_t target, DType dtype);

}  // namespace cenote::simd
