// Elements of narrow types as f32, and back.
#pragma once

#include <cenote/dtype.hpp>

#include <cstddef>
#include <cstdint>

namespace cenote::simd {

using WidenFn = void (*)(const void* narrow, float* wide, std::int64_t count);
using NarrowFn = void (*)(const float* wide, void* narrow, std::int64_t count);

/// For one type all of whose values are values of f32. Halves are rounded to nearest even; integers hold what they are given.
struct Widening {
  WidenFn widen;  // null where there is none
  NarrowFn narrow;
};

/// `target` indexes Highway's dispatch tables.
Widening widening(std::size_t target, DType dtype);

}  // namespace cenote::simd
