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
  std::int64_t lanes, stored;  // of results, and those that a store without a mask takes

  explicit Strips(const StripPlan& plan) {
    // The shorter the vectors, the fewer of them cross a line. (Values that keys could not tell are rare.)
    constexpr bool kRare = kFold == Fold::max && kIsHalf<T> && !kStripsOfKeys<C, T>;
    using Long = hn::ScalableTag<C>;
    using Short = std::conditional_t<kRare, Long, hn::CappedTag<C, kFew>>;
    const bool few = plan.columns <= static_cast<std::int64_t>(kFew);
    fold = few ? ChooseStrip<kFold, Short, T>(plan) : ChooseStrip<kFold, Long, T>(plan);
    lanes = stored = static_cast<std::int64_t>(few ? hn::Lanes(Short()) : hn::Lanes(Long()));
  }

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

/// Strips of keys, and again of values where keys cannot tell.
template <class T, class C>
struct KeyStrips {
  Strips<Fold::max, T, Key> keys;
  Strips<Fold::max, T, C> values;
  std::int64_t lanes, stored;

  explicit KeyStrips(const StripPlan& plan)
      : keys(plan), values(plan), lanes(smaller(keys.lanes, values.lanes)), stored(larger(keys.lanes, values.lanes)) {}

  void FoldPlanes(const StripPlan& plan, const Strip<T, C>& strip) const {
    if (plan.keys) {
      const StripDoubts doubts = keys.fold(plan, {.from = strip.from,
                                                  .end_row = plan.rows,
                                                  .first_codes = nullptr,
                                                  .room = strip.room,
                                                  .to = strip.to,
                                                  .codes = nullptr,
                                                  .planes = strip.planes});
      bool doubtful = doubts.nan;
      for (std::int64_t i = 0; doubts.zero && !doubtful && i < strip.planes; ++i)
        doubtful = HasMinusZeros(plan, strip.from + plan.left + i * plan.source_pitch, 0, plan.rows);
      if (!doubtful) return;
    }
    values.fold(plan, strip);
  }

  void FoldBand(const StripPlan& plan, const T* from, std::int64_t slice, std::int64_t first_row, std::int64_t end_row,
                const std::int32_t*, std::int64_t room, T* to, CodeOf<C>* codes) const {
    if (plan.keys) {
      const StripDoubts doubts =
          keys.FoldBand(plan, from, slice, first_row, end_row, nullptr, room, to, reinterpret_cast<Key*>(codes));
      if (!doubts.nan && (!doubts.zero || !HasMinusZeros(plan, from, first_row, end_row))) return;
    }
    values.FoldBand(plan, from, slice, first_row, end_row, nullptr, room, to, codes);
  }

  /// In the rows that windows of these output rows see.
  HWY_NOINLINE static bool HasMinusZeros(const StripPlan& plan, const T* from, std::int64_t first_row,
                                         std::int64_t end_row) {
    const hn::ScalableTag<Key> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const std::int64_t last = (end_row - 1) * plan.stride - plan.top + (plan.taps - 1) * plan.row_step;
    const std::int64_t begin = larger(0, first_row * plan.stride - plan.top) * plan.width;
    const std::int64_t end = smaller(plan.heights, last + 1) * plan.width;
    auto any = hn::MaskFromVec(hn::Zero(d));
    for (std::int64_t z = 0; z < plan.together; ++z) {
      const T* slice = from + z * plan.heights * plan.width;
      std::int64_t x = begin;
      for (; x + lanes <= end; x += lanes) any = hn::Or(any, Keys<T>::IsMinusZero(d, Keys<T>::Bits(d, slice + x)));
      for (; x < end; ++x) {
        if (to_float(slice[x]) == 0 && std::signbit(to_float(slice[x]))) return true;
      }
    }
    return !hn::AllFalse(d, any);
  }
};

/// Planes from `plane` on that one strip each covers, folded straight to where they belong, their codes to `codes`. Returns how many were.
template <Fold kFold, class T, class C, class AnyStrips>
std::int64_t FoldNarrowPlanes(const StripPlan& plan, const AnyStrips& strips, std::int64_t plane, std::int64_t end,
                              const T* source, T* target, CodeOf<C>* codes) {
  // Halves have no stores with masks: what a row leaves behind its end the next one overwrites, but for that of the last planes.
  constexpr bool kMasked = std::is_same_v<T, C>;
  const std::int64_t outputs = plan.rows * plan.columns;
  if (plan.streams || (kMasked && plan.staged) || plan.slices != 1 || plan.together != 1 || plan.kept != 0 ||
      plan.row_step != 1 || plan.columns > strips.lanes || plan.target_pitch != outputs ||
      plane * plan.source_pitch < plan.left) {
    return 0;
  }
  if (!kMasked) end -= ceil_div(strips.stored - plan.columns, outputs);
  end = smaller(end, (plan.extent - plan.reach) / plan.source_pitch + 1);  // what is read must be there
  if (plan.powers.roots || !kMasked)
    end = smaller(end, plane + larger(1, kTileBytes / (outputs * static_cast<std::int64_t>(sizeof(T)))));
  if (kFold == Fold::max_indexed) end = smaller(end, plane + plan.narrow_planes);
  if (plan.extent < plan.reach || plane >= end) return 0;
  strips.FoldPlanes(plan, {.from = source + plane * plan.source_pitch - plan.left,
                           .slice = 0,
                           .column = 0,
                           .first_row = 0,
                           .end_row = plan.rows,
                           .first_codes = plan.first_codes.empty() ? nullptr : plan.first_codes.data(),
                           .room = (end - plane) * outputs,
                           .to = target + plane * outputs,
                           .codes = codes,
                           .planes = end - plane});
  if constexpr (kFold == Fold::sum && std::is_same_v<T, float>) {
    for (std::int64_t i = plane; plan.powers.roots && i < end; ++i)
      TakeRoots(plan.powers, 0, outputs, target + i * outputs);
  }
  return end - plane;
}

/// An output slice from the slices of its windows, in order.
template <Fold kFold, class C, class T>
void FoldSlices(const StripPlan& plan, const RowRange& depth, const T* slices, const CodeOf<C>* slice_codes,
                const std::int32_t* HWY_RESTRICT first_codes, std::int64_t room, T* HWY_RESTRICT to,
                CodeOf<C>* HWY_RESTRICT to_codes) {
  const hn::ScalableTag<C> d;
  const hn::RebindToSigned<decltype(d)> di;
  using Code = CodeOf<C>;
  const std::int64_t count = plan.rows * plan.columns;
  std::int64_t places[kRowBlock];
  for (std::int64_t z = 0; z < depth.count; ++z) places[z] = (depth.first + z) % plan.kept * plan.slice_pitch;
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    Accumulator<decltype(d), kFold, false> a;
    a.First(d, hn::Set(d, IdentityOf<kFold, C>()),
            [&]() HWY_ATTR { return first_codes != nullptr ? LoadFirstCodes(di, first_codes + i) : hn::Zero(di); });
    for (std::int64_t z = 0; z < depth.count; ++z) {
      const std::int64_t at = places[z] + i;
      auto code = [&]() HWY_ATTR {
        const std::int64_t step = plan.flat ? 0 : (depth.skipped + z) * plan.taps * plan.taps;
        return hn::Add(hn::LoadU(di, slice_codes + at), hn::Set(di, static_cast<Code>(step)));
      };
      const auto v = LoadAs(d, slices + at);
      if (z == 0 && first_codes == nullptr) {
        a.First(d, v, code);
      } else {
        a.Next(d, v, code);
      }
    }
    StoreUpTo(d, a.value, room - i, to + i);
    if constexpr (kFold == Fold::max_indexed) hn::StoreU(a.code, di, to_codes + i);
  }
}

/// A slice, or those that are folded together, with room around what output rows [first_row, end_row) see of it: itself, or a copy where vectors
/// would reach beyond the tensor, of those rows or of all that is folded together.
template <class T>
const T* ReadableSlice(const StripPlan& plan, const T* source, std::int64_t plane, std::int64_t z,
                       std::int64_t first_row, std::int64_t end_row, char* scratch) {
  const std::int64_t slice = plan.heights * plan.width, at = plane * plan.source_pitch + z * slice;
  if (at >= plan.left && at + plan.reach <= plan.extent) return source + at;
  std::int64_t first = larger(0, first_row * plan.stride - plan.top);
  std::int64_t end =
      smaller(plan.heights, (end_row - 1) * plan.stride - plan.top + (plan.taps - 1) * plan.row_step + 1);
  const std::int64_t last = at + (plan.together - 1) * slice + (end - 1) * plan.width;
  if (at + first * plan.width >= plan.left && last + plan.row_reach <= plan.extent) return source + at;
  if (plan.together > 1) {
    first = 0;
    end = plan.together * plan.heights;
  }
  T* packed = reinterpret_cast<T*>(scratch + plan.packed_at) + plan.left;
  std::memcpy(static_cast<void*>(packed), source + at + first * plan.width,
              static_cast<std::size_t>((end - first) * plan.width) * sizeof(T));
  return packed - first * plan.width;
}

/// `count` results, where they are not in the tensors yet.
template <class T, class Code>
void PutResults(const StripPlan& plan, const T* values, T* target, std::int64_t count, const Code* codes, void* indices,
                std::int64_t index_at, Writers& writers) {
  if (plan.streams) {
    writers.values.Write(values, target, count);
  } else if (values != target) {
    std::memcpy(static_cast<void*>(target), values, static_cast<std::size_t>(count) * sizeof(T));
  }
  auto put = [&](auto* to) HWY_ATTR {
    if constexpr (sizeof(*to) == 8) {
      if (plan.streams) return writers.indices.Write(codes, to + index_at, count);
    }
    StoreAs(codes, to + index_at, count);
  };
  if (indices != nullptr) WithIndexType(plan.index_dtype, indices, put);
}

template <Fold kFold, class T, class C>
void FoldPlanesInStrips(const StripPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                        char* scratch) {
  using Code = CodeOf<C>;
  constexpr std::int64_t kNoEnd = std::int64_t{1} << 40;
  T* const staged = reinterpret_cast<T*>(scratch + plan.result_at);
  T* const slices = reinterpret_cast<T*>(scratch + plan.slices_at);
  Code* const slice_codes = reinterpret_cast<Code*>(scratch + plan.slice_codes_at);
  Code* const codes = reinterpret_cast<Code*>(scratch + plan.codes_at);
  const std::int64_t slice = plan.rows * plan.columns, outputs = plan.slices * slice;
  const std::conditional_t<kFold == Fold::max && kIsHalf<T>, KeyStrips<T, C>, Strips<kFold, T, C>> strips(plan);
  const bool puts = plan.staged || pointers.indices != nullptr;
  Writers writers;
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t plane = unit / plan.parts, part = unit % plan.parts;
    const T* source = static_cast<const T*>(pointers.source);
    T* const results = static_cast<T*>(pointers.target);
    const std::int64_t narrow =
        plan.parts > 1 ? 0 : FoldNarrowPlanes<kFold, T, C>(plan, strips, plane, end, source, results, codes);
    if (narrow > 0) {
      T* const first = results + plane * outputs;
      if (puts)
        PutResults(plan, first, first, narrow * outputs, codes, pointers.indices, plane * plan.index_pitch, writers);
      unit += narrow - 1;
      continue;
    }
    T* target = results + plane * plan.target_pitch;
    auto readable = [&](std::int64_t z, std::int64_t row, std::int64_t end_row) {
      return ReadableSlice(plan, source, plane, z, row, end_row, scratch);
    };
    const std::int64_t first_row = plan.rows * part / plan.parts, part_end = plan.rows * (part + 1) / plan.parts;
    auto result_at = [&](std::int64_t at) { return plan.staged ? staged : target + at; };
    // What is behind a part's rows of a slice belongs to another, which may be done.
    auto room_at = [&](std::int64_t at) {
      if (plan.staged) return kNoEnd;
      return (plan.parts > 1 ? at / slice * slice + part_end * plan.columns : outputs) - at;
    };
    auto put = [&](std::int64_t at, std::int64_t count) {
      if (!puts) return;
      PutResults(plan, result_at(at), target + at, count, codes, pointers.indices, plane * plan.index_pitch + at,
                 writers);
    };
    std::int64_t last_kept = -1;
    for (std::int64_t o = 0; o < plan.slices; ++o) {
      const RowRange& depth = plan.depth_rows[static_cast<std::size_t>(o)];
      const std::int32_t* first_codes = plan.first_codes.empty() ? nullptr : plan.first_codes.data();
      if (plan.kept == 0) {
        for (std::int64_t row = first_row; row < part_end; row += plan.band) {
          const std::int64_t end_row = smaller(row + plan.band, part_end), at = o * slice + row * plan.columns;
          const T* from = readable(depth.first, row, end_row);
          strips.FoldBand(plan, from, depth.first, row, end_row, first_codes != nullptr ? first_codes + at : nullptr,
                          room_at(at), result_at(at), codes);
          if constexpr (kFold == Fold::sum && std::is_same_v<T, float>) {
            if (plan.powers.roots)
              TakeRoots(plan.powers, row * plan.columns, (end_row - row) * plan.columns, result_at(at));
          }
          put(at, (end_row - row) * plan.columns);
        }
        continue;
      }
      if constexpr (kFold != Fold::sum) {
        for (std::int64_t z = larger(depth.first, last_kept + 1); z < depth.first + depth.count; ++z) {
          const std::int64_t at = z % plan.kept * plan.slice_pitch;
          for (std::int64_t row = 0; row < plan.rows; row += plan.band) {
            const std::int64_t end_row = smaller(row + plan.band, plan.rows), row_at = at + row * plan.columns;
            const T* from = readable(z, row, end_row);
            strips.FoldBand(plan, from, z, row, end_row, nullptr, kNoEnd, slices + row_at, slice_codes + row_at);
          }
          last_kept = z;
        }
        const std::int64_t at = o * slice;
        FoldSlices<kFold, C>(plan, depth, slices, slice_codes, first_codes != nullptr ? first_codes + at : nullptr,
                             room_at(at), result_at(at), codes);
        put(at, slice);
      }
    }
  }
}

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
