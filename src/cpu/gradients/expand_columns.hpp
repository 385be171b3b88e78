// The backward of averages and sums in columns of many channels: what the kernels need besides pointers.
#pragma once

#include "cpu/rows/rows.hpp"

#include <cstdint>
#include <vector>

namespace cenote::simd {

/// Outputs beside each other that see an input, at most.
inline constexpr int kMostSeenColumns = 3;
/// Rows of outputs that see an input, over all slices, at most.
inline constexpr int kMostSeenRows = 16;
/// Input rows that are written at once, at most.
inline constexpr int kRowsWritten = 4;

/// Neighbouring input rows that the same rows of outputs see.
struct InputRows {
  std::int64_t first, count;
  RowRange seen_by;
};

struct ExpandColumnsPlan {
  RowTensor source, target;
  std::int64_t channels;
  std::int64_t width, outputs;        // columns of inputs and of outputs
  std::int64_t kernel, stride, left;  // along the width; columns before the first
  std::vector<RowRange> slices;       // of outputs that see each slice of inputs
  std::vector<InputRows> rows;
  // Divisor of an output = the row factors of its slice and its row * its column's factor.
  std::vector<double> row_factors[2];
  std::vector<double> column_factor;  // one for all where there is but one
  bool streams;       // the target is written around the caches where it begins with a line: then all its columns do
  std::size_t pitch;  // elements from one kept output to the next in scratch
  std::size_t bytes;  // of scratch

  std::int64_t units(std::int64_t batch) const {
    return batch * static_cast<std::int64_t>(slices.size() * rows.size());
  }
};

using ExpandColumnsFn = void (*)(const ExpandColumnsPlan&, const RowPointers&, std::int64_t begin, std::int64_t end,
                                 char* scratch);

/// Null where there is none for the element type and instruction set.
ExpandColumnsFn expand_columns(std::size_t target, DType dtype);

}  // namespace cenote::simd
