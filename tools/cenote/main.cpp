// cenote: pools files and explains what it does. Parses, runs one command, turns what it throws into a line and an exit code.
#include "bench.hpp"
#include "check.hpp"
#include "commands.hpp"
#include "explain_plan.hpp"
#include "files.hpp"

#include <cenote/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace cenote::tool;

int run(const CheckCommand& command) {
  if (command.arguments.empty()) {
    throw Failure(ExitCode::usage,
                  "check needs a problem, for example 'max2d f32 nchw n2c17 h30w31 k3x2 s2x2 p1x1 d1x1 ceil'");
  }
  int worst = 0;
  for (const std::string& problem : command.arguments) {
    if (problem.starts_with("--"))
      throw Failure::make(ExitCode::usage, "unknown option '{}'; check takes problems only", problem);
    worst = std::max(worst, run_check(problem, std::cout));
  }
  return worst;
}
int run(const ExplainPlanCommand& command) { return run_explain_plan(command.problems), 0; }
int run(const BenchCommand& command) { return run_bench(command.arguments, std::cout, std::cerr); }
int run(const PoolCommand& command) { return run_pool(command), 0; }
int run(const UnpoolCommand& command) { return run_unpool(command), 0; }
int run(const ExplainCommand& command) { return run_explain(command), 0; }
int run(const ShapeCommand& command) { return run_shape(command), 0; }
int run(const InfoCommand& command) { return run_info(command), 0; }
int run(const CompletionCommand& command) { return run_completion(command), 0; }
int run(const TextCommand& command) {
  std::fputs(command.text.c_str(), stdout);
  return 0;
}

int fail(ExitCode code, const char* message) {
  std::fflush(stdout);
  fmt::print(stderr, "cenote: {}\n", message);
  return static_cast<int>(code);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    install_signal_handlers();
    const Command command = parse_command_line(std::vector<std::string>(argv + 1, argv + argc));
    const int code = std::visit([](const auto& one) { return run(one); }, command);
    std::cout.flush();
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout)
      return fail(ExitCode::output, "standard output cannot be written");
    return code;
  } catch (const Failure& failure) {
    return fail(failure.code(), failure.what());
  } catch (const cenote::Error& error) {
    return fail(error.code() == cenote::ErrorCode::device ? ExitCode::device : ExitCode::refused, error.what());
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::refused, "not enough memory; a smaller --memory works on smaller pieces");
  } catch (const std::length_error&) {
    return fail(ExitCode::refused, "not enough memory; a smaller --memory works on smaller pieces");
  } catch (const std::exception& error) {
    return fail(ExitCode::input, error.what());
  }
}
