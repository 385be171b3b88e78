// cenote-compare: cenote and every peer found, on the same memory, in one run.
#include "peers/peers.hpp"
#include "report.hpp"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <thread>

namespace {

using namespace cenote::bench;
using cenote::IndexKind;

constexpr const char* kUsage =
    "usage: cenote-compare [--suite FILE] [--filter REGEX] [--threads N] [--seconds S] [--peers LIST] [--saved KIND] "
    "[--json FILE] [--svg FILE]\n"
    "\n"
    "Times cenote and other libraries on the cases of a suite, in turns, after checking every result.\n"
    "\n"
    "  --suite FILE     cases to run instead of bench/suite.json\n"
    "  --filter REGEX   only rows whose \"case dtype layout pass\" matches, e.g. 'resnet.*f32 planar'\n"
    "  --threads N      threads for every competitor and for the copy (default: all)\n"
    "  --seconds S      time spent on each competitor per row (default 0.2)\n"
    "  --peers LIST     some of torch,onednn,onnxruntime; none for cenote alone (default: all that are found)\n"
    "  --saved KIND     indices that cenote's max backward is given: window, as its tape keeps them (default), or "
    "flat64\n"
    "  --json FILE      write the results as JSON too\n"
    "  --svg FILE       write the results as a picture too\n";

struct Arguments {
  std::string suite, filter, json, svg, peers, saved;
  RunOptions run;
  bool help = false;
};

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

double positive(const std::string& text, const std::string& option) {
  std::size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || !(value > 0))
    throw UsageError(option + " must be a positive number, got '" + text + "'");
  return value;
}

Arguments parse(int argc, char** argv) {
  Arguments result;
  result.run.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--help" || option == "-h") {
      result.help = true;
      return result;
    }
    std::string* text = option == "--suite"    ? &result.suite
                        : option == "--filter" ? &result.filter
                        : option == "--json"   ? &result.json
                        : option == "--svg"    ? &result.svg
                        : option == "--peers"  ? &result.peers
                        : option == "--saved"  ? &result.saved
                                               : nullptr;
    if (text == nullptr && option != "--threads" && option != "--seconds") throw UsageError("unknown option " + option);
    if (++i == argc) throw UsageError(option + " needs a value");
    const std::string value = argv[i];
    if (text != nullptr) {
      *text = value;
    } else if (option == "--seconds") {
      result.run.seconds_per_competitor = positive(value, option);
    } else {
      const double threads = positive(value, option);
      result.run.threads = static_cast<int>(threads);
      if (threads > 4096 || result.run.threads != threads)
        throw UsageError("--threads must be a whole number up to 4096, got " + value);
    }
  }
  if (!result.saved.empty() && result.saved != "window" && result.saved != "flat64")
    throw UsageError("--saved must be window or flat64, got '" + result.saved + "'");
  return result;
}

/// One line that redraws itself; nothing at all where standard error is no terminal.
void show_progress(std::size_t done, std::size_t all, const std::string& label) {
  constexpr std::size_t kWidth = 30;
  const std::size_t filled = all == 0 ? kWidth : done * kWidth / all;
  std::string bar(filled, '#');
  bar.resize(kWidth, '.');
  std::fprintf(stderr, "\r\033[K[%s] %zu/%zu %s", bar.c_str(), done, all, label.c_str());
  if (done == all) std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
}

std::ofstream open(const std::string& path) {
  std::ofstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be written");
  return file;
}

int compare(Arguments arguments) {
  const std::vector<Case> cases = arguments.suite.empty() ? parse_suite(default_suite()) : load_suite(arguments.suite);
  const IndexKind saved = arguments.saved == "flat64" ? IndexKind::flat64 : IndexKind::window;
  const std::vector<Row> rows = rows_of(cases, arguments.filter, saved);
  if (rows.empty()) throw std::runtime_error("no row matches --filter '" + arguments.filter + "'");
  std::ofstream json, svg;  // opened now, so that a wrong path does not cost a whole run
  if (!arguments.json.empty()) json = open(arguments.json);
  if (!arguments.svg.empty()) svg = open(arguments.svg);

  std::vector<std::string> missing, names;
  std::vector<std::unique_ptr<Competitor>> competitors = find_peers(arguments.peers, missing);
  competitors.insert(competitors.begin(), make_cenote());
  std::cout << arguments.run.threads << " threads";
  for (const auto& competitor : competitors) std::cout << ", " << competitor->name() << ' ' << competitor->version();
  std::cout << '\n';
  for (const std::string& line : missing) std::cout << "left out: " << line << '\n';
  std::cout << std::endl;
  for (const auto& competitor : competitors) {
    if (competitor->name() != "cenote") names.push_back(competitor->name());
  }

  if (isatty(STDERR_FILENO) != 0) arguments.run.progress = show_progress;
  const RunResult result = run_rows(rows, competitors, arguments.run);
  write_table(std::cout, result, names);
  if (json.is_open()) write_json(json, result);
  if (svg.is_open()) write_plot(svg, result, names);
  for (const RowResult& row : result.rows) {
    for (const std::string& wrong : row.wrong) {
      if (wrong.starts_with("cenote")) return 1;
    }
  }
  return 0;
}

}  // namespace

/// 0: compared. 1: cenote gave a wrong result, or the run failed. 2: wrong arguments.
int main(int argc, char** argv) {
  try {
    const Arguments arguments = parse(argc, argv);
    if (arguments.help) {
      std::fputs(kUsage, stdout);
      return 0;
    }
    return compare(arguments);
  } catch (const UsageError& error) {
    std::fprintf(stderr, "cenote-compare: %s\n\n%s", error.what(), kUsage);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cenote-compare: %s\n", error.what());
    return 1;
  }
}
