#include "bench.hpp"

#include "failure.hpp"
#include "terminal.hpp"

#include "common/json.hpp"
#include "common/run.hpp"
#include "common/text.hpp"
#include "problems/problem.hpp"

#include <cenote/plan.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <limits>
#include <new>
#include <regex>
#include <span>
#include <stdexcept>
#include <thread>

namespace cenote::tool {
namespace {

using namespace cenote::bench;

/// A problem as a suite's case: every pass it has, in its one dtype and layout.
Case to_case(const std::string& text) {
  testing::Problem problem;
  try {
    problem = testing::parse_problem(text);
  } catch (const testing::ProblemError& error) {
    throw Failure::make(ExitCode::usage, "'{}' is no problem: {}", text, error.what());
  }
  Case result;
  result.name = text;
  result.op = std::string(name_of(problem.spec.op)) + std::to_string(problem.spec.dims) + 'd';
  result.spec = problem.spec;
  if (!problem.batched()) result.shape.push_back(1);
  result.shape.insert(result.shape.end(), problem.shape.begin(), problem.shape.end());
  result.dtypes = {problem.dtype};
  if (problem.layout != testing::Layout::planar && problem.layout != testing::Layout::channels_last)
    throw Failure::make(ExitCode::usage, "'{}': only nchw and nhwc are benchmarked", text);
  result.layouts = {problem.layout == testing::Layout::planar ? MemoryFormat::contiguous : MemoryFormat::channels_last};
  try {
    // The plan refuses what cannot be pooled, before anything is allocated or divided by it.
    const Shape shape{std::span<const std::int64_t>(result.shape)};
    (void)Plan::make(Pass::forward, TensorDesc::contiguous(problem.dtype, shape), result.spec);
    result.geometry = resolve(result.spec, result.shape);
  } catch (const std::runtime_error& error) {
    throw Failure::make(ExitCode::refused, "'{}': {}", text, error.what());
  }
  const Op op = result.spec.op;
  const bool has_indices = op == Op::max_pool || op == Op::min_pool || op == Op::adaptive_max_pool;
  if (problem.passes != testing::Passes::backward) {
    result.passes.push_back(RowPass::forward);
    if (has_indices) result.passes.push_back(RowPass::forward_indices);
  }
  if (problem.passes != testing::Passes::forward && is_floating(problem.dtype))
    result.passes.push_back(RowPass::backward);
  return result;
}

void write_json(std::ostream& out, const RunResult& result) {
  out << format("{\"copy_gbps\": %.3f, \"threads\": %d, \"rows\": [", result.copy_gbps, result.threads);
  const char* separator = "\n";
  for (const RowResult& row : result.rows) {
    out << separator << " {\"case\": " << json_quote(row.row.pool->name) << ", \"op\": " << json_quote(row.row.pool->op)
        << ", \"dtype\": " << json_quote(name_of(row.row.dtype))
        << ", \"layout\": " << json_quote(name_of(row.row.layout))
        << ", \"pass\": " << json_quote(name_of(row.row.pass)) << ", \"bytes\": " << row.bytes
        << format(", \"ns\": %.1f, \"share_of_copy\": %.4f}", row.time_of("cenote"),
                  row.share_of_copy(result.copy_gbps));
    separator = ",\n";
  }
  out << "\n]}\n";
}

void write_rows(std::ostream& out, const RunResult& result, bool problems) {
  out << format("copy bandwidth: %.1f GB/s with %d thread%s (read and written bytes both count)\n", result.copy_gbps,
                result.threads, result.threads == 1 ? "" : "s");
  std::string name;
  for (const RowResult& row : result.rows) {
    const std::string head =
        row.row.pool->name +
        (problems ? "" : std::string(" ") + name_of(row.row.dtype) + ' ' + name_of(row.row.layout));
    if (head != name) out << '\n' << head << '\n';
    name = head;
    out << format("  %-15s %9s  %9s  %6s of copy\n", name_of(row.row.pass), bytes_text(row.bytes).c_str(),
                  time_text(row.time_of("cenote")).c_str(), share_text(row.share_of_copy(result.copy_gbps)).c_str());
    if (problems) out << "    " << explain_plan(row.row) << '\n';
    for (const std::string& wrong : row.wrong) out << "  wrong: " << wrong << '\n';
  }
}

/// One line that redraws itself, for a person who waits at a terminal.
void show_progress(std::size_t done, std::size_t all, const std::string& label) {
  std::fprintf(stderr, "\r\033[K%zu/%zu %s", done, all, label.c_str());
  if (done == all) std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
}

/// Memory that can be had without pushing other programs out; everything where the system does not say.
double available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  double kilobytes = 0;
  while (file >> name >> kilobytes && std::getline(file, unit)) {
    if (name == "MemAvailable:") return kilobytes * 1024;
  }
  return std::numeric_limits<double>::infinity();
}

/// Input, gradients and results, in their dtype and once more for the check against the reference: a case that does not fit
/// would be killed, or measure the swap.
void refuse_too_large(const Case& one) {
  const auto elements =
      static_cast<double>(one.geometry.input_count()) + static_cast<double>(one.geometry.output_count());
  double largest = 0;
  for (const DType dtype : one.dtypes) largest = std::max(largest, static_cast<double>(size_of(dtype)));
  const double needed = elements * (2 * largest + 24), memory = available_memory();
  if (needed <= memory) return;
  throw Failure::make(ExitCode::usage, "'{}' needs about {} of memory, and {} are free; take a smaller one", one.name,
                      human_bytes(needed), human_bytes(memory));
}

std::vector<Case> cases_of(const BenchCommand& command) {
  std::vector<Case> cases;
  for (const std::string& problem : command.problems) cases.push_back(to_case(problem));
  if (!cases.empty()) return cases;
  if (command.suite.empty()) return parse_suite(default_suite());
  try {
    return load_suite(command.suite);
  } catch (const std::runtime_error& error) {
    throw Failure(ExitCode::input, error.what());
  }
}

std::vector<Row> chosen_rows(const std::vector<Case>& cases, const std::string& filter) {
  try {
    std::vector<Row> rows = rows_of(cases, filter);
    if (rows.empty()) throw Failure::make(ExitCode::usage, "--filter: '{}' matches no row", filter);
    return rows;
  } catch (const std::regex_error&) {
    throw Failure::make(ExitCode::usage, "--filter: '{}' is no regular expression", filter);
  }
}

}  // namespace

bool run_bench(const BenchCommand& command) {
  const std::vector<Case> cases = cases_of(command);
  const std::vector<Row> rows = chosen_rows(cases, command.filter);
  for (const Row& row : rows) refuse_too_large(*row.pool);
  std::vector<std::unique_ptr<Competitor>> competitors;
  competitors.push_back(make_cenote());
  RunOptions options{.threads = command.threads > 0
                                    ? command.threads
                                    : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()))};
  if (is_terminal(STDERR_FILENO)) options.progress = show_progress;
  const RunResult result = run_rows(rows, competitors, options);
  if (command.json) {
    write_json(std::cout, result);
  } else {
    write_rows(std::cout, result, !command.problems.empty());
  }
  return std::all_of(result.rows.begin(), result.rows.end(), [](const RowResult& row) { return row.wrong.empty(); });
}

}  // namespace cenote::tool
