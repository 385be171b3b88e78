// The command line as data: parsing does nothing but parse, so that it can be tested and fuzzed without running anything.
#pragma once

#include "arguments.hpp"

#include <CLI/App.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace cenote::tool {

/// What every command that works on data has.
struct Reporting {
  bool quiet = false;
  bool json = false;
};

struct Machine {
  int threads = 0;  ///< 0: as many as OpenMP says
  bool cuda = false;
  std::int64_t memory = std::int64_t{256} << 20;  ///< bytes of input and output worked on at once
};

struct PoolCommand {
  std::vector<std::string> inputs;
  std::string output;
  OpArguments op;
  std::optional<std::string> indices;
  std::optional<IndexKind> index_kind;
  std::optional<AxisOrder> layout;
  std::optional<std::string> samples;
  std::optional<std::uint64_t> seed;
  std::optional<int> bits;
  Machine machine;
  Reporting reporting;
};

struct UnpoolCommand {
  std::string input;
  std::string output;
  std::string indices;
  OpArguments op;
  std::optional<IndexKind> index_kind;
  std::optional<AxisOrder> layout;
  std::optional<int> bits;
  Machine machine;
  Reporting reporting;
};

struct ExplainCommand {
  OpArguments op;
  std::string file;                    ///< empty: none
  std::optional<std::string> values;   ///< "1 3 2; 5 6 1"
  std::optional<Shape> size;           ///< counted 1..n
  std::optional<std::string> indices;  ///< unpool: "5 7; 13 15"
  std::optional<std::string> crop;     ///< "8x8+16+24"
  std::optional<AxisOrder> layout;     ///< of the file
  std::optional<std::int64_t> plane;   ///< 0 where it is not said
  std::optional<std::string> svg;
  std::optional<std::uint64_t> seed;
  bool all_windows = false;
  int width = 0;  ///< columns; 0: the terminal's, 100 elsewhere
  std::string color = "auto";
};

struct ShapeCommand {
  Shape input;
  std::vector<std::string> layers;
  DType dtype = DType::f32;
  bool json = false;
};

struct CheckCommand {
  std::vector<std::string> problems;
};
struct ExplainPlanCommand {
  std::vector<std::string> problems;
};
struct BenchCommand {
  std::vector<std::string> problems;  ///< none: the suite
  std::string suite, filter;          ///< empty: the built-in one; every row
  int threads = 0;                    ///< 0: as many as the machine has
  bool json = false;
};
struct InfoCommand {
  bool json = false;
};
struct CompletionCommand {
  std::string shell;
};
/// --help, --version: text for standard output.
struct TextCommand {
  std::string text;
};

using Command = std::variant<PoolCommand, UnpoolCommand, ExplainCommand, ShapeCommand, CheckCommand, ExplainPlanCommand,
                             BenchCommand, InfoCommand, CompletionCommand, TextCommand>;

/// The words after the program's name. Throws Failure (usage) with one line that says what is wrong and what would be right.
Command parse_command_line(const std::vector<std::string>& words);

/// Calls `visit` with the finished description of the command line: for completion scripts and for the test of the manual.
void with_app(const std::function<void(CLI::App&)>& visit);

extern const char* const kVersion;

}  // namespace cenote::tool
