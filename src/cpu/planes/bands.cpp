// Bands of the element types that are worth their code, once per instruction set.
#include "cpu/planes/bands.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/planes/bands.cpp"
#include <hwy/foreach_target.h>

#include "cpu/planes/bands-inl.h"
#include "cpu/planes/dilated_rows-inl.h"
#include "cpu/planes/joined_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

template <Fold kFold, class T, class C>
Bands BandsWith() {
  Bands bands{FoldBands<kFold, T, C>, nullptr, nullptr, static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<C>())),
              sizeof(C)};
  if constexpr (std::is_same_v<C, float>) {
    bands.joined = FoldJoinedRows<kFold, T>;
    if (kFold == Fold::max) bands.dilated = FoldDilatedRows;
  }
  return bands;
}

Bands BandsOf(DType dtype, bool sums) {
  switch (dtype) {
    case DType::f32: return sums ? BandsWith<Fold::sum, float, float>() : BandsWith<Fold::max, float, float>();
    case DType::u8: return sums ? Bands{} : BandsWith<Fold::max, std::uint8_t, std::uint8_t>();
    default: return {};
  }
}

#else

Bands BandsOf(DType, bool) { return {}; }

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(BandsOf);
Bands bands_of(std::size_t target, DType dtype, bool sums) { return HWY_DISPATCH_TABLE(BandsOf)[target](dtype, sums); }
}  // namespace cenote::simd
#endif
