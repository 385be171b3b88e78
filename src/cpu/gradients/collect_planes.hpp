// Backward of maxima over small planes whose windows overlap: what its kernels need besides pointers.
#pragma once

#include "cpu/gradients/gather_planes.hpp"
#include "cpu/gradients/pick_planes.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cenote::simd {

/// Made once per plan, read-only in run(). Planes have no depth, lie `*_pitch` elements apart and are dense.
struct CollectPlan {
  std::int64_t planes, source_pitch, target_pitch, index_pitch;
  std::int64_t source_extent, index_extent;  // elements from the first to the last
  Axis height, width;
  std::vector<std::uint32_t> left;    // of each output: a bit for each tap that its clipping leaves
  std::vector<std::int64_t> columns;  // the first of each vector
  std::int64_t most;                  // outputs of a row that see a column
  bool together;                      // a vector of them holds what all lanes of a vector of columns take
  // Of each vector, for each of those: the first output that a lane takes, and for every lane which one from there on, and its tap along the row; where there is none, kNoNumber.
  std::vector<std::int64_t> firsts;
  std::vector<std::int32_t> lanes, numbers;

  // Scratch, bytes from the start of a slot: a plane of gradients and one of taps, with what vectors reach beyond.
  std::size_t gradients_at, taps_at, bytes;
};

/// Planes [begin, end). False if an index is no tap of its window.
using CollectPlanesFn = bool (*)(const CollectPlan&, const RowPointers&, std::int64_t begin, std::int64_t end,
                                 char* scratch);

}  // namespace cenote::simd
