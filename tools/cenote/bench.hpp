// cenote bench: how close this machine's pooling comes to a plain copy.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

/// `cenote bench [PROBLEM...] [--suite FILE] [--filter REGEX] [--threads N] [--json]`: the copy bandwidth, and cenote's share of it for
/// each problem (tests/problems/problem.hpp has the words), or for every row of the suite where no problem is given.
/// 0: measured, 1: a result was wrong, 2: these are no arguments.
int run_bench(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& errors);
