// Averages and sums of columns of few channels. The rows of a window are summed up first, whole vectors of whatever columns, in L1; those sums are added up
// along by a table of vectors, whichever columns they belong to; and what that makes, a row without gaps, is divided and rounded in whole vectors again.
#include "cpu/columns/narrow_sums.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/columns/narrow_sums.cpp"
#include <hwy/foreach_target.h>

#include "cpu/rows/along-inl.h"
#include "cpu/vectors/quotient-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

/// Bytes are summed up in 16 bits, which hold 257 of them.
template <class T>
using SumOf = std::conditional_t<sizeof(T) == 1, std::uint16_t, float>;

/// See NarrowSums.
template <class T>
void SumDownNarrow(const void* const* rows, std::int64_t count, std::int64_t elements, void* sums) {
  const hn::ScalableTag<SumOf<T>> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto* to = static_cast<SumOf<T>*>(sums);
  auto add = [&](auto vectors, std::int64_t x) HWY_ATTR CENOTE_ALWAYS_INLINE {
    constexpr int kVectors = decltype(vectors)::value;
    V sum[kVectors];
    const T* from = static_cast<const T*>(rows[0]) + x;
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) sum[v] = LoadAs(d, from + v * lanes);
    for (std::int64_t y = 1; y < count; ++y) {
      from = static_cast<const T*>(rows[y]) + x;
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) sum[v] = hn::Add(sum[v], LoadAs(d, from + v * lanes));
    }
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[v], d, to + x + v * lanes);
  };
  std::int64_t x = 0;
  for (; x + 4 * lanes <= elements; x += 4 * lanes) add(std::integral_constant<int, 4>{}, x);
  // The ragged end once more from its last whole vector.
  for (; x < elements; x += lanes) add(std::integral_constant<int, 1>{}, smaller(x, elements - lanes));
}

/// Four vectors at once, the last ones once more where they are no four.
template <class D, class C = hn::TFromD<D>>
HWY_INLINE void SumAlongTable(D d, const C* sums, std::int64_t step, const NarrowSumRun& run, const std::int32_t* from,
                              const std::int32_t* to, C* results) {
  const std::int64_t last = run.first + run.vectors - 4, end = run.taps * step;
  for (std::int64_t next = run.first; next < last + 4; next += 4) {
    const std::int64_t vector = smaller(next, last);
    const C* at[4];
    hn::Vec<D> total[4];
    CENOTE_UNROLL
    for (int v = 0; v < 4; ++v) {
      at[v] = sums + from[vector + v];
      total[v] = hn::Add(hn::Zero(d), hn::LoadU(d, at[v]));  // no -0
    }
    for (std::int64_t x = step; x < end; x += step) {
      CENOTE_UNROLL
      for (int v = 0; v < 4; ++v) total[v] = hn::Add(total[v], hn::LoadU(d, at[v] + x));
    }
    CENOTE_UNROLL
    for (int v = 0; v < 4; ++v) hn::StoreU(total[v], d, results + to[vector + v]);
  }
}

/// The same in the lanes of long windows, which are added up pairwise, as in LaneSums.
template <class D>
HWY_NOINLINE void SumAlongInLanes(D d, const float* sums, std::int64_t step, const NarrowSumRun& run,
                                  const std::int32_t* from, const std::int32_t* to, float* results) {
  constexpr std::int64_t kLanes = LaneSums<D>::kLanes, kVector = hn::MaxLanes(d);
  const std::int64_t end = run.first + run.vectors, taps = run.taps;
  // Where no lane has two taps, those that are added up first share one.
  const std::int64_t used = taps <= kLanes ? kLanes / 2 : kLanes;
  HWY_ALIGN float part[kLanes * kVector];
  for (std::int64_t vector = run.first; vector < end; ++vector) {
    const float* at = sums + from[vector];
    for (std::int64_t i = 0; i < used; ++i, at += step) {
      auto sum = hn::Zero(d);
      for (std::int64_t tap = i; tap < taps; tap += used) sum = hn::Add(sum, hn::LoadU(d, at + (tap - i) * step));
      hn::Store(sum, d, part + i * kVector);
    }
    for (std::int64_t width = used / 2; width > 0; width /= 2) {
      for (std::int64_t i = 0; i < width * kVector; i += kVector)
        hn::Store(hn::Add(hn::Load(d, part + i), hn::Load(d, part + i + width * kVector)), d, part + i);
    }
    hn::StoreU(hn::Load(d, part), d, results + to[vector]);
  }
}

template <class C>
void SumAlongNarrow(const void* sums, std::int64_t step, bool in_lanes, const NarrowSumRun& run,
                    const std::int32_t* from, const std::int32_t* to, void* results) {
  const hn::ScalableTag<C> whole;
  const hn::CappedTag<C, 16 / sizeof(C)> few;
  auto along = [&](auto d) HWY_ATTR CENOTE_ALWAYS_INLINE {
    const auto* buffered = static_cast<const C*>(sums);
    if constexpr (sizeof(C) == sizeof(float)) {
      if (in_lanes) return SumAlongInLanes(d, buffered, step, run, from, to, static_cast<C*>(results));
    }
    SumAlongTable(d, buffered, step, run, from, to, static_cast<C*>(results));
  };
  if (run.whole) return along(whole);
  along(few);
}

template <class T>
void FinishNarrow(const void* results, std::int64_t elements, float by, void* target) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* from = static_cast<const SumOf<T>*>(results);
  T* to = static_cast<T*>(target);
  const Divisor divisor(by);
  auto finish = [&](const SumOf<T>* at, T* put) HWY_ATTR CENOTE_ALWAYS_INLINE {
    if constexpr (sizeof(T) == 1) {
      const hn::RebindToSigned<decltype(d)> di;
      const auto sum = hn::PromoteTo(di, hn::LoadU(hn::Rebind<std::uint16_t, decltype(d)>(), at));
      // Truncated: half more than an integer below 2^16, by one below that, is further from the next quotient than what is rounded away.
      const auto quotient =
          hn::ConvertTo(di, hn::Mul(hn::Add(hn::ConvertTo(d, sum), hn::Set(d, 0.5F)), hn::Set(d, 1 / by)));
      const hn::Rebind<T, decltype(d)> narrow;
      hn::StoreU(hn::TruncateTo(narrow, hn::BitCast(hn::RebindToUnsigned<decltype(d)>(), quotient)), narrow, put);
    } else {
      hn::Vec<decltype(d)> value[1] = {hn::LoadU(d, at)};
      divisor.Apply(d, value);
      StoreVectorAs(d, value[0], put);
    }
  };
  std::int64_t x = 0;
  for (; x + lanes <= elements; x += lanes) finish(from + x, to + x);
  if (x == elements) return;
  HWY_ALIGN T rest[hn::MaxLanes(d)];
  finish(from + x, rest);  // there is something behind
  std::memcpy(static_cast<void*>(to + x), rest, static_cast<std::size_t>(elements - x) * sizeof(T));
}

template <class T>
NarrowSums NarrowSumsIn() {
  using C = SumOf<T>;
  return {SumDownNarrow<T>,
          SumAlongNarrow<C>,
          FinishNarrow<T>,
          static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<C>())),
          static_cast<std::int64_t>(16 / sizeof(C)),
          sizeof(C)};
}

NarrowSums NarrowSumsOf(DType dtype) {
  switch (dtype) {
    case DType::f32: return NarrowSumsIn<float>();
#if HWY_MAX_BYTES == 64  // for the library's size
    case DType::f16: return NarrowSumsIn<f16>();
    case DType::bf16: return NarrowSumsIn<bf16>();
    case DType::u8: return NarrowSumsIn<std::uint8_t>();
#endif
    default: return {};
  }
}

#else

NarrowSums NarrowSumsOf(DType) { return {}; }

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(NarrowSumsOf);
NarrowSums narrow_sums(std::size_t target, DType dtype) { return HWY_DISPATCH_TABLE(NarrowSumsOf)[target](dtype); }
}  // namespace cenote::simd
#endif
