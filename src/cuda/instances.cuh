// The table of device functions of one element type.
#pragma once

#include "cuda/instances_backward.cuh"
#include "cuda/instances_forward.cuh"

namespace cenote::gpu {

template <class T>
struct Instances {
  using Forward = ForwardInstances<T>;
  using Backward = BackwardInstances<T>;

  static constexpr Kernels table{
      .lanes = Element<T>::kLanes,
      .fold_windows = Forward::windows,
      .fold_streams = Forward::streams,
      .fold_stream_parts = Forward::stream_parts,
      .fold_direct = Forward::directly,
      .fold_tile_windows = Forward::tile_windows,
      .fold_row_windows = Forward::row_windows,
      .spread_row_windows = Backward::row_window_spreads,
      .fold_channel_rows = Forward::channel_rows,
      .spread_channel_rows = Backward::channel_row_spreads,
      .fold_down = Forward::down,
      .fold_few = Forward::few,
      .fold_deep = Forward::deep_maxima,
      .fold_packed_maxima = Forward::packed_maxima,
      .fold_packed_pairs = Forward::packed_pairs,
      .spread_packed_pairs = Backward::packed_pair_spreads,
      .slide_down = Forward::slides,
      .slide_lanes = Forward::lane_slides,
      .slide_planes = Forward::plane_slides,
      .fold_rows = Forward::rows,
      .fold_tiles = Forward::tiles,
      .fold_staged = Forward::staged,
      .fold_planes = Forward::planes,
      .sum_planes = Forward::plane_sums,
      .average_adaptive = Forward::adaptive_averages,
      .spread_adaptive = Backward::adaptive_spreads,
      .average_adaptive_planes = Forward::adaptive_plane_averages,
      .spread_adaptive_planes = Backward::adaptive_plane_spreads,
      .fold_turned = Forward::turned,
      .fold_bands = Forward::bands,
      .fold_lines = Forward::lines,
      .fold_quads = Forward::quads,
      .fold_panes = Forward::panes,
      .slide_along = Forward::slides_along,
      .gather_windows = Backward::gather,
      .gather_direct = Backward::direct_gathers,
      .gather_sums = Backward::sum_gathers,
      .gather_tile_windows = Backward::tile_windows,
      .gather_cells = Backward::cells,
      .gather_down = Backward::down_gathers,
      .gather_few = Backward::few_gathers,
      .gather_columns = Backward::column_gathers,
      .gather_slices = Backward::slice_gathers,
      .gather_staged = Backward::staged_gathers,
      .gather_staged_channels = Backward::staged_channel_gathers,
      .spread_down = Backward::down_spreads,
      .spread_apart = Backward::apart_spreads,
      .spread_runs = Backward::run_spreads,
      .spread_windows = Backward::window_spreads,
      .spread_planes = Backward::plane_spreads,
      .gather_rows = Backward::aligned_gathers,
      .spread_norms = Backward::norm_spreads,
      .gather_norms = Backward::norm_gathers,
      .gather_tiles = Backward::tile_gathers,
      .spread_tiles = Backward::spread,
      .gather_tile_cells = Backward::tile_cells,
      .unpool_windows = Backward::unpool_in_windows,
      .unpool_ranges = Backward::unpool_anywhere,
      .take_at_indices = Backward::take,
      .take_from_planes = Backward::take_dense,
      .add_in_order = Backward::ordered,
      .add_for_winners = Backward::winners,
      .add_in_turn = Backward::turns,
  };
};

}  // namespace cenote::gpu
