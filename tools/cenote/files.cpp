#include "files.hpp"

#include "failure.hpp"
#include "terminal.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace cenote::tool {
namespace {

// Names of temporary files a signal handler must remove. A slot is claimed by a compare-exchange on its flag and its text is
// written before `used` becomes 2, so that the handler sees whole names only.
struct Slot {
  std::atomic<int> used{0};
  char path[4096] = {};
};
std::array<Slot, 16> pending;
static_assert(std::atomic<int>::is_always_lock_free, "the signal handler may not lock");

void remember(const std::string& path) {
  for (Slot& slot : pending) {
    int expected = 0;
    if (path.size() < sizeof slot.path && slot.used.compare_exchange_strong(expected, 1)) {
      std::memcpy(slot.path, path.c_str(), path.size() + 1);
      slot.used = 2;
      return;
    }
  }
}

void forget(const std::string& path) {
  for (Slot& slot : pending) {
    if (slot.used == 2 && path == slot.path) {
      slot.used = 0;
      return;
    }
  }
}

void remove_pending() noexcept {
  for (Slot& slot : pending) {
    if (slot.used == 2) unlink(slot.path);
  }
}

std::atomic_flag reported;

extern "C" void on_signal(int signal) {
  remove_pending();
  if (signal == SIGBUS) {
    if (reported.test_and_set()) pause();  // several threads met it: the first one speaks and ends the process
    constexpr char kMessage[] = "cenote: an input file became shorter while it was being read\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
    _exit(static_cast<int>(ExitCode::input));
  }
  std::signal(signal, SIG_DFL);
  raise(signal);
}

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Failure cannot_read(const std::string& path, int error) {
  return Failure::make(ExitCode::input, "{}: cannot be read: {}", path, errno_text(error));
}
Failure cannot_write(const std::string& path, int error) {
  return Failure::make(ExitCode::output, "{}: cannot be written: {}", path, errno_text(error));
}

/// Where a name leads once symbolic links are followed, to a file that is there or not.
std::string followed(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr int kMostLinks = 40;  // as many as Linux follows
  fs::path place = path;
  std::error_code error;
  for (int i = 0; i < kMostLinks; ++i) {
    const fs::path next = fs::read_symlink(place, error);
    if (error) return place.string();  // no link, or nothing
    place = place.parent_path() / next;
  }
  throw cannot_write(path, ELOOP);
}

std::int64_t free_space(int fd) {
  struct statvfs info {};
  if (fstatvfs(fd, &info) != 0) return -1;
  return static_cast<std::int64_t>(info.f_bavail) * static_cast<std::int64_t>(info.f_frsize);
}

}  // namespace

std::string errno_text(int error) { return std::generic_category().message(error); }

bool is_directory(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

void install_signal_handlers(bool pipe_errors) {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGBUS}) {
    struct sigaction previous {};
    sigaction(signal, nullptr, &previous);
    if (previous.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);  // nohup stays nohup
  }
  std::signal(SIGXFSZ, SIG_IGN);
  if (pipe_errors) std::signal(SIGPIPE, SIG_IGN);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = other.release();
  }
  return *this;
}
Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}
int Descriptor::release() noexcept { return std::exchange(fd_, -1); }

Mapping::Mapping(int fd, std::int64_t offset, std::int64_t length, bool writable) {
  if (length == 0) return;
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  const std::int64_t start = offset / page * page;
  length_ = static_cast<std::size_t>(offset - start + length);
  void* address = mmap(nullptr, length_, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, start);
  if (address == MAP_FAILED) throw std::system_error(errno, std::generic_category());
  base_ = address;
  data_ = static_cast<std::byte*>(address) + (offset - start);
}
Mapping::Mapping(Mapping&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), length_(other.length_), data_(other.data_) {}
Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(length_, other.length_);
  std::swap(data_, other.data_);
  return *this;
}
Mapping::~Mapping() {
  if (base_ != nullptr) munmap(base_, length_);
}

Descriptor open_spool() {
  const char* configured = std::getenv("TMPDIR");
  const std::string directory = configured != nullptr && *configured != '\0' ? configured : "/tmp";
  Descriptor spool(open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (spool.get() >= 0) return spool;
  std::string name = directory + "/cenote-XXXXXX";
  spool = Descriptor(mkostemp(name.data(), O_CLOEXEC));
  if (spool.get() < 0) throw cannot_write(directory, errno);
  unlink(name.c_str());
  return spool;
}

void write_all(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), std::min<std::size_t>(bytes.size(), std::size_t{1} << 30));
    if (written < 0) {
      if (errno == EINTR) continue;
      throw cannot_write(path, errno);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void reserve_space(int fd, std::int64_t bytes, const std::string& path) {
  const std::int64_t space = free_space(fd);
  if (space >= 0 && bytes > space) {
    throw Failure::make(ExitCode::output, "{}: cannot be written: {}: {} needed, {} free", path, errno_text(ENOSPC),
                        human_bytes(static_cast<double>(bytes)), human_bytes(static_cast<double>(space)));
  }
  if (bytes <= 0 || fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, bytes) == 0) return;
  if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) throw cannot_write(path, errno);
}

InputFile::InputFile(const std::string& path, const SizeOfStream& size_of_stream)
    : path_(path == "-" ? "standard input" : path) {
  descriptor_ = Descriptor(path == "-" ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (descriptor_.get() < 0) throw cannot_read(path_, errno);
  struct stat info {};
  if (fstat(descriptor_.get(), &info) != 0) throw cannot_read(path_, errno);
  if (S_ISDIR(info.st_mode)) throw cannot_read(path_, EISDIR);
  if (S_ISREG(info.st_mode)) {
    size_ = info.st_size;
    return;
  }
  if (path == "-" && isatty(STDIN_FILENO) != 0) {
    throw Failure(ExitCode::input, "standard input is a terminal; pipe a .npy or .png file into it");
  }
  spool(size_of_stream);
}

void InputFile::spool(const SizeOfStream& size_of_stream) {
  std::vector<std::byte> buffer(1 << 20);
  const auto fill = [&](std::span<std::byte> bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t got = ::read(descriptor_.get(), bytes.data() + done, bytes.size() - done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw cannot_read(path_, errno);
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  };
  const std::string name = "temporary copy of " + path_;
  std::size_t got = fill(std::span(buffer).first(kStreamStart));
  const StreamSize stream = size_of_stream(std::span(buffer).first(got), path_);
  Descriptor copy = open_spool();
  if (stream.exact) reserve_space(copy.get(), stream.most, name);
  while (got > 0) {
    write_all(copy.get(), std::span(buffer).first(got), name);
    size_ += static_cast<std::int64_t>(got);
    const std::int64_t left = std::max<std::int64_t>(stream.most - size_, 0);
    got = fill(std::span(buffer).first(std::min(buffer.size(), static_cast<std::size_t>(left))));
  }
  descriptor_ = std::move(copy);
}

InputFile InputFile::adopt(Descriptor descriptor, const std::string& path) {
  InputFile file;
  struct stat info {};
  if (fstat(descriptor.get(), &info) != 0) throw cannot_read(path, errno);
  file.path_ = path;
  file.size_ = info.st_size;
  file.descriptor_ = std::move(descriptor);
  return file;
}

std::size_t InputFile::read_some(std::int64_t offset, std::span<std::byte> bytes) const {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = pread(descriptor_.get(), bytes.data() + done, bytes.size() - done,
                              static_cast<off_t>(offset + static_cast<std::int64_t>(done)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw cannot_read(path_, errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void InputFile::read(std::int64_t offset, std::span<std::byte> bytes) const {
  if (read_some(offset, bytes) != bytes.size()) {
    throw Failure::make(ExitCode::input, "{}: ends early: {} bytes, at least {} expected", path_, size_,
                        offset + static_cast<std::int64_t>(bytes.size()));
  }
}

Mapping InputFile::map(std::int64_t offset, std::int64_t length) const {
  try {
    return Mapping(descriptor_.get(), offset, length, false);
  } catch (const std::system_error& error) {
    throw cannot_read(path_, error.code().value());
  }
}

void InputFile::prefetch(std::int64_t offset, std::int64_t length) const noexcept {
  if (length > 0) posix_fadvise(descriptor_.get(), offset, length, POSIX_FADV_WILLNEED);
}

std::string plain_name(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(fs::absolute(path, error), error);
  return error ? path : whole.string();
}

bool same_file(const std::string& one, const std::string& other) {
  if (one == "-" || other == "-") return false;
  struct stat first {
  }, second{};
  if (stat(one.c_str(), &first) == 0 && stat(other.c_str(), &second) == 0) {
    return first.st_dev == second.st_dev && first.st_ino == second.st_ino;
  }
  return plain_name(one) == plain_name(other);
}

OutputFile::OutputFile(const std::string& path) : path_(path) {
  if (path == "-") {
    path_ = "standard output";
    stream_ = true;
    if (isatty(STDOUT_FILENO) != 0) {
      throw Failure(ExitCode::usage, "standard output is a terminal; name a file or pipe the result somewhere");
    }
    descriptor_ = Descriptor(dup(STDOUT_FILENO));
    if (descriptor_.get() < 0) throw cannot_write(path_, errno);
    return;
  }
  target_ = followed(path);
  directory_ = directory_of(target_);
  struct stat target {};
  const bool there = stat(target_.c_str(), &target) == 0;
  if (there && !S_ISREG(target.st_mode)) {
    // A device or a pipe keeps its name: written to, never replaced.
    stream_ = true;
    descriptor_ = Descriptor(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (descriptor_.get() < 0) throw cannot_write(path_, errno);
    return;
  }
  if (there && access(target_.c_str(), W_OK) != 0) throw cannot_write(path_, errno);
  const mode_t mask = umask(0);
  umask(mask);
  const mode_t mode = there ? target.st_mode & 0777U : 0666U & ~mask;
  descriptor_ = Descriptor(open(directory_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (descriptor_.get() >= 0) {
    fchmod(descriptor_.get(), mode);
    return;
  }
  if (errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == EROFS || errno == ENOSPC) {
    throw cannot_write(path_, errno);
  }
  temporary_ = fmt::format("{}/.{}.cenote-XXXXXX", directory_, target_.substr(target_.rfind('/') + 1));
  descriptor_ = Descriptor(mkostemp(temporary_.data(), O_CLOEXEC));
  if (descriptor_.get() < 0) throw cannot_write(path_, errno);
  remember(temporary_);
  fchmod(descriptor_.get(), mode);
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) {
    unlink(temporary_.c_str());
    forget(temporary_);
  }
}

Mapping OutputFile::map(std::int64_t offset, std::int64_t length) {
  if (length == 0) return {};
  if (const int error = posix_fallocate(descriptor_.get(), offset, length); error != 0)
    throw cannot_write(path_, error);
  try {
    return Mapping(descriptor_.get(), offset, length, true);
  } catch (const std::system_error& error) {
    throw cannot_write(path_, error.code().value());
  }
}

void OutputFile::finish() {
  if (!stream_ && fsync(descriptor_.get()) != 0) throw cannot_write(path_, errno);
}

void OutputFile::commit() {
  if (stream_) return;
  if (temporary_.empty()) {
    const std::string self = fmt::format("/proc/self/fd/{}", descriptor_.get());
    if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, target_.c_str(), AT_SYMLINK_FOLLOW) == 0) return;
    if (errno != EEXIST) throw cannot_write(path_, errno);
    // The name is taken: only rename() replaces, and it needs a name to start from.
    temporary_ = fmt::format("{}/.{}.cenote-{}", directory_, target_.substr(target_.rfind('/') + 1), getpid());
    unlink(temporary_.c_str());
    remember(temporary_);
    if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) != 0)
      throw cannot_write(path_, errno);
  }
  if (rename(temporary_.c_str(), target_.c_str()) != 0) throw cannot_write(path_, errno);
  forget(temporary_);
  temporary_.clear();
}

}  // namespace cenote::tool
