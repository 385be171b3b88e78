// The story in a terminal: plain or coloured, never wider than asked.
#pragma once

#include "story.hpp"

#include <string>

namespace cenote::tool {

struct TextStyle {
  int width = 100;
  bool color = false;
  bool all_windows = false;
};

std::string to_text(const Story& story, const TextStyle& style);
/// What can be said about a call that was refused with `reason`.
std::string to_text_refused(const StoryInput& input, const std::string& reason, const TextStyle& style);

}  // namespace cenote::tool
