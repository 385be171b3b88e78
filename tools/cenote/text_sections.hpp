// The longer sections of a story in a terminal.
#pragma once

#include "story.hpp"
#include "text_writer.hpp"

#include <string>

namespace cenote::tool {

/// Every window, or the first ones: its cells in the input, its formula, its winner.
void write_windows(Writer& writer, const Story& story);
/// The three kinds of indices, and how one becomes the other.
void write_indices(Writer& writer, const Story& story);

/// "row 1, column 2".
std::string position(const Story& story, const std::int64_t* at);
/// "1 * 4 + 1 = 5": a place's flat index.
std::string flat_arithmetic(const Story& story, const std::int64_t* at, std::int64_t flat);

/// Most windows that are drawn unless all are asked for.
inline constexpr std::size_t kWindowsShown = 12;

}  // namespace cenote::tool
