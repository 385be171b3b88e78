// Maxima of columns of many channels, several rows of outputs at a time: what the kernels need besides pointers.
#pragma once

#include "cpu/rows/rows.hpp"

#include <cstdint>
#include <vector>

namespace cenote::simd {

/// Rows of outputs that are made at once, at most.
inline constexpr int kColumnRows = 4;
/// Taps of a slice of a window, at most. (Two threads, straight from the taps or row by row and in bands: 6x6/3 over 4 x 96 x 96 x 64 102 us and 74, 6x6/2 215 and 128, (3,12)/(2,6) 77 and 63,
/// 6x6/1 411 and 425; 6x6/3 over 4 x 48 x 48 x 256 91 and 97.)
inline constexpr int kMostColumnTaps = 36;
/// Source rows of a band, at most: it is cut smaller where there would be more.
inline constexpr int kMostColumnRows = 2 * kMostColumnTaps;

struct ColumnBandPlan {
  RowTensor source, target;
  std::int64_t batch, channels;
  std::int64_t depths, rows, columns;  // of outputs
  std::int64_t heights, width;         // of inputs
  std::int64_t kernel, stride, top;    // along the height; rows before the first
  std::int64_t taps, apart, left;      // along the width; columns before the first
  std::int64_t band, bands;            // rows of outputs at once, and how many such bands a slice has
  std::int64_t
      tile;  // columns of outputs whose inputs are asked for together, row after row; 0: those of each by itself
  std::vector<RowRange> slices;  // that each slice of outputs sees
  bool streams;  // the target is written around the caches where it begins with a line: then all its columns do

  std::int64_t units() const { return batch * depths * bands; }
};

using ColumnBandsFn = void (*)(const ColumnBandPlan&, const RowPointers&, std::int64_t begin, std::int64_t end);

/// Null where there is none for the element type and instruction set.
ColumnBandsFn column_bands(std::size_t target, DType dtype);

}  // namespace cenote::simd
