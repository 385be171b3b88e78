// The backward of windows of several rows that share nothing, dense planar tensors: a thread makes 16 bytes of elements that follow each
// other through the whole tensor, so that it does not matter where rows begin, and asks the one output that may see each.
#pragma once

#include "cuda/gather_down.cuh"
#include "cuda/tiles.cuh"

namespace cenote::gpu {

/// Windows without dilation and padding that leave no slice; rows have at least as many elements as 16 bytes. Maxima, averages and sums
/// that have the same divisor. Stored: the indices' type; kTaps: they are of kind window.
template <class T, Share kShare, class Stored, bool kTaps>
__global__ void __launch_bounds__(kBlock)
    spread_apart(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Sum = Accumulator<T>;
  constexpr int kRun = 16 / static_cast<int>(sizeof(T));
  const DeviceAxis<Int>&h = p.axis[1], &w = p.axis[2];
  const Int elements = p.grid.threads, first = thread_of_grid<Int>() * kRun;
  if (first >= elements) return;
  // The row that the first element lies in, and the one after, which the last ones may lie in.
  struct Row {
    bool seen;
    Int outputs;     // the first of those that see it
    Int code;        // by which indices would name its first element
    Int tap, below;  // which row of their windows it is; rows from here to the plane's end
  };
  Row row[2];
  Int slice = first, x = take(slice, w.by_input), y = take(slice, h.by_input);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const Int oy = h.by_stride.quotient(y);
    row[r].tap = y - oy * h.stride;
    row[r].seen = row[r].tap < h.kernel && oy < h.output;
    row[r].outputs = (slice * h.output + oy) * w.output;
    row[r].code = kTaps ? row[r].tap * w.kernel : (slice_of(p, slice) * h.input + y) * w.input;
    row[r].below = h.input - y;
    if (++y == h.input) y = 0, ++slice;
  }
  Int ox = w.by_stride.quotient(x), tap = x - ox * w.stride;
  const T* grad = static_cast<const T*>(at.grad_output);
  T sent[kRun];
  bool sees[kRun];
  Int codes[kRun][1], high[kRun][1], mine[kRun], columns[kRun], rows[kRun];
#pragma unroll
  for (int i = 0; i < kRun; ++i) {
    sees[i] = first + i < elements && row[0].seen && tap < w.kernel && ox < w.output;
    sent[i] = narrow<T>(Sum{0});
    codes[i][0] = high[i][0] = -1;
    const Int output = row[0].outputs + ox;
    if (sees[i]) {
      sent[i] = load_constant<1>(grad + output).lane[0];
      if constexpr (kShare == Share::index) load_stored<Stored>(at.saved_indices, output, codes[i], high[i]);
    }
    mine[i] = row[0].code + (kTaps ? tap : x);
    // The first element of a window vouches for its index: one of so many rows and columns from here on.
    const bool begins = row[0].tap == 0 && tap == 0;
    rows[i] = begins ? least(h.kernel, row[0].below) : 0;
    columns[i] = least(w.kernel, w.input - x);
    if (++tap == w.stride) tap = 0, ++ox;
    if (++x == w.input) {
      x = ox = tap = 0;
      row[0] = row[1];
    }
  }
  Vector<T, kRun> result;
  if constexpr (kShare == Share::index) {
    bool right = true;
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      // The low words decide: an index that differs above them is reported.
      const Int code = codes[i][0];
      result.lane[i] = narrow<T>(sees[i] && code == mine[i] ? Sum{0} + widen(sent[i]) : Sum{0});
      if (rows[i] == 0 || (code & high[i][0]) == -1) continue;
      Int down, across = code - mine[i];
      if constexpr (kTaps) {
        down = row_of_tap(code, w.kernel);
        across = code - down * w.kernel;
      } else {
        down = most(across, 0);
        across = across < 0 ? INT32_MAX : take(down, w.by_input);
      }
      right = right && high[i][0] == 0 && down < rows[i] && across < columns[i];
    }
    if (!right) report(at.fault, kFaultIndex);
  } else {
    Sum share[kRun];
#pragma unroll
    for (int i = 0; i < kRun; ++i) share[i] = Sum{0} + widen(sent[i]);
    divide_all<T>(p, share);
#pragma unroll
    for (int i = 0; i < kRun; ++i) result.lane[i] = narrow<T>(sees[i] ? share[i] : Sum{0});
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
}

}  // namespace cenote::gpu
