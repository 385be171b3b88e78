// The backward of Lp of norm 2 where no two windows share an element: what its kernels need besides pointers.
#pragma once

#include "cpu/rows/rows.hpp"
#include "cpu/vectors/paced.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cenote::simd {

/// Made once per plan, read-only in run(). Windows follow each other without padding in front; no slice is without one.
struct NormGradientsPlan {
  RowTensor source, target, input;
  std::int64_t minors;                 // planes of a batch entry; 1 in columns
  std::int64_t channels;               // elements of a column
  std::int64_t slices, rows, columns;  // of the output
  std::int64_t deep, high, wide;       // of a window
  std::int64_t stride, apart;          // rows and columns from window to window
  std::int64_t heights, width;         // of the input
  float whole;                         // taps of a window that nothing cuts off
  bool cut_off;                        // some windows are
  std::vector<float> row_taps[2];      // of each output slice and row
  std::vector<float> column_taps;      // of each output column, and some ones behind
  bool fetches;                        // what is read next is asked for early
  bool streams;                        // columns: around the caches where they are whole lines
  PacedPlan paced;                     // planar: rows around the caches
  std::size_t bytes;                   // of scratch

  std::int64_t units(std::int64_t batch) const { return batch * minors * slices * rows; }
};

/// Rows of outputs [begin, end).
using NormGradientsFn = void (*)(const NormGradientsPlan&, const RowPointers&, std::int64_t begin, std::int64_t end,
                                 char* scratch);

/// f32. Null where there is none for the instruction set. `columns`: of many channels; otherwise planar rows, windows two or four columns apart.
NormGradientsFn norm_gradients(std::size_t target, bool columns);

}  // namespace cenote::simd
