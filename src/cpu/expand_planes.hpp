// Backward of sums and averages over planes, where a vector of inputs is seen by no more outputs than fill one, or by a few vectors of them one apart: what its
// kernels need besides pointers.
#pragma once

#include "cpu/paced.hpp"
#include "cpu/slice_divisors.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cenote::simd {

/// Input rows that follow each other and that the same output rows see.
struct ExpandRun {
  std::int64_t rows;
  RowRange seen;
  bool alike;  // averages: the divisors of those are
};

/// The output slices that see an input slice.
struct ExpandSlices {
  RowRange seen;
  bool alike;  // averages: their divisors are
};

/// Runs that follow each other; where inputs are seen by several outputs, so many that their sums are taken at once and their rows put together at once.
struct ExpandGroup {
  std::int64_t first_run, runs;
  std::int64_t first_row, rows;  // of the input
};

/// A vector of input columns, and the first output that sees one of them; in a row of sums, where that is.
struct ExpandVector {
  std::int64_t column, output;
};

/// Made once per plan, read-only in run(). Planes lie `*_pitch` elements apart and are dense.
struct ExpandPlan {
  std::int64_t planes, source_pitch, target_pitch;
  std::int64_t extent;               // elements of the source from its first to its last
  std::int64_t heights, width;       // of the input
  std::int64_t rows, columns;        // of an output slice
  std::vector<ExpandSlices> slices;  // of each slice of the input
  std::vector<ExpandRun> runs;
  std::vector<ExpandGroup> groups;
  std::int64_t bands, band;  // that the groups of a slice are cut into, for threads to share; groups of each
  bool apart;                // every column is seen by one output, and every row and slice by one at most
  std::vector<ExpandVector> vectors;
  std::int64_t most;  // outputs of a row that see a column; where windows are neither apart nor one apart 2, 3 or 5
  std::vector<std::int32_t> lanes;  // of each vector, for each of those: which output every lane takes, -1: none
  // Windows one apart: neighbouring columns are seen by neighbouring outputs, those of one column `step` apart. There are no `lanes`; rows of sums have so many
  // zeros in front and enough behind.
  bool shifted;
  std::int64_t step, margin;
  SliceDivisors divisors;
  PacedPlan paced;  // of the target's rows

  // Scratch, bytes from the start of a slot.
  std::int64_t sum_pitch;       // elements from the sums of one run to those of the next
  std::size_t paced_at, bytes;  // behind the sums

  std::int64_t units() const { return planes * static_cast<std::int64_t>(slices.size()) * bands; }
};

/// Units [begin, end): bands of slices of planes.
using ExpandPlanesFn = void (*)(const ExpandPlan&, const RowPointers&, std::int64_t begin, std::int64_t end,
                                char* scratch);

}  // namespace cenote::simd
