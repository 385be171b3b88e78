// cenote bench: how close this machine's pooling comes to a plain copy.
#pragma once

#include "command_line.hpp"

namespace cenote::tool {

/// Prints the copy bandwidth, and cenote's share of it for each problem (tests/problems/problem.hpp has the words), or for every
/// row of the suite where no problem is given. Whether every result was right; throws Failure.
bool run_bench(const BenchCommand& command);

}  // namespace cenote::tool
