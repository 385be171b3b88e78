// Planes that lie at one distance from each other, each of them without gaps.
#pragma once

#include "geometry/checked.hpp"
#include "geometry/problem.hpp"

namespace cenote::simd {

/// The planes of one tensor of a problem: of the pool's input side (`large`) or of its output side.
struct DensePlanes {
  bool dense = false;
  std::int64_t pitch = 0;  // elements from one plane to the next
  std::int64_t count = 0;  // elements of a plane
};

/// Planes whose columns hold `inner` elements each, `pitch` apart.
inline DensePlanes dense_planes(const Problem& p, const Layout& l, bool large, std::int64_t inner, std::int64_t pitch) {
  const auto extent = [&](int a) { return large ? p.axis[a].input : p.axis[a].output; };
  const std::int64_t depth = extent(0), height = extent(1), width = extent(2), row = width * inner;
  DensePlanes planes;
  planes.count = depth * height * row;
  planes.pitch = pitch;
  planes.dense = (width == 1 || l.w == inner) && (height == 1 || l.h == row) && (depth == 1 || l.d == height * row) &&
                 planes.pitch >= planes.count;
  return planes;
}

inline DensePlanes dense_planes(const Problem& p, const Layout& l, bool large) {
  DensePlanes planes = dense_planes(p, l, large, 1, p.channels > 1 ? l.c : l.n);
  std::int64_t sample = 0;
  planes.dense =
      planes.dense && (p.channels == 1 || p.batch == 1 || (checked_mul(p.channels, l.c, sample) && l.n == sample));
  return planes;
}

/// The same of a channels-last tensor: the planes of a sample are one, of all channels.
inline DensePlanes dense_columns(const Problem& p, const Layout& l, bool large) {
  DensePlanes planes = dense_planes(p, l, large, p.channels, l.n);
  planes.dense = planes.dense && (p.channels == 1 || l.c == 1);
  return planes;
}

}  // namespace cenote::simd
