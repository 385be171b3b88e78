// Files as the tool needs them: inputs mapped a piece at a time, outputs that appear under their name only when whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace cenote::tool {

/// A name without detours: whole, links resolved, whether there is such a file or not.
std::string plain_name(const std::string& path);
/// Whether two names mean one file, there already or not. "-" means none.
bool same_file(const std::string& one, const std::string& other);

/// Closes on destruction.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const noexcept { return fd_; }
  int release() noexcept;

 private:
  int fd_ = -1;
};

/// A byte range of a file in memory, read-only or shared with the file. Unmaps on destruction.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();
  std::byte* data() const noexcept { return data_; }

 private:
  friend class InputFile;
  friend class OutputFile;
  Mapping(int fd, std::int64_t offset, std::int64_t length, bool writable);
  void* base_ = nullptr;  // page-aligned
  std::size_t length_ = 0;
  std::byte* data_ = nullptr;
};

/// How much of a stream is worth keeping, told by its first bytes.
struct StreamSize {
  std::int64_t most = 0;  ///< bytes; what follows is not read
  bool exact = false;     ///< all of them will come
};

/// Anything that can be read: a file is opened as it is; a pipe ("-" is standard input) is first copied to an unnamed
/// temporary file, so that every input can be mapped and none is held in memory.
class InputFile {
 public:
  /// `size_of_stream` is asked once, with a pipe's first bytes (at most kStreamStart of them) and its name, before more is
  /// read: an endless pipe or device is refused there, or ends where its own beginning says.
  using SizeOfStream = std::function<StreamSize(std::span<const std::byte> start, const std::string& name)>;
  static constexpr std::size_t kStreamStart = 16384;
  InputFile(const std::string& path, const SizeOfStream& size_of_stream);

  const std::string& path() const noexcept { return path_; }
  std::int64_t size() const noexcept { return size_; }

  /// Reads exactly bytes.size() bytes at `offset`; fails when the file is shorter.
  void read(std::int64_t offset, std::span<std::byte> bytes) const;
  /// Like read, but returns how many bytes there were.
  std::size_t read_some(std::int64_t offset, std::span<std::byte> bytes) const;
  Mapping map(std::int64_t offset, std::int64_t length) const;
  /// Asks the kernel to start reading; costs nothing when it does not care to.
  void prefetch(std::int64_t offset, std::int64_t length) const noexcept;

  /// An unnamed temporary file to spool into (decoded pictures larger than memory): opened for writing, then read as any other.
  static InputFile adopt(Descriptor descriptor, const std::string& path);

 private:
  InputFile() = default;
  void spool(const SizeOfStream& size_of_stream);

  std::string path_;
  Descriptor descriptor_;
  std::int64_t size_ = 0;
};

/// An unnamed temporary file in $TMPDIR (or /tmp).
Descriptor open_spool();
/// Takes the disk space for `bytes` bytes from the start of a file, so that a disk that is too small is known before the work.
/// Where the file system cannot reserve, what it says is free must do.
void reserve_space(int fd, std::int64_t bytes, const std::string& path);
/// write(2) until everything is written; a failure names `path`.
void write_all(int fd, std::span<const std::byte> bytes, const std::string& path);

/// A file that exists under its name only after commit(). Until then it has no name at all (O_TMPFILE) where the file system can
/// do that, so that not even SIGKILL leaves anything behind, and a hidden name beside the target elsewhere, removed by the
/// destructor and by the signal handlers of install_signal_handlers(). "-" is standard output; it, pipes and devices
/// are written as the bytes come. A symbolic link is followed and stays; a file that was there passes its permissions on.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  const std::string& path() const noexcept { return path_; }
  void write(std::span<const std::byte> bytes) { write_all(descriptor_.get(), bytes, path_); }
  /// Takes disk space for `bytes` bytes now; nothing for streams.
  void reserve(std::int64_t bytes) {
    if (!stream_) reserve_space(descriptor_.get(), bytes, path_);
  }
  /// Reserves the disk space first, so that writing through the mapping cannot fail; not for standard output.
  Mapping map(std::int64_t offset, std::int64_t length);
  bool is_stream() const noexcept { return stream_; }

  /// Writes everything through to the disk. What can fail fails here, before any of a set of files gets its name.
  void finish();
  /// Gives the file its name, replacing what was there.
  void commit();

 private:
  std::string path_;       // as it was given, for messages
  std::string target_;     // what it names once links are followed
  std::string directory_;  // the target's
  std::string temporary_;  // empty: unnamed
  Descriptor descriptor_;
  bool stream_ = false;
};

/// SIGINT, SIGTERM, SIGHUP remove the named temporary files and then act as they would have. SIGBUS, which is what a mapped file
/// that shrinks under us raises, says so in one line; SIGXFSZ becomes a write error, and so does SIGPIPE with `pipe_errors`:
/// without, a reader that goes away ends the program as it ends others.
void install_signal_handlers(bool pipe_errors);

bool is_directory(const std::string& path);
std::string errno_text(int error);

}  // namespace cenote::tool
