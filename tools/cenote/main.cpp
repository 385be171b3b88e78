// cenote: pools files and explains what it does. Parses, runs one command, turns what it throws into a line and an exit code.
#include "bench.hpp"
#include "check.hpp"
#include "commands.hpp"
#include "explain_plan.hpp"
#include "files.hpp"
#include "terminal.hpp"

#include <cenote/error.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace {

using namespace cenote::tool;

int code_of(bool right) { return static_cast<int>(right ? ExitCode::ok : ExitCode::difference); }

int run(const CheckCommand& command) { return code_of(run_check(command)); }
int run(const BenchCommand& command) { return code_of(run_bench(command)); }
int run(const ExplainPlanCommand& command) { return run_explain_plan(command), 0; }
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
  fmt::print(stderr, "cenote: {}\n", printable(message));
  return static_cast<int>(code);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool in_pieces = !words.empty() && (words[0] == "pool" || words[0] == "unpool");
  const char* no_memory =
      in_pieces ? "not enough memory; a smaller --memory works on smaller pieces" : "not enough memory";
  try {
    install_signal_handlers(in_pieces);
    const Command command = parse_command_line(words);
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
    return fail(ExitCode::refused, no_memory);
  } catch (const std::length_error&) {
    return fail(ExitCode::refused, no_memory);
  } catch (const std::exception& error) {
    return fail(ExitCode::input, error.what());
  }
}
