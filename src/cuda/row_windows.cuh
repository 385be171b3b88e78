// Windows along rows alone over dense planar tensors: rows of outputs follow each other through the whole tensor, so that neither where
// rows begin nor how long they are leaves threads without work.
#pragma once

#include "cuda/gather_down.cuh"
#include "cuda/pairs.cuh"

namespace cenote::gpu {

/// Outputs to a thread, a warp's width apart: neighbouring lanes read and store neighbours, and the loads of all are under way at once.
inline constexpr int kRowOutputs = 4;

/// Windows of kWidth taps, or of at most eight where kWidth is 8: no dilation, and no padding unless kPadded, which sums alone may be.
/// Maxima without indices that are zero or a NaN are folded again in the order that the rule asks for.
template <class T, Fold kFold, bool kIndices, int kWidth, bool kPadded>
__global__ void __launch_bounds__(kBlock)
    fold_row_windows(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  const DeviceAxis<Int>& w = p.axis[2];
  const Int lane = static_cast<Int>(threadIdx.x) % 32, warp = thread_of_grid<Int>() / 32;
  const Int first = warp * (32 * kRowOutputs) + lane, outputs = p.grid.threads;
  const Int kernel = w.kernel;
  static_assert(!kPadded || !is_extreme<kFold>);
  auto has_tap = [kernel](int t) { return kWidth < 8 || t < 2 || t < kernel; };
  const T* input = static_cast<const T*>(at.input);
  T taps[kRowOutputs][kWidth];
  Int start[kRowOutputs];  // of windows, in the tensor
#pragma unroll
  for (int i = 0; i < kRowOutputs; ++i) {
    Int row = least(first + i * 32, outputs - 1);
    const Int x = take(row, w.by_output);
    const Int column = kPadded ? x * w.stride - w.pad_begin : x * w.stride;
    start[i] = row * w.input + column;
    const T* from = input + start[i];
#pragma unroll
    for (int t = 0; t < kWidth; ++t) {
      const bool inside = !kPadded || static_cast<unsigned>(column + t) < static_cast<unsigned>(w.input);
      taps[i][t] = has_tap(t) && inside ? load_constant<1>(from + t).lane[0] : identity<kFold, T>();
    }
  }
  Folded<T, kFold> fold[kRowOutputs];
  Int winner[kRowOutputs] = {};
  if constexpr (is_extreme<kFold>) {
    auto in_order = [&](int i) {
      fold[i] = taps[i][0];
#pragma unroll
      for (int t = 1; t < kWidth; ++t) {
        if (!has_tap(t) || !beats<kFold>(taps[i][t], fold[i])) continue;
        fold[i] = taps[i][t];
        winner[i] = t;
      }
    };
    if constexpr (kIndices) {
#pragma unroll
      for (int i = 0; i < kRowOutputs; ++i) in_order(i);
    } else {
      bool doubtful = false;
#pragma unroll
      for (int i = 0; i < kRowOutputs; ++i) {
        fold[i] = taps[i][0];
#pragma unroll
        for (int t = 1; t < kWidth; ++t) fold[i] = larger_or_nan(fold[i], taps[i][t]);
        doubtful = doubtful || is_doubtful(fold[i]);
      }
      if (doubtful) {
#pragma unroll
        for (int i = 0; i < kRowOutputs; ++i) in_order(i);
      }
    }
  } else {
    const Term<kFold, T> term(p.norm_type);
#pragma unroll
    for (int i = 0; i < kRowOutputs; ++i) {
      fold[i] = Folded<T, kFold>{0};
#pragma unroll
      for (int t = 0; t < kWidth; ++t) fold[i] += term(taps[i][t]);
    }
    if constexpr (kFold == Fold::sum) divide_all<T>(p, fold);
  }
#pragma unroll
  for (int i = 0; i < kRowOutputs; ++i) {
    const Int output = first + i * 32;
    if (output >= outputs) break;
    if constexpr (is_extreme<kFold>) {
      static_cast<T*>(at.output)[output] = fold[i];
    } else {
      static_cast<T*>(at.output)[output] =
          kFold == Fold::sum ? narrow<T>(fold[i]) : finish<kFold, T>(p, fold[i], kernel);
    }
    if constexpr (kIndices) {
      Int plane = start[i];
      const Int code[1] = {p.index_kind == IndexKind::window ? winner[i] : take(plane, p.through.plane) + winner[i]};
      store_codes(at.indices, p.index_dtype, output, code);
    }
  }
}

/// Windows that share nothing, one after the other through all rows, from the one that an element is in or behind. kFilled: they fill their
/// rows, so that one follows the other without a gap.
template <bool kFilled>
struct RowWalk {
  using Int = std::int32_t;
  Int output;  // of all rows
  Int start;   // of its window, counted from that element
  Int place;   // of its window in the plane
  Int x, next_row;

  __device__ RowWalk(const Params<Int>& p, Int first) {
    const DeviceAxis<Int>& w = p.axis[2];
    Int rest = first;
    place = take(rest, p.through.plane);
    if constexpr (kFilled) {
      output = first;
      start = -take(output, w.by_stride);
    } else {
      output = first;
      const Int column = take(output, w.by_input);
      x = least(w.by_stride.quotient(column), w.output - 1);
      output = output * w.output + x;
      start = x * w.stride - column;
      next_row = w.input - column;
    }
    place += start;
  }
  __device__ void follow(const Params<Int>& p) {
    const DeviceAxis<Int>& w = p.axis[2];
    ++output;
    start += w.stride;
    place += w.stride;
    if constexpr (!kFilled) {
      if (++x < w.output) return;
      place += next_row - start;
      start = next_row;
      x = 0;
      next_row += w.input;
    }
    if (place == p.through.plane.value) place = 0;
  }
};

/// Puts one of kRun elements in its place, where it has one among them; all others stay as they are, which is zero.
template <class T, int kRun>
__device__ inline void put(Vector<T, kRun>& run, std::int32_t place, T value) {
  if constexpr (sizeof(T) == 2) {
    std::uint64_t words[kRun / 4];
    memcpy(words, &run, sizeof(run));
    unsigned short bits;
    memcpy(&bits, &value, 2);
    const std::uint64_t moved = static_cast<std::uint64_t>(bits) << (16 * (place & 3));
#pragma unroll
    for (int i = 0; i < kRun / 4; ++i) words[i] |= place >> 2 == i ? moved : 0;
    memcpy(&run, words, sizeof(run));
  } else {
#pragma unroll
    for (int i = 0; i < kRun; ++i) run.lane[i] = place == i ? value : run.lane[i];
  }
}

/// The backward of maxima over windows of two taps or more that share nothing: a thread makes 16 bytes of elements, wherever rows begin.
template <class T, class Stored, bool kFilled>
__global__ void __launch_bounds__(kBlock)
    spread_row_windows(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  constexpr int kRun = 16 / static_cast<int>(sizeof(T)), kMost = kRun / 2 + 1;
  const Int elements = p.grid.threads, first = thread_of_grid<Int>() * kRun;
  if (first >= elements) return;
  const bool taps = p.index_kind == IndexKind::window;
  const Int kernel = p.axis[2].kernel;
  RowWalk<kFilled> walk(p, first);
  T sent[kMost];
  Int codes[kMost][1], high[kMost][1], start[kMost], base[kMost];
#pragma unroll
  for (int j = 0; j < kMost; ++j) {
    start[j] = walk.start;
    base[j] = taps ? 0 : walk.place;
    sent[j] = narrow<T>(Accumulator<T>{0});
    codes[j][0] = high[j][0] = -1;
    if (walk.start < kRun && first + walk.start < elements) {
      sent[j] = load_constant<1>(static_cast<const T*>(at.grad_output) + walk.output).lane[0];
      load_stored<Stored>(at.saved_indices, walk.output, codes[j], high[j]);
    }
    walk.follow(p);
  }
  bool right = true;
  Vector<T, kRun> result{};
#pragma unroll
  for (int j = 0; j < kMost; ++j) {
    const unsigned tap = static_cast<unsigned>(codes[j][0]) - static_cast<unsigned>(base[j]);
    // The low words decide: an index that differs above them is reported, by the thread in whose elements the window begins.
    const bool none = (codes[j][0] & high[j][0]) == -1, named = tap < static_cast<unsigned>(kernel) && !none;
    if (start[j] >= 0) right = right && (none || (named && high[j][0] == 0));
    put(result, named ? start[j] + static_cast<Int>(tap) : -1, narrow<T>(Accumulator<T>{0} + widen(sent[j])));
  }
  T* to = static_cast<T*>(at.grad_input) + first;
  if (first + kRun <= elements) {
    store(to, result);
  } else {
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      if (first + i < elements) to[i] = result.lane[i];
    }
  }
  if (!right) report(at.fault, kFaultIndex);
}

/// The same for averages and sums.
template <class T, bool kFilled>
__global__ void __launch_bounds__(kBlock)
    spread_row_sums(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Sum = Accumulator<T>;
  constexpr int kRun = 16 / static_cast<int>(sizeof(T));
  const DeviceAxis<Int>& w = p.axis[2];
  const Int elements = p.grid.threads, first = thread_of_grid<Int>() * kRun;
  if (first >= elements) return;
  Int output = first;  // of all rows
  Int column = kFilled ? 0 : take(output, w.by_input);
  Int x = kFilled ? 0 : w.by_stride.quotient(column), tap = column - x * w.stride;
  if (kFilled) {
    tap = take(output, w.by_stride);
  } else {
    output = output * w.output + x;
  }
  const T* grad = static_cast<const T*>(at.grad_output);
  T sent[kRun];
  bool seen[kRun];
#pragma unroll
  for (int i = 0; i < kRun; ++i) {
    seen[i] = first + i < elements && (kFilled || (tap < w.kernel && x < w.output));
    if (i == 0 || tap == 0) {
      sent[i] = narrow<T>(Sum{0});
      if (seen[i]) sent[i] = load_constant<1>(grad + output).lane[0];
    } else {
      sent[i] = sent[i > 0 ? i - 1 : 0];
    }
    if (++tap == w.stride) {
      tap = 0;
      ++output;
      ++x;
    }
    if (!kFilled && ++column == w.input) {
      output += w.output - x;
      column = tap = x = 0;
    }
  }
  Sum share[kRun];
#pragma unroll
  for (int i = 0; i < kRun; ++i) share[i] = Sum{0} + widen(sent[i]);
  divide_all<T>(p, share);
  Vector<T, kRun> result;
#pragma unroll
  for (int i = 0; i < kRun; ++i) result.lane[i] = narrow<T>(seen[i] ? share[i] : Sum{0});
  T* to = static_cast<T*>(at.grad_input) + first;
  if (first + kRun <= elements) {
    store(to, result);
  } else {
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      if (first + i < elements) to[i] = result.lane[i];
    }
  }
}

}  // namespace cenote::gpu
