// Runs the plain functions, one plane at a time.
#pragma once

#include "cpu/plain/plain.hpp"
#include "plan/kernel.hpp"

#include <memory>

namespace cenote::simd {

using PlaneFn = void (*)(const PlaneRun&);

std::unique_ptr<Kernel> make_plane_kernel(const Described& described, PlaneFn plane);

}  // namespace cenote::simd
