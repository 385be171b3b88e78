// Sums and averages over planes, and their backward, where a vector of results is made of two vectors of sums of rows: what the kernel needs besides pointers.
#pragma once

#include "cpu/slice_divisors.hpp"
#include "cpu/vectors/paced.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cenote::simd {

/// Sums of source rows: the first `elements` of one, of the one `step` elements behind it, and so on, `count` of them. Rows of results that see rows one apart
/// have their sums in one.
struct LaneRun {
  std::int64_t first, count, step;  // elements from the beginning of a slice
  std::int64_t at, elements;        // of the sums
  bool alike;                       // backward of averages: the rows have one divisor for each column
};

/// Results from element `at` on, `count` of them, and the two vectors of sums that they are made of. `lanes`: where the table of what each takes begins.
struct LaneVector {
  std::int32_t at, count, first, second, lanes;
};

/// Rows of results of a slice whose sums are taken at once.
struct LaneGroup {
  std::int64_t first_row, rows;
  std::int64_t first_run, end_run;
  std::int64_t first_vector, end_vector;
};

/// The source slices that a slice of results is made of.
struct LaneSlices {
  RowRange seen;
  bool alike;  // backward of averages: their divisors are
};

/// Made once per plan, read-only in run(). Planes lie `*_pitch` elements apart and are dense.
struct LanePlan {
  std::int64_t planes, source_pitch, target_pitch;
  std::int64_t extent;               // elements of the source from its first to its last
  std::int64_t source_slice, width;  // elements of a slice of the source, and of a row of results
  std::int64_t target_slice;         // elements of a slice of results
  std::vector<LaneSlices> slices;    // of each slice of results
  std::vector<LaneRun> runs;         // of all groups
  std::vector<LaneGroup> groups;
  std::vector<LaneVector> vectors;     // of each group as one row; or of any one row, see row_sums
  std::vector<std::int64_t> row_sums;  // where rows are longer: of each row of a slice, where its sums are
  std::int64_t most;                   // sums that a result is made of, 2, 3 or 5
  std::vector<std::int32_t> lanes;     // of vectors, for each of those: which lane of the two is taken; -1: none
  std::int64_t batch;                  // slices whose sums are taken before the first is finished
  std::int64_t bands, band;            // that the groups of a slice are cut into, for threads to share; groups of each
  bool forward;                        // averages are divided last, gradients where rows are summed up
  SliceDivisors divisors;
  PacedPlan paced;  // of the target's rows

  // Scratch, bytes from the start of a slot.
  std::int64_t sum_pitch;       // elements from the sums of one slice to those of the next
  std::size_t paced_at, bytes;  // behind the sums

  std::int64_t slice_count() const { return planes * static_cast<std::int64_t>(slices.size()); }
  std::int64_t units() const { return ceil_div(slice_count(), batch) * bands; }
};

/// The most sums that a result is made of, and the most rows of results that are made at once.
inline constexpr std::int64_t kMostLaneSums = 5;
inline constexpr std::int64_t kMostLaneRows = 64;
/// The most source rows of a sum.
inline constexpr std::int64_t kMostLaneSources = 32;

/// Units [begin, end): bands of so many slices as are taken at once.
using LaneSumsFn = void (*)(const LanePlan&, const RowPointers&, std::int64_t begin, std::int64_t end, char* scratch);

/// Null where there is none for the instruction set and type.
LaneSumsFn lane_sums(std::size_t target, DType dtype);

}  // namespace cenote::simd
