// From the place of an element in the plane to its tap in a window, and back.
#pragma once

#include "geometry/problem.hpp"

namespace cenote {

/// The windows of one output along depth, height and width.
struct OutputWindows {
  Window axis[3];
};

/// `starts`: window starts of the plane's fractional axes, null otherwise.
inline OutputWindows windows_of(const Problem& p, const std::int64_t* const (&starts)[3], std::int64_t od,
                                std::int64_t oh, std::int64_t ow) {
  const std::int64_t o[3] = {od, oh, ow};
  OutputWindows result;
  for (int a = 0; a < 3; ++a) {
    result.axis[a] = starts[a] != nullptr ? window_at(p.axis[a], starts[a][o[a]]) : window(p.axis[a], o[a]);
  }
  return result;
}

/// Flat position of tap number `tap` of the whole window; -1 when there is no such tap or it lies outside the input.
inline std::int64_t flat_of_tap(const Problem& p, const OutputWindows& windows, std::int64_t tap) {
  const Window &d = windows.axis[0], &h = windows.axis[1], &w = windows.axis[2];
  if (tap < 0 || tap >= d.whole * h.whole * w.whole) return -1;
  const std::int64_t taps[3] = {tap / (h.whole * w.whole) - d.skipped, tap / w.whole % h.whole - h.skipped,
                                tap % w.whole - w.skipped};
  std::int64_t flat = 0;
  for (int a = 0; a < 3; ++a) {
    const Window& window = windows.axis[a];
    if (taps[a] < 0 || taps[a] >= window.count) return -1;
    flat = flat * p.axis[a].input + window.first + taps[a] * window.step;
  }
  return flat;
}

/// Whether a window has a tap at a flat position. Forms no product of kernel sizes, which need not fit in 63 bits.
inline bool has_tap_at(const Problem& p, const OutputWindows& windows, std::int64_t flat) {
  if (flat < 0 || flat >= plane_size(p)) return false;
  const std::int64_t width = p.axis[2].input, height = p.axis[1].input;
  const std::int64_t position[3] = {flat / width / height, flat / width % height, flat % width};
  for (int a = 0; a < 3; ++a) {
    const Window& window = windows.axis[a];
    const std::int64_t distance = position[a] - window.first;
    if (distance < 0 || distance % window.step != 0 || distance / window.step >= window.count) return false;
  }
  return true;
}

/// Tap of the whole window that lies at a flat position; -1 when none does. For windows whose taps an index can number.
inline std::int64_t tap_of_flat(const Problem& p, const OutputWindows& windows, std::int64_t flat) {
  if (!has_tap_at(p, windows, flat)) return -1;
  const std::int64_t width = p.axis[2].input, height = p.axis[1].input;
  const std::int64_t position[3] = {flat / width / height, flat / width % height, flat % width};
  std::int64_t tap = 0;
  for (int a = 0; a < 3; ++a) {
    const Window& window = windows.axis[a];
    tap = tap * window.whole + window.skipped + (position[a] - window.first) / window.step;
  }
  return tap;
}

/// Reads one index of any kind; the window kind's "none" becomes -1 like the flat kinds'.
inline std::int64_t read_index(const void* indices, DType dtype, std::int64_t at) {
  switch (dtype) {
    case DType::i64: return static_cast<const std::int64_t*>(indices)[at];
    case DType::i32: return static_cast<const std::int32_t*>(indices)[at];
    case DType::u8: {
      const auto v = static_cast<const std::uint8_t*>(indices)[at];
      return v == 0xff ? -1 : v;
    }
    case DType::u16: {
      const auto v = static_cast<const std::uint16_t*>(indices)[at];
      return v == 0xffff ? -1 : v;
    }
    default: {
      const auto v = static_cast<const std::uint32_t*>(indices)[at];
      return v == 0xffffffffU ? -1 : std::int64_t{v};
    }
  }
}

/// Writes one index; -1 becomes the kind's "none".
inline void write_index(void* indices, DType dtype, std::int64_t at, std::int64_t value) {
  switch (dtype) {
    case DType::i64: static_cast<std::int64_t*>(indices)[at] = value; break;
    case DType::i32: static_cast<std::int32_t*>(indices)[at] = static_cast<std::int32_t>(value); break;
    case DType::u8: static_cast<std::uint8_t*>(indices)[at] = static_cast<std::uint8_t>(value); break;
    case DType::u16: static_cast<std::uint16_t*>(indices)[at] = static_cast<std::uint16_t>(value); break;
    default: static_cast<std::uint32_t*>(indices)[at] = static_cast<std::uint32_t>(value); break;
  }
}

}  // namespace cenote
