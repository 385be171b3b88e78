// How an output size comes about, in sentences with the numbers in them: for accepted calls and for refused ones.
#pragma once

#include "story.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace cenote::tool {

/// One axis' arithmetic: a heading ("height: 6 -> 3") and its steps.
struct Derivation {
  std::string heading;
  struct Step {
    std::string what;        ///< "padded input"
    std::string arithmetic;  ///< "6 + 1 + 1 = 8"
  };
  std::vector<Step> steps;
  std::vector<std::string> remarks;  ///< "Why not 4? ..."
};

/// For every spatial axis; axes with the same numbers share one.
std::vector<Derivation> derive_sizes(const Story& story);

/// For a call the library refuses: what can still be computed from the arguments, axis by axis, and the rule it breaks.
std::vector<Derivation> derive_refused(const StoryInput& input);

/// Unpool's default size, its bounds, and what was asked for; works for refused sizes too.
std::vector<Derivation> derive_unpool(const StoryInput& input);

}  // namespace cenote::tool
