// Backward pools whose windows lie side by side and cover the plane: a thread reads what one window received, or a few neighbouring
// ones, and writes all of their elements.
#pragma once

#include "cuda/gather_down.cuh"

namespace cenote::gpu {

/// Windows of kDepth x kHeight x kWidth elements without gaps or padding. kLanes: neighbouring channels. kAcross: windows beside each
/// other, of planar tensors whose rows are aligned to as many.
template <class T, int kLanes, int kAcross, Share kShare, class Stored, int kDepth, int kHeight, int kWidth>
__global__ void __launch_bounds__(kBlock)
    spread_windows(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  constexpr int kCount = kLanes * kAcross;
  static_assert(kLanes == 1 || kAcross == 1);
  const Int thread = thread_of_grid<Int>();
  if (thread >= p.grid.threads) return;
  Place<Int> place = p.grid.place(thread);
  place.x *= kAcross;
  const Int height = p.axis[1].input, width = p.axis[2].input;
  const auto sent =
      load_constant<kCount>(static_cast<const T*>(at.grad_output) + p.grad_output.plane(place.n, place.c) +
                            p.grad_output.at(place.z, place.y, place.x));
  Int codes[kCount], high[kCount];
  if constexpr (kShare == Share::index) {
    load_stored<Stored>(at.saved_indices, p.indices.plane(place.n, place.c) + p.indices.at(place.z, place.y, place.x),
                        codes, high);
  }
  Accumulator<T> share[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) share[i] = Accumulator<T>{0} + widen(sent.lane[i]);
  if constexpr (kShare == Share::sum) divide_all<T>(p, share);
  const bool taps = p.index_kind == IndexKind::window;
  // From one row of a window to the next, and from one slice to the next, in codes.
  const auto unit = static_cast<unsigned>(taps ? kWidth : width),
             slice = static_cast<unsigned>(taps ? kHeight * kWidth : height * width);
  unsigned places[kCount] = {};  // codes counted from the window's first element
  bool right = true;
  if constexpr (kShare == Share::index) {
    const auto corner =
        static_cast<unsigned>((place.z * kDepth * height + place.y * kHeight) * width + place.x * kWidth);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const bool none = (codes[i] & high[i]) == -1;
      places[i] = static_cast<unsigned>(codes[i]);
      if (!taps) places[i] -= corner + static_cast<unsigned>(kAcross > 1 ? i * kWidth : 0);
      bool found = none;
#pragma unroll
      for (int r = 0; r < kDepth * kHeight; ++r) {
        const unsigned row = static_cast<unsigned>(r / kHeight) * slice + static_cast<unsigned>(r % kHeight) * unit;
        found = found || (high[i] == 0 && places[i] - row < static_cast<unsigned>(kWidth));
      }
      right = right && found;
      if (none) places[i] = UINT32_MAX;
    }
  }
  T* first = static_cast<T*>(at.grad_input) + p.grad_input.plane(place.n, place.c) +
             p.grad_input.at(place.z * kDepth, place.y * kHeight, place.x * kWidth);
#pragma unroll
  for (int r = 0; r < kDepth * kHeight; ++r) {
    T* result = first + (r / kHeight) * p.grad_input.d + (r % kHeight) * p.grad_input.h;
    const unsigned row = static_cast<unsigned>(r / kHeight) * slice + static_cast<unsigned>(r % kHeight) * unit;
    auto value_of = [&](int i, int column) {
      const bool wins = kShare == Share::sum || places[i] == row + static_cast<unsigned>(column);
      return narrow<T>(wins ? share[i] : Accumulator<T>{0});
    };
    if constexpr (kLanes == 1) {
      Vector<T, kAcross * kWidth> row;
#pragma unroll
      for (int i = 0; i < kAcross * kWidth; ++i) row.lane[i] = value_of(i / kWidth, i % kWidth);
      store(result, row);
    } else {
#pragma unroll
      for (int column = 0; column < kWidth; ++column) {
        Vector<T, kLanes> channels;
#pragma unroll
        for (int i = 0; i < kLanes; ++i) channels.lane[i] = value_of(i, column);
        store(result + column * p.grad_input.w, channels);
      }
    }
  }
  if constexpr (kShare == Share::index) {
    if (!right) report(at.fault, kFaultIndex);
  }
}

}  // namespace cenote::gpu
