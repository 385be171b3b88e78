// Averages of adaptive windows of different sizes, which overlap by an element at most: a thread walks down a column of windows, so
// that their bounds and divisors are worked out once for many elements. An element lies in one window or in two along either axis.
#pragma once

#include "cuda/spread_down.cuh"
#include "cuda/tiles.cuh"

namespace cenote::gpu {

/// Adaptive along height and width, no more outputs than inputs, no depth. Rows of taps are added across first, then down. kLanes:
/// neighbouring channels.
template <class T, int kLanes>
__global__ void __launch_bounds__(kBlock, kLanes > 1 ? 5 : 0)
    average_adaptive(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Sum = Accumulator<T>;
  constexpr int kChunk = 4, kRows = kLanes > 1 ? 1 : 3;  // loaded at once
  const Int thread = thread_of_grid<Int>();
  if (thread >= p.grid.threads) return;
  Place<Int> place = p.grid.place(thread);
  place.y *= p.strip;
  const DeviceAxis<Int>&h = p.axis[1], &w = p.axis[2];
  const Int left = adaptive_first(w, place.x), taps = adaptive_last(w, place.x) - left;
  const Int last = least(place.y + p.strip, h.output) - 1;
  Int row = adaptive_first(h, place.y);
  const Int end = adaptive_last(h, last);
  const T* from =
      static_cast<const T*>(at.input) + p.input.plane(place.n, place.c) + row * p.input.h + left * p.input.w;
  T* output = static_cast<T*>(at.output) + p.output.plane(place.n, place.c) + p.output.at(0, place.y, place.x);
  Int oy = place.y, start = row, finish_at = adaptive_last(h, oy), next_start = adaptive_first<Int>(h, oy + 1);
  Sum sum[kLanes] = {}, next[kLanes] = {};
  Vector<T, kLanes> ahead[kRows][kChunk];
  const Staying policy = staying(p.leaves_first);
  auto fetch = [&](const T* at_row, bool exists, Int first, Vector<T, kLanes>(&to)[kChunk]) {
#pragma unroll
    for (int t = 0; t < kChunk; ++t) {
      to[t] = Vector<T, kLanes>{};
      if (exists && first + t < taps) to[t] = load_staying<kLanes>(at_row + (first + t) * p.input.w, policy);
    }
  };
  auto add = [&](const Vector<T, kLanes>(&values)[kChunk], Sum(&line)[kLanes]) {
#pragma unroll
    for (int t = 0; t < kChunk; ++t) {
#pragma unroll
      for (int i = 0; i < kLanes; ++i) line[i] += widen(values[t].lane[i]);
    }
  };
#pragma unroll
  for (int r = 0; r < kRows; ++r) fetch(from + r * p.input.h, row + r < end, 0, ahead[r]);
  for (; row < end; row += kRows) {
    Sum line[kRows][kLanes] = {};
#pragma unroll
    for (int r = 0; r < kRows; ++r) add(ahead[r], line[r]);
    for (Int first = kChunk; first < taps; first += kChunk) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        fetch(from + r * p.input.h, row + r < end, first, ahead[r]);
        add(ahead[r], line[r]);
      }
    }
    from += kRows * p.input.h;
#pragma unroll
    for (int r = 0; r < kRows; ++r) fetch(from + r * p.input.h, row + kRows + r < end, 0, ahead[r]);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (row + r >= end) break;
      const bool shared = row + r >= next_start;
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        sum[i] += line[r][i];
        if (shared) next[i] += line[r][i];
      }
      if (row + r + 1 != finish_at) continue;
      divide_all_by<T>(sum, (finish_at - start) * taps);
      Vector<T, kLanes> result;
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        result.lane[i] = narrow<T>(sum[i]);
        sum[i] = next[i];
        next[i] = Sum{0};
      }
      store(output, result);
      output += p.output.h;
      ++oy;
      start = next_start;
      finish_at = adaptive_last(h, oy);
      next_start = adaptive_first<Int>(h, oy + 1);
    }
  }
}

inline constexpr int kAdaptiveBlock = 128;

/// The same for dense planar tensors of small planes: a block keeps a few of them in shared memory. A thread keeps its window of at most
/// kMost x kMost taps, and its divisor, from plane to plane.
template <class T, int kMost>
__global__ void __launch_bounds__(kAdaptiveBlock)
    average_adaptive_planes(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Sum = Accumulator<T>;
  const DeviceAxis<Int>&h = p.axis[1], &w = p.axis[2];
  const Int outputs = h.output * w.output, elements = h.input * w.input;
  const Int first_plane = static_cast<Int>(blockIdx.x) * p.tiling.planes;
  const Int planes = least(p.tiling.planes, p.tiling.total_planes - first_plane);
  const T* source = static_cast<const T*>(at.input) + static_cast<std::int64_t>(first_plane) * elements;
  const auto* input = reinterpret_cast<const T*>(tile_memory + (reinterpret_cast<std::uintptr_t>(source) & 15));
  stage_planes<kAdaptiveBlock>(tile_memory, source, planes * elements, p.leaves_first);
  T* output = static_cast<T*>(at.output) + static_cast<std::int64_t>(first_plane) * outputs;
  // As many planes at a time as there are threads for, or one in turns.
  const Int at_once = most<Int>(p.small_plane.quotient(kAdaptiveBlock), 1);
  Int first = static_cast<Int>(threadIdx.x);
  Int window = outputs > kAdaptiveBlock ? first : take(first, p.small_plane);
  if (outputs > kAdaptiveBlock) first = 0;
  if (first >= at_once) return;
  for (; window < outputs; window += kAdaptiveBlock) {
    Int oy = window;
    const Int ox = take(oy, w.by_output);
    const Int left = adaptive_first(w, ox), columns = adaptive_last(w, ox) - left;
    const Int top = adaptive_first(h, oy), rows = adaptive_last(h, oy) - top;
    const Sum divisor = static_cast<Sum>(rows * columns), reciprocal = Sum{1} / divisor;
    const T* from = input + first * elements + top * w.input + left;
    T* to = output + first * outputs + window;
#pragma unroll 2
    for (Int plane = first; plane < planes; plane += at_once) {
      Sum sum = 0;
#pragma unroll
      for (int y = 0; y < kMost; ++y) {
        if (y < rows) {
          Sum line = 0;
#pragma unroll
          for (int x = 0; x < kMost; ++x) {
            if (x < columns) line += widen(from[y * w.input + x]);
          }
          sum += line;
        }
      }
      *to = narrow<T>(quotient(sum, divisor, reciprocal));
      from += at_once * elements;
      to += at_once * outputs;
    }
  }
}

/// The backward of the same.
template <class T, int kLanes>
__global__ void __launch_bounds__(kBlock)
    spread_adaptive(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  keep_small_operands(p, at);
  using Int = std::int32_t;
  using Sum = Accumulator<T>;
  const Int thread = thread_of_grid<Int>();
  if (thread >= p.grid.threads) return;
  Place<Int> place = p.grid.place(thread);
  place.y *= p.strip;
  const DeviceAxis<Int>&h = p.axis[1], &w = p.axis[2];
  const Reach<Int> across = cover_of(w, place.x);
  const bool two = across.last > across.first;
  Int wide[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const Int ox = i == 0 ? across.first : across.last;
    wide[i] = adaptive_last(w, ox) - adaptive_first(w, ox);
  }
  const T* grad =
      static_cast<const T*>(at.grad_output) + p.grad_output.plane(place.n, place.c) + across.first * p.grad_output.w;
  T* result =
      static_cast<T*>(at.grad_input) + p.grad_input.plane(place.n, place.c) + p.grad_input.at(0, place.y, place.x);
  // What the outputs of one row send to this column.
  struct Sent {
    Vector<T, kLanes> raw[2];
    Sum share[2][kLanes];
    Int start, end;
  };
  auto fetch = [&](Int oy, Sent& sent) {
    sent.start = oy < h.output ? adaptive_first(h, oy) : h.input;
    sent.end = oy < h.output ? adaptive_last(h, oy) : h.input;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      sent.raw[i] = Vector<T, kLanes>{};
      if (oy < h.output && (i == 0 || two))
        sent.raw[i] = load_constant<kLanes>(grad + oy * p.grad_output.h + i * p.grad_output.w);
    }
  };
  auto divide_sent = [&](Sent& sent) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int l = 0; l < kLanes; ++l) sent.share[i][l] = widen(sent.raw[i].lane[l]);
      if (i == 0 || two) divide_all_by<T>(sent.share[i], (sent.end - sent.start) * wide[i]);
    }
  };
  Int oy = cover_of(h, place.y).first;
  Sent now, next;
  fetch(oy, now);
  fetch(oy + 1, next);
  divide_sent(now);
  divide_sent(next);
  const Int end = least(place.y + p.strip, h.input);
  for (Int y = place.y; y < end; ++y) {
    if (y == now.end) {
      now = next;
      ++oy;
      fetch(oy + 1, next);
      divide_sent(next);
    }
    Vector<T, kLanes> row;
    const bool both = y >= next.start;
#pragma unroll
    for (int l = 0; l < kLanes; ++l) {
      Sum sum = Sum{0} + now.share[0][l];
      if (two) sum += now.share[1][l];
      if (both) {
        sum += next.share[0][l];
        if (two) sum += next.share[1][l];
      }
      row.lane[l] = narrow<T>(sum);
    }
    store(result, row);
    result += p.grad_input.h;
  }
}

/// The same for dense planar tensors of small planes: a block divides the gradients of a few planes once; then a thread goes down each
/// column of elements, and what they add up to leaves in pieces of 16 bytes.
template <class T>
__global__ void __launch_bounds__(kAdaptiveBlock)
    spread_adaptive_planes(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  keep_small_operands(p, at);
  using Int = std::int32_t;
  using Sum = Accumulator<T>;
  const DeviceAxis<Int>&h = p.axis[1], &w = p.axis[2];
  const Int thread = static_cast<Int>(threadIdx.x), outputs = h.output * w.output, elements = h.input * w.input;
  const Int first_plane = static_cast<Int>(blockIdx.x) * p.tiling.planes;
  const Int planes = least(p.tiling.planes, p.tiling.total_planes - first_plane);
  T* target = static_cast<T*>(at.grad_input) + static_cast<std::int64_t>(first_plane) * elements;
  auto* results = reinterpret_cast<T*>(tile_memory + (reinterpret_cast<std::uintptr_t>(target) & 15));
  auto* shares = reinterpret_cast<Sum*>(tile_memory + p.tiling.codes_at);
  const T* grad = static_cast<const T*>(at.grad_output) + static_cast<std::int64_t>(first_plane) * outputs;
  for (Int i = thread; i < planes * outputs; i += kAdaptiveBlock) {
    Int oy = i;
    const Int ox = take(oy, w.by_output);
    oy = take(oy, h.by_output);
    Sum share[1] = {widen(load_constant<1>(grad + i).lane[0])};
    divide_all_by<T>(share,
                     (adaptive_last(h, oy) - adaptive_first(h, oy)) * (adaptive_last(w, ox) - adaptive_first(w, ox)));
    shares[i] = share[0];
  }
  __syncthreads();
  for (Int item = thread; item < planes * w.input; item += kAdaptiveBlock) {
    Int plane = item;
    const Int x = take(plane, w.by_input);
    const Int before = __popc(p.columns_begin & (UINT32_MAX >> (31 - x)));  // windows that end before this column
    const bool two = (p.columns_shared >> x & 1) != 0;
    const Sum* from = shares + plane * outputs + before;
    const Sum* end = shares + (plane + 1) * outputs;
    // What the windows of one row send to this column.
    auto next_sent = [&] {
      Sum sent = 0;
      if (from < end) {
        sent += from[0];
        if (two) sent += from[1];
      }
      from += w.output;
      return sent;
    };
    Sum now = next_sent(), next = next_sent();
    T* to = results + plane * elements + x;
    unsigned begins = p.rows_begin, shared = p.rows_shared;
#pragma unroll 2
    for (Int y = 0; y < h.input; ++y) {
      if ((begins & 1) != 0) {
        now = next;
        next = next_sent();
      }
      *to = narrow<T>((shared & 1) != 0 ? now + next : now);
      to += w.input;
      begins >>= 1;
      shared >>= 1;
    }
  }
  __syncthreads();
  store_run<kAdaptiveBlock>(target, results, planes * elements);
}

}  // namespace cenote::gpu
