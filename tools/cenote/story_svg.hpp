// The story as a picture: input with windows and winners, output, indices, gradient.
#pragma once

#include "story.hpp"

#include <string>

namespace cenote::tool {

/// A complete SVG document; no scripts, no fonts of its own.
std::string to_svg(const Story& story);

}  // namespace cenote::tool
