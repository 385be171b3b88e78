// How dense planar problems are cut into tiles for shared memory.
#pragma once

#include "cuda/launch.hpp"

namespace cenote::gpu {

/// Tiles of this many source bytes keep up to eight or ten blocks on a multiprocessor, one part of them waiting for memory while the other
/// folds; wide rows and deep windows may take up to what a block gets without asking.
inline constexpr std::int64_t kTileBytes = 24 << 10;

/// Whether the tensor is dense with the last axis fastest, for these sizes.
bool is_dense(const Layout& layout, const Problem& p, bool large);
/// The same with channels last.
bool is_dense_by_channels(const Layout& layout, const Problem& p, bool large);

/// A pool along one axis alone, written with rows of one element, so that tiles may cut it.
Problem upright(const Problem& p);

/// Cuts a forward's outputs so that the source of a tile fits, into `wanted_bytes` where rows are not too wide. False: no tile does.
bool tile_forward(Launch& launch, const Problem& p, const Function& function, int group,
                  std::int64_t wanted_bytes = kTileBytes);

/// How many of `planes` a block should take, at most `most`: those that leave the fewest of its threads idle in their last round, where
/// each plane has so many `items` for them.
std::int64_t planes_together(std::int64_t planes, std::int64_t most, std::int64_t items, std::int64_t threads);

/// Blocks of so many threads that take `together` whole planes each, and keep `bytes` of them in shared memory.
void group_planes(Launch& launch, const Problem& p, std::int64_t together, int threads, std::int64_t bytes);

/// Groups planes for slide_planes. False: they are too large.
bool cut_slides(Launch& launch, const Problem& p, const Function& function);

/// Cuts a gather's elements so that the outputs that see a tile fit, with positions where `selected`.
bool tile_gather(Launch& launch, const Problem& p, const Function& function, bool selected, int kept_bytes);

/// The least step of at least `size` that is `step` modulo `unit`: what is aligned in memory then is so in shared memory.
inline std::int64_t aligned_step(std::int64_t size, std::int64_t step, std::int64_t unit) {
  return size + ((step - size) % unit + unit) % unit;
}

/// The size of parts of no more than `most`, all alike.
inline std::int64_t part_of(std::int64_t size, std::int64_t most) {
  return ceil_div(size, ceil_div(size, smaller(most, size)));
}

/// Cuts outputs into tiles for fold_tile_windows. False: rows are too wide.
bool cut_windows(Launch& launch, const Problem& p);
/// Cuts elements into tiles for gather_tile_windows, where so many windows have an element in common along height and width. False: none
/// fits.
bool cut_seers(Launch& launch, const Problem& p, std::int64_t common_rows, std::int64_t common_columns);

/// The same for gather_norms, with the elements themselves.
bool cut_norms(Launch& launch, const Problem& p);

/// Cuts a gather's elements into tiles of cells for gather_staged. False: none fits.
bool cut_cells(Launch& launch, const Problem& p, const Function& function);
/// The same for gather_staged_channels.
bool cut_cell_channels(Launch& launch, const Problem& p, const Function& function, bool deep);

/// Cuts outputs into bands for fold_bands. False: rows are too wide.
bool cut_bands(Launch& launch, const Problem& p, const Function& function);

/// What the regions of a block may take: three blocks on a multiprocessor.
inline constexpr int kMostRegionBytes = 72 << 10;

/// Cuts outputs into regions for fold_lines, whose threads make `run` results each; `together`: of so many neighbouring channels, or
/// 1. False: no region fits.
bool cut_regions(Launch& launch, const Problem& p, int run, int together);

/// Cuts outputs into strips for fold_quads. False: windows are too long.
bool cut_quads(Launch& launch, const Problem& p);
/// What the panes of a block may take: two blocks on a multiprocessor of a large GPU, and what others have.
inline constexpr int kMostPaneBytes = 96 << 10;

/// The same for fold_panes, whose threads take `lanes` channels each.
bool cut_panes(Launch& launch, const Problem& p, int lanes);

/// What the parts of a block take where there is a choice: three blocks on a multiprocessor.
inline constexpr int kWantedPartBytes = 56 << 10;

/// Groups planes for add_in_turn. False: they are too few, or too large.
bool cut_turns(Launch& launch, const Problem& p, bool channels_fastest);

/// Cuts planes into parts for add_for_winners. False: no part fits.
bool cut_parts(Launch& launch, const Problem& p, bool channels_fastest);

}  // namespace cenote::gpu
