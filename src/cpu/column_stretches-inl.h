// The channels of a column in stretches of as many vectors as registers hold: the longer what is read together, the less memory is waited for.
#if defined(CENOTE_CPU_COLUMN_STRETCHES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_COLUMN_STRETCHES_INL_H_
#undef CENOTE_CPU_COLUMN_STRETCHES_INL_H_
#else
#define CENOTE_CPU_COLUMN_STRETCHES_INL_H_
#endif

#include <hwy/highway.h>

#include "geometry/axis.hpp"

#include <array>
#include <cstdint>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// How the channels of a column are cut: `count` stretches, each `step` channels behind the one before, but for the last, which ends with the column and may begin with channels that are
/// done.
struct Stretches {
  std::int64_t count, step, last;

  HWY_INLINE std::int64_t operator[](std::int64_t s) const { return s + 1 < count ? s * step : last; }
};

/// Calls Row::Fold<vectors>(row, stretches), for stretches of as many vectors as kMost allows, and no fewer than it must be. `channels`: at least `lanes`, which make a vector.
template <int kMost, class Row>
HWY_INLINE void FoldInStretches(const Row& row, std::int64_t channels, std::int64_t lanes) {
  using Fold = void (*)(const Row&, const Stretches&);
  static constexpr auto kFolds = []<int... n>(std::integer_sequence<int, n...>) {
    return std::array<Fold, kMost>{Row::template Fold<n + 1>...};
  }
  (std::make_integer_sequence<int, kMost>());
  const std::int64_t all = ceil_div(channels, lanes);
  const std::int64_t vectors = smaller(ceil_div(all, ceil_div(all, kMost)), channels / lanes), step = vectors * lanes;
  kFolds[static_cast<std::size_t>(vectors - 1)](row, {ceil_div(channels, step), step, channels - step});
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
