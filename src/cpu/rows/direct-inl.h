// Columns of many channels: each output is folded straight from its taps, vectors across the channels. Maxima in row-major order, sums down the
// rows first.
#if defined(CENOTE_CPU_ROWS_DIRECT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_ROWS_DIRECT_INL_H_
#undef CENOTE_CPU_ROWS_DIRECT_INL_H_
#else
#define CENOTE_CPU_ROWS_DIRECT_INL_H_
#endif

#include "cpu/rows/direct_keys-inl.h"
#include "cpu/rows/direct_sliding-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// Where this way is compiled: minima and rare types go the other one.
template <Map kMap, class T>
constexpr bool kHasDirect = kIsCommon<T>&& kMap == Map::identity;

/// Maxima with indices that straight columns leave are few.
inline constexpr bool kHasStraightMaxima = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2;

/// Where windows of two and three columns, and sums of four, have loops of their own.
template <Fold kFold, class T>
constexpr bool kUnrollsTaps = std::is_same_v<T, double>    ? kFold == Fold::sum
                              : kFold == Fold::max_indexed ? !std::is_integral_v<T> && !kHasStraightMaxima
                                                           : !std::is_integral_v<T> || kFold == Fold::max;

/// Where sums of two and of four columns, which straight columns leave only beyond the caches, have none.
template <Fold kFold, class T>
constexpr bool kUnrollsOnlyThree = kFold == Fold::sum&& kHasStraightMaxima && !std::is_same_v<T, double>;

/// Folds kVectors vectors of channels of the output whose first tap lies `at`, into the elements from `to` on. kTaps: taps along the row, 0 where
/// only known at run time.
template <Fold kFold, int kVectors, int kTaps, class D, class T, class C = hn::TFromD<D>>
HWY_INLINE void FoldDirect(D d, const DirectRun<T, C>& run, std::int64_t at, CodeOf<C> column_code, std::int64_t to,
                           C* HWY_RESTRICT result, CodeOf<C>* HWY_RESTRICT codes) {
  const hn::RebindToSigned<D> di;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const DirectRows<T, CodeOf<C>>& rows = run.rows;
  const std::int64_t taps = kTaps == 0 ? run.taps : kTaps;
  auto load = [&](const T* tap, int v) HWY_ATTR { return LoadAs(d, tap + v * lanes); };
  if constexpr (kFold == Fold::sum) {
    // Down the rows first, then along: the order of the other ways to fold.
    hn::Vec<D> total[kVectors];
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) total[v] = hn::Zero(d);
    if constexpr (kTaps == 0) {
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        hn::Vec<D> sum[kVectors];
        SumDown(d, rows, at + tap * run.step, sum);
        CENOTE_UNROLL
        for (int v = 0; v < kVectors; ++v) total[v] = hn::Add(total[v], sum[v]);
      }
    } else {
      hn::Vec<D> sum[kTaps][kVectors];
      CENOTE_UNROLL
      for (int tap = 0; tap < kTaps; ++tap) {
        CENOTE_UNROLL
        for (int v = 0; v < kVectors; ++v) sum[tap][v] = load(rows.rows[0] + at + tap * run.step, v);
      }
      for (int row = 1; row < rows.count; ++row) {
        const T* from = rows.rows[row] + at;
        CENOTE_UNROLL
        for (int tap = 0; tap < kTaps; ++tap) {
          CENOTE_UNROLL
          for (int v = 0; v < kVectors; ++v) sum[tap][v] = hn::Add(sum[tap][v], load(from + tap * run.step, v));
        }
      }
      CENOTE_UNROLL
      for (int tap = 0; tap < kTaps; ++tap) {
        CENOTE_UNROLL
        for (int v = 0; v < kVectors; ++v) total[v] = hn::Add(total[v], sum[tap][v]);
      }
    }
    if constexpr (hwy::IsFloat<C>()) run.divisor.Apply(d, total);
    StoreDirect(d, run, total, result + to);
  } else {
    Accumulator<D, kFold, false> a[kVectors];
    CodeOf<C> code = static_cast<CodeOf<C>>(rows.codes[0] * run.row_step + column_code);
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      a[v].First(d, load(rows.rows[0] + at, v), [&]() HWY_ATTR { return hn::Set(di, code); });
    }
    std::int64_t done = 1;  // taps of the first row
    for (int row = 0; row < rows.count; ++row, done = 0) {
      const T* from = rows.rows[row] + at;
      code = static_cast<CodeOf<C>>(rows.codes[row] * run.row_step + column_code);
      auto next = [&](std::int64_t tap) HWY_ATTR {
        CENOTE_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          a[v].Next(d, load(from + tap * run.step, v), [&]() HWY_ATTR {
            return hn::Set(di, static_cast<CodeOf<C>>(code + static_cast<CodeOf<C>>(tap) * run.code_step));
          });
        }
      };
      if constexpr (kTaps == 0) {
        for (std::int64_t tap = done; tap < taps; ++tap) next(tap);
      } else {
        if (done == 0) next(0);
        CENOTE_UNROLL
        for (int tap = 1; tap < kTaps; ++tap) next(tap);
      }
    }
    hn::Vec<D> best[kVectors];
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) best[v] = a[v].value;
    StoreDirect(d, run, best, result + to);
    if constexpr (kFold == Fold::max_indexed) {
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) StoreDirectCodes(run, a[v].code, to + v * lanes, codes);
    }
  }
}

template <Fold kFold, int kTaps, class T, class C>
HWY_NOINLINE void FoldDirectRun(const DirectRun<T, C>& run, Ahead& ahead, C* HWY_RESTRICT result,
                                CodeOf<C>* HWY_RESTRICT codes) {
  const hn::ScalableTag<C> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t o = 0; o < run.outputs; ++o) {
    const std::int64_t at = run.first + o * run.apart;
    const auto column_code = static_cast<CodeOf<C>>(run.column_code + static_cast<CodeOf<C>>(o) * run.code_apart);
    std::int64_t c = 0;
    auto fold = [&](auto vectors, auto known) HWY_ATTR {
      FoldDirect<kFold, vectors(), known()>(d, run, at + c, column_code, o * run.channels + c, result, codes);
      c += vectors() * lanes;
    };
    constexpr std::integral_constant<int, 0> kAny;
    constexpr std::integral_constant<int, kTaps> kKnown;
    ahead.Move(run.apart * static_cast<std::int64_t>(sizeof(T)));
    if constexpr (kTaps == 0 && kFold != Fold::sum && HWY_MAX_BYTES == 64) {
      // Long windows: the longer the stretches that are read, the sooner they are fetched. There are registers for that many.
      while (c + 8 * lanes <= run.channels) fold(std::integral_constant<int, 8>{}, kAny);
    }
    while (c + 4 * lanes <= run.channels) fold(std::integral_constant<int, 4>{}, kKnown);
    if (c + 2 * lanes <= run.channels) fold(std::integral_constant<int, 2>{}, kKnown);
    if (c + lanes <= run.channels) fold(std::integral_constant<int, 1>{}, kAny);
    if (c < run.channels) {  // the ragged end once more from its last whole vector
      c = run.channels - lanes;
      fold(std::integral_constant<int, 1>{}, kAny);
    }
  }
}

/// By the way that suits its windows.
template <Fold kFold, class T, class C>
HWY_INLINE void FoldRunOfOutputs(const DirectRun<T, C>& run, const DirectTotals<C>& totals, Ahead& ahead,
                                 C* HWY_RESTRICT result, CodeOf<C>* HWY_RESTRICT codes) {
  const std::int64_t taps = run.taps, rows = run.rows.count, elements = run.outputs * run.channels;
  if (taps == 0 || rows == 0) {
    for (std::int64_t i = 0; i < elements; ++i) result[i] = IdentityOf<kFold, C>();
    if (kFold == Fold::max_indexed && run.streams.indices != nullptr) {
      std::fill_n(run.streams.indices, elements, -1);
    } else if (kFold == Fold::max_indexed) {
      std::fill_n(codes, elements, CodeOf<C>{-1});
    }
    return;
  }
  if constexpr (kSlides<kFold, T>) {
    const bool shares = run.apart == run.step && run.outputs > 1 && taps > 1 && taps < kDoublingTaps && rows > 1;
    if (shares && !totals.in_lanes) return SumSlidingRun(run, totals, ahead, result);
  }
  if constexpr (kUnrollsTaps<kFold, T>) {
    const bool few = rows * taps <= kFewDirectTaps || (taps == 4 && rows <= 4);
    const bool unrolls = kFold != Fold::sum || (!totals.in_lanes && few);
    if constexpr (!kUnrollsOnlyThree<kFold, T>) {
      if (unrolls && taps == 2) return FoldDirectRun<kFold, 2>(run, ahead, result, codes);
    }
    if (unrolls && taps == 3) return FoldDirectRun<kFold, 3>(run, ahead, result, codes);
    if constexpr (kFold == Fold::sum && !kUnrollsOnlyThree<kFold, T>) {
      if (unrolls && taps == 4) return FoldDirectRun<kFold, 4>(run, ahead, result, codes);
    }
  }
  if constexpr (kFold == Fold::sum) {
    SumLongRun(run, totals, ahead, result);
  } else {
    FoldDirectRun<kFold, 0>(run, ahead, result, codes);
  }
}

/// One row of outputs of a tile. Averages of floats are divided on the way where `row_factor` is not 0.
template <Fold kFold, class T, class C>
void FoldDirectRow(const RowPlan& plan, const Tile& tile, const DirectRows<T, CodeOf<C>>& rows, double row_factor,
                   const DirectStreams& streams, Ahead& ahead, char* scratch, C* HWY_RESTRICT result,
                   CodeOf<C>* HWY_RESTRICT codes) {
  ForDirectRuns<C>(plan, tile, rows, row_factor, streams, [&](const DirectRun<T, C>& run, std::int64_t at) HWY_ATTR {
    FoldRunOfOutputs<kFold>(run, DirectTotals<C>(scratch, plan), ahead, result + at, codes + at);
  });
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
