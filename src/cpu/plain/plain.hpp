// Element by element: for the ops whose windows differ from plane to plane or whose gradients land anywhere in it, and for
// planes beyond the row kernels' 32-bit numbers.
#pragma once

#include "geometry/problem.hpp"

#include <cenote/plan.hpp>

#include <atomic>
#include <cstdint>

namespace cenote::simd {

/// One (n, c) plane of a run. `starts` are the fractional windows' starts along each axis, null for other rules.
struct PlaneRun {
  const Problem& problem;
  const RunArgs& args;
  std::int64_t n, c;
  const std::int64_t* starts[3];
  std::atomic<std::int64_t>* invalid;  // set to 1 when an index handed in is no place of its plane or window
  double* sums;                        // scatter of half types: a plane of f32 sums (as bytes), null otherwise
};

void plain_forward(const PlaneRun& run);
/// Max family; sums into grad_input at each index. Sums, averages and Lp: gathers.
void plain_max_backward(const PlaneRun& run);
void plain_sum_backward(const PlaneRun& run);
void plain_unpool(const PlaneRun& run);
void plain_unpool_backward(const PlaneRun& run);

}  // namespace cenote::simd
