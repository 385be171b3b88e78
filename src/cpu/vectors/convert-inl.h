// Loads and stores that change type: rows of T in memory, lanes of the compute type C in registers.
// Per-target: no include guard in the usual sense, see Highway's foreach_target.h.
#if defined(CENOTE_CPU_VECTORS_CONVERT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_VECTORS_CONVERT_INL_H_
#undef CENOTE_CPU_VECTORS_CONVERT_INL_H_
#else
#define CENOTE_CPU_VECTORS_CONVERT_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "cenote/dtype.hpp"

// The baseline, which Highway compiles last, is for machines from before 2014: small rather than fast, 150 KB less.
#if HWY_TARGET == HWY_SCALAR && HWY_COMPILER_GCC_ACTUAL
#pragma GCC optimize("Os")
#endif

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class C>
using CodeOf = hwy::MakeSigned<C>;

// Highway converts f16 in software below AVX2 and rounds f32 to bf16 by cutting off: both are done here instead.
inline constexpr bool kNativeF16 = HWY_TARGET <= HWY_AVX2;

/// Without vectors there is nothing to be gained by a second way to do the same.
inline constexpr bool kHasVectors = HWY_TARGET != HWY_SCALAR;
/// Nor, on x86 before AVX2, much by second ways to take gradients back: they are scattered, and the library stays small.
inline constexpr bool kHasGathers = kHasVectors && (!HWY_ARCH_X86 || HWY_TARGET <= HWY_AVX2);

/// Lanes(d) elements of T at p, as lanes of C. Reads exactly those elements.
template <class D, class T, class C = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadAs(D d, const T* HWY_RESTRICT p) {
  if constexpr (std::is_same_v<T, C>) {
    return hn::LoadU(d, p);
  } else if constexpr (std::is_same_v<T, bf16>) {
    const hn::Rebind<std::uint16_t, D> d16;
    const hn::Rebind<std::uint32_t, D> d32;
    const auto bits = hn::PromoteTo(d32, hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(p)));
    return hn::BitCast(d, hn::ShiftLeft<16>(bits));
  } else if constexpr (std::is_same_v<T, f16>) {
    if constexpr (kNativeF16) {
      const hn::Rebind<hwy::float16_t, D> d16;
      return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(p)));
    } else {
      HWY_ALIGN float lanes[hn::MaxLanes(d)];
      for (std::size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = to_float(p[i]);
      return hn::Load(d, lanes);
    }
  } else if constexpr (sizeof(C) == 8 && sizeof(T) < 4) {
    const hn::Rebind<std::int32_t, D> d32;
    const hn::Rebind<T, D> dt;
    return hn::PromoteTo(d, hn::PromoteTo(d32, hn::LoadU(dt, p)));
  } else {
    const hn::Rebind<T, D> dt;
    return hn::PromoteTo(d, hn::LoadU(dt, p));
  }
}

/// The same, read once: left to itself, GCC reads memory again for every masked addition of it, at twice the cost where vectors cross lines. (3x3/1 maxima
/// backward, one thread: 28 x 28 x 192 35.3 us and 30.3 read once, 64 planes of 28 x 28 11.9 and 10.6.)
template <class D, class T>
HWY_INLINE hn::Vec<D> LoadOnce(D d, const T* HWY_RESTRICT p) {
  auto v = LoadAs(d, p);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  asm("" : "+v"(v.raw));
#endif
  return v;
}

/// count elements of T as values of C.
template <class T, class C>
void LoadElements(const T* HWY_RESTRICT from, C* HWY_RESTRICT to, std::int64_t count) {
  const hn::ScalableTag<C> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t x = 0;
  for (; x + lanes <= count; x += lanes) hn::StoreU(LoadAs(d, from + x), d, to + x);
  for (; x < count; ++x) {
    if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>) {
      to[x] = to_float(from[x]);
    } else {
      to[x] = static_cast<C>(from[x]);
    }
  }
}

/// Integers wrap around.
template <class C>
HWY_INLINE C WrappingSum(C a, C b) {
  if constexpr (hwy::IsFloat<C>()) {
    return a + b;
  } else {
    using Unsigned = hwy::MakeUnsigned<C>;
    return static_cast<C>(static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
  }
}

/// A half that nothing but a zero is added to: its bits, but for those of -0, which a sum makes 0.
struct MovedHalf {
  std::uint16_t bits;
};
HWY_INLINE MovedHalf WrappingSum(MovedHalf zero, MovedHalf moved) { return moved.bits == 0x8000U ? zero : moved; }

/// count values of C rounded to T. Integers keep their low bits.
template <class T, class C>
void StoreAs(const C* HWY_RESTRICT from, T* HWY_RESTRICT to, std::int64_t count) {
  if constexpr (std::is_same_v<T, bf16>) {
    std::uint16_t* bits = reinterpret_cast<std::uint16_t*>(to);
    const std::uint32_t* words = reinterpret_cast<const std::uint32_t*>(from);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint32_t word = words[i];
      const std::uint32_t rounded = (word + 0x7fffU + ((word >> 16) & 1U)) >> 16;
      bits[i] = static_cast<std::uint16_t>((word & 0x7fffffffU) > 0x7f800000U ? (word >> 16) | 0x40U : rounded);
    }
  } else if constexpr (std::is_same_v<T, f16>) {
    std::int64_t i = 0;
    if constexpr (kNativeF16) {
      const hn::ScalableTag<float> d;
      const hn::Rebind<hwy::float16_t, decltype(d)> d16;
      const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
      for (; i + lanes <= count; i += lanes) {
        hn::StoreU(hn::DemoteTo(d16, hn::LoadU(d, from + i)), d16, reinterpret_cast<hwy::float16_t*>(to) + i);
      }
    }
    for (; i < count; ++i) to[i] = to_f16(from[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(from[i]);
  }
}

/// What a vector of D's lanes is once it is rounded to T.
template <class T>
using RoundedLane = std::conditional_t<sizeof(T) == 2, std::uint16_t, T>;
template <class T, class D>
using RoundedTag = hn::Rebind<RoundedLane<T>, D>;

#if HWY_TARGET != HWY_SCALAR
/// f32 whose upper halves are bf16, rounded.
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<std::uint32_t, D>> RoundedBits(D d, hn::Vec<D> v) {
  const hn::Rebind<std::uint32_t, D> d32;
  (void)d;
  const auto word = hn::BitCast(d32, v);
  const auto odd = hn::And(hn::ShiftRight<16>(word), hn::Set(d32, 1U));
  const auto rounded = hn::Add(word, hn::Add(odd, hn::Set(d32, 0x7fffU)));
  const auto quiet = hn::Or(word, hn::Set(d32, 0x400000U));
  return hn::IfThenElse(hn::RebindMask(d32, hn::IsNaN(v)), quiet, rounded);
}

/// A mask for lanes of D from one for bytes.
template <class D, class M>
HWY_INLINE hn::Mask<D> WideMask(D d, M narrow) {
#if HWY_TARGET <= HWY_AVX3
  (void)d;
  hn::Mask<D> wide;
  wide.raw = static_cast<decltype(wide.raw)>(narrow.raw);
  return wide;
#else
  const hn::RebindToSigned<D> di;
  const hn::Rebind<std::int8_t, D> d8;
  const auto bytes = hn::BitCast(d8, hn::VecFromMask(hn::Rebind<std::uint8_t, D>(), narrow));
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    const auto words = hn::PromoteTo(hn::Rebind<std::int32_t, D>(), bytes);
    return hn::RebindMask(d, hn::MaskFromVec(hn::PromoteTo(di, words)));
  } else {
    return hn::RebindMask(d, hn::MaskFromVec(hn::PromoteTo(di, bytes)));
  }
#endif
}
#endif

/// A vector of floating-point values rounded to T, which has no more bits.
template <class T, class D, class C = hn::TFromD<D>>
HWY_INLINE hn::Vec<RoundedTag<T, D>> RoundVector(D d, hn::Vec<D> v) {
  const RoundedTag<T, D> to;
  if constexpr (std::is_same_v<T, C>) {
    return v;
  } else if constexpr (std::is_same_v<T, bf16> && kHasVectors) {
    const auto bits = RoundedBits(d, v);
    return hn::TruncateTo(to, hn::ShiftRight<16>(bits));
  } else if constexpr (std::is_same_v<T, f16> && kNativeF16) {
    return hn::BitCast(to, hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), v));
  } else {
    HWY_ALIGN C values[hn::MaxLanes(d)];
    HWY_ALIGN T rounded[hn::MaxLanes(d)];
    hn::Store(v, d, values);
    StoreAs(values, rounded, static_cast<std::int64_t>(hn::Lanes(d)));
    return hn::LoadU(to, reinterpret_cast<const RoundedLane<T>*>(rounded));
  }
}

/// Stores such a vector.
template <class D, class T>
HWY_INLINE void StoreVectorAs(D d, hn::Vec<D> v, T* HWY_RESTRICT to) {
  hn::StoreU(RoundVector<T>(d, v), RoundedTag<T, D>(), reinterpret_cast<RoundedLane<T>*>(to));
}

#if HWY_TARGET != HWY_SCALAR
/// The first `count` of a vector's lanes, all of them where it has no more. x86 from AVX2 on: others have no masked stores.
template <class D, class Lane = hn::TFromD<D>>
HWY_INLINE void StoreFirst(D d, hn::Vec<D> v, std::int64_t count, Lane* HWY_RESTRICT to) {
  if (count >= static_cast<std::int64_t>(hn::Lanes(d))) {
    hn::StoreU(v, d, to);
  } else if (count > 0) {
    if constexpr (sizeof(Lane) == 4 || HWY_TARGET <= HWY_AVX3) {
      hn::BlendedStore(v, hn::FirstN(d, static_cast<std::size_t>(count)), d, to);
    } else {
      HWY_ALIGN Lane lanes[hn::MaxLanes(d)];
      hn::Store(v, d, lanes);
      std::memcpy(to, lanes, static_cast<std::size_t>(count) * sizeof(Lane));
    }
  }
}
#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
