// gather_staged for neighbouring channels: a block keeps the outputs that see its tile for a few of them, gradients and taps apart; a
// thread gathers cells of elements for kLanes channels and stores them as they are.
#pragma once

#include "cuda/cells.cuh"

namespace cenote::gpu {

inline constexpr int kChannelBlock = 128;

template <int kStride>
struct ChannelCell {
  static constexpr int kRows = kStride == 1 ? 4 : 2, kColumns = kStride;
};

/// Where a window starts, and that place as a flat index.
struct WindowStart {
  std::int32_t slice, top, left, flat;
};

/// The tap that the low word of an index names, if `found`: one of its window, inside the input, which is no smaller than a window along
/// height and width.
template <int kKernel, bool kTaps, bool kDeep>
__device__ inline std::int32_t find_tap(const Params<std::int32_t>& p, const WindowStart& window, std::int32_t code,
                                        bool& found) {
  using Int = std::int32_t;
  const Int height = p.axis[1].input, width = p.axis[2].input;
  Int z = 0, y = 0, x = code;
  if constexpr (kTaps) {
    constexpr unsigned kSlice = kKernel * kKernel;
    if (kDeep) {
      z = static_cast<Int>(static_cast<unsigned>(code) / kSlice);
      x = static_cast<Int>(static_cast<unsigned>(code) % kSlice);
    }
  } else {
    // Comparisons instead of divisions: a window has at most three rows and slices. Callers' numbers: the difference may wrap around.
    x = static_cast<Int>(static_cast<unsigned>(code) - static_cast<unsigned>(window.flat));
    if (kDeep) {
      const Int slice = height * width;
#pragma unroll
      for (int t = 1; t < 3; ++t) {
        if (x >= slice) {
          x -= slice;
          ++z;
        }
      }
    }
  }
  const Int step = kTaps ? kKernel : width;
#pragma unroll
  for (int t = 1; t < kKernel; ++t) {
    if (x >= step) {
      x -= step;
      ++y;
    }
  }
  found = static_cast<unsigned>(x) < static_cast<unsigned>(kKernel) &&
          static_cast<unsigned>(window.left) + static_cast<unsigned>(x) < static_cast<unsigned>(width) &&
          static_cast<unsigned>(window.top + y) < static_cast<unsigned>(height);
  if (kDeep) {
    found = found && z < p.axis[0].kernel &&
            static_cast<unsigned>(window.slice) + static_cast<unsigned>(z) < static_cast<unsigned>(p.axis[0].input);
  }
  return static_cast<Int>((static_cast<unsigned>(z) * kKernel + static_cast<unsigned>(y)) * kKernel +
                          static_cast<unsigned>(x));
}

/// Square windows of kKernel taps, stride kStride along height and width, no dilation. kDeep: windows of up to three slices; otherwise
/// each slice is by itself. Stored: the indices' type; kTaps: they are of kind window.
template <class T, int kLanes, class Stored, bool kTaps, int kKernel, int kStride, bool kDeep>
__global__ void __launch_bounds__(kChannelBlock, 8)
    gather_staged_channels(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Tile = CellTile<ChannelCell<kStride>, kKernel, kStride, kDeep>;
  static_assert(kLanes == 4, "the taps of a thread's channels are one word");
  constexpr int kRows = Tile::kRows, kColumns = Tile::kColumns, kFirst = Tile::kFirst;
  constexpr unsigned kNone = 0xff;
  const Cells& cells = p.cells;
  Int rest = static_cast<Int>(blockIdx.x);
  const Int first_group = take_of(rest, cells.channel_blocks) * cells.groups.value;
  const Tile tile(p, rest);
  Int entry = tile.plane;
  const Int own_slice = kDeep || p.axis[0].input == 1 ? 0 : take(entry, p.axis[0].by_input);
  // Threads of one position follow each other; kChannelBlock is a multiple of them.
  Int position = static_cast<Int>(threadIdx.x);
  const Int group = take(position, cells.groups), positions = kChannelBlock / cells.groups.value;
  const Int channel = (first_group + group) * kLanes;
  const bool exists = channel < cells.channels;
  auto* values = reinterpret_cast<Vector<T, kLanes>*>(tile_memory);
  auto* taps = reinterpret_cast<unsigned*>(tile_memory + cells.results_at);

  const T* grad = static_cast<const T*>(at.grad_output) + p.grad_output.plane(entry, channel);
  const std::int64_t indices = p.indices.plane(entry, channel);
  bool right = true;
  for (Int i = position; i < cells.staged; i += positions) {
    Int above = i;
    const Int ox = tile.ox0 + take(above, cells.pieces), oy = tile.oy0 + take(above, cells.source_y);
    const Int oz = kDeep ? tile.oz0 + above : own_slice;
    Vector<T, kLanes> value{};
    unsigned packed = 0xffffffffU;
    if (exists && static_cast<unsigned>(ox) < static_cast<unsigned>(p.axis[2].output) &&
        static_cast<unsigned>(oy) < static_cast<unsigned>(p.axis[1].output) && oz < p.axis[0].output) {
      value = load_constant<kLanes>(grad + p.grad_output.at(oz, oy, ox));
      Int codes[kLanes], high[kLanes];
      load_stored<Stored>(at.saved_indices, indices + p.indices.at(oz, oy, ox), codes, high);
      WindowStart window{kDeep ? oz * p.axis[0].stride - p.axis[0].pad_begin : own_slice,
                         oy * kStride - p.axis[1].pad_begin, ox * kStride - p.axis[2].pad_begin, 0};
      // Of a window that begins before the input it may wrap around, as the difference from it does.
      window.flat = static_cast<Int>((static_cast<unsigned>(window.slice) * static_cast<unsigned>(p.axis[1].input) +
                                      static_cast<unsigned>(window.top)) *
                                         static_cast<unsigned>(p.axis[2].input) +
                                     static_cast<unsigned>(window.left));
      packed = 0;
#pragma unroll
      for (int l = 0; l < kLanes; ++l) {
        bool found;
        const Int tap = find_tap<kKernel, kTaps, kDeep>(p, window, codes[l], found);
        found = found && high[l] == 0;
        right = right && (found || (codes[l] & high[l]) == -1);
        packed |= (found ? static_cast<unsigned>(tap) : kNone) << (8 * l);
      }
    }
    values[i * cells.groups.value + group] = value;
    taps[i * cells.groups.value + group] = packed;
  }
  if (!right) report(at.fault, kFaultIndex);
  __syncthreads();
  if (!exists) return;

  const Int height = p.axis[1].input, width = p.axis[2].input;
  T* result = static_cast<T*>(at.grad_input) + p.grad_input.plane(entry, channel);
  for (Int i = position; i < cells.cells; i += positions) {
    Int above = i;
    const Int cell_x = take(above, cells.cells_x), cell_y = take(above, cells.cells_y);
    const Int z = kDeep ? tile.z0 + above : own_slice;
    const Int y = tile.y0 + cell_y * kRows, x = tile.x0 + cell_x * kColumns;
    if ((kDeep && z >= tile.z1) || y >= height || x >= width) continue;
    Accumulator<T> sum[kRows][kColumns][kLanes] = {};
    const Reach<Int> slices = kDeep ? cover_of(p.axis[0], z) : Reach<Int>{0, 0};
    for (Int oz = slices.first; oz <= slices.last; ++oz) {
      const Int row = (kDeep ? oz - tile.oz0 : 0) * tile.out_rows + cell_y * (kRows / kStride);
      const Int from = (row * tile.out_columns + cell_x * (kColumns / kStride)) * cells.groups.value + group;
      const Int slice_taps = kDeep ? (z + p.axis[0].pad_begin - oz * p.axis[0].stride) * (kKernel * kKernel) : 0;
#pragma unroll
      for (int r = 0; r < Tile::kSeenRows; ++r) {
#pragma unroll
        for (int c = 0; c < Tile::kSeenColumns; ++c) {
          const Int here = from + (r * tile.out_columns + c) * cells.groups.value;
          const Vector<T, kLanes> value = values[here];
          const unsigned packed = taps[here];
#pragma unroll
          for (int l = 0; l < kLanes; ++l) {
            const Int tap = static_cast<Int>((packed >> (8 * l)) & kNone) - slice_taps;
            const Accumulator<T> share = widen(value.lane[l]);
#pragma unroll
            for (int j = 0; j < kRows; ++j) {
#pragma unroll
              for (int k = 0; k < kColumns; ++k) {
                const int ty = j - (kFirst + r) * kStride, tx = k - (kFirst + c) * kStride;
                if (ty >= 0 && ty < kKernel && tx >= 0 && tx < kKernel && tap == ty * kKernel + tx)
                  sum[j][k][l] += share;
              }
            }
          }
        }
      }
    }
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
#pragma unroll
      for (int k = 0; k < kColumns; ++k) {
        if (static_cast<unsigned>(y + j) >= static_cast<unsigned>(height) ||
            static_cast<unsigned>(x + k) >= static_cast<unsigned>(width)) {
          continue;
        }
        Vector<T, kLanes> value;
#pragma unroll
        for (int l = 0; l < kLanes; ++l) value.lane[l] = narrow<T>(sum[j][k][l]);
        store(result + p.grad_input.at(z, y + j, x + k), value);
      }
    }
  }
}

}  // namespace cenote::gpu
