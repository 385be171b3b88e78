// The backward of lp_pool where windows lie side by side: a thread reads the elements of its windows, and writes their gradients.
#pragma once

#include "cuda/backward.cuh"

namespace cenote::gpu {

/// One element's share, from its window's slope.
template <bool kSquare, class Real>
__device__ inline Real norm_share(Real x, Real norm, Real slope) {
  return norm * (kSquare ? x : raise(x, norm - Real{1})) * (Real{0} + slope);
}

/// Windows without dilation, padding and gaps, all whole. kSquare: norm 2.
template <class T, bool kSquare>
__global__ void __launch_bounds__(kBlock)
    spread_norms(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Real = Accumulator<T>;
  const Int thread = thread_of_grid<Int>();
  if (thread >= p.grid.threads) return;
  const Place<Int> place = p.grid.place(thread);
  const Int depth = p.axis[0].kernel, height = p.axis[1].kernel, width = p.axis[2].kernel;
  const Int z0 = place.z * depth, y0 = place.y * height, x0 = place.x * width;
  const T* input = static_cast<const T*>(at.input) + p.input.plane(place.n, place.c);
  T* result = static_cast<T*>(at.grad_input) + p.grad_input.plane(place.n, place.c);
  const T grad = static_cast<const T*>(
      at.grad_output)[p.grad_output.plane(place.n, place.c) + p.grad_output.at(place.z, place.y, place.x)];
  const Real norm = kSquare ? Real{2} : static_cast<Real>(p.norm_type);
  Real sum = 0;
  for (Int z = 0; z < depth; ++z) {
    for (Int y = 0; y < height; ++y) {
      const T* row = input + p.input.at(z0 + z, y0 + y, x0);
      for (Int x = 0; x < width; ++x) {
        const Real value = widen(load_constant<1>(row + x * p.input.w).lane[0]);
        sum += kSquare ? value * value : raise(value, norm);
      }
    }
  }
  const Real slope = slope_of_sum<T>(p, sum, static_cast<std::int64_t>(depth) * height * width, grad);
  for (Int z = 0; z < depth; ++z) {
    for (Int y = 0; y < height; ++y) {
      const T* row = input + p.input.at(z0 + z, y0 + y, x0);
      T* to = result + p.grad_input.at(z0 + z, y0 + y, x0);
      for (Int x = 0; x < width; ++x) {
        const Real value = widen(load_constant<1>(row + x * p.input.w).lane[0]);
        to[x * p.grad_input.w] = narrow<T>(norm_share<kSquare>(value, norm, slope));
      }
    }
  }
}

/// The same for windows of 2x2, kAcross of them beside each other: rows begin aligned to theirs.
template <class T, int kAcross, bool kSquare>
__global__ void __launch_bounds__(kBlock)
    spread_square_norms(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Real = Accumulator<T>;
  const Int thread = thread_of_grid<Int>();
  if (thread >= p.grid.threads) return;
  Place<Int> place = p.grid.place(thread);
  place.x *= kAcross;
  const T* input =
      static_cast<const T*>(at.input) + p.input.plane(place.n, place.c) + p.input.at(place.z, place.y * 2, place.x * 2);
  T* result = static_cast<T*>(at.grad_input) + p.grad_input.plane(place.n, place.c) +
              p.grad_input.at(place.z, place.y * 2, place.x * 2);
  const auto sent =
      load_constant<kAcross>(static_cast<const T*>(at.grad_output) + p.grad_output.plane(place.n, place.c) +
                             p.grad_output.at(place.z, place.y, place.x));
  Vector<T, 2 * kAcross> rows[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) rows[r] = load_constant<2 * kAcross>(input + r * p.input.h);
  const Real norm = kSquare ? Real{2} : static_cast<Real>(p.norm_type), power = Real{1} / norm;
#pragma unroll
  for (int i = 0; i < kAcross; ++i) {
    Real sum = 0;
#pragma unroll
    for (int tap = 0; tap < 4; ++tap) {
      const Real value = widen(rows[tap / 2].lane[2 * i + tap % 2]);
      sum += kSquare ? value * value : raise(value, norm);
    }
    // Four taps, averaged and scaled by four: nothing is rounded.
    const Real slope = sum == Real{0} ? Real{0} : widen(sent.lane[i]) * power * raise(sum, power - Real{1});
#pragma unroll
    for (int tap = 0; tap < 4; ++tap) {
      T& element = rows[tap / 2].lane[2 * i + tap % 2];
      element = narrow<T>(norm_share<kSquare>(widen(element), norm, slope));
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) store(result + r * p.grad_input.h, rows[r]);
}

}  // namespace cenote::gpu
