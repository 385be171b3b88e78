// How the place of a maximum is written down.
#pragma once

#include <cenote/dtype.hpp>

#include <cstdint>

namespace cenote {

/// flat64 (PyTorch's): position in the D*H*W plane of the unpadded input, 8 bytes. flat32: the same in 4 bytes.
/// window: which tap of its window won, counted row-major in the whole (unclipped) window: u8 up to 255 taps, u16 up to
/// 65535, else u32. "No element" is -1 in the flat kinds and all ones in the window kind.
enum class IndexKind : std::uint8_t { flat64, flat32, window };

constexpr const char* name_of(IndexKind kind) noexcept {
  return kind == IndexKind::flat64 ? "flat64" : kind == IndexKind::flat32 ? "flat32" : "window";
}

/// The element type of indices of this kind for windows of at most `taps` taps (flat kinds do not depend on it).
constexpr DType index_dtype(IndexKind kind, std::int64_t taps) noexcept {
  if (kind == IndexKind::flat64) return DType::i64;
  if (kind == IndexKind::flat32) return DType::i32;
  return taps <= 255 ? DType::u8 : taps <= 65535 ? DType::u16 : DType::u32;
}

}  // namespace cenote
