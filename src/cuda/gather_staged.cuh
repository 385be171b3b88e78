// The backward of small max windows, dense planar tensors of any width. A block brings the outputs that see its tile into shared memory,
// 16 bytes at a time wherever rows begin; cells of elements gather from there, and what they gathered leaves in pieces of 16 bytes again.
#pragma once

#include "cuda/cells.cuh"

namespace cenote::gpu {

/// Small blocks: while some of them wait for memory or at a barrier, others work.
inline constexpr int kStagedBlock = 128;
/// Outputs that one thread brings at a time.
inline constexpr int kStagedPiece = 4;

template <int kStride>
struct PlanarCell {
  static constexpr int kRows = kStride == 1 ? 4 : 8, kColumns = kStride;
};

/// What is kept of an output: its gradient, and where in the plane that belongs or, of indices of kind window, to which tap.
template <class T>
struct alignas(8) Sent {
  T value;
  std::int32_t code;  // -1: nowhere
};

/// Windows of one row of outputs that start in row `top` of a slice.
template <int kKernel, bool kTaps>
struct WindowRow {
  using Int = std::int32_t;
  Int top, flat, rows;  // flat indices: where the first row inside the input begins, and how many are inside

  __device__ WindowRow(const Params<Int>& p, Int slice, Int first) : top(first) {
    const Int inside = most(top, 0);
    flat = (slice * p.axis[1].input + inside) * p.axis[2].input;
    rows = least(top + kKernel, p.axis[1].input) - inside;
  }
  /// Whether the low word of an index names an element of its window, which starts in column `left`. The input is no narrower than a
  /// window. All comparisons are made: none costs as much as a branch.
  __device__ bool holds(const Params<Int>& p, Int left, Int code) const {
    if constexpr (kTaps) {
      const unsigned tap = static_cast<unsigned>(code), y = tap / kKernel, x = tap - y * kKernel;
      return (tap < static_cast<unsigned>(kKernel * kKernel)) &
             (static_cast<unsigned>(left) + x < static_cast<unsigned>(p.axis[2].input)) &
             (static_cast<unsigned>(top) + y < static_cast<unsigned>(p.axis[1].input));
    } else {
      // Callers' numbers: sums that wrap around.
      auto y =
          static_cast<Int>(static_cast<unsigned>(code) - static_cast<unsigned>(flat) - static_cast<unsigned>(left));
      const auto x = static_cast<unsigned>(take(y, p.axis[2].by_input));
      return (x < static_cast<unsigned>(kKernel)) &
             (static_cast<unsigned>(left) + x < static_cast<unsigned>(p.axis[2].input)) &
             (static_cast<unsigned>(y) < static_cast<unsigned>(rows));
    }
  }
};

/// Fills shared memory with the outputs that see the tile, the first of them `phase` places from its beginning. A thread takes
/// kStagedPiece neighbours of a row at a time, aligned in memory, so that the first may begin before the row; the steps between rows keep
/// them aligned in shared memory. In place of an output that does not exist there may be one of another row: its element is too far away
/// to look there.
template <class T, class Stored, bool kTaps, int kKernel, int kStride>
__device__ inline void stage_sent(const Params<std::int32_t>& p, const Pointers& at,
                                  const CellTile<PlanarCell<kStride>, kKernel, kStride, false>& tile,
                                  std::int32_t phase, Sent<T>* sent) {
  using Int = std::int32_t;
  constexpr int kPiece = kStagedPiece;
  const Cells& cells = p.cells;
  const Int out_height = p.axis[1].output, out_width = p.axis[2].output, out_plane = out_height * out_width;
  const std::int64_t base = static_cast<std::int64_t>(tile.plane) * out_plane;
  const T* grad = static_cast<const T*>(at.grad_output) + base;
  const Stored* indices = static_cast<const Stored*>(at.saved_indices) + base;
  const Int end = tile.planes * out_plane;
  Int first_row = static_cast<Int>(threadIdx.x);
  const Int piece = take(first_row, cells.pieces) * kPiece;
  const Int rows = first_row < cells.rows_at_once ? tile.planes * cells.source_y.value : 0;
  bool right = true;
  for (Int q = first_row; q < rows; q += cells.rows_at_once) {
    Int plane = q;
    const Int row = take(plane, cells.source_y), oy = tile.oy0 + row;
    const Int start = plane * out_plane + oy * out_width;  // from the tile's first plane
    const unsigned from = static_cast<unsigned>(base) + static_cast<unsigned>(start) + static_cast<unsigned>(tile.ox0);
    const Int ox = tile.ox0 + piece - static_cast<Int>(from % kPiece);
    if (ox >= tile.ox0 + tile.out_columns) continue;
    Vector<T, kPiece> values{};
    Int codes[kPiece], high[kPiece];
#pragma unroll
    for (int j = 0; j < kPiece; ++j) codes[j] = high[j] = -1;
    if (ox < out_width && ox + kPiece > 0 && static_cast<unsigned>(oy) < static_cast<unsigned>(out_height)) {
      if (start + ox + kPiece <= end) {
        values = load_constant<kPiece>(grad + (start + ox));
        load_stored<Stored>(indices + (start + ox), 0, codes, high);
      } else {
#pragma unroll
        for (int j = 0; j < kPiece; ++j) {
          if (start + ox + j >= end) continue;
          values.lane[j] = load_constant<1>(grad + (start + ox + j)).lane[0];
          Int code[1], above[1];
          load_stored<Stored>(indices + (start + ox + j), 0, code, above);
          codes[j] = code[0];
          high[j] = above[0];
        }
      }
      const WindowRow<kKernel, kTaps> windows(p, kTaps ? 0 : slice_of(p, tile.plane + plane),
                                              oy * kStride - p.axis[1].pad_begin);
      bool held[kPiece], all = true;
#pragma unroll
      for (int j = 0; j < kPiece; ++j) {
        const bool exists = static_cast<unsigned>(ox + j) < static_cast<unsigned>(out_width);
        held[j] = (windows.holds(p, (ox + j) * kStride - p.axis[2].pad_begin, codes[j]) & (high[j] == 0)) | !exists;
        all = all & held[j];
        if (kTaps && !exists) codes[j] = -1;
      }
      if (!all) {
#pragma unroll
        for (int j = 0; j < kPiece; ++j) right = right && (held[j] || (codes[j] & high[j]) == -1);
      }
    }
    Vector<Sent<T>, kPiece> kept;
#pragma unroll
    for (int j = 0; j < kPiece; ++j) kept.lane[j] = {values.lane[j], codes[j]};
    // A multiple of kPiece.
    const Int to = phase + plane * cells.sent_plane + row * cells.sent_row + ox - tile.ox0;
    uint4 words[sizeof(kept) / 16];
    memcpy(words, &kept, sizeof(kept));
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(kept) / 16); ++i) reinterpret_cast<uint4*>(sent + to)[i] = words[i];
  }
  if (!right) report(at.fault, kFaultIndex);
}

/// Elements [begin, begin + 16 bytes) of a run of `end` elements, as far as they are in it.
template <class T>
__device__ inline void store_piece(T* to, const T* from, std::int32_t begin, std::int32_t end) {
  constexpr int kVector = 16 / static_cast<int>(sizeof(T));
  if (begin >= 0 && begin + kVector <= end) {
    *reinterpret_cast<uint4*>(to + begin) = *reinterpret_cast<const uint4*>(from + begin);
  } else {
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      if (begin + i >= 0 && begin + i < end) to[begin + i] = from[begin + i];
    }
  }
}

/// Square windows of kKernel taps, stride kStride along height and width, no dilation, one slice at a time. Stored: the indices' type;
/// kTaps: they are of kind window.
template <class T, class Stored, bool kTaps, int kKernel, int kStride>
__global__ void __launch_bounds__(kStagedBlock, 12)
    gather_staged(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Tile = CellTile<PlanarCell<kStride>, kKernel, kStride, false>;
  constexpr int kRows = Tile::kRows, kColumns = Tile::kColumns, kFirst = Tile::kFirst;
  constexpr int kVector = 16 / static_cast<int>(sizeof(T));
  const Cells& cells = p.cells;
  const Tile tile(p, static_cast<Int>(blockIdx.x));
  auto* sent = reinterpret_cast<Sent<T>*>(tile_memory);
  const auto out_row =
      static_cast<unsigned>(tile.plane) * static_cast<unsigned>(p.axis[1].output) + static_cast<unsigned>(tile.oy0);
  const auto sent_phase = static_cast<Int>(
      (out_row * static_cast<unsigned>(p.axis[2].output) + static_cast<unsigned>(tile.ox0)) % kStagedPiece);
  stage_sent<T, Stored, kTaps>(p, at, tile, sent_phase, sent);
  __syncthreads();

  // Elements lie in shared memory as in memory, modulo 16 bytes: steps between rows and planes see to it.
  const Int height = p.axis[1].input, width = p.axis[2].input;
  const Int y_begin = most(tile.y0, 0), y_end = least(tile.y0 + cells.rows * kRows, height);
  const Int x_begin = most(tile.x0, 0), x_end = least(tile.x0 + cells.columns * kColumns, width);
  const std::int64_t first = static_cast<std::int64_t>(tile.plane) * (height * width) + y_begin * width + x_begin;
  const Int phase = static_cast<Int>(first) & (kVector - 1);
  T* results = reinterpret_cast<T*>(tile_memory + cells.results_at) + phase;
  Int first_item = static_cast<Int>(threadIdx.x);
  const Int cell_x = take(first_item, cells.cells_x);
  const Int x = tile.x0 + cell_x * kColumns;
  const Int items = first_item < cells.cells_at_once ? tile.planes * cells.rows : 0;
  const Sent<T>* column = sent + sent_phase + cell_x * (kColumns / kStride);
  for (Int q = first_item; q < items; q += cells.cells_at_once) {
    Int plane = q;
    const Int cell_y = take(plane, cells.cells_y), y = tile.y0 + cell_y * kRows;
    // The code of the cell's first element. Those of elements outside may wrap around: they are not stored.
    const unsigned corner =
        kTaps ? 0
              : (static_cast<unsigned>(slice_of(p, tile.plane + plane)) * static_cast<unsigned>(height) +
                 static_cast<unsigned>(y)) *
                        static_cast<unsigned>(width) +
                    static_cast<unsigned>(x);
    const Sent<T>* from = column + plane * cells.sent_plane + cell_y * (kRows / kStride) * cells.sent_row;
    Accumulator<T> sum[kRows][kColumns] = {};
#pragma unroll
    for (int r = 0; r < Tile::kSeenRows; ++r) {
#pragma unroll
      for (int c = 0; c < Tile::kSeenColumns; ++c) {
        const Sent<T> one = from[c];
        const Accumulator<T> share = widen(one.value);
#pragma unroll
        for (int j = 0; j < kRows; ++j) {
#pragma unroll
          for (int i = 0; i < kColumns; ++i) {
            const int ty = j - (kFirst + r) * kStride, tx = i - (kFirst + c) * kStride;
            if (ty < 0 || ty >= kKernel || tx < 0 || tx >= kKernel) continue;
            const unsigned wanted =
                kTaps ? static_cast<unsigned>(ty * kKernel + tx)
                      : corner + static_cast<unsigned>(j) * static_cast<unsigned>(width) + static_cast<unsigned>(i);
            if (static_cast<unsigned>(one.code) == wanted) sum[j][i] += share;
          }
        }
      }
      from += cells.sent_row;
    }
    T* to = results + plane * cells.result_plane + (y - y_begin) * cells.result_row + x - x_begin;
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      if (static_cast<unsigned>(y + j) < static_cast<unsigned>(height)) {
#pragma unroll
        for (int i = 0; i < kColumns; ++i) {
          if (static_cast<unsigned>(x + i) < static_cast<unsigned>(width)) to[i] = narrow<T>(sum[j][i]);
        }
      }
      to += cells.result_row;
    }
  }
  __syncthreads();

  T* grad_input = static_cast<T*>(at.grad_input) + first;
  if (cells.joined) {
    store_run<kStagedBlock>(grad_input, results, (tile.planes - 1) * height * width + (y_end - y_begin) * width);
    return;
  }
  Int first_run = static_cast<Int>(threadIdx.x);
  const Int piece = take(first_run, cells.run_pieces) * kVector;
  const Int runs = first_run < cells.runs_at_once ? y_end - y_begin : 0;
  for (Int y = first_run; y < runs; y += cells.runs_at_once) {
    const Int away = y * width;
    store_piece(grad_input + away, results + y * cells.result_row, piece - ((phase + away) & (kVector - 1)),
                x_end - x_begin);
  }
}

}  // namespace cenote::gpu
