// The folds: how one more element joins what a window has gathered so far.
#if defined(CENOTE_CPU_VECTORS_FOLD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_VECTORS_FOLD_INL_H_
#undef CENOTE_CPU_VECTORS_FOLD_INL_H_
#else
#define CENOTE_CPU_VECTORS_FOLD_INL_H_
#endif

#include <limits>

#include "cpu/vectors/convert-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

enum class Fold { max, max_indexed, sum };

/// Types that whole networks are pooled in: loops over them are worth being unrolled.
template <class T>
inline constexpr bool kIsCommon = kHasVectors && (!std::is_integral_v<T> || sizeof(T) == 1);

/// What folding nothing gives.
template <Fold kFold, class C>
constexpr C IdentityOf() {
  if constexpr (kFold == Fold::sum) {
    return C{0};
  } else if constexpr (std::numeric_limits<C>::has_infinity) {
    return -std::numeric_limits<C>::infinity();
  } else {
    return std::numeric_limits<C>::lowest();
  }
}

/// Where `second`, which comes later in row-major order, replaces `first`: greater, or NaN (the last NaN is kept).
template <class D, class V = hn::Vec<D>>
HWY_INLINE hn::Mask<D> SecondWins(D, V first, V second) {
  if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
    return hn::Or(hn::Gt(second, first), hn::IsNaN(second));
  } else {
    return hn::Gt(second, first);
  }
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
/// Where it does not: the second comparison is masked by the first, where masks that are joined would be an instruction more.
template <class D, class V = hn::Vec<D>>
HWY_INLINE hn::Mask<D> SecondLoses(D, V first, V second) {
  hn::Mask<D> loses;
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    if constexpr (sizeof(second.raw) == 64) {
      const auto number = _mm512_cmp_pd_mask(second.raw, second.raw, _CMP_ORD_Q);
      loses.raw = _mm512_mask_cmp_pd_mask(number, second.raw, first.raw, _CMP_NGT_UQ);
    } else if constexpr (sizeof(second.raw) == 32) {
      const auto number = _mm256_cmp_pd_mask(second.raw, second.raw, _CMP_ORD_Q);
      loses.raw = _mm256_mask_cmp_pd_mask(number, second.raw, first.raw, _CMP_NGT_UQ);
    } else {
      const auto number = _mm_cmp_pd_mask(second.raw, second.raw, _CMP_ORD_Q);
      loses.raw = _mm_mask_cmp_pd_mask(number, second.raw, first.raw, _CMP_NGT_UQ);
    }
  } else if constexpr (sizeof(second.raw) == 64) {
    const auto number = _mm512_cmp_ps_mask(second.raw, second.raw, _CMP_ORD_Q);
    loses.raw = _mm512_mask_cmp_ps_mask(number, second.raw, first.raw, _CMP_NGT_UQ);
  } else if constexpr (sizeof(second.raw) == 32) {
    const auto number = _mm256_cmp_ps_mask(second.raw, second.raw, _CMP_ORD_Q);
    loses.raw = _mm256_mask_cmp_ps_mask(number, second.raw, first.raw, _CMP_NGT_UQ);
  } else {
    const auto number = _mm_cmp_ps_mask(second.raw, second.raw, _CMP_ORD_Q);
    loses.raw = _mm_mask_cmp_ps_mask(number, second.raw, first.raw, _CMP_NGT_UQ);
  }
  return loses;
}
#endif

/// kAnyOrder: elements may come in any order and their codes, which ascend in row-major order, settle ties.
template <class D, Fold kFold, bool kAnyOrder>
struct Accumulator;

template <class D, bool kAnyOrder>
struct Accumulator<D, Fold::sum, kAnyOrder> {
  using C = hn::TFromD<D>;
  hn::Vec<D> value;

  // Sums start from +0, so that no sum is -0 whatever order or padding it was taken in.
  template <class Codes>
  HWY_INLINE void First(D d, hn::Vec<D> v, Codes) {
    value = hn::Add(hn::Zero(d), v);
  }
  template <class Codes>
  HWY_INLINE void Next(D, hn::Vec<D> v, Codes) {
    value = hn::Add(value, v);
  }
  HWY_INLINE void Store(D d, C* out, CodeOf<C>*) const { hn::StoreU(value, d, out); }
};

template <class D, bool kAnyOrder>
struct Accumulator<D, Fold::max, kAnyOrder> {
  using C = hn::TFromD<D>;
  hn::Vec<D> value;

  template <class Codes>
  HWY_INLINE void First(D, hn::Vec<D> v, Codes) {
    value = v;
  }
  template <class Codes>
  HWY_INLINE void Next(D d, hn::Vec<D> v, Codes) {
    if constexpr (hwy::IsFloat<C>()) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
      // The instruction's second operand is what it gives for equal ones and for NaN: v > value ? v : value.
      value = hn::IfThenElse(hn::IsNaN(v), v, hn::Max(v, value));
#else
      value = hn::IfThenElse(SecondWins(d, value, v), v, value);
#endif
    } else {
      value = hn::Max(value, v);
    }
  }
  HWY_INLINE void Store(D d, C* out, CodeOf<C>*) const { hn::StoreU(value, d, out); }
};

template <class D, bool kAnyOrder>
struct Accumulator<D, Fold::max_indexed, kAnyOrder> {
  using C = hn::TFromD<D>;
  using DI = hn::RebindToSigned<D>;
  hn::Vec<D> value;
  hn::Vec<DI> code;

  template <class Codes>
  HWY_INLINE void First(D, hn::Vec<D> v, Codes codes) {
    value = v;
    code = codes();
  }
  template <class Codes>
  HWY_INLINE void Next(D d, hn::Vec<D> v, Codes codes) {
    const DI di;
    const hn::Vec<DI> c = codes();
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
    if constexpr (!kAnyOrder && hwy::IsFloat<C>()) {
      const hn::Mask<D> loses = SecondLoses(d, value, v);
      value = hn::IfThenElse(loses, value, v);
      code = hn::IfThenElse(hn::RebindMask(di, loses), code, c);
      return;
    }
#endif
    hn::Mask<D> wins;
    if constexpr (kAnyOrder) {
      const hn::Mask<D> earlier = hn::RebindMask(d, hn::Lt(c, code));
      wins = hn::Or(hn::Gt(v, value), hn::And(hn::Eq(v, value), earlier));
      if constexpr (hwy::IsFloat<C>()) {
        wins = hn::Or(wins, hn::AndNot(hn::And(hn::IsNaN(value), earlier), hn::IsNaN(v)));
      }
    } else {
      wins = SecondWins(d, value, v);
    }
    value = hn::IfThenElse(wins, v, value);
    code = hn::IfThenElse(hn::RebindMask(di, wins), c, code);
  }
  HWY_INLINE void Store(D d, C* out, CodeOf<C>* out_codes) const {
    hn::StoreU(value, d, out);
    hn::StoreU(code, DI(), out_codes);
  }
};

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
