// How the gather backward checks the indices it is given.
#pragma once

#include <atomic>
#include <cstdint>

namespace cenote::simd {

/// Every index that is not "none" must match exactly one input element of its window: the two counts agree unless one is invalid.
struct IndexTally {
  std::atomic<std::int64_t> matched{0};
  std::atomic<std::int64_t> expected{0};
};

}  // namespace cenote::simd
