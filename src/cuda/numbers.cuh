// Element types on the device: identities, the order rule of the max family, accumulators, vectors, division by multiplication.
#pragma once

#include "geometry/axis.hpp"

#include <cenote/dtype.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace cenote::gpu {

/// Division by a number known when the plan is made: a multiplication and a shift, exact for numerators in [0, 2^31).
template <class Int>
struct Divisor;

template <>
struct Divisor<std::int32_t> {
  std::uint32_t magic;
  std::int32_t shift;
  std::int32_t value;

  Divisor() = default;
  // m = ceil(2^p / d) with p = 31 + ceil(log2 d): m*d - 2^p < d <= 2^(p-31), so n*m / 2^p exceeds n/d by less than 1/d.
  explicit Divisor(std::int64_t d) : value(static_cast<std::int32_t>(d)) {
    int log = 0;
    while ((std::int64_t{1} << log) < d) ++log;
    shift = 31 + log;
    magic = static_cast<std::uint32_t>(((std::uint64_t{1} << shift) + static_cast<std::uint64_t>(d) - 1) /
                                       static_cast<std::uint64_t>(d));
  }
  CENOTE_HOST_DEVICE std::int32_t quotient(std::int32_t n) const {
    return static_cast<std::int32_t>((static_cast<std::uint64_t>(static_cast<std::uint32_t>(n)) * magic) >> shift);
  }
};

template <>
struct Divisor<std::int64_t> {
  std::int64_t value;

  Divisor() = default;
  explicit Divisor(std::int64_t d) : value(d) {}
  CENOTE_HOST_DEVICE std::int64_t quotient(std::int64_t n) const { return n / value; }
};

/// Splits n into quotient (kept in n) and remainder (returned).
template <class Int>
CENOTE_HOST_DEVICE Int take(Int& n, const Divisor<Int>& by) {
  const Int quotient = by.quotient(n);
  const Int remainder = n - quotient * by.value;
  n = quotient;
  return remainder;
}

/// The same where the divisor often is 1.
template <class Int>
CENOTE_HOST_DEVICE Int take_of(Int& n, const Divisor<Int>& by) {
  return by.value == 1 ? Int{0} : take(n, by);
}

/// What sums of T accumulate in, and T's ends. The max family compares and keeps T itself, so that bits survive.
template <class T>
struct Number;

template <>
struct Number<float> {
  using Accumulator = float;
  static constexpr DType dtype = DType::f32;
  static constexpr bool floating = true;
  __device__ static float lowest() { return __int_as_float(static_cast<int>(0xff800000U)); }
  __device__ static float highest() { return __int_as_float(0x7f800000); }
};
template <>
struct Number<double> {
  using Accumulator = double;
  static constexpr DType dtype = DType::f64;
  static constexpr bool floating = true;
  __device__ static double lowest() { return __longlong_as_double(static_cast<long long>(0xfff0000000000000ULL)); }
  __device__ static double highest() { return __longlong_as_double(0x7ff0000000000000LL); }
};
template <>
struct Number<__half> {
  using Accumulator = float;
  static constexpr DType dtype = DType::f16;
  static constexpr bool floating = true;
  __device__ static __half lowest() { return __ushort_as_half(0xfc00); }
  __device__ static __half highest() { return __ushort_as_half(0x7c00); }
};
template <>
struct Number<__nv_bfloat16> {
  using Accumulator = float;
  static constexpr DType dtype = DType::bf16;
  static constexpr bool floating = true;
  __device__ static __nv_bfloat16 lowest() { return __ushort_as_bfloat16(0xff80); }
  __device__ static __nv_bfloat16 highest() { return __ushort_as_bfloat16(0x7f80); }
};
template <class T, DType kDType, T kLowest, T kHighest>
struct Integer {
  using Accumulator = std::uint64_t;  // wraps around without undefined behaviour; read as signed where it is divided
  static constexpr DType dtype = kDType;
  static constexpr bool floating = false;
  __device__ static T lowest() { return kLowest; }
  __device__ static T highest() { return kHighest; }
};
template <>
struct Number<std::int8_t> : Integer<std::int8_t, DType::i8, INT8_MIN, INT8_MAX> {};
template <>
struct Number<std::uint8_t> : Integer<std::uint8_t, DType::u8, 0, UINT8_MAX> {};
template <>
struct Number<std::int16_t> : Integer<std::int16_t, DType::i16, INT16_MIN, INT16_MAX> {};
template <>
struct Number<std::int32_t> : Integer<std::int32_t, DType::i32, INT32_MIN, INT32_MAX> {};
template <>
struct Number<std::int64_t> : Integer<std::int64_t, DType::i64, INT64_MIN, INT64_MAX> {};

template <class T>
using Accumulator = typename Number<T>::Accumulator;

template <class T>
__device__ inline Accumulator<T> widen(T value) {
  if constexpr (Number<T>::floating) {
    return static_cast<Accumulator<T>>(value);
  } else {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  }
}
template <class T>
__device__ inline T narrow(Accumulator<T> value) {
  if constexpr (sizeof(T) == 2 && Number<T>::floating) {
    if constexpr (Number<T>::dtype == DType::f16) {
      return __float2half_rn(value);
    } else {
      return __float2bfloat16_rn(value);
    }
  } else {
    return static_cast<T>(value);
  }
}

/// sum / divisor, truncating toward zero in integers. A divisor of 0 belongs to a window without elements: 0.
template <class T>
__device__ inline Accumulator<T> divide(Accumulator<T> sum, std::int64_t divisor) {
  if (divisor == 0) return Accumulator<T>{0};
  if constexpr (Number<T>::floating) {
    return sum / static_cast<Accumulator<T>>(divisor);
  } else {
    if (divisor == -1) return std::uint64_t{0} - sum;  // the one quotient that overflows
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(sum) / divisor);
  }
}

template <class T>
__device__ inline bool is_nan(T value) {
  if constexpr (Number<T>::floating) {
    return value != value;
  } else {
    return false;
  }
}
template <class T>
__device__ inline T magnitude(T value) {
  if constexpr (Number<T>::dtype == DType::f16) {
    return __habs(value);
  } else if constexpr (Number<T>::dtype == DType::bf16) {
    return __habs(value);
  } else if constexpr (Number<T>::floating) {
    return fabs(value);
  } else {
    return value;
  }
}

enum class Fold : std::uint8_t { max, min, sum, square, power };

/// Max, min: a NaN beats every number and the earlier NaN; a number must be strictly better.
template <Fold kFold, class T>
__device__ inline bool beats(T value, T best) {
  if constexpr (kFold == Fold::min) {
    return value < best || is_nan(value);
  } else {
    return value > best || is_nan(value);
  }
}
template <Fold kFold, class T>
__device__ inline T identity() {
  if constexpr (kFold == Fold::max) {
    return Number<T>::lowest();
  } else if constexpr (kFold == Fold::min) {
    return Number<T>::highest();
  } else {
    return narrow<T>(Accumulator<T>{0});
  }
}

/// x^e by the simple operation where there is one.
template <class Real>
__device__ inline Real raise(Real x, Real e) {
  if (e == Real{1}) return x;
  if (e == Real{2}) return x * x;
  if (e == Real{3}) return x * x * x;
  if (e == Real{0.5}) return sqrt(x);
  if (e == Real{-0.5}) return Real{1} / sqrt(x);
  if (e == Real{-1}) return Real{1} / x;
  if (e == Real{-2}) return Real{1} / (x * x);
  if (e == Real{0}) return Real{1};
  return pow(x, e);
}

/// The same, once for all the taps that a kernel unrolls.
template <class Real>
__device__ __noinline__ Real raise_apart(Real x, Real e) {
  return raise(x, e);
}

/// x^e of many x. Whole numbers from one to seven take few multiplications, the same ones for each of them, so that nothing is asked at an
/// element.
template <class Real>
struct Power {
  Real exponent;
  bool multiplies, once, twice, four_times;

  __device__ explicit Power(Real e) : exponent(e) {
    multiplies = e >= Real{1} && e <= Real{7} && e == rint(e);
    const int times = multiplies ? static_cast<int>(e) : 0;
    once = (times & 1) != 0;
    twice = (times & 2) != 0;
    four_times = (times & 4) != 0;
  }
  /// Where it multiplies.
  __device__ Real product(Real x) const {
    const Real square = x * x;
    return (once ? x : Real{1}) * (twice ? square : Real{1}) * (four_times ? square * square : Real{1});
  }
};

/// x^(1/norm).
template <class Real>
__device__ inline Real root(Real x, Real norm) {
  if (norm == Real{1}) return x;
  if (norm == Real{2}) return sqrt(x);
  // As pow has it: no negative number has a root, and that of both infinities is the positive one.
  const Real infinity = Number<Real>::highest();
  if (norm == Real{3}) return x < Real{0} && x != -infinity ? infinity * Real{0} : cbrt(fabs(x));
  return raise_apart(x, Real{1} / norm);
}

/// kLanes neighbouring elements, loaded and stored at once.
template <class T, int kLanes>
struct alignas(sizeof(T) * kLanes) Vector {
  T lane[kLanes];
};

template <int kLanes, class T>
__device__ inline Vector<T, kLanes> load(const T* from) {
  if constexpr (kLanes == 1) {
    return {{*from}};
  } else {
    return *reinterpret_cast<const Vector<T, kLanes>*>(from);
  }
}
/// The same from memory that nothing writes to while the kernel runs, so that the load may be moved before stores.
template <int kLanes, class T>
__device__ inline Vector<T, kLanes> load_constant(const T* from) {
  constexpr int kBytes = static_cast<int>(sizeof(T)) * kLanes;
  Vector<T, kLanes> result;
  if constexpr (kBytes > 16) {
    constexpr int kStep = 16 / static_cast<int>(sizeof(T));
#pragma unroll
    for (int i = 0; i < kLanes; i += kStep) {
      const auto piece = load_constant<kStep>(from + i);
#pragma unroll
      for (int j = 0; j < kStep; ++j) result.lane[i + j] = piece.lane[j];
    }
  } else {
    using Small =
        std::conditional_t<kBytes == 4, unsigned, std::conditional_t<kBytes == 2, unsigned short, unsigned char>>;
    using Word = std::conditional_t<kBytes == 16, uint4, std::conditional_t<kBytes == 8, uint2, Small>>;
    const Word word = __ldg(reinterpret_cast<const Word*>(from));
    memcpy(&result, &word, kBytes);
  }
  return result;
}
/// The same for 16 bytes that no other thread of the multiprocessor reads: they need no place in its cache. Volatile, so that it does
/// not move before the question whether there is anything to load.
template <int kLanes, class T>
__device__ inline Vector<T, kLanes> load_once(const T* from) {
  if constexpr (sizeof(T) * kLanes == 16) {
    uint4 word;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
                 : "l"(from));
    Vector<T, kLanes> result;
    memcpy(&result, &word, 16);
    return result;
  } else {
    return load_constant<kLanes>(from);
  }
}
/// How long what is read stays in the L2 cache.
using Staying = std::uint64_t;

__device__ inline Staying staying(bool leaves_first) {
  Staying policy;
  if (leaves_first) {
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  } else {
    asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  }
  return policy;
}
/// load_constant, of 16 bytes that stay so long. Volatile as in load_once.
template <int kLanes, class T>
__device__ inline Vector<T, kLanes> load_staying(const T* from, Staying policy) {
  if constexpr (sizeof(T) * kLanes == 16) {
    uint4 word;
    asm volatile("ld.global.nc.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
                 : "l"(from), "l"(policy));
    Vector<T, kLanes> result;
    memcpy(&result, &word, 16);
    return result;
  } else {
    return load_constant<kLanes>(from);
  }
}
/// load_once, of 16 bytes that leave the L2 cache first. Volatile as well.
template <int kLanes, class T>
__device__ inline Vector<T, kLanes> load_leaving(const T* from) {
  static_assert(sizeof(T) * kLanes == 16);
  uint4 word;
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
               : "l"(from), "l"(staying(true)));
  Vector<T, kLanes> result;
  memcpy(&result, &word, 16);
  return result;
}
/// Several elements at once where they are aligned, else one by one.
template <int kLanes, class T>
__device__ inline Vector<T, kLanes> load_constant_if(bool aligned, const T* from) {
  if (aligned) return load_constant<kLanes>(from);
  Vector<T, kLanes> result;
#pragma unroll
  for (int i = 0; i < kLanes; ++i) result.lane[i] = load_constant<1>(from + i).lane[0];
  return result;
}
template <int kLanes, class T>
__device__ inline Vector<T, kLanes> load_if(bool aligned, const T* from) {
  if (aligned) return load<kLanes>(from);
  Vector<T, kLanes> result;
#pragma unroll
  for (int i = 0; i < kLanes; ++i) result.lane[i] = from[i];
  return result;
}
template <class T, int kLanes>
__device__ inline void store_if(bool aligned, T* to, const Vector<T, kLanes>& value) {
  if (aligned) {
    *reinterpret_cast<Vector<T, kLanes>*>(to) = value;
  } else {
#pragma unroll
    for (int i = 0; i < kLanes; ++i) to[i] = value.lane[i];
  }
}

/// The same pointer, of which the compiler does not know how it came about: it adds a 32-bit offset by one instruction then, where it would
/// take a sum of several apart and put it together again for every load.
template <class T>
__device__ inline T* settled(T* pointer) {
  asm("" : "+l"(pointer));
  return pointer;
}

/// The same for a number, which then need not be read from the parameters and worked out again wherever it is used.
__device__ inline std::int32_t settled(std::int32_t number) {
  asm("" : "+r"(number));
  return number;
}

/// One element of memory that is read once, by few threads at a time: it need not stay in any cache.
template <class T>
__device__ inline T load_streaming(const T* from) {
  if constexpr (sizeof(T) == 8 && std::is_integral_v<T>) {
    return static_cast<T>(__ldcs(reinterpret_cast<const long long*>(from)));
  } else {
    return __ldcs(from);
  }
}
template <class T, int kLanes>
__device__ inline void store(T* to, const Vector<T, kLanes>& value) {
  if constexpr (kLanes == 1) {
    *to = value.lane[0];
  } else {
    *reinterpret_cast<Vector<T, kLanes>*>(to) = value;
  }
}

template <class Stored, int kLanes, class Code>
__device__ inline void store_codes_as(void* indices, std::int64_t offset, const Code (&codes)[kLanes]) {
  constexpr int kStep = sizeof(Stored) * kLanes <= 16 ? kLanes : 16 / static_cast<int>(sizeof(Stored));
#pragma unroll
  for (int i = 0; i < kLanes; i += kStep) {
    Vector<Stored, kStep> piece;
#pragma unroll
    for (int j = 0; j < kStep; ++j) piece.lane[j] = static_cast<Stored>(codes[i + j]);
    store(static_cast<Stored*>(indices) + offset + i, piece);
  }
}

/// "No element", -1, becomes all ones in every type.
template <int kLanes, class Code>
__device__ inline void store_codes(void* indices, DType dtype, std::int64_t offset, const Code (&codes)[kLanes]) {
  switch (dtype) {
    case DType::i64: store_codes_as<std::int64_t>(indices, offset, codes); break;
    case DType::i32: store_codes_as<std::int32_t>(indices, offset, codes); break;
    case DType::u8: store_codes_as<std::uint8_t>(indices, offset, codes); break;
    case DType::u16: store_codes_as<std::uint16_t>(indices, offset, codes); break;
    default: store_codes_as<std::uint32_t>(indices, offset, codes); break;
  }
}

template <class Stored, int kLanes>
__device__ inline void load_codes_as(const void* indices, std::int64_t offset, std::int64_t (&codes)[kLanes]) {
  constexpr int kStep = sizeof(Stored) * kLanes <= 16 ? kLanes : 16 / static_cast<int>(sizeof(Stored));
  constexpr bool kUnsigned = static_cast<Stored>(-1) > Stored{0};
#pragma unroll
  for (int i = 0; i < kLanes; i += kStep) {
    const auto piece = load<kStep>(static_cast<const Stored*>(indices) + offset + i);
#pragma unroll
    for (int j = 0; j < kStep; ++j) {
      const Stored code = piece.lane[j];
      codes[i + j] = kUnsigned && code == static_cast<Stored>(-1) ? -1 : static_cast<std::int64_t>(code);
    }
  }
}

template <int kLanes>
__device__ inline void load_codes(const void* indices, DType dtype, std::int64_t offset,
                                  std::int64_t (&codes)[kLanes]) {
  switch (dtype) {
    case DType::i64: load_codes_as<std::int64_t>(indices, offset, codes); break;
    case DType::i32: load_codes_as<std::int32_t>(indices, offset, codes); break;
    case DType::u8: load_codes_as<std::uint8_t>(indices, offset, codes); break;
    case DType::u16: load_codes_as<std::uint16_t>(indices, offset, codes); break;
    default: load_codes_as<std::uint32_t>(indices, offset, codes); break;
  }
}

}  // namespace cenote::gpu
