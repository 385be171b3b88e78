// Maxima of 16-bit floats without converting them: as integers, twice as many to a vector.
#if defined(CENOTE_CPU_VECTORS_KEYS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_VECTORS_KEYS_INL_H_
#undef CENOTE_CPU_VECTORS_KEYS_INL_H_
#else
#define CENOTE_CPU_VECTORS_KEYS_INL_H_
#endif

#include "cpu/vectors/convert-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, f16> || std::is_same_v<T, bf16>;

using Key = std::int16_t;

/// Elements of 16 bits as integers in their order: from -infinity, the lowest of all, by -0 and then +0 to infinity; above it the NaNs of both
/// signs. The maximum of keys is that of their elements, in whatever order it is taken, but for two cases: of several NaNs a maximum keeps the last,
/// and of -0 and +0 the first.
template <class T>
struct Keys {
  static constexpr Key kNaNs = std::is_same_v<T, bf16> ? 0x7f : 0x3ff;  // of one sign
  static constexpr Key kZero = -kNaNs, kInfinity = 0x7fff - 2 * kNaNs;

  template <class D>
  static HWY_INLINE hn::Vec<D> Bits(D d, const T* from) {
    return hn::LoadU(d, reinterpret_cast<const Key*>(from));
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const T* from) {
    return hn::Sub(TurnNegatives(d, Bits(d, from)), hn::Set(d, kNaNs));
  }
  template <class D>
  static HWY_INLINE void Store(D d, hn::Vec<D> keys, T* to) {
    hn::StoreU(TurnNegatives(d, hn::Add(keys, hn::Set(d, kNaNs))), d, reinterpret_cast<Key*>(to));
  }

  template <class D>
  static HWY_INLINE hn::Mask<D> IsNaN(D d, hn::Vec<D> keys) {
    return hn::Gt(keys, hn::Set(d, kInfinity));
  }
  template <class D>
  static HWY_INLINE hn::Mask<D> IsZero(D d, hn::Vec<D> keys) {
    return hn::Eq(keys, hn::Set(d, kZero));
  }
  template <class D>
  static HWY_INLINE hn::Mask<D> IsMinusZero(D d, hn::Vec<D> bits) {
    return hn::Eq(bits, hn::Set(d, std::numeric_limits<Key>::lowest()));
  }

 private:
  /// All but the sign of negative numbers turned around, so that they ascend; and back.
  template <class D>
  static HWY_INLINE hn::Vec<D> TurnNegatives(D d, hn::Vec<D> bits) {
    return hn::Xor(bits, hn::And(hn::ShiftRight<15>(bits), hn::Set(d, std::numeric_limits<Key>::max())));
  }
};

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
