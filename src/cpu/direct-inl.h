// Columns of many channels: each output is folded straight from its taps, in row-major order, vectors across the channels.
#if defined(CENOTE_CPU_DIRECT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_DIRECT_INL_H_
#undef CENOTE_CPU_DIRECT_INL_H_
#else
#define CENOTE_CPU_DIRECT_INL_H_
#endif

#include "cpu/finish-inl.h"
#include "cpu/unroll.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// Where this way is compiled: minima and rare types go the other one.
template <Map kMap, class T>
constexpr bool kHasDirect = kIsCommon<T>&& kMap == Map::identity;

/// Where windows of two and three columns have loops of their own.
template <Fold kFold, class T>
constexpr bool kUnrollsTaps = !std::is_same_v<T, double> && (!std::is_integral_v<T> || kFold == Fold::max);

/// The source rows of an output row, from the tile's first column on, and their places in the window or the plane.
template <class T, class Code>
struct DirectRows {
  const T* rows[kDirectRows];
  Code codes[kDirectRows];  // flat: position of column 0; taps: number of the row in the window
  int count;
};

/// What is done to a sum. Powers of two are as exact turned around, and a multiplication is cheaper.
template <class C>
struct DirectDivisor {
  enum class Way { none, multiply, divide } way = Way::none;
  C by{};

  DirectDivisor(const RowPlan& plan, double row_factor, std::int64_t column) {
    by = static_cast<C>(row_factor * (plan.column_factor.empty() ? plan.uniform_factor : plan.column_factor[column]));
    if (by == C{0} || by == C{1}) return;
    way = Way::divide;
    if (plan.factor_is_power_of_two && by > 0) {
      by = C{1} / by;
      way = Way::multiply;
    }
  }

  template <class D>
  HWY_INLINE hn::Vec<D> Apply(D d, hn::Vec<D> sum) const {
    if (way == Way::none) return sum;
    return way == Way::multiply ? hn::Mul(sum, hn::Set(d, by)) : Quotient(d, sum, hn::Set(d, by), by < 0);
  }
};

/// One output after the other, whose windows are alike.
template <class T, class C>
struct DirectRun {
  const DirectRows<T, CodeOf<C>>& rows;
  std::int64_t outputs, channels;
  std::int64_t first,
      apart;  // elements from the rows' start to the first output's first tap, and from one output's to the next
  std::int64_t taps, step;                     // along the row; elements from tap to tap
  CodeOf<C> column_code, code_step, row_step;  // of the first tap; from tap to tap and from row to row of a window
  CodeOf<C> code_apart;                        // from one output to the next
  DirectDivisor<C> divisor;
};

/// Folds kVectors vectors of channels of the output whose first tap lies `at`. kTaps: taps along the row, 0 where only known at run
/// time.
template <Fold kFold, int kVectors, int kTaps, class D, class T, class C = hn::TFromD<D>>
HWY_INLINE void FoldDirect(D d, const DirectRun<T, C>& run, std::int64_t at, CodeOf<C> column_code,
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
        CENOTE_UNROLL
        for (int v = 0; v < kVectors; ++v) sum[v] = load(rows.rows[0] + at + tap * run.step, v);
        for (int row = 1; row < rows.count; ++row) {
          const T* from = rows.rows[row] + at + tap * run.step;
          CENOTE_UNROLL
          for (int v = 0; v < kVectors; ++v) sum[v] = hn::Add(sum[v], load(from, v));
        }
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
    if constexpr (hwy::IsFloat<C>()) {
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) total[v] = run.divisor.Apply(d, total[v]);
    }
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) hn::StoreU(total[v], d, result + v * lanes);
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
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) a[v].Store(d, result + v * lanes, codes + v * lanes);
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
    C* to = result + o * run.channels;
    CodeOf<C>* to_codes = codes + o * run.channels;
    std::int64_t c = 0;
    auto fold = [&](auto vectors, auto known) HWY_ATTR {
      FoldDirect<kFold, vectors(), known()>(d, run, at + c, column_code, to + c, to_codes + c);
      c += vectors() * lanes;
    };
    constexpr std::integral_constant<int, 0> kAny;
    constexpr std::integral_constant<int, kTaps> kKnown;
    ahead.Move(run.apart * static_cast<std::int64_t>(sizeof(T)));
    if constexpr (kTaps == 0 && HWY_MAX_BYTES == 64) {
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

/// One row of outputs of a tile. Averages of floats are divided on the way where `row_factor` is not 0.
template <Fold kFold, class T, class C>
void FoldDirectRow(const RowPlan& plan, const Tile& tile, const DirectRows<T, CodeOf<C>>& rows, double row_factor,
                   Ahead& ahead, C* HWY_RESTRICT result, CodeOf<C>* HWY_RESTRICT codes) {
  const std::int64_t inner = plan.inner;
  const bool flat = plan.code_kind == Codes::flat;
  const auto code_step = static_cast<CodeOf<C>>(flat ? plan.table.step : 1);
  const std::int64_t end = tile.target_first + tile.target_columns;
  for (std::int64_t column = tile.target_first; column < end;) {
    const std::int64_t outputs = smaller(plan.alike[static_cast<std::size_t>(column)], end - column);
    const std::int64_t first = plan.table.first[static_cast<std::size_t>(column)];
    const std::int64_t taps = plan.table.count[static_cast<std::size_t>(column)];
    const std::int64_t apart = outputs > 1 ? plan.table.first[static_cast<std::size_t>(column + 1)] - first : 1;
    C* to = result + (column - tile.target_first) * inner;
    CodeOf<C>* to_codes = codes + (column - tile.target_first) * inner;
    if (taps == 0 || rows.count == 0) {
      for (std::int64_t i = 0; i < outputs * inner; ++i) to[i] = IdentityOf<kFold, C>();
      for (std::int64_t i = 0; kFold == Fold::max_indexed && i < outputs * inner; ++i) to_codes[i] = -1;
    } else {
      const DirectRun<T, C> run{
          rows,
          outputs,
          inner,
          (first - tile.source_first) * inner,
          apart * inner,
          taps,
          plan.table.step * inner,
          static_cast<CodeOf<C>>(flat ? first : plan.table.skipped[static_cast<std::size_t>(column)]),
          code_step,
          static_cast<CodeOf<C>>(flat                  ? 1
                                 : plan.uneven_windows ? taps
                                                       : plan.problem.axis[2].kernel),
          static_cast<CodeOf<C>>(flat ? apart : 0),
          DirectDivisor<C>(plan, row_factor, column)};
      constexpr bool kUnrolls = kUnrollsTaps<kFold, T>;
      if (kUnrolls && taps == 2) {
        FoldDirectRun<kFold, kUnrolls ? 2 : 0>(run, ahead, to, to_codes);
      } else if (kUnrolls && taps == 3) {
        FoldDirectRun<kFold, kUnrolls ? 3 : 0>(run, ahead, to, to_codes);
      } else {
        FoldDirectRun<kFold, 0>(run, ahead, to, to_codes);
      }
    }
    column += outputs;
  }
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
