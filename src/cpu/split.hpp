// Cutting a run into pieces for the executor.
#pragma once

#include "cpu/thresholds.hpp"

#include <cenote/executor.hpp>

#include <algorithm>
#include <cstdint>
#include <thread>

namespace cenote::simd {

/// Workers that may hold scratch at once: as many as the machine runs, whatever the executor.
inline std::size_t slot_count() { return std::max<std::size_t>(2, std::thread::hardware_concurrency()); }

/// Calls body(begin, end) for pieces of [0, units).
template <class Body>
void split(const Executor* given, std::int64_t units, std::int64_t bytes, const Body& body) noexcept {
  const Executor& executor = given != nullptr ? *given : default_executor();
  const std::int64_t threads = bytes < kSerialBytes ? 1 : executor.concurrency();
  if (threads <= 1 || units == 1) return body(0, units);
  struct Context {
    const Body& body;
    std::int64_t units, pieces;
  } context{body, units, std::min(units, threads * kPiecesPerThread)};
  executor.parallel_for(
      context.pieces,
      [](void* opaque, std::int64_t i) noexcept {
        const Context& c = *static_cast<Context*>(opaque);
        // units * (i + 1) stays far below 2^63: a plan has fewer than 2^56 rows.
        c.body(c.units * i / c.pieces, c.units * (i + 1) / c.pieces);
      },
      &context);
}

}  // namespace cenote::simd
