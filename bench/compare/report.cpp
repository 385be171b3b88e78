#include "report.hpp"

#include "common/json.hpp"
#include "common/text.hpp"

#include <algorithm>
#include <cmath>

namespace cenote::bench {

namespace {

constexpr double kNoiseAllowance = 0.95;  // a ratio below it counts as behind
constexpr std::size_t kWorstRows = 12;

class GeometricMean {
 public:
  void add(double value) {
    if (value <= 0) return;
    logarithms_ += std::log(value);
    ++count_;
  }
  double value() const { return count_ > 0 ? std::exp(logarithms_ / count_) : 0; }

 private:
  double logarithms_ = 0;
  int count_ = 0;
};

std::string row_head(const Row& row) {
  return format("%-20s %-4s %-13s %-15s", row.pool->name.c_str(), name_of(row.dtype), name_of(row.layout),
                name_of(row.pass));
}

void write_means(std::ostream& out, const RunResult& result, const std::vector<std::string>& peers) {
  out << "\nGeometric means (peer's time / cenote's)\n"
      << format("%-15s %-13s %5s %9s", "pass", "layout", "rows", "share");
  for (const std::string& peer : peers) out << format(" %12s", ("vs " + peer).c_str());
  out << format(" %12s\n", "vs best peer");
  for (const RowPass pass : {RowPass::forward, RowPass::forward_indices, RowPass::backward}) {
    for (const MemoryFormat layout : {MemoryFormat::contiguous, MemoryFormat::channels_last}) {
      GeometricMean share, best;
      std::vector<GeometricMean> means(peers.size());
      int rows = 0;
      for (const RowResult& row : result.rows) {
        if (row.row.pass != pass || row.row.layout != layout) continue;
        ++rows;
        share.add(row.share_of_copy(result.copy_gbps));
        best.add(row.ratio_to_best_peer());
        for (std::size_t i = 0; i < peers.size(); ++i) means[i].add(row.ratio_to(peers[i]));
      }
      if (rows == 0) continue;
      out << format("%-15s %-13s %5d %9s", name_of(pass), name_of(layout), rows, share_text(share.value()).c_str());
      for (const GeometricMean& mean : means) out << format(" %12s", ratio_text(mean.value()).c_str());
      out << format(" %12s\n", ratio_text(best.value()).c_str());
    }
  }
}

template <class Key>
void write_worst(std::ostream& out, const RunResult& result, const char* title, Key key) {
  std::vector<const RowResult*> rows;
  for (const RowResult& row : result.rows) {
    if (key(row) > 0) rows.push_back(&row);
  }
  std::sort(rows.begin(), rows.end(), [&](const RowResult* a, const RowResult* b) { return key(*a) < key(*b); });
  rows.resize(std::min(rows.size(), kWorstRows));
  if (rows.empty()) return;
  out << '\n' << title << '\n';
  for (const RowResult* row : rows) {
    out << row_head(row->row) << format(" %7s of copy", share_text(row->share_of_copy(result.copy_gbps)).c_str());
    if (const auto [peer, time] = row->best_peer(); time > 0) {
      out << format("  %8s vs %s", ratio_text(row->ratio_to_best_peer()).c_str(), peer.c_str());
    }
    out << '\n';
  }
}

}  // namespace

void write_table(std::ostream& out, const RunResult& result, const std::vector<std::string>& peers) {
  out << format("%-20s %-4s %-13s %-15s %9s %9s %6s", "case", "type", "layout", "pass", "bytes", "cenote", "share");
  for (const std::string& peer : peers) out << format(" %11s", peer.c_str());
  out << format(" %8s\n", "ratio");
  std::size_t behind = 0, compared = 0;
  for (const RowResult& row : result.rows) {
    out << row_head(row.row)
        << format(" %9s %9s %6s", bytes_text(row.bytes).c_str(), time_text(row.time_of("cenote")).c_str(),
                  share_text(row.share_of_copy(result.copy_gbps)).c_str());
    for (const std::string& peer : peers) out << format(" %11s", time_text(row.time_of(peer)).c_str());
    const double ratio = row.ratio_to_best_peer();
    compared += ratio > 0;
    behind += ratio > 0 && ratio < kNoiseAllowance;
    out << format(" %8s%s\n", ratio_text(ratio).c_str(), ratio > 0 && ratio < kNoiseAllowance ? " behind" : "");
    for (const std::string& wrong : row.wrong) out << "    not timed: " << wrong << '\n';
  }
  write_means(out, result, peers);
  write_worst(out, result, "Smallest ratios to the best peer",
              [](const RowResult& row) { return row.ratio_to_best_peer(); });
  write_worst(out, result, "Smallest shares of the copy bandwidth",
              [&](const RowResult& row) { return row.share_of_copy(result.copy_gbps); });
  out << format("\nCopy bandwidth %.1f GB/s with %d threads. Behind the best peer: %zu of %zu rows compared.\n",
                result.copy_gbps, result.threads, behind, compared);
}

void write_json(std::ostream& out, const RunResult& result) {
  out << format("{\"copy_gbps\": %.3f, \"threads\": %d, \"rows\": [", result.copy_gbps, result.threads);
  const char* separator = "\n";
  for (const RowResult& row : result.rows) {
    out << separator << " {\"case\": " << json_quote(row.row.pool->name) << ", \"op\": " << json_quote(row.row.pool->op)
        << ", \"dtype\": " << json_quote(name_of(row.row.dtype))
        << ", \"layout\": " << json_quote(name_of(row.row.layout))
        << ", \"pass\": " << json_quote(name_of(row.row.pass)) << ", \"bytes\": " << row.bytes << ", \"ns\": {";
    const char* comma = "";
    for (const auto& [name, time] : row.nanoseconds) {
      out << comma << json_quote(name) << format(": %.1f", time);
      comma = ", ";
    }
    out << "}, \"share_of_copy\": ";
    const double share = row.share_of_copy(result.copy_gbps), ratio = row.ratio_to_best_peer();
    out << (share > 0 ? format("%.4f", share) : "null");
    const auto [peer, time] = row.best_peer();
    out << ", \"best_peer\": " << (time > 0 ? json_quote(peer) : "null")
        << ", \"ratio_to_best_peer\": " << (ratio > 0 ? format("%.4f", ratio) : "null") << '}';
    separator = ",\n";
  }
  out << "\n]}\n";
}

}  // namespace cenote::bench
