// The device functions that exist, by element type: one translation unit each, found through a table, so that only backend.cu
// knows when to use which.
#pragma once

#include "cuda/bands.cuh"
#include "cuda/gather_down.cuh"
#include "cuda/gather_rows.cuh"
#include "cuda/gather_tiles.cuh"
#include "cuda/long_windows.cuh"
#include "cuda/norms.cuh"
#include "cuda/ordered.cuh"
#include "cuda/pairs.cuh"
#include "cuda/rows.cuh"
#include "cuda/spread_down.cuh"
#include "cuda/turned.cuh"

namespace cenote::gpu {

/// A __global__ function and how much of the result one of its threads makes; null where there is none.
struct Function {
  const void* entry = nullptr;
  int rows = 1;     // outputs (or elements) below each other
  int columns = 1;  // and beside each other
  int lanes = 1;    // for how many channels
};

/// What one thread of a walk makes at every step: an element, channels beside each other, or columns.
enum class Way : std::uint8_t { single, channels, columns };

struct Kernels {
  int lanes;  // channels in 16 bytes
  /// Any windows. `wide`: 64-bit positions, single channels only.
  Function (*fold_windows)(bool vector, Fold fold, bool indices, bool wide);
  /// Square windows of `kernel` taps, no dilation, by threads that walk down.
  Function (*fold_down)(Way way, Fold fold, bool indices, int kernel, int stride, int padding, bool deep);
  /// The same for planar tensors with aligned rows; `height` may be 1 where the pool has one axis.
  Function (*fold_rows)(Fold fold, bool indices, int height, int kernel, int stride, int padding);
  /// The same from shared memory, dense planar tensors.
  Function (*fold_tiles)(Fold fold, bool indices, int kernel, int stride);
  /// Any windows from shared memory, `group` (1, 8, 32) threads to each.
  Function (*fold_staged)(Fold fold, bool indices, int group);
  /// From channels last to planar, any windows.
  Function (*fold_turned)(Fold fold, bool indices);
  /// Windows of several rows, planar tensors with rows of so many columns.
  Function (*fold_bands)(Fold fold, bool indices, int columns);
  /// Long windows along height and width, no dilation; `run` (4, 8, 16) results to a thread.
  Function (*fold_lines)(bool vector, Fold fold, bool indices, int run);
  Function (*gather_windows)(bool vector, Share share, bool wide);
  /// `taps`: indices of kind window.
  Function (*gather_cells)(bool vector, Share share, bool taps, int kernel, int stride, int phase);
  /// The same by threads that walk down.
  Function (*gather_down)(Way way, Share share, DType index, int kernel, int stride);
  /// Windows that overlap little.
  Function (*spread_down)(Way way, Share share);
  /// Windows that do not overlap, planar tensors with rows of so many columns.
  Function (*spread_runs)(Share share, int columns);
  /// Windows that are whole planes of dense planar tensors.
  Function (*spread_planes)(Share share);
  /// The same for planar tensors with aligned rows.
  Function (*gather_rows)(Share share, bool taps, int kernel, int stride, int padding);
  /// The backward of lp_pool for windows side by side; `two` taps across, norm 2.
  Function (*spread_norms)(bool two, bool square);
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
  /// The same for sliding windows without dilation and depth; `vector`: outputs in aligned rows.
  Function (*add_by_columns)(bool vector);
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
