// Sums of columns of many channels under windows one apart: what neighbouring windows share is summed up once.
#if defined(CENOTE_CPU_ROWS_DIRECT_SLIDING_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_ROWS_DIRECT_SLIDING_INL_H_
#undef CENOTE_CPU_ROWS_DIRECT_SLIDING_INL_H_
#else
#define CENOTE_CPU_ROWS_DIRECT_SLIDING_INL_H_
#endif

#include "cpu/rows/direct_long-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// Where this way is compiled.
template <Fold kFold, class T>
constexpr bool kSlides =
    HWY_TARGET <= HWY_AVX2&& kFold == Fold::sum && !std::is_integral_v<T> && !std::is_same_v<T, double>;

/// Sums of outputs one tap apart: each column is summed up once and joins every window that sees it. The columns of a window are kept in
/// scratch, see DirectTotals.
template <class T, class C>
HWY_NOINLINE void SumSlidingRun(const DirectRun<T, C>& run, const DirectTotals<C>& columns, Ahead& ahead,
                                C* HWY_RESTRICT result) {
  const hn::ScalableTag<C> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t column = 0; column < run.outputs + run.taps - 1; ++column) {
    const std::int64_t first = run.first + column * run.step;
    const std::int64_t output = column - (run.taps - 1);  // the one that is done with this column
    C* kept = columns.values + column % run.taps * columns.pitch;
    const C* earlier[kDoublingTaps];
    for (std::int64_t tap = 0; tap + 1 < run.taps; ++tap) {
      earlier[tap] = columns.values + (column + 1 + tap) % run.taps * columns.pitch;
    }
    if (output >= 0) ahead.Move(run.apart * static_cast<std::int64_t>(sizeof(T)));
    ForChannels<C>(run.channels, [&](auto vectors, std::int64_t c, std::int64_t place) HWY_ATTR {
      constexpr int kVectors = vectors();
      V sum[kVectors];
      SumDown(d, run.rows, first + c, sum);
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[v], d, kept + place + v * lanes);
      if (output < 0) return;
      V total[kVectors];
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) total[v] = hn::Zero(d);
      for (std::int64_t tap = 0; tap + 1 < run.taps; ++tap) {
        CENOTE_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          total[v] = hn::Add(total[v], hn::LoadU(d, earlier[tap] + place + v * lanes));
        }
      }
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) total[v] = hn::Add(total[v], sum[v]);
      run.divisor.Apply(d, total);
      StoreDirect(d, run, total, result + output * run.channels + c);
    });
  }
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
