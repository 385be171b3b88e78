// Tiles of cells, for backward pools of small windows through shared memory: a block keeps the outputs that see its tile, and each
// thread gathers cells of elements from them.
#pragma once

#include "cuda/gather_down.cuh"
#include "cuda/tiles.cuh"

namespace cenote::gpu {

/// A tile of cells of Cell::kRows x Cell::kColumns elements, and the outputs that see it. Cells begin where windows do, so that which
/// outputs see which of their elements is known when this is compiled. kDeep: windows of up to three slices that are gathered together;
/// otherwise no window leaves its slice, and slices are planes.
template <class Cell, int kKernel, int kStride, bool kDeep>
struct CellTile {
  using Int = std::int32_t;
  static constexpr int kRows = Cell::kRows, kColumns = Cell::kColumns;
  // Element c of a cell is tap c - m * kStride of the output m places from the cell's own first.
  static constexpr int kFirst = ceil_quotient(1 - kKernel, kStride);
  static constexpr int kSeenRows = floor_quotient(kRows - 1, kStride) - kFirst + 1,
                       kSeenColumns = floor_quotient(kColumns - 1, kStride) - kFirst + 1;

  Int plane, planes, z0, z1;
  Int y0, x0;                 // where its cells begin: up to a stride before the input
  Int oz0, oy0, ox0;          // the first output that sees it, whether or not it exists
  Int out_rows, out_columns;  // how many do

  __device__ CellTile(const Params<Int>& p, Int tile) {
    const Cells& cells = p.cells;
    Int rest = tile;
    const Int cell_x = take_of(rest, cells.tiles_x) * cells.columns, cell_y = take_of(rest, cells.tiles_y) * cells.rows;
    z0 = kDeep ? take_of(rest, cells.tiles_z) * cells.slices : 0;
    z1 = kDeep ? least(z0 + cells.slices, p.axis[0].input) : 1;
    plane = rest * cells.planes;
    planes = least(cells.planes, cells.total_planes - plane);
    const Int own_y = p.axis[1].pad_begin / kStride, own_x = p.axis[2].pad_begin / kStride;
    y0 = cell_y * kRows + own_y * kStride - p.axis[1].pad_begin;
    x0 = cell_x * kColumns + own_x * kStride - p.axis[2].pad_begin;
    oz0 = kDeep ? cover_of(p.axis[0], z0).first : 0;
    oy0 = cell_y * (kRows / kStride) + own_y + kFirst;
    ox0 = cell_x * (kColumns / kStride) + own_x + kFirst;
    out_rows = cells.rows * (kRows / kStride) - kFirst;
    out_columns = cells.columns * (kColumns / kStride) - kFirst;
  }
};

}  // namespace cenote::gpu
