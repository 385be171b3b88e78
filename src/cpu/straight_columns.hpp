// Maxima, averages and sums of columns of many channels, each output straight from its taps: what the kernels need besides pointers.
#pragma once

#include "cpu/rows.hpp"

#include <cstdint>
#include <vector>

namespace cenote::simd {

/// Columns of a window whose sums wait in L1, at most: of longer windows sums are taken in another order.
inline constexpr std::int64_t kMostRingTaps = 8;

/// Outputs beside each other whose windows have as many taps each, equally far apart, and divisors alike.
struct AlikeOutputs {
  std::int64_t first, count;
  std::int64_t column, taps, apart;  // where the first window begins, its columns, and columns from window to window
  double factor;                     // of the divisor, see StraightColumnsPlan
};

/// Channels [channel, end) of some columns of outputs.
struct ColumnTile {
  std::int64_t channel, end;
  std::vector<AlikeOutputs> runs;
};

struct StraightColumnsPlan {
  RowTensor source, target;
  std::int64_t channels;
  std::int64_t step;                   // columns from tap to tap
  std::vector<RowRange> slices, rows;  // of inputs that each slice and row of outputs sees
  std::int64_t band;                   // rows of outputs that are made tile after tile
  std::vector<ColumnTile> tiles;
  // Divisor of an output = the row factors of its slice and its row, where there are any, * that of its column.
  std::vector<double> row_factors[2];
  bool in_lanes;      // long windows are summed up in lanes, see LaneSums
  bool streams;       // the target is written around the caches where it begins with a line: then all its columns do
  std::size_t bytes;  // of scratch: the sums of a window's columns, where windows are taken some rows at a time

  // Of work: one after the other the tiles of each band, bands, slices of outputs, batch entries. Where windows share rows, a unit has all tiles of its band.
  std::int64_t tiles_apart;  // tiles.size() where tiles are units of their own, else 1
  std::int64_t bands() const { return (static_cast<std::int64_t>(rows.size()) + band - 1) / band; }
  std::int64_t units(std::int64_t batch) const {
    return batch * static_cast<std::int64_t>(slices.size()) * bands() * tiles_apart;
  }
};

using StraightColumnsFn = void (*)(const StraightColumnsPlan&, const RowPointers&, std::int64_t begin, std::int64_t end,
                                   char* scratch);

/// Null where there is none for the element type and instruction set.
StraightColumnsFn max_of_columns(std::size_t target, DType dtype);
StraightColumnsFn sum_of_columns(std::size_t target, DType dtype);

}  // namespace cenote::simd
