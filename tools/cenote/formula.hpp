// How a window's value is computed, in one line.
#pragma once

#include "story.hpp"

#include <string>

namespace cenote::tool {

/// The formula of one window's value: "max(1, 2, 5, 6) = 6", "(1 + 2 + 0 + 0) / 4 = 0.75"; without the cells where it would be
/// longer than `longest`.
std::string formula(const Story& story, const WindowStory& window, std::size_t longest);

}  // namespace cenote::tool
