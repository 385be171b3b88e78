#include "run.hpp"

#include "copy_bandwidth.hpp"
#include "data.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace cenote::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTurns = 5;  // competitors alternate this often, so that a slow spell of the machine hits all of them
constexpr int kFewestSamples = 15;     // of a call that is fast enough
constexpr double kMostSeconds = 1.2;   // a call too slow for that many samples stops here ...
constexpr int kFewestSlowSamples = 3;  // ... but is never judged by fewer than these
constexpr double kSampleSeconds =
    2e-5;  // shorter calls are timed in groups this long: a clock reading costs some 25 ns
constexpr std::size_t kCopyMeasurements = 6;  // of the copy bandwidth through a run

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Contender {
  std::string name;
  std::unique_ptr<Call> call;
  std::chrono::milliseconds settles_in;
  double seconds = 0;  // of one call, roughly; at first the checked run's
  int group = 1;       // calls per sample
  int samples_per_turn = 1;
  std::vector<double> nanoseconds;

  double time_group() {
    const auto start = Clock::now();
    for (int i = 0; i < group; ++i) call->run();
    return seconds_since(start) / group;
  }

  void plan_turns(double budget) {
    // The first run also paid for memory never touched before: look again, more often where that is cheap.
    for (int i = 0; i < 8 && seconds < (i == 0 ? 0.5 : 0.02); ++i) seconds = std::min(seconds, time_group());
    group = std::max(1, static_cast<int>(std::min(1e6, kSampleSeconds / std::max(seconds, 1e-9))));
    const double sample = seconds * group;
    double samples = std::max<double>(kFewestSamples, budget / sample);
    samples = std::min(samples, std::max<double>(kFewestSlowSamples, kMostSeconds / sample));
    samples_per_turn = std::max(1, static_cast<int>(samples / kTurns));
  }

  void take_turn(int turn) {
    if (samples_per_turn == 1 && turn >= kFewestSlowSamples && seconds * kTurns > kMostSeconds) return;
    if (seconds < 0.1) time_group();  // back to the state that many calls in a row leave
    for (int i = 0; i < samples_per_turn; ++i) nanoseconds.push_back(time_group() * 1e9);
    std::this_thread::sleep_for(settles_in);
  }
};

RowResult run_row(const Row& row, const RowData& data, const std::vector<std::unique_ptr<Competitor>>& competitors,
                  const RunOptions& options) {
  RowResult result{.row = row, .bytes = bytes_of(row), .nanoseconds = {}, .wrong = {}};
  const Workload workload = data.workload(row, options.threads);
  std::vector<Contender> contenders;
  for (const auto& competitor : competitors) {
    try {
      std::unique_ptr<Call> call = competitor->prepare(workload);
      if (!call) continue;
      data.spoil(row);
      const auto start = Clock::now();
      call->run();
      const double seconds = seconds_since(start);
      call->present_result();
      const std::string difference = data.difference(row);
      if (!difference.empty()) {
        result.wrong.push_back(competitor->name() + ": " + difference);
        continue;
      }
      contenders.push_back({.name = competitor->name(),
                            .call = std::move(call),
                            .settles_in = competitor->settles_in(),
                            .seconds = seconds,
                            .nanoseconds = {}});
    } catch (const std::exception& error) {
      // Peers say "not implemented" by an exception; cenote must be able to do every row.
      if (competitor->name() == "cenote") result.wrong.push_back(std::string("cenote: ") + error.what());
    }
  }
  for (Contender& contender : contenders) {
    contender.plan_turns(options.seconds_per_competitor);
    std::this_thread::sleep_for(contender.settles_in);
  }
  for (int turn = 0; turn < kTurns; ++turn) {
    for (Contender& contender : contenders) contender.take_turn(turn);
  }
  for (Contender& contender : contenders) {
    result.nanoseconds.emplace_back(contender.name, median(std::move(contender.nanoseconds)));
  }
  return result;
}

}  // namespace

double RowResult::time_of(const std::string& competitor) const {
  for (const auto& [name, time] : nanoseconds) {
    if (name == competitor) return time;
  }
  return 0;
}

std::pair<std::string, double> RowResult::best_peer() const {
  std::pair<std::string, double> best;
  for (const auto& [name, time] : nanoseconds) {
    if (name != "cenote" && (best.first.empty() || time < best.second)) best = {name, time};
  }
  return best;
}

double RowResult::ratio_to(const std::string& competitor) const {
  const double own = time_of("cenote");
  return own > 0 ? time_of(competitor) / own : 0;
}

double RowResult::ratio_to_best_peer() const { return ratio_to(best_peer().first); }

double RowResult::share_of_copy(double gigabytes_per_second) const {
  const double own = time_of("cenote");
  return own > 0 ? static_cast<double>(bytes) / own / gigabytes_per_second : 0;
}

RunResult run_rows(const std::vector<Row>& rows, const std::vector<std::unique_ptr<Competitor>>& competitors,
                   const RunOptions& options) {
  const OpenMPExecutor executor(options.threads);
  CopyBandwidth copy(executor);
  RunResult result{.copy_gbps = 0, .threads = options.threads, .rows = {}};
  std::unique_ptr<CaseData> case_data;
  std::unique_ptr<RowData> row_data;
  std::size_t copies = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    if (options.progress) options.progress(i, rows.size(), label(row));
    const Row* previous = i == 0 ? nullptr : &rows[i - 1];
    const bool same_case = previous != nullptr && previous->pool == row.pool && previous->dtype == row.dtype;
    if (!same_case) {
      row_data.reset();
      case_data.reset();
      case_data = std::make_unique<CaseData>(make_case_data(*row.pool, row.dtype, executor));
    }
    if (!same_case || previous->layout != row.layout) {
      row_data.reset();
      row_data = std::make_unique<RowData>(*case_data, *row.pool, row.dtype, row.layout);
    }
    if (copies * rows.size() <= i * kCopyMeasurements) {
      copy.measure();
      ++copies;
    }
    result.rows.push_back(run_row(row, *row_data, competitors, options));
  }
  copy.measure();
  result.copy_gbps = copy.gigabytes_per_second();
  if (options.progress) options.progress(rows.size(), rows.size(), "");
  return result;
}

}  // namespace cenote::bench
