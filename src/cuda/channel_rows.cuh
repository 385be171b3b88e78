// Sums and averages of windows that share nothing, where channels lie next to each other but fill no vector: results follow each other
// through the whole tensor, whatever their channel.
#pragma once

#include "cuda/forward.cuh"

namespace cenote::gpu {

/// Windows of kHeight x kWidth that leave neither the input nor their slice, which is a plane, without dilation; all have one divisor.
/// kOutputs: to a thread, a warp's width apart, so that neighbouring lanes read and store neighbours and the loads of all are under way at
/// once.
template <class T, int kHeight, int kWidth, int kOutputs>
__global__ void __launch_bounds__(kBlock)
    fold_channel_rows(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  const DeviceAxis<Int>&h = p.axis[1], &w = p.axis[2];
  const Int lane = static_cast<Int>(threadIdx.x) % 32, warp = thread_of_grid<Int>() / 32;
  const Int first = warp * (32 * kOutputs) + lane, outputs = p.grid.threads;
  const Int channels = p.grid.channel_groups.value, row = w.input * channels;
  const T* input = static_cast<const T*>(at.input);
  T taps[kOutputs][kHeight][kWidth];
#pragma unroll
  for (int i = 0; i < kOutputs; ++i) {
    Int entry = least(first + i * 32, outputs - 1);
    const Int channel = take(entry, p.grid.channel_groups), x = take(entry, p.grid.width),
              y = take(entry, p.grid.height);
    const T* from = input + ((entry * h.input + y * h.stride) * row + x * w.stride * channels + channel);
#pragma unroll
    for (int r = 0; r < kHeight; ++r) {
#pragma unroll
      for (int t = 0; t < kWidth; ++t) taps[i][r][t] = load_constant<1>(from + r * row + t * channels).lane[0];
    }
  }
  Accumulator<T> sum[kOutputs];
#pragma unroll
  for (int i = 0; i < kOutputs; ++i) {
    sum[i] = Accumulator<T>{0};  // no sum is -0
#pragma unroll
    for (int r = 0; r < kHeight; ++r) {
#pragma unroll
      for (int t = 0; t < kWidth; ++t) sum[i] += widen(taps[i][r][t]);
    }
  }
  divide_all<T>(p, sum);
#pragma unroll
  for (int i = 0; i < kOutputs; ++i) {
    if (first + i * 32 < outputs) static_cast<T*>(at.output)[first + i * 32] = narrow<T>(sum[i]);
  }
}

/// Their backward, of windows of any size: a thread makes 16 bytes of elements, each of which one output sees at most.
template <class T>
__global__ void __launch_bounds__(kBlock)
    spread_channel_rows(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Sum = Accumulator<T>;
  constexpr int kRun = 16 / static_cast<int>(sizeof(T));
  const DeviceAxis<Int>&h = p.axis[1], &w = p.axis[2];
  const Int elements = p.grid.threads, first = thread_of_grid<Int>() * kRun;
  if (first >= elements) return;
  const Int channels = p.grid.channel_groups.value;
  Int entry = first, channel = take(entry, p.grid.channel_groups), x = take(entry, w.by_input),
      y = take(entry, h.by_input);
  Int ox = w.by_stride.quotient(x), tap = x - ox * w.stride;
  Int outputs = 0;  // those of the row before this one's
  bool row_seen = false;
  auto begin_row = [&] {
    const Int oy = h.by_stride.quotient(y);
    row_seen = oy < h.output && y - oy * h.stride < h.kernel;
    outputs = (entry * h.output + oy) * w.output;
  };
  begin_row();
  const T* grad = static_cast<const T*>(at.grad_output);
  T sent[kRun];
  bool seen[kRun];
#pragma unroll
  for (int i = 0; i < kRun; ++i) {
    seen[i] = first + i < elements && row_seen && tap < w.kernel && ox < w.output;
    sent[i] = narrow<T>(Sum{0});
    if (seen[i]) sent[i] = load_constant<1>(grad + ((outputs + ox) * channels + channel)).lane[0];
    if (++channel == channels) {
      channel = 0;
      if (++tap == w.stride) tap = 0, ++ox;
      if (++x == w.input) {
        x = tap = ox = 0;
        if (++y == h.input) y = 0, ++entry;
        begin_row();
      }
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
  if (p.aligned && first + kRun <= elements) {
    store(to, result);
  } else {
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      if (first + i < elements) to[i] = result.lane[i];
    }
  }
}

}  // namespace cenote::gpu
