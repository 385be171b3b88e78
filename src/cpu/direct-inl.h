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

/// Where this way is compiled: minima of integers go the other one.
template <Map kMap, class T>
constexpr bool kHasDirect = kHasVectors && (kMap == Map::identity || (kMap == Map::negate && !std::is_integral_v<T>));

/// The source rows of an output row, from the tile's first column on, and their places in the window or the plane.
template <class T, class Code>
struct DirectRows {
  const T* rows[kDirectRows];
  Code codes[kDirectRows];  // flat: position of column 0; taps: number of the row in the window
  int count;
};

/// Folds kVectors vectors of channels of one output.
template <Fold kFold, Map kMap, int kVectors, class D, class T, class C = hn::TFromD<D>>
HWY_INLINE void FoldDirect(D d, const RowPlan& plan, const DirectRows<T, CodeOf<C>>& rows, std::int64_t first,
                           std::int64_t taps, std::int64_t step, CodeOf<C> column_code, CodeOf<C> code_step,
                           CodeOf<C> row_step, hn::Vec<D> divisor, bool divides, C* HWY_RESTRICT result,
                           CodeOf<C>* HWY_RESTRICT codes) {
  const hn::RebindToSigned<D> di;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto load = [&](int row, std::int64_t tap, int v) HWY_ATTR {
    return Mapped<kMap>(d, LoadAs(d, rows.rows[row] + first + tap * step + v * lanes), 0, 0);
  };
  if constexpr (kFold == Fold::sum) {
    // Down the rows first, then along: the order of the other ways to fold.
    hn::Vec<D> total[kVectors];
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) total[v] = hn::Zero(d);
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      hn::Vec<D> sum[kVectors];
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) sum[v] = load(0, tap, v);
      for (int row = 1; row < rows.count; ++row) {
        CENOTE_UNROLL
        for (int v = 0; v < kVectors; ++v) sum[v] = hn::Add(sum[v], load(row, tap, v));
      }
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) total[v] = hn::Add(total[v], sum[v]);
    }
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      if constexpr (hwy::IsFloat<C>()) {
        if (divides) total[v] = Quotient(d, total[v], divisor, plan.problem.divisor_override < 0);
      }
      hn::StoreU(total[v], d, result + v * lanes);
    }
  } else {
    Accumulator<D, kFold, false> a[kVectors];
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      a[v].First(d, hn::Set(d, IdentityOf<kFold, C>()), [&]() HWY_ATTR { return hn::Set(di, CodeOf<C>{-1}); });
    }
    for (int row = 0; row < rows.count; ++row) {
      CodeOf<C> code = static_cast<CodeOf<C>>(rows.codes[row] * row_step + column_code);
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        auto tap_code = [&]() HWY_ATTR { return hn::Set(di, code); };
        if (row == 0 && tap == 0) {
          CENOTE_UNROLL
          for (int v = 0; v < kVectors; ++v) a[v].First(d, load(0, 0, v), tap_code);
        } else {
          CENOTE_UNROLL
          for (int v = 0; v < kVectors; ++v) a[v].Next(d, load(row, tap, v), tap_code);
        }
        code = static_cast<CodeOf<C>>(code + code_step);
      }
    }
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) a[v].Store(d, result + v * lanes, codes + v * lanes);
  }
}

/// One row of outputs of a tile. Averages of floats are divided on the way where `row_factor` is not 0.
template <Fold kFold, Map kMap, class T, class C>
void FoldDirectRow(const RowPlan& plan, const Tile& tile, const DirectRows<T, CodeOf<C>>& rows, double row_factor,
                   C* HWY_RESTRICT result, CodeOf<C>* HWY_RESTRICT codes) {
  const hn::ScalableTag<C> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t inner = plan.inner, step = plan.table.step * inner;
  const bool flat = plan.code_kind == Codes::flat;
  const auto code_step = static_cast<CodeOf<C>>(flat ? plan.table.step : 1);
  for (std::int64_t o = 0; o < tile.target_columns; ++o) {
    const auto column = static_cast<std::size_t>(tile.target_first + o);
    const std::int64_t taps = rows.count > 0 ? plan.table.count[column] : 0,
                       at = plan.table.first[column] - tile.source_first;
    const auto column_code = static_cast<CodeOf<C>>(flat ? plan.table.first[column] : plan.table.skipped[column]);
    const auto row_step = static_cast<CodeOf<C>>(flat ? 1 : plan.uneven_windows ? taps : plan.problem.axis[2].kernel);
    const C by =
        static_cast<C>(row_factor * (plan.column_factor.empty() ? plan.uniform_factor : plan.column_factor[column]));
    const bool divides = row_factor != 0 && by != C{0} && by != C{1} && rows.count > 0;
    const auto divisor = hn::Set(d, by);
    C* to = result + o * inner;
    CodeOf<C>* to_codes = codes + o * inner;
    std::int64_t c = 0;
    auto fold = [&](auto vectors) HWY_ATTR {
      FoldDirect<kFold, kMap, vectors()>(d, plan, rows, at * inner + c, taps, step, column_code, code_step, row_step,
                                         divisor, divides, to + c, to_codes + c);
    };
    for (; c + 4 * lanes <= inner; c += 4 * lanes) fold(std::integral_constant<int, 4>{});
    for (; c + lanes <= inner; c += lanes) fold(std::integral_constant<int, 1>{});
    if (c < inner) {  // the ragged end once more from its last whole vector
      c = inner - lanes;
      fold(std::integral_constant<int, 1>{});
    }
  }
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
