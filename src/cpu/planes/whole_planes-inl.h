// Averages and maxima over whole planes. The columns of a plane are summed up in the lanes of vectors, whose rows need not be aligned; those sums are
// added to each other, turned for as many planes as a vector has lanes, and added along. Maxima need no order, but for where they lie, the sign of a zero and the
// choice of a NaN.
#if defined(CENOTE_CPU_PLANES_WHOLE_PLANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_PLANES_WHOLE_PLANES_INL_H_
#undef CENOTE_CPU_PLANES_WHOLE_PLANES_INL_H_
#else
#define CENOTE_CPU_PLANES_WHOLE_PLANES_INL_H_
#endif

#include <hwy/cache_control.h>

#include "cpu/planes/whole_planes.hpp"
#include "cpu/rows/along-inl.h"
#include "cpu/rows/finish-inl.h"
#include "cpu/thresholds.hpp"
#include "cpu/vectors/stream-inl.h"
#include "cpu/vectors/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR  // see kHasVectors

/// Vectors of columns that are summed up down the rows in one go: as many as have registers everywhere.
inline constexpr int kColumnVectors = 8;

/// Asks for what is summed up some time later, which may be beyond the tensor. (Halves gain nothing: 52 us and 57.)
template <class T>
HWY_INLINE void FetchAhead(const T* at) {
  if constexpr (sizeof(T) >= sizeof(float)) {
    hwy::Prefetch(reinterpret_cast<const T*>(reinterpret_cast<std::uintptr_t>(at) + kWholeAhead));
  } else {
    (void)at;
  }
}

/// Sums of neighbouring vectors of columns, down rows `pitch` elements apart. `tail`: the last vector of the last row, a copy where nothing may be read behind it.
template <class D, class T, int kVectors>
HWY_INLINE void SumColumns(D d, const T* row, std::int64_t rows, std::int64_t pitch, const T* tail,
                           hn::Vec<D> (&sums)[kVectors]) {
  CENOTE_UNROLL
  for (auto& sum : sums) sum = hn::Zero(d);
  for (std::int64_t y = 1; y < rows; ++y, row += pitch) {
    CENOTE_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      FetchAhead(row + i * hn::MaxLanes(d));
      sums[i] = hn::Add(sums[i], LoadAs(d, row + i * hn::MaxLanes(d)));
    }
  }
  CENOTE_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    FetchAhead(row + i * hn::MaxLanes(d));
    sums[i] = hn::Add(sums[i], LoadAs(d, i + 1 < kVectors ? row + i * hn::MaxLanes(d) : tail));
  }
}

/// What the sums of a plane's columns add up to, one sum per position modulo kLanes of LaneSums; the sums themselves where there are no more.
template <class D, class T, class C = hn::TFromD<D>>
HWY_NOINLINE void SumWidePlane(D d, const WholePlanes& plan, const T* plane, bool is_last, C* HWY_RESTRICT to) {
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  constexpr auto kParts = static_cast<int>(LaneSums<D>::kLanes / kLanes);
  static_assert(kColumnVectors % kParts == 0);
  const std::int64_t vectors = ceil_div(plan.width, kLanes), rest = plan.width - (vectors - 1) * kLanes;
  const T* tail = plane + plan.rows * plan.width - rest;
  HWY_ALIGN T copy[kLanes];  // of what lies behind, no sum is used
  if (is_last) {
    std::memcpy(static_cast<void*>(copy), tail, static_cast<std::size_t>(rest) * sizeof(T));
    tail = copy;
  }
  hn::Vec<D> parts[kParts];
  CENOTE_UNROLL
  for (auto& part : parts) part = hn::Zero(d);
  for (std::int64_t v = 0; v < vectors; v += kColumnVectors) {
    const T* first = plane + v * kLanes;
    const std::int64_t left = vectors - v;
    auto sum_up = [&](auto count) HWY_ATTR CENOTE_ALWAYS_INLINE {
      constexpr int kCount = decltype(count)::value;
      const bool ends = left <= kColumnVectors;
      hn::Vec<D> sums[kCount];
      SumColumns(d, first, plan.rows, plan.width,
                 ends ? tail : first + (plan.rows - 1) * plan.width + (kCount - 1) * kLanes, sums);
      if (ends) sums[kCount - 1] = hn::IfThenElseZero(hn::FirstN(d, static_cast<std::size_t>(rest)), sums[kCount - 1]);
      CENOTE_UNROLL
      for (int i = 0; i < kCount; ++i) parts[i % kParts] = hn::Add(parts[i % kParts], sums[i]);
    };
    switch (left) {
      case 1: sum_up(std::integral_constant<int, 1>()); break;
      case 2: sum_up(std::integral_constant<int, 2>()); break;
      case 3: sum_up(std::integral_constant<int, 3>()); break;
      case 4: sum_up(std::integral_constant<int, 4>()); break;
      case 5: sum_up(std::integral_constant<int, 5>()); break;
      case 6: sum_up(std::integral_constant<int, 6>()); break;
      case 7: sum_up(std::integral_constant<int, 7>()); break;
      default: sum_up(std::integral_constant<int, kColumnVectors>());
    }
  }
  CENOTE_UNROLL
  for (int i = 0; i < kParts; ++i) hn::Store(parts[i], d, to + i * kLanes);
}

/// The same of a plane of one row, which takes a few instructions: no call, no copy.
template <class D, class T, class C = hn::TFromD<D>>
HWY_INLINE void SumRow(D d, const T* row, std::int64_t width, C* HWY_RESTRICT to) {
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  constexpr auto kParts = static_cast<int>(LaneSums<D>::kLanes / kLanes);
  hn::Vec<D> parts[kParts];
  CENOTE_UNROLL
  for (auto& part : parts) part = hn::Zero(d);
  std::int64_t x = 0;
  for (; x + kParts * kLanes <= width; x += kParts * kLanes) {
    CENOTE_UNROLL
    for (int i = 0; i < kParts; ++i) {
      FetchAhead(row + x + i * kLanes);
      parts[i] = hn::Add(parts[i], LoadAs(d, row + x + i * kLanes));
    }
  }
  CENOTE_UNROLL
  for (int i = 0; i < kParts; ++i, x += kLanes) {
    if (x >= width) break;
    const auto inside = hn::FirstN(d, static_cast<std::size_t>(width - x));
    FetchAhead(row + x);
    if constexpr (std::is_same_v<T, C>) {
      parts[i] = hn::Add(parts[i], hn::MaskedLoad(inside, d, row + x));
    } else {
      parts[i] = hn::Add(parts[i], hn::IfThenElseZero(inside, LoadAs(d, row + x)));
    }
  }
  CENOTE_UNROLL
  for (int i = 0; i < kParts; ++i) hn::Store(parts[i], d, to + i * kLanes);
}

/// The sums of the columns of a plane that one vector covers, where several rows of it would reach beyond the tensor.
template <class D, class T, class C = hn::TFromD<D>>
HWY_NOINLINE void SumLastPlane(D d, const WholePlanes& plan, const T* plane, C* HWY_RESTRICT to) {
  HWY_ALIGN T copy[hn::MaxLanes(d)];
  auto sum = hn::Zero(d);
  for (std::int64_t y = 0; y < plan.rows; ++y) {
    std::memcpy(static_cast<void*>(copy), plane + y * plan.width, static_cast<std::size_t>(plan.width) * sizeof(T));
    sum = hn::Add(sum, LoadAs(d, copy));
  }
  hn::Store(sum, d, to);
}

/// v[i] becomes fold(v[i], v[i + kHalf]).
template <std::size_t kHalf, class D, class Fold, std::size_t kSize>
HWY_INLINE void FoldPairs(D, hn::Vec<D> (&v)[kSize], const Fold& fold) {
  CENOTE_UNROLL
  for (std::size_t i = 0; i < kHalf; ++i) v[i] = fold(v[i], v[i + kHalf]);
}

/// The totals of as many planes as there are lanes, one in each, in the order of LaneSums: lane i and lane i + n/2, until there is one. Pairs of planes
/// share vectors then, so that nothing is turned. `sums`: kParts of each plane, of which the first `used` count.
template <std::size_t kParts, class D, class C = hn::TFromD<D>>
HWY_NOINLINE hn::Vec<D> TotalsInLanes(D d, const C* sums, std::int64_t used, std::int64_t count) {
  constexpr std::size_t kLanes = hn::MaxLanes(d), kBlock = 16 / sizeof(C);
  using V = hn::Vec<D>;
  V v[kLanes];
  const auto inside = hn::FirstN(d, static_cast<std::size_t>(used));
  CENOTE_UNROLL
  for (std::size_t i = 0; i < kLanes; ++i) {
    const C* plane = sums + smaller(static_cast<std::int64_t>(i), count - 1) * static_cast<std::int64_t>(kParts);
    V parts[kParts / kLanes];
    CENOTE_UNROLL
    for (std::size_t part = 0; part < kParts / kLanes; ++part) parts[part] = hn::Load(d, plane + part * kLanes);
    CENOTE_UNROLL
    for (std::size_t half = kParts / kLanes / 2; half > 0; half /= 2) {
      CENOTE_UNROLL
      for (std::size_t part = 0; part < half; ++part) parts[part] = hn::Add(parts[part], parts[part + half]);
    }
    // Sums start from +0, and where there are fewer columns than lanes the others count as none.
    v[i] = kParts > kLanes ? parts[0] : hn::Add(hn::Zero(d), hn::IfThenElseZero(inside, parts[0]));
  }
  if constexpr (kLanes > kBlock) {
    FoldPairs<kLanes / 2>(
        d, v, [d](V a, V b) HWY_ATTR { return hn::Add(hn::ConcatLowerLower(d, b, a), hn::ConcatUpperUpper(d, b, a)); });
  }
  if constexpr (kLanes > 2 * kBlock) {
    static_assert(kLanes == 4 * kBlock);
    FoldPairs<kLanes / 4>(d, v, [](V a, V b) HWY_ATTR {
      return hn::Add(hn::OddEvenBlocks(b, a), hn::SwapAdjacentBlocks(hn::OddEvenBlocks(a, b)));
    });
  }
  const hn::Repartition<std::uint64_t, D> d64;
  FoldPairs<kBlock / 2>(d, v, [d, d64](V a, V b) HWY_ATTR {
    const auto low = hn::InterleaveLower(d64, hn::BitCast(d64, a), hn::BitCast(d64, b));
    const auto high = hn::InterleaveUpper(d64, hn::BitCast(d64, a), hn::BitCast(d64, b));
    return hn::Add(hn::BitCast(d, low), hn::BitCast(d, high));
  });
  if constexpr (kBlock > 2) {
    FoldPairs<1>(d, v,
                 [](V a, V b) HWY_ATTR { return hn::Add(hn::OddEven(b, a), hn::Shuffle2301(hn::OddEven(a, b))); });
  }
  return v[0];
}

/// Planes [first, first + count), no more than D has lanes. kWide: they have more columns.
template <bool kWide, class D, class T, class C = hn::TFromD<D>>
HWY_INLINE void AverageGroup(D d, const WholePlanes& plan, const T* from, std::int64_t first, std::int64_t count,
                             T* to) {
  constexpr std::size_t kLanes = hn::MaxLanes(d), kParts = kWide ? LaneSums<D>::kLanes : kLanes;
  HWY_ALIGN C sums[kLanes * kParts];
  const std::int64_t last_row = (plan.rows - 1) * plan.width;
  const std::int64_t read =
      last_row + ceil_div(plan.width, static_cast<std::int64_t>(kLanes)) * static_cast<std::int64_t>(kLanes);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = (first + i) * plan.pitch;
    const bool is_last = at + read > plan.extent;
    const T* plane = from + at;
    C* parts = sums + static_cast<std::size_t>(i) * kParts;
    if constexpr (kWide) {
      if (plan.rows == 1 && !is_last) {
        SumRow(d, plane, plan.width, parts);
      } else {
        SumWidePlane(d, plan, plane, is_last, parts);
      }
    } else if (HWY_UNLIKELY(is_last)) {
      SumLastPlane(d, plan, plane, parts);
    } else {
      auto sum = LoadAs(d, plane);
      for (std::int64_t y = plan.width; y <= last_row; y += plan.width) sum = hn::Add(sum, LoadAs(d, plane + y));
      hn::Store(sum, d, parts);
    }
  }
  auto total = hn::Zero(d);
  // Rows that are not added up in lanes have vectors that are no longer.
  constexpr bool kInLanes = static_cast<std::int64_t>(kLanes) > kSpannedTaps - (kWide ? 1 : 0);
  if (kInLanes || plan.sums_in_lanes) {
    total = TotalsInLanes<kParts>(d, sums, smaller(plan.width, kParts), count);
  } else if constexpr (!kInLanes) {
    HWY_ALIGN C columns[kLanes * kParts];
    const std::int64_t parts = smaller(plan.width, kParts);
    PlanesToColumns<static_cast<int>(kLanes), hwy::MakeUnsigned<C>>(sums, kParts, count, parts, columns);
    for (std::int64_t x = 0; x < parts; ++x)
      total = hn::Add(total, hn::Load(d, columns + static_cast<std::size_t>(x) * kLanes));
  }
  hn::Store(Quotient(d, total, hn::Set(d, static_cast<C>(plan.divisor)), plan.divisor < 0), d, sums);
  StoreAs(sums, to + first, count);
}

template <class T, class C>
void AverageWholePlanes(const WholePlanes& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                        char*) {
  auto average = [&](auto d, auto wide) HWY_ATTR {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t first = unit * plan.group, count = smaller(plan.group, plan.planes - first);
      for (std::int64_t i = 0; i < count; i += lanes) {
        AverageGroup<wide()>(d, plan, static_cast<const T*>(pointers.source), first + i, smaller(lanes, count - i),
                             static_cast<T*>(pointers.target));
      }
    }
  };
  // The shorter the vectors, the fewer of them cross a line.
  const hn::CappedTag<C, kWholeLanes / 2> few;
  const hn::CappedTag<C, kWholeLanes> most;
  if (plan.width <= static_cast<std::int64_t>(hn::Lanes(few))) {
    average(few, std::false_type());
  } else if (plan.width <= static_cast<std::int64_t>(hn::Lanes(most))) {
    average(most, std::false_type());
  } else {
    average(most, std::true_type());
  }
}

/// Where a maximum lies, from the first element that was looked at, and what it is.
template <class C>
struct Winner {
  C value;
  std::int64_t at;
};

/// The largest of a piece of at least a vector; NaN where there is one. Of zeros, either.
template <class D, class T>
HWY_INLINE hn::TFromD<D> LargestOf(D d, const T* piece, std::int64_t elements) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  Accumulator<D, Fold::max, false> a{LoadAs(d, piece)}, b{LoadAs(d, piece + elements - lanes)};
  std::int64_t x = lanes;
  if (elements >= 8 * lanes) {  // two maxima would wait for themselves
    Accumulator<D, Fold::max, false> c = a, e = b;
    for (; x + 4 * lanes <= elements; x += 4 * lanes) {
      CENOTE_UNROLL
      for (int i = 0; i < 4; ++i) FetchAhead(piece + x + i * lanes);
      a.Next(d, LoadAs(d, piece + x), nullptr);
      b.Next(d, LoadAs(d, piece + x + lanes), nullptr);
      c.Next(d, LoadAs(d, piece + x + 2 * lanes), nullptr);
      e.Next(d, LoadAs(d, piece + x + 3 * lanes), nullptr);
    }
    a.Next(d, c.value, nullptr);
    b.Next(d, e.value, nullptr);
  }
  for (; x + 2 * lanes <= elements; x += 2 * lanes) {
    a.Next(d, LoadAs(d, piece + x), nullptr);
    b.Next(d, LoadAs(d, piece + x + lanes), nullptr);
  }
  if (x + lanes <= elements) a.Next(d, LoadAs(d, piece + x), nullptr);
  a.Next(d, b.value, nullptr);
  if (HWY_UNLIKELY(!hn::AllFalse(d, hn::IsNaN(a.value)))) return std::numeric_limits<hn::TFromD<D>>::quiet_NaN();
  return hn::GetLane(hn::MaxOfLanes(d, a.value));
}

/// The last NaN of a piece that has one.
template <class D, class T, class C = hn::TFromD<D>>
HWY_NOINLINE Winner<C> LastNaN(D d, const T* piece, std::int64_t elements) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t x = elements - lanes;; x = larger(0, x - lanes)) {
    const auto v = LoadAs(d, piece + x);
    if (hn::AllFalse(d, hn::IsNaN(v))) continue;
    HWY_ALIGN C found[hn::MaxLanes(d)];
    hn::Store(v, d, found);
    std::int64_t lane = lanes - 1;
    while (!std::isnan(found[lane])) --lane;
    return {found[lane], x + lane};
  }
}

/// The first element of a piece that equals its largest, which is no NaN. 64 are looked at before it is asked whether it is among them: where it is cannot be foretold.
template <class D, class T, class C = hn::TFromD<D>>
HWY_INLINE Winner<C> FirstEqual(D d, const T* piece, std::int64_t elements, C largest) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  using Bits = std::conditional_t<hn::MaxLanes(D()) <= 8, std::uint8_t, std::uint16_t>;
  static_assert(hn::MaxLanes(D()) <= 16);
  const auto wanted = hn::Set(d, largest);
  std::int64_t x = 0, at = 0;
  for (; x + 64 <= elements; x += 64) {
    auto equal = hn::Eq(LoadAs(d, piece + x), wanted);
    CENOTE_UNROLL
    for (std::int64_t i = hn::MaxLanes(d); i < 64; i += hn::MaxLanes(d))
      equal = hn::Or(equal, hn::Eq(LoadAs(d, piece + x + i), wanted));
    if (!hn::AllFalse(d, equal)) break;
  }
  for (;; x += 64) {
    const std::int64_t first = smaller(x, elements - lanes), end = smaller(x + 64, elements);
    std::uint64_t equal = 0;
    for (std::int64_t i = x; i < end; i += lanes) {
      const std::int64_t from = smaller(i, elements - lanes);
      Bits bits;
      hn::StoreMaskBits(d, hn::Eq(LoadAs(d, piece + from), wanted), reinterpret_cast<std::uint8_t*>(&bits));
      equal |= static_cast<std::uint64_t>(bits) << (from - first);
    }
    if (equal == 0) continue;
    at = first + static_cast<std::int64_t>(hwy::Num0BitsBelowLS1Bit_Nonzero64(equal));
    break;
  }
  if (HWY_LIKELY(largest != C{0})) return {largest, at};
  HWY_ALIGN C found[hn::MaxLanes(d)];  // the sign of that zero
  const std::int64_t from = smaller(at, elements - lanes);
  hn::Store(LoadAs(d, piece + from), d, found);
  return {found[at - from], at};
}

/// Where the largest of a piece lies: the first of equals, the last NaN.
template <class D, class T, class C = hn::TFromD<D>>
HWY_INLINE Winner<C> WinnerOf(D d, const T* piece, std::int64_t elements, C largest) {
  if (HWY_UNLIKELY(largest != largest)) return LastNaN(d, piece, elements);
  return FirstEqual(d, piece, elements, largest);
}

/// The first zero of a plane that has one.
template <class D, class T>
HWY_NOINLINE hn::TFromD<D> FirstZero(D d, const T* plane, std::int64_t elements) {
  return FirstEqual(d, plane, elements, hn::TFromD<D>{0}).value;
}

/// The maximum of a plane of at least a vector. It is looked for where its bits depend on that alone.
template <class D, class T, class C = hn::TFromD<D>>
HWY_INLINE C MaxOfPlane(D d, const T* plane, std::int64_t elements) {
  const C largest = LargestOf(d, plane, elements);
  if (HWY_LIKELY(largest < C{0} || largest > C{0})) return largest;
  return largest == C{0} ? FirstZero(d, plane, elements) : LastNaN(d, plane, elements).value;
}

/// And where it lies, which is looked for in the piece alone that has it.
template <class D, class T, class C = hn::TFromD<D>>
HWY_INLINE Winner<C> FindMaxOfPlane(D d, const T* plane, std::int64_t elements) {
  constexpr auto kPiece = static_cast<std::int64_t>(kWholePieceBytes / sizeof(T));
  std::int64_t first = 0, size = 0;
  C largest = 0;
  for (std::int64_t at = 0, count; at < elements; at += count) {
    count = elements - at < 2 * kPiece ? elements - at : kPiece;
    const C in_piece = LargestOf(d, plane + at, count);
    if (at > 0 && !(in_piece > largest) && in_piece == in_piece) continue;  // nothing is larger than a NaN, either
    largest = in_piece;
    first = at;
    size = count;
  }
  const Winner<C> winner = WinnerOf(d, plane + first, size, largest);
  return {winner.value, first + winner.at};
}

template <class T, class C>
void MaxOfWholePlanes(const WholePlanes& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                      char*) {
  const hn::ScalableTag<C> d;
  const std::int64_t elements = plan.rows * plan.width;
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t first = unit * plan.group, count = smaller(plan.group, plan.planes - first);
    const T* planes = static_cast<const T*>(pointers.source) + first * plan.pitch;
    C maxima[kWholeLanes];
    if (!plan.finds) {
      for (std::int64_t i = 0; i < count; ++i) maxima[i] = MaxOfPlane(d, planes + i * plan.pitch, elements);
    } else {
      std::int32_t places[kWholeLanes];
      for (std::int64_t i = 0; i < count; ++i) {
        const Winner<C> winner = FindMaxOfPlane(d, planes + i * plan.pitch, elements);
        maxima[i] = winner.value;
        places[i] = static_cast<std::int32_t>(winner.at);
      }
      auto put = [&](auto* to) HWY_ATTR { StoreAs(places, to + first, count); };
      WithIndexType(plan.index_dtype, pointers.indices, put);
    }
    StoreAs(maxima, static_cast<T*>(pointers.target) + first, count);
  }
}

/// Every element of a plane gets its share: of no sum, but as if it had been added to one.
template <class T, class C>
void SpreadWholePlanes(const WholePlanes& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                       char* scratch) {
  using U = hwy::UnsignedFromSize<sizeof(T)>;
  const hn::ScalableTag<C> d;
  const hn::ScalableTag<U> du;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(du));
  const std::int64_t elements = plan.rows * plan.width;
  const std::int64_t piece = plan.streams ? smaller(elements, kStreamedPiece) : elements;
  StreamWriter writer;
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t first = unit * plan.group, count = smaller(plan.group, plan.planes - first);
    HWY_ALIGN C values[kWholeLanes + hn::MaxLanes(d)] = {};
    T shares[kWholeLanes];
    LoadElements(static_cast<const T*>(pointers.source) + first, values, count);
    const auto divisor = hn::Set(d, static_cast<C>(plan.divisor));
    for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
      const auto share = Quotient(d, hn::LoadU(d, values + i), divisor, plan.divisor < 0);
      hn::StoreU(hn::Add(hn::Zero(d), share), d, values + i);
    }
    StoreAs(values, shares, count);
    for (std::int64_t i = 0; i < count; ++i) {
      U* target = static_cast<U*>(pointers.target) + (first + i) * plan.pitch;
      U* filled = plan.streams ? reinterpret_cast<U*>(scratch) : target;
      U bits;
      std::memcpy(&bits, shares + i, sizeof(bits));
      const auto share = hn::Set(du, bits);
      std::int64_t x = 0;
      for (; x + lanes <= piece; x += lanes) hn::StoreU(share, du, filled + x);
      if (x < piece && piece >= lanes) {
        hn::StoreU(share, du, filled + piece - lanes);
      } else {
        for (; x < piece; ++x) filled[x] = bits;
      }
      for (std::int64_t at = 0; plan.streams && at < elements; at += piece)
        writer.Write(filled, target + at, smaller(piece, elements - at));
    }
  }
}

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
