// The .png reader on any bytes: it refuses or it delivers every row it announced, without allocating what a header only claims.
#include "failure.hpp"
#include "png.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cenote::tool;
  std::size_t position = 0;
  try {
    PngReader reader(
        [&](std::span<std::byte> bytes) {
          const std::size_t count = std::min(bytes.size(), size - position);
          std::memcpy(bytes.data(), data + position, count);
          position += count;
          return count;
        },
        static_cast<std::int64_t>(size), "input");
    if (reader.format().row_bytes() > (std::int64_t{1} << 22) || reader.format().height > 4096) return 0;
    std::vector<std::byte> row(static_cast<std::size_t>(reader.format().row_bytes()));
    for (std::int64_t y = 0; y < reader.format().height; ++y) reader.read_row(row);
  } catch (const Failure&) {
  }
  return 0;
}
