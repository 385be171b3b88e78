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

/// Runs [first_run, end_run), and the output rows that they take theirs from, which are divided before.
struct ExpandGroup {
  std::int64_t first_run, end_run;
  std::int64_t first_seen, seen;
};

/// Made once per plan, read-only in run(). Planes lie `*_pitch` elements apart and are dense.
struct ExpandPlan {
  std::int64_t planes, source_pitch, target_pitch;
  std::int64_t extent;               // elements of the source from its first to its last
  std::int64_t heights, width;       // of the input
  std::int64_t rows, columns;        // of an output slice
  std::vector<std::int64_t> slices;  // of each slice of the input, the output slice that sees it; -1: none
  std::vector<ExpandRun> runs;
  std::vector<ExpandGroup> groups;
  std::int64_t bands, band;  // that the groups of a slice are cut into, for threads to share; groups of each
  std::vector<ExpandVector> vectors;
  // Of each vector: which output every lane takes, from its first; -1: none. In lanes as wide as elements.
  std::vector<std::int32_t> lanes;
  std::vector<std::int16_t> short_lanes;
  SliceDivisors divisors;
  PacedPlan paced;  // of the target's rows
  // Scratch, bytes from the start of a slot: what is divided lies behind the target's rows.
  std::size_t divided_at, bytes;

  std::int64_t units() const { return planes * static_cast<std::int64_t>(slices.size()) * bands; }
};

/// Units [begin, end): bands of slices of planes.
using ExpandPlanesFn = void (*)(const ExpandPlan&, const RowPointers&, std::int64_t begin, std::int64_t end,
                                char* scratch);

}  // namespace cenote::simd
