// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace cenote::bench {

/// printf into a string, cut at 511 characters.
[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);

std::string time_text(double nanoseconds);   ///< "12.3 us", "-" for none
std::string bytes_text(std::int64_t bytes);  ///< "45.0 MB"
std::string ratio_text(double ratio);        ///< "3.20x", "-" for none
std::string share_text(double share);        ///< "87 %", "-" for none

}  // namespace cenote::bench
