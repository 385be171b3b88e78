// Options that several commands share: each group is described once.
#pragma once

#include "command_line.hpp"

#include <functional>
#include <optional>
#include <string>

namespace cenote::tool {

/// Calls `store` with the option's text. Whatever it throws reaches the caller of parse().
CLI::Option* add_text(CLI::App* app, const std::string& names, const std::string& type, const std::string& text,
                      const std::function<void(const std::string&)>& store);

/// A file's name, which may not be empty.
std::string file_name(const std::string& option, const std::string& text);

/// What --op may say: nothing where the command is the op itself.
enum class OpChoice : std::uint8_t { none, pools, pools_and_unpool };
void add_op_options(CLI::App* app, OpArguments& op, OpChoice choice);

void add_seed(CLI::App* app, std::optional<std::uint64_t>& seed);
void add_layout(CLI::App* app, std::optional<AxisOrder>& layout);
CLI::Option* add_threads(CLI::App* app, int& threads);
void add_machine(CLI::App* app, Machine& machine, std::optional<int>& bits, Reporting& reporting);

}  // namespace cenote::tool
