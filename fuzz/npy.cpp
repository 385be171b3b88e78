// The .npy reader on any bytes: it refuses or it reads, and what it reads lies inside the file.
#include "npy.hpp"
#include "failure.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cenote::tool;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    const auto file_size = static_cast<std::int64_t>(size);
    const NpyHeader header = parse_npy_header(bytes.first(std::min(size, kMaxNpyHeader)), file_size, "input");
    if (header.data_offset < 10 || header.data_bytes() != file_size - header.data_offset) std::abort();
    // What is written for such an array is read back as the same array.
    std::vector<std::byte> again = make_npy_header(header.dtype, header.shape, header.fortran_order);
    const auto whole = static_cast<std::int64_t>(again.size()) + header.data_bytes();
    const NpyHeader read = parse_npy_header(again, whole, "again");
    if (read.dtype != header.dtype || !(read.shape == header.shape) || read.fortran_order != header.fortran_order)
      std::abort();
  } catch (const Failure&) {
  }
  return 0;
}
