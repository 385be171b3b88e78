// Backward of sums and averages over planes whose windows share nothing: what the kernel needs besides pointers.
#pragma once

#include "cpu/slice_divisors.hpp"
#include "cpu/vectors/paced.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cenote::simd {

/// Input rows [row, row + rows), and the output row that sees them; -1: none.
struct ExpandRun {
  std::int64_t row, rows, seen;
};

/// A vector of input columns, and the first output that sees one of them.
struct ExpandVector {
  std::int64_t column, output;
};

/// Made once per plan, read-only in run(). Planes lie `*_pitch` elements apart and are dense.
struct ExpandPlan {
  std::int64_t planes, source_pitch, target_pitch;
  std::int64_t extent;               // elements of the source from its first to its last
  std::int64_t heights, width;       // of the input
  std::int64_t rows, columns;        // of an output slice
  std::vector<std::int64_t> slices;  // of each slice of the input, the output slice that sees it; -1: none
  std::vector<ExpandRun> runs;
  std::int64_t bands, band;  // that the runs of a slice are cut into, for threads to share; runs of each
  std::vector<ExpandVector> vectors;
  std::vector<std::int32_t> lanes;  // of each vector: which output every lane takes, from the first; -1: none
  SliceDivisors divisors;
  PacedPlan paced;    // of the target's rows
  std::size_t bytes;  // of scratch

  std::int64_t units() const { return planes * static_cast<std::int64_t>(slices.size()) * bands; }
};

/// Units [begin, end): bands of slices of planes.
using ExpandPlanesFn = void (*)(const ExpandPlan&, const RowPointers&, std::int64_t begin, std::int64_t end,
                                char* scratch);

}  // namespace cenote::simd
