// Down the rows: several source rows folded element by element into the buffered row.
#if defined(CENOTE_CPU_ROWS_DOWN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_ROWS_DOWN_INL_H_
#undef CENOTE_CPU_ROWS_DOWN_INL_H_
#else
#define CENOTE_CPU_ROWS_DOWN_INL_H_
#endif

#include "cpu/rows/rows.hpp"
#include "cpu/vectors/ahead-inl.h"
#include "cpu/vectors/fold-inl.h"
#include "cpu/vectors/power-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// What is done to an element as it is loaded. Minima are maxima of what reverses the order: -x, or ~x for integers.
/// Lp's: the norm's exponent is given, which is infinite for the magnitudes.
enum class Map { identity, negate, absolute, power };

/// Maps of max, min, sum and average; the others are Lp's.
template <Map kMap>
constexpr bool kIsPlain = kMap == Map::identity || kMap == Map::negate;

template <Map kMap, class D, class V = hn::Vec<D>>
HWY_INLINE V Mapped(D d, V v, int power_kind, double exponent) {
  using C = hn::TFromD<D>;
  if constexpr (kMap == Map::identity) {
    return v;
  } else if constexpr (kMap == Map::negate) {
    if constexpr (hwy::IsFloat<C>()) {
      return hn::Neg(v);
    } else {
      return hn::Not(v);
    }
  } else if constexpr (kMap == Map::absolute) {
    const V magnitude = hn::Abs(v);
    return exponent < 0 ? hn::Sub(hn::Zero(d), magnitude) : magnitude;  // +0 for both zeros
  } else {
    return PowerOf(d, v, power_kind, exponent);
  }
}

/// Maps that are done to whole rows before they are folded: all but the identity.
template <Map kMap, class T, class C>
void MapRow(const RowPlan& plan, const T* HWY_RESTRICT from, std::int64_t elements, C* HWY_RESTRICT to) {
  const hn::ScalableTag<C> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t next = 0; next < elements; next += lanes) {
    const std::int64_t x = next + lanes <= elements ? next : larger(0, elements - lanes);
    hn::StoreU(Mapped<kMap>(d, LoadAs(d, from + x), plan.power_kind, plan.problem.norm_type), d, to + x);
  }
}

/// What rows are folded from: the tensor's elements, or mapped ones.
template <Map kMap, class T, class C>
using Folded = std::conditional_t<kMap == Map::identity, T, C>;

/// A block of rows to fold. Where `continues` is set, the buffered row already holds the rows before these.
template <class T, class Code>
struct RowBlock {
  const T* rows[kRowBlock];
  Code codes[kRowBlock];
  int count;
  bool continues;
};

/// Folds vectors at elements [x, x + kVectors * lanes) of the block's rows: kRows of them, or as many as it says where 0.
template <Fold kFold, int kVectors, int kRows, class D, class T, class C = hn::TFromD<D>>
HWY_INLINE void FoldDown(D d, const RowBlock<T, CodeOf<C>>& block, std::int64_t x, C* HWY_RESTRICT buffer,
                         CodeOf<C>* HWY_RESTRICT codes) {
  static_assert(kVectors == 1 || kVectors == 2);
  const hn::RebindToSigned<D> di;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto load = [&](int row, std::int64_t at) HWY_ATTR { return LoadAs(d, block.rows[row] + at); };
  Accumulator<D, kFold, false> a, b;
  int row = 0;
  if (kRows == 0 && block.continues) {
    a.First(d, hn::LoadU(d, buffer + x), [&]() HWY_ATTR { return hn::LoadU(di, codes + x); });
    if constexpr (kVectors == 2) {
      b.First(d, hn::LoadU(d, buffer + x + lanes), [&]() HWY_ATTR { return hn::LoadU(di, codes + x + lanes); });
    }
  } else {
    auto first_code = [&]() HWY_ATTR { return hn::Set(di, block.codes[0]); };
    a.First(d, load(0, x), first_code);
    if constexpr (kVectors == 2) b.First(d, load(0, x + lanes), first_code);
    row = 1;
  }
  for (; row < (kRows == 0 ? block.count : kRows); ++row) {
    auto code = [&]() HWY_ATTR { return hn::Set(di, block.codes[row]); };
    a.Next(d, load(row, x), code);
    if constexpr (kVectors == 2) b.Next(d, load(row, x + lanes), code);
  }
  a.Store(d, buffer + x, codes + x);
  if constexpr (kVectors == 2) b.Store(d, buffer + x + lanes, codes + x + lanes);
}

/// A block that starts afresh. The ragged end is folded again from its last whole vector; rows shorter than one have room behind.
template <Fold kFold, int kRows, class T, class C>
void DownAfresh(const RowBlock<T, CodeOf<C>>& block, std::int64_t elements, Ahead& ahead, C* HWY_RESTRICT buffer,
                CodeOf<C>* HWY_RESTRICT codes) {
  const hn::ScalableTag<C> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t x = 0;
  for (; x + 2 * lanes <= elements; x += 2 * lanes) {
    ahead.Move(2 * lanes * static_cast<std::int64_t>(sizeof(T)));
    FoldDown<kFold, 2, kRows>(d, block, x, buffer, codes);
  }
  if (x + lanes <= elements) {
    FoldDown<kFold, 1, kRows>(d, block, x, buffer, codes);
    x += lanes;
  }
  if (x < elements) {
    FoldDown<kFold, 1, kRows>(d, block, larger(0, elements - lanes), buffer, codes);
  }
}

/// Folds a block of rows into the buffer.
template <Fold kFold, class T, class C>
void Down(const RowBlock<T, CodeOf<C>>& block, std::int64_t elements, Ahead& ahead, C* HWY_RESTRICT buffer,
          CodeOf<C>* HWY_RESTRICT codes) {
  if (!block.continues) {
    if constexpr (kIsCommon<T>) {
      if (block.count == 2) return DownAfresh<kFold, 2>(block, elements, ahead, buffer, codes);
      if (block.count == 3) return DownAfresh<kFold, 3>(block, elements, ahead, buffer, codes);
    }
    return DownAfresh<kFold, 0>(block, elements, ahead, buffer, codes);
  }
  const hn::ScalableTag<C> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t x = 0;
  for (; x + 2 * lanes <= elements; x += 2 * lanes) FoldDown<kFold, 2, 0>(d, block, x, buffer, codes);
  if (x + lanes <= elements) {
    FoldDown<kFold, 1, 0>(d, block, x, buffer, codes);
    x += lanes;
  }
  if (x == elements) return;
  if (elements < lanes) {
    FoldDown<kFold, 1, 0>(d, block, 0, buffer, codes);
    return;
  }
  // The buffer must be folded into only once: the last lanes-1 elements or fewer go into a vector of their own, of which only the
  // new part is kept.
  const std::int64_t at = elements - lanes, fresh = elements - x;
  HWY_ALIGN C values[hn::MaxLanes(d)];
  HWY_ALIGN CodeOf<C> places[hn::MaxLanes(d)];
  const hn::RebindToSigned<decltype(d)> di;
  hn::Store(hn::LoadU(d, buffer + at), d, values);
  if constexpr (kFold == Fold::max_indexed) hn::Store(hn::LoadU(di, codes + at), di, places);
  RowBlock<T, CodeOf<C>> shifted = block;
  for (int row = 0; row < block.count; ++row) shifted.rows[row] += at;
  FoldDown<kFold, 1, 0>(d, shifted, 0, values, places);
  for (std::int64_t i = lanes - fresh; i < lanes; ++i) {
    buffer[at + i] = values[i];
    if constexpr (kFold == Fold::max_indexed) codes[at + i] = places[i];
  }
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
