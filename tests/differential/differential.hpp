// What the differential tests share: one problem, run in several settings and compared with the reference.
#pragma once

#include "problems/check.hpp"

#include <gtest/gtest.h>

namespace cenote::testing {

inline void expect_right(const Problem& problem, const std::vector<Setting>& settings) {
  EXPECT_EQ(check_problem(problem, settings), "") << "problem: " << to_string(problem);
}

inline void expect_right(const std::string& line, const std::vector<Setting>& settings) {
  SCOPED_TRACE(line);
  expect_right(parse_problem(line), settings);
}

}  // namespace cenote::testing
