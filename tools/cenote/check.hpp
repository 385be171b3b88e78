// cenote check '<problem>': one problem against the naive reference.
#pragma once

#include <iosfwd>
#include <string_view>

/// Runs the problem (tests/problems/problem.hpp has the words) forward and backward on every instruction set of the machine and
/// says what differs first, if anything does. 0: all right, 1: something differs, 2: this is no problem.
int run_check(std::string_view problem, std::ostream& out);
