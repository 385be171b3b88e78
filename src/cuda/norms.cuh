// The backward of lp_pool where windows lie side by side: a thread reads the elements of one window, and writes their gradients.
#pragma once

#include "cuda/backward.cuh"

namespace cenote::gpu {

/// Windows without dilation, padding and gaps, all whole. kTwo: two taps across, rows begin aligned: both at once. kSquare: norm 2.
template <class T, bool kTwo, bool kSquare>
__global__ void __launch_bounds__(kBlock)
    spread_norms(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  using Int = std::int32_t;
  using Real = Accumulator<T>;
  constexpr int kStep = kTwo ? 2 : 1;
  const Int thread = static_cast<Int>(blockIdx.x) * kBlock + static_cast<Int>(threadIdx.x);
  if (thread >= p.grid.threads) return;
  const Place<Int> place = p.grid.place(thread);
  const Int depth = p.axis[0].kernel, height = p.axis[1].kernel, width = p.axis[2].kernel;
  const Int z0 = place.z * depth, y0 = place.y * height, x0 = place.x * width;
  const T* input = static_cast<const T*>(at.input) + place.n * p.input.n + place.c * p.input.c;
  T* result = static_cast<T*>(at.grad_input) + place.n * p.grad_input.n + place.c * p.grad_input.c;
  const T grad = static_cast<const T*>(at.grad_output)[place.n * p.grad_output.n + place.c * p.grad_output.c +
                                                       p.grad_output.at(place.z, place.y, place.x)];
  const Real norm = kSquare ? Real{2} : static_cast<Real>(p.norm_type);
  Real sum = 0;
  for (Int z = 0; z < depth; ++z) {
    for (Int y = 0; y < height; ++y) {
      const T* row = input + p.input.at(z0 + z, y0 + y, x0);
      for (Int x = 0; x < width; x += kStep) {
        const auto values = load_constant<kStep>(row + x * p.input.w);
#pragma unroll
        for (int i = 0; i < kStep; ++i) {
          const Real x_i = widen(values.lane[i]);
          sum += kSquare ? x_i * x_i : raise(x_i, norm);
        }
      }
    }
  }
  const Real slope = slope_of_sum<T>(p, sum, static_cast<std::int64_t>(depth) * height * width, grad);
  for (Int z = 0; z < depth; ++z) {
    for (Int y = 0; y < height; ++y) {
      const T* row = input + p.input.at(z0 + z, y0 + y, x0);
      T* to = result + p.grad_input.at(z0 + z, y0 + y, x0);
      for (Int x = 0; x < width; x += kStep) {
        const auto values = load_constant<kStep>(row + x * p.input.w);
        Vector<T, kStep> shares;
#pragma unroll
        for (int i = 0; i < kStep; ++i) {
          const Real x_i = widen(values.lane[i]);
          shares.lane[i] = narrow<T>(norm * (kSquare ? x_i : raise(x_i, norm - Real{1})) * (Real{0} + slope));
        }
        store(to + x * p.grad_input.w, shares);
      }
    }
  }
}

}  // namespace cenote::gpu
