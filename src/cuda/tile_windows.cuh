// Windows of few taps over dense planar tensors, whatever their shape, distance and dilation: a block copies what its outputs see into
// shared memory, which is one run of memory, and a thread folds its windows from there.
#pragma once

#include "cuda/direct.cuh"
#include "cuda/tiles.cuh"

namespace cenote::gpu {

/// The results of a block: rows [y0, y1) and columns [x0, x1) of each of its planes, a slice being a plane. Of several planes, whole ones.
/// kTall: some windows have several rows; otherwise rows are planes too.
template <bool kTall>
struct WindowTile {
  std::int32_t plane, planes, y0, y1, x0, x1;

  __device__ WindowTile(const Cells& cells, std::int32_t height, std::int32_t width) {
    std::int32_t rest = static_cast<std::int32_t>(blockIdx.x);
    x0 = take_of(rest, cells.tiles_x) * cells.columns;
    y0 = kTall ? take_of(rest, cells.tiles_y) * cells.rows : 0;
    plane = rest * cells.planes;
    planes = least(cells.planes, cells.total_planes - plane);
    x1 = least(x0 + cells.columns, width);
    y1 = kTall ? least(y0 + cells.rows, height) : 1;
  }
  /// Rows of results below each other, those of all planes.
  __device__ std::int32_t rows() const { return planes * (y1 - y0); }
};

/// Where a plane begins in the flat indices of its tensor: planes are slices or, not kTall, rows.
template <bool kTall>
__device__ inline std::int32_t first_index(const Params<std::int32_t>& p, std::int32_t plane) {
  if (kTall) return slice_of(p, plane) * p.axis[1].input * p.axis[2].input;
  return take(plane, p.cells.rows_of_entry) * p.axis[2].input;
}

/// The elements of a window along an axis: those from first to last, every dilation-th of them.
struct Inside {
  std::int32_t first, last;
};

__device__ inline Inside inside_of(const DeviceAxis<std::int32_t>& axis, std::int32_t o) {
  using Int = std::int32_t;
  if (axis.rule == WindowRule::adaptive) return {adaptive_first(axis, o), adaptive_last(axis, o) - 1};
  const Int start = o * axis.stride - axis.pad_begin;
  const Int last = least(start + (axis.kernel - 1) * axis.dilation, axis.input - 1);
  if (axis.dilation == 1) return {most(start, 0), last};
  return {start < 0 ? start + ceil_quotient<Int>(-start, axis.by_dilation) * axis.dilation : start, last};
}

/// Windows of at most kHeight x kWidth taps, none empty, that leave no slice; kHeight 1: nor their row; kWidth 0: of any number of taps
/// along it. A tile that is no whole row is part of one, and has none of several rows. Maxima without indices that are zero or a NaN are
/// folded again in the order that the rule asks for.
template <class T, Fold kFold, bool kIndices, int kHeight, int kWidth>
__global__ void __launch_bounds__(kTileBlock, 8)
    fold_tile_windows(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  constexpr Int kSize = static_cast<Int>(sizeof(T));
  constexpr bool kTall = kHeight > 1;
  const Cells& cells = p.cells;
  const DeviceAxis<Int>&h = p.axis[1], &w = p.axis[2];
  const WindowTile<kTall> tile(cells, h.output, w.output);
  // Rows alone are faster where the compiler may read parameters again.
  auto keep = [](Int number) { return kTall ? settled(number) : number; };
  const Int width = w.input, source_plane = kTall ? h.input * width : width;
  const Int out_width = keep(w.output), out_plane = kTall ? h.output * out_width : out_width;
  Int top = 0, bottom = kTall ? h.input : 1, left = 0, right = width;
  if (kTall && cells.tiles_y.value > 1) reach_of_windows(h, tile.y0, tile.y1 - 1, top, bottom);
  if (!kTall && cells.tiles_x.value > 1) reach_of_windows(w, tile.x0, tile.x1 - 1, left, right);
  const T* source =
      static_cast<const T*>(at.input) + (static_cast<std::int64_t>(tile.plane) * source_plane + top * width + left);
  stage_run<kTileBlock>(tile_memory, source,
                        (tile.planes - 1) * source_plane + (bottom - top - 1) * width + right - left);
  wait_for_runs();
  // Places are counted in bytes; the first plane's first element would lie at `origin`.
  const Int origin = static_cast<Int>(reinterpret_cast<std::uintptr_t>(source) & 15) - (top * width + left) * kSize;
  auto element = [](Int place) { return *reinterpret_cast<const T*>(tile_memory + place); };
  const std::int64_t first_output = static_cast<std::int64_t>(tile.plane) * out_plane;
  T* outputs = static_cast<T*>(at.output) + first_output;
  const Int row_bytes = keep(width * kSize), step = settled(h.dilation * width * kSize), apart = settled(h.dilation);

  const Term<kFold, T> term(p.norm_type);

  // Output (y, x) of a plane, stored `to` places from the tile's first. The rows of its window are `down`; `columns` calls a function with
  // how many bytes from where rows begin each of its columns lies, `leftmost` for the first, and whether it counts: one that does not is
  // another one again, which changes no maximum, nor where that is.
  auto fold_window = [&](Int plane, Int y, Int x, Int to, const Inside& down, Int leftmost, auto columns) {
    const Int first =
        kTall ? origin + plane * (source_plane * kSize) + down.first * row_bytes : origin + plane * row_bytes;
    auto for_each_tap = [&](auto take_tap) {
      Int row = down.first, place = first;
#pragma unroll
      for (int r = 0; r < kHeight; ++r) {
        if (r > 0) {
          row += apart;
          place += step;
          if (row > down.last) break;
        }
        columns([&](Int column, bool counted) { take_tap(place + column, counted); });
      }
    };
    if constexpr (is_extreme<kFold>) {
      Int winner = first + leftmost;
      T best = element(winner);
      auto in_order = [&](Int place, bool) {
        const T tap = element(place);
        if (!beats<kFold>(tap, best)) return;
        best = tap;
        winner = place;
      };
      if constexpr (kIndices) {
        for_each_tap(in_order);
      } else {
        for_each_tap([&](Int place, bool) { best = larger_or_nan(best, element(place)); });
        if (is_doubtful(best)) {
          best = element(winner);
          for_each_tap(in_order);
        }
      }
      outputs[to] = best;
      if constexpr (kIndices) {
        Int code[1] = {static_cast<Int>(static_cast<unsigned>(winner - origin) / kSize) - plane * source_plane};
        if (p.index_kind == IndexKind::window) {
          Int row = code[0];
          const Reached across = reached_by(w, x);
          code[0] = w.by_dilation.quotient(take(row, w.by_input) - across.start);
          if constexpr (kTall) code[0] += h.by_dilation.quotient(row - reached_by(h, y).start) * across.taps;
        } else if (p.axis[0].input > 1 || (!kTall && h.input > 1)) {
          code[0] += first_index<kTall>(p, tile.plane + plane);
        }
        store_codes(at.indices, p.index_dtype, first_output + to, code);
      }
    } else {
      Accumulator<T> sum[1] = {0};
      for_each_tap([&](Int place, bool counted) {
        const Accumulator<T> tap = term(element(place));
        sum[0] += counted ? tap : Accumulator<T>{0};
      });
      if (kFold == Fold::sum && p.uniform_divisor) {
        divide_all<T>(p, sum);
      } else {
        const Taps<Int> single{0, 0, 1, 1, 1};
        if constexpr (kFold != Fold::sum) {
          const std::int64_t taps = counted_taps<kFold>(p, single, kTall ? taps_of(h, y) : single, taps_of(w, x));
          outputs[to] = finish<kFold, T>(p, sum[0], taps);
          return;
        }
        divide_all_by<T>(sum, divisor_of(p, single, kTall ? taps_of(h, y) : single, taps_of(w, x)));
      }
      outputs[to] = narrow<T>(sum[0]);
    }
  };
  // All windows of column x: strips of them, one below the other.
  Int first_strip = static_cast<Int>(threadIdx.x);
  Int x = tile.x0 + take(first_strip, cells.cells_x);
  const Int at_once = keep(cells.cells_at_once), strip = settled(p.strip);
  const Int strips = first_strip < at_once ? tile.planes * (kTall ? cells.cells_y.value : 1) : 0;
  const Int stride = settled(h.stride), reach = settled((h.kernel - 1) * h.dilation), last_row = settled(h.input - 1);
  const bool plain = h.rule == WindowRule::sliding && h.dilation == 1;
  auto fold_column = [&](Int leftmost, auto columns) {
#pragma unroll 1
    for (Int q = first_strip; q < strips; q += at_once) {
      if constexpr (kTall) {
        Int plane = q, y = tile.y0 + take_of(plane, cells.cells_y) * strip;
        const Int end = least(y + strip, tile.y1);
        Int start = y * stride - h.pad_begin, to = plane * out_plane + y * out_width + x;
#pragma unroll 1
        for (; y < end; ++y, start += stride, to += out_width) {
          const Inside down = plain ? Inside{most(start, 0), least(start + reach, last_row)} : inside_of(h, y);
          fold_window(plane, y, x, to, down, leftmost, columns);
        }
      } else {
        fold_window(q, 0, x, q * out_width + x, Inside{0, 0}, leftmost, columns);
      }
    }
  };
#pragma unroll 1
  for (; x < tile.x1; x += cells.cells_x.value) {
    const Inside across = inside_of(w, x);
    if constexpr (kWidth == 0) {
      const Int end = across.last * kSize, step_x = w.dilation * kSize;
      fold_column(across.first * kSize, [&across, end, step_x](auto take_column) {
#pragma unroll 4
        for (Int column = across.first * kSize; column <= end; column += step_x) take_column(column, true);
      });
    } else {
      const Int start = reached_by(w, x).start;
      // Whole windows of long rows: taps follow each other. Of short ones nearly every warp has others as well.
      if (!kTall && cells.cells_x.value == kTileBlock && w.rule == WindowRule::sliding && w.dilation == 1 &&
          w.kernel == kWidth && start >= 0 && start + kWidth <= width) {
        fold_column(start * kSize, [start](auto take_column) {
#pragma unroll
          for (int t = 0; t < kWidth; ++t) take_column((start + t) * kSize, true);
        });
        continue;
      }
      Int column[kWidth];
      bool counted[kWidth];
#pragma unroll
      for (int t = 0; t < kWidth; ++t) {
        const Int tap = start + t * w.dilation;
        counted[t] = tap >= across.first && tap <= across.last;
        column[t] = tap < across.first ? across.first * kSize : counted[t] ? tap * kSize : column[t > 0 ? t - 1 : 0];
      }
      fold_column(column[0], [&column, &counted](auto take_column) {
#pragma unroll
        for (int t = 0; t < kWidth; ++t) take_column(column[t], counted[t]);
      });
    }
  }
}

}  // namespace cenote::gpu
