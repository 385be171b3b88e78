// The backward of 3x3x3 max windows two apart with padding 1, planar tensors with aligned rows: a thread walks along the depth and reads
// each slice of outputs that sees its elements once. Which outputs see which of them is known when this is compiled.
#pragma once

#include "cuda/gather_down.cuh"

namespace cenote::gpu {

/// Elements of a slice that a thread makes: two rows of 16 bytes.
inline constexpr int kSliceRows = 2;
template <class T>
inline constexpr int kSliceColumns = 16 / static_cast<int>(sizeof(T));

/// Half as many outputs as elements along height and width, half as many rounded up along the depth; strips begin at even slices. Stored:
/// the indices' type; kTaps: they are of kind window.
template <class T, class Stored, bool kTaps>
__global__ void __launch_bounds__(kBlock)
    gather_slices(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Sum = Accumulator<T>;
  constexpr int kColumns = kSliceColumns<T>, kOwn = kColumns / 2,
                kSeen = kOwn + 1;  // outputs of a row that see the columns
  using Slice = Sum[kSliceRows][kColumns];
  const Int thread = thread_of_grid<Int>();
  if (thread >= p.grid.threads) return;
  Place<Int> place = p.grid.place(thread);
  place.z *= p.strip;
  place.y *= kSliceRows;
  place.x *= kColumns;
  const Int depth = p.axis[0].input, height = p.axis[1].input, width = p.axis[2].input;
  const Int end = least(place.z + p.strip, depth), oy = place.y / 2, own = place.x / 2;
  Int oz = place.z / 2;
  const bool has_below = oy + 1 < p.axis[1].output, has_next = own + kOwn < p.axis[2].output;
  const T* grad =
      static_cast<const T*>(at.grad_output) + p.grad_output.plane(place.n, place.c) + p.grad_output.at(oz, oy, own);
  const Stored* indices =
      static_cast<const Stored*>(at.saved_indices) + p.indices.plane(place.n, place.c) + p.indices.at(oz, oy, own);
  T* result = static_cast<T*>(at.grad_input) + p.grad_input.plane(place.n, place.c) +
              p.grad_input.at(place.z, place.y, place.x);
  // From one row of a window to the next and from one slice to the next, in codes.
  const auto unit = static_cast<unsigned>(kTaps ? 3 : width), slice = static_cast<unsigned>(kTaps ? 9 : height * width);
  // The code of the first own window's first tap, which may lie outside and wrap around.
  unsigned corner = 0;
  if (!kTaps)
    corner = static_cast<unsigned>(2 * oz - 1) * slice + static_cast<unsigned>((2 * oy - 1) * width + place.x - 1);
  bool right = true;
  Sum share[2][kSeen];
  unsigned codes[2][kSeen];  // counted from the first taps of their windows
  // What the slice of outputs at hand sends; `vouches`: this thread has the first looks at the indices of its own outputs.
  auto read = [&](bool vouches) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int m = 0; m < kSeen; ++m) share[r][m] = Sum{0}, codes[r][m] = 0;
      if (oz >= p.axis[0].output || (r == 1 && !has_below)) continue;
      const T* from = grad + r * p.grad_output.h;
      const Stored* index = indices + r * p.indices.h;
      auto set = [&](int m, T sent, Int code) {
        share[r][m] = widen(sent);
        codes[r][m] = static_cast<unsigned>(code);
        if (!kTaps) codes[r][m] -= corner + static_cast<unsigned>(r * 2 * width + m * 2);
      };
      const Vector<T, kOwn> sent = load_constant<kOwn>(from);
      Int low[kOwn], high[kOwn];
      load_stored<Stored>(index, 0, low, high);
#pragma unroll
      for (int m = 0; m < kOwn; ++m) set(m, sent.lane[m], low[m]);
      if (has_next) {
        Int code[1], above[1];
        load_stored<Stored>(index + kOwn, 0, code, above);
        set(kOwn, load_constant<1>(from + kOwn).lane[0], code[0]);
      }
      if (r == 0 && vouches) {
        const bool slices[3] = {oz > 0, true, 2 * oz + 1 < depth}, rows[3] = {oy > 0, true, true};  // inside the input
        bool all = true, held[kOwn];
#pragma unroll
        for (int m = 0; m < kOwn; ++m) {
          const unsigned first_tap = m == 0 && own == 0 ? 1 : 0, taps = 3 - first_tap;
          held[m] = false;
#pragma unroll
          for (unsigned tap = 0; tap < 9; ++tap) {
            const unsigned column = codes[0][m] - first_tap - tap / 3 * slice - tap % 3 * unit;
            held[m] = held[m] | (slices[tap / 3] & rows[tap % 3] & (column < taps));
          }
          held[m] = held[m] & (high[m] == 0);
          all = all & held[m];
        }
        if (!all) {
#pragma unroll
          for (int m = 0; m < kOwn; ++m) right = right && (held[m] || (low[m] & high[m]) == -1);
        }
      }
    }
  };
  // What slice tz of the windows at hand adds, outputs in ascending order.
  auto add = [&](unsigned tz, Slice& sums) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int m = 0; m < kSeen; ++m) {
#pragma unroll
        for (int tap = 0; tap < 9; ++tap) {
          const int y = 2 * r - 1 + tap / 3, x = 2 * m - 1 + tap % 3;
          if (y < 0 || y >= kSliceRows || x < 0 || x >= kColumns) continue;
          const unsigned mine = tz * slice + static_cast<unsigned>(tap / 3) * unit + static_cast<unsigned>(tap % 3);
          if (codes[r][m] == mine) sums[y][x] += share[r][m];
        }
      }
    }
  };
  auto store_slice = [&](const Slice& sums) {
#pragma unroll
    for (int y = 0; y < kSliceRows; ++y) {
      Vector<T, kColumns> row;
#pragma unroll
      for (int x = 0; x < kColumns; ++x) row.lane[x] = narrow<T>(sums[y][x]);
      store(result + y * p.grad_input.h, row);
    }
    result += p.grad_input.d;
  };
  // Slice z is the first of the windows at hand, the last of those before; the slice between belongs to one slice of outputs.
  Slice shared = {};
  for (Int z = place.z - 1;; z += 2) {
    read(z + 1 < end);
    if (z >= place.z) {
      add(0, shared);
      store_slice(shared);
    }
    if (z + 1 >= end) break;
    Slice middle = {};
    add(1, middle);
    store_slice(middle);
    if (z + 2 >= end) break;
#pragma unroll
    for (int y = 0; y < kSliceRows; ++y) {
#pragma unroll
      for (int x = 0; x < kColumns; ++x) shared[y][x] = Sum{0};
    }
    add(2, shared);
    ++oz;
    grad += p.grad_output.d;
    indices += p.indices.d;
    if (!kTaps) corner += 2 * slice;
  }
  if (!right) report(at.fault, kFaultIndex);
}

}  // namespace cenote::gpu
