// The backward of maxima over columns of many channels whose windows share nothing, and whose indices are taps, a byte each: the gradients of a row of
// outputs are read once for several inputs of each, and stored where the tap is that input, zeros elsewhere. Nothing is added up, so that bits are chosen, by
// their size.
#include "cpu/gradients/pick_columns.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/gradients/pick_columns.cpp"
#include <hwy/foreach_target.h>

#include "cpu/gradients/window_taps-inl.h"
#include "cpu/vectors/unroll.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

/// kInputs inputs of outputs [first, end) at once.
template <int kInputs, class D, class Bits = hn::TFromD<D>>
HWY_NOINLINE void PickInputs(D d, const PickedRow& row, std::int64_t first, std::int64_t end,
                             const OwnedInput* inputs) {
  const hn::Rebind<std::uint8_t, D> d8;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto negative = hn::Set(d, static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1)));
  hn::Vec<decltype(d8)> want[kInputs];
  Bits* to[kInputs];
  CENOTE_UNROLL
  for (int i = 0; i < kInputs; ++i) {
    want[i] = hn::Set(d8, inputs[i].tap);
    to[i] = reinterpret_cast<Bits*>(inputs[i].target);
  }
  for (std::int64_t output = first; output < end; ++output) {
    const std::uint8_t* taps = row.taps + output * row.channels;
    const Bits* gradients = static_cast<const Bits*>(row.gradients) + output * row.channels;
    for (std::int64_t next = 0; next < row.channels; next += lanes) {
      const std::int64_t c = std::min(next, row.channels - lanes);  // the ragged end from its last whole vector
      const std::int64_t at = output * row.apart + c;
      const auto tap = hn::LoadU(d8, taps + c);
      auto gradient = hn::LoadU(d, gradients + c);
      gradient = hn::IfThenZeroElse(hn::Eq(gradient, negative), gradient);  // as a sum would be, a -0 is a 0
      hn::Vec<D> chosen[kInputs];
      CENOTE_UNROLL
      for (int i = 0; i < kInputs; ++i) chosen[i] = hn::IfThenElseZero(WideMask(d, hn::Eq(tap, want[i])), gradient);
      CENOTE_UNROLL
      for (int i = 0; i < kInputs; ++i) {
        if (row.streams) {
          hn::Stream(chosen[i], d, to[i] + at);
        } else {
          hn::StoreU(chosen[i], d, to[i] + at);
        }
      }
    }
  }
}

/// See PickColumnsFn.
template <class D>
void PickRow(const PickedRow& row, std::int64_t first, std::int64_t end, const OwnedInput* inputs, int count) {
  const D d;
  if constexpr (std::is_same_v<D, hn::ScalableTag<std::uint16_t>>) {
    if (row.channels < static_cast<std::int64_t>(hn::Lanes(d)))
      return PickRow<hn::Half<D>>(row, first, end, inputs, count);
  }
  for (; count >= 4; count -= 4, inputs += 4) PickInputs<4>(d, row, first, end, inputs);
  if (count >= 2) PickInputs<2>(d, row, first, end, inputs);
  if (count % 2 != 0) PickInputs<1>(d, row, first, end, inputs + count - 1);
}

PickColumns PickColumnsOf(std::size_t size) {
  return {size == 2   ? PickRow<hn::ScalableTag<std::uint16_t>>
          : size == 4 ? PickRow<hn::ScalableTag<std::uint32_t>>
                      : PickRow<hn::ScalableTag<std::uint64_t>>,
          TapsOfRowInside, static_cast<std::int64_t>(HWY_MAX_BYTES / std::max<std::size_t>(size, 4))};
}

#else

PickColumns PickColumnsOf(std::size_t) { return {}; }

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(PickColumnsOf);
PickColumns pick_columns(std::size_t target, std::size_t size) {
  return HWY_DISPATCH_TABLE(PickColumnsOf)[target](size);
}
}  // namespace cenote::simd
#endif
