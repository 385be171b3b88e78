// The commands. Each prints its result and throws Failure (or the library's Error) when there is none.
#pragma once

#include "command_line.hpp"
#include "failure.hpp"

namespace cenote::tool {

void run_pool(const PoolCommand& command);
void run_unpool(const UnpoolCommand& command);
void run_explain(const ExplainCommand& command);
void run_shape(const ShapeCommand& command);
void run_info(const InfoCommand& command);
void run_completion(const CompletionCommand& command);

}  // namespace cenote::tool
