// The backward of lp_pool where windows overlap, dense planar tensors: a block brings a tile of elements, and what their windows share with
// them, into shared memory, works out once what each window passes on, and each element adds up what it is sent.
#pragma once

#include "cuda/tile_windows.cuh"

namespace cenote::gpu {

/// Places [first, last) along an axis.
struct Run {
  std::int32_t first, last;
};

/// The outputs that see elements [first, last] along an axis without dilation, and what their windows reach with those elements.
struct Seen {
  Run outputs, source;

  __device__ Seen(const DeviceAxis<std::int32_t>& axis, std::int32_t first, std::int32_t last) {
    outputs = {cover_of(axis, first).first, cover_of(axis, last).last + 1};
    source = {first, last + 1};
    if (outputs.first >= outputs.last) return;
    source.first = most(least(first, outputs.first * axis.stride - axis.pad_begin), 0);
    source.last = most(last + 1, least((outputs.last - 1) * axis.stride - axis.pad_begin + axis.kernel, axis.input));
  }
};

/// Windows without dilation that leave no slice. kSquare: norm 2. A tile that is no whole row is part of one, and has none of several rows.
template <class T, bool kSquare>
__global__ void __launch_bounds__(kTileBlock, 8)
    gather_norms(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Real = Accumulator<T>;
  const Cells& cells = p.cells;
  const DeviceAxis<Int>&h = p.axis[1], &w = p.axis[2];
  const WindowTile<true> tile(cells, h.input, w.input);
  const Int width = settled(w.input), plane_size = settled(h.input * width);
  Seen down(h, tile.y0, tile.y1 - 1), across(w, tile.x0, tile.x1 - 1);
  if (cells.tiles_y.value == 1) down.source = {0, h.input};  // planes follow each other
  if (cells.tiles_x.value == 1) across.source = {0, width};
  const std::int64_t first_element = static_cast<std::int64_t>(tile.plane) * plane_size;
  const T* source = static_cast<const T*>(at.input) + (first_element + down.source.first * width + across.source.first);
  stage_run<kTileBlock>(tile_memory, source,
                        (tile.planes - 1) * plane_size + (down.source.last - down.source.first - 1) * width +
                            across.source.last - across.source.first);
  // The first plane's first element would lie there.
  const T* elements = reinterpret_cast<const T*>(tile_memory + (reinterpret_cast<std::uintptr_t>(source) & 15)) -
                      (down.source.first * width + across.source.first);
  auto* sent = reinterpret_cast<Real*>(tile_memory + cells.results_at);

  // What windows pass on: a thread keeps its columns of outputs.
  const Int out_width = settled(w.output), out_plane = h.output * out_width;
  const T* grad = static_cast<const T*>(at.grad_output) + static_cast<std::int64_t>(tile.plane) * out_plane;
  const Real norm = kSquare ? Real{2} : static_cast<Real>(p.norm_type);
  const Int whole = h.kernel * w.kernel, at_a_time = settled(cells.rows_at_once);
  Int first_row = static_cast<Int>(threadIdx.x);
  Int ox = across.outputs.first + take(first_row, cells.pieces);
  const Int out_rows = first_row < at_a_time ? tile.planes * cells.source_y.value : 0;
  wait_for_runs();
#pragma unroll 1
  for (; ox < across.outputs.last; ox += cells.pieces.value) {
    const Taps<Int> wide = taps_of(w, ox);
    // The next gradient is on its way while a window is added up.
    auto gradient = [&](Int q) {
      if (q >= out_rows) return T{};
      Int plane = q;
      const Int oy = down.outputs.first + take_of(plane, cells.source_y);
      return oy < down.outputs.last ? load_constant<1>(grad + (plane * out_plane + oy * out_width + ox)).lane[0] : T{};
    };
    T next = gradient(first_row);
#pragma unroll 1
    for (Int q = first_row; q < out_rows; q += at_a_time) {
      const T now = next;
      next = gradient(q + at_a_time);
      Int plane = q;
      const Int row = take_of(plane, cells.source_y), oy = down.outputs.first + row;
      if (oy >= down.outputs.last) continue;
      const Taps<Int> tall = taps_of(h, oy);
      const T* from = elements + (plane * plane_size + (tall.start + tall.low) * width + wide.start);
      Real sum = 0;
#pragma unroll 1
      for (Int ty = tall.low; ty < tall.high; ++ty, from += width) {
#pragma unroll 3
        for (Int tx = wide.low; tx < wide.high; ++tx) {
          const Real tap = widen(from[tx]);
          sum += kSquare ? tap * tap : raise(tap, norm);
        }
      }
      const Int counted = tall.padded * wide.padded;
      Real& slope = sent[plane * cells.sent_plane + row * cells.sent_row + ox - across.outputs.first];
      if (kSquare && counted == whole) {  // averaged and scaled back: as it was
        slope = sum == Real{0} ? Real{0} : widen(now) * Real{0.5} / sqrt(sum);
      } else {
        slope = slope_of_sum<T>(p, sum, counted, now);
      }
    }
  }
  __syncthreads();

  // Strips of elements below each other.
  T* results = static_cast<T*>(at.grad_input) + first_element;
  Int first_strip = static_cast<Int>(threadIdx.x);
  Int x = tile.x0 + take(first_strip, cells.cells_x);
  const Int at_once = settled(cells.cells_at_once), strip = settled(p.strip), sent_row = settled(cells.sent_row);
  const Int strips = first_strip < at_once ? tile.planes * cells.cells_y.value : 0;
#pragma unroll 1
  for (; x < tile.x1; x += cells.cells_x.value) {
    const Reach<Int> columns = cover_of(w, x);
#pragma unroll 1
    for (Int q = first_strip; q < strips; q += at_once) {
      Int plane = q, y = tile.y0 + take_of(plane, cells.cells_y) * strip;
      const Int end = least(y + strip, tile.y1);
      const Real* seers = sent + (plane * cells.sent_plane - across.outputs.first);
      Int place = plane * plane_size + y * width + x;
#pragma unroll 1
      for (; y < end; ++y, place += width) {
        const Reach<Int> rows = cover_of(h, y);
        const Real* from = seers + (rows.first - down.outputs.first) * sent_row;
        Real sum = 0;
#pragma unroll 1
        for (Int oy = rows.first; oy <= rows.last; ++oy, from += sent_row) {
#pragma unroll 2
          for (Int column = columns.first; column <= columns.last; ++column) sum += from[column];
        }
        const Real element = widen(elements[place]);
        results[place] = narrow<T>(norm * (kSquare ? element : raise(element, norm - Real{1})) * sum);
      }
    }
  }
}

}  // namespace cenote::gpu
