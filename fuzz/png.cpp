// The .png reader on any bytes: it refuses or it delivers every row it announced, without allocating what a header only claims.
#include "png.hpp"
#include "failure.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

namespace {

std::uint32_t crc32(const std::uint8_t* data, std::size_t size) {
  std::uint32_t crc = 0xffffffffU;
  for (std::size_t i = 0; i < size; ++i) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

/// A mutated chunk has a wrong checksum and would be refused for that alone: every checksum is made right first.
void repair(std::vector<std::uint8_t>& file) {
  std::size_t at = 8;
  while (at + 12 <= file.size()) {
    const std::size_t length =
        std::size_t{file[at]} << 24 | std::size_t{file[at + 1]} << 16 | std::size_t{file[at + 2]} << 8 | file[at + 3];
    if (length > file.size() - at - 12) return;
    const std::uint32_t crc = crc32(&file[at + 4], length + 4);
    for (std::size_t i = 0; i < 4; ++i) file[at + 8 + length + i] = static_cast<std::uint8_t>(crc >> (24 - 8 * i));
    at += 12 + length;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cenote::tool;
  std::vector<std::uint8_t> file(data, data + size);
  repair(file);
  std::size_t position = 0;
  try {
    const std::span<const std::byte> start = std::as_bytes(std::span(file)).first(std::min<std::size_t>(size, 64));
    if (starts_like_png(start) && largest_png_file(start, "input") <= 0) std::abort();
    check_png_chunks(
        [&](std::int64_t offset, std::span<std::byte> bytes) {
          const std::size_t from = std::min(static_cast<std::size_t>(offset), size);
          const std::size_t count = std::min(bytes.size(), size - from);
          if (count > 0) std::memcpy(bytes.data(), file.data() + from, count);
          return count;
        },
        static_cast<std::int64_t>(size), "input");
    PngReader reader(
        [&](std::span<std::byte> bytes) {
          const std::size_t count = std::min(bytes.size(), size - position);
          if (count > 0) std::memcpy(bytes.data(), file.data() + position, count);
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
