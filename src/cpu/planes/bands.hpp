// Small windows of any shape over planar rows, forward: what their kernels need besides pointers.
#pragma once

#include "cpu/slice_divisors.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cenote::simd {

/// Output rows [row, row + rows), each of which sees `count` input rows: the first of them from `first` on, each further one a row further on.
struct RowRun {
  std::int64_t row, rows, first, count;
};

/// A band whose rows are joined: its runs, and the input rows that it sees.
struct JoinedBand {
  std::size_t run, end_run;
  std::int64_t first_y, end_y;
};

/// Made once per plan, read-only in run(). Planes lie `*_pitch` elements apart and are dense. Every window has a tap inside.
struct BandPlan {
  std::int64_t source_pitch, target_pitch;
  std::int64_t extent;                 // elements of the source from its first to its last
  std::int64_t heights, width;         // of the input
  std::int64_t slices, rows, columns;  // of the output
  std::int64_t taps, stride, left;     // along the row, and its padding in front; strides of 3 only in lanes of 4 bytes
  std::int64_t band, bands;            // output rows that are folded in one go, and how often that is in a slice
  bool
      shares;  // maxima: rows that several windows see are folded along once; sums: rows are added up before they are taken apart
  std::int64_t row_stride;      // rows from window to window
  std::int64_t ahead;           // elements of a slice that are asked for while a band is folded
  bool streams;                 // results are written around the caches
  std::int64_t step, row_step;  // columns and rows from tap to tap
  // Dilated windows, see dilated_rows-inl.h:
  std::int64_t row_unit, kept_rows;  // of so many rows one is seen, and so many in a band
  std::int64_t
      phase_pitch;  // columns that leave the same when divided by the stride, and padding: of a row, in whole vectors
  unsigned phases;  // which of those are seen, as bits
  // Rows that are joined, see joined_rows-inl.h:
  std::vector<RowRun> runs;  // of the output rows of all bands
  std::vector<JoinedBand> joined;
  std::int64_t batch,
      kept_pitch;  // bands that are folded before the first is finished, and elements from one's to the next's
  std::vector<std::uint8_t>
      inside;  // of both, as bits: which lanes of vectors have a column in their row. Of a run, each tap, until it recurs
  std::vector<RowRange> depth_rows, height_rows;  // the slices of each output slice, and the rows of each output row
  SliceDivisors divisors;                         // of sums and averages
  SlicePowers powers;                             // Lp: f32 alone

  // Scratch, bytes from the start of a slot.
  std::size_t packed_at, kept_at, result_at, bytes;
};

/// The most taps along a row.
inline constexpr std::int64_t kMostBandTaps = 16;

/// Bands [begin, end).
using BandsFn = void (*)(const BandPlan&, const void* source, void* target, std::int64_t begin, std::int64_t end,
                         char* scratch);

/// Functions, and the most lanes of their vectors.
struct Bands {
  BandsFn function;  // null where there is none
  BandsFn joined;    // for rows that are joined
  BandsFn dilated;   // maxima of dilated windows
  std::int64_t lanes;
  std::size_t lane;  // bytes of one
};

/// `target` indexes Highway's dispatch tables.
Bands bands_of(std::size_t target, DType dtype, bool sums);

}  // namespace cenote::simd
