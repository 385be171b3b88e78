// Maxima, averages and sums of columns of many channels, each output straight from its taps: what the kernels need besides pointers.
#pragma once

#include "cpu/rows/rows.hpp"

#include <cstdint>
#include <vector>

namespace cenote::simd {

/// Columns of a window whose sums wait in L1, at most: of longer windows sums are taken in another order.
inline constexpr std::int64_t kMostRingTaps = 8;

/// Outputs beside each other whose windows have as many taps each, equally far apart, and divisors alike.
struct AlikeOutputs {
  std::int64_t first, count;
  std::int64_t column, taps, apart;  // where the first window begins, its columns, and columns from window to window
  std::int64_t skipped;              // columns cut off in front
  double factor;                     // of the divisor, see StraightColumnsPlan
};

/// Channels [channel, end) of some columns of outputs.
struct ColumnTile {
  std::int64_t channel, end;
  std::vector<AlikeOutputs> runs;
};

/// The index of the first tap of a run of outputs, and the differences to others. Unsigned: what is behind the last may be beyond 2^31.
struct RunCodes {
  std::uint32_t first, slice, row, tap, apart;
};

/// What indices are: positions in the plane, or taps of the whole window.
struct ColumnCodeRule {
  bool flat;
  std::int64_t height, width;  // of the plane
  std::int64_t kernel;         // columns of the whole window, 0 where it is as large as what is seen of it
  std::int64_t step;           // from tap to tap

  RunCodes of(const RowRange& slices, const RowRange& rows, const AlikeOutputs& run) const {
    auto code = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
    if (flat)
      return {code((slices.first * height + rows.first) * width + run.column), code(slices.step * height * width),
              code(rows.step * width), code(step), code(run.apart)};
    const std::int64_t columns = kernel == 0 ? run.taps : kernel;
    return {code((slices.skipped * rows.whole + rows.skipped) * columns + run.skipped), code(rows.whole * columns),
            code(columns), 1, 0};
  }
};

struct StraightColumnsPlan {
  RowTensor source, target, indices;
  ColumnCodeRule codes;
  std::int64_t index_bytes;  // of one
  std::int64_t channels;
  std::int64_t step;                   // columns from tap to tap
  std::vector<RowRange> slices, rows;  // of inputs that each slice and row of outputs sees
  std::int64_t band;                   // rows of outputs that are made tile after tile
  std::vector<ColumnTile> tiles;
  // Divisor of an output = the row factors of its slice and its row, where there are any, * that of its column.
  std::vector<double> row_factors[2];
  float whole;         // Lp, sums of squares: taps of a window that nothing cuts off; divisors are those of each
  bool in_lanes;       // long windows are summed up in lanes, see LaneSums
  std::int64_t ahead;  // elements of a row from what is read next to what is asked for early, of maxima
  bool streams;        // the target is written around the caches where it begins with a line: then all its columns do
  // Source rows that maxima with indices ask for early, as in RowPlan.
  std::int64_t fetch_ahead, fetch_rows, fetch_pitch, fetch_depth_pitch;
  std::size_t bytes;  // of scratch: the sums of a window's columns, where windows are taken some rows at a time

  // Of work: one after the other the tiles of each band, bands, slices of outputs, batch entries. Where windows share rows, a unit has all tiles of its band.
  std::int64_t tiles_apart;  // tiles.size() where tiles are units of their own, else 1
  std::int64_t bands() const { return ceil_div(static_cast<std::int64_t>(rows.size()), band); }
  std::int64_t units(std::int64_t batch) const {
    return batch * static_cast<std::int64_t>(slices.size()) * bands() * tiles_apart;
  }
};

using StraightColumnsFn = void (*)(const StraightColumnsPlan&, const RowPointers&, std::int64_t begin, std::int64_t end,
                                   char* scratch);

/// Null where there is none for the element type and instruction set.
StraightColumnsFn max_of_columns(std::size_t target, DType dtype);
StraightColumnsFn indexed_max_of_columns(std::size_t target, DType dtype);  // indices of 1, 4 or 8 bytes
StraightColumnsFn sum_of_columns(std::size_t target, DType dtype);
StraightColumnsFn norm_of_columns(std::size_t target, DType dtype);  // of norm 2

}  // namespace cenote::simd
