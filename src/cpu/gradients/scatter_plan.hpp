// Gradients go where indices point. They are summed up in place, or in scratch that rolls along grad_input: what
// the windows of the outputs still to come cannot reach any more is written, once. Threads share grad_input in bands.
#pragma once

#include "geometry/problem.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cenote::simd {

/// n / divisor for n below 2^31, as a multiplication.
struct Divider {
  std::uint64_t magic = 0;
  std::uint32_t divisor = 1;
  int shift = 0;

  Divider() = default;
  explicit Divider(std::int64_t by)
      : divisor(static_cast<std::uint32_t>(by)),
        shift(31 + static_cast<int>(std::bit_width(static_cast<std::uint64_t>(by - 1)))) {
    magic = (std::uint64_t{1} << shift) / divisor + 1;
  }
  std::uint32_t operator()(std::uint32_t n) const { return static_cast<std::uint32_t>(n * magic >> shift); }
};

/// No tap of this output's window, nor of any later one's, lies before. (Clipped windows' first taps need not ascend where they are
/// dilated.)
inline std::int64_t earliest_tap(const Axis& axis, std::int64_t o) {
  return axis.rule == WindowRule::adaptive ? adaptive_start(axis, o) : larger(0, o * axis.stride - axis.pad_begin);
}

/// All taps of this output's window, and of every earlier one's, lie before.
inline std::int64_t latest_end(const Axis& axis, std::int64_t o) {
  if (axis.rule == WindowRule::adaptive) return adaptive_end(axis, o);
  return std::clamp<std::int64_t>(o * axis.stride - axis.pad_begin + (axis.kernel - 1) * axis.dilation + 1, 0,
                                  axis.input);
}

/// The taps cut off in front of a clipped window and the last one left, counted from there, as bytes. In one without taps, none is.
inline std::int64_t skipped_byte(const Window& w) { return w.count == 0 ? UINT8_MAX : w.skipped; }
inline std::int64_t last_byte(const Window& w) { return w.count == 0 ? 0 : w.count - 1; }

/// A tap is divided by the size of a window with a multiplication by this and a shift: exact for up to kTabledTaps taps and sizes of up to a byte, since
/// 4096 * 255 < 2^20.
inline constexpr int kTapShift = 20;
inline std::uint32_t tap_magic(std::uint32_t size) { return (1U << kTapShift) / size + 1; }

/// Slices of grad_input's first axis, and the outputs along that axis whose windows reach into them.
struct Band {
  std::int64_t first, slices;
  std::int64_t output_first, output_end;
};

/// Made once per plan, read-only in run().
struct ScatterPlan {
  Problem problem;
  std::int64_t inner;   // elements of a column: 1 where planar, else all channels
  std::int64_t chunk;   // of which a unit takes this many
  std::int64_t chunks;  // per column
  std::int64_t outer, outer_minor_count;
  std::int64_t
      slabs;  // 1, or the depth where no window is deeper than a slice: each slice is then scattered on its own
  int axis;   // which is cut into bands
  std::int64_t slice;  // positions per slice of that axis
  std::vector<Band> bands;
  std::int64_t capacity;  // slices that scratch holds at once
  std::int64_t segment;   // outputs located in one go
  bool streams;           // grad_input is written around the caches
  bool in_place;          // sums are taken in grad_input itself instead of scratch
  bool compares;      // columns of many channels and windows of few taps: each tap is compared with a vector of indices
  bool by_taps;       // columns of many channels: see tap_columns-inl.h
  bool wide_windows;  // many outputs in a row have one winner
  bool expanded;      // columns of so few channels that whole rows are located in one go
  std::vector<std::uint32_t> first, taps, skipped,
      channel;  // of the windows of each output column, or (expanded) element
  // Small planes are located whole: where the rows of a window begin (empty otherwise); `first` then has an entry per output of
  // the plane, and `taps` as many for each row of the windows.
  std::vector<std::uint32_t> rows;
  std::int64_t group;  // planes located whole that are added to in turns, one after the other in memory
  std::int64_t
      tabled;  // of which so many are in the tables, one after the other; `channel` is where each output's plane begins
  std::int64_t lag;  // outputs that one of them is ahead of the next
  // Where indices are taps: for each output column (or output, where planes are located whole) where its unclipped window begins, which taps are cut off in
  // front of it, and the last one left behind them, depth, height and column in a byte each.
  std::vector<std::uint32_t> origins, skips, limits;
  // Where windows are all alike: how far each tap lies from the unclipped window's first, and its place in the window; behind them one that is in no window.
  std::vector<std::uint32_t> tap_offsets, tap_places;
  // Where they are not: how wide each window is, and (where planes are located whole) how high; what a tap is multiplied by to be divided by those.
  std::vector<std::uint32_t> wides, wide_magics, highs, high_magics;
  // In planes located whole, the element where an output's unclipped window begins, and for windows of few taps a bit for each
  // that its clipping leaves.
  std::vector<std::uint32_t> corners, left;
  // `skips`, `limits`, and how wide windows are, in two bytes, where windows have no depth and all that is known of their taps fits in 16 bits; else empty.
  std::vector<std::uint16_t> flat_skips, flat_limits, flat_wides, flat_magics;
  Divider width, height;  // of grad_input
  std::uint32_t step[3];
  bool dilated;
  bool linear;  // positions of grad_input lie at one step: `position`, in elements
  std::int64_t position;

  // Scratch, bytes from the start of a slot.
  std::size_t spots_at, values_at, bytes;

  /// Each output's channels are located on their own.
  bool column_by_column() const { return inner > 1 && !expanded; }
  /// Elements of a column in the tables.
  std::int64_t wide() const { return expanded ? inner : 1; }

  std::int64_t units() const {
    return ceil_div(outer, group) * chunks * slabs * static_cast<std::int64_t>(bands.size());
  }
};

/// False where the tensors or sizes are beyond it. `lane`: bytes of the compute type.
bool make_scatter_plan(const Described& described, std::size_t lane, ScatterPlan& plan);

inline std::int64_t plane_outputs(const Problem& p) { return p.axis[0].output * p.axis[1].output * p.axis[2].output; }

/// A unit of work: a band of one plane, or of some channels of one batch entry.
struct ScatterUnit {
  const Band& band;
  std::int64_t major, minor, channel;  // batch entry, (planar) channel, first channel of the chunk
  std::int64_t slab;                   // depth, where each slice is on its own
  std::int64_t channels;               // of the chunk
  std::int64_t planes = 1;             // one after the other in memory
  std::int64_t outputs_first[3], outputs_end[3];

  ScatterUnit(const ScatterPlan& plan, std::int64_t unit);
};

/// A stretch of indices to be turned into elements of the band.
struct LocateJob {
  const void* indices;
  DType dtype;
  std::int64_t count;
  const std::uint32_t *first, *taps, *skipped;    // of each output's window along the row, or (one_column) of all
  const std::uint32_t *origins, *skips, *limits;  // the same where taps have tables
  const std::uint32_t *wides, *wide_magics, *highs, *high_magics;
  const std::uint32_t *corners, *left;
  const std::uint16_t *flat_skips, *flat_limits, *flat_wides, *flat_magics;
  const std::uint32_t* channel;  // of each output; null where planar or one_column
  bool one_column;               // the outputs are the channels of one column
  Window depth, height;
  std::int64_t base;        // of the band, as a flat position
  std::uint32_t positions;  // of the band
  std::uint32_t step;       // elements from one position to the next
  std::uint32_t* spots;     // out; of "none" and of what lies outside the band one of the kSpare elements behind it,
                            // or kNowhere where the plan works in place
};

/// What the plan's tables say of the outputs from `x` on.
void set_tables(const ScatterPlan& plan, std::int64_t x, LocateJob& job);

/// The line of the plane, counted from its first, where the unclipped windows of the job's outputs begin.
inline std::int64_t first_line(const Problem& p, const LocateJob& job) {
  const std::int64_t slice = job.depth.first - job.depth.skipped * job.depth.step;
  return slice * p.axis[1].input + job.height.first - job.height.skipped * job.height.step;
}

/// Numbers that whole vectors may touch behind a table.
inline constexpr std::int64_t kTableSlack = 16;
inline constexpr std::uint32_t kNowhere = 0xffffffffU;
inline constexpr std::int64_t kSpare = 16;

/// False when some index is neither "none" nor a tap of its window.
using LocateFn = bool (*)(const ScatterPlan&, const LocateJob&);
LocateFn locate(std::size_t target);

}  // namespace cenote::simd
