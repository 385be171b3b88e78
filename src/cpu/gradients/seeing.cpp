#include "cpu/gradients/seeing.hpp"

namespace cenote::simd {

int seeing_columns(const SeeingTaps* rows, int count, const Cover& cover, std::int64_t first, std::int64_t inner,
                   SeeingColumn* seeing) {
  int found = 0;
  for (int row = 0; row < count; ++row) {
    for (std::int64_t x = 0; x < cover.count; ++x) {
      const std::int64_t at = (cover.first + x * cover.step - first) * inner;
      const std::int64_t number = rows[row].number + cover.first_tap - x * cover.tap_step;
      seeing[found++] = {rows[row].taps + at, rows[row].gradients + at, static_cast<std::uint8_t>(number)};
    }
  }
  return found;
}

}  // namespace cenote::simd
