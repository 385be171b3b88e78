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

/// At most `columns` columns of a text without escape sequences, never a part of a character.
std::string_view first_columns(std::string_view text, int columns) noexcept;

/// A text that comes from outside (a file's name, a header's bytes), safe on a terminal and on one line: control characters
/// and bytes that are no UTF-8 appear as \x1b.
std::string printable(std::string_view text);

/// A JSON string with its quotes; bytes that are no UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

}  // namespace cenote::tool
