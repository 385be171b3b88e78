// How pools of long windows one apart are cut into strips for fold_quads and fold_panes.
#include "cuda/tiling.hpp"

#include <cmath>

namespace cenote::gpu {
namespace {

// Shared memory of a multiprocessor of a large GPU.
constexpr std::int64_t kSharedBytes = 227 << 10;

/// How many strips `height` rows of outputs are cut into where each also walks through the `overlap` rows it shares with the next, for
/// `across` strips beside each other of which a large GPU runs `at_once` at a time: few strips walk through less, as long as the last
/// round of them is full.
std::int64_t count_strips(std::int64_t height, std::int64_t overlap, std::int64_t across, std::int64_t at_once) {
  std::int64_t best = 1;
  double best_cost = 0;
  for (std::int64_t strips = 1; strips <= smaller(larger(ceil_div(height, overlap + 1), 1), 4096); ++strips) {
    const double rounds = static_cast<double>(across * strips) / static_cast<double>(at_once);
    const double full = std::ceil(rounds);
    // A round that is not full is over sooner, but not by as much.
    const double cost = (full + rounds) * static_cast<double>(ceil_div(height, strips) + overlap);
    if (best_cost == 0 || cost < 0.98 * best_cost) best_cost = cost, best = strips;
  }
  return best;
}

}  // namespace

bool cut_quads(Launch& launch, const Problem& p) {
  const Axis &h = p.axis[1], &w = p.axis[2];
  const bool extreme = p.reduction == Reduction::max || p.reduction == Reduction::min;
  const auto element = static_cast<std::int64_t>(size_of(p.dtype));
  const std::int64_t value = extreme ? element : larger(element, 4), code = p.with_indices ? 4 : 0;
  const std::int64_t columns = larger(w.input, w.output) / 4, planes = p.batch * p.channels;
  constexpr std::int64_t kLanes = 32, kWarps = kQuadBlock / 32;
  std::int64_t lanes = kLanes, groups = 1, before = 0, useful = columns, segments = 1;
  if (columns < kLanes) {  // a lane stays free: it holds what lies outside
    lanes = columns;
    groups = larger((kLanes - 1) / columns, 1);
  } else {
    before = ceil_div(w.pad_begin, 4);
    useful = kLanes - before - larger(floor_div(w.kernel + 2 - w.pad_begin, 4), 0);
    if (useful < kLanes / 2) return false;
    segments = ceil_div(w.output / 4, useful);
  }
  const std::int64_t row = kLanes * 4, kept_at = kQuadAhead * row * element,
                     codes_at = kept_at + h.kernel * row * value;
  const std::int64_t warp_bytes = codes_at + h.kernel * row * code;
  if (kWarps * warp_bytes > (48 << 10)) return false;
  const std::int64_t warps = ceil_div(planes * segments, groups);
  // Their registers leave room for no more blocks than these.
  const std::int64_t blocks_at_once = smaller(kSharedBytes / (kWarps * warp_bytes + 1024), p.with_indices ? 8 : 11);
  std::int64_t strips = count_strips(h.output, h.kernel - 1, warps, 132 * kWarps * larger(blocks_at_once, 1));
  const std::int64_t rows = ceil_div(h.output, strips);
  strips = ceil_div(h.output, rows);
  const std::int64_t total = planes * segments * strips;
  if (total > INT32_MAX / 2) return false;
  Quads& quads = launch.narrow.quads;
  auto narrow = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
  quads.lanes = Divisor<std::int32_t>(lanes);
  quads.groups = narrow(groups);
  quads.before = narrow(before);
  quads.useful = narrow(useful);
  quads.segments = Divisor<std::int32_t>(segments);
  quads.planes = Divisor<std::int32_t>(planes);
  quads.channels = Divisor<std::int32_t>(p.channels);
  quads.rows = narrow(rows);
  quads.total = narrow(total);
  quads.warp_bytes = narrow(warp_bytes);
  quads.kept_at = narrow(kept_at);
  quads.codes_at = narrow(codes_at);
  launch.block = kQuadBlock;
  launch.tiles = ceil_div(ceil_div(total, groups), kWarps);
  launch.shared_bytes = static_cast<std::size_t>(kWarps * warp_bytes);
  if (!p.with_indices) {
    // Where all blocks run in a few rounds, no more of them at a time than make the last round as full as the others.
    const std::int64_t each = ceil_div(launch.tiles, 132),
                       most = smaller(kSharedBytes / (kWarps * warp_bytes + 1024), 16);
    const std::int64_t rounds = ceil_div(each, larger(most, 1));
    if (rounds <= 3) {
      const std::int64_t even = kSharedBytes / ceil_div(each, rounds) - 1024;
      launch.shared_bytes = static_cast<std::size_t>(larger(kWarps * warp_bytes, smaller(even, 47 << 10)));
    }
  }
  return true;
}

bool cut_panes(Launch& launch, const Problem& p, int lanes) {
  const Axis &h = p.axis[1], &w = p.axis[2];
  const bool extreme = p.reduction == Reduction::max || p.reduction == Reduction::min;
  const auto element = static_cast<std::int64_t>(size_of(p.dtype));
  const std::int64_t value = extreme ? element : larger(element, 4), code = p.with_indices ? 4 : 0;
  // Columns of 128 bytes of channels, or of all there are.
  const std::int64_t groups = smaller(p.channels / lanes, 128 / (lanes * element));
  const std::int64_t width = larger(w.input, w.output);
  const bool whole = width * groups <= kMostPaneThreads;
  const std::int64_t slots = h.kernel + 4;  // a block of rows, and two rows of columns and of fours
  const std::int64_t run = w.kernel < 8 ? 4 : 8, most_bytes = p.with_indices ? kMostRegionBytes : kMostPaneBytes;
  std::int64_t columns = 0, useful = 0, threads = 0, values_at = 0, codes_at = 0, runs = 0, line_step = 0, bytes = 0;
  auto cut = [&](std::int64_t all_columns, std::int64_t handed) {
    columns = all_columns;
    useful = whole ? columns : columns - (w.kernel - 1);
    threads = columns * groups;
    values_at = 4 * threads * lanes * element;
    codes_at = ceil_div(values_at + slots * threads * lanes * value, 16) * 16;  // four codes at a time
    bytes = codes_at + slots * threads * lanes * code;
    // Down first: a block of rows, and those that are handed over.
    runs = ceil_div(useful, run);
    const std::int64_t last = runs * run + w.kernel - 2;
    line_step = (last + last / run + 1) * groups;
    const std::int64_t down_bytes = (h.kernel * threads + handed * line_step) * lanes * value;
    if (!p.with_indices) bytes = extreme ? larger(bytes, down_bytes) : down_bytes;
    return 2 * useful >= columns && bytes <= most_bytes;
  };
  const std::int64_t all_columns = whole ? width : kMostPaneThreads / groups;
  // Many rows at a time keep more threads busy, as long as that takes no place from other blocks.
  std::int64_t handed = 4;
  if (!cut(all_columns, handed)) return false;
  const std::int64_t blocks_at_best = kSharedBytes / (bytes + 1024);
  const std::int64_t fewest = run == 4 ? all_columns + 1 : whole ? all_columns : all_columns - 4;
  for (std::int64_t fewer = all_columns; fewer >= fewest && handed == 4; --fewer) {
    if (cut(fewer, 8) && kSharedBytes / (bytes + 1024) >= blocks_at_best) handed = 8;
  }
  if (handed == 4) cut(all_columns, handed);
  const std::int64_t blocks_c = ceil_div(p.channels / lanes, groups), blocks_x = ceil_div(w.output, useful);
  const std::int64_t blocks = blocks_c * blocks_x * p.batch;
  // The kernel is compiled for two blocks of 256 threads on a multiprocessor.
  const std::int64_t blocks_at_once = smaller(kSharedBytes / (bytes + 1024), 512 / smaller(threads, 512));
  std::int64_t strips = count_strips(h.output, h.kernel - 1, blocks, 132 * larger(blocks_at_once, 1));
  const std::int64_t rows = ceil_div(h.output, strips);
  strips = ceil_div(h.output, rows);
  Panes& panes = launch.narrow.panes;
  auto narrow = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
  panes.groups = Divisor<std::int32_t>(groups);
  panes.columns = narrow(columns);
  panes.useful = narrow(useful);
  panes.whole = whole;
  panes.blocks_c = Divisor<std::int32_t>(blocks_c);
  panes.blocks_x = Divisor<std::int32_t>(blocks_x);
  panes.batch = Divisor<std::int32_t>(p.batch);
  panes.channels = narrow(p.channels);
  panes.rows = narrow(rows);
  panes.values_at = narrow(values_at);
  panes.codes_at = narrow(codes_at);
  panes.run = narrow(run);
  panes.runs = Divisor<std::int32_t>(runs);
  panes.line_step = narrow(line_step);
  panes.handed = narrow(handed);
  launch.block = static_cast<int>(threads);
  launch.shared_bytes = static_cast<std::size_t>(bytes);
  launch.most_shared_bytes = kMostPaneBytes;
  launch.tiles = blocks * strips;
  // Read once, and little: see leaves_first.
  constexpr std::int64_t kMostBytes = std::int64_t{300} << 20;
  launch.narrow.leaves_first = whole && strips == 1 && p.batch * p.channels * h.input * w.input * element <= kMostBytes;
  return launch.tiles <= INT32_MAX;
}

}  // namespace cenote::gpu
