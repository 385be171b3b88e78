// Sums of columns of many channels under windows whose taps no loop of their own unrolls, above all many: what is summed so far is kept in L1, so that memory is read as it lies.
#if defined(CENOTE_CPU_DIRECT_LONG_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_DIRECT_LONG_INL_H_
#undef CENOTE_CPU_DIRECT_LONG_INL_H_
#else
#define CENOTE_CPU_DIRECT_LONG_INL_H_
#endif

#include "cpu/direct_run-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// What is summed up of an output so far, in scratch: totals of every channel, one after the other; where sums are taken in lanes,
/// as many totals as there are lanes. The ragged end of the channels has a vector of its own.
template <class C>
struct DirectTotals {
  static constexpr std::int64_t kSlots = LaneSums<hn::ScalableTag<C>>::kLanes;
  // The rows that there is room for, see place_scratch. Sums have 4 bytes at least.
  static_assert((sizeof(C) < 4 || kSlots <= kRowBlock) && kDoublingTaps <= kRowBlock);
  C* values;
  std::int64_t pitch;  // from slot to slot
  bool in_lanes;

  DirectTotals(char* scratch, std::int64_t channels, bool lanes)
      : values(reinterpret_cast<C*>(scratch)), in_lanes(lanes) {
    const auto vector = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<C>()));
    pitch = (channels + vector - 1) / vector * vector;
  }
};

/// Calls work(vectors, channel, place in the totals) for all channels. The ragged end is done from its last whole vector.
template <class C, class Work>
HWY_INLINE void ForChannels(std::int64_t channels, const Work& work) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<C>()));
  std::int64_t c = 0;
  for (; c + 4 * lanes <= channels; c += 4 * lanes) work(std::integral_constant<int, 4>{}, c, c);
  for (; c + lanes <= channels; c += lanes) work(std::integral_constant<int, 1>{}, c, c);
  if (c < channels) work(std::integral_constant<int, 1>{}, channels - lanes, c);
}

/// The sums down the rows of vectors that begin `at`.
template <class D, class T, class Code, int kVectors>
HWY_INLINE void SumDown(D d, const DirectRows<T, Code>& rows, std::int64_t at, hn::Vec<D> (&sum)[kVectors]) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) sum[v] = LoadAs(d, rows.rows[0] + at + v * lanes);
  for (int row = 1; row < rows.count; ++row) {
    const T* from = rows.rows[row] + at;
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) sum[v] = hn::Add(sum[v], LoadAs(d, from + v * lanes));
  }
}

/// Tap after tap along the row, and down the rows under each; all channels of a column before the next one. So every row is read as
/// it lies, and what is read together is as many stretches as the window has rows.
template <class T, class C>
HWY_INLINE void SumLongWindow(const DirectRun<T, C>& run, std::int64_t at, const DirectTotals<C>& totals,
                              C* HWY_RESTRICT result) {
  const hn::ScalableTag<C> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t slots = totals.in_lanes ? smaller(run.taps, totals.kSlots) : 1;
  for (std::int64_t tap = 0; tap < run.taps; ++tap) {
    const std::int64_t first = at + tap * run.step;
    C* slot = totals.values + tap % slots * totals.pitch;
    const bool fresh = tap < slots;
    ForChannels<C>(run.channels, [&](auto vectors, std::int64_t c, std::int64_t place) HWY_ATTR {
      constexpr int kVectors = vectors();
      V sum[kVectors];
      SumDown(d, run.rows, first + c, sum);
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        C* total = slot + place + v * lanes;
        hn::StoreU(hn::Add(fresh ? hn::Zero(d) : hn::LoadU(d, total), sum[v]), d, total);
      }
    });
  }
  // Pairwise, as LaneSums does; a lane without taps would add nothing.
  for (std::int64_t width = totals.kSlots / 2; width > 0; width /= 2) {
    for (std::int64_t i = 0; i < smaller(width, slots - width); ++i) {
      C* to = totals.values + i * totals.pitch;
      const C* from = to + width * totals.pitch;
      for (std::int64_t c = 0; c < totals.pitch; c += lanes) {
        hn::StoreU(hn::Add(hn::LoadU(d, to + c), hn::LoadU(d, from + c)), d, to + c);
      }
    }
  }
  ForChannels<C>(run.channels, [&](auto vectors, std::int64_t c, std::int64_t place) HWY_ATTR {
    CENOTE_UNROLL
    for (int v = 0; v < vectors(); ++v) {
      V total = hn::LoadU(d, totals.values + place + v * lanes);
      if constexpr (hwy::IsFloat<C>()) total = run.divisor.Apply(d, total);
      StoreDirect(d, run, total, result + c + v * lanes);
    }
  });
}

template <class T, class C>
HWY_NOINLINE void SumLongRun(const DirectRun<T, C>& run, const DirectTotals<C>& totals, Ahead& ahead,
                             C* HWY_RESTRICT result) {
  for (std::int64_t o = 0; o < run.outputs; ++o) {
    ahead.Move(run.apart * static_cast<std::int64_t>(sizeof(T)));
    SumLongWindow(run, run.first + o * run.apart, totals, result + o * run.channels);
  }
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
