// cenote explain-plan '<problem>': which kernel the library chooses for a problem, and why.
#pragma once

#include "command_line.hpp"

namespace cenote::tool {

/// One paragraph for each pass of each problem (tests/problems/problem.hpp has the words). Throws Failure or the library's Error.
void run_explain_plan(const ExplainPlanCommand& command);

}  // namespace cenote::tool
