// A comparison written down: as a table for people, as JSON for programs, as a picture for the README.
#pragma once

#include "common/run.hpp"

#include <ostream>
#include <string>
#include <vector>

namespace cenote::bench {

/// Rows, geometric means per pass and layout, and the rows that do worst. `peers` are column heads.
void write_table(std::ostream& out, const RunResult& result, const std::vector<std::string>& peers);

/// {"copy_gbps", "threads", "rows": [{"case", "op", "dtype", "layout", "pass", "bytes", "ns": {..}, "share_of_copy", "best_peer",
/// "ratio_to_best_peer"}]}; the last three are null where there is nothing to compare.
void write_json(std::ostream& out, const RunResult& result);

/// An SVG with a line per case and dtype and, per pass, each peer's time relative to cenote's and cenote's share of the copy bandwidth.
void write_plot(std::ostream& out, const RunResult& result, const std::vector<std::string>& peers);

}  // namespace cenote::bench
