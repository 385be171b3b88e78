#include "explain_plan.hpp"

#include "failure.hpp"
#include "terminal.hpp"

#include "problems/problem.hpp"

#include <cenote/plan.hpp>

#include <fmt/format.h>

namespace cenote::tool {
namespace {

void print_plan(const testing::Problem& problem, Pass pass, IndexKind kind) {
  const bool last = problem.layout == testing::Layout::channels_last;
  const TensorDesc input = last ? TensorDesc::channels_last(problem.dtype, problem.shape)
                                : TensorDesc::contiguous(problem.dtype, problem.shape);
  PoolSpec spec = problem.spec;
  spec.index_kind = kind;
  const Plan plan = Plan::make(pass, input, spec);
  fmt::print("{} {} -> {}: {}\n", pass == Pass::forward ? "forward " : "backward", cenote::to_string(input.shape),
             cenote::to_string(plan.output_shape()), plan.target());
  fmt::print("  {}\n", plan.explain());
  fmt::print("  floor: {} moved, each byte once\n", human_bytes(static_cast<double>(plan.bytes_moved())));
}

}  // namespace

void run_explain_plan(const ExplainPlanCommand& command) {
  for (const std::string& text : command.problems) {
    try {
      const testing::Problem problem = testing::parse_problem(text);
      if (problem.layout != testing::Layout::planar && problem.layout != testing::Layout::channels_last) {
        throw Failure::make(ExitCode::usage, "'{}': only nchw and nhwc are planned here", text);
      }
      const IndexKind kind = problem.only_kind.value_or(IndexKind::flat64);
      if (command.problems.size() > 1) fmt::print("{}\n", text);
      if (problem.passes != testing::Passes::backward) print_plan(problem, Pass::forward, kind);
      if (problem.passes != testing::Passes::forward && is_floating(problem.dtype))
        print_plan(problem, Pass::backward, kind);
    } catch (const testing::ProblemError& error) {
      throw Failure::make(ExitCode::usage, "'{}' is no problem: {}", text, error.what());
    }
  }
}

}  // namespace cenote::tool
