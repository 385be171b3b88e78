// Backward passes that are themselves pools, of grad_output.
#pragma once

#include "plan/kernel.hpp"

#include <memory>
#include <optional>

namespace cenote::simd {

/// The forward pool that takes grad_output to grad_input: sums, and averages of one divisor, over windows one apart.
std::optional<Described> as_forward(const Described& backward);

/// Runs such a pool's kernel on the tensors of the backward.
std::unique_ptr<Kernel> make_transposed_kernel(std::unique_ptr<Kernel> forward);

}  // namespace cenote::simd
