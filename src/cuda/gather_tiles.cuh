// Gathers of dense planar tensors through shared memory: backward pools and max_unpool. A block brings the outputs that see its tile
// there once, indices checked and written as positions in the plane, gradients divided; then every element collects its own.
#pragma once

#include "cuda/tiles.cuh"

namespace cenote::gpu {

enum class Gather : std::uint8_t {
  selected,  // backward of the max family: gradients whose index is the element's place, added
  average,   // backward of sums and averages: every gradient, added
  last,      // max_unpool: the last value whose index is the element's place
};

/// Where in the plane an index points; -1 for one that says "none", or that is no tap of its window, which is `wrong`.
__device__ inline std::int32_t checked_position(const Params<std::int32_t>& p, std::int64_t code, std::int32_t oz,
                                                std::int32_t oy, std::int32_t ox, bool& wrong) {
  using Int = std::int32_t;
  const Int o[3] = {oz, oy, ox};
  wrong = false;
  if (code == -1) return -1;
  wrong = true;
  Int at[3];
  if (p.index_kind == IndexKind::window) {
    const Int whole_h = taps_of(p.axis[1], oy).whole, whole_w = taps_of(p.axis[2], ox).whole;
    if (code < 0 || code > INT32_MAX) return -1;
    const Int row = row_of_tap(static_cast<Int>(code), whole_w), slice = row_of_tap(row, whole_h);
    const Int tap[3] = {slice, row - slice * whole_h, static_cast<Int>(code) - row * whole_w};
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      const Taps<Int> taps = taps_of(p.axis[a], o[a]);
      if (tap[a] < taps.low || tap[a] >= taps.high) return -1;
      at[a] = taps.start + tap[a] * p.axis[a].dilation;
    }
  } else {
    if (code < 0 || code >= static_cast<std::int64_t>(p.axis[0].input) * p.axis[1].input * p.axis[2].input) return -1;
    Int rest = static_cast<Int>(code);
    at[2] = take(rest, p.axis[2].by_input);
    at[1] = p.axis[0].input == 1 ? rest : take(rest, p.axis[1].by_input);
    at[0] = p.axis[0].input == 1 ? 0 : rest;
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      if (a == 0 && p.axis[0].input == 1 && p.axis[0].kernel == 1) continue;
      if (p.axis[a].rule == WindowRule::adaptive) {
        const Taps<Int> taps = taps_of(p.axis[a], o[a]);
        if (at[a] < taps.start || at[a] >= taps.start + taps.whole) return -1;
      } else {
        const Int distance = at[a] - (o[a] * p.axis[a].stride - p.axis[a].pad_begin);
        if (distance < 0 || distance > (p.axis[a].kernel - 1) * p.axis[a].dilation) return -1;
        if (p.axis[a].dilation != 1 && p.axis[a].by_dilation.quotient(distance) * p.axis[a].dilation != distance)
          return -1;
      }
    }
  }
  wrong = false;
  return (at[0] * p.axis[1].input + at[1]) * p.axis[2].input + at[2];
}

/// What a gather keeps of an output.
template <class T, Gather kGather>
using Kept = std::conditional_t<kGather == Gather::average, Accumulator<T>, T>;

/// The outputs that see a tile of elements: [z0, z1) x [y0, y1) x all columns of each of its planes.
template <class T, Gather kGather>
struct Collected {
  const Kept<T, kGather>* values;
  const std::int32_t* positions;
  std::int32_t z0, z1, y0, y1;
  std::int32_t width, rows, slices;  // of the arrays

  __device__ std::int32_t row_at(std::int32_t plane, std::int32_t z, std::int32_t y) const {
    return ((plane * slices + z - z0) * rows + y - y0) * width;
  }
};

/// `divided`: averages are divided here, not after they are gathered.
template <class T, Gather kGather>
__device__ inline Collected<T, kGather> collect(const Params<std::int32_t>& p, const Pointers& at, const Tile& tile,
                                                bool divided) {
  using Int = std::int32_t;
  Collected<T, kGather> result;
  auto* values = reinterpret_cast<Kept<T, kGather>*>(tile_memory);
  auto* positions = reinterpret_cast<Int*>(tile_memory + p.tiling.codes_at);
  result.values = values;
  result.positions = positions;
  result.z0 = cover_of(p.axis[0], tile.z0).first;
  result.z1 = cover_of(p.axis[0], tile.z1 - 1).last + 1;
  result.y0 = cover_of(p.axis[1], tile.y0).first;
  result.y1 = cover_of(p.axis[1], tile.y1 - 1).last + 1;
  result.width = p.axis[2].output;
  result.rows = p.tiling.source_y.value;
  result.slices = p.tiling.source_z.value;
  const Int out_slice = p.axis[1].output * result.width, out_plane = p.axis[0].output * out_slice;
  const T* source = static_cast<const T*>(kGather == Gather::last ? at.input : at.grad_output) + tile.plane * out_plane;
  const Int count = tile.planes * result.slices * result.rows * result.width;
#pragma unroll 2
  for (Int i = static_cast<Int>(threadIdx.x); i < count; i += kBlock) {
    Int rest = i;
    const Int x = take_of(rest, p.axis[2].by_output);
    const Int y = result.y0 + take_of(rest, p.tiling.source_y);
    const Int z = result.z0 + take_of(rest, p.tiling.source_z);
    if (y >= result.y1 || z >= result.z1) continue;
    const Int place = rest * out_plane + z * out_slice + y * result.width + x;
    const T value = source[place];
    if constexpr (kGather == Gather::average) {
      Accumulator<T> share = widen(value);
      if (!p.uniform_divisor) {
        share = divide<T>(share, divisor_of(p, taps_of(p.axis[0], z), taps_of(p.axis[1], y), taps_of(p.axis[2], x)));
      } else if (divided) {
        share = average_of<T>(p, share, 1);
      }
      values[i] = share;
    } else {
      values[i] = value;
      std::int64_t code[1];
      load_codes(at.saved_indices, p.index_dtype, tile.plane * out_plane + place, code);
      bool wrong;
      if (p.plain_windows) {
        Int position;
        wrong = code[0] != -1 && !is_flat_tap(p, taps_of(p.axis[0], z), y * p.axis[1].stride - p.axis[1].pad_begin,
                                              x * p.axis[2].stride - p.axis[2].pad_begin, code[0], position);
        positions[i] = wrong || code[0] == -1 ? -1 : position;
      } else {
        positions[i] = checked_position(p, code[0], z, y, x, wrong);
      }
      if (kGather == Gather::last && (wrong || code[0] == -1)) *static_cast<volatile unsigned*>(at.irregular) = 1;
      if (kGather == Gather::selected && wrong) report(at.fault, kFaultIndex);
    }
  }
  __syncthreads();
  return result;
}

template <class T, Gather kGather>
using Gathered = std::conditional_t<kGather == Gather::last, T, Accumulator<T>>;

template <class T, Gather kGather>
__device__ inline Gathered<T, kGather> nothing_gathered() {
  if constexpr (kGather == Gather::last) {
    return narrow<T>(Accumulator<T>{0});
  } else {
    return Accumulator<T>{0};
  }
}

template <class T, Gather kGather>
__device__ inline T gathered(const Params<std::int32_t>& p, Gathered<T, kGather> value) {
  if constexpr (kGather == Gather::last) {
    return value;
  } else if constexpr (kGather == Gather::average) {
    return narrow<T>(p.uniform_divisor ? average_of<T>(p, value, 1) : value);
  } else {
    return narrow<T>(value);
  }
}

/// The same where averages were divided before.
template <class T, Gather kGather>
__device__ inline T undivided(Gathered<T, kGather> value) {
  if constexpr (kGather == Gather::last) {
    return value;
  } else {
    return narrow<T>(value);
  }
}

template <class T, Gather kGather>
__device__ inline void gather_one(const Collected<T, kGather>& from, std::int32_t at, std::int32_t position,
                                  Gathered<T, kGather>& value) {
  if constexpr (kGather == Gather::average) {
    value += from.values[at];
  } else {
    if (from.positions[at] == position) {
      if constexpr (kGather == Gather::last) {
        value = from.values[at];
      } else {
        value += widen(from.values[at]);
      }
    }
  }
}

inline constexpr int kTabled = 128;

/// Which outputs see the rows and columns of a plane: worked out once by a block where an adaptive rule makes that expensive.
struct Covers {
  std::int16_t first[2][kTabled], last[2][kTabled];

  __device__ void fill(const Params<std::int32_t>& p) {
#pragma unroll
    for (int a = 0; a < 2; ++a) {
      for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < p.axis[a + 1].input; i += kBlock) {
        const Reach<std::int32_t> reach = cover_of(p.axis[a + 1], i);
        first[a][i] = static_cast<std::int16_t>(reach.first);
        last[a][i] = static_cast<std::int16_t>(reach.last);
      }
    }
  }
  __device__ Reach<std::int32_t> at(int axis, std::int32_t i) const { return {first[axis - 1][i], last[axis - 1][i]}; }
};

/// Any windows; kRows elements below each other share their columns' arithmetic.
template <class T, Gather kGather, int kRows>
__global__ void __launch_bounds__(kBlock)
    gather_tiles(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  __shared__ Covers covers;
  const bool tabled = (p.axis[1].rule == WindowRule::adaptive || p.axis[2].rule == WindowRule::adaptive) &&
                      p.axis[1].input <= kTabled && p.axis[2].input <= kTabled;
  if (tabled) covers.fill(p);
  const Tile tile = tile_of(p.tiling, p.axis[0].input, p.axis[1].input);
  const Collected<T, kGather> from = collect<T, kGather>(p, at, tile, false);
  const Int width = p.axis[2].input, slice = p.axis[1].input * width, plane = p.axis[0].input * slice;
  T* result = static_cast<T*>(kGather == Gather::last ? at.output : at.grad_input) + tile.plane * plane;
  const bool dilated_x = p.axis[2].dilation != 1, dilated_y = p.axis[1].dilation != 1,
             dilated_z = p.axis[0].dilation != 1;
  for (Int item = static_cast<Int>(threadIdx.x); item < p.tiling.items; item += kBlock) {
    Int rest = item;
    const Int x = take(rest, p.tiling.items_x);
    const Int first = tile.y0 + take(rest, p.tiling.items_y) * kRows;
    const Int z = p.axis[0].input == 1 ? 0 : tile.z0 + take(rest, p.tiling.items_z);
    if (first >= tile.y1 || z >= tile.z1 || rest >= tile.planes) continue;
    const Reach<Int> across = tabled ? covers.at(2, x) : cover_of(p.axis[2], x);
    const Reach<Int> depth = p.axis[0].input == 1 && p.axis[0].output == 1 ? Reach<Int>{0, 0} : cover_of(p.axis[0], z);
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      const Int y = first + j;
      if (y >= tile.y1) break;
      const Int position = z * slice + y * width + x;
      Gathered<T, kGather> value = nothing_gathered<T, kGather>();
      const Reach<Int> down = tabled ? covers.at(1, y) : cover_of(p.axis[1], y);
      for (Int oz = depth.first; oz <= depth.last; ++oz) {
        if (dilated_z && tap_of(p.axis[0], oz, z) < 0) continue;
        for (Int oy = down.first; oy <= down.last; ++oy) {
          if (dilated_y && tap_of(p.axis[1], oy, y) < 0) continue;
          const Int row = from.row_at(rest, oz, oy);
          for (Int ox = across.first; ox <= across.last; ++ox) {
            if (dilated_x && tap_of(p.axis[2], ox, x) < 0) continue;
            gather_one<T, kGather>(from, row + ox, position, value);
          }
        }
      }
      result[rest * plane + position] = gathered<T, kGather>(p, value);
    }
  }
}

/// Windows that do not overlap, no dilation: every element has one output or none. A thread makes 16 bytes of results that follow
/// each other in memory, across rows and planes, counting columns and outputs along instead of dividing.
template <class T, Gather kGather>
__global__ void __launch_bounds__(kBlock)
    spread_tiles(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  constexpr int kRun = 16 / static_cast<int>(sizeof(T));
  const Tile tile = tile_of(p.tiling, p.axis[0].input, p.axis[1].input);
  const Collected<T, kGather> from = collect<T, kGather>(p, at, tile, true);
  const DeviceAxis<Int>&h = p.axis[1], &w = p.axis[2];
  const Int width = w.input, slice = h.input * width, plane = p.axis[0].input * slice;
  T* result = static_cast<T*>(kGather == Gather::last ? at.output : at.grad_input);
  if (plane == width && w.output == 1 && w.kernel == w.input) {  // global pools: a warp to a plane
    for (Int q = static_cast<Int>(threadIdx.x) / 32; q < tile.planes; q += kBlock / 32) {
      T* to = result + (tile.plane + q) * plane;
      for (Int x = static_cast<Int>(threadIdx.x) % 32; x < width; x += 32) {
        Gathered<T, kGather> value = nothing_gathered<T, kGather>();
        gather_one<T, kGather>(from, q, x, value);
        to[x] = undivided<T, kGather>(value);
      }
    }
    return;
  }
  if (width >= 24 && width <= kBlock) {  // a thread to a column, as many rows at once as there are threads for
    Int group = static_cast<Int>(threadIdx.x);
    const Int x = take(group, w.by_input), groups = kBlock / width;
    if (group >= groups) return;
    const Int ox = w.by_stride.quotient(x + w.pad_begin);
    const bool seen_x = x + w.pad_begin - ox * w.stride < w.kernel && ox < w.output;
    for (Int q = 0; q < tile.planes; ++q) {
      for (Int z = tile.z0; z < tile.z1; ++z) {
        const Int oz = p.axis[0].input == 1 ? 0 : p.axis[0].by_stride.quotient(z + p.axis[0].pad_begin);
        const bool seen_z = p.axis[0].input == 1 ? p.axis[0].pad_begin < p.axis[0].kernel
                                                 : z + p.axis[0].pad_begin - oz * p.axis[0].stride < p.axis[0].kernel &&
                                                       oz < p.axis[0].output;
        T* to = result + (tile.plane + q) * plane + z * slice + x;
#pragma unroll 4
        for (Int y = tile.y0 + group; y < tile.y1; y += groups) {
          const Int oy = h.by_stride.quotient(y + h.pad_begin);
          Gathered<T, kGather> value = nothing_gathered<T, kGather>();
          if (seen_x && seen_z && y + h.pad_begin - oy * h.stride < h.kernel && oy < h.output) {
            gather_one<T, kGather>(from, from.row_at(q, oz, oy) + ox, z * slice + y * width + x, value);
          }
          to[y * width] = undivided<T, kGather>(value);
        }
      }
    }
    return;
  }
  // The tile is one run of elements: planes, or slices, or rows of one slice.
  const std::int64_t start = tile.plane * plane + tile.z0 * slice + tile.y0 * width;
  const Int count = ((tile.planes - 1) * p.axis[0].input + tile.z1 - tile.z0 - 1) * slice + (tile.y1 - tile.y0) * width;
  const auto ahead = static_cast<Int>((reinterpret_cast<std::uintptr_t>(result + start) & 15) / sizeof(T));
  result += start;
  const Int first_ox = w.by_stride.quotient(w.pad_begin), first_in_x = w.pad_begin - first_ox * w.stride;
  for (Int run = static_cast<Int>(threadIdx.x) * kRun - ahead; run < count; run += kBlock * kRun) {
    const Int first = most(run, 0);
    Int x, y, z, local = first + tile.z0 * slice + tile.y0 * width;  // from the tile's first plane on
    x = take_of(local, w.by_input);
    y = take_of(local, h.by_input);
    z = take_of(local, p.axis[0].by_input);
    Int position = z * slice + y * width + x;
    Int ox = w.by_stride.quotient(x + w.pad_begin), in_x = x + w.pad_begin - ox * w.stride;
    Int oy = h.by_stride.quotient(y + h.pad_begin), in_y = y + h.pad_begin - oy * h.stride;
    Int row = -1;  // where the outputs of this row begin; -1: none sees it
    auto enter_row = [&] {
      bool seen = in_y < h.kernel && oy < h.output;
      Int oz = 0;
      if (p.axis[0].input > 1) {
        oz = p.axis[0].by_stride.quotient(z + p.axis[0].pad_begin);
        seen = seen && z + p.axis[0].pad_begin - oz * p.axis[0].stride < p.axis[0].kernel && oz < p.axis[0].output;
      }
      row = seen ? from.row_at(local, oz, oy) : -1;
    };
    enter_row();
    Vector<T, kRun> values;
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      Gathered<T, kGather> value = nothing_gathered<T, kGather>();
      if (run + i >= 0 && run + i < count) {
        if (row >= 0 && in_x < w.kernel && ox < w.output) gather_one<T, kGather>(from, row + ox, position, value);
        ++position;
        ++x;
        if (++in_x == w.stride) in_x = 0, ++ox;
        if (x == width) {
          x = 0;
          ox = first_ox;
          in_x = first_in_x;
          if (++in_y == h.stride) in_y = 0, ++oy;
          if (++y == h.input) {
            y = 0;
            oy = h.by_stride.quotient(h.pad_begin);
            in_y = h.pad_begin - oy * h.stride;
            if (++z == p.axis[0].input) z = 0, position = 0, ++local;
          }
          enter_row();
        }
      }
      values.lane[i] = undivided<T, kGather>(value);
    }
    if (run >= 0 && run + kRun <= count) {
      store(result + run, values);
    } else {
#pragma unroll
      for (int i = 0; i < kRun; ++i) {
        if (run + i >= 0 && run + i < count) result[run + i] = values.lane[i];
      }
    }
  }
}

/// gather_cells from shared memory: kKernel and kStride along height and width, padding kPhase modulo the stride.
template <class T, Gather kGather, int kKernel, int kStride, int kPhase, int kRows, int kColumns>
__global__ void __launch_bounds__(kBlock)
    gather_tile_cells(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  constexpr int kFirst = ceil_quotient(kPhase - kKernel + 1, kStride);
  constexpr int kOutputRows = floor_quotient(kPhase + kRows - 1, kStride) - kFirst + 1;
  constexpr int kOutputColumns = floor_quotient(kPhase + kColumns - 1, kStride) - kFirst + 1;
  const Tile tile = tile_of(p.tiling, p.axis[0].input, p.axis[1].input);
  const Collected<T, kGather> from = collect<T, kGather>(p, at, tile, false);
  const Int width = p.axis[2].input, slice = p.axis[1].input * width, plane = p.axis[0].input * slice;
  T* result = static_cast<T*>(kGather == Gather::last ? at.output : at.grad_input) + tile.plane * plane;
  const bool flat = p.axis[0].input == 1 && p.axis[0].output == 1;
  for (Int item = static_cast<Int>(threadIdx.x); item < p.tiling.items; item += kBlock) {
    Int rest = item;
    const Int x = take(rest, p.tiling.items_x) * kColumns;
    const Int y = tile.y0 + take(rest, p.tiling.items_y) * kRows;
    const Int z = p.axis[0].input == 1 ? 0 : tile.z0 + take(rest, p.tiling.items_z);
    if (y >= tile.y1 || z >= tile.z1 || rest >= tile.planes) continue;
    const Reach<Int> depth = flat ? Reach<Int>{0, 0} : cover_of(p.axis[0], z);
    const Int first_row = p.axis[1].by_stride.quotient(y + p.axis[1].pad_begin) + kFirst;
    const Int first_column = p.axis[2].by_stride.quotient(x + p.axis[2].pad_begin) + kFirst;
    const Int corner = z * slice + y * width + x;
    Gathered<T, kGather> value[kRows][kColumns];
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
#pragma unroll
      for (int i = 0; i < kColumns; ++i) value[j][i] = nothing_gathered<T, kGather>();
    }
    for (Int oz = depth.first; oz <= depth.last; ++oz) {
      if (!flat && tap_of(p.axis[0], oz, z) < 0) continue;
#pragma unroll
      for (int r = 0; r < kOutputRows; ++r) {
        const Int oy = first_row + r;
        if (oy < from.y0 || oy >= from.y1) continue;
        const Int row = from.row_at(rest, oz, oy) + first_column;
#pragma unroll
        for (int c = 0; c < kOutputColumns; ++c) {
          if (static_cast<unsigned>(first_column + c) >= static_cast<unsigned>(from.width)) continue;
          Gathered<T, kGather> share;
          Int relative = 0;
          if constexpr (kGather == Gather::selected) {
            share = widen(from.values[row + c]);
          } else {
            share = from.values[row + c];
          }
          if constexpr (kGather != Gather::average) relative = from.positions[row + c] - corner;
#pragma unroll
          for (int j = 0; j < kRows; ++j) {
#pragma unroll
            for (int i = 0; i < kColumns; ++i) {
              const int ty = kPhase + j - (kFirst + r) * kStride, tx = kPhase + i - (kFirst + c) * kStride;
              if (ty >= 0 && ty < kKernel && tx >= 0 && tx < kKernel) {
                if constexpr (kGather == Gather::average) {
                  value[j][i] += share;
                } else if constexpr (kGather == Gather::selected) {
                  if (relative == j * width + i) value[j][i] += share;
                } else {
                  if (relative == j * width + i) value[j][i] = share;
                }
              }
            }
          }
        }
      }
    }
    T* to = result + rest * plane + corner;
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      if (y + j >= tile.y1) break;
      if (kColumns > 1 && p.paired_columns) {
        Vector<T, kColumns> pair;
#pragma unroll
        for (int i = 0; i < kColumns; ++i) pair.lane[i] = gathered<T, kGather>(p, value[j][i]);
        store(to + j * width, pair);
        continue;
      }
#pragma unroll
      for (int i = 0; i < kColumns; ++i) {
        if (x + i < width) to[j * width + i] = gathered<T, kGather>(p, value[j][i]);
      }
    }
  }
}

}  // namespace cenote::gpu
