// Planar rows and few taps: each output straight from its taps, in row-major order, vectors across neighbouring outputs.
#if defined(CENOTE_CPU_ROWS_STENCIL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_ROWS_STENCIL_INL_H_
#undef CENOTE_CPU_ROWS_STENCIL_INL_H_
#else
#define CENOTE_CPU_ROWS_STENCIL_INL_H_
#endif

#include "cpu/rows/direct-inl.h"
#include "cpu/vectors/ahead-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// Where this way is compiled: what networks pool, maxima of bytes among it.
template <Fold kFold, Map kMap, class T>
constexpr bool kHasStencil = kHasVectors&& kMap == Map::identity &&
                             (!std::is_integral_v<T> || (sizeof(T) == 1 && kFold == Fold::max));

/// Elements p, p + S, p + 2S, ... as lanes of the compute type. Reads S whole vectors.
template <int kStride, class D, class T>
HWY_INLINE hn::Vec<D> LoadStridedAs(D d, const T* HWY_RESTRICT p) {
  if constexpr (std::is_same_v<T, hn::TFromD<D>>) {
    return LoadStrided<kStride>(d, p);
  } else {
#if HWY_TARGET == HWY_SCALAR
    return LoadAs(d, p);
#else
    const std::size_t n = hn::Lanes(d);
    if constexpr (kStride == 1) {
      return LoadAs(d, p);
    } else if constexpr (kStride == 2) {
      return hn::ConcatEven(d, LoadAs(d, p + n), LoadAs(d, p));
    } else {
      static_assert(kStride == 4);
      return hn::ConcatEven(d, LoadStridedAs<2>(d, p + 2 * n), LoadStridedAs<2>(d, p));
    }
#endif
  }
}

/// One vector of outputs. `rows` start at the first tap of the first of them when moved on by `column` elements. `start`: what a
/// maximum starts from where windows are cut off in front, whose first taps are not the first real ones.
template <Fold kFold, int kStride, class D, class T, class C = hn::TFromD<D>>
HWY_INLINE auto FoldStencil(D d, const DirectRows<T, CodeOf<C>>& rows, std::int64_t column, std::int64_t taps,
                            std::int64_t step, CodeOf<C> code_step,
                            const std::type_identity_t<Accumulator<D, kFold, false>>* start) {
  const hn::RebindToSigned<D> di;
  auto load = [&](int row, std::int64_t tap)
                  HWY_ATTR { return LoadStridedAs<kStride>(d, rows.rows[row] + column + tap * step); };
  Accumulator<D, kFold, false> a;
  const auto no_code = [&]() HWY_ATTR { return hn::Zero(di); };
  if constexpr (kFold == Fold::sum) {
    // Down the rows first, then along: the order of the other ways to fold.
    a.First(d, hn::Zero(d), no_code);
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      auto sum = load(0, tap);
      for (int row = 1; row < rows.count; ++row) sum = hn::Add(sum, load(row, tap));
      a.Next(d, sum, no_code);
    }
  } else {
    int row = 0;
    std::int64_t tap = 0;
    if (start != nullptr) {
      a = *start;
    } else {
      a.First(d, load(0, 0), [&]() HWY_ATTR { return hn::Set(di, rows.codes[0]); });
      tap = 1;
    }
    for (; row < rows.count; ++row, tap = 0) {
      for (; tap < taps; ++tap) {
        a.Next(d, load(row, tap), [&]() HWY_ATTR {
          return hn::Set(di, static_cast<CodeOf<C>>(rows.codes[row] + static_cast<CodeOf<C>>(tap) * code_step));
        });
      }
    }
  }
  return a;
}

/// Columns [column, column + span) of the rows, as values of the compute type with identity where there are none.
template <Fold kFold, class T, class C>
void CopyCutOff(const RowPlan& plan, const DirectRows<T, CodeOf<C>>& rows, std::int64_t column, std::int64_t span,
                char* packed, DirectRows<C, CodeOf<C>>& copies) {
  const std::int64_t first = larger(0, column), end = smaller(plan.problem.axis[2].input, column + span);
  copies.count = rows.count;
  for (int row = 0; row < rows.count; ++row) {
    C* copy = reinterpret_cast<C*>(packed + static_cast<std::size_t>(row) * plan.packed_pitch);
    std::fill_n(copy, span, IdentityOf<kFold, C>());
    LoadElements(rows.rows[row] + first, copy + (first - column), end - first);
    copies.rows[row] = copy;
    copies.codes[row] = rows.codes[row];
  }
}

/// One target row of a tile. `rows` start at the first column of the tensor's rows, of which `readable` elements may be read.
template <Fold kFold, int kStride, class T, class C>
void FoldStencilRow(const RowPlan& plan, const Tile& tile, const DirectRows<T, CodeOf<C>>& rows, std::int64_t readable,
                    Ahead& ahead, char* packed, C* result, CodeOf<C>* HWY_RESTRICT codes) {
  using D = hn::ScalableTag<C>;
  const D d;
  using Code = CodeOf<C>;
  const hn::RebindToSigned<D> di;
  const Axis& axis = plan.problem.axis[2];
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t taps = axis.kernel, step = axis.dilation, reach = (taps - 1) * step,
                     span = reach + kStride * lanes;
  const bool flat = plan.code_kind == Codes::flat;
  const Code code_step = static_cast<Code>(flat ? step : 1);
  const auto strides = StridedIota<kStride>(di);
  for (std::int64_t next = 0; next < tile.target_columns; next += lanes) {
    // The ragged end once more from its last whole vector.
    const std::int64_t q = smaller(next, tile.target_columns - lanes);
    const std::int64_t column = (tile.target_first + q) * kStride - axis.pad_begin;
    ahead.Move(kStride * lanes * static_cast<std::int64_t>(sizeof(T)));
    Accumulator<D, kFold, false> a;
    if (column >= 0 && column + (lanes - 1) * kStride + reach < axis.input && column + span <= readable) {
      a = FoldStencil<kFold, kStride>(d, rows, column, taps, step, code_step, nullptr);
    } else {
      DirectRows<C, Code> copies;
      CopyCutOff<kFold>(plan, rows, column, span, packed, copies);
      // A maximum starts from the code of its first tap inside: where all are as low as the identity, that one is kept.
      HWY_ALIGN Code first[hn::MaxLanes(d)];
      for (std::int64_t i = 0; i < lanes; ++i) {
        const std::int64_t before = -(column + i * kStride);
        first[i] =
            static_cast<Code>(rows.codes[0] + static_cast<Code>(before > 0 ? ceil_div(before, step) : 0) * code_step);
      }
      Accumulator<D, kFold, false> start;
      start.First(d, hn::Set(d, IdentityOf<kFold, C>()), [&]() HWY_ATTR { return hn::Load(di, first); });
      a = FoldStencil<kFold, kStride>(d, copies, 0, taps, step, code_step, &start);
    }
    if constexpr (kFold == Fold::max_indexed) {
      if (flat) a.code = hn::Add(a.code, hn::Add(strides, hn::Set(di, static_cast<Code>(column))));
    }
    a.Store(d, result + q, codes + q);
  }
}

template <Fold kFold, class T, class C>
void FoldStencilRow(const RowPlan& plan, const Tile& tile, const DirectRows<T, CodeOf<C>>& rows, std::int64_t readable,
                    Ahead& ahead, char* packed, C* result, CodeOf<C>* codes) {
  switch (plan.problem.axis[2].stride) {
    case 1: return FoldStencilRow<kFold, 1>(plan, tile, rows, readable, ahead, packed, result, codes);
    case 2: return FoldStencilRow<kFold, 2>(plan, tile, rows, readable, ahead, packed, result, codes);
    case 4: return FoldStencilRow<kFold, 4>(plan, tile, rows, readable, ahead, packed, result, codes);
    default:
      if constexpr (std::is_same_v<T, C>) {
        FoldStencilRow<kFold, 3>(plan, tile, rows, readable, ahead, packed, result, codes);
      }
  }
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
