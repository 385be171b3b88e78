// Small square windows over planar rows: a vector of columns at a time, down the rows. Each row is folded along once and stays in
// registers for as long as windows see it. Maxima are taken in row-major order, ties and NaN as they come (of halves by keys); sums down the rows first, the
// order of all other ways to sum.
#if defined(CENOTE_CPU_PLANES_STRIPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_PLANES_STRIPS_INL_H_
#undef CENOTE_CPU_PLANES_STRIPS_INL_H_
#else
#define CENOTE_CPU_PLANES_STRIPS_INL_H_
#endif

#include <hwy/cache_control.h>

#include "cpu/planes/strips.hpp"
#include "cpu/rows/fold_rows-inl.h"
#include "cpu/vectors/keys-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// Where this way is compiled: where stores have masks, see StoreUpTo.
inline constexpr bool kHasStrips = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2;

#if HWY_TARGET != HWY_SCALAR

/// Maxima of halves are taken of keys; where those cannot tell, of values again.
template <class C, class T>
constexpr bool kStripsOfKeys = std::is_same_v<C, Key>&& kIsHalf<T>;

/// Where 2x2 windows one apart are compiled, see is_small_square.
template <Fold kFold, class T>
constexpr bool kHasSlidingPairs = kFold != Fold::max_indexed&& std::is_same_v<T, float>;

/// What keys cannot tell: which of several NaNs is kept, and of which sign a zero is where there is a -0.
struct StripDoubts {
  bool nan = false, zero = false;
};

template <class D, class T, class C = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadLanes(D d, const T* from) {
  if constexpr (kStripsOfKeys<C, T>) {
    return Keys<T>::Load(d, from);
  } else {
    return LoadAs(d, from);
  }
}

/// One strip: where it begins, and what it is folded into.
template <class T, class C>
struct Strip {
  const T* from;  // tap (0, 0) of the slice's first window in the strip, were there no padding above
  std::int64_t slice, column;
  std::int64_t first_row, end_row;  // of outputs
  const std::int32_t* first_codes;
  std::int64_t
      room;  // elements that may be written from `to` on; of halves more are, which FoldNarrowPlanes writes again
  T* to;
  CodeOf<C>* codes;
  std::uintptr_t fetch = 0;  // where to fetch early from, 0: nowhere; a number, for it may lie beyond the tensor
  std::int64_t planes = 1;   // that follow each other: their strips are alike
};

/// The whole of a vector, or as many of its lanes as there is room for. (There is no masked store of halves everywhere: they always have room.)
template <class D, class T>
HWY_INLINE void StoreUpTo(D d, hn::Vec<D> v, std::int64_t room, T* to) {
  if constexpr (std::is_same_v<T, hn::TFromD<D>>) {
    if (room < static_cast<std::int64_t>(hn::Lanes(d)))
      return hn::BlendedStore(v, hn::FirstN(d, static_cast<std::size_t>(room)), d, to);
  }
  if constexpr (kStripsOfKeys<hn::TFromD<D>, T>) {
    Keys<T>::Store(d, v, to);
  } else {
    StoreVectorAs(d, v, to);
  }
}

/// A row in a strip: folded along already where that comes first, its taps where rows are summed up before.
template <Fold kFold, int kTaps, class D>
struct StripRow : Accumulator<D, kFold, false> {};
template <int kTaps, class D>
struct StripRow<Fold::sum, kTaps, D> {
  hn::Vec<D> taps[kTaps];
};

/// The codes of first taps, which are 32 bits wide in the plan.
template <class DI>
HWY_INLINE hn::Vec<DI> LoadFirstCodes(DI di, const std::int32_t* from) {
  if constexpr (sizeof(hn::TFromD<DI>) == sizeof(*from)) {
    return hn::LoadU(di, from);
  } else {
    return hn::PromoteTo(di, hn::LoadU(hn::Rebind<std::int32_t, DI>(), from));
  }
}

template <class D, Fold kFold>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> CodesOf(D, const Accumulator<D, kFold, false>& a) {
  if constexpr (kFold == Fold::max_indexed) {
    return a.code;
  } else {
    return hn::Zero(hn::RebindToSigned<D>());
  }
}

/// kDeep: slices of a window, which follow each other. kDilated: taps are more than a column or a row apart.
template <Fold kFold, int kTaps, int kStride, int kDeep, bool kDilated, class D, class T, class C = hn::TFromD<D>>
HWY_NOINLINE StripDoubts FoldStrip(const StripPlan& plan, const Strip<T, C>& strip) {
  const D d;
  const hn::RebindToSigned<D> di;
  using Code = CodeOf<C>;
  using Row = StripRow<kFold, kTaps, D>;
  constexpr int kKept = kTaps > kStride ? kTaps - kStride : 0;
  static_assert(kDeep == 1 || (kDeep == 2 && kKept == 0));
  constexpr bool kIndexed = kFold == Fold::max_indexed;
  const auto identity = hn::Set(d, IdentityOf<kFold, C>());
  const std::int64_t pitch = plan.width, heights = plan.heights, columns = plan.columns;
  constexpr std::uintptr_t kFetched = kStride * hn::MaxLanes(d) * sizeof(T);  // as much as is read of a row
  std::uintptr_t fetch = strip.fetch;
  const bool fetches = fetch != 0;
  const std::int64_t step = kDilated ? plan.step : 1, row_step = kDilated ? plan.row_step : 1;
  const bool padded = plan.padded;
  [[maybe_unused]] const bool squares = plan.powers.factors == 2;
  const auto lane_columns =
      hn::Add(StridedIota<kStride>(di), hn::Set(di, static_cast<Code>(strip.column * kStride - plan.left)));
  hn::Mask<D> inside[kTaps];
  CENOTE_UNROLL
  for (int tap = 0; tap < kTaps; ++tap) {
    const auto column = hn::Add(lane_columns, hn::Set(di, static_cast<Code>(tap * step)));
    inside[tap] = hn::RebindMask(
        d, hn::AndNot(hn::Lt(column, hn::Zero(di)), hn::Lt(column, hn::Set(di, static_cast<Code>(plan.width)))));
  }
  const T* from = strip.from;
  std::int64_t y = 0;  // the next input row
  // Positions of its first taps, where those are the indices.
  auto plane_codes = hn::Zero(di), next_codes = hn::Zero(di);
  const std::int64_t first_y = strip.first_row * kStride - plan.top;
  if (kIndexed && plan.flat) {
    plane_codes = hn::Add(lane_columns, hn::Set(di, static_cast<Code>((strip.slice * heights + first_y) * pitch)));
    next_codes = hn::Set(di, static_cast<Code>(row_step * pitch));
  }
  auto row_codes = plane_codes;
  const std::int64_t tap_code = kDilated && plan.flat ? step : 1, deep_code = plan.flat ? heights * pitch : 0;
  auto fold_row = [&](auto& row, auto deep) HWY_ATTR CENOTE_ALWAYS_INLINE {
    hn::Vec<D> v[kTaps];
    if (static_cast<std::uint64_t>(y) < static_cast<std::uint64_t>(heights)) {
      const T* at = from + (deep() * heights + y) * pitch;
      if (fetches) {
        const std::uintptr_t there = fetch + static_cast<std::uintptr_t>(deep() * heights * pitch) * sizeof(T);
        hwy::Prefetch(reinterpret_cast<const T*>(there));
        if constexpr (kFetched > 64) hwy::Prefetch(reinterpret_cast<const T*>(there + 64));
      }
      if constexpr (kStride == 1) {
        CENOTE_UNROLL
        for (int tap = 0; tap < kTaps; ++tap) v[tap] = LoadLanes(d, at + tap * step);
      } else if constexpr (std::is_same_v<T, bf16> && std::is_same_v<C, float>) {
        // Two columns lie in each lane of 32 bits, each an f32 but for where it lies: nothing is spread and taken apart.
        static_assert(kStride == 2);
        const hn::RebindToUnsigned<D> words;
        const hn::Repartition<std::uint16_t, D> halves;
        CENOTE_UNROLL
        for (int tap = 0; tap < kTaps; tap += 2) {
          const auto pair = hn::BitCast(words, hn::LoadU(halves, reinterpret_cast<const std::uint16_t*>(at + tap)));
          v[tap] = hn::BitCast(d, hn::ShiftLeft<16>(pair));
          if (tap + 1 < kTaps) v[tap + 1] = hn::BitCast(d, hn::And(pair, hn::Set(words, 0xffff0000U)));
        }
      } else {
        static_assert(kStride == 2);
        // Where short vectors are half of the longest, one of those holds all that they take: a permutation each instead of two.
        constexpr bool kHalfVectors = std::is_same_v<T, float> && 2 * hn::MaxLanes(d) * sizeof(C) <= HWY_MAX_BYTES;
        CENOTE_UNROLL
        for (int tap = 0; tap < kTaps; tap += 2) {
          if constexpr (kHalfVectors) {
            const hn::Twice<D> both;
            const auto pairs = hn::LoadU(both, at + tap);
            v[tap] = hn::LowerHalf(d, hn::ConcatEven(both, pairs, pairs));
            if (tap + 1 < kTaps) v[tap + 1] = hn::LowerHalf(d, hn::ConcatOdd(both, pairs, pairs));
          } else {
            const auto low = LoadLanes(d, at + tap), high = LoadLanes(d, at + tap + hn::Lanes(d));
            v[tap] = hn::ConcatEven(d, high, low);
            if (tap + 1 < kTaps) v[tap + 1] = hn::ConcatOdd(d, high, low);
          }
        }
      }
      if (padded) {
        CENOTE_UNROLL
        for (int tap = 0; tap < kTaps; ++tap) v[tap] = hn::IfThenElse(inside[tap], v[tap], identity);
      }
    } else {
      CENOTE_UNROLL
      for (int tap = 0; tap < kTaps; ++tap) v[tap] = identity;
    }
    if constexpr (kFold == Fold::sum && std::is_same_v<T, float>) {
      CENOTE_UNROLL
      for (int tap = 0; tap < kTaps; ++tap) v[tap] = squares ? hn::Mul(v[tap], v[tap]) : v[tap];
    }
    CENOTE_UNROLL
    for (int tap = 0; tap < kTaps; ++tap) {
      if constexpr (kFold == Fold::sum) {
        row.taps[tap] = v[tap];
      } else {
        auto code = [&]() HWY_ATTR {
          return hn::Add(row_codes, hn::Set(di, static_cast<Code>(tap * tap_code + deep() * deep_code)));
        };
        tap == 0 ? row.First(d, v[tap], code) : row.Next(d, v[tap], code);
      }
    }
  };
  auto next_row = [&]() HWY_ATTR {
    if constexpr (kIndexed) row_codes = hn::Add(row_codes, next_codes);
    y += row_step;
    fetch += fetches ? kFetched : 0;
  };
  constexpr std::integral_constant<int, 0> kFirst;
  Row row[kDeep * kTaps];
  T* HWY_RESTRICT to = strip.to;
  Code* HWY_RESTRICT codes = strip.codes;
  const std::int32_t* HWY_RESTRICT first_codes = nullptr;
  const auto row_code = static_cast<Code>(plan.flat ? 0 : kTaps);  // between the taps of two rows
  const std::int64_t apart = row_step * columns;
  std::int64_t room = strip.room;
  auto nans = hn::MaskFromVec(hn::Zero(d)), zeros = nans;
  for (std::int64_t plane = 0; plane < strip.planes; ++plane) {
    y = first_y;
    row_codes = plane_codes;
    first_codes = strip.first_codes;
    CENOTE_UNROLL
    for (int i = 0; i < kKept; ++i) {
      fold_row(row[i], kFirst);
      next_row();
    }
    for (std::int64_t o = strip.first_row; o < strip.end_row; o += row_step, to += apart, room -= apart) {
      CENOTE_UNROLL
      for (int i = kKept; i < kTaps; ++i) {
        fold_row(row[i], kFirst);
        if constexpr (kDeep == 2) fold_row(row[kTaps + i], std::integral_constant<int, 1>());
        next_row();
      }
      if constexpr (kFold == Fold::sum) {
        auto sum = hn::Zero(d);
        CENOTE_UNROLL
        for (int tap = 0; tap < kTaps; ++tap) {
          auto down = row[0].taps[tap];
          CENOTE_UNROLL
          for (int i = 1; i < kDeep * kTaps; ++i) down = hn::Add(down, row[i].taps[tap]);
          sum = hn::Add(sum, down);
        }
        const SliceDivisors& divisors = plan.divisors;
        if (divisors.multiplies) {
          sum = hn::Mul(sum, hn::Set(d, static_cast<C>(1 / divisors.all)));
        } else {
          const auto by = divisors.all != 0 ? hn::Set(d, static_cast<C>(divisors.all))
                                            : hn::LoadU(d, divisors.each.data() + o * columns + strip.column);
          sum = Quotient(d, sum, by, divisors.all < 0);
        }
        StoreUpTo(d, sum, room, to);
      } else {
        Accumulator<D, kFold, false> a = row[0];
        if constexpr (kIndexed) {
          if (first_codes != nullptr) {
            // Where all taps are as low as the identity, the first inside the input is the one.
            a.First(d, identity, [&]() HWY_ATTR { return LoadFirstCodes(di, first_codes); });
            a.Next(d, row[0].value, [&]() HWY_ATTR { return CodesOf(d, row[0]); });
            first_codes += apart;
          }
        }
        CENOTE_UNROLL
        for (int i = 1; i < kDeep * kTaps; ++i) {
          a.Next(d, row[i].value,
                 [&]() HWY_ATTR { return hn::Add(CodesOf(d, row[i]), hn::Set(di, static_cast<Code>(i * row_code))); });
        }
        StoreUpTo(d, a.value, room, to);
        if constexpr (kStripsOfKeys<C, T>) {
          nans = hn::Or(nans, Keys<T>::IsNaN(d, a.value));
          zeros = hn::Or(zeros, Keys<T>::IsZero(d, a.value));
        }
        if constexpr (kIndexed) {
          hn::StoreU(a.code, di, codes);
          codes += apart;
        }
      }
      CENOTE_UNROLL
      for (int i = 0; i < kKept; ++i) row[i] = row[i + kStride];
    }
    from += plan.source_pitch;
  }
  return {!hn::AllFalse(d, nans), !hn::AllFalse(d, zeros)};
}

template <class T, class C>
using StripFn = StripDoubts (*)(const StripPlan&, const Strip<T, C>&);

template <Fold kFold, class D, class T, class C = hn::TFromD<D>>
StripFn<T, C> ChooseStrip(const StripPlan& plan) {
  if (plan.together == 2) return FoldStrip<kFold, 2, 2, 2, false, D, T>;
  if constexpr (kHasSlidingPairs<kFold, T>) {
    if (plan.taps == 2 && plan.stride == 1) return FoldStrip<kFold, 2, 1, 1, false, D, T>;
  }
  if (plan.taps == 2) return FoldStrip<kFold, 2, 2, 1, false, D, T>;
  if (plan.stride == 2) return FoldStrip<kFold, 3, 2, 1, false, D, T>;
  if constexpr (std::is_same_v<D, hn::ScalableTag<C>> && !std::is_same_v<C, Key> &&
                kFold != Fold::sum) {  // dilated windows have columns enough
    if (plan.step > 1 || plan.row_step > 1) return FoldStrip<kFold, 3, 1, 1, true, D, T>;
  }
  return FoldStrip<kFold, 3, 1, 1, false, D, T>;
}

/// The way of a plan's strips, and how many columns they have.
template <Fold kFold, class T, class C>
struct Strips {
  static constexpr std::size_t kFew = 32 / sizeof(C);

  StripFn<T, C> fold;
  std::int64_t lanes;  // of results

  explicit Strips(const StripPlan& plan) {
    // The shorter the vectors, the fewer of them cross a line. (Values that keys could not tell are rare.)
    constexpr bool kRare = kFold == Fold::max && kIsHalf<T> && !kStripsOfKeys<C, T>;
    using Long = hn::ScalableTag<C>;
    using Short = std::conditional_t<kRare, Long, hn::CappedTag<C, kFew>>;
    const bool few = plan.columns <= static_cast<std::int64_t>(kFew);
    fold = few ? ChooseStrip<kFold, Short, T>(plan) : ChooseStrip<kFold, Long, T>(plan);
    lanes = static_cast<std::int64_t>(few ? hn::Lanes(Short()) : hn::Lanes(Long()));
  }

  /// What a store without a mask takes, at most.
  std::int64_t stored() const { return lanes; }

  /// Planes that one strip each covers.
  void FoldPlanes(const StripPlan& plan, const Strip<T, C>& strip) const { fold(plan, strip); }

  /// Output rows [first_row, end_row) of a slice. `to`, `codes` and `first_codes` are those of the first of them.
  StripDoubts FoldBand(const StripPlan& plan, const T* from, std::int64_t slice, std::int64_t first_row,
                       std::int64_t end_row, const std::int32_t* first_codes, std::int64_t room, T* to,
                       CodeOf<C>* codes) const {
    StripDoubts doubts;
    // The rows that the next band reads, as they lie in memory, a share of them with each strip of this one.
    std::uintptr_t fetch = 0;
    if (plan.ahead != 0) {
      fetch = reinterpret_cast<std::uintptr_t>(from) +
              static_cast<std::uintptr_t>(first_row * plan.stride * plan.width + plan.ahead) * sizeof(T);
    }
    const auto share =
        static_cast<std::uintptr_t>(ceil_div(end_row - first_row, plan.row_step) * plan.stride * plan.stride * lanes) *
        sizeof(T);
    for (std::int64_t next = 0; next < plan.columns; next += lanes) {
      const std::int64_t column =
          larger(0, smaller(next, plan.columns - lanes));  // the ragged end from its last vector
      const T* first = from + column * plan.stride - plan.left;
      // Rows a dilation apart share theirs.
      for (std::int64_t row = first_row; row < first_row + plan.row_step && row < end_row; ++row) {
        const std::int64_t at = (row - first_row) * plan.columns + column;
        const std::int32_t* firsts = first_codes != nullptr ? first_codes + at : nullptr;
        const StripDoubts found =
            fold(plan, {first, slice, column, row, end_row, firsts, room - at, to + at, codes + at, fetch});
        if (fetch != 0) fetch += share;
        doubts.nan |= found.nan;
        doubts.zero |= found.zero;
      }
    }
    return doubts;
  }
};

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
