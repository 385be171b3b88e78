// How dense planar tensors are cut into tiles for fold_tile_windows, gather_tile_windows and gather_norms.
#include "cuda/tiling.hpp"

namespace cenote::gpu {
namespace {

// Shared memory of a block, forward and backward: eight and more on a multiprocessor of a large GPU. Wide rows may take more (measured on
// an H200).
constexpr std::int64_t kSourceBytes = 16 << 10, kSeerBytes = 20 << 10, kMostBytes = 40 << 10;

/// Results of a tile.
struct Shape {
  std::int64_t planes, rows, columns;

  /// Threads beside each other, and rows that a block takes at a time.
  std::int64_t threads_across() const { return smaller(columns, kTileBlock); }
  std::int64_t rows_at_once() const { return kTileBlock / threads_across(); }
};

/// What is cut: planes, which are slices or, where no window leaves its row, rows.
struct Planes {
  Planes(const Problem& p, bool backward) : Planes(p, backward, !is_identity(p.axis[1])) {}
  Planes(const Problem& p, bool backward, bool slices)
      : tall(slices),
        count(p.batch * p.channels * p.axis[0].input * (tall ? 1 : p.axis[1].input)),
        height(!tall      ? 1
               : backward ? p.axis[1].input
                          : p.axis[1].output),
        width(backward ? p.axis[2].input : p.axis[2].output) {}
  bool tall;
  std::int64_t count, height, width;
};

bool fill(Launch& launch, const Problem& p, const Planes& planes, const Shape& s, std::int64_t bytes) {
  auto divisor = [](std::int64_t value) { return Divisor<std::int32_t>(value); };
  auto narrow = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  const std::int64_t across = ceil_div(planes.width, s.columns), down = ceil_div(planes.height, s.rows);
  Cells& cells = launch.narrow.cells;
  cells.planes = narrow(s.planes);
  cells.rows = narrow(s.rows);
  cells.columns = narrow(s.columns);
  cells.tiles_x = divisor(across);
  cells.tiles_y = divisor(down);
  cells.cells_x = divisor(s.threads_across());
  // Strips of rows, so that the fewest follow each other in a thread; one more for the beginning of each.
  std::int64_t strip = s.rows, fewest = INT64_MAX;
  for (std::int64_t tried = s.rows; tried >= 1; --tried) {
    const std::int64_t rounds = ceil_div(s.planes * ceil_div(s.rows, tried), s.rows_at_once());
    if (rounds * (tried + 1) < fewest) fewest = rounds * (tried + 1), strip = tried;
  }
  launch.narrow.strip = narrow(strip);
  cells.cells_y = divisor(ceil_div(s.rows, strip));
  cells.cells_at_once = narrow(s.rows_at_once());
  cells.total_planes = narrow(planes.count);
  cells.rows_of_entry = divisor(p.axis[0].input * p.axis[1].input);
  launch.tiles = ceil_div(planes.count, s.planes) * down * across;
  launch.block = kTileBlock;
  launch.shared_bytes = static_cast<std::size_t>(bytes);
  return planes.count <= INT32_MAX / 2 && launch.tiles <= INT32_MAX;
}

/// Elements that the windows of so many neighbouring outputs reach, at most.
std::int64_t reach_of(const Axis& axis, std::int64_t outputs) {
  const std::int64_t reach = axis.rule == WindowRule::adaptive
                                 ? ceil_div(outputs * axis.input, axis.output) + 1
                                 : (outputs - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1;
  return outputs >= axis.output ? axis.input : smaller(reach, axis.input);
}

/// Outputs that may see so many neighbouring elements, at most, where `common` windows have one in common.
std::int64_t seers_of(const Axis& axis, std::int64_t elements, std::int64_t common) {
  if (axis.rule == WindowRule::adaptive) return (elements - 1) * axis.output / axis.input + 1 + common;
  return ceil_div(elements - 1, axis.stride) + 1 + (common - 1) * axis.dilation;
}

}  // namespace

bool cut_windows(Launch& launch, const Problem& p) {
  const Axis &h = p.axis[1], &w = p.axis[2];
  const Planes planes(p, false);
  const auto element = static_cast<std::int64_t>(size_of(p.dtype));
  const std::int64_t row_bytes = w.input * element, plane_bytes = row_bytes * (planes.tall ? h.input : 1);
  if (plane_bytes > INT32_MAX / 2) return false;  // places are counted in bytes
  Shape s{1, planes.height, planes.width};
  std::int64_t bytes = plane_bytes;
  if (bytes <= kSourceBytes) {
    s.planes = planes_together(planes.count, kSourceBytes / bytes, planes.height, s.rows_at_once());
    bytes *= s.planes;
  } else if (!planes.tall) {
    std::int64_t tiles = ceil_div(bytes, kSourceBytes);
    while (reach_of(w, ceil_div(w.output, tiles)) * element > kSourceBytes && tiles < w.output) ++tiles;
    s.columns = ceil_div(w.output, tiles);
    bytes = reach_of(w, s.columns) * element;
  } else {
    auto most_rows = [&](std::int64_t limit) {
      std::int64_t rows = 1;
      while (rows < h.output && reach_of(h, rows + 1) * row_bytes <= limit) ++rows;
      return rows;
    };
    s.rows = most_rows(kSourceBytes);
    if (s.rows < 4) s.rows = most_rows(kMostBytes);  // so few that much would be read again for the next
    s.rows = part_of(h.output, s.rows);
    bytes = reach_of(h, s.rows) * row_bytes;
  }
  return bytes <= kMostBytes && fill(launch, p, planes, s, bytes + 32);
}

bool cut_seers(Launch& launch, const Problem& p, std::int64_t common_rows, std::int64_t common_columns) {
  const Axis &h = p.axis[1], &w = p.axis[2];
  const Planes planes(p, true);
  const auto element = static_cast<std::int64_t>(size_of(p.dtype)),
             index = p.with_indices ? static_cast<std::int64_t>(size_of(p.index_dtype)) : 0;
  const std::int64_t kept = p.with_indices ? 8 : 4;
  struct Seers {
    std::int64_t rows, pieces, sent_row, sent_plane, bytes;
  };
  auto seers_for = [&](const Shape& s) {
    const std::int64_t columns = seers_of(w, s.columns, common_columns);
    Seers seers{};
    seers.rows = planes.tall ? seers_of(h, s.rows, common_rows) : 1;
    seers.pieces = ceil_div(columns + kStagedPiece - 1, kStagedPiece);
    // Rows whose pieces do not meet.
    seers.sent_row = aligned_step(columns + 2 * (kStagedPiece - 1), w.output, kStagedPiece);
    seers.sent_plane =
        aligned_step(seers.rows * seers.sent_row, planes.tall ? h.output * w.output : w.output, kStagedPiece);
    seers.bytes = (s.planes * seers.sent_plane + 2 * kStagedPiece) * kept;
    return seers;
  };
  // About what a tile costs: the bytes that cross to and from a multiprocessor, and those that could while it issues instructions.
  auto cost_of = [&](const Shape& s, const Seers& seers) {
    const std::int64_t rows = s.planes * seers.rows, stored = s.planes * s.rows * s.columns * element;
    const std::int64_t loaded = rows * (seers.pieces * kStagedPiece * (element + index) + 32);
    const std::int64_t staging =
        ceil_div(seers.pieces, kTileBlock) * ceil_div(rows, kTileBlock / smaller(seers.pieces, kTileBlock));
    const std::int64_t gathering =
        ceil_div(s.columns, s.threads_across()) * ceil_div(s.planes * s.rows, s.rows_at_once());
    const std::int64_t instructions = 200 + 100 * staging + (20 + common_rows * (4 + 3 * common_columns)) * gathering;
    const std::int64_t tiles =
        ceil_div(planes.count, s.planes) * ceil_div(planes.height, s.rows) * ceil_div(planes.width, s.columns);
    return static_cast<double>(tiles) *
           (static_cast<double>(loaded + stored) + 4.25 * kTileBlock / 32 * static_cast<double>(instructions));
  };
  Shape best{};
  double best_cost = 0;
  auto consider = [&](std::int64_t most_rows, std::int64_t most_columns) {
    Shape s{1, part_of(planes.height, most_rows), part_of(planes.width, most_columns)};
    const bool whole = s.rows == planes.height && s.columns == planes.width;
    for (; s.planes <= (whole ? larger(planes.count / (132 * 8), 1) : 1); ++s.planes) {
      const Seers seers = seers_for(s);
      if (seers.bytes > kSeerBytes) break;
      const double cost = cost_of(s, seers);
      if (best_cost == 0 || cost < best_cost) best_cost = cost, best = s;
    }
  };
  for (const std::int64_t columns : {128, 256, 512, 1024, 2048, 4096, 8192}) {
    for (const std::int64_t rows : {1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128}) consider(rows, columns);
  }
  if (best_cost == 0) return false;
  const Seers seers = seers_for(best);
  if (!fill(launch, p, planes, best, seers.bytes)) return false;
  Cells& cells = launch.narrow.cells;
  const std::int64_t pieces = smaller(seers.pieces, kTileBlock);
  cells.pieces = Divisor<std::int32_t>(pieces);
  cells.rows_at_once = static_cast<std::int32_t>(kTileBlock / pieces);
  cells.source_y = Divisor<std::int32_t>(seers.rows);
  cells.sent_row = static_cast<std::int32_t>(seers.sent_row);
  cells.sent_plane = static_cast<std::int32_t>(seers.sent_plane);
  cells.seen = static_cast<std::int32_t>(common_rows);
  return true;
}

bool cut_norms(Launch& launch, const Problem& p) {
  const Axis &h = p.axis[1], &w = p.axis[2];
  const Planes planes(p, true, true);
  const auto element = static_cast<std::int64_t>(size_of(p.dtype)), kept = larger(element, std::int64_t{4});
  // Outputs that see so many neighbouring elements, and elements that they reach, at most.
  auto outputs_of = [](const Axis& axis, std::int64_t elements) {
    return smaller((elements + axis.kernel - 2) / axis.stride + 1, axis.output);
  };
  auto reach_of_seers = [](const Axis& axis, std::int64_t elements) {
    return smaller(elements + 2 * (axis.kernel - 1), axis.input);
  };
  auto source_bytes = [&](const Shape& s) {
    const std::int64_t bytes = s.planes * reach_of_seers(h, s.rows) * reach_of_seers(w, s.columns) * element;
    return ceil_div(bytes, 16) * 16 + 32;
  };
  auto bytes_of = [&](const Shape& s) {
    return source_bytes(s) + s.planes * outputs_of(h, s.rows) * outputs_of(w, s.columns) * kept;
  };
  Shape s{1, planes.height, planes.width};
  if (const std::int64_t most = kSeerBytes / bytes_of(s); most > 0) {
    s.planes = planes_together(planes.count, most, planes.height, s.rows_at_once());
  } else {
    auto cut = [&](std::int64_t& size, std::int64_t whole, std::int64_t limit) {
      size = whole;
      for (std::int64_t parts = 2; size > 1 && bytes_of(s) > limit; ++parts) size = ceil_div(whole, parts);
    };
    cut(s.rows, planes.height, kSeerBytes);
    if (s.rows < 4 && !is_identity(h)) cut(s.rows, planes.height, kMostBytes);  // fewer would read much again
    if (is_identity(h)) cut(s.columns, planes.width, kSeerBytes);
  }
  const std::int64_t bytes = bytes_of(s);
  if (bytes > kMostBytes || planes.height * planes.width > INT32_MAX / 16 || !fill(launch, p, planes, s, bytes))
    return false;
  Cells& cells = launch.narrow.cells;
  const std::int64_t out_rows = outputs_of(h, s.rows), out_columns = outputs_of(w, s.columns);
  const std::int64_t across = smaller(out_columns, kTileBlock);
  cells.results_at = static_cast<std::int32_t>(source_bytes(s));
  cells.pieces = Divisor<std::int32_t>(across);
  cells.rows_at_once = static_cast<std::int32_t>(kTileBlock / across);
  cells.source_y = Divisor<std::int32_t>(out_rows);
  cells.sent_row = static_cast<std::int32_t>(out_columns);
  cells.sent_plane = static_cast<std::int32_t>(out_rows * out_columns);
  return true;
}

}  // namespace cenote::gpu
