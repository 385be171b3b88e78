// Sums of columns of many channels under windows whose taps no loop of their own unrolls, above all many: what is summed so far is kept in L1, so that memory is read as it lies.
#if defined(CENOTE_CPU_ROWS_DIRECT_LONG_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_ROWS_DIRECT_LONG_INL_H_
#undef CENOTE_CPU_ROWS_DIRECT_LONG_INL_H_
#else
#define CENOTE_CPU_ROWS_DIRECT_LONG_INL_H_
#endif

#include "cpu/rows/direct_run-inl.h"
#include "cpu/thresholds.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// What is summed up of an output so far, in scratch: totals of every channel, one after the other; where sums are taken in lanes,
/// as many totals as there are lanes; behind them, where windows have many rows, the sums of their columns. The ragged end of the channels has a vector of its own.
template <class C>
struct DirectTotals {
  static constexpr std::int64_t kSlots = LaneSums<hn::ScalableTag<C>>::kLanes;
  // The rows that there is room for, see place_scratch. Sums have 4 bytes at least.
  static_assert((sizeof(C) < 4 || kSlots <= kRowBlock) && kDoublingTaps <= kRowBlock);
  C* values;
  std::int64_t pitch;  // from slot to slot
  bool in_lanes, keeps_columns;

  DirectTotals(char* scratch, const RowPlan& plan)
      : values(reinterpret_cast<C*>(scratch)), in_lanes(plan.sums_in_lanes), keeps_columns(plan.kept_columns > 0) {
    const auto vector = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<C>()));
    pitch = (plan.inner + vector - 1) / vector * vector;
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

/// `sum`, and to it the rows [first, end) of vectors that begin `at`.
template <class D, class T, class Code, int kVectors>
HWY_INLINE void AddRows(D d, const DirectRows<T, Code>& rows, int first, int end, std::int64_t at,
                        hn::Vec<D> (&sum)[kVectors]) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (int row = first; row < end; ++row) {
    const T* from = rows.rows[row] + at;
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) sum[v] = hn::Add(sum[v], LoadAs(d, from + v * lanes));
  }
}

/// The sums down the rows of vectors that begin `at`.
template <class D, class T, class Code, int kVectors>
HWY_INLINE void SumDown(D d, const DirectRows<T, Code>& rows, std::int64_t at, hn::Vec<D> (&sum)[kVectors]) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) sum[v] = LoadAs(d, rows.rows[0] + at + v * lanes);
  AddRows(d, rows, 1, rows.count, at, sum);
}

/// Tap after tap along the row, and down the rows under each; all channels of a column before the next one. So every row is read as
/// it lies, and what is read together is as many stretches as the window has rows.
template <class T, class C>
HWY_INLINE void SumColumns(const DirectRun<T, C>& run, std::int64_t at, const DirectTotals<C>& totals,
                           std::int64_t slots) {
  const hn::ScalableTag<C> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
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
}

/// The same for windows of many rows: some of them at a time, for more are more stretches than are fetched early. Until the last, the sums of every column
/// are kept behind the totals.
template <class T, class C>
HWY_INLINE void SumColumnsInParts(const DirectRun<T, C>& run, std::int64_t at, const DirectTotals<C>& totals,
                                  std::int64_t slots) {
  const hn::ScalableTag<C> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const int parts = (run.rows.count + kRowsAtOnce - 1) / kRowsAtOnce;
  for (int part = 0, row = 0; part < parts; ++part) {
    const int first = row;
    row = run.rows.count * (part + 1) / parts;
    for (std::int64_t tap = 0; tap < run.taps; ++tap) {
      C* sums = totals.values + (totals.kSlots + tap) * totals.pitch;
      C* slot = totals.values + tap % slots * totals.pitch;
      const bool fresh = tap < slots;
      ForChannels<C>(run.channels, [&](auto vectors, std::int64_t c, std::int64_t place) HWY_ATTR {
        constexpr int kVectors = vectors();
        const std::int64_t begins = at + tap * run.step + c;
        V sum[kVectors];
        CENOTE_UNROLL
        for (int v = 0; v < kVectors; ++v)
          sum[v] =
              first == 0 ? LoadAs(d, run.rows.rows[0] + begins + v * lanes) : hn::LoadU(d, sums + place + v * lanes);
        AddRows(d, run.rows, first == 0 ? 1 : first, row, begins, sum);
        CENOTE_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          if (row < run.rows.count) {
            hn::StoreU(sum[v], d, sums + place + v * lanes);
          } else {
            C* total = slot + place + v * lanes;
            hn::StoreU(hn::Add(fresh ? hn::Zero(d) : hn::LoadU(d, total), sum[v]), d, total);
          }
        }
      });
    }
  }
}

template <class T, class C>
HWY_INLINE void SumLongWindow(const DirectRun<T, C>& run, std::int64_t at, const DirectTotals<C>& totals,
                              C* HWY_RESTRICT result) {
  const hn::ScalableTag<C> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t slots = totals.in_lanes ? smaller(run.taps, totals.kSlots) : 1;
  if (run.rows.count > kRowsAtOnce && totals.keeps_columns) {
    SumColumnsInParts(run, at, totals, slots);
  } else {
    SumColumns(run, at, totals, slots);
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
    V total[vectors()];
    CENOTE_UNROLL
    for (int v = 0; v < vectors(); ++v) total[v] = hn::LoadU(d, totals.values + place + v * lanes);
    if constexpr (hwy::IsFloat<C>()) run.divisor.Apply(d, total);
    StoreDirect(d, run, total, result + c);
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
