// Maxima of f32 and half columns of few channels, without indices: what a column costs to begin and end is more than to fold it, so that the vectors of a row's
// outputs are in a table, and four of them are folded at once, whichever columns they belong to. Row-major order throughout, as in column_bands.cpp.
#include "cpu/columns/narrow_columns.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/columns/narrow_columns.cpp"
#include <hwy/foreach_target.h>

#include "cpu/vectors/noticed_nan-inl.h"
#include "cpu/vectors/unroll.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

/// Four vectors of outputs by the rule: where there is a NaN.
template <class T>
HWY_NOINLINE void FoldVectorsAgain(std::int64_t lanes, const T* const* taps, int pairs, const std::int32_t* from,
                                   const std::int32_t* to, T* target) {
  const hn::CappedTag<float, 4> d;
  for (int vector = 0; vector < 4; ++vector) {
    for (std::int64_t x = 0; x < lanes; x += 4) {
      Accumulator<decltype(d), Fold::max, false> best{hn::Set(d, IdentityOf<Fold::max, float>())};
      for (int i = 0; i < 2 * pairs; ++i) best.Next(d, LoadAs(d, taps[i] + from[vector] + x), nullptr);
      StoreVectorAs(d, best.value, target + to[vector] + x);
    }
  }
}

/// Values each of which a T can hold: nothing is rounded.
template <class T, class D>
HWY_INLINE void StoreExact(D d, hn::Vec<D> values, T* to) {
  if constexpr (std::is_same_v<T, bf16>) {
    const hn::RebindToUnsigned<D> words;
    const RoundedTag<T, D> narrow;
    hn::StoreU(hn::TruncateTo(narrow, hn::ShiftRight<16>(hn::BitCast(words, values))), narrow,
               reinterpret_cast<RoundedLane<T>*>(to));
  } else {
    StoreVectorAs(d, values, to);
  }
}

/// See NarrowColumnsFn. Four vectors at once, the last ones once more where they are no four.
template <class D, class T>
void FoldNarrowColumns(const void* const* given, int pairs, const std::int32_t* from, const std::int32_t* to,
                       std::int64_t vectors, void* target) {
  const D d;
  const auto* taps = reinterpret_cast<const T* const*>(given);
  for (std::int64_t next = 0; next < vectors; next += 4) {
    const std::int64_t vector = std::min(next, vectors - 4);
    std::int64_t at[4];
    hn::Vec<D> best[4];
    NoticedNaN<D> noticed[4];
    CENOTE_UNROLL
    for (int v = 0; v < 4; ++v) {
      at[v] = from[vector + v];
      best[v] = hn::Set(d, IdentityOf<Fold::max, float>());
    }
    for (int i = 0; i < 2 * pairs; i += 2) {
      const T *first = taps[i], *second = taps[i + 1];
      CENOTE_UNROLL
      for (int v = 0; v < 4; ++v) {
        const auto a = LoadOnce(d, first + at[v]), b = LoadOnce(d, second + at[v]);
        noticed[v].Show(a, b);
        best[v] = hn::Max(hn::Max(b, a), best[v]);
      }
    }
    noticed[0].Join(noticed[1]);
    noticed[2].Join(noticed[3]);
    noticed[0].Join(noticed[2]);
    if (HWY_UNLIKELY(noticed[0].any())) {
      FoldVectorsAgain(static_cast<std::int64_t>(hn::Lanes(d)), taps, pairs, from + vector, to + vector,
                       static_cast<T*>(target));
      continue;
    }
    CENOTE_UNROLL
    for (int v = 0; v < 4; ++v) StoreExact(d, best[v], static_cast<T*>(target) + to[vector + v]);
  }
}

/// See NarrowRowsFn.
template <class T>
bool MaxDownNarrow(const void* const* rows, std::int64_t count, std::int64_t elements, void* maxima) {
  using D = hn::ScalableTag<float>;
  const D d;
  const hn::RebindToSigned<D> di;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto minus = hn::BitCast(di, hn::SignBit(d));
  NoticedNaN<D> noticed[4];
  auto negative = hn::MaskFromVec(hn::Zero(di));
  auto fold = [&](auto vectors, std::int64_t x) HWY_ATTR CENOTE_ALWAYS_INLINE {
    constexpr int kVectors = decltype(vectors)::value;
    hn::Vec<D> best[kVectors];
    const T* from = static_cast<const T*>(rows[0]) + x;
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      best[v] = LoadOnce(d, from + v * lanes);
      noticed[v].Show(best[v], best[v]);
    }
    for (std::int64_t y = 1; y < count; ++y) {
      from = static_cast<const T*>(rows[y]) + x;
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const auto value = LoadOnce(d, from + v * lanes);
        noticed[v].Show(value, value);
        best[v] = hn::Max(value, best[v]);
      }
    }
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      negative = hn::Or(negative, hn::Eq(hn::BitCast(di, best[v]), minus));
      StoreExact(d, best[v], static_cast<T*>(maxima) + x + v * lanes);
    }
  };
  std::int64_t x = 0;
  for (; x + 4 * lanes <= elements; x += 4 * lanes) fold(std::integral_constant<int, 4>{}, x);
  // The ragged end once more from its last whole vector.
  for (; x < elements; x += lanes) fold(std::integral_constant<int, 1>{}, smaller(x, elements - lanes));
  noticed[0].Join(noticed[1]);
  noticed[2].Join(noticed[3]);
  noticed[0].Join(noticed[2]);
  return !noticed[0].any() && hn::AllFalse(di, negative);
}

template <class T>
NarrowColumns NarrowColumnsIn(std::int64_t channels) {
  const hn::ScalableTag<float> d;
  const hn::Half<decltype(d)> half;
  auto in = [](auto lanes) {
    using D = decltype(lanes);
    return NarrowColumns{FoldNarrowColumns<D, T>, MaxDownNarrow<T>, static_cast<std::int64_t>(hn::MaxLanes(D()))};
  };
  if (channels >= static_cast<std::int64_t>(hn::Lanes(d))) return in(d);
  if (channels >= static_cast<std::int64_t>(hn::Lanes(half))) return in(half);
#if HWY_MAX_BYTES == 64
  if (channels >= 4) return in(hn::Half<decltype(half)>());
#endif
  return {};
}

NarrowColumns NarrowColumnsOf(DType dtype, std::int64_t channels) {
  switch (dtype) {
    case DType::f32: return NarrowColumnsIn<float>(channels);
#if HWY_MAX_BYTES == 64  // for the library's size
    case DType::f16: return NarrowColumnsIn<f16>(channels);
    case DType::bf16: return NarrowColumnsIn<bf16>(channels);
#endif
    default: return {};
  }
}

#else

NarrowColumns NarrowColumnsOf(DType, std::int64_t) { return {}; }

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(NarrowColumnsOf);
NarrowColumns narrow_columns(std::size_t target, DType dtype, std::int64_t channels) {
  return HWY_DISPATCH_TABLE(NarrowColumnsOf)[target](dtype, channels);
}
}  // namespace cenote::simd
#endif
