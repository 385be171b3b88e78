// What the CPU kernels work on: rows. A pool is a set of output rows, each folded from a few input rows, first down the rows
// into a buffer that stays in L1, then along it. Planar tensors have rows of W elements (one plane at a time), channels-last
// ones rows of W*C (one batch entry at a time); everything else is packed into such rows on the way in and out.
#pragma once

#include "cpu/vectors/unroll.hpp"
#include "geometry/problem.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace cenote::simd {

/// Where the rows of one tensor lie. Strides in elements.
struct RowTensor {
  std::int64_t outer_major, outer_minor;  // of batch and (planar) channel
  std::int64_t depth, height;
  std::int64_t width, channel;  // inside a row
  bool dense;                   // a row's elements are consecutive
};

/// How the columns of a row are folded.
enum class Columns : std::uint8_t {
  consecutive,  // neighbouring outputs see neighbouring columns (stride 1, any inner): plain shifted loads
  strided,      // planar, stride 2, 3 or 4: deinterleaving loads
  phased,       // planar, backward of those: one output per phase, interleaving stores
  per_channel,  // inner fills vectors: each column folded on its own, windows from a table
  gathered,     // anything else: positions from a table
  spanned,      // planar, few long windows: vectors along each window
};
const char* name_of(Columns columns);

/// What is carried beside a value to tell where it came from: its flat position, its tap in the whole window, or (where no index
/// is asked for) any number that ascends in row-major order.
enum class Codes : std::uint8_t { flat, taps, ascending };

/// The window of each output column (or, in a backward, the outputs that see each input column).
struct ColumnTable {
  std::vector<std::int32_t> first, count;  // clipped
  std::vector<std::int32_t> skipped;       // taps cut off in front
  std::int64_t step = 1;
  std::int64_t most = 0;  // largest count
};

/// Per-element tables in the width of the compute type's lanes.
template <class Lane>
struct LaneTable {
  std::vector<Lane> position;      // gathered: the first tap of each target element, in elements of the buffered row
  std::vector<Lane> count;         // gathered, where windows differ in taps
  std::vector<Lane> column_codes;  // flat indices: the column of each source element
};

/// A stretch of target columns, short enough for its buffers to stay in L1, with the source columns it is folded from.
struct Tile {
  std::int64_t target_first, target_columns;
  std::int64_t source_first, source_columns;
  std::int64_t pad_left, pad_right;  // columns of identity around the buffered source columns
  std::int64_t first_unit;           // phased: (target_first + pad_begin) / stride
  std::int64_t column_shift;         // phased: columns of the interleaved row before the first real one
  std::int64_t owned;                // backward of maxima in columns: outputs whose windows begin here
};

/// The source rows of one target row along one axis: input rows of a window, or output rows that see an input.
struct RowRange {
  std::int64_t first, count, step, skipped, whole;
  bool operator==(const RowRange&) const = default;
};

/// Everything a row kernel needs besides pointers: made once per plan, read-only in run().
struct RowPlan {
  Problem problem;  // adaptive axes whose windows are all alike appear as sliding ones
  int power_kind;   // lp: how x^p is computed, see power-inl.h
  int root_kind;    // lp: the same for ^(1/p), and for ^(p-1) and ^(1/p-1) in the backward
  int slope_kind;
  int root_slope_kind;
  bool transposed;                 // rows of outputs are folded into rows of inputs: the backward of sums
  std::int64_t outer;              // planes (planar) or batch entries (channels-last)
  std::int64_t outer_minor_count;  // channels when planar, else 1
  std::int64_t inner;              // elements per column
  RowTensor source, target, indices;
  RowTensor input;  // lp backward: the forward's input, row by row like the target

  std::array<std::vector<RowRange>, 2> source_rows;  // of each target depth and height; empty where there are too many

  Columns columns;
  std::vector<Tile> tiles;
  ColumnTable table;
  LaneTable<std::int32_t> lanes32;  // for compute types of 4 bytes
  LaneTable<std::int64_t> lanes64;  // for compute types of 8 bytes
  bool direct;  // each output straight from its taps: columns of many channels, few taps or none shared
  std::vector<std::int32_t>
      alike;  // direct: from each output column on, how many have windows and divisors alike, equally far apart
  std::int64_t kept_columns;   // the same, sums of windows of many rows: columns of which sums are kept
  bool stencil;                // the same for planar rows
  std::int64_t source_extent;  // elements from the tensor's first to its last; 0 where strides are negative
  bool streams;                // the target is written around the caches
  bool
      whole_lines;  // columns of the target, and of 8-byte indices that are written, are whole cache lines if the first is
  bool along_first;  // tiles follow each other along a row, not down it
  // Source rows that are fetched early, see Ahead: bytes from a target row's first source row to a later one's (0: none), new rows
  // per target row, bytes from row to row and from depth to depth.
  std::int64_t fetch_ahead, fetch_rows, fetch_pitch, fetch_depth_pitch;
  bool sums_in_lanes;   // long windows are summed in the order of `spanned`, whatever the mode
  bool even;            // every gathered window has table.most taps
  bool may_be_empty;    // some window has no tap inside the input
  bool uneven_windows;  // window-kind indices of adaptive windows that differ in size

  // Averages: divisor of an output = row factor * column factor, the former a product over depth and height.
  std::array<std::vector<double>, 2> row_factors;  // empty where the axis is too long
  std::vector<double> column_factor;               // per column; empty where uniform
  double uniform_factor;                           // used when column_factor is empty
  double power_factor;                             // lp: taps of the full kernel
  bool factor_is_power_of_two;  // uniform, and every row's product with it too: multiply instead of dividing

  // Backward of maxima: the outputs that see each input along depth, height and (columns) width, the windows along the width, and
  // the output rows that are kept, see gather-inl.h and gather_columns-inl.h.
  std::array<std::vector<Cover>, 3> covers;
  std::vector<Window> windows;
  std::int64_t slot_heights;
  std::array<std::vector<std::uint8_t>, 2> slot_of;  // where an output's row is kept
  std::size_t slots_at, slot_pitch;

  Codes code_kind;
  std::int64_t widest;  // most taps of any window along the row

  // Scratch, bytes from the start of a slot.
  std::size_t buffer_at, codes_at, result_at, result_codes_at, packed_at, staged_at, bytes;
  std::size_t packed_pitch;  // bytes per packed row
  bool tall;                 // rows are folded in blocks
  std::size_t tall_at, tall_pitch;

  std::int64_t units() const;  // target rows times tiles
};

/// The source rows of a target row along depth (0) or height (1).
RowRange source_rows_of(const Problem& problem, int axis, std::int64_t target, bool transposed);

/// What the row kernels are asked to do with a problem.
enum class RowTask : std::uint8_t { fold, sum_backward, max_backward };

/// `lane`: bytes of the compute type. False where the rows are beyond what the kernels can number.
/// `inner`: elements per column, 0 to choose by the layout.
bool make_row_plan(const Problem& problem, RowTask task, std::size_t lane, std::size_t vector_bytes, RowPlan& plan,
                   std::int64_t inner = 0);

/// Whether columns of the forward are written around the caches: of calls beyond them, and where the result is small beside an input that may stay there.
bool streams_columns(const RowPlan& plan, std::int64_t bytes);

/// The most source rows of an output row that is folded straight from its taps.
inline constexpr int kDirectRows = 64;

/// The most output rows that are kept where gradients are gathered.
inline constexpr int kMostSlots = 32;

/// Rows folded in one go; more are folded block after block, in order.
inline constexpr int kRowBlock = 16;

/// Tensors of one run.
struct RowPointers {
  const void* source;
  void* target;
  void* indices;
  const void* input;  // lp backward: the forward's input
};

/// The units of work of a plan, one after the other: a target row of one tile. Heights vary fastest, or tiles, so that neighbouring units
/// read neighbouring rows.
struct UnitCursor {
  const RowPlan& plan;
  std::int64_t depths, heights;
  std::int64_t major, minor, depth, tile_index, height;  // major, minor: batch entry and (planar) channel

  UnitCursor(const RowPlan& p, std::int64_t unit);

  const Tile& tile() const { return plan.tiles[static_cast<std::size_t>(tile_index)]; }

  void next();

  /// Offset in elements of column `w` of row (d, h) of the current plane or batch entry.
  std::int64_t offset(const RowTensor& t, std::int64_t d, std::int64_t h, std::int64_t w) const {
    return major * t.outer_major + minor * t.outer_minor + d * t.depth + h * t.height + w * t.width;
  }
};

/// Copies a row of any strides into consecutive elements, and back. Not inlined: rows seldom need it, and there are hundreds of ways to fold them.
template <class T>
CENOTE_NOINLINE inline void pack_row(const RowTensor& t, std::int64_t columns, std::int64_t inner, const T* from,
                                     T* to) {
  if (t.dense) {
    std::memcpy(to, from, static_cast<std::size_t>(columns * inner) * sizeof(T));
    return;
  }
  for (std::int64_t w = 0; w < columns; ++w) {
    const T* pixel = from + w * t.width;
    for (std::int64_t c = 0; c < inner; ++c) *to++ = pixel[c * t.channel];
  }
}
template <class T>
CENOTE_NOINLINE inline void unpack_row(const RowTensor& t, std::int64_t columns, std::int64_t inner, const T* from,
                                       T* to) {
  for (std::int64_t w = 0; w < columns; ++w) {
    T* pixel = to + w * t.width;
    for (std::int64_t c = 0; c < inner; ++c) pixel[c * t.channel] = *from++;
  }
}

}  // namespace cenote::simd
