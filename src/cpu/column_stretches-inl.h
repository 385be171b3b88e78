// The channels of a column in stretches of as many vectors as registers hold: the longer what is read together, the less memory is waited for.
#if defined(CENOTE_CPU_COLUMN_STRETCHES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_COLUMN_STRETCHES_INL_H_
#undef CENOTE_CPU_COLUMN_STRETCHES_INL_H_
#else
#define CENOTE_CPU_COLUMN_STRETCHES_INL_H_
#endif

#include <hwy/highway.h>

#include "geometry/axis.hpp"

#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// How the channels of a column are cut: `count` stretches, each `step` channels behind the one before, but for the last, which ends with the column and may begin with channels that are done.
struct Stretches {
  int vectors;  // of which there is code, as many as a stretch has or up to three more: then the last are the same one
  std::int64_t count, step, last;
  std::int64_t ends[3];  // where the last three begin

  HWY_INLINE std::int64_t operator[](std::int64_t s) const { return s + 1 < count ? s * step : last; }
};

/// Vectors that a stretch may have: each number has code of its own.
inline constexpr int kStretchVectors[] = {1, 2, 3, 4, 8, 12, 16};

/// Where vector v of a stretch begins, in which there is code for kVectors.
template <int kVectors>
HWY_INLINE std::int64_t PlaceInStretch(const Stretches& stretches, int v, std::int64_t lanes) {
  return kVectors <= 4 || v + 3 < kVectors ? v * lanes : stretches.ends[v + 3 - kVectors];
}

/// In as few and as even stretches of at most `most` vectors as there can be. `channels`: at least `lanes`, which make a vector.
inline Stretches CutEvenly(std::int64_t channels, std::int64_t lanes, int most) {
  const std::int64_t all = ceil_div(channels, lanes);
  const std::int64_t vectors = smaller(ceil_div(all, ceil_div(all, most)), channels / lanes), step = vectors * lanes;
  Stretches stretches{0, ceil_div(channels, step), step, channels - step, {}};
  for (const int known : kStretchVectors) {
    if (stretches.vectors < vectors) stretches.vectors = known;
  }
  for (int i = 0; i < 3; ++i) stretches.ends[i] = smaller(stretches.vectors - 3 + i, vectors - 1) * lanes;
  return stretches;
}

/// The same in stretches of exactly as many vectors as there is code for: nothing in them needs looking up.
inline Stretches CutExactly(std::int64_t channels, std::int64_t lanes, int most) {
  Stretches best{};
  std::int64_t least = 0;
  for (const int vectors : kStretchVectors) {
    const std::int64_t step = vectors * lanes, count = ceil_div(channels, step);
    if (vectors > most || step > channels) break;
    const std::int64_t cost = count * (vectors + 2);  // what a stretch costs besides: not measured
    if (best.count != 0 && cost > least) continue;
    best = {vectors, count, step, channels - step, {}};
    least = cost;
  }
  return best;
}

/// Calls row.Fold<vectors>(stretches), vectors known when compiled: kMost at most.
template <int kMost, class Row>
HWY_INLINE void FoldInStretches(const Row& row, const Stretches& stretches) {
  auto fold = [&]<int... i>(std::integer_sequence<int, i...>) HWY_ATTR {
    auto fold_if = [&](auto vectors) HWY_ATTR {
      if constexpr (vectors() <= kMost) {
        if (stretches.vectors == vectors()) row.template Fold<vectors()>(stretches);
      }
    };
    (fold_if(std::integral_constant<int, kStretchVectors[i]>{}), ...);
  };
  fold(std::make_integer_sequence<int, std::size(kStretchVectors)>());
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
