// Ops whose indices may point anywhere in the plane: max_unpool, and the backward of fractional pooling. A block owns a range of
// the plane in shared memory and looks at every index of it, so that order, not chance, decides.
#pragma once

#include "cuda/backward.cuh"

namespace cenote::gpu {

/// Offset of the o-th element (row-major) of the small side of a plane.
template <class Int>
__device__ inline Place<Int> small_place(const Params<Int>& p, Int o) {
  Place<Int> place{};
  Int rest = o;
  place.x = take(rest, p.axis[2].by_output);
  place.y = take(rest, p.axis[1].by_output);
  place.z = rest;
  return place;
}

/// Position in the large plane that an index means, -1 for one that means none. Taps are counted in their window.
template <class T, class Int>
__device__ inline Int position_of(const Params<Int>& p, const Pointers& at, const Place<Int>& place, std::int64_t code) {
  const Int height = p.axis[1].input, width = p.axis[2].input;
  if (p.index_kind != IndexKind::window) {
    return code >= 0 && code < static_cast<std::int64_t>(p.axis[0].input) * height * width ? static_cast<Int>(code) : Int{-1};
  }
  Taps<Int> taps[3];
  if (!windows_of<T>(p, at, place, taps) || !is_tap(p, taps, code) || code < 0) return -1;
  Int rest = static_cast<Int>(code);
  const Int tx = rest % taps[2].whole;
  rest /= taps[2].whole;
  const Int ty = rest % taps[1].whole, tz = rest / taps[1].whole;
  return ((taps[0].start + tz * p.axis[0].dilation) * height + taps[1].start + ty * p.axis[1].dilation) * width + taps[2].start +
         tx * p.axis[2].dilation;
}

template <class Int>
__device__ inline void split_plane(const Params<Int>& p, Int position, Int& z, Int& y, Int& x) {
  x = take(position, p.axis[2].by_input);
  y = take(position, p.axis[1].by_input);
  z = position;
}

/// max_unpool: the table holds, for each place of the range, one more than the last element that goes there.
template <class T, class Int>
__global__ void __launch_bounds__(kBlock) unpool_ranges(const __grid_constant__ Params<Int> p, const __grid_constant__ Pointers at) {
  extern __shared__ unsigned long long shared_table[];
  auto* winner = reinterpret_cast<std::conditional_t<sizeof(Int) == 4, unsigned, unsigned long long>*>(shared_table);
  using Winner = std::remove_pointer_t<decltype(winner)>;
  if (at.irregular != nullptr && *static_cast<volatile unsigned*>(at.irregular) == 0) return;
  Int rest = static_cast<Int>(blockIdx.x);
  const Int begin = take(rest, p.grid.width) * p.range;
  const std::int64_t c = take(rest, p.grid.channel_groups), n = rest;
  const Int plane = p.axis[0].input * p.axis[1].input * p.axis[2].input;
  const Int size = least<Int>(p.range, plane - begin);
  const Int elements = p.axis[0].output * p.axis[1].output * p.axis[2].output;
  for (Int i = threadIdx.x; i < size; i += kBlock) winner[i] = 0;
  __syncthreads();
  const std::int64_t indices = n * p.indices.n + c * p.indices.c;
  for (Int o = threadIdx.x; o < elements; o += kBlock) {
    Place<Int> place = small_place(p, o);
    place.n = n;
    place.c = c;
    std::int64_t code[1];
    load_codes(at.saved_indices, p.index_dtype, indices + p.indices.at(place.z, place.y, place.x), code);
    const Int position = position_of<T>(p, at, place, code[0]);
    if (position < 0) {
      report(at.fault, kFaultIndex);
    } else if (position >= begin && position < begin + size) {
      atomicMax(&winner[position - begin], static_cast<Winner>(o) + 1);
    }
  }
  __syncthreads();
  const T* input = static_cast<const T*>(at.input) + n * p.input.n + c * p.input.c;
  T* output = static_cast<T*>(at.output) + n * p.output.n + c * p.output.c;
  for (Int i = threadIdx.x; i < size; i += kBlock) {
    Int z, y, x;
    split_plane<Int>(p, begin + i, z, y, x);
    T value = narrow<T>(Accumulator<T>{0});
    if (winner[i] != 0) {
      const Place<Int> from = small_place<Int>(p, static_cast<Int>(winner[i] - 1));
      value = input[p.input.at(from.z, from.y, from.x)];
    }
    output[p.output.at(z, y, x)] = value;
  }
}

/// max_unpool with indices that lie in their windows: each place looks at the windows that hold it, last one first. An index
/// outside its window raises `irregular`, and unpool_ranges, launched after this, does the whole thing again.
template <class T, int kLanes>
__global__ void __launch_bounds__(kBlock) unpool_windows(const __grid_constant__ Params<std::int32_t> p,
                                                         const __grid_constant__ Pointers at) {
  using Int = std::int32_t;
  const Int thread = static_cast<Int>(blockIdx.x) * kBlock + static_cast<Int>(threadIdx.x);
  if (thread >= p.grid.threads) return;
  const Place<Int> place = p.grid.place(thread);
  const Int i[3] = {place.z, place.y, place.x};
  Reach<Int> reach[3];
#pragma unroll
  for (int a = 0; a < 3; ++a) reach[a] = cover_of(p.axis[a], i[a]);
  const std::int64_t indices = place.n * p.indices.n + place.c * p.indices.c;
  const T* input = static_cast<const T*>(at.input) + place.n * p.input.n + place.c * p.input.c;
  const Int flat = (i[0] * p.axis[1].input + i[1]) * p.axis[2].input + i[2];
  Vector<T, kLanes> result;
#pragma unroll
  for (int l = 0; l < kLanes; ++l) result.lane[l] = narrow<T>(Accumulator<T>{0});
  for (Int oz = reach[0].first; oz <= reach[0].last; ++oz) {
    const Int tz = tap_of(p.axis[0], oz, i[0]);
    if (tz < 0) continue;
    for (Int oy = reach[1].first; oy <= reach[1].last; ++oy) {
      const Int ty = tap_of(p.axis[1], oy, i[1]);
      if (ty < 0) continue;
      for (Int ox = reach[2].first; ox <= reach[2].last; ++ox) {
        const Int tx = tap_of(p.axis[2], ox, i[2]);
        if (tx < 0) continue;
        std::int64_t codes[kLanes];
        load_codes(at.saved_indices, p.index_dtype, indices + p.indices.at(oz, oy, ox), codes);
        const Int mine = p.index_kind == IndexKind::window ? (tz * p.axis[1].kernel + ty) * p.axis[2].kernel + tx : flat;
        if ((tz == 0 || i[0] < p.axis[0].dilation) && (ty == 0 || i[1] < p.axis[1].dilation) &&
            (tx == 0 || i[2] < p.axis[2].dilation)) {
          const Taps<Int> taps[3] = {taps_of(p.axis[0], oz), taps_of(p.axis[1], oy), taps_of(p.axis[2], ox)};
#pragma unroll
          for (int l = 0; l < kLanes; ++l) {
            if (codes[l] == -1 || !is_tap(p, taps, codes[l])) *static_cast<volatile unsigned*>(at.irregular) = 1;
          }
        }
        const auto value = load<kLanes>(input + p.input.at(oz, oy, ox));
#pragma unroll
        for (int l = 0; l < kLanes; ++l) {
          if (codes[l] == mine) result.lane[l] = value.lane[l];
        }
      }
    }
  }
  store(static_cast<T*>(at.output) + place.n * p.output.n + place.c * p.output.c + p.output.at(i[0], i[1], i[2]), result);
}

/// Backward of max_unpool: each element of the small side takes the gradient at its index.
template <class T, class Int>
__global__ void __launch_bounds__(kBlock) take_at_indices(const __grid_constant__ Params<Int> p,
                                                          const __grid_constant__ Pointers at) {
  const Int thread = static_cast<Int>(blockIdx.x) * kBlock + static_cast<Int>(threadIdx.x);
  if (thread >= p.grid.threads) return;
  const Place<Int> place = p.grid.place(thread);
  std::int64_t code[1];
  load_codes(at.saved_indices, p.index_dtype, place.n * p.indices.n + place.c * p.indices.c + p.indices.at(place.z, place.y, place.x),
             code);
  const Int position = position_of<T>(p, at, place, code[0]);
  if (position < 0) {
    report(at.fault, kFaultIndex);
    return;
  }
  Int z, y, x;
  split_plane(p, position, z, y, x);
  const T* grad = static_cast<const T*>(at.grad_output) + place.n * p.grad_output.n + place.c * p.grad_output.c;
  static_cast<T*>(at.grad_input)[place.n * p.grad_input.n + place.c * p.grad_input.c + p.grad_input.at(place.z, place.y, place.x)] =
      grad[p.grad_output.at(z, y, x)];
}

/// The same for dense tensors and flat indices: no position but the plane's needs to be worked out.
template <class T>
__global__ void __launch_bounds__(kBlock) take_from_planes(const __grid_constant__ Params<std::int32_t> p,
                                                           const __grid_constant__ Pointers at) {
  using Int = std::int32_t;
  const Int i = static_cast<Int>(blockIdx.x) * kBlock + static_cast<Int>(threadIdx.x);
  if (i >= p.grid.threads) return;
  const Int large = p.axis[0].input * p.axis[1].input * p.axis[2].input;
  const Int plane = p.small_plane.quotient(i);
  std::int64_t code[1];
  load_codes(at.saved_indices, p.index_dtype, i, code);
  if (code[0] < 0 || code[0] >= large) {
    report(at.fault, kFaultIndex);
    return;
  }
  static_cast<T*>(at.grad_input)[i] = static_cast<const T*>(at.grad_output)[static_cast<std::int64_t>(plane) * large + code[0]];
}

/// Adds each output's gradient at its index, in ascending output order: one warp owns a range of a plane and walks through the
/// outputs 32 at a time; where several of the 32 meet at one place, the first of them adds for all, in order.
///
/// Windows that are known narrow the walk to the rows that can reach the range; drawn ones do not.
template <class T, class Int>
__global__ void __launch_bounds__(32) add_in_order(const __grid_constant__ Params<Int> p, const __grid_constant__ Pointers at) {
  extern __shared__ unsigned long long shared_sums[];
  using Sum = Accumulator<T>;
  auto* sums = reinterpret_cast<Sum*>(shared_sums);
  __shared__ Sum sent[32];
  const Int lane = static_cast<Int>(threadIdx.x);
  Int rest = static_cast<Int>(blockIdx.x);
  const Int begin = take(rest, p.grid.width) * p.range;
  const std::int64_t c = take(rest, p.grid.channel_groups), n = rest;
  const Int plane = p.axis[0].input * p.axis[1].input * p.axis[2].input;
  const Int size = least<Int>(p.range, plane - begin);
  for (Int i = lane; i < size; i += 32) sums[i] = Sum{0};
  __syncwarp();
  Int first = 0, last = p.axis[0].output * p.axis[1].output * p.axis[2].output;
  const bool known = p.axis[2].rule != WindowRule::fractional;
  if (known && p.ranges > 1) {
    // Rows of outputs, in row-major order of (z, y), that can select an element in [begin, begin + size).
    Int z0, y0, x0, z1, y1, x1;
    split_plane<Int>(p, begin, z0, y0, x0);
    split_plane<Int>(p, begin + size - 1, z1, y1, x1);
    const Reach<Int> low = cover_of(p.axis[0], z0), high = cover_of(p.axis[0], z1);
    const Int rows = p.axis[1].output;
    Int first_row = low.first * rows, last_row = (high.last + 1) * rows;
    if (p.axis[0].output == 1) {
      first_row += cover_of(p.axis[1], y0).first;
      last_row = high.last * rows + cover_of(p.axis[1], y1).last + 1;
    }
    first = first_row * p.axis[2].output;
    last = most<Int>(first, last_row * p.axis[2].output);
  }
  const std::int64_t indices = n * p.indices.n + c * p.indices.c;
  const T* grad = static_cast<const T*>(at.grad_output) + n * p.grad_output.n + c * p.grad_output.c;
  for (Int base = first; base < last; base += 32) {
    const Int o = base + lane;
    Int key = -1 - lane;
    Sum share = 0;
    if (o < last) {
      Place<Int> place = small_place(p, o);
      place.n = n;
      place.c = c;
      std::int64_t code[1];
      load_codes(at.saved_indices, p.index_dtype, indices + p.indices.at(place.z, place.y, place.x), code);
      share = widen(grad[p.grad_output.at(place.z, place.y, place.x)]);
      if (code[0] != -1) {
        Int position = position_of<T>(p, at, place, code[0]);
        if (known && position >= 0 && p.index_kind != IndexKind::window) {
          const Taps<Int> taps[3] = {taps_of(p.axis[0], place.z), taps_of(p.axis[1], place.y), taps_of(p.axis[2], place.x)};
          if (!is_tap(p, taps, code[0])) position = -1;
        }
        if (position < 0) {
          report(at.fault, kFaultIndex);
        } else if (position >= begin && position < begin + size) {
          key = position - begin;
        }
      }
    }
    sent[lane] = share;
    __syncwarp();
    unsigned together = __match_any_sync(0xffffffffU, key);
    if (key >= 0 && (together & ((1U << lane) - 1U)) == 0) {
      Sum sum = sums[key];
      for (; together != 0; together &= together - 1U) sum += sent[__ffs(static_cast<int>(together)) - 1];
      sums[key] = sum;
    }
    __syncwarp();
  }
  T* result = static_cast<T*>(at.grad_input) + n * p.grad_input.n + c * p.grad_input.c;
  for (Int i = lane; i < size; i += 32) {
    Int z, y, x;
    split_plane<Int>(p, begin + i, z, y, x);
    result[p.grad_input.at(z, y, x)] = narrow<T>(sums[i]);
  }
}

}  // namespace cenote::gpu
