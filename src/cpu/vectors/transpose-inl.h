// Planes into columns and back: so many small planes at once that their elements fill a cache line, side by side.
#if defined(CENOTE_CPU_VECTORS_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_VECTORS_TRANSPOSE_INL_H_
#undef CENOTE_CPU_VECTORS_TRANSPOSE_INL_H_
#else
#define CENOTE_CPU_VECTORS_TRANSPOSE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "cpu/vectors/unroll.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

/// Transposes the square of elements in each 16-byte block of these vectors: log2(n) rounds of a perfect shuffle.
template <class D, std::size_t kSize>
HWY_INLINE void TransposeBlocks(D d, hn::Vec<D> (&v)[kSize]) {
  CENOTE_UNROLL
  for (std::size_t round = 1; round < kSize; round *= 2) {
    hn::Vec<D> next[kSize];
    CENOTE_UNROLL
    for (std::size_t i = 0; i < kSize / 2; ++i) {
      next[2 * i] = hn::InterleaveLower(d, v[i], v[i + kSize / 2]);
      next[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + kSize / 2]);
    }
    CENOTE_UNROLL
    for (std::size_t i = 0; i < kSize; ++i) v[i] = next[i];
  }
}

/// A vector of 16-byte blocks: block b from load(b).
template <class D, class Load>
HWY_INLINE hn::Vec<D> FromBlocks(D d, std::size_t first, Load load) {
  constexpr std::size_t kBlocks = hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) / 16;
  if constexpr (kBlocks == 1) {
    return load(first);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, FromBlocks(half, first + kBlocks / 2, load), FromBlocks(half, first, load));
  }
}

template <class D, class Store>
HWY_INLINE void ToBlocks(D d, hn::Vec<D> v, std::size_t first, Store store) {
  constexpr std::size_t kBlocks = hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) / 16;
  if constexpr (kBlocks == 1) {
    store(first, v);
  } else {
    const hn::Half<D> half;
    ToBlocks(half, hn::LowerHalf(half, v), first, store);
    ToBlocks(half, hn::UpperHalf(half, v), first + kBlocks / 2, store);
  }
}

#endif

/// to[x * kGroup + i] = from[i * pitch + x] for x < count. Where fewer planes than kGroup are left, the last one fills up.
template <int kGroup, class U>
void PlanesToColumns(const void* planes_from, std::int64_t pitch, std::int64_t planes, std::int64_t count,
                     void* columns) {
  const U* from = static_cast<const U*>(planes_from);
  U* HWY_RESTRICT to = static_cast<U*>(columns);
  const U* plane[kGroup];
  for (std::int64_t i = 0; i < kGroup; ++i) plane[i] = from + (i < planes ? i : planes - 1) * pitch;
  std::int64_t x = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr std::int64_t kBlock = 16 / sizeof(U);
  for (; kGroup >= kBlock && x < count && count >= kBlock; x += kBlock) {
    const hn::CappedTag < U, kGroup<kBlock ? kBlock : kGroup> d;
    const hn::FixedTag<U, kBlock> block;
    constexpr std::int64_t kLanes = hn::MaxLanes(d);
    const std::int64_t at = x + kBlock <= count ? x : count - kBlock;  // the ragged end from its last whole block
    for (std::int64_t base = 0; base < kGroup; base += kLanes) {
      hn::Vec<decltype(d)> v[kBlock];
      CENOTE_UNROLL
      for (std::int64_t i = 0; i < kBlock; ++i) {
        v[i] = FromBlocks(d, 0, [&](std::size_t b) HWY_ATTR {
          return hn::LoadU(block, plane[base + static_cast<std::int64_t>(b) * kBlock + i] + at);
        });
      }
      TransposeBlocks(d, v);
      CENOTE_UNROLL
      for (std::int64_t i = 0; i < kBlock; ++i) hn::StoreU(v[i], d, to + (at + i) * kGroup + base);
    }
  }
#endif
  for (; x < count; ++x) {
    for (std::int64_t i = 0; i < kGroup; ++i) to[x * kGroup + i] = plane[i][x];
  }
}

/// The way back, for the planes that there are.
template <int kGroup, class U>
void ColumnsToPlanes(const void* columns, std::int64_t pitch, std::int64_t planes, std::int64_t count,
                     void* planes_to) {
  const U* HWY_RESTRICT from = static_cast<const U*>(columns);
  U* to = static_cast<U*>(planes_to);
  std::int64_t x = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr std::int64_t kBlock = 16 / sizeof(U);
  for (; kGroup >= kBlock && x < count && count >= kBlock; x += kBlock) {
    const hn::CappedTag < U, kGroup<kBlock ? kBlock : kGroup> d;
    const hn::FixedTag<U, kBlock> block;
    constexpr std::int64_t kLanes = hn::MaxLanes(d);
    const std::int64_t at = x + kBlock <= count ? x : count - kBlock;
    for (std::int64_t base = 0; base < kGroup; base += kLanes) {
      hn::Vec<decltype(d)> v[kBlock];
      CENOTE_UNROLL
      for (std::int64_t i = 0; i < kBlock; ++i) v[i] = hn::LoadU(d, from + (at + i) * kGroup + base);
      TransposeBlocks(d, v);
      CENOTE_UNROLL
      for (std::int64_t i = 0; i < kBlock; ++i) {
        ToBlocks(d, v[i], 0, [&](std::size_t b, auto part) HWY_ATTR {
          const std::int64_t plane = base + static_cast<std::int64_t>(b) * kBlock + i;
          if (plane < planes) hn::StoreU(part, block, to + plane * pitch + at);
        });
      }
    }
  }
#endif
  for (; x < count; ++x) {
    for (std::int64_t i = 0; i < planes; ++i) to[i * pitch + x] = from[x * kGroup + i];
  }
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
