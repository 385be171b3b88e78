// The backward of small windows with few elements, as few.cuh does it forward: one launch, a thread to an element, which asks the outputs
// that see it. Which these are is known when this is compiled, but for where the plane ends.
#pragma once

#include "cuda/few.cuh"
#include "cuda/gather_down.cuh"

namespace cenote::gpu {

/// Windows of kKernel x kKernel, kStride apart, no dilation, none empty, no depth. Stored: the indices' type; kTaps: they are of kind
/// window.
template <class T, Share kShare, class Stored, bool kTaps, int kKernel, int kStride, bool kChannelsFastest>
__global__ void __launch_bounds__(kFewBlock) gather_few(const __grid_constant__ Few p) {
  using Int = std::int32_t;
  constexpr int kSeen = ceil_quotient(kKernel, kStride);  // outputs that may see an element, along an axis
  const auto [n, c, y, x, exists] = place_of_few<kChannelsFastest>(p);
  if (!exists) return;
  const T* grad = static_cast<const T*>(p.read) + (n * p.read_n + c * p.read_c);
  const Int indices = n * p.indices_n + c * p.indices_c;
  // The last output whose window begins no later than this element, and which tap of that window it is; of earlier ones it is a later tap.
  const Int last_y = static_cast<Int>(static_cast<unsigned>(y + p.pad_h) / kStride);
  const Int last_x = static_cast<Int>(static_cast<unsigned>(x + p.pad_w) / kStride);
  const Int tap_y = y + p.pad_h - last_y * kStride, tap_x = x + p.pad_w - last_x * kStride;
  wait_for_grid_before();
  T sent[kSeen][kSeen];
  Int codes[kSeen][kSeen][1], high[kSeen][kSeen][1];
#pragma unroll
  for (int i = 0; i < kSeen; ++i) {
    // An output that exists in place of one that does not: its share is not added.
    const Int oy = most(least(last_y - i, p.out_height - 1), 0);
#pragma unroll
    for (int j = 0; j < kSeen; ++j) {
      const Int ox = most(least(last_x - j, p.out_width - 1), 0);
      sent[i][j] = load_constant<1>(grad + (oy * p.read_h + ox * p.read_w)).lane[0];
      if constexpr (kShare == Share::index)
        load_stored<Stored>(p.indices, indices + oy * p.indices_h + ox * p.indices_w, codes[i][j], high[i][j]);
    }
  }
  Accumulator<T> sum = 0;
  bool right = true;
#pragma unroll
  for (int i = kSeen - 1; i >= 0; --i) {  // outputs in ascending order
#pragma unroll
    for (int j = kSeen - 1; j >= 0; --j) {
      const Int ty = tap_y + i * kStride, tx = tap_x + j * kStride;
      const bool sees = ty < kKernel && tx < kKernel &&
                        static_cast<unsigned>(last_y - i) < static_cast<unsigned>(p.out_height) &&
                        static_cast<unsigned>(last_x - j) < static_cast<unsigned>(p.out_width);
      if constexpr (kShare == Share::sum) {
        if (sees) sum += widen(sent[i][j]);
      } else {
        const Int code = codes[i][j][0], mine = kTaps ? ty * kKernel + tx : y * p.width + x;
        if (sees && code == mine) sum += widen(sent[i][j]);
        // The first element of a window vouches for its index: one of the rows and columns from here to the window's or the plane's end.
        const bool vouches = sees && (ty == 0 || y == 0) && (tx == 0 || x == 0);
        if (vouches && (code & high[i][j][0]) != -1) {
          const Int rows = least(kKernel - ty, p.height - y), columns = least(kKernel - tx, p.width - x);
          bool found = false;
#pragma unroll
          for (int r = 0; r < kKernel; ++r) {
            const Int first = mine + r * (kTaps ? kKernel : p.width);
            found = found || (r < rows && static_cast<unsigned>(code - first) < static_cast<unsigned>(columns));
          }
          right = right && found && high[i][j][0] == 0;
        }
      }
    }
  }
  if constexpr (kShare == Share::sum) sum = p.exact_reciprocal ? sum * p.reciprocal : sum / p.divisor;
  static_cast<T*>(p.written)[n * p.written_n + c * p.written_c + y * p.written_h + x * p.written_w] = narrow<T>(sum);
  if constexpr (kShare == Share::index) {
    if (!right) report(p.fault, kFaultIndex);
  }
}

}  // namespace cenote::gpu
