// Planes side by side: what turns a block of small planes into channels-last columns, and back.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cenote::simd {

/// `planes` planes, `pitch` elements apart, and their first `count` elements.
using PlanesToColumnsFn = void (*)(const void* planes_from, std::int64_t pitch, std::int64_t planes, std::int64_t count,
                                   void* columns);
using ColumnsToPlanesFn = void (*)(const void* columns, std::int64_t pitch, std::int64_t planes, std::int64_t count,
                                   void* planes_to);

/// For one number of planes and one size of element.
struct Transposer {
  PlanesToColumnsFn to_columns;
  ColumnsToPlanesFn to_planes;
};

/// `group`: planes side by side (8, 16, 32 or 64); `size`: bytes of an element. `target` indexes Highway's dispatch tables.
Transposer transposer(std::size_t target, int group, std::size_t size);

}  // namespace cenote::simd
