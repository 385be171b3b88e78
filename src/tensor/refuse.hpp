// How this layer says no.
#pragma once

#include <cenote/error.hpp>

#include <string>

namespace cenote {

[[noreturn]] inline void refuse(ErrorCode code, const char* argument, const std::string& message) {
  throw Error(Status::failure(code, argument, "%s", message.c_str()));
}
[[noreturn]] inline void refuse(const char* argument, const std::string& message) {
  refuse(ErrorCode::invalid_argument, argument, message);
}

}  // namespace cenote
