// Backward of maxima over small planes whose windows overlap: a vector of input columns goes down the rows of outputs, takes the gradients and taps of those that see
// it, and adds what its taps say to the sums of the input rows of their windows, which stay in registers until no output sees them any more. Sums are taken in the order
// of the outputs.
#if defined(CENOTE_CPU_GRADIENTS_COLLECT_PLANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_GRADIENTS_COLLECT_PLANES_INL_H_
#undef CENOTE_CPU_GRADIENTS_COLLECT_PLANES_INL_H_
#else
#define CENOTE_CPU_GRADIENTS_COLLECT_PLANES_INL_H_
#endif

#include "cpu/gradients/collect_planes.hpp"
#include "cpu/vectors/convert-inl.h"
#include "cpu/vectors/unroll.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

/// Whether these taps of a plane are taps of their windows.
HWY_NOINLINE inline bool AreLeft(const std::vector<std::uint32_t>& left, const std::uint8_t* taps) {
  const hn::ScalableTag<std::uint32_t> d;
  const hn::Rebind<std::uint8_t, decltype(d)> narrow;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), count = static_cast<std::int64_t>(left.size());
  const auto one = hn::Set(d, 1U), most = hn::Set(d, 31U);
  auto fine = one;
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto tap = hn::Min(hn::PromoteTo(d, hn::LoadU(narrow, taps + i)), most);
    fine = hn::And(fine, hn::Shr(hn::LoadU(d, left.data() + i), tap));
  }
  bool all = hn::AllTrue(d, hn::Eq(fine, one));
  for (; i < count; ++i) all = all && taps[i] < 31 && ((left[static_cast<std::size_t>(i)] >> taps[i]) & 1U) != 0;
  return all;
}

/// One plane, whose windows are kHeight rows high and kStride apart; kMost outputs of a row see a column.
template <int kHeight, int kStride, int kMost, class T>
HWY_NOINLINE void CollectPlane(const CollectPlan& plan, const std::uint8_t* HWY_RESTRICT plane_taps,
                               const T* HWY_RESTRICT plane_gradients, RoundedLane<T>* HWY_RESTRICT target) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<std::uint8_t, decltype(d)> bytes;
  const RoundedTag<T, decltype(d)> rounded;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t width = plan.width.input, columns = plan.width.output, rows = plan.height.input;
  const std::int64_t first = -plan.height.pad_begin;
  const std::int32_t *lane = plan.lanes.data(), *numbers = plan.numbers.data();
  const std::int64_t* firsts = plan.firsts.data();
  for (const std::int64_t column : plan.columns) {
    std::int64_t output[kMost];
    hn::Vec<decltype(di)> from[kMost], number[kMost][kHeight];
    CENOTE_UNROLL
    for (int m = 0; m < kMost; ++m) {
      output[m] = firsts[m];
      from[m] = hn::LoadU(di, lane + m * lanes);
      CENOTE_UNROLL
      for (int y = 0; y < kHeight; ++y) {
        number[m][y] =
            hn::Add(hn::LoadU(di, numbers + m * lanes), hn::Set(di, y * static_cast<std::int32_t>(plan.width.kernel)));
      }
    }
    lane += kMost * lanes;
    numbers += kMost * lanes;
    firsts += kMost;
    hn::Vec<decltype(d)> sum[kHeight];
    CENOTE_UNROLL
    for (int y = 0; y < kHeight; ++y) sum[y] = hn::Zero(d);
    const std::uint8_t* taps = plane_taps;
    const T* gradients = plane_gradients;
    RoundedLane<T>* to = target + column;
    std::int64_t row = first;  // of the input: the first of the output row's windows
    auto put = [&](hn::Vec<decltype(d)> v) HWY_ATTR CENOTE_ALWAYS_INLINE {
      if (row >= 0 && row < rows) StoreFirst(rounded, RoundVector<T>(d, v), width, to + row * width);
      ++row;
    };
    for (std::int64_t o = 0; o < plan.height.output; ++o, taps += columns, gradients += columns) {
      auto all_taps = hn::PromoteTo(di, hn::LoadU(bytes, taps + output[0]));
      auto all_gradients = LoadAs(d, gradients + output[0]);
      CENOTE_UNROLL
      for (int m = 0; m < kMost; ++m) {
        if (kHeight == 2 && m > 0) {  // see CollectPlan::together
          all_taps = hn::PromoteTo(di, hn::LoadU(bytes, taps + output[m]));
          all_gradients = LoadAs(d, gradients + output[m]);
        }
        const auto tap = hn::TableLookupLanes(all_taps, hn::IndicesFromVec(di, from[m]));
        const auto gradient = hn::TableLookupLanes(all_gradients, hn::IndicesFromVec(d, from[m]));
        CENOTE_UNROLL
        for (int y = 0; y < kHeight; ++y) {
          const auto here = hn::RebindMask(d, hn::Eq(tap, number[m][y]));
          sum[y] = hn::IfThenElse(here, hn::Add(sum[y], gradient), sum[y]);
        }
      }
      CENOTE_UNROLL
      for (int y = 0; y < kStride; ++y) put(sum[y]);
      CENOTE_UNROLL
      for (int y = 0; y < kHeight; ++y) sum[y] = y + kStride < kHeight ? sum[(y + kStride) % kHeight] : hn::Zero(d);
    }
    CENOTE_UNROLL
    for (int y = 0; y < kHeight - kStride; ++y) put(sum[y]);
    while (row < rows) put(hn::Zero(d));
  }
}

template <class T>
bool CollectPlanes(const CollectPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                   char* scratch) {
  const auto outputs = static_cast<std::int64_t>(plan.left.size());
  const std::int64_t beyond = static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<float>()));
  const auto collect = plan.height.kernel == 2   ? CollectPlane<2, 1, 2, T>
                       : plan.height.kernel == 4 ? CollectPlane<4, 2, 2, T>
                       : plan.height.stride == 2 ? CollectPlane<3, 2, 2, T>
                                                 : CollectPlane<3, 1, 3, T>;
  bool valid = true;
  for (std::int64_t plane = begin; plane < end; ++plane) {
    const auto* taps = static_cast<const std::uint8_t*>(pointers.indices) + plane * plan.index_pitch;
    const T* gradients = static_cast<const T*>(pointers.source) + plane * plan.source_pitch;
    valid = AreLeft(plan.left, taps) && valid;
    // Vectors reach beyond a plane; behind the last there is nothing.
    if (plane * plan.source_pitch + outputs + beyond > plan.source_extent) {
      std::memcpy(scratch + plan.gradients_at, gradients, static_cast<std::size_t>(outputs) * sizeof(T));
      gradients = reinterpret_cast<const T*>(scratch + plan.gradients_at);
    }
    if (plane * plan.index_pitch + outputs + beyond > plan.index_extent) {
      std::memcpy(scratch + plan.taps_at, taps, static_cast<std::size_t>(outputs));
      taps = reinterpret_cast<const std::uint8_t*>(scratch + plan.taps_at);
    }
    T* target = static_cast<T*>(pointers.target) + plane * plan.target_pitch;
    collect(plan, taps, gradients, reinterpret_cast<RoundedLane<T>*>(target));
  }
  return valid;
}

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
