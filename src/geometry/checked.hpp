// 64-bit arithmetic that says when it overflows.
#pragma once

#include <cstdint>

namespace cenote {

/// Each returns false, leaving `result` unspecified, when the exact value does not fit.
inline bool checked_add(std::int64_t a, std::int64_t b, std::int64_t& result) noexcept {
  return !__builtin_add_overflow(a, b, &result);
}
inline bool checked_mul(std::int64_t a, std::int64_t b, std::int64_t& result) noexcept {
  return !__builtin_mul_overflow(a, b, &result);
}

}  // namespace cenote
