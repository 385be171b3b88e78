// Indices of any kind as lanes that are compared with positions.
#if defined(CENOTE_CPU_VECTORS_INDEX_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_VECTORS_INDEX_VECTORS_INL_H_
#undef CENOTE_CPU_VECTORS_INDEX_VECTORS_INL_H_
#else
#define CENOTE_CPU_VECTORS_INDEX_VECTORS_INL_H_
#endif

#include "cpu/vectors/convert-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// A vector of indices in lanes of the compute type's width: "none" as -1, what does not fit as another negative number.
template <class Index, class D>
HWY_INLINE hn::Vec<D> LoadIndexVector(D d, const Index* from) {
  using Code = hn::TFromD<D>;
  if constexpr (sizeof(Index) == sizeof(Code)) {
    return hn::Max(hn::BitCast(d, hn::LoadU(hn::Rebind<Index, D>(), from)), hn::Set(d, Code{-2}));
  } else if constexpr (sizeof(Index) < sizeof(Code)) {
    auto widened = hn::Undefined(d);
    const auto narrow = hn::LoadU(hn::Rebind<Index, D>(), from);
    if constexpr (sizeof(Code) == 8 && sizeof(Index) < 4) {
      widened = hn::PromoteTo(d, hn::PromoteTo(hn::Rebind<std::int32_t, D>(), narrow));
    } else if constexpr (sizeof(Code) == 8 && std::is_unsigned_v<Index>) {
      widened = hn::BitCast(d, hn::PromoteTo(hn::Rebind<std::uint64_t, D>(), narrow));
    } else {
      widened = hn::PromoteTo(d, narrow);
    }
    if constexpr (std::is_unsigned_v<Index>) {
      const auto none = hn::Set(d, static_cast<Code>(std::numeric_limits<Index>::max()));
      widened = hn::IfThenElse(hn::Eq(widened, none), hn::Set(d, Code{-1}), widened);
    }
    return widened;
  } else {
#if HWY_TARGET == HWY_SCALAR
    const auto code = static_cast<Code>(*from);
    return hn::Set(d, code == *from ? code : Code{-2});
#else
    const hn::Half<hn::RebindToUnsigned<D>> half;
    const hn::Rebind<std::uint64_t, decltype(half)> d64;
    auto load = [&](std::size_t at) HWY_ATTR {
      const auto v = hn::LoadU(d64, reinterpret_cast<const std::uint64_t*>(from) + at);
      const auto beyond = hn::ShiftRight<31>(hn::Add(v, hn::Set(d64, std::uint64_t{1})));
      return hn::TruncateTo(half, hn::IfThenElse(hn::Eq(beyond, hn::Zero(d64)), v, hn::Set(d64, ~std::uint64_t{1})));
    };
    return hn::BitCast(d, hn::Combine(hn::RebindToUnsigned<D>(), load(hn::Lanes(d64)), load(0)));
#endif
  }
}

/// The same for one index.
template <class Code, class Index>
Code IndexCode(Index index) {
  const bool none =
      std::is_unsigned_v<Index> ? index == std::numeric_limits<Index>::max() : index == static_cast<Index>(-1);
  if (none) return -1;
  const auto wide = static_cast<std::int64_t>(index);
  return wide >= 0 && wide < std::numeric_limits<std::int32_t>::max() ? static_cast<Code>(wide) : Code{-2};
}

/// Where no byte of `place`, less the one of `skipped`, is above the one of `limit`.
template <class D, class V = hn::Vec<D>>
HWY_INLINE hn::Mask<D> BytesWithin(D d, V place, V skipped, V limit) {
#if HWY_TARGET == HWY_SCALAR
  bool within = true;
  for (int shift = 0; shift < 32; shift += 8) {
    const auto byte = [shift](V v) { return static_cast<std::uint8_t>(hn::GetLane(v) >> shift); };
    within = within && static_cast<std::uint8_t>(byte(place) - byte(skipped)) <= byte(limit);
  }
  return hn::Eq(hn::Set(d, within ? 1U : 0U), hn::Set(d, 1U));
#else
  const hn::Repartition<std::uint8_t, D> d8;
  const auto left = hn::Sub(hn::BitCast(d8, place), hn::BitCast(d8, skipped));
  return hn::Eq(hn::BitCast(d, hn::Min(left, hn::BitCast(d8, limit))), hn::BitCast(d, left));
#endif
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
