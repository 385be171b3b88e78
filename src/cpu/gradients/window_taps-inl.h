// Whether saved indices that are taps of their windows, a byte each, in columns of many channels, lie inside them.
#if defined(CENOTE_CPU_GRADIENTS_WINDOW_TAPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_GRADIENTS_WINDOW_TAPS_INL_H_
#undef CENOTE_CPU_GRADIENTS_WINDOW_TAPS_INL_H_
#else
#define CENOTE_CPU_GRADIENTS_WINDOW_TAPS_INL_H_
#endif

#include "cpu/vectors/convert-inl.h"
#include "geometry/axis.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR  // see kHasVectors

/// In a row of taps: none.
inline constexpr std::uint8_t kNoTap = 255;

/// Whether each of so many taps is inside, or "none".
template <class Inside, class D = hn::ScalableTag<std::uint8_t>>
bool AllTapsInside(const std::uint8_t* taps, std::int64_t count, const Inside& inside, D d = D()) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  using Few = hn::CappedTag<std::uint8_t, 16>;
  if constexpr (hn::MaxLanes(D()) > hn::MaxLanes(Few())) {
    if (count < lanes) return AllTapsInside(taps, count, inside, Few());
  }
  const auto none = hn::Set(d, kNoTap);
  auto wrong = hn::Zero(d);
  auto look = [&](auto v)
                  HWY_ATTR { wrong = hn::Or(wrong, hn::IfThenZeroElse(hn::Or(inside(d, v), hn::Eq(v, none)), none)); };
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) look(hn::LoadU(d, taps + i));
  if (i < count && i > 0) {
    look(hn::LoadU(d, taps + count - lanes));
  } else if (i < count) {
    HWY_ALIGN std::uint8_t rest[hn::MaxLanes(d)];
    std::fill_n(rest, lanes, kNoTap);
    std::memcpy(rest, taps, static_cast<std::size_t>(count));
    look(hn::Load(d, rest));
  }
  return hn::AllTrue(d, hn::Eq(wrong, hn::Zero(d)));
}

/// The taps of `columns` outputs beside each other, of `inner` channels each. `windows`: of those outputs along the width; `deep`, `high`: along the other
/// axes, of all of them. Windows have at most 254 taps.
HWY_NOINLINE inline bool TapsOfRowInside(const Axis* axis, const Window* windows, std::int64_t columns,
                                         std::int64_t inner, const Window& deep, const Window& high,
                                         const std::uint8_t* taps) {
  const bool whole_rows = deep.count == axis[0].kernel && (high.count == axis[1].kernel || axis[0].kernel == 1);
  // Of windows that are cut off above or below alone, taps that follow each other are left.
  const auto first = static_cast<std::uint8_t>(axis[0].kernel == 1 ? high.skipped * axis[2].kernel : 0);
  const auto left = static_cast<std::uint8_t>(deep.count * high.count * axis[2].kernel);
  bool valid = true;
  for (std::int64_t o = 0, end; o < columns; o = end) {
    const Window& w = windows[o];
    const bool whole = whole_rows && w.count == axis[2].kernel;
    end = o + 1;
    while (whole && end < columns && windows[end].count == w.count) ++end;
    std::uint8_t inside[kNoTap];
    int count = 0;
    for (std::int64_t z = 0; z < deep.count && !whole; ++z) {
      for (std::int64_t y = 0; y < high.count; ++y) {
        for (std::int64_t x = 0; x < w.count; ++x) {
          inside[count++] = static_cast<std::uint8_t>(
              ((deep.skipped + z) * axis[1].kernel + high.skipped + y) * axis[2].kernel + w.skipped + x);
        }
      }
    }
    const std::uint8_t* from = taps + o * inner;
    const std::int64_t bytes = (end - o) * inner;
    valid = (whole ? AllTapsInside(from, bytes,
                                   [&](auto d, auto v)
                                       HWY_ATTR { return hn::Lt(hn::Sub(v, hn::Set(d, first)), hn::Set(d, left)); })
                   : AllTapsInside(from, bytes,
                                   [&](auto d, auto v) HWY_ATTR {
                                     auto found = hn::Eq(v, hn::Set(d, inside[0]));
                                     for (int i = 1; i < count; ++i)
                                       found = hn::Or(found, hn::Eq(v, hn::Set(d, inside[i])));
                                     return found;
                                   })) &&
            valid;
  }
  return valid;
}

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
