// A bar on standard error, when that is a terminal and the work takes long enough to wonder about.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace cenote::tool {

class Progress {
 public:
  /// `total` bytes of work under this name. Silent unless `enabled` and standard error is a terminal.
  Progress(const std::string& name, std::int64_t total, bool enabled);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void add(std::int64_t bytes);
  /// Takes the bar away, so that whatever is printed next stands on a clean line.
  void clear();
  double seconds() const;

 private:
  void draw();

  using Clock = std::chrono::steady_clock;
  std::string name_;
  std::int64_t total_;
  std::int64_t done_ = 0;
  bool visible_;
  bool drawn_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_draw_ = start_;
};

}  // namespace cenote::tool
