// The device functions that exist, by element type: one translation unit each, found through a table, so that only backend.cu
// knows when to use which.
#pragma once

#include "cuda/adaptive.cuh"
#include "cuda/bands.cuh"
#include "cuda/bytes.cuh"
#include "cuda/channel_rows.cuh"
#include "cuda/direct.cuh"
#include "cuda/direct_backward.cuh"
#include "cuda/few_backward.cuh"
#include "cuda/fold_deep.cuh"
#include "cuda/fold_planes.cuh"
#include "cuda/gather_columns.cuh"
#include "cuda/gather_down.cuh"
#include "cuda/gather_rows.cuh"
#include "cuda/gather_slices.cuh"
#include "cuda/gather_staged.cuh"
#include "cuda/gather_staged_channels.cuh"
#include "cuda/gather_sums.cuh"
#include "cuda/gather_tiles.cuh"
#include "cuda/halves.cuh"
#include "cuda/long_windows.cuh"
#include "cuda/norm_tiles.cuh"
#include "cuda/norms.cuh"
#include "cuda/packed_pairs.cuh"
#include "cuda/pairs.cuh"
#include "cuda/panes.cuh"
#include "cuda/quads.cuh"
#include "cuda/row_windows.cuh"
#include "cuda/rows.cuh"
#include "cuda/slide_along.cuh"
#include "cuda/slide_down.cuh"
#include "cuda/slide_planes.cuh"
#include "cuda/spread_apart.cuh"
#include "cuda/spread_down.cuh"
#include "cuda/spread_windows.cuh"
#include "cuda/streams.cuh"
#include "cuda/tile_windows.cuh"
#include "cuda/tile_windows_backward.cuh"
#include "cuda/turned.cuh"
#include "cuda/turns.cuh"

namespace cenote::gpu {

/// A __global__ function and how much of the result one of its threads makes; null where there is none.
struct Function {
  const void* entry = nullptr;
  int rows = 1;     // outputs (or elements) below each other
  int columns = 1;  // and beside each other
  int lanes = 1;    // for how many channels
};

/// What one thread of a walk makes at every step: an element, channels beside each other (or half as many), or columns.
enum class Way : std::uint8_t { single, channels, half_channels, columns };

struct Kernels {
  int lanes;  // channels in 16 bytes
  /// Any windows. `wide`: 64-bit positions, single channels only.
  Function (*fold_windows)(bool vector, Fold fold, bool indices, bool wide);
  /// The same for windows of many taps, with many loads under way.
  Function (*fold_streams)(bool vector, Fold fold, bool indices);
  /// The same for whole windows side by side, by `parts` (8, 16, 32) threads to each.
  Function (*fold_stream_parts)(bool vector, Fold fold, bool indices, int parts);
  /// Windows of at most `height` x `width` taps that leave no slice, straight from memory, by threads that walk down.
  Function (*fold_direct)(bool vector, Fold fold, bool indices, int height, int width);
  /// The same for dense planar tensors, through shared memory; `height` 1: windows that leave no row, of any `width`.
  Function (*fold_tile_windows)(Fold fold, bool indices, int height, int width);
  /// Windows of `width` taps along rows, dense planar tensors, `padded`: also those that hang over (sums of two or three taps); and the
  /// backward of those that share nothing; `filled`: and leave nothing of their rows out.
  Function (*fold_row_windows)(Fold fold, bool indices, int width, bool padded);
  Function (*spread_row_windows)(Share share, DType index, bool filled);
  /// Sums of windows of `height` x `width` taps that share nothing, dense tensors, channels last; and their backward, of any windows.
  Function (*fold_channel_rows)(int height, int width);
  Function (*spread_channel_rows)();
  /// Square windows of `kernel` taps, no dilation, by threads that walk down.
  Function (*fold_down)(Way way, Fold fold, bool indices, int kernel, int stride, int padding, bool deep);
  /// The same for few outputs; these take Few alone.
  Function (*fold_few)(Fold fold, bool indices, int kernel, bool channels_fastest);
  /// Maxima of 3x3x3 windows one or two apart.
  Function (*fold_deep)(Way way, int padding, int stride);
  /// Maxima of 3x3 windows two apart, padding 1, planar tensors with aligned rows of elements of one or two bytes, several to a
  /// register; `columns` outputs beside each other: 16 bytes of them, or half as many, which is what there is with indices.
  Function (*fold_packed_maxima)(bool indices, int columns);
  /// Windows of 2x2 side by side, dense planar tensors, and their backward.
  Function (*fold_packed_pairs)(Fold fold, bool indices);
  Function (*spread_packed_pairs)(Share share, DType index);
  /// Sums of 3x3 windows one apart.
  Function (*slide_down)(Way way, bool planar);
  /// The same for planar tensors, as many outputs as inputs along the width.
  Function (*slide_lanes)();
  /// Small windows that overlap, small planes of dense planar tensors; `own_divisors`: not all windows have the same.
  Function (*slide_planes)(Fold fold, bool indices, int kernel, int stride, bool own_divisors);
  /// The same for planar tensors with aligned rows; `height` may be 1 where the pool has one axis.
  Function (*fold_rows)(Fold fold, bool indices, int height, int kernel, int stride, int padding);
  /// The same from shared memory, dense planar tensors.
  Function (*fold_tiles)(Fold fold, bool indices, int kernel, int stride);
  /// Any windows from shared memory, `group` (1, 8, 32) threads to each.
  Function (*fold_staged)(Fold fold, bool indices, int group);
  /// Windows that are whole planes of dense planar tensors, `group` (4, 8, 32 to 256) threads to each; `staged`: through shared memory
  /// (4 and 8).
  Function (*fold_planes)(Fold fold, bool indices, int group, bool staged);
  /// Sums of the same for elements of two bytes.
  Function (*sum_planes)();
  /// Averages of adaptive windows of different sizes, and their backward.
  Function (*average_adaptive)(Way way);
  Function (*spread_adaptive)(Way way);
  /// The same for small planes of dense planar tensors.
  Function (*average_adaptive_planes)(int most);
  Function (*spread_adaptive_planes)();
  /// From channels last to planar, any windows; `vector`: several channels to a thread.
  Function (*fold_turned)(bool vector, Fold fold, bool indices);
  /// Windows of several rows, planar tensors with rows of so many columns.
  Function (*fold_bands)(Fold fold, bool indices, int columns);
  /// Long windows along height and width, no dilation; `run` (4, 8, 16) results to a thread.
  Function (*fold_lines)(bool vector, Fold fold, bool indices, int run);
  /// The same for windows one apart, planar tensors with rows aligned by fours. Sums also where pointers are not `aligned`.
  Function (*fold_quads)(Fold fold, bool indices, bool aligned);
  /// The same for neighbouring channels.
  Function (*fold_panes)(Fold fold, bool indices, bool aligned);
  /// Sums of long windows one apart along rows.
  Function (*slide_along)();
  Function (*gather_windows)(bool vector, Share share, bool wide);
  /// Windows that leave no slice, at most `down` x `across` of which have an element in common, by threads that walk down.
  Function (*gather_direct)(bool vector, Share share, DType index, int down, int across);
  /// The same for sums, without dilation; each row of outputs is added up once. `own_divisors`: not all windows have the same.
  Function (*gather_sums)(bool vector, bool own_divisors, int down, int across);
  /// The same where `across` of them have a column in common, and any number a row, dense planar tensors, through shared memory.
  Function (*gather_tile_windows)(Share share, DType index, bool tall, int across);
  /// `taps`: indices of kind window.
  Function (*gather_cells)(bool vector, Share share, bool taps, int kernel, int stride, int phase);
  /// The same by threads that walk down.
  Function (*gather_down)(Way way, Share share, DType index, int kernel, int stride);
  /// The same for few elements; these take Few alone.
  Function (*gather_few)(Share share, DType index, int kernel, int stride, bool channels_fastest);
  /// 3x3 max windows, padding 1, by threads that walk down a few columns: 16 bytes of planar tensors with aligned rows, or two
  /// columns of four 16-bit channels.
  Function (*gather_columns)(Way way, DType index, int stride);
  /// 3x3x3 max windows two apart, padding 1, planar tensors with aligned rows, by threads that walk along the depth.
  Function (*gather_slices)(DType index);
  /// Max windows that overlap, dense planar tensors, through shared memory.
  Function (*gather_staged)(DType index, int kernel, int stride);
  /// The same for neighbouring channels; `deep`: windows that overlap along the depth.
  Function (*gather_staged_channels)(DType index, int kernel, int stride, bool deep);
  /// Windows that overlap little.
  Function (*spread_down)(Way way, Share share);
  /// Windows that do not overlap, dense planar tensors.
  Function (*spread_apart)(Share share, DType index);
  /// Windows that do not overlap, planar tensors with rows of so many columns.
  Function (*spread_runs)(Share share, int columns);
  /// Windows side by side that cover the plane, `depth` x `height` x `width` taps.
  Function (*spread_windows)(Way way, Share share, DType index, int depth, int height, int width);
  /// Windows that are whole planes of dense planar tensors.
  Function (*spread_planes)(Share share);
  /// The same for planar tensors with aligned rows.
  Function (*gather_rows)(Share share, bool taps, int kernel, int stride, int padding);
  /// The backward of lp_pool for windows side by side; by columns: 2x2 windows; `square`: norm 2.
  Function (*spread_norms)(Way way, bool square);
  /// The same for windows that overlap, dense planar tensors, through shared memory.
  Function (*gather_norms)(bool square);
  /// Gathers from shared memory, dense planar tensors; any windows, `rows` 1 or 4.
  Function (*gather_tiles)(Gather gather, int rows);
  /// Windows that do not overlap.
  Function (*spread_tiles)(Gather gather);
  Function (*gather_tile_cells)(Gather gather, int kernel, int stride, int phase);
  Function (*unpool_windows)(bool vector);
  Function (*unpool_ranges)(bool wide);
  Function (*take_at_indices)(bool wide);
  /// The same for dense tensors and flat indices.
  Function (*take_from_planes)();
  Function (*add_in_order)(bool wide);
  /// The same for sliding windows without dilation and depth.
  Function (*add_for_winners)(DType index);
  /// The same for small planes; `planar`: dense planar tensors.
  Function (*add_in_turn)(DType index, bool planar);
};

const Kernels& kernels_f32();
const Kernels& kernels_f64();
const Kernels& kernels_f16();
const Kernels& kernels_bf16();
const Kernels& kernels_i8();
const Kernels& kernels_u8();
const Kernels& kernels_i16();
const Kernels& kernels_i32();
const Kernels& kernels_i64();

}  // namespace cenote::gpu
