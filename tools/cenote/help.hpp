// The texts that teach: usage lines and worked examples of every command, kept apart from the parsing.
#pragma once

#include <string_view>

namespace cenote::tool {

struct CommandHelp {
  std::string_view name;
  std::string_view summary;
  std::string_view usage;
  std::string_view examples;  ///< shown first
  std::string_view notes;     ///< shown last
};

/// Null for an unknown name; "" is the program itself.
const CommandHelp* find_help(std::string_view name);

}  // namespace cenote::tool
