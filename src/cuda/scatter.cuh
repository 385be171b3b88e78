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
__device__ inline Int position_of(const Params<Int>& p, const Pointers& at, const Place<Int>& place,
                                  std::int64_t code) {
  const Int height = p.axis[1].input, width = p.axis[2].input;
  if (p.index_kind != IndexKind::window) {
    return code >= 0 && code < static_cast<std::int64_t>(p.axis[0].input) * height * width ? static_cast<Int>(code)
                                                                                           : Int{-1};
  }
  Taps<Int> taps[3];
  if (!windows_of<T>(p, at, place, taps) || !is_tap(p, taps, code) || code < 0) return -1;
  Int rest = static_cast<Int>(code);
  const Int tx = rest % taps[2].whole;
  rest /= taps[2].whole;
  const Int ty = rest % taps[1].whole, tz = rest / taps[1].whole;
  return ((taps[0].start + tz * p.axis[0].dilation) * height + taps[1].start + ty * p.axis[1].dilation) * width +
         taps[2].start + tx * p.axis[2].dilation;
}

template <class Int>
__device__ inline void split_plane(const Params<Int>& p, Int position, Int& z, Int& y, Int& x) {
  x = take(position, p.axis[2].by_input);
  y = take(position, p.axis[1].by_input);
  z = position;
}

/// max_unpool: the table holds, for each place of the range, one more than the last element that goes there.
template <class T, class Int>
__global__ void __launch_bounds__(kBlock)
    unpool_ranges(const __grid_constant__ Params<Int> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  extern __shared__ unsigned long long shared_table[];
  auto* winner = reinterpret_cast<std::conditional_t<sizeof(Int) == 4, unsigned, unsigned long long>*>(shared_table);
  using Winner = std::remove_pointer_t<decltype(winner)>;
  if (at.irregular != nullptr && *static_cast<volatile unsigned*>(at.irregular) == 0) return;
  for (Int block = static_cast<Int>(blockIdx.x); block < p.grid.threads; block += static_cast<Int>(gridDim.x)) {
    Int rest = block;
    const Int begin = take(rest, p.grid.width) * p.range;
    const Int c = take(rest, p.grid.channel_groups), n = rest;
    const Int plane = p.axis[0].input * p.axis[1].input * p.axis[2].input;
    const Int size = least<Int>(p.range, plane - begin);
    const Int elements = p.axis[0].output * p.axis[1].output * p.axis[2].output;
    for (Int i = threadIdx.x; i < size; i += kBlock) winner[i] = 0;
    __syncthreads();
    const std::int64_t indices = p.indices.plane(n, c);
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
    const T* input = static_cast<const T*>(at.input) + p.input.plane(n, c);
    T* output = static_cast<T*>(at.output) + p.output.plane(n, c);
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
    __syncthreads();
  }
}

/// max_unpool with indices that lie in their windows: each place looks at the windows that hold it, last one first. An index
/// outside its window raises `irregular`, and unpool_ranges, launched after this, does the whole thing again.
template <class T, int kLanes>
__global__ void __launch_bounds__(kBlock)
    unpool_windows(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  const Int thread = thread_of_grid<Int>();
  if (thread >= p.grid.threads) return;
  const Place<Int> place = p.grid.place(thread);
  const Int i[3] = {place.z, place.y, place.x};
  Reach<Int> reach[3];
#pragma unroll
  for (int a = 0; a < 3; ++a) reach[a] = cover_of(p.axis[a], i[a]);
  const std::int64_t indices = p.indices.plane(place.n, place.c);
  const T* input = static_cast<const T*>(at.input) + p.input.plane(place.n, place.c);
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
        const Int mine =
            p.index_kind == IndexKind::window ? (tz * p.axis[1].kernel + ty) * p.axis[2].kernel + tx : flat;
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
  store(static_cast<T*>(at.output) + p.output.plane(place.n, place.c) + p.output.at(i[0], i[1], i[2]), result);
}

/// Backward of max_unpool: each element of the small side takes the gradient at its index.
template <class T, class Int>
__global__ void __launch_bounds__(kBlock)
    take_at_indices(const __grid_constant__ Params<Int> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  const Int thread = thread_of_grid<Int>();
  if (thread >= p.grid.threads) return;
  const Place<Int> place = p.grid.place(thread);
  std::int64_t code[1];
  load_codes(at.saved_indices, p.index_dtype,
             p.indices.plane(place.n, place.c) + p.indices.at(place.z, place.y, place.x), code);
  const Int position = position_of<T>(p, at, place, code[0]);
  if (position < 0) {
    report(at.fault, kFaultIndex);
    return;
  }
  Int z, y, x;
  split_plane(p, position, z, y, x);
  const T* grad = static_cast<const T*>(at.grad_output) + p.grad_output.plane(place.n, place.c);
  static_cast<T*>(at.grad_input)[p.grad_input.plane(place.n, place.c) + p.grad_input.at(place.z, place.y, place.x)] =
      grad[p.grad_output.at(z, y, x)];
}

/// The same for dense tensors and flat indices: no position but the plane's needs to be worked out.
template <class T>
__global__ void __launch_bounds__(kBlock)
    take_from_planes(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  const Int i = thread_of_grid<Int>();
  if (i >= p.grid.threads) return;
  const Int large = p.axis[0].input * p.axis[1].input * p.axis[2].input;
  const Int plane = p.small_plane.quotient(i);
  std::int64_t code[1];
  load_codes(at.saved_indices, p.index_dtype, i, code);
  if (code[0] < 0 || code[0] >= large) {
    report(at.fault, kFaultIndex);
    return;
  }
  static_cast<T*>(at.grad_input)[i] =
      static_cast<const T*>(at.grad_output)[static_cast<std::int64_t>(plane) * large + code[0]];
}

/// Adds each output's gradient at its index, in ascending output order: one warp owns a part of a plane and walks through the
/// outputs 32 at a time; where several of the 32 meet at one place, the first of them adds for all, in order.
///
/// Where windows are known, the part is a rectangle of one slice and the walk goes over the outputs that see it; where they were
/// drawn, it is a range of the plane and the walk goes over all of them.
template <class T, class Int>
__global__ void __launch_bounds__(32)
    add_in_order(const __grid_constant__ Params<Int> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  extern __shared__ unsigned long long shared_sums[];
  using Sum = Accumulator<T>;
  auto* sums = reinterpret_cast<Sum*>(shared_sums);
  __shared__ Sum sent[32];
  const Int lane = static_cast<Int>(threadIdx.x);
  if (at.irregular != nullptr && *static_cast<volatile unsigned*>(at.irregular) == 0) return;
  for (Int block = static_cast<Int>(blockIdx.x); block < p.grid.threads; block += static_cast<Int>(gridDim.x)) {
    __syncwarp();
    Int rest = block;
    const Int part = take(rest, p.grid.width);
    const Int c = take(rest, p.grid.channel_groups), n = rest;
    const Int height = p.axis[1].input, width = p.axis[2].input, plane = p.axis[0].input * height * width;
    const bool known = p.rectangle_width > 0;
    // The part: elements [begin, begin + size), or the rectangle at (y0, x0).
    const Int begin = known ? 0 : part * p.range;
    Int size = known ? p.range : least<Int>(p.range, plane - begin);
    Int y0 = 0, x0 = 0, rows = 0, columns = 0, across = part;
    Int first_z = 0, last_z = p.axis[0].output - 1, first_y = 0, last_y = p.axis[1].output - 1, first_x = 0,
        last_x = p.axis[2].output - 1;
    Int slice = 0;
    if (known) {
      x0 = take(across, p.grid.height) * p.rectangle_width;
      const Int heights = p.range / p.rectangle_width;
      Int tile_y = across;
      const Int tiles_y = (height + heights - 1) / heights;
      slice = tile_y / tiles_y;
      y0 = (tile_y - slice * tiles_y) * heights;
      rows = least<Int>(heights, height - y0);
      columns = least<Int>(p.rectangle_width, width - x0);
      first_z = cover_of(p.axis[0], slice).first;
      last_z = cover_of(p.axis[0], slice).last;
      first_y = cover_of(p.axis[1], y0).first;
      last_y = cover_of<Int>(p.axis[1], y0 + rows - 1).last;
      first_x = cover_of(p.axis[2], x0).first;
      last_x = cover_of<Int>(p.axis[2], x0 + columns - 1).last;
    }
    for (Int i = lane; i < size; i += 32) sums[i] = Sum{0};
    __syncwarp();
    const std::int64_t indices = p.indices.plane(n, c);
    const T* grad = static_cast<const T*>(at.grad_output) + p.grad_output.plane(n, c);
    for (Int oz = first_z; oz <= last_z; ++oz) {
      for (Int oy = first_y; oy <= last_y; ++oy) {
        for (Int base = first_x; base <= last_x; base += 32) {
          const Int ox = base + lane;
          Int key = -1 - lane;
          Sum share = 0;
          if (ox <= last_x) {
            std::int64_t code[1];
            load_codes(at.saved_indices, p.index_dtype, indices + p.indices.at(oz, oy, ox), code);
            share = widen(grad[p.grad_output.at(oz, oy, ox)]);
            Int position = -1;
            bool wrong = false;
            if (code[0] != -1) {
              if (known && p.plain_windows) {
                wrong = !is_flat_tap<Int>(p, taps_of(p.axis[0], oz), oy * p.axis[1].stride - p.axis[1].pad_begin,
                                          ox * p.axis[2].stride - p.axis[2].pad_begin, code[0], position);
              } else {
                const Place<Int> place{n, c, oz, oy, ox};
                position = position_of<T>(p, at, place, code[0]);
                wrong = position < 0;
                if (known && !wrong && p.index_kind != IndexKind::window) {
                  const Taps<Int> taps[3] = {taps_of(p.axis[0], oz), taps_of(p.axis[1], oy), taps_of(p.axis[2], ox)};
                  wrong = !is_tap(p, taps, code[0]);
                }
              }
              if (wrong) {
                report(at.fault, kFaultIndex);
              } else if (known) {
                Int y = position;
                const Int x = take(y, p.axis[2].by_input);
                Int z = 0;
                if (p.axis[0].input > 1) {
                  z = y;
                  y = take(z, p.axis[1].by_input);
                }
                if (z == slice && y >= y0 && y < y0 + rows && x >= x0 && x < x0 + columns)
                  key = (y - y0) * p.rectangle_width + x - x0;
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
      }
    }
    T* result = static_cast<T*>(at.grad_input) + p.grad_input.plane(n, c);
    if (known) {
      for (Int row = 0; row < rows; ++row) {
        for (Int x = lane; x < columns; x += 32) {
          result[p.grad_input.at(slice, y0 + row, x0 + x)] = narrow<T>(sums[row * p.rectangle_width + x]);
        }
      }
      continue;
    }
    for (Int i = lane; i < size; i += 32) {
      Int z, y, x;
      split_plane<Int>(p, begin + i, z, y, x);
      result[p.grad_input.at(z, y, x)] = narrow<T>(sums[i]);
    }
  }
}

}  // namespace cenote::gpu
