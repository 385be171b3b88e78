#include "cpu/vectors/widen.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/vectors/widen.cpp"
#include <hwy/foreach_target.h>

#include "cpu/vectors/convert-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

template <class T>
void Widen(const void* narrow, float* wide, std::int64_t count) {
  LoadElements(static_cast<const T*>(narrow), wide, count);
}

template <class T>
void Narrow(const float* wide, void* narrow, std::int64_t count) {
  StoreAs(wide, static_cast<T*>(narrow), count);
}

template <class T>
void WidenIntegers(const void* narrow, float* wide, std::int64_t count) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<T, decltype(d)> narrow_lanes;
  const T* HWY_RESTRICT from = static_cast<const T*>(narrow);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t x = 0;
  for (; x + lanes <= count; x += lanes)
    hn::StoreU(hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(narrow_lanes, from + x))), d, wide + x);
  for (; x < count; ++x) wide[x] = static_cast<float>(from[x]);
}

/// Quotients are rounded toward zero.
template <class U>
void NarrowIntegers(const float* wide, void* narrow, std::int64_t count) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::Rebind<U, decltype(d)> narrow_lanes;
  U* HWY_RESTRICT to = static_cast<U*>(narrow);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t x = 0;
  for (; x + lanes <= count; x += lanes) {
    const auto whole = hn::ConvertTo(di, hn::LoadU(d, wide + x));
    hn::StoreU(hn::TruncateTo(narrow_lanes, hn::BitCast(du, whole)), narrow_lanes, to + x);
  }
  for (; x < count; ++x) to[x] = static_cast<U>(static_cast<std::int32_t>(wide[x]));
}

Widening WideningOf(DType dtype) {
  if constexpr (kHasGathers) {
    switch (dtype) {
      case DType::f16: return {Widen<f16>, Narrow<f16>};
      case DType::bf16: return {Widen<bf16>, Narrow<bf16>};
      case DType::i8: return {WidenIntegers<std::int8_t>, NarrowIntegers<std::uint8_t>};
      case DType::u8: return {WidenIntegers<std::uint8_t>, NarrowIntegers<std::uint8_t>};
      default: break;
    }
  }
  return {};
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(WideningOf);
Widening widening(std::size_t target, DType dtype) { return HWY_DISPATCH_TABLE(WideningOf)[target](dtype); }
}  // namespace cenote::simd
#endif
