// geometry/axis.hpp for the device: the same windows and covers in the narrowest integers that hold them, divisions by
// multiplication. Int is std::int32_t wherever one plane fits in 31 bits, std::int64_t otherwise. Tested equal to axis.hpp.
#pragma once

#include "cuda/numbers.cuh"
#include "geometry/problem.hpp"

namespace cenote::gpu {

template <class Int>
struct DeviceAxis {
  Int input, output, kernel, stride, dilation, pad_begin, pad_end;
  WindowRule rule;
  Divisor<Int> by_input, by_output, by_stride, by_dilation;

  DeviceAxis() = default;
  explicit DeviceAxis(const Axis& axis)
      : input(static_cast<Int>(axis.input)),
        output(static_cast<Int>(axis.output)),
        kernel(static_cast<Int>(axis.kernel)),
        stride(static_cast<Int>(axis.stride)),
        dilation(static_cast<Int>(axis.dilation)),
        pad_begin(static_cast<Int>(axis.pad_begin)),
        pad_end(static_cast<Int>(axis.pad_end)),
        rule(axis.rule),
        by_input(larger(axis.input, 1)),
        by_output(larger(axis.output, 1)),
        by_stride(axis.stride),
        by_dilation(axis.dilation) {}
};

/// One window along one axis: tap t is at start + t * dilation; those in [low, high) lie inside the input.
template <class Int>
struct Taps {
  Int start, low, high, whole, padded;
  CENOTE_HOST_DEVICE Int count() const { return high - low; }
};

template <class Int>
CENOTE_HOST_DEVICE Int least(Int a, Int b) {
  return a < b ? a : b;
}
template <class Int>
CENOTE_HOST_DEVICE Int most(Int a, Int b) {
  return a > b ? a : b;
}

template <class Int>
CENOTE_HOST_DEVICE Int ceil_quotient(Int n, const Divisor<Int>& by) {
  return by.quotient(n + by.value - 1);
}

template <class Int>
CENOTE_HOST_DEVICE Int adaptive_first(const DeviceAxis<Int>& axis, Int o) {
  return axis.by_output.quotient(o * axis.input);
}
template <class Int>
CENOTE_HOST_DEVICE Int adaptive_last(const DeviceAxis<Int>& axis, Int o) {
  return 1 + axis.by_output.quotient((o + 1) * axis.input - 1);
}

template <class Int>
CENOTE_HOST_DEVICE Taps<Int> taps_at(const DeviceAxis<Int>& axis, Int start) {
  Taps<Int> taps;
  taps.start = start;
  taps.whole = axis.kernel;
  if (axis.dilation == 1) {
    taps.low = start < 0 ? least<Int>(-start, axis.kernel) : 0;
    taps.high = most<Int>(taps.low, least<Int>(axis.kernel, axis.input - start));
    taps.padded = least<Int>(axis.kernel, axis.input + axis.pad_end - start);
  } else {
    taps.low = start < 0 ? least<Int>(ceil_quotient<Int>(-start, axis.by_dilation), axis.kernel) : 0;
    const Int high =
        start >= axis.input ? 0 : least<Int>(axis.kernel, ceil_quotient<Int>(axis.input - start, axis.by_dilation));
    taps.high = most<Int>(taps.low, high);
    const Int room = axis.input + axis.pad_end - start;
    taps.padded = room <= 0 ? 0 : least<Int>(axis.kernel, ceil_quotient<Int>(room, axis.by_dilation));
  }
  return taps;
}

/// Not for fractional axes.
template <class Int>
CENOTE_HOST_DEVICE Taps<Int> taps_of(const DeviceAxis<Int>& axis, Int o) {
  if (axis.rule == WindowRule::adaptive) {
    const Int start = adaptive_first(axis, o);
    const Int whole = adaptive_last(axis, o) - start;
    return {start, 0, whole, whole, whole};
  }
  return taps_at<Int>(axis, o * axis.stride - axis.pad_begin);
}

/// The outputs [first, last] that may see input i; tap_of says with which tap, or -1.
template <class Int>
struct Reach {
  Int first, last;
};

template <class Int>
CENOTE_HOST_DEVICE Reach<Int> cover_of(const DeviceAxis<Int>& axis, Int i) {
  if (axis.rule == WindowRule::adaptive) {
    Int first = axis.by_input.quotient(i * axis.output);
    while (first > 0 && adaptive_last<Int>(axis, first - 1) > i) --first;
    Int last = first;
    while (last + 1 < axis.output && adaptive_first<Int>(axis, last + 1) <= i) ++last;
    return {first, last};
  }
  const Int shifted = i + axis.pad_begin;
  const Int reach = (axis.kernel - 1) * axis.dilation;
  const Int first = shifted > reach ? ceil_quotient<Int>(shifted - reach, axis.by_stride) : 0;
  return {first, least<Int>(axis.output - 1, axis.by_stride.quotient(shifted))};
}

template <class Int>
CENOTE_HOST_DEVICE Int tap_of(const DeviceAxis<Int>& axis, Int o, Int i) {
  if (axis.rule == WindowRule::adaptive) return i - adaptive_first(axis, o);
  const Int distance = i + axis.pad_begin - o * axis.stride;
  if (axis.dilation == 1) return distance;
  const Int tap = axis.by_dilation.quotient(distance);
  return tap * axis.dilation == distance ? tap : Int{-1};
}

/// Where the window of output o starts for one random sample. fractional_starts in geometry/problem.hpp, one entry of it.
template <class Real, class Int>
CENOTE_HOST_DEVICE Int fractional_start(const DeviceAxis<Int>& axis, Int o, Real sample) {
  const Int last = axis.input - axis.kernel;
  if (o + 1 >= axis.output) return last;
  const Real alpha = static_cast<Real>(last) / static_cast<Real>(axis.output - 1);
  const Int start = static_cast<Int>((static_cast<Real>(o) + sample) * alpha) - static_cast<Int>(sample * alpha);
  return least<Int>(start, last);
}

/// Element strides. n may need 64 bits in any tensor; the others only where Int has them.
template <class Int>
struct Steps {
  std::int64_t n, c;
  Int d, h, w;

  Steps() = default;
  explicit Steps(const Layout& layout)
      : n(layout.n),
        c(layout.c),
        d(static_cast<Int>(layout.d)),
        h(static_cast<Int>(layout.h)),
        w(static_cast<Int>(layout.w)) {}
  CENOTE_HOST_DEVICE Int at(Int z, Int y, Int x) const { return z * d + y * h + x * w; }
  /// Where the plane of one channel of one batch entry begins. Where Int has 32 bits, so has c.
  CENOTE_HOST_DEVICE std::int64_t plane(Int batch_entry, Int channel) const {
    return batch_entry * n + static_cast<std::int64_t>(channel) * static_cast<Int>(c);
  }
};

/// What one thread works on.
template <class Int>
struct Place {
  Int n, c, z, y, x;
};

/// The grid of threads: which size varies fastest follows the layout, so that neighbouring threads touch neighbouring memory.
template <class Int>
struct Grid {
  Int threads;
  bool channels_fastest;
  bool flat, single;  // depth 1; batch 1: divisions that need not be made
  Divisor<Int> channel_groups, depth, height, width;
  std::int32_t lanes;  // channels in a group

  CENOTE_HOST_DEVICE Place<Int> place(Int thread) const {
    Int rest = thread, group = 0;
    Place<Int> at;
    if (channels_fastest) group = take(rest, channel_groups);
    at.x = take(rest, width);
    at.y = take(rest, height);
    at.z = flat ? Int{0} : take(rest, depth);
    if (!channels_fastest) {
      group = single ? rest : take(rest, channel_groups);
      if (single) rest = 0;
    }
    at.c = group * lanes;
    at.n = rest;
    return at;
  }
};

/// How the results of dense planar tensors are cut into blocks that keep their source in shared memory: ranges of rows, ranges of
/// slices, or several whole planes.
template <class Int>
struct Tiling {
  Int planes, slices, rows;                // results in a tile
  Divisor<Int> tiles_y, tiles_z;           // tiles in a plane
  Divisor<Int> items_x, items_y, items_z;  // work items in a tile along each axis
  Int items;                               // work items in a tile
  Divisor<Int> source_y, source_z;         // gathers: rows and slices of outputs kept for a tile
  Int total_planes;
  Int pitch;       // bytes between the source's slices in shared memory, where they are apart
  Int codes_at;    // bytes before the second array in shared memory
  Int results_at;  // and before the one between it and the first, where there are three
};

/// Tiles of cells of elements, and the outputs kept in shared memory for one.
struct Cells {
  std::int32_t planes, slices, rows, columns;       // of a tile; rows and columns of cells
  Divisor<std::int32_t> tiles_x, tiles_y, tiles_z;  // tiles in a plane
  Divisor<std::int32_t> cells_x, cells_y;           // cells in a tile
  Divisor<std::int32_t> pieces, source_y;           // of a row of outputs, and rows of outputs kept for a tile
  std::int32_t total_planes;
  std::int32_t results_at;  // bytes before the second array in shared memory
  // Planar: rows of outputs, of cells and of elements that a block takes at a time; steps in shared memory.
  std::int32_t rows_at_once, cells_at_once, runs_at_once;
  std::int32_t sent_row, sent_plane, result_row, result_plane;
  bool joined;                       // a tile's elements follow each other in memory
  Divisor<std::int32_t> run_pieces;  // otherwise: pieces of 16 bytes of a row of elements
  // Channels last: blocks of channels, threads to those of one position, and positions of a tile.
  Divisor<std::int32_t> channel_blocks, groups;
  std::int32_t channels, staged, cells;
  std::int32_t seen;  // rows of outputs that may see an element, where that is not known when compiled
  Divisor<std::int32_t> rows_of_entry;  // of a channel, where rows are planes
};

/// Regions of outputs and where their source lies in shared memory. Steps in elements.
struct Regions {
  std::int32_t regions;                      // in a block
  std::int32_t rows, columns;                // outputs of a region
  std::int32_t reach_rows;                   // what their windows reach, padding included
  std::int32_t source_rows, source_columns;  // what is kept of it, and what fills the last run
  std::int32_t runs_x, runs_y;               // runs of neighbouring results along a line
  bool runs_of_one;                          // along the height
  Divisor<std::int32_t> tiles_y, tiles_x, channels, channel_groups;
  Divisor<std::int32_t> by_source_rows, by_source_columns, by_lines, by_columns, by_across;
  std::int32_t row_step, folded_row_step;
  std::int32_t folded_at, codes_at;  // bytes before what is folded along the width, and before its codes
  std::int32_t total_regions;        // planar
  bool channels_fastest;             // a block's regions are neighbouring channels of one place
};

/// Blocks of channels and columns.
struct Turned {
  Divisor<std::int32_t> channel_groups, column_groups;
  std::int32_t channels;
};

/// Bands of rows, a group of threads to each.
struct Bands {
  std::int32_t in_block, total;
  Divisor<std::int32_t> lanes, channels;
  std::int32_t rows_at;  // bytes before the second array in shared memory
};

/// Rows of warps whose lanes own four columns each.
struct Quads {
  Divisor<std::int32_t> lanes;  // that own one row, or a segment of it
  std::int32_t groups;          // rows of a warp
  std::int32_t before, useful;  // lanes of a segment that only lend what they own, and those that also make outputs
  Divisor<std::int32_t> segments, planes, channels;
  std::int32_t rows;   // outputs of a strip
  std::int32_t total;  // rows of all warps
  std::int32_t warp_bytes, kept_at, codes_at;
};

/// Blocks of columns of neighbouring channels.
struct Panes {
  Divisor<std::int32_t> groups;                     // of channels: threads to a column
  std::int32_t columns, useful;                     // of a pane, and those that make outputs
  bool whole;                                       // a pane is as wide as the tensors
  Divisor<std::int32_t> blocks_c, blocks_x, batch;  // panes along each
  std::int32_t channels;
  std::int32_t rows;  // outputs of a strip
  std::int32_t values_at, codes_at;
  std::int32_t run;            // outputs beside each other that a thread makes where it walks down first
  Divisor<std::int32_t> runs;  // of a pane
  std::int32_t line_step;      // between rows that are handed over
  std::int32_t handed;         // of those, at a time
};

/// Pieces of rows.
struct Along {
  std::int32_t outputs;  // of a piece
  Divisor<std::int32_t> pieces, channels;
};

/// Parts of planes, and what a block keeps of them in shared memory.
struct Parts {
  std::int32_t rows, columns;               // elements of a part
  Divisor<std::int32_t> planes;             // in a block
  Divisor<std::int32_t> elements, outputs;  // places for one plane's in the arrays
  Divisor<std::int32_t> by_columns, out_columns;
  Divisor<std::int32_t> across, down, channels, groups;
  Divisor<std::int32_t> by_kernel_w;
  std::int32_t out_rows, out_rows_at_once, rows_at_once;
  std::int32_t total;                                  // planes
  std::int32_t lasts_at, sent_at, chosen_at, list_at;  // bytes before the arrays
  bool channels_fastest;                               // a block's planes are neighbouring channels
};

/// Rows of outputs that follow each other through the whole tensor.
struct Through {
  Divisor<std::int32_t> plane;  // elements of one
};

/// The plan's half of a launch; the other half is the pointers of one run. What most kernels read comes first: a line of these
/// parameters that is read for the first time costs a small kernel part of its time.
template <class Int>
struct Params {
  Grid<Int> grid;
  Int strip;            // rows that one thread walks down
  bool paired_columns;  // a cell's row of grad_input is aligned: one store
  IndexKind index_kind;
  DType index_dtype;
  bool average, count_include_pad, absolute;
  bool uniform_divisor;   // every window has the same one:
  bool exact_reciprocal;  // a power of two, so that multiplying by its reciprocal rounds nothing
  bool ordinary_divisor;  // the same one for every window, and neither tiny nor huge
  bool exact_scale;       // lp: every window is whole and has a power of two taps, so that averaging and scaling cancel
  bool plain_windows;     // flat indices, sliding windows without dilation along height and width
  bool aligned;           // for kernels that also run where pointers are not: 16 bytes at once
  float divisor_f32, reciprocal_f32;
  DeviceAxis<Int> axis[3];
  Steps<Int> input, output, indices, grad_output, grad_input;
  double divisor_f64, reciprocal_f64;
  double norm_type;
  std::int64_t divisor_override;
  std::int64_t samples_n, samples_c, samples_axis;
  std::int32_t dims;
  Int range;  // elements of a plane in one block's table: scatters
  Int ranges;
  Int rectangle_width;       // columns of a range that is a rectangle of one slice; 0: elements that follow each other
  Divisor<Int> small_plane;  // elements of the small side of a plane
  std::int32_t gradient_bytes, index_bytes;  // what keep_small_operands keeps
  // Adaptive windows of at most 32 rows and columns, a bit to each: whether the window that was the first to see the one before does not
  // see it, and whether two windows do.
  std::uint32_t rows_begin, rows_shared, columns_begin, columns_shared;
  union {  // how the kernel at hand cuts its work
    Tiling<Int> tiling;
    Regions regions;
    Bands bands;
    Turned turned;
    Quads quads;
    Panes panes;
    Along along;
    Parts parts;
    Cells cells;
    Through through;
    std::int32_t across;  // columns that a thread of a direct kernel takes, a warp's width apart
  };
  // What is read need not stay in the L2 cache. Behind all others: where they lie changes what the compiler makes of other kernels.
  bool leaves_first;
};

struct Pointers {
  const void* input;
  void* output;
  void* indices;
  const void* saved_indices;
  const void* random_samples;
  const void* grad_output;
  void* grad_input;
  unsigned* fault;      // mapped host memory: what a later call reports
  unsigned* irregular;  // device memory: unpooling met an index that its window does not explain
};

template <class Real, class Int>
CENOTE_HOST_DEVICE Real uniform_divisor_of(const Params<Int>& p) {
  if constexpr (sizeof(Real) == 4) {
    return p.divisor_f32;
  } else {
    return p.divisor_f64;
  }
}
template <class Real, class Int>
CENOTE_HOST_DEVICE Real reciprocal_of(const Params<Int>& p) {
  if constexpr (sizeof(Real) == 4) {
    return p.reciprocal_f32;
  } else {
    return p.reciprocal_f64;
  }
}

/// Threads of a block, wherever nothing else is said.
inline constexpr int kBlock = 256;

/// Which of the grid's threads this one is.
template <class Int = std::int32_t, int kThreads = kBlock>
__device__ inline Int thread_of_grid() {
  return static_cast<Int>(blockIdx.x) * kThreads + static_cast<Int>(threadIdx.x);
}

/// The first thing that every kernel does. Blocks of the next kernel may take their places as soon as all of this one's have theirs,
/// and wait here until it is done: a launch costs no time between the two.
__device__ inline void wait_for_grid_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

enum : unsigned { kFaultIndex = 1, kFaultSample = 2 };

__device__ inline void report(unsigned* fault, unsigned what) { *static_cast<volatile unsigned*>(fault) = what; }

template <class Int>
CENOTE_HOST_DEVICE std::int64_t divisor_of(const Params<Int>& p, const Taps<Int>& d, const Taps<Int>& h,
                                           const Taps<Int>& w) {
  if (!p.average) return 1;
  if (p.divisor_override != 0) return p.divisor_override;
  if (p.count_include_pad) return d.padded * h.padded * w.padded;
  return d.count() * h.count() * w.count();
}

}  // namespace cenote::gpu
