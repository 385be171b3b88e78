// Backward of maxima over planes whose windows overlap along the rows, but not down them: what its kernels need besides pointers.
#pragma once

#include "cpu/rows/rows.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cenote::simd {

/// A column of a stride of columns is a tap, along the row, of the output `shift` behind the one that the stride's number names. `number`: bytes from the first tap's numbers to its.
struct LineTap {
  std::int64_t shift, number;
};

/// A column whose windows are cut off at an edge: their first tap inside, and how many are.
struct LineEdge {
  std::int64_t column, skipped, count;
};

/// Made once per plan, read-only in run(). Planes lie `*_pitch` elements apart and are dense. Every window has a tap inside, no two rows of windows share one, and each slice of
/// outputs sees the slice of inputs that has its number.
struct LinePlan {
  std::int64_t planes, source_pitch, target_pitch, index_pitch;
  std::int64_t source_extent;  // elements from the first to the last
  std::int64_t slices;
  DType dtype;
  std::int64_t size;  // of an element, in bytes
  Axis height, width;
  bool streams;  // the target is written around the caches
  std::vector<LineTap> taps;
  std::vector<std::int64_t>
      phases;  // where in `taps` those of each column of a stride begin, and where the last one's end
  std::vector<LineEdge> edges;
  std::vector<std::uint8_t> numbers;  // of the taps, each kLineNumberBytes times, for vectors to be compared with
  std::int64_t strides;               // of columns in a row, the last one perhaps not whole
  std::int64_t step;                  // strides in kLineVectors vectors
  std::int64_t block, blocks;         // of which so many are looked at together; such blocks of a row
  std::int64_t before, behind;        // outputs beside those of a block that its columns may see

  // Scratch, bytes from the start of a slot: the outputs that a block's columns may see, and its columns.
  std::size_t codes_at, values_at, result_at, bytes;

  std::int64_t units() const { return planes * slices * height.output * blocks; }
};

inline constexpr std::int64_t kLineNumberBytes = 16;
/// Vectors of strides that are gathered at once: what must be known of a tap is looked up once for them.
inline constexpr int kLineVectors = 2;
/// Units [begin, end): blocks of the input rows from an output row's first to the next one's. False if an index is no tap of its window.
using GatherLinesFn = bool (*)(const LinePlan&, const RowPointers&, std::int64_t begin, std::int64_t end,
                               char* scratch);

/// Null where there is none for the instruction set.
GatherLinesFn gather_lines(std::size_t target);

}  // namespace cenote::simd
