// cenote check '<problem>': one problem against the naive reference.
#pragma once

#include "command_line.hpp"

namespace cenote::tool {

/// Runs each problem (tests/problems/problem.hpp has the words) forward and backward on every instruction set of the machine and
/// says what differs first, if anything does. Whether all were right; throws Failure for what is no problem, for one that the
/// library refuses and for one that is too large.
bool run_check(const CheckCommand& command);

}  // namespace cenote::tool
