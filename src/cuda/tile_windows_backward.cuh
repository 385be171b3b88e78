// The backward of windows that overlap over dense planar tensors, whatever their shape, distance and dilation: a block brings the outputs
// that see its tile into shared memory, 16 bytes at a time wherever rows begin, and each element asks the few that may see it.
#pragma once

#include "cuda/gather_staged.cuh"
#include "cuda/tile_windows.cuh"

namespace cenote::gpu {

/// Which outputs may see an element along an axis: the last one, whether or not it exists, and others `dilation` before each other. Not for
/// windows that are both apart and dilated.
struct Seers {
  std::int32_t scale, offset;
  Divisor<std::int32_t> by;

  __device__ explicit Seers(const DeviceAxis<std::int32_t>& axis) {
    const bool adaptive = axis.rule == WindowRule::adaptive;
    scale = settled(adaptive ? axis.output : 1);
    offset = settled(adaptive ? axis.output - 1 : axis.pad_begin);
    const std::uint32_t magic = adaptive ? axis.by_input.magic : axis.by_stride.magic;
    by.magic = static_cast<std::uint32_t>(settled(static_cast<std::int32_t>(magic)));
    by.shift = settled(adaptive ? axis.by_input.shift : axis.by_stride.shift);
  }
  __device__ std::int32_t last(std::int32_t i) const { return by.quotient(i * scale + offset); }
};

/// Windows of kCount neighbouring outputs along an axis: where they begin, and how far it is from there to their last elements, those
/// outside the input included.
template <int kCount>
struct Spans {
  std::int32_t start[kCount], reach[kCount];

  __device__ Spans(const DeviceAxis<std::int32_t>& axis, std::int32_t o) {
    if (axis.rule == WindowRule::adaptive) {
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        const Reached window = reached_by(axis, most(o + j, 0));
        start[j] = window.start;
        reach[j] = window.taps - 1;
      }
    } else {
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        start[j] = (o + j) * axis.stride - axis.pad_begin;
        reach[j] = (axis.kernel - 1) * axis.dilation;
      }
    }
  }
};

/// Whether a distance from a window's first element is that of a tap.
__device__ inline bool is_tap(const DeviceAxis<std::int32_t>& axis, std::int32_t distance) {
  return axis.by_dilation.quotient(most(distance, 0)) * axis.dilation == distance;
}

/// Where in their plane (their row, unless kTall) the indices of kCount neighbouring outputs point; -1: to no element of the window. Low
/// words count from where the plane begins or, where kTaps, are taps. All comparisons are made: none costs as much as a branch.
template <bool kTaps, bool kTall, int kCount>
__device__ inline void find_positions(const Params<std::int32_t>& p, const Spans<1>& down, std::int32_t ox,
                                      std::int32_t (&codes)[kCount], const std::int32_t (&high)[kCount]) {
  using Int = std::int32_t;
  const DeviceAxis<Int>&h = p.axis[1], &w = p.axis[2];
  const Spans<kCount> across(w, ox);
  Int x[kCount], y[kCount];
  bool held[kCount];
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    Int place = codes[j];
    x[j] = place;
    y[j] = 0;
    held[j] = high[j] == 0;
    if constexpr (kTaps) {
      const Int taps = w.rule == WindowRule::adaptive ? across.reach[j] + 1 : w.kernel;
      Int row = 0;
      if constexpr (kTall) {  // of a byte: exact in single precision
        row = static_cast<Int>(__fdividef(static_cast<float>(place) + 0.5F, static_cast<float>(taps)));
        y[j] = down.start[0] + row * h.dilation;
      }
      const Int tap = place - row * taps;
      x[j] = across.start[j] + tap * w.dilation;
      held[j] = held[j] & (static_cast<unsigned>(tap) < static_cast<unsigned>(taps)) &
                (row * h.dilation <= down.reach[0]) & (static_cast<unsigned>(x[j]) < static_cast<unsigned>(w.input));
      place = kTall ? y[j] * w.input + x[j] : x[j];
    } else {
      if constexpr (kTall) {
        y[j] = place & INT32_MAX;
        x[j] = take(y[j], w.by_input);
        held[j] = held[j] & (place >= 0) &
                  (static_cast<unsigned>(y[j] - down.start[0]) <= static_cast<unsigned>(down.reach[0]));
      } else {
        held[j] = held[j] & (static_cast<unsigned>(place) < static_cast<unsigned>(w.input));
      }
      held[j] = held[j] & (static_cast<unsigned>(x[j] - across.start[j]) <= static_cast<unsigned>(across.reach[j]));
    }
    if constexpr (kTall) held[j] = held[j] & (static_cast<unsigned>(y[j]) < static_cast<unsigned>(h.input));
    codes[j] = place;
  }
  if (!kTaps && w.dilation > 1) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) held[j] = held[j] & is_tap(w, x[j] - across.start[j]);
  }
  if (!kTaps && kTall && h.dilation > 1) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) held[j] = held[j] & is_tap(h, y[j] - down.start[0]);
  }
#pragma unroll
  for (int j = 0; j < kCount; ++j) codes[j] = held[j] ? codes[j] : -1;
}

/// What is kept of an output: its gradient, divided where divisors differ; of maxima with where in the plane that belongs.
template <class T, Share kShare>
using SentOf = std::conditional_t<kShare == Share::index, Sent<T>, Accumulator<T>>;

/// Rows [y0, y1) and columns [x0, x1) of outputs, of which some may not exist.
struct Outputs {
  std::int32_t y0, y1, x0, x1;
};

/// Fills shared memory with the outputs of a tile's planes, the first of them `phase` places from its beginning. A thread takes
/// kStagedPiece neighbours of a row at a time, aligned in memory; the steps between rows keep them aligned in shared memory.
template <class T, Share kShare, class Stored, bool kTaps, bool kTall>
__device__ inline void stage_seers(const Params<std::int32_t>& p, const Pointers& at, const WindowTile<kTall>& tile,
                                   const Outputs& outputs, std::int32_t phase, SentOf<T, kShare>* sent) {
  using Int = std::int32_t;
  constexpr int kPiece = kStagedPiece;
  const Cells& cells = p.cells;
  const DeviceAxis<Int>&h = p.axis[1], &w = p.axis[2];
  const Int out_plane = kTall ? h.output * w.output : w.output, end = tile.planes * out_plane;
  const std::int64_t base = static_cast<std::int64_t>(tile.plane) * out_plane;
  const T* grad = settled(static_cast<const T*>(at.grad_output) + base);
  const Stored* indices = settled(static_cast<const Stored*>(at.saved_indices) + base);
  Int first_row = static_cast<Int>(threadIdx.x);
  const Int first_piece = take(first_row, cells.pieces) * kPiece;
  const Int rows = first_row < cells.rows_at_once ? tile.planes * (kTall ? cells.source_y.value : 1) : 0;
  const bool has_bases = !kTaps && (p.axis[0].input > 1 || (!kTall && h.input > 1));
  bool right = true;
#pragma unroll 1
  for (Int q = first_row; q < rows; q += cells.rows_at_once) {
    Int plane = q;
    const Int row = kTall ? take_of(plane, cells.source_y) : 0, oy = outputs.y0 + row;
    if (kTall && oy >= outputs.y1) continue;
    const bool row_exists = !kTall || static_cast<unsigned>(oy) < static_cast<unsigned>(h.output);
    const Int start = plane * out_plane + oy * w.output;  // from the tile's first plane
    const auto from = static_cast<unsigned>(base) + static_cast<unsigned>(start) + static_cast<unsigned>(outputs.x0);
    const Spans<1> down(h, kTall ? most(oy, 0) : 0);
    const Int first_code = has_bases ? first_index<kTall>(p, tile.plane + plane) : 0;
    SentOf<T, kShare>* to = sent + (phase + plane * cells.sent_plane + row * cells.sent_row - outputs.x0);
#pragma unroll 1
    for (Int ox = outputs.x0 + first_piece - static_cast<Int>(from % kPiece); ox < outputs.x1;
         ox += cells.pieces.value * kPiece) {
      Vector<T, kPiece> values{};
      Int codes[kPiece], high[kPiece];
#pragma unroll
      for (int j = 0; j < kPiece; ++j) codes[j] = high[j] = -1;
      if (row_exists && ox < w.output && ox + kPiece > 0) {
        if (start + ox + kPiece <= end) {
          values = load_constant<kPiece>(grad + (start + ox));
          if constexpr (kShare == Share::index) load_stored<Stored>(indices + (start + ox), 0, codes, high);
        } else {
#pragma unroll
          for (int j = 0; j < kPiece; ++j) {
            if (start + ox + j >= end) continue;
            values.lane[j] = load_constant<1>(grad + (start + ox + j)).lane[0];
            if constexpr (kShare == Share::index) {
              Int code[1], above[1];
              load_stored<Stored>(indices + (start + ox + j), 0, code, above);
              codes[j] = code[0];
              high[j] = above[0];
            }
          }
        }
      }
      bool exists[kPiece];
#pragma unroll
      for (int j = 0; j < kPiece; ++j)
        exists[j] = (static_cast<unsigned>(ox + j) < static_cast<unsigned>(w.output)) & row_exists;
      Vector<SentOf<T, kShare>, kPiece> kept;
      if constexpr (kShare == Share::index) {
        Int places[kPiece];
#pragma unroll
        for (int j = 0; j < kPiece; ++j)
          places[j] = static_cast<Int>(static_cast<unsigned>(codes[j]) - static_cast<unsigned>(first_code));
        find_positions<kTaps, kTall>(p, down, ox, places, high);
        bool all = true;
#pragma unroll
        for (int j = 0; j < kPiece; ++j) {
          kept.lane[j] = {values.lane[j], exists[j] ? places[j] : -1};
          all = all & ((places[j] >= 0) | !exists[j]);
        }
        if (!all) {
#pragma unroll
          for (int j = 0; j < kPiece; ++j)
            right = right && (places[j] >= 0 || !exists[j] || (codes[j] & high[j]) == -1);
        }
      } else {
#pragma unroll
        for (int j = 0; j < kPiece; ++j) {
          Accumulator<T> share[1] = {exists[j] ? widen(values.lane[j]) : Accumulator<T>{0}};
          if (!p.uniform_divisor && exists[j]) {
            const Taps<Int> single{0, 0, 1, 1, 1};
            divide_all_by<T>(share, divisor_of(p, single, kTall ? taps_of(h, oy) : single, taps_of<Int>(w, ox + j)));
          }
          kept.lane[j] = share[0];
        }
      }
      uint4 words[sizeof(kept) / 16];
      memcpy(words, &kept, sizeof(kept));
#pragma unroll
      for (int i = 0; i < static_cast<int>(sizeof(kept) / 16); ++i) reinterpret_cast<uint4*>(to + ox)[i] = words[i];
    }
  }
  if constexpr (kShare == Share::index) {
    if (!right) report(at.fault, kFaultIndex);
  }
}

/// Whether the output `back` places before `last`, which Seers names, sees element i.
__device__ inline bool is_seen(const DeviceAxis<std::int32_t>& axis, std::int32_t last, std::int32_t back,
                               std::int32_t i) {
  if (axis.rule == WindowRule::adaptive) return adaptive_last(axis, most(last - back, 0)) > i;
  const std::int32_t distance = i + axis.pad_begin - last * axis.stride + back * axis.stride * axis.dilation;
  return distance <= (axis.kernel - 1) * axis.dilation;
}

/// At most cells.seen x kAcross outputs see an element; no window leaves its slice nor, unless kTall, its row. Stored: the indices' type;
/// kTaps: they are of kind window.
template <class T, Share kShare, class Stored, bool kTaps, bool kTall, int kAcross>
__global__ void __launch_bounds__(kStagedBlock, kTall ? 8 : 10)
    gather_tile_windows(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Kept = SentOf<T, kShare>;
  const Cells& cells = p.cells;
  const DeviceAxis<Int>&h = p.axis[1], &w = p.axis[2];
  const WindowTile<kTall> tile(cells, h.input, w.input);
  auto* sent = reinterpret_cast<Kept*>(tile_memory);
  const Seers seers_x(w), seers_y(h);
  Outputs outputs{0, 1, seers_x.last(tile.x0) - (kAcross - 1) * w.dilation, seers_x.last(tile.x1 - 1) + 1};
  if constexpr (kTall) {
    outputs.y0 = seers_y.last(tile.y0) - (cells.seen - 1) * h.dilation;
    outputs.y1 = seers_y.last(tile.y1 - 1) + 1;
  }
  // Where the first of them lies in its 16 bytes.
  const auto out_row = static_cast<unsigned>(tile.plane) * static_cast<unsigned>(kTall ? h.output : 1) +
                       static_cast<unsigned>(outputs.y0);
  const auto phase =
      static_cast<Int>((out_row * static_cast<unsigned>(w.output) + static_cast<unsigned>(outputs.x0)) % kStagedPiece);
  stage_seers<T, kShare, Stored, kTaps>(p, at, tile, outputs, phase, sent);
  __syncthreads();

  const Int width = settled(w.input), source_plane = kTall ? h.input * width : width;
  const Int sent_row = settled(kTall ? cells.sent_row : cells.sent_plane), step = settled(h.dilation * sent_row);
  const Int above = settled(outputs.y0 + (cells.seen - 1) * h.dilation), apart = settled(w.dilation);
  const Int seen = settled(cells.seen), strip = settled(p.strip), at_once = settled(cells.cells_at_once);
  T* results = settled(static_cast<T*>(at.grad_input) + static_cast<std::int64_t>(tile.plane) * source_plane);
  // Strips of elements below each other.
  Int first_strip = static_cast<Int>(threadIdx.x);
  Int x = tile.x0 + take(first_strip, cells.cells_x);
  const Int strips = first_strip < at_once ? tile.planes * (kTall ? cells.cells_y.value : 1) : 0;
#pragma unroll 1
  for (; x < tile.x1; x += cells.cells_x.value) {
    const Int last_x = seers_x.last(x);
    const Kept* column = sent + (phase + last_x - outputs.x0);
    bool sees[kAcross];
#pragma unroll
    for (int j = 0; j < kAcross; ++j) sees[j] = kShare == Share::index || is_seen(w, last_x, j, x);
    // What a row of outputs sends, in ascending order.
    auto add_row = [&](const Kept* from, Int position, Accumulator<T>& sum) {
#pragma unroll
      for (int j = kAcross - 1; j >= 0; --j) {
        const Kept one = from[-j * apart];
        if constexpr (kShare == Share::index) {
          if (one.code == position) sum += widen(one.value);
        } else {
          if (sees[j]) sum += one;
        }
      }
    };
    auto finish = [&](Int to, Accumulator<T>(&sum)[1]) {
      if constexpr (kShare == Share::sum) {
        if (p.uniform_divisor) divide_all<T>(p, sum);
      }
      results[to] = narrow<T>(sum[0]);
    };
#pragma unroll 1
    for (Int q = first_strip; q < strips; q += at_once) {
      if constexpr (kTall) {
        Int plane = q, y = tile.y0 + take_of(plane, cells.cells_y) * strip;
        const Int end = least(y + strip, tile.y1), base = plane * source_plane;
        const Kept* first = column + plane * cells.sent_plane;
        Int position = y * width + x;
#pragma unroll 1
        for (; y < end; ++y, position += width) {
          const Int last_y = seers_y.last(y);
          const Kept* from = first + (last_y - above) * sent_row;
          Accumulator<T> sum[1] = {0};
#pragma unroll 1
          for (Int i = seen - 1; i >= 0; --i, from += step) {
            if (kShare == Share::index || is_seen(h, last_y, i, y)) add_row(from, position, sum[0]);
          }
          finish(base + position, sum);
        }
      } else {
        Accumulator<T> sum[1] = {0};
        add_row(column + q * sent_row, x, sum[0]);
        finish(q * width + x, sum);
      }
    }
  }
}

}  // namespace cenote::gpu
