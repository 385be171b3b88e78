// The backward of sums over windows that overlap, any size and distance, without dilation: a thread walks down a column of grad_input.
// What a row of outputs sends to the column is added up once and kept for as long as windows of that row are seen.
#pragma once

#include "cuda/direct.cuh"

namespace cenote::gpu {

/// At most kDown x kAcross outputs see an element; no window leaves its slice. kLanes: neighbouring channels. kOwnDivisors: not all
/// windows have the same one; those of a row of outputs are worked out where they differ from the last row's.
template <class T, int kLanes, bool kOwnDivisors, int kDown, int kAcross>
__global__ void __launch_bounds__(kBlock, kLanes > 1     ? 3
                                          : kOwnDivisors ? 5
                                                         : 6)
    gather_sums(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Sum = Accumulator<T>;
  const DeviceAxis<Int>&h = p.axis[1], &w = p.axis[2];
  const Int thread = thread_of_grid<Int>();
  if (thread >= p.grid.threads) return;
  Place<Int> place = p.grid.place(thread);
  place.y *= p.strip;
  const T* grad =
      static_cast<const T*>(at.grad_output) + p.grad_output.plane(place.n, place.c) + place.z * p.grad_output.d;
  T* results = static_cast<T*>(at.grad_input) + p.grad_input.plane(place.n, place.c) + place.z * p.grad_input.d;
  place.x = first_column(place.x, p.across);
  for (Int turn = 0; turn < p.across && place.x < w.input; ++turn, place.x += 32) {
    const Int end = least(place.y + p.strip, h.input);
    const Int last_x = w.by_stride.quotient(place.x + w.pad_begin);
    Int offset[kAcross];  // of the outputs that see the column, in ascending order
    bool sees[kAcross];
    RowDivisors<T, kAcross> divisors;
#pragma unroll
    for (int j = 0; j < kAcross; ++j) {
      const Int ox = last_x - (kAcross - 1 - j);
      sees[j] = place.x + w.pad_begin - ox * w.stride < w.kernel &&
                static_cast<unsigned>(ox) < static_cast<unsigned>(w.output);
      offset[j] = ox * p.grad_output.w;
    }
    struct Loaded {
      Vector<T, kLanes> sent[kAcross];
    };
    auto load_row = [&](Int oy, Loaded& row) {
      const bool exists = static_cast<unsigned>(oy) < static_cast<unsigned>(h.output);
#pragma unroll
      for (int j = 0; j < kAcross; ++j) {
        row.sent[j] = Vector<T, kLanes>{};
        if (exists && sees[j]) row.sent[j] = load_constant<kLanes>(grad + (oy * p.grad_output.h + offset[j]));
      }
    };
    auto add_up = [&](Int oy, const Loaded& row, Sum(&sum)[kLanes]) {
#pragma unroll
      for (int l = 0; l < kLanes; ++l) sum[l] = 0;
      if constexpr (kOwnDivisors) divisors.follow(p, 1, oy, last_x - (kAcross - 1));
#pragma unroll
      for (int j = 0; j < kAcross; ++j) {
        Sum share[kLanes];
#pragma unroll
        for (int l = 0; l < kLanes; ++l) share[l] = widen(row.sent[j].lane[l]);
        if constexpr (kOwnDivisors) divide_by(share, divisors.divisor[j], divisors.reciprocal[j]);
#pragma unroll
        for (int l = 0; l < kLanes; ++l) sum[l] += share[l];
      }
    };
    // Rows last_y - kDown + 1 to last_y, and the next one on its way.
    Int last_y = h.by_stride.quotient(place.y + h.pad_begin), tap = place.y + h.pad_begin - last_y * h.stride;
    Sum rows[kDown][kLanes];
    Loaded next;
    {
      Loaded first[kDown];
#pragma unroll
      for (int i = 0; i < kDown; ++i) load_row(last_y - (kDown - 1 - i), first[i]);
#pragma unroll
      for (int i = 0; i < kDown; ++i) add_up(last_y - (kDown - 1 - i), first[i], rows[i]);
    }
    load_row(last_y + 1, next);
    T* result = results + (place.y * p.grad_input.h + place.x * p.grad_input.w);
    for (Int y = place.y; y < end; ++y, result += p.grad_input.h) {
      Sum sum[kLanes] = {};
#pragma unroll
      for (int i = 0; i < kDown; ++i) {
        if (tap + (kDown - 1 - i) * h.stride >= h.kernel) continue;
#pragma unroll
        for (int l = 0; l < kLanes; ++l) sum[l] += rows[i][l];
      }
      if constexpr (!kOwnDivisors) divide_all<T>(p, sum);
      Vector<T, kLanes> element;
#pragma unroll
      for (int l = 0; l < kLanes; ++l) element.lane[l] = narrow<T>(sum[l]);
      store(result, element);
      if (++tap < h.stride) continue;
      tap = 0;
      ++last_y;
#pragma unroll
      for (int i = 0; i + 1 < kDown; ++i) {
#pragma unroll
        for (int l = 0; l < kLanes; ++l) rows[i][l] = rows[i + 1][l];
      }
      add_up(last_y, next, rows[kDown - 1]);
      load_row(last_y + 1, next);
    }
  }
}

}  // namespace cenote::gpu
