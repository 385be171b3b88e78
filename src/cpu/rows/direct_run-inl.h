// What outputs folded straight from their taps have in common: windows alike, one after the other.
#if defined(CENOTE_CPU_ROWS_DIRECT_RUN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_ROWS_DIRECT_RUN_INL_H_
#undef CENOTE_CPU_ROWS_DIRECT_RUN_INL_H_
#else
#define CENOTE_CPU_ROWS_DIRECT_RUN_INL_H_
#endif

#include "cpu/rows/finish-inl.h"
#include "cpu/vectors/unroll.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

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

  /// Asked once for several sums: once for each would be more instructions than the sums take.
  template <class D, int kVectors>
  HWY_INLINE void Apply(D d, hn::Vec<D> (&sums)[kVectors]) const {
    if (way == Way::none) return;
    const auto divisor = hn::Set(d, by);
    if (way == Way::multiply) {
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) sums[v] = hn::Mul(sums[v], divisor);
    } else {
      const bool negative = by < 0;
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) sums[v] = Quotient(d, sums[v], divisor, negative);
    }
  }
};

/// Where results, and indices, may go from registers around the caches.
template <class T>
constexpr bool kStreamsStraight = std::is_same_v<T, float>&& HWY_TARGET <= HWY_AVX2;
template <class C>
constexpr bool kStreamsIndices = std::is_same_v<C, float>&& HWY_TARGET <= HWY_AVX2;

/// Which of them do, where they fill whole lines.
struct DirectStreams {
  bool values = false;
  std::int64_t* indices = nullptr;  // of the first output
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
  DirectStreams streams;
};

/// Results go from registers around the caches: in L1 they would wait until there are many, and then for each other.
template <class D, class T, int kVectors, class C = hn::TFromD<D>>
HWY_INLINE void StoreDirect(D d, const DirectRun<T, C>& run, const hn::Vec<D> (&values)[kVectors], C* to) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if constexpr (kStreamsStraight<T>) {
    if (run.streams.values) {
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) hn::Stream(values[v], d, to + v * lanes);
      return;
    }
  }
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) hn::StoreU(values[v], d, to + v * lanes);
}

/// The codes of a vector of outputs that are `at` elements behind the run's first: as indices around the caches, or into `codes`.
template <class T, class C, class V, class D = hn::DFromV<V>>
HWY_INLINE void StoreDirectCodes(const DirectRun<T, C>& run, V v, std::int64_t at, CodeOf<C>* codes) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (kStreamsIndices<C>) {
    if (run.streams.indices != nullptr) {
      const hn::Half<D> half;
      const hn::Rebind<std::int64_t, decltype(half)> d64;
      std::int64_t* to = run.streams.indices + at;
      hn::Stream(hn::PromoteTo(d64, hn::LowerHalf(half, v)), d64, to);
      return hn::Stream(hn::PromoteTo(d64, hn::UpperHalf(half, v)), d64, to + hn::Lanes(d64));
    }
  }
#endif
  hn::StoreU(v, D(), codes + at);
}

/// Calls work(run, elements of the result before it) for the runs of a row of outputs. Averages are divided where `row_factor` is not 0.
template <class C, class T, class Work>
HWY_INLINE void ForDirectRuns(const RowPlan& plan, const Tile& tile, const DirectRows<T, CodeOf<C>>& rows,
                              double row_factor, const DirectStreams& streams, const Work& work) {
  const bool flat = plan.code_kind == Codes::flat;
  const std::int64_t inner = plan.inner, end = tile.target_first + tile.target_columns;
  for (std::int64_t column = tile.target_first; column < end;) {
    const std::int64_t outputs = smaller(plan.alike[static_cast<std::size_t>(column)], end - column);
    const std::int64_t first = plan.table.first[static_cast<std::size_t>(column)];
    const std::int64_t taps = plan.table.count[static_cast<std::size_t>(column)];
    const std::int64_t at = (column - tile.target_first) * inner;
    const std::int64_t apart = outputs > 1 ? plan.table.first[static_cast<std::size_t>(column + 1)] - first : 1;
    const DirectRun<T, C> run{
        rows,
        outputs,
        inner,
        (first - tile.source_first) * inner,
        apart * inner,
        taps,
        plan.table.step * inner,
        static_cast<CodeOf<C>>(flat ? first : plan.table.skipped[static_cast<std::size_t>(column)]),
        static_cast<CodeOf<C>>(flat ? plan.table.step : 1),
        static_cast<CodeOf<C>>(flat                  ? 1
                               : plan.uneven_windows ? taps
                                                     : plan.problem.axis[2].kernel),
        static_cast<CodeOf<C>>(flat ? apart : 0),
        DirectDivisor<C>(plan, row_factor, column),
        {streams.values, streams.indices != nullptr ? streams.indices + at : nullptr}};
    work(run, at);
    column += outputs;
  }
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
