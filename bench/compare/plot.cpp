#include "common/text.hpp"
#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace cenote::bench {

namespace {

constexpr double kLineHeight = 17, kTop = 112, kLabelWidth = 196, kRatioWidth = 216, kShareWidth = 96, kInnerGap = 14,
                 kOuterGap = 26;
constexpr double kBottom = 34, kMargin = 16;
constexpr double kLargestShare = 1.25;
constexpr const char* kInk = "#1f2933";
constexpr const char* kFaint = "#7b8794";
constexpr const char* kGrid = "#d9dfe5";
constexpr const char* kBand = "#f5f7fa";
constexpr const char* kShareColor = "#0b7285";
constexpr const char* kPeerColors[] = {"#e8590c", "#3b5bdb", "#2f9e44", "#9c36b5"};

/// One line of the picture: the rows of a case and dtype, by pass and layout.
struct Line {
  std::string label;
  std::map<std::pair<RowPass, MemoryFormat>, const RowResult*> rows;
};

std::vector<Line> lines_of(const RunResult& result) {
  std::vector<Line> lines;
  for (const RowResult& row : result.rows) {
    const std::string text = row.row.pool->name + ' ' + name_of(row.row.dtype);
    if (lines.empty() || lines.back().label != text) lines.push_back({text, {}});
    lines.back().rows[{row.row.pass, row.row.layout}] = &row;
  }
  return lines;
}

class Plot {
 public:
  Plot(std::ostream& out, const RunResult& result, const std::vector<std::string>& peers)
      : out_(out), result_(result), peers_(peers), lines_(lines_of(result)) {
    for (const RowPass pass : {RowPass::forward, RowPass::forward_indices, RowPass::backward}) {
      for (const RowResult& row : result_.rows) {
        if (row.row.pass != pass) continue;
        passes_.push_back(pass);
        break;
      }
    }
    for (const RowResult& row : result_.rows) {
      for (const std::string& peer : peers_) {
        if (const double ratio = row.ratio_to(peer); ratio > 0) {
          smallest_ = std::min(smallest_, ratio / 1.2);
          largest_ = std::max(largest_, ratio * 1.2);
        }
      }
    }
  }

  void write() {
    const double columns = static_cast<double>(passes_.size());
    width_ = 2 * kMargin + kLabelWidth + columns * (kRatioWidth + kInnerGap + kShareWidth + kOuterGap);
    height_ = kTop + static_cast<double>(lines_.size()) * kLineHeight + kBottom;
    out_ << format(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" ",
                width_, height_, width_, height_)
         << "font-family=\"system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif\" font-size=\"11\">\n";
    out_ << format("<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n", width_, height_);
    heading();
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const double y = kTop + static_cast<double>(i) * kLineHeight;
      if (i % 2 == 0) rectangle(kMargin, y, width_ - 2 * kMargin, kLineHeight, kBand);
      text(kMargin + kLabelWidth - 10, y + kLineHeight - 5, lines_[i].label, kInk, "end");
    }
    for (std::size_t i = 0; i < passes_.size(); ++i) column(i);
    out_ << "</svg>\n";
  }

 private:
  void heading() {
    out_ << format(
        "<text x=\"%.0f\" y=\"30\" font-size=\"17\" font-weight=\"600\" fill=\"%s\">cenote and its peers on the CPU, "
        "%d thread%s"
        "</text>\n",
        kMargin, kInk, result_.threads, result_.threads == 1 ? "" : "s");
    text(kMargin, 49,
         format("Left: a peer's time divided by cenote's, logarithmic; right of 1, cenote is faster. Right: cenote's "
                "share of "
                "the copy bandwidth, %.1f GB/s.",
                result_.copy_gbps),
         kFaint, "start");
    double x = kMargin + 5;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      mark(x, 64, peer_color(i), true, peers_[i]);
      text(x + 9, 68, peers_[i], kInk, "start");
      x += 28 + 6.6 * static_cast<double>(peers_[i].size());
    }
    mark(x + 12, 64, kFaint, true, "planar");
    text(x + 21, 68, "planar", kInk, "start");
    mark(x + 76, 64, kFaint, false, "channels last");
    text(x + 85, 68, "channels last", kInk, "start");
  }

  void column(std::size_t i) {
    const RowPass pass = passes_[i];
    left_ = kMargin + kLabelWidth + static_cast<double>(i) * (kRatioWidth + kInnerGap + kShareWidth + kOuterGap);
    const char* title = pass == RowPass::forward    ? "forward"
                        : pass == RowPass::backward ? "backward"
                                                    : "forward with indices";
    out_ << format("<text x=\"%.1f\" y=\"90\" font-weight=\"600\" fill=\"%s\">%s</text>\n", left_, kInk, title);
    for (const double value : ratio_ticks()) tick(ratio_x(value), format("%g", value), value == 1);
    for (const double value : {0.0, 0.5, 1.0}) tick(share_x(value), format("%.0f%%", value * 100), value == 1);
    for (std::size_t line = 0; line < lines_.size(); ++line) {
      const double middle = kTop + (static_cast<double>(line) + 0.5) * kLineHeight;
      for (const MemoryFormat layout : {MemoryFormat::contiguous, MemoryFormat::channels_last}) {
        const auto found = lines_[line].rows.find({pass, layout});
        if (found != lines_[line].rows.end()) row(*found->second, middle, layout == MemoryFormat::contiguous);
      }
    }
  }

  void row(const RowResult& row, double middle, bool planar) {
    const double y = middle + (planar ? -3.2 : 3.2);
    const std::string name = label(row.row);
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      const double ratio = row.ratio_to(peers_[i]);
      if (ratio > 0)
        mark(ratio_x(ratio), y, peer_color(i), planar,
             format("%s: %s takes %.2f times as long", name.c_str(), peers_[i].c_str(), ratio));
    }
    const double share = row.share_of_copy(result_.copy_gbps);
    if (share <= 0) return;
    const double from = share_x(0), to = share_x(std::min(share, kLargestShare));
    out_ << format(
        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"5\" fill=\"%s\" fill-opacity=\"%s\" stroke=\"%s\" "
        "stroke-width=\"0.8\">"
        "<title>%s: %.0f %%</title></rect>\n",
        from, y - 2.5, std::max(0.5, to - from), kShareColor, planar ? "0.85" : "0.15", kShareColor, name.c_str(),
        share * 100);
  }

  std::vector<double> ratio_ticks() const {
    std::vector<double> ticks;
    const bool crowded = largest_ / smallest_ > 50;
    for (double decade = 0.01; decade <= largest_; decade *= 10) {
      for (const double step : {1.0, 2.0, 5.0}) {
        const double value = decade * step;
        if (value >= smallest_ && value <= largest_ && (!crowded || step == 1))
          ticks.push_back(std::abs(value - 1) < 1e-9 ? 1 : value);
      }
    }
    return ticks;
  }

  double ratio_x(double ratio) const {
    return left_ + kRatioWidth * std::log(ratio / smallest_) / std::log(largest_ / smallest_);
  }
  double share_x(double share) const { return left_ + kRatioWidth + kInnerGap + kShareWidth * share / kLargestShare; }
  static const char* peer_color(std::size_t i) { return kPeerColors[i % std::size(kPeerColors)]; }

  void tick(double x, const std::string& name, bool strong) {
    const double bottom = height_ - kBottom;
    out_ << format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"%s\"/>\n", x,
                   kTop, x, bottom, strong ? kFaint : kGrid, strong ? "1.2" : "0.8");
    text(x, kTop - 6, name, kFaint, "middle");
    text(x, bottom + 14, name, kFaint, "middle");
  }
  void mark(double x, double y, const char* color, bool filled, const std::string& title) {
    out_ << format(
        "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.8\" fill=\"%s\" stroke=\"%s\" "
        "stroke-width=\"1.2\"><title>%s</title></circle>\n",
        x, y, filled ? color : "#ffffff", color, title.c_str());
  }
  void rectangle(double x, double y, double width, double height, const char* color) {
    out_ << format("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", x, y, width, height,
                   color);
  }
  void text(double x, double y, const std::string& words, const char* color, const char* anchor) {
    out_ << format("<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\" text-anchor=\"%s\">", x, y, color, anchor) << words
         << "</text>\n";
  }

  std::ostream& out_;
  const RunResult& result_;
  const std::vector<std::string>& peers_;
  std::vector<Line> lines_;
  std::vector<RowPass> passes_;
  double smallest_ = 0.8, largest_ = 10;
  double width_ = 0, height_ = 0, left_ = 0;
};

}  // namespace

void write_plot(std::ostream& out, const RunResult& result, const std::vector<std::string>& peers) {
  Plot(out, result, peers).write();
}

}  // namespace cenote::bench
