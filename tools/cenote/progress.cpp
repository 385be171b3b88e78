#include "progress.hpp"

#include "terminal.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace cenote::tool {
namespace {

// Work shorter than the delay shows no bar; a bar redrawn more often than the interval only costs.
constexpr std::chrono::milliseconds kDelay{150};
constexpr std::chrono::milliseconds kInterval{80};

std::string bar(double part, int width) {
  constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = std::clamp(static_cast<int>(part * width * 8), 0, width * 8);
  std::string text;
  for (int i = 0; i < eighths / 8; ++i) text += "█";
  text += kEighths[eighths % 8];
  const int filled = eighths / 8 + (eighths % 8 != 0 ? 1 : 0);
  return text + std::string(static_cast<std::size_t>(width - filled), ' ');
}

}  // namespace

Progress::Progress(const std::string& name, std::int64_t total, bool enabled)
    : name_(printable(name)), total_(total), visible_(enabled && is_terminal(STDERR_FILENO)) {}

void Progress::clear() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
  drawn_ = false;
}

double Progress::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

void Progress::add(std::int64_t bytes) {
  done_ += bytes;
  if (!visible_) return;
  const auto now = Clock::now();
  if (now - start_ < kDelay || (drawn_ && now - last_draw_ < kInterval)) return;
  last_draw_ = now;
  draw();
}

void Progress::draw() {
  const double elapsed = seconds();
  const double part = total_ > 0 ? std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_)) : 1.0;
  const double rate = elapsed > 0 ? static_cast<double>(done_) / elapsed : 0;
  const double left = rate > 0 ? static_cast<double>(total_ - done_) / rate : 0;
  const std::string tail = fmt::format(" {:3.0f} %  {}/s  {} left", part * 100, human_bytes(rate), human_seconds(left));
  const int columns = columns_of(STDERR_FILENO, 80) - 1;  // the last column would wrap on some terminals
  const int room = columns - display_width(tail);
  std::string line;
  if (room >= 12) {
    const int name_width = std::min(display_width(name_), room / 2);
    const int bar_width = std::min(40, room - name_width - 3);
    line = fmt::format("{} |{}|", first_columns(name_, name_width), bar(part, bar_width));
  }
  line += room >= 0 ? tail : fmt::format("{:.0f} %", part * 100);
  std::fputs(("\r" + line + "\x1b[K").c_str(), stderr);
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace cenote::tool
