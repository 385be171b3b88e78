// What is at the other end: a terminal or something that reads text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cenote::tool {

/// Columns of the terminal at `fd`, or `otherwise` where there is none.
int columns_of(int fd, int otherwise) noexcept;
bool is_terminal(int fd) noexcept;
/// Colour suits a terminal unless NO_COLOR is set or TERM is dumb.
bool wants_color(int fd) noexcept;

/// "1.5 GiB", "12 B".
std::string human_bytes(double bytes);
/// "3 s", "2 min 05 s".
std::string human_seconds(double seconds);

/// Number of columns a UTF-8 text takes, escape sequences not counted; the tool writes no double-width characters.
int display_width(std::string_view text) noexcept;

/// A JSON string with its quotes.
std::string json_string(std::string_view text);

}  // namespace cenote::tool
