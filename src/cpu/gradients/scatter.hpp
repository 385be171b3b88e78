// The functions that carry out a ScatterPlan.
#pragma once

#include "cpu/gradients/scatter_plan.hpp"

namespace cenote::simd {

/// Tensors of one run.
struct ScatterPointers {
  const void* indices;
  const void* grad_output;
  void* grad_input;
};

/// Units [begin, end). False when an index was wrong.
using ScatterFn = bool (*)(const ScatterPlan&, LocateFn, const ScatterPointers&, std::int64_t begin, std::int64_t end,
                           char* scratch);

}  // namespace cenote::simd
