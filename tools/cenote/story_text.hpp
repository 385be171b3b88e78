// The story in a terminal: plain or coloured, never wider than asked.
#pragma once

#include "derivation.hpp"
#include "story.hpp"

#include <string>
#include <vector>

namespace cenote::tool {

struct TextStyle {
  int width = 100;
  bool color = false;
  bool all_windows = false;
};

std::string to_text(const Story& story, const TextStyle& style);
/// What can be said about a call that was refused with `reason`.
std::string to_text_refused(const StoryInput& input, const std::string& reason, const TextStyle& style);

/// Words put on lines of at most `width` columns.
std::vector<std::string> wrap_text(const std::string& text, int width);

/// The formula of one window's value: "max(1, 2, 5, 6) = 6", "(1 + 2 + 0 + 0) / 4 = 0.75".
std::string formula(const Story& story, const WindowStory& window, std::size_t longest);

}  // namespace cenote::tool
