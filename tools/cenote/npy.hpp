// NumPy's .npy files, format versions 1.0, 2.0 and 3.0.
//
// bfloat16, which NumPy has not, is written as the two opaque bytes "|V2": what NumPy writes for an array of the ml_dtypes
// package, and what numpy.load(...).view(ml_dtypes.bfloat16) reads back. Both "<V2" and "|V2" are read as bfloat16.
#pragma once

#include <cenote/dtype.hpp>
#include <cenote/view.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cenote::tool {

/// Most dimensions of an array the tool reads.
inline constexpr int kMaxArrayRank = 5;

struct NpyHeader {
  DType dtype = DType::f32;
  bool swapped = false;  ///< the bytes of an element are in the other order than this machine's
  bool fortran_order = false;
  Shape shape;
  std::int64_t data_offset = 0;

  std::int64_t data_bytes() const { return element_count(shape) * static_cast<std::int64_t>(size_of(dtype)); }
};

/// Longest header that is read; NumPy's own are 118 bytes for anything the tool accepts.
inline constexpr std::size_t kMaxNpyHeader = 16384;

/// Whether a file that starts so is a .npy file, or the first bytes of one.
bool starts_like_npy(std::span<const std::byte> start);

/// What the beginning of a file says about the array that follows; the sizes are such that its bytes can be counted. Throws
/// Failure (prefixed with `name`).
NpyHeader read_npy_header(std::span<const std::byte> start, const std::string& name);

/// Parses the beginning of a file. `start` holds its first min(file_size, kMaxNpyHeader) bytes. Allocates nothing that depends
/// on what the header claims; throws Failure (prefixed with `name`) unless the file is the header and the whole array.
NpyHeader parse_npy_header(std::span<const std::byte> start, std::int64_t file_size, const std::string& name);

/// The first bytes of a file that holds such an array: a multiple of 64, as NumPy does.
std::vector<std::byte> make_npy_header(DType dtype, const Shape& shape, bool fortran_order);

}  // namespace cenote::tool
