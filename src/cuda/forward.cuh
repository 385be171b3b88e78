// Forward pools of any windows: one thread folds one window, for kLanes neighbouring channels at once. Neighbouring threads work on
// neighbouring memory; what overlapping windows share comes from the L1 cache.
#pragma once

#include "cuda/geometry.cuh"

#include <type_traits>

namespace cenote::gpu {

/// Sums accumulate in T's accumulator; the max family keeps T and the place it came from.
template <class T, Fold kFold>
using Folded = std::conditional_t<kFold == Fold::max || kFold == Fold::min, T, Accumulator<T>>;

template <Fold kFold>
inline constexpr bool is_extreme = kFold == Fold::max || kFold == Fold::min;

template <Fold kFold, class T>
__device__ inline Folded<T, kFold> empty_fold() {
  if constexpr (is_extreme<kFold>) {
    return identity<kFold, T>();
  } else {
    return Folded<T, kFold>{0};
  }
}

/// What kGroup neighbouring threads hold of one window, in the first of them. Codes ascend in row-major order and settle ties.
template <Fold kFold, class T, int kGroup>
__device__ inline void fold_over_group(Folded<T, kFold>& fold, std::int32_t& code) {
#pragma unroll
  for (int offset = kGroup / 2; offset > 0; offset /= 2) {
    const auto other = __shfl_down_sync(0xffffffffU, fold, offset, kGroup);
    if constexpr (is_extreme<kFold>) {
      const std::int32_t other_code = __shfl_down_sync(0xffffffffU, code, offset, kGroup);
      const bool both_nan = is_nan(other) && is_nan(fold);
      if (both_nan ? other_code > code : other == fold ? other_code < code : beats<kFold>(other, fold)) {
        fold = other;
        code = other_code;
      }
    } else {
      fold += other;
    }
  }
}

/// What a sum adds for one element.
template <Fold kFold, class T>
struct Term {
  __device__ explicit Term(double) {}
  __device__ Accumulator<T> operator()(T value) const {
    return kFold == Fold::square ? widen(value) * widen(value) : widen(value);
  }
  __device__ Accumulator<T> of_any_power(T value) const { return (*this)(value); }
  template <class Work>
  __device__ void apply(Work work) const {
    work(*this);
  }
};
template <class T>
struct Term<Fold::power, T> {
  Power<Accumulator<T>> power;

  __device__ explicit Term(double norm_type) : power(static_cast<Accumulator<T>>(norm_type)) {}
  /// Of powers that multiplications make.
  __device__ Accumulator<T> operator()(T value) const { return power.product(widen(value)); }
  __device__ Accumulator<T> of_any_power(T value) const {
    return power.multiplies ? power.product(widen(value)) : raise(widen(value), power.exponent);
  }
  /// Calls `work` with what makes the terms, whatever the power: in a copy of its own for those that multiplications make.
  template <class Work>
  __device__ void apply(Work work) const {
    if (power.multiplies) {
      work(*this);
    } else {
      work([this](T value) { return raise_apart(widen(value), power.exponent); });
    }
  }
};

/// sum / divisor, correctly rounded, from the divisor's rounded reciprocal: the remainder of the first guess, computed exactly,
/// corrects it (Markstein). Far from overflow and underflow only; elsewhere it divides.
__device__ inline float quotient(float sum, float divisor, float reciprocal) {
  const float guess = sum * reciprocal;
  const float size = fabsf(guess);
  if (size < 1e30F && (size > 1e-30F || sum == 0.0F))
    return __fmaf_rn(__fmaf_rn(-guess, divisor, sum), reciprocal, guess);
  return sum / divisor;
}
__device__ inline double quotient(double sum, double divisor, double) { return sum / divisor; }

/// The same for sums of f16, which are all far enough from both but for infinities and NaN, where the guess is right.
__device__ inline float quotient_of_halves(float sum, float divisor, float reciprocal) {
  const float guess = sum * reciprocal;
  const float better = __fmaf_rn(__fmaf_rn(-guess, divisor, sum), reciprocal, guess);
  return fabsf(guess) < 1e30F ? better : guess;
}

/// quotient() for several sums, which are nearly always all far from both.
template <int kCount>
__device__ inline void divide_by(float (&sums)[kCount], float divisor, float reciprocal) {
  float better[kCount];
  bool far = true;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const float guess = sums[i] * reciprocal, size = fabsf(guess);
    better[i] = __fmaf_rn(__fmaf_rn(-guess, divisor, sums[i]), reciprocal, guess);
    far = far && size < 1e30F && (size > 1e-30F || sums[i] == 0.0F);
  }
  if (!far) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) better[i] = sums[i] / divisor;
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) sums[i] = better[i];
}
template <int kCount>
__device__ inline void divide_by(double (&sums)[kCount], double divisor, double) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) sums[i] /= divisor;
}

/// Divides sums by the divisor that every window has.
template <class T, class Int, int kCount>
__device__ inline void divide_all(const Params<Int>& p, Accumulator<T> (&sums)[kCount]) {
  using Real = Accumulator<T>;
  if (p.exact_reciprocal) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) sums[i] *= reciprocal_of<Real>(p);
  } else if (Number<T>::dtype == DType::f16 && p.ordinary_divisor) {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      sums[i] = quotient_of_halves(static_cast<float>(sums[i]), p.divisor_f32, p.reciprocal_f32);
  } else {
    divide_by(sums, uniform_divisor_of<Real>(p), reciprocal_of<Real>(p));
  }
}

/// Divides by one window's divisor. Correctly rounded, from one reciprocal for all.
template <class T, int kCount>
__device__ inline void divide_all_by(Accumulator<T> (&sums)[kCount], std::int64_t divisor) {
  using Real = Accumulator<T>;
  const Real real = static_cast<Real>(static_cast<std::int32_t>(divisor));
  if (divisor == 0) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) sums[i] = Real{0};
  } else {
    divide_by(sums, real, Real{1} / real);
  }
}

/// What a window's divisor has of one axis, where it is neither named nor the same for all.
__device__ inline std::int32_t counted_of(const Params<std::int32_t>& p, const Taps<std::int32_t>& taps) {
  return p.count_include_pad ? taps.padded : taps.count();
}

/// The divisors of neighbouring windows of a row, kept from row to row: most rows have those of the last one.
template <class T, int kCount>
struct RowDivisors {
  using Int = std::int32_t;
  Accumulator<T> divisor[kCount], reciprocal[kCount];
  Int counted = INT32_MIN;

  /// Of output row oy, columns from ox on.
  __device__ void follow(const Params<Int>& p, Int slices, Int oy, Int ox) {
    const Int down = counted_of(p, taps_of(p.axis[1], oy));
    if (down == counted) return;
    counted = down;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      divisor[i] =
          static_cast<Accumulator<T>>(most<Int>(slices * down * counted_of(p, taps_of<Int>(p.axis[2], ox + i)), 1));
      reciprocal[i] = Accumulator<T>{1} / divisor[i];
    }
  }
};

/// The sum itself where there is nothing to divide by.
template <class T, class Int>
__device__ inline Accumulator<T> average_of(const Params<Int>& p, Accumulator<T> sum, std::int64_t divisor) {
  if constexpr (Number<T>::floating) {
    if (p.exact_reciprocal) return sum * reciprocal_of<Accumulator<T>>(p);
    if constexpr (Number<T>::dtype == DType::f16) {
      if (p.ordinary_divisor) return quotient_of_halves(sum, p.divisor_f32, p.reciprocal_f32);
    }
    if (p.uniform_divisor)
      return quotient(sum, uniform_divisor_of<Accumulator<T>>(p), reciprocal_of<Accumulator<T>>(p));
  }
  if constexpr (Number<T>::floating && sizeof(Int) == 4) {
    Accumulator<T> only[1] = {sum};
    divide_all_by<T>(only, divisor);
    return only[0];
  } else {
    return p.average ? divide<T>(sum, divisor) : sum;
  }
}

/// From a finished fold to the stored element. `counted`: the divisor (average) or the taps up to the right padding's end (lp).
template <Fold kFold, class T, class Int>
__device__ inline T finish(const Params<Int>& p, Folded<T, kFold> fold, std::int64_t counted) {
  if constexpr (is_extreme<kFold>) {
    return fold;
  } else if constexpr (kFold == Fold::sum) {
    return narrow<T>(average_of<T>(p, fold, counted));
  } else {
    using Real = Accumulator<T>;
    const auto kernel =
        static_cast<Real>(static_cast<std::int64_t>(p.axis[0].kernel) * p.axis[1].kernel * p.axis[2].kernel);
    const Real total = p.exact_scale ? fold : divide<T>(fold, counted) * kernel;
    return narrow<T>(kFold == Fold::square ? sqrt(total) : root(total, static_cast<Real>(p.norm_type)));
  }
}

template <Fold kFold, class Int>
__device__ inline std::int64_t counted_taps(const Params<Int>& p, const Taps<Int>& d, const Taps<Int>& h,
                                            const Taps<Int>& w) {
  if constexpr (kFold == Fold::sum) {
    return p.uniform_divisor ? 1 : divisor_of(p, d, h, w);
  } else if constexpr (kFold == Fold::square || kFold == Fold::power) {
    if (p.exact_scale) return 1;
    return static_cast<std::int64_t>(d.padded) * h.padded * w.padded;
  } else {
    return 0;
  }
}

/// Codes are what is stored as index: code(tap) = base + tz * d + ty * h + tx * w, for flat positions and for taps alike.
template <class Int>
struct Coding {
  Int base, d, h, w;
};

template <class Int>
__device__ inline Coding<Int> coding_of(const Params<Int>& p, const Taps<Int>& d, const Taps<Int>& h,
                                        const Taps<Int>& w) {
  if (p.index_kind == IndexKind::window) return {0, h.whole * w.whole, w.whole, 1};
  const Int width = p.axis[2].input, slice = p.axis[1].input * width;
  return {d.start * slice + h.start * width + w.start, p.axis[0].dilation * slice, p.axis[1].dilation * width,
          p.axis[2].dilation};
}

/// The three windows of one output, drawn ones included. False: the samples are no samples.
template <class T, class Int>
__device__ inline bool windows_of(const Params<Int>& p, const Pointers& at, const Place<Int>& place,
                                  Taps<Int> (&taps)[3]) {
  const Int o[3] = {place.z, place.y, place.x};
  if (p.axis[2].rule != WindowRule::fractional) {
#pragma unroll
    for (int a = 0; a < 3; ++a) taps[a] = taps_of(p.axis[a], o[a]);
    return true;
  }
  if constexpr (Number<T>::floating) {
    using Real = Accumulator<T>;
    const T* samples = static_cast<const T*>(at.random_samples) + place.n * p.samples_n + place.c * p.samples_c;
    for (int a = 0; a < 3; ++a) {
      Real sample = 0;
      if (a >= 3 - p.dims) {
        sample = widen(samples[sample_of_axis(p.dims, a) * p.samples_axis]);
        if (!(sample >= Real{0} && sample < Real{1})) return false;
      }
      taps[a] = taps_at(p.axis[a], fractional_start(p.axis[a], o[a], sample));
    }
  }
  return true;
}

template <class T, int kLanes, Fold kFold, bool kIndices, class Int>
__global__ void __launch_bounds__(kBlock)
    fold_windows(const __grid_constant__ Params<Int> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  const Int thread = thread_of_grid<Int>();
  if (thread >= p.grid.threads) return;
  const Place<Int> place = p.grid.place(thread);
  Taps<Int> taps[3];
  if (!windows_of<T>(p, at, place, taps)) {
    report(at.fault, kFaultSample);
    return;
  }
  const T* input = static_cast<const T*>(at.input) + p.input.plane(place.n, place.c);
  const Coding<Int> coding = coding_of(p, taps[0], taps[1], taps[2]);
  Folded<T, kFold> fold[kLanes];
  Int codes[kLanes];
  const bool empty = taps[0].count() == 0 || taps[1].count() == 0 || taps[2].count() == 0;
  const Int first =
      empty ? Int{-1} : coding.base + taps[0].low * coding.d + taps[1].low * coding.h + taps[2].low * coding.w;
#pragma unroll
  for (int i = 0; i < kLanes; ++i) {
    fold[i] = empty_fold<kFold, T>();
    codes[i] = first;
  }
  const std::int64_t counted = counted_taps<kFold>(p, taps[0], taps[1], taps[2]);
  const Term<kFold, T> term(p.norm_type);
  // Rows that follow each other without a gap are one long row: above all those of global pools.
  if (taps[2].count() == p.axis[2].input && taps[2].whole == taps[2].count() && p.axis[1].dilation == 1 &&
      p.axis[2].dilation == 1 && p.input.h == p.axis[2].input * p.input.w) {
    taps[2].high = taps[2].low + taps[1].count() * taps[2].count();
    taps[1].high = taps[1].count() > 0 ? taps[1].low + 1 : taps[1].low;
  }
  for (Int tz = taps[0].low; tz < taps[0].high; ++tz) {
    for (Int ty = taps[1].low; ty < taps[1].high; ++ty) {
      const T* row = input + p.input.at(taps[0].start + tz * p.axis[0].dilation,
                                        taps[1].start + ty * p.axis[1].dilation, taps[2].start);
      const Int row_code = coding.base + tz * coding.d + ty * coding.h;
      const Int step = p.axis[2].dilation * p.input.w;
#pragma unroll 8
      for (Int tx = taps[2].low; tx < taps[2].high; ++tx) {
        const auto value = load<kLanes>(row + tx * step);
#pragma unroll
        for (int i = 0; i < kLanes; ++i) {
          if constexpr (is_extreme<kFold>) {
            const T v = p.absolute ? magnitude(value.lane[i]) : value.lane[i];
            if (beats<kFold>(v, fold[i])) {
              fold[i] = v;
              if constexpr (kIndices) codes[i] = row_code + tx * coding.w;
            }
          } else {
            fold[i] += term.of_any_power(value.lane[i]);
          }
        }
      }
    }
  }
  Vector<T, kLanes> result;
  if constexpr (kFold == Fold::sum && Number<T>::floating) {
    if (p.uniform_divisor) {
      divide_all<T>(p, fold);
    } else {
#pragma unroll
      for (int i = 0; i < kLanes; ++i) fold[i] = average_of<T>(p, fold[i], counted);
    }
#pragma unroll
    for (int i = 0; i < kLanes; ++i) result.lane[i] = narrow<T>(fold[i]);
  } else {
#pragma unroll
    for (int i = 0; i < kLanes; ++i) result.lane[i] = finish<kFold, T>(p, fold[i], counted);
  }
  const std::int64_t output = p.output.plane(place.n, place.c) + p.output.at(place.z, place.y, place.x);
  store(static_cast<T*>(at.output) + output, result);
  if constexpr (kIndices) {
    const std::int64_t index = p.indices.plane(place.n, place.c) + p.indices.at(place.z, place.y, place.x);
    store_codes(at.indices, p.index_dtype, index, codes);
  }
}

}  // namespace cenote::gpu
