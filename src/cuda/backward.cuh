// Backward pools as gathers: a thread asks which outputs see its element, and adds what they send, in ascending output order.
// Nothing is zeroed beforehand, nothing is added atomically, every element of grad_input is written once.
#pragma once

#include "cuda/forward.cuh"

namespace cenote::gpu {

/// What decides how much of an output's gradient an element gets.
enum class Share : std::uint8_t { index, sum, power, infinite, last };

/// Whether an index handed in names a tap of its window (or is -1). `code` as read.
template <class Int>
__device__ inline bool is_tap_of(const Params<Int>& p, const Taps<Int> (&taps)[3], std::int64_t code) {
  if (code == -1) return true;
  if (code < 0) return false;
  Int tap[3];
  if (p.index_kind == IndexKind::window) {
    const std::int64_t whole = static_cast<std::int64_t>(taps[0].whole) * taps[1].whole * taps[2].whole;
    if (code >= whole) return false;
    const Int narrow_code = static_cast<Int>(code);
    tap[2] = narrow_code % taps[2].whole;
    tap[1] = narrow_code / taps[2].whole % taps[1].whole;
    tap[0] = narrow_code / taps[2].whole / taps[1].whole;
  } else {
    if (code >= static_cast<std::int64_t>(p.axis[0].input) * p.axis[1].input * p.axis[2].input) return false;
    Int rest = static_cast<Int>(code);
    const Int x = take(rest, p.axis[2].by_input), y = take(rest, p.axis[1].by_input);
    const Int at[3] = {rest, y, x};
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      const Int distance = at[a] - taps[a].start;
      if (distance < 0) return false;
      tap[a] = p.axis[a].by_dilation.quotient(distance);
      if (tap[a] * p.axis[a].dilation != distance) return false;
    }
  }
#pragma unroll
  for (int a = 0; a < 3; ++a) {
    if (tap[a] < taps[a].low || tap[a] >= taps[a].high) return false;
  }
  return true;
}

/// The same, called: where it would be inlined many times.
template <class Int>
__device__ __noinline__ bool is_tap(const Params<Int>& p, const Taps<Int> (&taps)[3], std::int64_t code) {
  return is_tap_of(p, taps, code);
}

/// The same for square windows without dilation along height and width, which start at (top, left); flat indices.
template <class Int>
__device__ inline bool is_flat_tap(const Params<Int>& p, const Taps<Int>& depth, Int top, Int left, std::int64_t code,
                                   Int& position) {
  const Int height = p.axis[1].input, width = p.axis[2].input;
  const Int plane = p.axis[0].input * height * width;
  position = static_cast<Int>(code);
  if (static_cast<std::uint64_t>(code) >= static_cast<std::uint64_t>(plane)) return false;
  Int y = position;
  const Int x = take(y, p.axis[2].by_input);
  if (p.axis[0].input > 1) {
    Int z = y;
    y = take(z, p.axis[1].by_input);
    const Int distance = z - depth.start;
    const Int tap = p.axis[0].by_dilation.quotient(most<Int>(distance, 0));
    if (distance < 0 || tap >= depth.whole || tap * p.axis[0].dilation != distance) return false;
  }
  return static_cast<unsigned>(y - top) < static_cast<unsigned>(p.axis[1].kernel) &&
         static_cast<unsigned>(x - left) < static_cast<unsigned>(p.axis[2].kernel);
}

/// The row of a tap in a window of `taps` columns. Of a few thousand taps, exact in single precision.
__device__ inline std::int32_t row_of_tap(std::int32_t tap, std::int32_t taps) {
  if (static_cast<unsigned>(tap) >= 1U << 16) return tap / taps;
  return static_cast<std::int32_t>(__fdividef(static_cast<float>(tap) + 0.5F, static_cast<float>(taps)));
}

/// lp_pool: what one window passes on to its elements before their own factor p * x^(p-1), from the sum of its powers.
template <class T, class Int>
__device__ inline Accumulator<T> slope_of_sum(const Params<Int>& p, Accumulator<T> sum, std::int64_t counted, T grad) {
  using Real = Accumulator<T>;
  const auto kernel =
      static_cast<Real>(static_cast<std::int64_t>(p.axis[0].kernel) * p.axis[1].kernel * p.axis[2].kernel);
  const Real v = divide<T>(sum, counted) * kernel;
  if (v == Real{0}) return 0;
  const Real e = Real{1} / static_cast<Real>(p.norm_type);
  return widen(grad) * e * raise(v, e - Real{1}) * (kernel / static_cast<Real>(counted));
}

template <class T, class Int>
__device__ inline Accumulator<T> power_slope(const Params<Int>& p, const T* plane, const Taps<Int> (&taps)[3], T grad) {
  using Real = Accumulator<T>;
  const Real norm = static_cast<Real>(p.norm_type);
  Real sum = 0;
  for (Int tz = taps[0].low; tz < taps[0].high; ++tz) {
    for (Int ty = taps[1].low; ty < taps[1].high; ++ty) {
      for (Int tx = taps[2].low; tx < taps[2].high; ++tx) {
        sum += raise(
            widen(plane[p.input.at(taps[0].start + tz * p.axis[0].dilation, taps[1].start + ty * p.axis[1].dilation,
                                   taps[2].start + tx * p.axis[2].dilation)]),
            norm);
      }
    }
  }
  return slope_of_sum<T>(p, sum, static_cast<std::int64_t>(taps[0].padded) * taps[1].padded * taps[2].padded, grad);
}

/// lp_pool with an infinite norm: whether the window's extreme |x| is the element at (z, y, x).
template <class T, class Int>
__device__ inline bool is_extreme_magnitude(const Params<Int>& p, const T* plane, const Taps<Int> (&taps)[3], Int z,
                                            Int y, Int x) {
  const bool largest = p.norm_type > 0;
  T best = largest ? Number<T>::lowest() : Number<T>::highest();
  Int winner[3] = {-1, -1, -1};
  for (Int tz = taps[0].low; tz < taps[0].high; ++tz) {
    for (Int ty = taps[1].low; ty < taps[1].high; ++ty) {
      for (Int tx = taps[2].low; tx < taps[2].high; ++tx) {
        const Int at[3] = {taps[0].start + tz * p.axis[0].dilation, taps[1].start + ty * p.axis[1].dilation,
                           taps[2].start + tx * p.axis[2].dilation};
        const T v = magnitude(plane[p.input.at(at[0], at[1], at[2])]);
        if (winner[0] < 0 || (largest ? beats<Fold::max>(v, best) : beats<Fold::min>(v, best))) {
          best = v;
          for (int a = 0; a < 3; ++a) winner[a] = at[a];
        }
      }
    }
  }
  return winner[0] == z && winner[1] == y && winner[2] == x;
}

/// One element of grad_input for kLanes channels; any windows, any strides.
template <class T, int kLanes, Share kShare, class Int, int kRows>
__global__ void __launch_bounds__(kBlock)
    gather_windows(const __grid_constant__ Params<Int> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  const Int thread = thread_of_grid<Int>();
  if (thread >= p.grid.threads) return;
  const Place<Int> place = p.grid.place(thread);
  Int i[3] = {place.z, place.y * kRows, place.x};
  Reach<Int> reach[3];
  reach[0] = cover_of(p.axis[0], i[0]);
  reach[2] = cover_of(p.axis[2], i[2]);
  const T* grad = static_cast<const T*>(at.grad_output) + p.grad_output.plane(place.n, place.c);
  const std::int64_t indices = p.indices.plane(place.n, place.c);
  const T* plane = static_cast<const T*>(at.input) + p.input.plane(place.n, place.c);
  for (int below = 0; below < kRows && i[1] < p.axis[1].input; ++below, ++i[1]) {
    reach[1] = cover_of(p.axis[1], i[1]);
    const Int flat = (i[0] * p.axis[1].input + i[1]) * p.axis[2].input + i[2];
    Accumulator<T> sum[kLanes] = {};
    for (Int oz = reach[0].first; oz <= reach[0].last; ++oz) {
      const Int tz = tap_of(p.axis[0], oz, i[0]);
      if (tz < 0) continue;
      for (Int oy = reach[1].first; oy <= reach[1].last; ++oy) {
        const Int ty = tap_of(p.axis[1], oy, i[1]);
        if (ty < 0) continue;
        for (Int ox = reach[2].first; ox <= reach[2].last; ++ox) {
          const Int tx = tap_of(p.axis[2], ox, i[2]);
          if (tx < 0) continue;
          const auto sent = load<kLanes>(grad + p.grad_output.at(oz, oy, ox));
          if constexpr (kShare == Share::index) {
            std::int64_t codes[kLanes];
            load_codes(at.saved_indices, p.index_dtype, indices + p.indices.at(oz, oy, ox), codes);
            Int mine = flat;
            if (p.index_kind == IndexKind::window) {
              const Int whole_h =
                  p.axis[1].rule == WindowRule::adaptive ? taps_of(p.axis[1], oy).whole : p.axis[1].kernel;
              const Int whole_w =
                  p.axis[2].rule == WindowRule::adaptive ? taps_of(p.axis[2], ox).whole : p.axis[2].kernel;
              mine = (tz * whole_h + ty) * whole_w + tx;
            }
            // The first element of a window vouches for its index.
            if ((tz == 0 || i[0] < p.axis[0].dilation) && (ty == 0 || i[1] < p.axis[1].dilation) &&
                (tx == 0 || i[2] < p.axis[2].dilation)) {
              const Taps<Int> taps[3] = {taps_of(p.axis[0], oz), taps_of(p.axis[1], oy), taps_of(p.axis[2], ox)};
#pragma unroll
              for (int l = 0; l < kLanes; ++l) {
                if (!is_tap(p, taps, codes[l])) report(at.fault, kFaultIndex);
              }
            }
#pragma unroll
            for (int l = 0; l < kLanes; ++l) {
              if (codes[l] == mine) sum[l] += widen(sent.lane[l]);
            }
          } else if (kShare == Share::sum && p.uniform_divisor) {
#pragma unroll
            for (int l = 0; l < kLanes; ++l) sum[l] += widen(sent.lane[l]);
          } else {
            const Taps<Int> taps[3] = {taps_of(p.axis[0], oz), taps_of(p.axis[1], oy), taps_of(p.axis[2], ox)};
#pragma unroll
            for (int l = 0; l < kLanes; ++l) {
              if constexpr (kShare == Share::sum) {
                sum[l] += divide<T>(widen(sent.lane[l]), divisor_of(p, taps[0], taps[1], taps[2]));
              } else if constexpr (kShare == Share::power) {
                sum[l] += power_slope(p, plane, taps, sent.lane[l]);
              } else {
                if (is_extreme_magnitude(p, plane, taps, i[0], i[1], i[2])) sum[l] += widen(sent.lane[l]);
              }
            }
          }
        }
      }
    }
    if constexpr (kShare == Share::sum) {
      if (p.uniform_divisor) {
#pragma unroll
        for (int l = 0; l < kLanes; ++l) sum[l] = average_of<T>(p, sum[l], 1);
      }
    } else if constexpr (kShare == Share::power) {
      using Real = Accumulator<T>;
      const Real norm = static_cast<Real>(p.norm_type);
      sum[0] = norm * raise(widen(plane[p.input.at(i[0], i[1], i[2])]), norm - Real{1}) * sum[0];
    } else if constexpr (kShare == Share::infinite) {
      const Accumulator<T> x = widen(plane[p.input.at(i[0], i[1], i[2])]);
      if (x < 0) sum[0] = -sum[0];
      if (x == 0) sum[0] = 0;
    }
    Vector<T, kLanes> result;
#pragma unroll
    for (int l = 0; l < kLanes; ++l) result.lane[l] = narrow<T>(sum[l]);
    store(static_cast<T*>(at.grad_input) + p.grad_input.plane(place.n, place.c) + p.grad_input.at(i[0], i[1], i[2]),
          result);
  }
}

constexpr int floor_quotient(int a, int b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
constexpr int ceil_quotient(int a, int b) { return -floor_quotient(-a, b); }

/// A cell of kRows x kColumns elements whose outputs are loaded once and shared by its elements. Kernel kKernel and stride
/// kStride along height and width, no dilation there; padding is kPhase modulo the stride, so that which outputs see which
/// element of a cell is known when this is compiled. Depth is free.
template <class T, int kLanes, Share kShare, bool kTaps, int kKernel, int kStride, int kPhase, int kRows, int kColumns>
__global__ void __launch_bounds__(kBlock)
    gather_cells(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  // Relative to output (y0 + pad) / stride: element j (shifted by the phase) is seen by ceil((j - k + 1) / s) .. floor(j / s).
  constexpr int kFirst = ceil_quotient(kPhase - kKernel + 1, kStride);
  constexpr int kOutputRows = floor_quotient(kPhase + kRows - 1, kStride) - kFirst + 1;
  constexpr int kOutputColumns = floor_quotient(kPhase + kColumns - 1, kStride) - kFirst + 1;
  const Int thread = thread_of_grid<Int>();
  if (thread >= p.grid.threads) return;
  Place<Int> place = p.grid.place(thread);
  place.y *= kRows;
  place.x *= kColumns;
  const Int width = p.axis[2].input, height = p.axis[1].input;
  const Int first_row = p.axis[1].by_stride.quotient(place.y + p.axis[1].pad_begin) + kFirst;
  const Int first_column = p.axis[2].by_stride.quotient(place.x + p.axis[2].pad_begin) + kFirst;
  const Reach<Int> depth = cover_of(p.axis[0], place.z);
  const T* grad = static_cast<const T*>(at.grad_output) + p.grad_output.plane(place.n, place.c);
  const std::int64_t indices = p.indices.plane(place.n, place.c);
  const Int flat = (place.z * height + place.y) * width + place.x;
  Accumulator<T> sum[kRows][kColumns][kLanes] = {};
  for (Int oz = depth.first; oz <= depth.last; ++oz) {
    const Int tz = tap_of(p.axis[0], oz, place.z);
    if (tz < 0) continue;
#pragma unroll
    for (int r = 0; r < kOutputRows; ++r) {
      const Int oy = first_row + r;
      const bool row_exists = static_cast<unsigned>(oy) < static_cast<unsigned>(p.axis[1].output);
      Vector<T, kLanes> sent[kOutputColumns];
      std::int64_t codes[kOutputColumns][kLanes];
#pragma unroll
      for (int c = 0; c < kOutputColumns; ++c) {
        const Int ox = first_column + c;
        const bool exists = row_exists && static_cast<unsigned>(ox) < static_cast<unsigned>(p.axis[2].output);
#pragma unroll
        for (int l = 0; l < kLanes; ++l) {
          sent[c].lane[l] = narrow<T>(Accumulator<T>{0});
          codes[c][l] = -1;
        }
        if (exists) {
          sent[c] = load<kLanes>(grad + p.grad_output.at(oz, oy, ox));
          if constexpr (kShare == Share::index) {
            const std::int64_t where = indices + p.indices.at(oz, oy, ox);
            load_codes(at.saved_indices, p.index_dtype, where, codes[c]);
          }
        }
      }
      if constexpr (kShare == Share::index) {
#pragma unroll
        for (int c = 0; c < kOutputColumns; ++c) {
          const Int ox = first_column + c;
          // The cell with the first element of a window vouches for its index: the one it starts in, or the plane's first
          // where it starts in the padding.
          const int start_y = (kFirst + r) * kStride - kPhase, start_x = (kFirst + c) * kStride - kPhase;
          const bool vouches =
              (start_y >= 0 ? start_y < kRows : place.y == 0) && (start_x >= 0 ? start_x < kColumns : place.x == 0);
          if (vouches && (tz == 0 || place.z < p.axis[0].dilation) && row_exists &&
              static_cast<unsigned>(ox) < static_cast<unsigned>(p.axis[2].output)) {
            if constexpr (kTaps) {
              const Taps<Int> taps[3] = {taps_of(p.axis[0], oz), taps_of(p.axis[1], oy), taps_of(p.axis[2], ox)};
#pragma unroll
              for (int l = 0; l < kLanes; ++l) {
                if (!is_tap(p, taps, codes[c][l])) report(at.fault, kFaultIndex);
              }
            } else {
              const Taps<Int> taps_z = taps_of(p.axis[0], oz);
              bool right = true;
#pragma unroll
              for (int l = 0; l < kLanes; ++l) {
                Int position;
                right = right &&
                        (codes[c][l] == -1 || is_flat_tap(p, taps_z, oy * kStride - p.axis[1].pad_begin,
                                                          ox * kStride - p.axis[2].pad_begin, codes[c][l], position));
              }
              if (!right) report(at.fault, kFaultIndex);
            }
          }
        }
      }
      std::int64_t divisor[kOutputColumns];
      if constexpr (kShare == Share::sum) {
        if (!p.uniform_divisor) {
          const Taps<Int> taps_z = taps_of(p.axis[0], oz), taps_y = taps_of(p.axis[1], oy);
#pragma unroll
          for (int c = 0; c < kOutputColumns; ++c)
            divisor[c] = divisor_of(p, taps_z, taps_y, taps_of(p.axis[2], first_column + c));
        }
      }
#pragma unroll
      for (int c = 0; c < kOutputColumns; ++c) {
#pragma unroll
        for (int l = 0; l < kLanes; ++l) {
          Accumulator<T> share = widen(sent[c].lane[l]);
          if constexpr (kShare == Share::sum) {
            if (!p.uniform_divisor) share = divide<T>(share, divisor[c]);
          }
#pragma unroll
          for (int y = 0; y < kRows; ++y) {
#pragma unroll
            for (int x = 0; x < kColumns; ++x) {
              const int ty = kPhase + y - (kFirst + r) * kStride, tx = kPhase + x - (kFirst + c) * kStride;
              if (ty >= 0 && ty < kKernel && tx >= 0 && tx < kKernel) {
                if constexpr (kShare == Share::sum) {
                  sum[y][x][l] += share;
                } else {
                  // The low words decide: an index that differs above them has been reported.
                  const Int wanted = kTaps ? (tz * kKernel + ty) * kKernel + tx : flat + y * width + x;
                  if (static_cast<Int>(codes[c][l]) == wanted) sum[y][x][l] += share;
                }
              }
            }
          }
        }
      }
    }
  }
  if constexpr (kShare == Share::sum) {
    if (p.uniform_divisor) {
#pragma unroll
      for (int y = 0; y < kRows; ++y) {
#pragma unroll
        for (int x = 0; x < kColumns; ++x) {
#pragma unroll
          for (int l = 0; l < kLanes; ++l) sum[y][x][l] = average_of<T>(p, sum[y][x][l], 1);
        }
      }
    }
  }
  T* result = static_cast<T*>(at.grad_input) + p.grad_input.plane(place.n, place.c) +
              p.grad_input.at(place.z, place.y, place.x);
#pragma unroll
  for (int y = 0; y < kRows; ++y) {
    if (place.y + y >= height) break;
    if constexpr (kColumns > 1 && kLanes == 1) {
      // Planar: a cell's row is one store where it may be.
      if (p.paired_columns) {
        Vector<T, kColumns> pair;
#pragma unroll
        for (int x = 0; x < kColumns; ++x) pair.lane[x] = narrow<T>(sum[y][x][0]);
        store(result + y * p.grad_input.h, pair);
        continue;
      }
    }
#pragma unroll
    for (int x = 0; x < kColumns; ++x) {
      if (place.x + x >= width) break;
      Vector<T, kLanes> value;
#pragma unroll
      for (int l = 0; l < kLanes; ++l) value.lane[l] = narrow<T>(sum[y][x][l]);
      store(result + y * p.grad_input.h + x * p.grad_input.w, value);
    }
  }
}

}  // namespace cenote::gpu
