// Maxima of f32 columns of few channels, without indices: what a column costs to begin and end is more than to fold it, so that the vectors of a row's
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

/// Vectors [first, end) of outputs by the rule: where there is a NaN.
template <class D>
HWY_NOINLINE void FoldVectorsAgain(D d, const float* const* taps, int pairs, const NarrowRun& run, std::int64_t first,
                                   std::int64_t end, float* target) {
  for (std::int64_t vector = first; vector < end; ++vector) {
    Accumulator<D, Fold::max, false> best{hn::Set(d, IdentityOf<Fold::max, float>())};
    for (int i = 0; i < 2 * pairs; ++i) best.Next(d, hn::LoadU(d, taps[i] + run.from[vector]), nullptr);
    hn::StoreU(best.value, d, target + run.to[vector]);
  }
}

/// kVectors vectors of outputs, from `vector` on.
template <int kVectors, class D>
HWY_INLINE void FoldVectors(D d, const float* const* taps, int pairs, const NarrowRun& run, std::int64_t vector,
                            float* target) {
  std::int64_t from[kVectors];
  hn::Vec<D> best[kVectors];
  NoticedNaN<D> noticed[kVectors];
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    from[v] = run.from[vector + v];
    best[v] = hn::Set(d, IdentityOf<Fold::max, float>());
  }
  for (const float* const* end = taps + 2 * pairs; taps != end; taps += 2) {
    const float *first = taps[0], *second = taps[1];
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const auto a = hn::LoadU(d, first + from[v]), b = hn::LoadU(d, second + from[v]);
      noticed[v].Show(a, b);
      best[v] = hn::Max(hn::Max(b, a), best[v]);
    }
  }
  bool nan = false;
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) nan = nan || noticed[v].any();
  if (HWY_UNLIKELY(nan)) return FoldVectorsAgain(d, taps - 2 * pairs, pairs, run, vector, vector + kVectors, target);
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) hn::StoreU(best[v], d, target + run.to[vector + v]);
}

/// See NarrowColumnsFn.
template <class D>
void FoldNarrowColumns(const float* const* taps, int pairs, const NarrowRun& run, float* target) {
  const D d;
  if (run.vectors < 4) {
    for (std::int64_t v = 0; v < run.vectors; ++v) FoldVectors<1>(d, taps, pairs, run, v, target);
    return;
  }
  // The last ones once more where they are no four.
  for (std::int64_t v = 0; v < run.vectors; v += 4)
    FoldVectors<4>(d, taps, pairs, run, std::min(v, run.vectors - 4), target);
}

template <class D>
NarrowColumns NarrowColumnsIn(D) {
  return {FoldNarrowColumns<D>, static_cast<std::int64_t>(hn::MaxLanes(D()))};
}

NarrowColumns NarrowColumnsOf(std::int64_t channels) {
  const hn::ScalableTag<float> d;
  const hn::Half<decltype(d)> half;
  if (channels >= static_cast<std::int64_t>(hn::Lanes(d))) return NarrowColumnsIn(d);
  if (channels >= static_cast<std::int64_t>(hn::Lanes(half))) return NarrowColumnsIn(half);
#if HWY_MAX_BYTES == 64
  if (channels >= 4) return NarrowColumnsIn(hn::Half<decltype(half)>());
#endif
  return {};
}

#else

NarrowColumns NarrowColumnsOf(std::int64_t) { return {}; }

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(NarrowColumnsOf);
NarrowColumns narrow_columns(std::size_t target, std::int64_t channels) {
  return HWY_DISPATCH_TABLE(NarrowColumnsOf)[target](channels);
}
}  // namespace cenote::simd
#endif
