#include "cpu/thresholds.hpp"

#include <unistd.h>

namespace cenote::simd {

std::int64_t stream_bytes() {
  static const std::int64_t bytes = [] {
    long cache = -1;
#ifdef _SC_LEVEL3_CACHE_SIZE
    cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return cache > 0 ? std::int64_t{cache} : std::int64_t{32} << 20;
  }();
  return bytes;
}

}  // namespace cenote::simd
