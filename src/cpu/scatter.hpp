// The functions that carry out a ScatterPlan.
#pragma once

#include "cpu/scatter_plan.hpp"

namespace cenote::simd {

/// Tensors of one run: the pooled (small) and the unpooled (large) side, read or written.
struct ScatterPointers {
  const void* indices;
  const void* small_in;
  void* large_out;
  const void* large_in;
  void* small_out;
};

/// Units [begin, end). False when an index was wrong.
using ScatterFn = bool (*)(const ScatterPlan&, LocateFn, const ScatterPointers&, std::int64_t begin, std::int64_t end,
                           char* scratch);

/// Unpooling moves bits: by the size of the element.
ScatterFn scatter_put(std::size_t target, std::size_t size);
ScatterFn scatter_take(std::size_t target, std::size_t size);

}  // namespace cenote::simd
