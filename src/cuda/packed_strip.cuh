// Where a thread works that folds 3x3 windows two apart over planar rows of narrow elements, several to a register.
#pragma once

#include "cuda/rows.cuh"

namespace cenote::gpu {

/// kOut outputs beside each other, from kOut * 2 columns and the one before them, down a strip.
template <class T, int kOut>
struct PackedStrip {
  using Int = std::int32_t;
  Place<Int> place;  // the first of its outputs
  Int end;           // the row after its last
  const T* input;    // its own first column of the slice's first row
  T* output;

  __device__ PackedStrip(const Params<Int>& p, const Pointers& at) : place(p.grid.place(thread_of_grid())) {
    place.y *= p.strip;
    place.x *= kOut;
    end = least(place.y + p.strip, p.axis[1].output);
    input = static_cast<const T*>(at.input) + p.input.plane(place.n, place.c) + place.z * p.input.d + 2 * place.x;
    output = static_cast<T*>(at.output) + p.output.plane(place.n, place.c) + p.output.at(place.z, place.y, place.x);
  }
  /// A row of the input; outside, the nearest again: maxima do not change by it.
  __device__ const T* row_near(const Params<Int>& p, Int y) const {
    return input + least(most(y, 0), p.axis[1].input - 1) * p.input.h;
  }
};

}  // namespace cenote::gpu
