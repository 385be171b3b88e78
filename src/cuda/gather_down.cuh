// Backward pools: a thread walks down a strip of grad_input, kColumns wide, and reads each row of outputs that sees it once.
#pragma once

#include "cuda/backward.cuh"

namespace cenote::gpu {

/// Index type as stored, read without asking what it is.
template <class Stored, int kLanes>
__device__ inline void load_stored(const void* indices, std::int64_t offset, std::int32_t (&codes)[kLanes],
                                   std::int32_t (&high)[kLanes]) {
  constexpr int kStep = sizeof(Stored) * kLanes <= 16 ? kLanes : 16 / static_cast<int>(sizeof(Stored));
#pragma unroll
  for (int i = 0; i < kLanes; i += kStep) {
    const auto piece = load_constant<kStep>(static_cast<const Stored*>(indices) + offset + i);
#pragma unroll
    for (int j = 0; j < kStep; ++j) {
      const Stored code = piece.lane[j];
      codes[i + j] =
          static_cast<Stored>(-1) > Stored{0} && code == static_cast<Stored>(-1) ? -1 : static_cast<std::int32_t>(code);
      high[i + j] =
          sizeof(Stored) == 8 ? static_cast<std::int32_t>(static_cast<std::int64_t>(code) >> 32) : codes[i + j] >> 31;
    }
  }
}

/// Square windows of kKernel taps, stride kStride along height and width, no dilation; along the depth, at most one window sees a
/// slice. Stored: the indices' type; kTaps: they are of kind window. Strips begin where a window would, so that which outputs see which
/// of their columns is known when this is compiled.
template <class T, int kLanes, int kColumns, Share kShare, class Stored, bool kTaps, int kKernel, int kStride>
__global__ void __launch_bounds__(kBlock, 3)
    gather_down(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Sum = Accumulator<T>;
  // Column c of a strip is tap c - m * kStride of the output m places from the strip's own first.
  constexpr int kFirst = ceil_quotient(1 - kKernel, kStride);
  constexpr int kSeen = floor_quotient(kColumns - 1, kStride) - kFirst + 1;
  const Int thread = thread_of_grid<Int>();
  if (thread >= p.grid.threads) return;
  Place<Int> place = p.grid.place(thread);
  const Int height = p.axis[1].input, width = p.axis[2].input, pad_y = p.axis[1].pad_begin, pad_x = p.axis[2].pad_begin;
  place.y *= p.strip;
  const Int own = place.x * (kColumns / kStride) + p.axis[2].by_stride.quotient(pad_x);  // the strip's own first output
  place.x = own * kStride - pad_x;                                                       // may lie left of the plane
  const Int end = least(place.y + p.strip, height);
  const T* grad = static_cast<const T*>(at.grad_output) + p.grad_output.plane(place.n, place.c);
  std::int64_t indices = p.indices.plane(place.n, place.c);
  T* result = static_cast<T*>(at.grad_input) + p.grad_input.plane(place.n, place.c) +
              p.grad_input.at(place.z, place.y, place.x);

  // The one window along the depth.
  Int tz = 0;
  bool seen = true;
  Taps<Int> depth{0, 0, 1, 1, 1};
  if (!p.grid.flat || p.axis[0].kernel > 1) {
    const Int oz = p.axis[0].by_stride.quotient(place.z + p.axis[0].pad_begin);
    tz = place.z + p.axis[0].pad_begin - oz * p.axis[0].stride;
    seen = tz < p.axis[0].kernel && oz < p.axis[0].output;
    depth = taps_of(p.axis[0], oz);
    grad += oz * p.grad_output.d;
    indices += oz * p.indices.d;
  }
  bool exists[kSeen];
#pragma unroll
  for (int m = 0; m < kSeen; ++m)
    exists[m] = seen && static_cast<unsigned>(own + kFirst + m) < static_cast<unsigned>(p.axis[2].output);
  const Int reach = place.y + pad_y - (kKernel - 1);
  Int oy = reach > 0 ? p.axis[1].by_stride.quotient(reach + kStride - 1) : 0;
  const Int last_y = least(p.axis[1].output - 1, p.axis[1].by_stride.quotient(end - 1 + pad_y));
  const Int unit = kTaps ? kKernel : width;  // from one row of a window to the next, in codes
  const bool vouches_z = tz == 0 || place.z == 0;

  Sum sum[kKernel][kColumns][kLanes] = {};  // of the rows of the window at hand
  bool right = true;
  Int y = place.y;
  auto finish_row = [&](Sum(&row)[kColumns][kLanes]) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      if constexpr (kShare == Share::sum) {
        if (p.uniform_divisor) divide_all<T>(p, row[c]);
      }
      Vector<T, kLanes> value;
#pragma unroll
      for (int l = 0; l < kLanes; ++l) value.lane[l] = narrow<T>(row[c][l]);
      if (static_cast<unsigned>(place.x + c) < static_cast<unsigned>(width)) store(result + c * p.grad_input.w, value);
    }
    result += p.grad_input.h;
    ++y;
  };
  Int top = oy * kStride - pad_y;
  for (; oy <= last_y; ++oy, top += kStride) {
    Vector<T, kLanes> sent[kSeen] = {};
    Int codes[kSeen][kLanes], high[kSeen][kLanes];
#pragma unroll
    for (int m = 0; m < kSeen; ++m) {
#pragma unroll
      for (int l = 0; l < kLanes; ++l) codes[m][l] = high[m][l] = -1;
      if (exists[m]) {
        const Int ox = own + kFirst + m;
        sent[m] = load_constant<kLanes>(grad + oy * p.grad_output.h + ox * p.grad_output.w);
        if constexpr (kShare == Share::index)
          load_stored<Stored>(at.saved_indices, indices + oy * p.indices.h + ox * p.indices.w, codes[m], high[m]);
      }
    }
#pragma unroll
    for (int m = 0; m < kSeen; ++m) {
      const int start = (kFirst + m) * kStride;  // where its window begins, in columns of the strip
      if constexpr (kShare == Share::index) {
        // Codes count from the window's first tap.
        const Int first = kTaps ? tz * (kKernel * kKernel) : (place.z * height + top) * width + place.x + start;
        // The strip with the window's first column vouches for its index: the one it begins in, or the plane's first.
        const bool vouches = exists[m] && vouches_z && (start >= 0 || place.x <= 0);
#pragma unroll
        for (int l = 0; l < kLanes; ++l) {
          // The low words decide: an index that differs above them is reported. -1 is no element of any row that is stored.
          const Int relative = codes[m][l] - first;
          const Sum share = widen(sent[m].lane[l]);
#pragma unroll
          for (int r = 0; r < kKernel; ++r) {
#pragma unroll
            for (int c = 0; c < kColumns; ++c) {
              const int tap = c - start;
              if (tap >= 0 && tap < kKernel && relative == r * unit + tap) sum[r][c][l] += share;
            }
          }
          if (vouches && (codes[m][l] & high[m][l]) != -1) {
            Int in_slice = relative;
            bool found_z = high[m][l] == 0 && codes[m][l] >= 0;
            if (p.axis[0].kernel > 1) {  // it may be in another slice of the window
              if constexpr (kTaps) {
                const auto slice = static_cast<Int>(static_cast<unsigned>(codes[m][l]) / (kKernel * kKernel));
                in_slice += (tz - slice) * (kKernel * kKernel);
                found_z = found_z && slice >= depth.low && slice < depth.high;
              } else {
                const Int slice = p.axis[1].by_input.quotient(p.axis[2].by_input.quotient(codes[m][l]));
                in_slice += (place.z - slice) * height * width;
                found_z = found_z && slice - depth.start >= depth.low && slice - depth.start < depth.high;
              }
            }
            const Int low = most(-(place.x + start), 0), count = least<Int>(kKernel, width - (place.x + start)) - low;
            bool found = false;
#pragma unroll
            for (int r = 0; r < kKernel; ++r) {
              found = found || (static_cast<unsigned>(in_slice - r * unit - low) < static_cast<unsigned>(count) &&
                                static_cast<unsigned>(top + r) < static_cast<unsigned>(height));
            }
            right = right && found && found_z;
          }
        }
      } else {
        std::int64_t divisor = 1;
        if (!p.uniform_divisor && exists[m])
          divisor = divisor_of(p, depth, taps_of(p.axis[1], oy), taps_of<Int>(p.axis[2], own + kFirst + m));
#pragma unroll
        for (int l = 0; l < kLanes; ++l) {
          Sum share = widen(sent[m].lane[l]);
          if (!p.uniform_divisor) share = divide<T>(share, divisor);
#pragma unroll
          for (int r = 0; r < kKernel; ++r) {
#pragma unroll
            for (int c = 0; c < kColumns; ++c) {
              if (c - start >= 0 && c - start < kKernel) sum[r][c][l] += share;
            }
          }
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kStride; ++r) {
      if (top + r == y && y < end) finish_row(sum[r]);
    }
#pragma unroll
    for (int r = 0; r < kKernel; ++r) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
#pragma unroll
        for (int l = 0; l < kLanes; ++l)
          sum[r][c][l] = r + kStride < kKernel ? sum[r + kStride < kKernel ? r + kStride : 0][c][l] : Sum{0};
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kKernel; ++r) {
    if (top + r == y && y < end) finish_row(sum[r]);
  }
  Sum nothing[kColumns][kLanes] = {};
  while (y < end) finish_row(nothing);
  if constexpr (kShare == Share::index) {
    if (!right) report(at.fault, kFaultIndex);
  }
}

}  // namespace cenote::gpu
