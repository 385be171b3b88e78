// Windows over planar rows at no step that loads could follow, more than four columns apart or adaptive, forward: what their kernels need besides pointers.
#pragma once

#include "cpu/slice_divisors.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cenote::simd {

/// What a row of outputs sees: input rows, slice after slice.
struct SeenRows {
  std::int64_t first;         // elements from the plane's first
  std::int32_t slices, rows;  // rows of a slice
  std::int32_t code,
      slice_codes;  // of the first row, and from a slice to the next; rows are WideWindows::row_codes apart
};

/// Made once per plan, read-only in run(). Planes are dense, and those of results follow each other, so that the rows of outputs of all planes do, too. `group` of them are folded at
/// a time: their input rows down to one each, those along. Every window has a tap inside.
struct WideWindows {
  std::int64_t rows, columns;  // of the outputs: rows of all planes
  std::int64_t source_pitch, slice_step,
      row_step;        // elements of the input from plane to plane, and between the slices and rows that a window sees
  std::int64_t width;  // columns of the input
  std::int64_t group;  // rows
  std::int64_t row_pitch;  // elements from a folded row to the next
  std::int64_t vectors;    // of columns that go down the rows at once: 1, 2 or 4
  std::int64_t taps;       // most along a row
  bool even;               // all windows have that many
  bool in_lanes;           // sums, see LaneSums
  bool streams;            // indices are written around the caches
  bool counts_own_taps;    // codes count the taps of windows that differ in size
  std::int64_t ahead,
      fresh;  // input elements between what is folded and what is asked for (0: nothing is), and how many each row asks for
  std::int32_t row_codes;  // from a row of a window to its next: taps of the widest window, or columns
  DType index_dtype;
  std::vector<SeenRows> seen;  // by the rows of a plane
  // Of the outputs of a group and a vector behind: where their first taps lie in its folded rows, and how many there are; of those of a row again and again,
  // their first taps' codes.
  std::vector<std::int32_t> positions, counts, codes;
  SliceDivisors divisors;  // of sums and averages; where they differ, of a plane, a group and a vector

  // Scratch, bytes from the start of a slot.
  std::size_t values_at, row_codes_at, codes_at, bytes;
};

using WideWindowsFn = void (*)(const WideWindows&, const RowPointers&, std::int64_t begin, std::int64_t end,
                               char* scratch);

/// The ways to fold, and the lanes of their vectors; null where there are none.
struct WideWindowsFolds {
  WideWindowsFn max, max_indexed, sum;
  std::int64_t lanes;
};

/// `target` indexes Highway's dispatch tables.
WideWindowsFolds wide_windows_of(std::size_t target, DType dtype);

}  // namespace cenote::simd
