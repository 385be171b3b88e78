// The backward of 3x3 max windows with padding 1: a thread walks down a strip of columns and reads each row of outputs that sees it once.
// Which outputs see which of its elements is known when this is compiled, along the height too.
#pragma once

#include "cuda/gather_down.cuh"

namespace cenote::gpu {

/// Windows kStride apart, one column before the first. No window leaves its slice. kLanes: neighbouring channels; 1: planar tensors with
/// aligned rows, and columns for all outputs. Stored: the indices' type; kTaps: they are of kind window. Two apart, strips begin at
/// even rows. (Planes of one or two columns: codes that could stand for two places are of columns outside, which are not stored.)
template <class T, int kLanes, int kColumns, class Stored, bool kTaps, int kStride>
__global__ void __launch_bounds__(kBlock)
    gather_columns(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Sum = Accumulator<T>;
  using Row = Sum[kColumns][kLanes];
  constexpr bool kPlanar = kLanes == 1;
  constexpr int kOwn = kColumns / kStride;
  // Outputs that see the strip, counted from its own first.
  constexpr int kFirst = kStride == 1 ? -1 : 0, kSeen = kOwn - kFirst + 1;
  const Int thread = thread_of_grid<Int>();
  if (thread >= p.grid.threads) return;
  Place<Int> place = p.grid.place(thread);
  place.y *= p.strip;
  place.x *= kColumns;
  const Int height = p.axis[1].input, width = p.axis[2].input, out_width = p.axis[2].output;
  const Int end = least(place.y + p.strip, height), own = place.x / kStride;
  Int oy = place.y / kStride + kFirst;  // the first row of outputs that sees the strip, whether or not it exists
  const T* grad = static_cast<const T*>(at.grad_output) + p.grad_output.plane(place.n, place.c) +
                  p.grad_output.at(place.z, oy, own);
  const Stored* indices =
      static_cast<const Stored*>(at.saved_indices) + p.indices.plane(place.n, place.c) + p.indices.at(place.z, oy, own);
  T* result = static_cast<T*>(at.grad_input) + p.grad_input.plane(place.n, place.c) +
              p.grad_input.at(place.z, place.y, place.x);
  const Int grad_step = kPlanar ? 1 : p.grad_output.w, index_step = kPlanar ? 1 : p.indices.w;
  const auto unit = static_cast<unsigned>(kTaps ? 3 : width);  // from one row of a window to the next, in codes
  // The code of the first own window's first tap; of one that begins before the input it may wrap around.
  unsigned corner = 0;
  if (!kTaps) {
    corner =
        (static_cast<unsigned>(place.z) * static_cast<unsigned>(height) + static_cast<unsigned>(oy * kStride - 1)) *
            static_cast<unsigned>(width) +
        static_cast<unsigned>(place.x - 1);
  }
  auto code_of = [&](Int code, int m) {  // counted from the first tap of output m's window
    return static_cast<unsigned>(code) - corner - static_cast<unsigned>(kTaps ? 0 : m * kStride);
  };
  // Columns of own windows inside the input: the first, and how many.
  unsigned first_tap[kOwn], taps[kOwn];
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    first_tap[i] = i == 0 && own == 0 ? 1 : 0;
    // Planar, the width is a multiple of the columns: only where windows are one apart does the last hang over.
    const bool may_hang = !kPlanar || (kStride == 1 && i == kOwn - 1);
    const Int inside = may_hang ? most(least(3, width + 1 - (own + i) * kStride), 0) : 3;
    taps[i] = static_cast<unsigned>(inside) - first_tap[i];
  }
  bool right = true;
  Sum share[kSeen][kLanes];
  unsigned codes[kSeen][kLanes];
  // What row oy of outputs sends; their windows begin in row `top`.
  auto read = [&](Int top) {
#pragma unroll
    for (int m = 0; m < kSeen; ++m) {
#pragma unroll
      for (int l = 0; l < kLanes; ++l) {
        share[m][l] = Sum{0};
        codes[m][l] = 0;
      }
    }
    if (static_cast<unsigned>(oy) >= static_cast<unsigned>(p.axis[1].output)) return;
    Int low[kOwn][kLanes], high[kOwn][kLanes];
    auto set = [&](int m, const Vector<T, kLanes>& sent, const Int(&code)[kLanes]) {
#pragma unroll
      for (int l = 0; l < kLanes; ++l) {
        share[m - kFirst][l] = widen(sent.lane[l]);
        codes[m - kFirst][l] = code_of(code[l], m);
      }
    };
    if constexpr (kPlanar) {
      const Vector<T, kOwn> sent = load_constant<kOwn>(grad);
      Int words[kOwn], upper[kOwn];
      load_stored<Stored>(indices, 0, words, upper);
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        low[i][0] = words[i];
        high[i][0] = upper[i];
        set(i, {sent.lane[i]}, low[i]);
      }
    }
#pragma unroll
    for (int m = kFirst; m < kFirst + kSeen; ++m) {
      const bool is_own = m >= 0 && m < kOwn;
      if (kPlanar && is_own) continue;
      Int code[kLanes], above[kLanes];
#pragma unroll
      for (int l = 0; l < kLanes; ++l) code[l] = above[l] = -1;
      Vector<T, kLanes> sent{};
      if (static_cast<unsigned>(own + m) < static_cast<unsigned>(out_width)) {
        sent = load_constant<kLanes>(grad + m * grad_step);
        load_stored<Stored>(indices + m * index_step, 0, code, above);
      }
      set(m, sent, code);
      if (is_own) {
#pragma unroll
        for (int l = 0; l < kLanes; ++l) {
          low[m][l] = code[l];
          high[m][l] = above[l];
        }
      }
    }
    // Every index is looked at by the threads whose own output it is. All comparisons are made: none costs as much as a branch.
    const bool upper = top >= 0, middle = top + 1 < height, lower = top + 2 < height;  // rows inside the input
    bool all = true, held[kOwn][kLanes];
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
#pragma unroll
      for (int l = 0; l < kLanes; ++l) {
        const unsigned column = codes[i - kFirst][l] - first_tap[i];
        held[i][l] = (high[i][l] == 0) & ((upper & (column < taps[i])) | (middle & (column - unit < taps[i])) |
                                          (lower & (column - 2 * unit < taps[i])));
        all = all & held[i][l];
      }
    }
    if (!all) {
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
#pragma unroll
        for (int l = 0; l < kLanes; ++l) right = right && (held[i][l] || (low[i][l] & high[i][l]) == -1);
      }
    }
  };
  auto next = [&] {
    ++oy;
    grad += p.grad_output.h;
    indices += p.indices.h;
    if (!kTaps) corner += kStride * unit;
  };
  // What tap row r of the windows at hand adds.
  auto add = [&](unsigned r, Row& sums) {
#pragma unroll
    for (int m = 0; m < kSeen; ++m) {
      const int start = (m + kFirst) * kStride - 1;  // where its window begins, in columns of the strip
#pragma unroll
      for (int t = 0; t < 3; ++t) {
        const int column = start + t;
        if (column < 0 || column >= kColumns) continue;
#pragma unroll
        for (int l = 0; l < kLanes; ++l) {
          if (codes[m][l] == r * unit + static_cast<unsigned>(t)) sums[column][l] += share[m][l];
        }
      }
    }
  };
  auto clear = [](Row& sums) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
#pragma unroll
      for (int l = 0; l < kLanes; ++l) sums[c][l] = Sum{0};
    }
  };
  auto store_row = [&](const Row& sums) {
    if constexpr (kPlanar) {
      Vector<T, kColumns> values;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) values.lane[c] = narrow<T>(sums[c][0]);
      store(result, values);
    } else {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        Vector<T, kLanes> values;
#pragma unroll
        for (int l = 0; l < kLanes; ++l) values.lane[l] = narrow<T>(sums[c][l]);
        if (place.x + c < width) store(result + c * p.grad_input.w, values);
      }
    }
    result += p.grad_input.h;
  };
  if constexpr (kStride == 2) {
    // Row y is the first of the windows of row oy, the last of those before; the row between belongs to one row of outputs.
    Row shared = {};
    for (Int y = place.y - 1;; y += 2) {
      read(y);
      if (y >= place.y) {
        add(0, shared);
        store_row(shared);
      }
      if (y + 1 >= end) break;
      Row middle = {};
      add(1, middle);
      store_row(middle);
      if (y + 2 >= end) break;
      clear(shared);
      add(2, shared);
      next();
    }
  } else {
    // Row y is the first of the windows of row oy; two rows of outputs before have seen it.
    Row upper = {}, middle = {};
    for (Int y = place.y - 2;; ++y) {
      read(y);
      if (y >= place.y) {
        add(0, upper);
        store_row(upper);
        if (y + 1 >= end) break;
      }
      add(1, middle);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
#pragma unroll
        for (int l = 0; l < kLanes; ++l) upper[c][l] = middle[c][l];
      }
      clear(middle);
      add(2, middle);
      next();
    }
  }
  if (!right) report(at.fault, kFaultIndex);
}

}  // namespace cenote::gpu
