// Loaded before the tool (LD_PRELOAD), makes every file system one that cannot hold files without a name, as some cannot.
#include <dlfcn.h>
#include <fcntl.h>

#include <cerrno>
#include <cstdarg>

extern "C" int open(const char* path, int flags, ...) {
  if ((flags & O_TMPFILE) == O_TMPFILE) {
    errno = EOPNOTSUPP;
    return -1;
  }
  va_list arguments;
  va_start(arguments, flags);
  const int mode = (flags & O_CREAT) != 0 ? va_arg(arguments, int) : 0;
  va_end(arguments);
  using Open = int (*)(const char*, int, ...);
  static const Open next = reinterpret_cast<Open>(dlsym(RTLD_NEXT, "open"));
  return next(path, flags, mode);
}
