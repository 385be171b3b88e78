#include "check.hpp"

#include "failure.hpp"

#include "problems/check.hpp"
#include "reference/pool.hpp"

#include <cenote/plan.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace cenote::tool {
namespace {

// The reference takes about 15 ns a tap and everything around it 3 us an element: a minute at most.
constexpr double kMostElements = 1 << 24;
constexpr double kMostTaps = 4e9;

void refuse_too_large(const testing::Problem& problem, const std::string& text) {
  const reference::Pool pool = reference::resolve(problem.spec, problem.dtype, problem.shape);
  double inputs = static_cast<double>(pool.batch) * static_cast<double>(pool.channels), outputs = inputs, taps = 1;
  for (int a = 0; a < 3; ++a) {
    const auto input = static_cast<double>(pool.input[a]), output = static_cast<double>(pool.output[a]);
    inputs *= input;
    outputs *= output;
    taps *=
        pool.is_adaptive() ? std::min(input, input / std::max(output, 1.0) + 2) : static_cast<double>(pool.kernel[a]);
  }
  const auto refuse = [&](double count, const char* what, double most) {
    if (count <= most) return;
    throw Failure::make(ExitCode::usage,
                        "'{}' is too large to check: {:.3g} {}, the naive reference takes up to {:.3g}", text, count,
                        what, most);
  };
  refuse(inputs + outputs, "elements", kMostElements);
  refuse(outputs * taps, "taps", kMostTaps);
}

bool check_one(const std::string& text) {
  using namespace testing;
  const Problem problem = parse_problem(text);
  try {
    (void)Plan::make(Pass::forward, TensorDesc{problem.dtype, problem.shape, {}, cpu}, problem.spec);
  } catch (const Error& error) {
    (void)check_problem(problem, {});  // throws where a word is missing
    throw Failure::make(ExitCode::refused, "'{}': {}", text, error.what());
  }
  refuse_too_large(problem, text);
  bool right = true;
  for (const Setting& setting : every_target()) {
    const std::string difference = check_problem(problem, {setting});
    right = right && difference.empty();
    fmt::print("{}\n", difference.empty() ? setting.target + ": right" : difference);
  }
  if (!right) return false;
  // One by one they are right; together they must also agree to the bit.
  const std::string difference = check_problem(problem, every_target());
  if (!difference.empty()) fmt::print("{}\n", difference);
  return difference.empty();
}

}  // namespace

bool run_check(const CheckCommand& command) {
  bool right = true;
  for (const std::string& problem : command.problems) {
    try {
      right = check_one(problem) && right;
    } catch (const testing::ProblemError& error) {
      throw Failure::make(ExitCode::usage, "'{}' is no problem: {}", problem, error.what());
    }
  }
  return right;
}

}  // namespace cenote::tool
