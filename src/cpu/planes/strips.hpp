// Small square windows over planar rows, forward: what their kernels need besides pointers.
#pragma once

#include "cpu/slice_divisors.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cenote::simd {

/// Made once per plan, read-only in run(). Planes lie `*_pitch` elements apart and are dense. Every window has a tap inside.
struct StripPlan {
  std::int64_t planes, source_pitch, target_pitch, index_pitch;
  std::int64_t extent;          // elements of the source from its first to its last
  std::int64_t reach;           // of a slice, or those that are folded together, that are read, whole vectors counted
  std::int64_t row_reach;       // of a row
  std::int64_t ahead;           // elements from a band of rows to the one that is fetched meanwhile; 0: nothing is
  std::int64_t heights, width;  // of the input
  std::int64_t slices, rows, columns;    // of the output
  std::int64_t taps, stride, left, top;  // of height and width alike, and their padding in front
  std::int64_t step, row_step;           // columns and rows from tap to tap
  std::int64_t band;                     // output rows that are folded strip by strip
  std::int64_t parts = 1;                // units of a plane: parts of the rows of its slices
  bool keys;                             // maxima of halves: taken of integers, see keys-inl.h
  bool padded;                           // windows reach beyond their row
  bool staged;   // results are put together in scratch, but for those of planes folded in one go
  bool streams;  // results are written around the caches
  bool flat;     // indices are positions
  DType index_dtype;

  std::int64_t
      narrow_planes;  // maxima with indices: planes whose codes there is room for; 0 where they do not follow each other

  std::vector<RowRange> depth_rows;  // the slices of each output slice
  std::int64_t together;             // slices of a window that are folded at once
  std::int64_t kept;                 // slices that are kept, 0 where each output slice is folded from one alone
  std::int64_t slice_pitch;          // elements from one of those to the next
  std::vector<std::int32_t>
      first_codes;  // maxima with padding in front: the index of each window's first tap, of a plane

  SliceDivisors divisors;  // of sums and averages
  SlicePowers powers;      // Lp: f32 alone

  // Scratch, bytes from the start of a slot.
  std::size_t packed_at, slices_at, slice_codes_at, result_at, codes_at, bytes;
};

/// Parts of planes [begin, end).
using StripsFn = void (*)(const StripPlan&, const RowPointers&, std::int64_t begin, std::int64_t end, char* scratch);

}  // namespace cenote::simd
