// The backward of max pools whose windows overlap much: too many outputs see an element for it to ask them all, and few elements win
// any. A block owns a part of a plane, or whole planes, and keeps the outputs that see it in shared memory: their gradients, and which
// of its elements they chose. Every winner learns its first and its last output; a warp to each then walks from the one to the other
// and adds what is the winner's, in ascending output order. Only integers are raced for, and only by minimum and maximum.
#pragma once

#include "cuda/scatter.cuh"

namespace cenote::gpu {

inline constexpr int kWinnerBlock = 512;
inline constexpr int kMostPartPlanes = 32;
inline constexpr std::uint16_t kNoElement = 0xffff;

/// How indices are stored: std::int64_t for flat ones of that type, std::uint8_t and std::uint16_t for taps of windows, void for whatever
/// the parameters say.
template <class Stored>
inline constexpr bool kStoresTaps = std::is_same_v<Stored, std::uint8_t> || std::is_same_v<Stored, std::uint16_t>;
/// One of them as it is loaded: nothing is done with it before it is used, so that nothing waits for it.
template <class Stored>
using CodeOf = std::conditional_t<std::is_void_v<Stored>, std::int64_t, Stored>;
template <class Stored>
inline constexpr CodeOf<Stored> kNoCode = static_cast<CodeOf<Stored>>(-1);

/// Where an index points: row and column of the plane. False for one that points nowhere; `wrong` unless it says so itself.
template <class Stored>
__device__ inline bool locate(const Params<std::int32_t>& p, CodeOf<Stored> code, std::int32_t top, std::int32_t left,
                              std::int32_t& y, std::int32_t& x, bool& wrong) {
  using Int = std::int32_t;
  using Unsigned = std::conditional_t<kStoresTaps<Stored>, std::uint32_t, std::uint64_t>;
  const Int height = p.axis[1].input, width = p.axis[2].input, kernel_w = p.axis[2].kernel;
  Int rest = static_cast<Int>(code);
  bool right;
  if (kStoresTaps<Stored> || (std::is_void_v<Stored> && p.index_kind == IndexKind::window)) {
    right = static_cast<Unsigned>(code) < static_cast<Unsigned>(p.axis[1].kernel * kernel_w);
    x = left + take(rest, p.parts.by_kernel_w);
    y = top + rest;
    right = right && static_cast<unsigned>(x) < static_cast<unsigned>(width) &&
            static_cast<unsigned>(y) < static_cast<unsigned>(height);
  } else {
    right = static_cast<Unsigned>(code) < static_cast<Unsigned>(height * width);
    x = take(rest, p.axis[2].by_input);
    y = rest;
    right = right && static_cast<unsigned>(y - top) < static_cast<unsigned>(p.axis[1].kernel) &&
            static_cast<unsigned>(x - left) < static_cast<unsigned>(kernel_w);
  }
  wrong = wrong || (!right && code != kNoCode<Stored>);
  return right;
}

/// An index. kOnce: nobody else reads it.
template <class Stored, bool kOnce = false>
__device__ inline CodeOf<Stored> load_code(const Params<std::int32_t>& p, const void* indices, std::int64_t offset) {
  if constexpr (std::is_void_v<Stored>) {
    std::int64_t code[1];
    load_codes(indices, p.index_dtype, offset, code);
    return code[0];
  } else {
    const Stored* from = static_cast<const Stored*>(indices) + offset;
    return kOnce ? load_streaming(from) : load_constant<1>(from).lane[0];
  }
}

/// Sliding windows along height and width, no dilation, no depth.
template <class T, class Stored>
__global__ void __launch_bounds__(kWinnerBlock)
    add_for_winners(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  extern __shared__ __align__(16) char part_memory[];
  __shared__ const T* grads_of[kMostPartPlanes];
  __shared__ std::int64_t indices_of[kMostPartPlanes];
  __shared__ T* results_of[kMostPartPlanes];
  __shared__ Int winners;
  constexpr int kQueued = 1024 / static_cast<int>(sizeof(T));
  __shared__ T queues[kWinnerBlock / 32][kQueued];
  const Parts& parts = p.parts;
  auto* firsts = reinterpret_cast<Int*>(part_memory);
  auto* lasts = reinterpret_cast<Int*>(part_memory + parts.lasts_at);
  auto* sent = reinterpret_cast<T*>(part_memory + parts.sent_at);
  auto* chosen = reinterpret_cast<std::uint16_t*>(part_memory + parts.chosen_at) + 1;  // with one before the first
  auto* list = reinterpret_cast<std::uint16_t*>(part_memory + parts.list_at);
  const Int thread = static_cast<Int>(threadIdx.x);

  Int rest = static_cast<Int>(blockIdx.x), group = 0;
  if (parts.channels_fastest) group = take(rest, parts.groups);
  const Int x0 = take_of(rest, parts.across) * parts.columns, y0 = take_of(rest, parts.down) * parts.rows;
  if (!parts.channels_fastest) group = rest;
  const Int planes = parts.planes.value;
  const Int present = least(planes, (parts.channels_fastest ? parts.channels.value : parts.total) - group * planes);
  if (thread < present) {
    Int c = group * planes + thread, n = rest;
    if (!parts.channels_fastest) {
      n = c;
      c = take(n, parts.channels);
    }
    grads_of[thread] = static_cast<const T*>(at.grad_output) + p.grad_output.plane(n, c);
    indices_of[thread] = p.indices.plane(n, c);
    results_of[thread] =
        static_cast<T*>(at.grad_input) + p.grad_input.plane(n, c) + y0 * p.grad_input.h + x0 * p.grad_input.w;
  }
  const Int elements = parts.elements.value, outputs = parts.outputs.value;  // places for one plane's in the arrays
  for (Int i = thread; i < planes * elements; i += kWinnerBlock) {
    firsts[i] = INT32_MAX;
    lasts[i] = -1;
  }
  // A plane's last places stay empty, so that no run of one plane goes on in the next.
  const Int out_columns = parts.out_columns.value, out_rows = parts.out_rows;
  for (Int i = thread; i < planes * (outputs - out_rows * out_columns); i += kWinnerBlock) {
    const Int q = i % planes;
    chosen[q * outputs + out_rows * out_columns + i / planes] = kNoElement;
  }
  if (thread == 0) {
    winners = 0;
    chosen[-1] = kNoElement;
  }
  __syncthreads();

  const Int rows = least(parts.rows, p.axis[1].input - y0), columns = least(parts.columns, p.axis[2].input - x0);
  const Int first_y = cover_of(p.axis[1], y0).first, last_y = cover_of<Int>(p.axis[1], y0 + rows - 1).last;
  const Int first_x = cover_of(p.axis[2], x0).first, last_x = cover_of<Int>(p.axis[2], x0 + columns - 1).last;
  bool wrong = false;
  // A thread to a column, as many rows at once as there are threads for. Neighbours take neighbouring memory.
  auto for_columns = [&](const Divisor<Int>& across, Int rows_at_once, auto visit) {
    const Int all = planes * across.value;
    Int row = 0, column = thread;
    if (rows_at_once > 1) row = column / all, column -= row * all;
    if (row >= rows_at_once) return;
    for (; column < all; column += kWinnerBlock) {
      Int q, x = column;
      if (parts.channels_fastest) {
        q = take(x, parts.planes);
      } else {
        q = column;
        x = take(q, across);
      }
      visit(q, x, row);
    }
  };
  for_columns(parts.out_columns, parts.out_rows_at_once, [&](Int q, Int column, Int first) {
    const Int ox = first_x + column, step = parts.out_rows_at_once;
    const bool exists = q < present && ox <= last_x;
    const Int left = ox * p.axis[2].stride - p.axis[2].pad_begin;
    Int slot = q * outputs + first * out_columns + column;
    const T* grad = grads_of[q] + (first_y + first) * p.grad_output.h + ox * p.grad_output.w;
    std::int64_t index = indices_of[q] + (first_y + first) * p.indices.h + ox * p.indices.w;
#pragma unroll 4
    for (Int row = first; row < out_rows; row += step) {
      const Int oy = first_y + row;
      std::uint16_t element = kNoElement;
      if (exists && oy <= last_y) {
        const CodeOf<Stored> code = load_code<Stored>(p, at.saved_indices, index);
        sent[slot] = load_constant<1>(grad).lane[0];
        Int y, x;
        const bool points = locate<Stored>(p, code, oy * p.axis[1].stride - p.axis[1].pad_begin, left, y, x, wrong);
        y -= y0;
        x -= x0;
        if (points && static_cast<unsigned>(y) < static_cast<unsigned>(rows) &&
            static_cast<unsigned>(x) < static_cast<unsigned>(columns)) {
          element = static_cast<std::uint16_t>(q * elements + y * parts.columns + x);
        }
      }
      chosen[slot] = element;
      slot += step * out_columns;
      grad += step * p.grad_output.h;
      index += step * p.indices.h;
    }
  });
  __syncthreads();

  // Outputs in a row that chose the same element speak through the first and the last of them.
  for (Int i = thread; i < present * outputs - 1; i += kWinnerBlock) {
    const std::uint16_t element = chosen[i];
    if (element == kNoElement) continue;
    if (chosen[i - 1] != element) atomicMin(&firsts[element], i);
    if (chosen[i + 1] != element) atomicMax(&lasts[element], i);
  }
  __syncthreads();

  // Losers get their zero, winners a place in the list; its order changes no result.
  for_columns(parts.by_columns, parts.rows_at_once, [&](Int q, Int x, Int first) {
    if (q >= present || x >= columns) return;
    const Int step = parts.rows_at_once;
    T* result = results_of[q] + first * p.grad_input.h + x * p.grad_input.w;
    for (Int row = first; row < rows; row += step) {
      const Int element = q * elements + row * parts.columns + x;
      if (firsts[element] != INT32_MAX) {
        list[atomicAdd(&winners, 1)] = static_cast<std::uint16_t>(element);
      } else {
        *result = narrow<T>(Accumulator<T>{0});
      }
      result += step * p.grad_input.h;
    }
  });
  __syncthreads();

  // A warp to a winner: its lanes look at rows of outputs together and put what is the winner's into a queue, in order; then it is
  // added one by one.
  const Int lane = thread % 32;
  T* queue = queues[thread / 32];
  for (Int i = thread / 32; i < winners; i += kWinnerBlock / 32) {
    const Int winner = list[i];
    Int q = winner;
    Int y = take(q, parts.elements);
    const Int x = take(y, parts.by_columns);
    const Reach<Int> across = cover_of<Int>(p.axis[2], x0 + x);
    const Int left = across.first - first_x, right = across.last - first_x;
    Int row = firsts[winner] - q * outputs, end = lasts[winner] - q * outputs;
    Int begin = take(row, parts.out_columns);
    const Int end_x = take(end, parts.out_columns);
    Accumulator<T> sum = 0;
    Int queued = 0;
    auto add_queued = [&] {
      __syncwarp();
#pragma unroll 8
      for (Int j = 0; j < queued; ++j) sum += widen(queue[j]);
      __syncwarp();
      queued = 0;
    };
    for (; row <= end; ++row, begin = left) {
      const Int stop = row == end ? end_x : right, from = q * outputs + row * out_columns;
      for (; begin <= stop; begin += 32) {
        const Int ox = begin + lane;
        const bool mine = ox <= stop && chosen[from + ox] == winner;
        const unsigned found = __ballot_sync(0xffffffffU, mine);
        if (mine) queue[queued + __popc(found & ((1U << lane) - 1))] = sent[from + ox];
        queued += __popc(found);
        if (queued > kQueued - 32) add_queued();
      }
    }
    add_queued();
    if (lane == 0) results_of[q][y * p.grad_input.h + x * p.grad_input.w] = narrow<T>(sum);
  }
  if (wrong) report(at.fault, kFaultIndex);
}

}  // namespace cenote::gpu
