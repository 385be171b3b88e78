// Sums of long windows one apart along rows that lie together in memory. A thread owns a run of elements: what it has summed from their
// front it shares through shared memory, what it has summed from their back it keeps; a window is the end of one run, some whole ones,
// and the beginning of another. Four additions an output, whatever the window, and no subtraction.
#pragma once

#include "cuda/tiles.cuh"

namespace cenote::gpu {

inline constexpr int kAlongRun = 16;
inline constexpr int kAlongSpan = kBlock * kAlongRun;  // elements of a block
/// Outputs of a block: the runs that a window reaches beyond its first are there, but make none.
constexpr std::int64_t along_outputs(std::int64_t kernel) { return kAlongSpan - (kernel / kAlongRun + 1) * kAlongRun; }

/// Windows of at least kAlongRun elements along the width, without dilation; none elsewhere.
template <class T>
__global__ void __launch_bounds__(kBlock)
    slide_along(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Sum = Accumulator<T>;
  // Neighbouring runs begin in neighbouring banks.
  __shared__ Sum line[kAlongSpan + kBlock];
  auto place_of = [](Int i) { return i + i / kAlongRun; };
  const Int thread = static_cast<Int>(threadIdx.x), own = thread * (kAlongRun + 1);
  const Int kernel = p.axis[2].kernel, width = p.axis[2].input, outputs = p.along.outputs;
  Int rest = static_cast<Int>(blockIdx.x);
  const Int first = take(rest, p.along.pieces) * outputs;
  const Int y = take(rest, p.axis[1].by_output), z = take(rest, p.axis[0].by_output);
  Int n = rest;
  const Int c = take(n, p.along.channels);
  const T* input = static_cast<const T*>(at.input) + p.input.plane(n, c) + p.input.at(z, y, 0);
  T* output = static_cast<T*>(at.output) + p.output.plane(n, c) + p.output.at(z, y, first);
  const Int left = first - p.axis[2].pad_begin;
#pragma unroll
  for (int i = 0; i < kAlongRun; ++i) {
    const Int at_line = i * kBlock + thread, x = left + at_line;
    const bool inside = static_cast<unsigned>(x) < static_cast<unsigned>(width);
    Sum* to = line + place_of(at_line);
    if constexpr (sizeof(T) == 4) {
      __pipeline_memcpy_async(to, input + (inside ? x : 0), 4, inside ? 0 : 4);
    } else {
      *to = inside ? widen(load_constant<1>(input + x).lane[0]) : Sum{0};
    }
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  Sum from_back[kAlongRun];
  {
    Sum from_front = 0;
#pragma unroll
    for (int i = 0; i < kAlongRun; ++i) {
      from_back[i] = line[own + i];
      from_front += from_back[i];
      line[own + i] = from_front;
    }
#pragma unroll
    for (int i = kAlongRun - 2; i >= 0; --i) from_back[i] += from_back[i + 1];
  }
  __syncthreads();
  const Int runs = kernel / kAlongRun, over = kernel % kAlongRun;
  const bool makes = thread * kAlongRun < outputs;
  if (makes) {
    auto whole = [&](Int run) { return line[own + run * (kAlongRun + 1) + kAlongRun - 1]; };
    Sum between = 0;
    for (Int run = 1; run < runs; ++run) between += whole(run);
    const Sum further = between + whole(runs);
    const Sum* last = line + own + runs * (kAlongRun + 1) + over - 1;
#pragma unroll
    for (int i = 0; i < kAlongRun; ++i) {
      const Int end = i + over - 1;  // counted from the run `runs` further on
      Sum sum = from_back[i] + (end < kAlongRun ? between : further);
      if (end >= 0) sum += last[end < kAlongRun ? i : i + 1];
      from_back[i] = sum;
    }
  }
  __syncthreads();
  if (makes) {
#pragma unroll
    for (int i = 0; i < kAlongRun; ++i) line[own + i] = from_back[i];
  }
  __syncthreads();
  const Int count = least(outputs, p.axis[2].output - first);
#pragma unroll 4
  for (Int i = thread; i < count; i += kBlock) {
    std::int64_t counted = 1;
    if (!p.uniform_divisor)
      counted = divisor_of(p, taps_of(p.axis[0], z), taps_of(p.axis[1], y), taps_of<Int>(p.axis[2], first + i));
    output[i] = finish<Fold::sum, T>(p, line[place_of(i)], counted);
  }
}

}  // namespace cenote::gpu
