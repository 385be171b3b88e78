#include "text.hpp"

#include <cstdarg>
#include <cstdio>

namespace cenote::bench {

std::string format(const char* pattern, ...) {
  char text[512];
  std::va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

std::string time_text(double nanoseconds) {
  if (nanoseconds <= 0) return "-";
  if (nanoseconds < 1e4) return format("%.0f ns", nanoseconds);
  if (nanoseconds < 1e7) return format("%.1f us", nanoseconds / 1e3);
  return format("%.1f ms", nanoseconds / 1e6);
}

std::string bytes_text(std::int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  return value < 1e5 ? format("%.1f kB", value / 1e3) : format("%.1f MB", value / 1e6);
}

std::string ratio_text(double ratio) { return ratio > 0 ? format(ratio < 9.995 ? "%.2fx" : "%.1fx", ratio) : "-"; }
std::string share_text(double share) { return share > 0 ? format("%.0f %%", share * 100) : "-"; }

}  // namespace cenote::bench
