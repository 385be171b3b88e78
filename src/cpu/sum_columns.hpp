// Averages and sums of f32 and bf16 columns of many channels, straight from the taps: what the kernels need besides pointers.
#pragma once

#include "cpu/rows.hpp"

#include <cstdint>
#include <vector>

namespace cenote::simd {

/// Rows of a window over all its slices, at most.
inline constexpr int kMostSummedRows = 16;

struct SumColumnsPlan {
  RowTensor source, target;
  std::int64_t channels, columns;                     // of a row of outputs
  std::vector<RowRange> slices, rows;                 // of inputs that each slice and row of outputs sees
  std::vector<std::int32_t> first, count;             // of input columns that each column of outputs sees
  std::vector<double> row_factors[2], column_factor;  // as in ExpandColumnsPlan
  bool streams;  // the target is written around the caches where it begins with a line: then all its columns do
  std::size_t bytes;

  std::int64_t units(std::int64_t batch) const {
    return batch * static_cast<std::int64_t>(slices.size() * rows.size());
  }
};

using SumColumnsFn = void (*)(const SumColumnsPlan&, const RowPointers&, std::int64_t begin, std::int64_t end,
                              char* scratch);

/// Null where there is none for the element type and instruction set.
SumColumnsFn sum_columns(std::size_t target, DType dtype);

}  // namespace cenote::simd
