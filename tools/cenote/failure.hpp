// How the tool fails: one line for the person, one exit code for the script.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace cenote::tool {

/// Documented in the manual page and in `cenote --help`.
enum class ExitCode : int {
  ok = 0,
  difference = 1,  ///< `check` found a difference
  usage = 2,       ///< the command line is wrong
  input = 3,       ///< a file cannot be read or is not what it says it is
  output = 4,      ///< a result cannot be written
  refused = 5,     ///< the op refuses these arguments for this input
  device = 6,      ///< no such device, or it failed
};

class Failure : public std::runtime_error {
 public:
  Failure(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}

  template <class... Args>
  static Failure make(ExitCode code, fmt::format_string<Args...> format, Args&&... args) {
    return Failure(code, fmt::format(format, std::forward<Args>(args)...));
  }

  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

}  // namespace cenote::tool
