// Runs rows: every competitor checked, then timed in turns.
#pragma once

#include "competitor.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cenote::bench {

struct RowResult {
  Row row;
  std::int64_t bytes = 0;
  std::vector<std::pair<std::string, double>>
      nanoseconds;                 ///< medians, in the order of the competitors that can do the row
  std::vector<std::string> wrong;  ///< "torch: output[3] is 1, must be 2"; not timed

  double time_of(const std::string& competitor) const;  ///< 0 when absent
  /// The fastest but cenote; empty name when there is none.
  std::pair<std::string, double> best_peer() const;
  double ratio_to(const std::string& competitor) const;  ///< that one's time / cenote's; 0 when either is absent
  double ratio_to_best_peer() const;
  double share_of_copy(double gigabytes_per_second) const;  ///< 0 without cenote
};

struct RunOptions {
  int threads = 1;
  double seconds_per_competitor = 0.2;  ///< timed, per row; slow calls take longer, to a limit
  /// Called before each row.
  std::function<void(std::size_t done, std::size_t all, const std::string& label)> progress{};
};

struct RunResult {
  double copy_gbps = 0;
  int threads = 1;
  std::vector<RowResult> rows;
};

RunResult run_rows(const std::vector<Row>& rows, const std::vector<std::unique_ptr<Competitor>>& competitors,
                   const RunOptions& options);

}  // namespace cenote::bench
