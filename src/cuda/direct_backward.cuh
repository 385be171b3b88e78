// The backward of windows that overlap and that no other kernel is made for: a thread walks down a few elements and asks the outputs
// that see each, straight from memory. Which outputs see its column is worked out once, and several are loaded before any is used.
#pragma once

#include "cuda/direct.cuh"
#include "cuda/gather_down.cuh"

namespace cenote::gpu {

/// One of the outputs that may see an element along an axis.
struct Seer {
  std::int32_t output;
  std::int32_t tap;     // which tap of its window the element is
  std::int32_t beyond;  // from the element to the last one of the window that lies inside the input
  bool sees, first;     // no element of the window that lies inside comes before this one
};

/// Output number `back` before the last one that may see element i. Not for windows that are both apart and dilated.
__device__ inline Seer seer(const DeviceAxis<std::int32_t>& axis, std::int32_t i, std::int32_t back) {
  using Int = std::int32_t;
  Seer result;
  if (axis.rule == WindowRule::adaptive) {
    result.output = axis.by_input.quotient((i + 1) * axis.output - 1) - back;
    const Int o = most(result.output, 0);
    result.tap = i - adaptive_first(axis, o);
    result.beyond = adaptive_last(axis, o) - 1 - i;
    result.sees = result.output >= 0 && result.beyond >= 0;
    result.first = result.tap == 0;
    return result;
  }
  const Int shifted = i + axis.pad_begin;
  if (axis.dilation == 1) {
    result.output = axis.by_stride.quotient(shifted) - back;
    result.tap = shifted - result.output * axis.stride;
  } else {
    result.output = shifted - back * axis.dilation;
    result.tap = back;
  }
  result.sees = result.tap < axis.kernel && static_cast<unsigned>(result.output) < static_cast<unsigned>(axis.output);
  result.first = result.tap == 0 || i < axis.dilation;
  result.beyond = least((axis.kernel - 1 - result.tap) * axis.dilation, axis.input - 1 - i);
  return result;
}

/// At most kDown x kAcross outputs see an element; no window leaves its slice. kLanes: neighbouring channels. Stored: the indices' type;
/// kTaps: they are of kind window.
template <class T, int kLanes, Share kShare, class Stored, bool kTaps, int kDown, int kAcross>
__global__ void __launch_bounds__(kBlock, 3)
    gather_direct(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  // Rows of outputs that are loaded before any is used: all, or one where registers would not hold them.
  constexpr int kRows = kDown * kAcross * kLanes > 16 ? 1 : kDown;
  const DeviceAxis<Int>&h = p.axis[1], &w = p.axis[2];
  bool right = true;
  const Int thread = thread_of_grid<Int>();
  if (thread >= p.grid.threads) return;
  Place<Int> place = p.grid.place(thread);
  place.y *= p.strip;
  const T* grad = settled(static_cast<const T*>(at.grad_output) + p.grad_output.plane(place.n, place.c) +
                          place.z * p.grad_output.d);
  const Stored* indices =
      settled(static_cast<const Stored*>(at.saved_indices) + p.indices.plane(place.n, place.c) + place.z * p.indices.d);
  T* results =
      settled(static_cast<T*>(at.grad_input) + p.grad_input.plane(place.n, place.c) + place.z * p.grad_input.d);
  place.x = first_column(place.x, p.across);
  for (Int turn = 0; turn < p.across && place.x < w.input; ++turn, place.x += 32) {
    const Int end = least(place.y + p.strip, h.input), width = w.input;
    Seer across[kAcross];  // in ascending order
#pragma unroll
    for (int j = 0; j < kAcross; ++j) across[j] = seer(w, place.x, kAcross - 1 - j);
    T* result = results + (place.y * p.grad_input.h + place.x * p.grad_input.w);
    Int position = (place.z * h.input + place.y) * width + place.x;
    for (Int y = place.y; y < end; ++y, result += p.grad_input.h, position += width) {
      Accumulator<T> sum[kLanes] = {};
#pragma unroll
      for (int first = 0; first < kDown; first += kRows) {
        Seer down[kRows];
        Vector<T, kLanes> sent[kRows][kAcross];
        Int codes[kRows][kAcross][kLanes], high[kRows][kAcross][kLanes];
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          down[i] = seer(h, y, kDown - 1 - first - i);
          const Int row = down[i].output * p.grad_output.h, index_row = down[i].output * p.indices.h;
#pragma unroll
          for (int j = 0; j < kAcross; ++j) {
#pragma unroll
            for (int l = 0; l < kLanes; ++l) {
              sent[i][j].lane[l] = narrow<T>(Accumulator<T>{0});
              codes[i][j][l] = high[i][j][l] = -1;
            }
            if (!down[i].sees || !across[j].sees) continue;
            sent[i][j] = load_constant<kLanes>(grad + (row + across[j].output * p.grad_output.w));
            if constexpr (kShare == Share::index &&
                          kTaps) {  // bytes as they are: what they say is asked where it matters
              const auto taps = load_constant<kLanes>(indices + (index_row + across[j].output * p.indices.w));
#pragma unroll
              for (int l = 0; l < kLanes; ++l) codes[i][j][l] = taps.lane[l], high[i][j][l] = 0;
            } else if constexpr (kShare == Share::index) {
              load_stored<Stored>(indices + (index_row + across[j].output * p.indices.w), 0, codes[i][j], high[i][j]);
            }
          }
        }
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
#pragma unroll
          for (int j = 0; j < kAcross; ++j) {
            if constexpr (kShare == Share::index) {
              const Int row_taps = w.rule == WindowRule::adaptive ? across[j].tap + across[j].beyond + 1 : w.kernel;
              const Int mine = kTaps ? down[i].tap * row_taps + across[j].tap : position;
#pragma unroll
              for (int l = 0; l < kLanes; ++l) {
                if (codes[i][j][l] == mine) sum[l] += widen(sent[i][j].lane[l]);
              }
              // The first element of a window vouches for its index: so many rows and columns further on.
              if (down[i].first && across[j].first) {
#pragma unroll
                for (int l = 0; l < kLanes; ++l) {
                  if (kTaps ? codes[i][j][l] < 0 || codes[i][j][l] == UINT8_MAX
                            : (codes[i][j][l] & high[i][j][l]) == -1)
                    continue;
                  const Int further = codes[i][j][l] - mine;
                  Int rows, columns;
                  if constexpr (kTaps) {
                    const Int tap_row = row_of_tap(codes[i][j][l], row_taps);
                    rows = (tap_row - down[i].tap) * h.dilation;
                    columns = (codes[i][j][l] - tap_row * row_taps - across[j].tap) * w.dilation;
                  } else {
                    rows = most(further, 0);
                    columns = take(rows, w.by_input);
                  }
                  bool found = high[i][j][l] == 0 && further >= 0 &&
                               static_cast<unsigned>(rows) <= static_cast<unsigned>(down[i].beyond) &&
                               static_cast<unsigned>(columns) <= static_cast<unsigned>(across[j].beyond);
                  if (h.dilation > 1) found = found && h.by_dilation.quotient(most(rows, 0)) * h.dilation == rows;
                  if (w.dilation > 1) found = found && w.by_dilation.quotient(most(columns, 0)) * w.dilation == columns;
                  right = right && found;
                }
              }
            } else {
              Accumulator<T> share[kLanes];
#pragma unroll
              for (int l = 0; l < kLanes; ++l) share[l] = widen(sent[i][j].lane[l]);
              if (!p.uniform_divisor && down[i].sees && across[j].sees)
                divide_all_by<T>(share, divisor_of(p, taps_of(p.axis[0], place.z), taps_of(h, down[i].output),
                                                   taps_of(w, across[j].output)));
#pragma unroll
              for (int l = 0; l < kLanes; ++l) sum[l] += share[l];
            }
          }
        }
      }
      if constexpr (kShare == Share::sum) {
        if (p.uniform_divisor) divide_all<T>(p, sum);
      }
      Vector<T, kLanes> element;
#pragma unroll
      for (int l = 0; l < kLanes; ++l) element.lane[l] = narrow<T>(sum[l]);
      store(result, element);
    }
  }
  if constexpr (kShare == Share::index) {
    if (!right) report(at.fault, kFaultIndex);
  }
}

}  // namespace cenote::gpu
