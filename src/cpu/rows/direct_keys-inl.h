// Maxima of columns of many channels of 16-bit floats: taken of integers in the same order, twice as many to a vector.
#if defined(CENOTE_CPU_ROWS_DIRECT_KEYS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_ROWS_DIRECT_KEYS_INL_H_
#undef CENOTE_CPU_ROWS_DIRECT_KEYS_INL_H_
#else
#define CENOTE_CPU_ROWS_DIRECT_KEYS_INL_H_
#endif

#include "cpu/rows/direct_run-inl.h"
#include "cpu/vectors/keys-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// Where maxima are taken of keys, for columns of at least a vector of them.
template <Fold kFold, Map kMap, class T>
constexpr bool kHasKeys = kHasVectors&& kFold == Fold::max&& kMap == Map::identity&& kIsHalf<T>;

/// Calls tap(where it lies) for all taps of the output whose first one lies `at`.
template <class T, class Tap>
HWY_INLINE void ForTaps(const DirectRun<T, float>& run, std::int64_t at, const Tap& tap) {
  for (int row = 0; row < run.rows.count; ++row) {
    const T* from = run.rows.rows[row] + at;
    for (std::int64_t i = 0; i < run.taps; ++i) tap(from + i * run.step);
  }
}

/// A vector of maxima with a NaN, of which the last is kept, or a +0, which may come after a -0: keys cannot tell. From values, then.
template <class T>
HWY_NOINLINE void ResolveDoubts(const DirectRun<T, float>& run, std::int64_t at, bool nan, T* HWY_RESTRICT result) {
  using K = Keys<T>;
  const hn::ScalableTag<Key> keys;
  auto minus = hn::MaskFromVec(hn::Zero(keys));
  ForTaps(run, at, [&](const T* tap) HWY_ATTR { minus = hn::Or(minus, K::IsMinusZero(keys, K::Bits(keys, tap))); });
  if (!nan && hn::AllFalse(keys, minus)) return;
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (int half = 0; half < 2; ++half) {
    Accumulator<decltype(d), Fold::max, false> a{LoadAs(d, run.rows.rows[0] + at + half * lanes)};
    ForTaps(run, at + half * lanes, [&](const T* tap) HWY_ATTR { a.Next(d, LoadAs(d, tap), nullptr); });
    StoreVectorAs(d, a.value, result + half * lanes);
  }
}

/// kVectors vectors of maxima of the output whose first tap lies `at`.
template <int kVectors, class T>
HWY_INLINE void MaxOfKeys(const DirectRun<T, float>& run, std::int64_t at, T* HWY_RESTRICT result) {
  using K = Keys<T>;
  const hn::ScalableTag<Key> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> best[kVectors];
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) best[v] = K::Load(d, run.rows.rows[0] + at + v * lanes);
  ForTaps(run, at, [&](const T* tap) HWY_ATTR {
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) best[v] = hn::Max(best[v], K::Load(d, tap + v * lanes));
  });
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    K::Store(d, best[v], result + v * lanes);
    const auto zeros = K::IsZero(d, best[v]), nans = K::IsNaN(d, best[v]);
    if (HWY_LIKELY(hn::AllFalse(d, hn::Or(zeros, nans)))) continue;
    ResolveDoubts(run, at + v * lanes, !hn::AllFalse(d, nans), result + v * lanes);
  }
}

template <class T>
HWY_NOINLINE void MaxOfKeysRun(const DirectRun<T, float>& run, Ahead& ahead, T* HWY_RESTRICT result) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<Key>()));
  for (std::int64_t o = 0; o < run.outputs; ++o) {
    const std::int64_t at = run.first + o * run.apart;
    T* to = result + o * run.channels;
    ahead.Move(run.apart * static_cast<std::int64_t>(sizeof(T)));
    std::int64_t c = 0;
    for (; c + 4 * lanes <= run.channels; c += 4 * lanes) MaxOfKeys<4>(run, at + c, to + c);
    for (; c + 2 * lanes <= run.channels; c += 2 * lanes) MaxOfKeys<2>(run, at + c, to + c);
    for (; c < run.channels; c += lanes) {  // the ragged end once more from its last whole vector
      c = smaller(c, run.channels - lanes);
      MaxOfKeys<1>(run, at + c, to + c);
    }
  }
}

/// One row of outputs of a tile, of columns of at least a vector of keys.
template <class T>
void MaxOfKeysRow(const RowPlan& plan, const Tile& tile, const DirectRows<T, std::int32_t>& rows, Ahead& ahead,
                  T* HWY_RESTRICT result) {
  ForDirectRuns<float>(plan, tile, rows, 0, {}, [&](const DirectRun<T, float>& run, std::int64_t at) HWY_ATTR {
    if (run.taps > 0 && rows.count > 0) return MaxOfKeysRun(run, ahead, result + at);
    const float identity = IdentityOf<Fold::max, float>();
    for (std::int64_t i = 0; i < run.outputs * run.channels; ++i) StoreAs(&identity, result + at + i, 1);
  });
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
