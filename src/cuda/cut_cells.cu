// How backward pools are cut into tiles of cells for gather_staged and gather_staged_channels.
#include "cuda/tiling.hpp"

namespace cenote::gpu {
namespace {

// Shared memory of a block: ten to twelve on a multiprocessor of a large GPU, or what its registers allow.
constexpr std::int64_t kPlanarBytes = 20 << 10, kChannelBytes = 14 << 10;

/// A tile: planes, slices, and cells below and beside each other.
struct Shape {
  std::int64_t planes, slices, rows, columns;
};

/// What tiles of either kind take.
struct Costs {
  const Problem& p;
  std::int64_t cell_rows, cell_columns;
  bool deep;

  std::int64_t element() const { return static_cast<std::int64_t>(size_of(p.dtype)); }
  std::int64_t index() const { return static_cast<std::int64_t>(size_of(p.index_dtype)); }
  std::int64_t depth() const { return deep ? p.axis[0].input : 1; }
  static std::int64_t cells_along(const Axis& axis, std::int64_t size) {
    return ceil_div(axis.input + axis.pad_begin % axis.stride, size);
  }
  std::int64_t height() const { return cells_along(p.axis[1], cell_rows); }
  std::int64_t width() const { return cells_along(p.axis[2], cell_columns); }
  /// Outputs that see so many cells next to each other.
  static std::int64_t seeing(const Axis& axis, std::int64_t cells, std::int64_t size) {
    return cells * size / axis.stride + (axis.kernel - 1) / axis.stride;
  }
  std::int64_t out_rows(const Shape& s) const { return seeing(p.axis[1], s.rows, cell_rows); }
  std::int64_t out_columns(const Shape& s) const { return seeing(p.axis[2], s.columns, cell_columns); }
  std::int64_t out_slices(const Shape& s) const {
    return deep ? (s.slices - 1 + p.axis[0].kernel - 1) / p.axis[0].stride + 1 : 1;
  }
  std::int64_t outputs(const Shape& s) const { return s.planes * out_slices(s) * out_rows(s) * out_columns(s); }
  std::int64_t elements(const Shape& s) const {
    return s.planes * s.slices * s.rows * cell_rows * smaller(s.columns * cell_columns, p.axis[2].input);
  }
  std::int64_t tiles(const Shape& s, std::int64_t planes) const {
    return ceil_div(planes, s.planes) * ceil_div(depth(), s.slices) * ceil_div(height(), s.rows) *
           ceil_div(width(), s.columns);
  }
};

struct PlanarCosts : Costs {
  std::int64_t unit() const { return 16 / element(); }
  /// Whether a tile's elements follow each other without a gap.
  bool is_joined(const Shape& s) const { return s.columns == width() && (s.planes == 1 || s.rows == height()); }
  /// Pieces that a row of outputs may lie in, and those of 16 bytes that one of elements may.
  std::int64_t pieces(const Shape& s) const { return (out_columns(s) + 2 * (kStagedPiece - 1)) / kStagedPiece; }
  std::int64_t run_pieces(const Shape& s) const {
    return ceil_div(smaller(s.columns * cell_columns, p.axis[2].input) + unit() - 1, unit());
  }
  std::int64_t sent_row(const Shape& s) const {
    return aligned_step(out_columns(s) + kStagedPiece - 1, p.axis[2].output, kStagedPiece);
  }
  std::int64_t sent_plane(const Shape& s) const {
    return aligned_step(out_rows(s) * sent_row(s), p.axis[1].output * p.axis[2].output, kStagedPiece);
  }
  std::int64_t sent_bytes(const Shape& s) const {
    return ceil_div(s.planes * sent_plane(s) + 2 * kStagedPiece, kStagedPiece) * kStagedPiece * 8;
  }
  std::int64_t result_row(const Shape& s) const {
    if (is_joined(s)) return p.axis[2].input;
    return aligned_step(smaller(s.columns * cell_columns, p.axis[2].input) + unit() - 1, p.axis[2].input, unit());
  }
  std::int64_t bytes(const Shape& s) const {
    const std::int64_t rows = smaller(s.rows * cell_rows, p.axis[1].input);
    const std::int64_t kept = (s.planes - 1) * p.axis[1].input * p.axis[2].input + rows * result_row(s);
    return sent_bytes(s) + kept * element() + 32;
  }
  /// About what a tile costs: the bytes that cross to and from a multiprocessor, and those that could while it issues instructions.
  double cost(const Shape& s) const {
    const std::int64_t rows = s.planes * out_rows(s), stored = elements(s) * element();
    const std::int64_t ends = is_joined(s) ? 1 : s.rows * cell_rows;
    const std::int64_t loaded = rows * (out_columns(s) * (element() + index()) + 32);
    const std::int64_t staging = ceil_div(rows, kStagedBlock / pieces(s)),
                       gathering = ceil_div(s.planes * s.rows, kStagedBlock / s.columns),
                       storing = ceil_div(stored, 16 * kStagedBlock);
    const std::int64_t instructions = 200 + 100 * staging + 110 * gathering + (is_joined(s) ? 8 : 24) * storing;
    return static_cast<double>(loaded + stored + ends * 64) +
           4.25 * kStagedBlock / 32 * static_cast<double>(instructions);
  }
};

struct ChannelCosts : Costs {
  std::int64_t channels;  // of a block

  std::int64_t value_bytes(const Shape& s) const { return outputs(s) * channels * element(); }
  std::int64_t bytes(const Shape& s) const { return value_bytes(s) + outputs(s) * channels; }
  double cost(const Shape& s) const {
    constexpr std::int64_t kBlockCost = 2048;
    const std::int64_t moved =
        outputs(s) * (element() + index()) + s.slices * s.rows * cell_rows * s.columns * cell_columns * element();
    return static_cast<double>(ceil_div(p.channels, channels) * (channels * moved + kBlockCost));
  }
};

/// The tile that costs least of those considered.
struct Best {
  Shape shape{};
  double cost = 0;  // none yet

  template <class Kind>
  bool consider(const Kind& costs, const Shape& s, std::int64_t planes, std::int64_t most_bytes) {
    if (costs.bytes(s) > most_bytes) return false;
    const double all = static_cast<double>(costs.tiles(s, planes)) * costs.cost(s);
    if (cost == 0 || all < cost) cost = all, shape = s;
    return true;
  }
};

Divisor<std::int32_t> divisor(std::int64_t value) { return Divisor<std::int32_t>(larger(value, 1)); }
std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

void fill(Cells& cells, const Costs& costs, const Shape& shape, std::int64_t planes) {
  cells.planes = narrow(shape.planes);
  cells.slices = narrow(shape.slices);
  cells.rows = narrow(shape.rows);
  cells.columns = narrow(shape.columns);
  cells.tiles_x = divisor(ceil_div(costs.width(), shape.columns));
  cells.tiles_y = divisor(ceil_div(costs.height(), shape.rows));
  cells.tiles_z = divisor(ceil_div(costs.depth(), shape.slices));
  cells.cells_x = divisor(shape.columns);
  cells.cells_y = divisor(shape.rows);
  cells.source_y = divisor(costs.out_rows(shape));
  cells.total_planes = narrow(planes);
}

constexpr std::int64_t kMostRows[] = {1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 48, 64, 128};

}  // namespace

bool cut_cells(Launch& launch, const Problem& p, const Function& function) {
  const PlanarCosts costs{{p, function.rows, function.columns, false}};
  const std::int64_t planes = p.batch * p.channels * p.axis[0].input, height = costs.height(), width = costs.width();
  if (planes > INT32_MAX / 2) return false;
  Best best;
  // Rows that are cut are so where 128 bytes begin, if they begin there themselves and the padding is a multiple of the stride.
  for (const std::int64_t most_columns : {32, 64, 128}) {
    if (width <= kStagedBlock && most_columns < kStagedBlock) continue;  // whole rows, looked at once
    const std::int64_t columns = smaller(width, most_columns);
    for (const std::int64_t most_rows : kMostRows) {
      const std::int64_t rows = part_of(height, most_rows);
      if (!best.consider(costs, {1, 1, rows, columns}, planes, kPlanarBytes)) break;
      if (rows < height || columns < width) continue;
      std::int64_t many = 2;
      while (many <= planes / (132 * 8) && best.consider(costs, {many, 1, rows, columns}, planes, kPlanarBytes)) ++many;
    }
  }
  const Shape& s = best.shape;
  if (best.cost == 0 || costs.tiles(s, planes) > INT32_MAX) return false;
  Cells& cells = launch.narrow.cells;
  fill(cells, costs, s, planes);
  cells.pieces = divisor(costs.pieces(s));
  cells.cells_at_once = narrow(kStagedBlock / s.columns);
  cells.rows_at_once = narrow(kStagedBlock / costs.pieces(s));
  cells.sent_row = narrow(costs.sent_row(s));
  cells.sent_plane = narrow(costs.sent_plane(s));
  cells.result_row = narrow(costs.result_row(s));
  cells.result_plane = narrow(p.axis[1].input * p.axis[2].input);
  cells.results_at = narrow(costs.sent_bytes(s));
  cells.joined = costs.is_joined(s);
  cells.run_pieces = divisor(costs.run_pieces(s));
  cells.runs_at_once = narrow(kStagedBlock / costs.run_pieces(s));
  launch.tiles = costs.tiles(s, planes);
  launch.block = kStagedBlock;
  launch.shared_bytes = static_cast<std::size_t>(costs.bytes(s));
  return true;
}

bool cut_cell_channels(Launch& launch, const Problem& p, const Function& function, bool deep) {
  const std::int64_t planes = p.batch * (deep ? 1 : p.axis[0].input);
  if (planes > INT32_MAX / 2) return false;
  Best best;
  std::int64_t groups = 0;
  for (const std::int64_t tried : {4, 8, 16}) {
    const ChannelCosts costs{{p, function.rows, function.columns, deep}, tried * function.lanes};
    const double before = best.cost;
    for (const std::int64_t most_columns : {4, 8, 16, 32, 64}) {
      for (const std::int64_t most_rows : kMostRows) {
        const std::int64_t rows = part_of(costs.height(), most_rows), columns = part_of(costs.width(), most_columns);
        // As many slices as fit.
        std::int64_t slices = costs.depth();
        while (!best.consider(costs, {1, slices, rows, columns}, planes, kChannelBytes) && slices > 1)
          slices = part_of(costs.depth(), slices - 1);
      }
    }
    if (best.cost != before) groups = tried;
  }
  if (groups == 0) return false;
  const ChannelCosts costs{{p, function.rows, function.columns, deep}, groups * function.lanes};
  const Shape& s = best.shape;
  const std::int64_t blocks = ceil_div(p.channels, costs.channels);
  launch.tiles = costs.tiles(s, planes) * blocks;
  if (launch.tiles > INT32_MAX) return false;
  Cells& cells = launch.narrow.cells;
  fill(cells, costs, s, planes);
  cells.pieces = divisor(costs.out_columns(s));
  cells.results_at = narrow(costs.value_bytes(s));
  cells.groups = divisor(groups);
  cells.channel_blocks = divisor(blocks);
  cells.channels = narrow(p.channels);
  cells.staged = narrow(costs.outputs(s));
  cells.cells = narrow(s.slices * s.rows * s.columns);
  launch.block = kChannelBlock;
  launch.shared_bytes = static_cast<std::size_t>(costs.bytes(s));
  return true;
}

}  // namespace cenote::gpu
