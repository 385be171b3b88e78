#include "bench.hpp"

#include "common/json.hpp"
#include "common/run.hpp"
#include "common/text.hpp"
#include "problems/problem.hpp"

#include <cenote/plan.hpp>

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <ostream>
#include <regex>
#include <span>
#include <stdexcept>
#include <thread>

namespace {

using namespace cenote;
using namespace cenote::bench;

constexpr int kMostThreads = 4096;

struct Arguments {
  std::vector<std::string> problems;
  std::string suite, filter;
  int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  bool json = false;
};

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Arguments parse(const std::vector<std::string>& words) {
  Arguments result;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with("--")) {
      result.problems.push_back(word);
      continue;
    }
    if (word == "--json") {
      result.json = true;
      continue;
    }
    if (word != "--suite" && word != "--filter" && word != "--threads") throw UsageError("unknown option " + word);
    if (++i == words.size()) throw UsageError(word + " needs a value");
    const std::string& value = words[i];
    if (word == "--threads") {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result.threads);
      if (error != std::errc() || end != value.data() + value.size() || result.threads < 1 ||
          result.threads > kMostThreads) {
        throw UsageError("--threads must be a whole number from 1 to " + std::to_string(kMostThreads) + ", got '" +
                         value + "'");
      }
    } else {
      (word == "--suite" ? result.suite : result.filter) = value;
    }
  }
  if (!result.problems.empty() && !result.suite.empty()) throw UsageError("--suite and problems exclude each other");
  return result;
}

/// A problem as a suite's case: every pass it has, in its one dtype and layout.
Case to_case(const std::string& text) {
  const testing::Problem problem = testing::parse_problem(text);
  Case result;
  result.name = text;
  result.op = std::string(name_of(problem.spec.op)) + std::to_string(problem.spec.dims) + 'd';
  result.spec = problem.spec;
  if (!problem.batched()) result.shape.push_back(1);
  result.shape.insert(result.shape.end(), problem.shape.begin(), problem.shape.end());
  result.dtypes = {problem.dtype};
  if (problem.layout != testing::Layout::planar && problem.layout != testing::Layout::channels_last) {
    throw UsageError("'" + text + "': only nchw and nhwc are benchmarked");
  }
  result.layouts = {problem.layout == testing::Layout::planar ? MemoryFormat::contiguous : MemoryFormat::channels_last};
  try {
    // The plan refuses what cannot be pooled, before anything is allocated or divided by it.
    const Shape shape{std::span<const std::int64_t>(result.shape)};
    (void)Plan::make(Pass::forward, TensorDesc::contiguous(problem.dtype, shape), result.spec);
    result.geometry = resolve(result.spec, result.shape);
  } catch (const std::exception& error) {
    throw UsageError("'" + text + "': " + error.what());
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

int measure(const Arguments& arguments, std::ostream& out) {
  std::vector<Case> cases;
  for (const std::string& problem : arguments.problems) cases.push_back(to_case(problem));
  const bool problems = !cases.empty();
  if (!problems) cases = arguments.suite.empty() ? parse_suite(default_suite()) : load_suite(arguments.suite);
  const std::vector<Row> rows = rows_of(cases, arguments.filter);
  if (rows.empty()) throw UsageError("no row matches --filter '" + arguments.filter + "'");
  std::vector<std::unique_ptr<Competitor>> competitors;
  competitors.push_back(make_cenote());
  RunOptions options{.threads = arguments.threads};
  if (isatty(STDERR_FILENO) != 0) options.progress = show_progress;
  const RunResult result = run_rows(rows, competitors, options);
  if (arguments.json) {
    write_json(out, result);
  } else {
    write_rows(out, result, problems);
  }
  const bool right =
      std::all_of(result.rows.begin(), result.rows.end(), [](const RowResult& row) { return row.wrong.empty(); });
  return right ? 0 : 1;
}

}  // namespace

int run_bench(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& errors) {
  try {
    return measure(parse(arguments), out);
  } catch (const UsageError& error) {
    errors << "cenote: " << error.what() << '\n';
  } catch (const testing::ProblemError& error) {
    errors << "cenote: no such problem: " << error.what() << '\n';
  } catch (const std::regex_error&) {
    errors << "cenote: --filter is not a regular expression\n";
  } catch (const std::bad_alloc&) {
    errors << "cenote: not enough memory for this problem\n";
  } catch (const std::length_error&) {
    errors << "cenote: not enough memory for this problem\n";
  } catch (const std::runtime_error& error) {
    errors << "cenote: " << error.what() << '\n';
  }
  return 2;
}
