// One error, in two forms: a Status where exceptions may not pass (Plan::run, the C interface), an Error everywhere else.
#pragma once

#include <cenote/export.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace cenote {

enum class ErrorCode : std::uint8_t {
  ok = 0,
  invalid_argument,  ///< an argument, a shape, a dtype or a layout that the op refuses
  invalid_index,     ///< an index handed in by the caller that points outside its plane or window
  out_of_memory,
  device,  ///< the CUDA runtime reported an error, or the build has no such device
};

/// What went wrong, with which argument. Holds its text in place, so that making and copying one never allocates.
class [[nodiscard]] CENOTE_API Status {
 public:
  Status() noexcept = default;

  /// printf-style. The message is cut at the buffer's end.
  [[gnu::format(printf, 3, 4)]] static Status failure(ErrorCode code, const char* argument, const char* format,
                                                      ...) noexcept;

  bool ok() const noexcept { return code_ == ErrorCode::ok; }
  explicit operator bool() const noexcept { return ok(); }
  ErrorCode code() const noexcept { return code_; }
  /// The name of the offending argument ("kernel_size"), empty when ok.
  const char* argument() const noexcept { return argument_; }
  const char* message() const noexcept { return message_; }

  /// Throws the matching Error unless ok.
  void raise() const;

 private:
  ErrorCode code_ = ErrorCode::ok;
  char argument_[31] = {};
  char message_[480] = {};
};

/// The one exception of the library.
class CENOTE_API Error : public std::runtime_error {
 public:
  explicit Error(const Status& status)
      : std::runtime_error(status.message()), code_(status.code()), argument_(status.argument()) {}
  ErrorCode code() const noexcept { return code_; }
  const std::string& argument() const noexcept { return argument_; }

 private:
  ErrorCode code_;
  std::string argument_;
};

}  // namespace cenote
