#include <cenote/error.hpp>

#include <cstdarg>
#include <cstdio>

namespace cenote {

Status Status::failure(ErrorCode code, const char* argument, const char* format, ...) noexcept {
  Status status;
  status.code_ = code;
  std::snprintf(status.argument_, sizeof status.argument_, "%s", argument);
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(status.message_, sizeof status.message_, format, arguments);
  va_end(arguments);
  return status;
}

void Status::raise() const {
  if (!ok()) throw Error(*this);
}

}  // namespace cenote
