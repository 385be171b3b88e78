// Maxima by the instruction for them, which keeps the second of equal operands and loses NaN: those are only noticed.
#if defined(CENOTE_CPU_VECTORS_NOTICED_NAN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_VECTORS_NOTICED_NAN_INL_H_
#undef CENOTE_CPU_VECTORS_NOTICED_NAN_INL_H_
#else
#define CENOTE_CPU_VECTORS_NOTICED_NAN_INL_H_
#endif

#include "cpu/vectors/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

// Where the maximum of equal operands is known to be the second.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

/// Whether all vectors of D shown to it were free of NaN. Two cost as much as one.
#if HWY_TARGET <= HWY_AVX3
template <class D>
class NoticedNaN {
 public:
  using V = hn::Vec<D>;
  HWY_INLINE void Show(V a, V b) {
    if constexpr (sizeof(a.raw) == 64) {
      ordered_ = _mm512_mask_cmp_ps_mask(ordered_, a.raw, b.raw, _CMP_ORD_Q);
    } else if constexpr (sizeof(a.raw) == 32) {
      ordered_ = _mm256_mask_cmp_ps_mask(ordered_, a.raw, b.raw, _CMP_ORD_Q);
    } else {
      ordered_ = _mm_mask_cmp_ps_mask(ordered_, a.raw, b.raw, _CMP_ORD_Q);
    }
  }
  /// What was shown to the other, too.
  HWY_INLINE void Join(const NoticedNaN& other) { ordered_ &= other.ordered_; }
  HWY_INLINE bool any() const { return ordered_ != kAll; }

 private:
  using Mask = std::conditional_t<hn::MaxLanes(D()) == 16, __mmask16, __mmask8>;
  static constexpr Mask kAll = (1U << hn::MaxLanes(D())) - 1;
  Mask ordered_ = kAll;
};
#else
template <class D>
class NoticedNaN {
 public:
  using V = hn::Vec<D>;
  HWY_INLINE NoticedNaN() : unordered_(hn::Zero(D())) {}
  HWY_INLINE void Show(V a, V b) {
    V either;
    if constexpr (sizeof(a.raw) == 32) {
      either.raw = _mm256_cmp_ps(a.raw, b.raw, _CMP_UNORD_Q);
    } else {
      either.raw = _mm_cmpunord_ps(a.raw, b.raw);
    }
    unordered_ = hn::Or(unordered_, either);
  }
  HWY_INLINE void Join(const NoticedNaN& other) { unordered_ = hn::Or(unordered_, other.unordered_); }
  HWY_INLINE bool any() const { return !hn::AllFalse(D(), hn::MaskFromVec(unordered_)); }

 private:
  V unordered_;
};
#endif

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
