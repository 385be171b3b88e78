// Averages and maxima over whole planes, and the backward of averages: a plane becomes one number, or the other way round.
#pragma once

#include "cpu/rows/rows.hpp"

#include <cstddef>
#include <cstdint>

namespace cenote::simd {

/// Made once per plan, read-only in run(). Planes of the large side lie `pitch` elements apart and are dense; the numbers of the
/// small side follow each other.
struct WholePlanes {
  std::int64_t planes, pitch;
  std::int64_t group;        // planes of a unit, kWholeLanes at most
  std::int64_t rows, width;  // all rows of a plane, depth after depth
  std::int64_t extent;       // elements of the large side from its first to its last
  double divisor;
  bool sums_in_lanes;  // see LaneSums
  bool streams;        // the large side is written around the caches
  bool finds;          // maxima: where they lie, too
  DType index_dtype;
};

/// The most planes of a unit, and the most lanes of vectors that columns are added up in.
inline constexpr std::int64_t kWholeLanes = 16;
/// Elements that are written around the caches in one go.
inline constexpr std::int64_t kStreamedPiece = 1024;

/// Units [begin, end). `scratch` has room for a piece of the backward, and a vector behind it.
using WholePlanesFn = void (*)(const WholePlanes&, const RowPointers&, std::int64_t begin, std::int64_t end,
                               char* scratch);

}  // namespace cenote::simd
