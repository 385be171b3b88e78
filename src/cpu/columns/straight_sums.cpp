// Averages and sums of columns of many channels, each output straight from its taps, or from sums of columns that windows share.
#include "cpu/columns/straight_columns.hpp"

#include "cpu/thresholds.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/columns/straight_sums.cpp"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>

#include "cpu/columns/straight_columns-inl.h"
#include "cpu/rows/along-inl.h"
#include "cpu/vectors/quotient-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

/// bf16: two channels lie in each lane of a vector of 32 bits, the upper one an f32 but for bits to be cut off, the lower one a shift away from it. They are
/// summed up apart, rounded apart and put together again: nothing is spread over wider vectors.
struct PairedChannels {
  using Bits = std::uint16_t;
  using Words = hn::RebindToUnsigned<ColumnLanes>;
  using Halves = hn::Repartition<std::uint16_t, ColumnLanes>;
  static constexpr int kParts = 2;
  static constexpr int kMost = HWY_MAX_BYTES == 64 ? 4 : 2;
  static constexpr std::int64_t kElements = hn::MaxLanes(Halves());

  /// The lower channels of each pair first, then the upper ones.
  template <int kVectors>
  static HWY_INLINE void Load(const std::uint16_t* from, ColumnVector (&to)[kVectors]) {
    constexpr int kPairs = kVectors / 2;
    CENOTE_UNROLL
    for (int v = 0; v < kPairs; ++v) {
      const auto word = hn::BitCast(Words(), hn::LoadU(Halves(), from + v * kElements));
      to[v] = hn::BitCast(ColumnLanes(), hn::ShiftLeft<16>(word));
      to[kPairs + v] = hn::BitCast(ColumnLanes(), hn::And(word, hn::Set(Words(), 0xffff0000U)));
    }
  }

  template <int kVectors>
  static HWY_INLINE void Store(const ColumnVector (&values)[kVectors], bool streams, std::uint16_t* to) {
    constexpr int kPairs = kVectors / 2;
    CENOTE_UNROLL
    for (int v = 0; v < kPairs; ++v) {
      const auto lower = RoundWord(values[v]), upper = RoundWord(values[kPairs + v]);
      const auto both = hn::Or(hn::ShiftRight<16>(lower), hn::And(upper, hn::Set(Words(), 0xffff0000U)));
      const auto pair = hn::BitCast(Halves(), both);
      std::uint16_t* at = to + v * kElements;
      if (streams) {
        hn::Stream(pair, Halves(), at);
      } else {
        hn::StoreU(pair, Halves(), at);
      }
    }
  }

 private:
  /// To the nearest, ties to even; the upper half of each word counts. NaN stays NaN: that of a bf16, or of an operation, has a lower half of zeros.
  static HWY_INLINE hn::Vec<Words> RoundWord(ColumnVector v) {
    const auto word = hn::BitCast(Words(), v);
    const auto odd = hn::And(hn::ShiftRight<16>(word), hn::Set(Words(), 1U));
    return hn::Add(word, hn::Add(odd, hn::Set(Words(), 0x7fffU)));
  }
};

/// f16: converted as they are read, and rounded once.
struct HalfChannels {
  using Bits = f16;
  static constexpr int kParts = 1;
  static constexpr int kMost = SingleChannels::kMost;
  static constexpr std::int64_t kElements = SingleChannels::kElements;

  template <int kVectors>
  static HWY_INLINE void Load(const f16* from, ColumnVector (&to)[kVectors]) {
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) to[v] = LoadAs(ColumnLanes(), from + v * kElements);
  }

  template <int kVectors>
  static HWY_INLINE void Store(const ColumnVector (&values)[kVectors], bool streams, f16* to) {
    const RoundedTag<f16, ColumnLanes> d;
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const auto rounded = RoundVector<f16>(ColumnLanes(), values[v]);
      auto* at = reinterpret_cast<RoundedLane<f16>*>(to + v * kElements);
      if (streams) {
        hn::Stream(rounded, d, at);
      } else {
        hn::StoreU(rounded, d, at);
      }
    }
  }
};

/// What becomes of sums.
template <class Channels>
struct FinishOf {
  using Type = Divisor;
};

/// f32, squares of which are summed up.
struct SquaredChannels : SingleChannels {
  static constexpr int kMost = 4;  // roots are what takes longest

  template <int kVectors>
  static HWY_INLINE void Load(const float* from, ColumnVector (&to)[kVectors]) {
    SingleChannels::Load(from, to);
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) to[v] = hn::Mul(to[v], to[v]);
  }
};
template <>
struct FinishOf<SquaredChannels> {
  using Type = NormOfSquares;
};

template <class Channels>
using Finish = typename FinishOf<Channels>::Type;

/// The lines of kSums sums' operands, asked for early.
template <class Channels, int kSums>
HWY_INLINE void FetchSums(const typename Channels::Bits* from) {
  constexpr std::int64_t kBytes =
      kSums / Channels::kParts * Channels::kElements * static_cast<std::int64_t>(sizeof(typename Channels::Bits));
  CENOTE_UNROLL
  for (std::int64_t at = 0; at < kBytes; at += 64) hwy::Prefetch(reinterpret_cast<const char*>(from) + at);
}

/// kSums vectors of what the rows hold from `at` on, added up down them. kRows: how many in a single slice, 0 where only known at run time. `next`: what will be added up
/// after these. kFetches: its rows, and those of `at`, are asked for some rows early, see kRowsAhead. A row is read before the next: the compiler's order, a line of each in turns, is
/// slower where they come from the last-level cache. (Two threads: 2x2/2 averages over 8 x 56 x 56 x 128 82 us, row by row 75.)
template <class Channels, int kRows, bool kFetches = false, int kSums>
HWY_INLINE void SumDownRows(const StraightRun<typename Channels::Bits>& run, const typename Channels::Bits* at,
                            const typename Channels::Bits* next, ColumnVector (&sum)[kSums]) {
  using Bits = typename Channels::Bits;
  Channels::Load(at, sum);
  auto add = [&](const Bits* from) HWY_ATTR CENOTE_ALWAYS_INLINE {
    asm("" : "+r"(from));  // one address for all
    ColumnVector more[kSums];
    Channels::Load(from, more);
    CENOTE_UNROLL
    for (int v = 0; v < kSums; ++v) sum[v] = hn::Add(sum[v], more[v]);
  };
  if constexpr (kRows > 0) {
    CENOTE_UNROLL
    for (int y = 1; y < kRows; ++y) {
      const Bits* from = at + y * run.row_step;
      CENOTE_UNROLL
      for (int v = 0; v < kSums; ++v) asm("" : "+r"(from), "+v"(sum[v].raw));  // no line of it before those above
      add(from);
    }
    return;
  }
  const std::int64_t rows = run.rows, row_step = run.row_step;
  const Bits* from = at + row_step;
  if constexpr (!kFetches) {
    for (std::int64_t z = run.slices, y = 1;; y = 0) {
      for (; y < rows; ++y, from += row_step) add(from);
      if (--z == 0) break;
      from = at += run.slice_step;
    }
    return;
  }
  const std::int64_t ahead = smaller(rows, kRowsAhead);
  for (std::int64_t z = run.slices, y = 1;; y = 0) {
    const Bits* behind = z == 1 ? next : at + run.slice_step;
    const Bits* early = at + ahead * row_step;
    const Bits* const end = at + rows * row_step;
    auto fetch = [&]() HWY_ATTR CENOTE_ALWAYS_INLINE {
      early = early == end ? behind : early;
      FetchSums<Channels, kSums>(early);
      early += row_step;
    };
    if (y == 1) fetch();
    for (; y < rows; ++y, from += row_step) {
      add(from);
      fetch();
    }
    if (--z == 0) break;
    from = at += run.slice_step;
  }
}

/// What lanes of long windows hold, `used` slots of `size` floats, added up in the order of LaneSums, in the first of them.
HWY_NOINLINE inline void FoldSlots(std::int64_t used, std::int64_t size, float* slots) {
  constexpr std::int64_t kHalf = LaneSums<ColumnLanes>::kLanes / 2;
  const ColumnLanes d;
  for (std::int64_t x = 0; x < size; x += static_cast<std::int64_t>(hn::Lanes(d))) {
    ColumnVector part[kHalf];
    CENOTE_UNROLL
    for (int i = 0; i < kHalf; ++i) {
      part[i] = hn::Load(d, slots + i * size + x);
      if (used > kHalf) part[i] = hn::Add(part[i], hn::Load(d, slots + (kHalf + i) * size + x));
    }
    CENOTE_UNROLL
    for (int width = kHalf / 2; width > 0; width /= 2) {
      CENOTE_UNROLL
      for (int i = 0; i < width; ++i) part[i] = hn::Add(part[i], part[i + width]);
    }
    hn::Store(part[0], d, slots + x);
  }
}

/// The sums of an output's columns, added up in the lanes of long windows (see LaneSums), and those pairwise. Where no lane has two taps, those that are added up
/// first share a slot.
template <class Channels, bool kFetches, int kSums>
HWY_INLINE void SumInLanes(const StraightRun<typename Channels::Bits>& run, const typename Channels::Bits* at,
                           const typename Channels::Bits* next, ColumnVector (&total)[kSums]) {
  constexpr std::int64_t kLanes = LaneSums<ColumnLanes>::kLanes;
  constexpr std::int64_t kVector = hn::MaxLanes(ColumnLanes()), kSlot = kSums * kVector;
  const ColumnLanes d;
  HWY_ALIGN float slots[kLanes * kSlot];
  const std::int64_t used = run.taps <= kLanes ? kLanes / 2 : kLanes;
  for (std::int64_t tap = 0; tap < run.taps; ++tap, at += run.step) {
    ColumnVector sum[kSums];
    SumDownRows<Channels, 0, kFetches>(run, at, tap + 1 < run.taps ? at + run.step : next, sum);
    float* slot = slots + tap % used * kSlot;
    CENOTE_UNROLL
    for (int v = 0; v < kSums; ++v)
      hn::Store(hn::Add(tap < used ? hn::Zero(d) : hn::Load(d, slot + v * kVector), sum[v]), d, slot + v * kVector);
  }
  if (run.taps < used) std::fill(slots + run.taps * kSlot, slots + used * kSlot, 0.0F);
  FoldSlots(used, kSlot, slots);
  CENOTE_UNROLL
  for (int v = 0; v < kSums; ++v) total[v] = hn::Load(d, slots + v * kVector);
}

/// kSums vectors of an output: down the rows under each tap, then along, the order of the other ways to sum up. `next`: what is added up after it, see SumDownRows.
template <class Channels, int kRows, bool kFetches, int kSums>
HWY_INLINE void SumOfTaps(const StraightRun<typename Channels::Bits>& run, const typename Channels::Bits* at,
                          const typename Channels::Bits* next, ColumnVector (&total)[kSums]) {
  auto after = [&](std::int64_t tap) HWY_ATTR CENOTE_ALWAYS_INLINE { return tap < run.taps ? at + run.step : next; };
  SumDownRows<Channels, kRows, kFetches>(run, at, after(1), total);
  CENOTE_UNROLL
  for (int v = 0; v < kSums; ++v) total[v] = hn::Add(hn::Zero(ColumnLanes()), total[v]);  // no -0
  for (std::int64_t tap = 1; tap < run.taps; ++tap) {
    at += run.step;
    ColumnVector sum[kSums];
    SumDownRows<Channels, kRows, kFetches>(run, at, after(tap + 1), sum);
    CENOTE_UNROLL
    for (int v = 0; v < kSums; ++v) total[v] = hn::Add(total[v], sum[v]);
  }
}

/// kVectors vectors of channels, from c on, of outputs [first, end).
template <class Channels, int kRows, int kVectors>
HWY_NOINLINE void SumOfStretch(const StraightRun<typename Channels::Bits>& whole, const Finish<Channels>& by,
                               std::int64_t c, std::int64_t first, std::int64_t end) {
  const StraightRun<typename Channels::Bits> run = whole;  // which no store can change
  const Finish<Channels> finish = by;
  const typename Channels::Bits* at = run.source + first * run.apart + c;
  typename Channels::Bits* target = run.target + first * run.channels + c;
  for (std::int64_t o = first; o < end; ++o, at += run.apart, target += run.channels) {
    ColumnVector total[Channels::kParts * kVectors];
    bool done = false;
    if constexpr (kRows == 0 && !std::is_same_v<Channels, SquaredChannels>) {
      done = HWY_UNLIKELY(run.in_lanes);
      if (done) SumInLanes<Channels, false>(run, at, nullptr, total);
    }
    if (!done) SumOfTaps<Channels, kRows, false>(run, at, nullptr, total);
    finish.Apply(ColumnLanes(), total);
    Channels::Store(total, run.streams, target);
  }
}

/// Outputs one after the other, as their windows lie in memory; a stretch of all of them first where it is all that columns have, or is still in L1 for the next window; otherwise
/// of as many as an L1 holds, for to begin with each costs more than it takes to sum up.
template <class Channels, int kRows>
HWY_NOINLINE void SumOfRun(const StraightRun<typename Channels::Bits>& run, const Finish<Channels>& finish) {
  const std::int64_t channels = run.end - run.channel;
  bool at_once = run.apart < run.taps * run.step;
  for (std::int64_t vectors = 1; vectors <= Channels::kMost; vectors *= 2)
    at_once = at_once || channels == vectors * Channels::kElements;
  const auto bytes = static_cast<std::int64_t>(sizeof(typename Channels::Bits)) * run.slices * run.rows * run.apart;
  const std::int64_t most = larger(1, kTileBytes / larger(1, bytes)), step = at_once ? run.outputs : most;
  for (std::int64_t o = 0; o < run.outputs; o += step) {
    const std::int64_t end = smaller(o + step, run.outputs);
    ForStretches<Channels::kMost, Channels::kElements>(
        run.channel, run.end, [&](auto vectors, std::int64_t c) HWY_ATTR CENOTE_ALWAYS_INLINE {
          SumOfStretch<Channels, kRows, vectors()>(run, finish, c, o, end);
        });
  }
}

/// The same for columns of several stretches: what follows a stretch lies elsewhere, and is asked for early. (Two threads, without and with: averages of 7 x 7 over 32 x 2048 channels 59 us and 55,
/// of 28 x 28 over 8 x 512 66 and 56. Columns of one stretch follow each other, which the hardware sees by itself: 7x7/7 over 8 x 56 x 56 x 256 142 and 169.)
template <class Channels>
HWY_NOINLINE void SumOfLongRun(const StraightRun<typename Channels::Bits>& run, const Divisor& divisor) {
  constexpr std::int64_t kStretch = Channels::kMost * Channels::kElements;
  const std::int64_t whole = run.end - (run.end - run.channel) % kStretch;
  const typename Channels::Bits* at = run.source;
  typename Channels::Bits* target = run.target;
  for (std::int64_t o = 0; o < run.outputs; ++o, at += run.apart, target += run.channels) {
    for (std::int64_t c = run.channel; c < whole; c += kStretch) {
      const typename Channels::Bits* next = at + (c + kStretch < whole ? c + kStretch : run.apart + run.channel);
      ColumnVector total[Channels::kParts * Channels::kMost];
      if (run.in_lanes) {
        SumInLanes<Channels, true>(run, at + c, next, total);
      } else {
        SumOfTaps<Channels, 0, true>(run, at + c, next, total);
      }
      divisor.Apply(ColumnLanes(), total);
      Channels::Store(total, run.streams, target + c);
    }
  }
  if (whole == run.end) return;
  StraightRun<typename Channels::Bits> rest = run;
  rest.channel = whole;
  SumOfRun<Channels, 0>(rest, divisor);
}

/// To `count` vectors of sums the next kRows rows are added, or they begin with those.
template <class Channels, int kRows>
HWY_NOINLINE void AddRowsToSums(const typename Channels::Bits* from, std::int64_t row_step, std::int64_t count,
                                bool fresh, float* sums) {
  const ColumnLanes d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto add = [&](auto vectors) HWY_ATTR CENOTE_ALWAYS_INLINE {
    constexpr int kSums = Channels::kParts * vectors();
    // The parts of a vector lie side by side.
    auto place = [&](int v) HWY_ATTR CENOTE_ALWAYS_INLINE {
      return (v % vectors() * Channels::kParts + v / vectors()) * lanes;
    };
    ColumnVector sum[kSums];
    Channels::Load(from, sum);
    if (!fresh) {
      CENOTE_UNROLL
      for (int v = 0; v < kSums; ++v) sum[v] = hn::Add(hn::LoadU(d, sums + place(v)), sum[v]);
    }
    CENOTE_UNROLL
    for (int y = 1; y < kRows; ++y) {
      ColumnVector more[kSums];
      Channels::Load(from + y * row_step, more);
      CENOTE_UNROLL
      for (int v = 0; v < kSums; ++v) sum[v] = hn::Add(sum[v], more[v]);
    }
    CENOTE_UNROLL
    for (int v = 0; v < kSums; ++v) hn::StoreU(sum[v], d, sums + place(v));
    from += vectors() * Channels::kElements;
    sums += kSums * lanes;
  };
  constexpr int kMost = 4 / Channels::kParts;
  for (; count >= kMost; count -= kMost) add(std::integral_constant<int, kMost>{});
  for (; count > 0; --count) add(std::integral_constant<int, 1>{});
}

/// Windows of many rows that are taken in lanes: some rows at a time, as they lie in memory; the sums of all columns wait in `sums`.
template <class Channels>
HWY_NOINLINE void SumOfTallRun(const StraightRun<typename Channels::Bits>& run, const Divisor& divisor, float* sums) {
  const ColumnLanes d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t count = run.taps * run.channels / Channels::kElements;  // of vectors in a row of the window
  const std::int64_t column = run.channels / Channels::kElements * Channels::kParts * lanes;
  for (std::int64_t o = 0; o < run.outputs; ++o) {
    const typename Channels::Bits* slice = run.source + o * run.apart;
    bool fresh = true;
    for (std::int64_t z = 0; z < run.slices; ++z, slice += run.slice_step) {
      std::int64_t y = 0;
      auto add = [&](auto rows) HWY_ATTR {
        for (; y + rows() <= run.rows; y += rows(), fresh = false)
          AddRowsToSums<Channels, rows()>(slice + y * run.row_step, run.row_step, count, fresh, sums);
      };
      add(std::integral_constant<int, 8>{});
      add(std::integral_constant<int, 2>{});
      add(std::integral_constant<int, 1>{});
    }
    typename Channels::Bits* target = run.target + o * run.channels;
    for (std::int64_t x = 0; x < column; x += Channels::kParts * lanes, target += Channels::kElements) {
      ColumnVector total[Channels::kParts];
      CENOTE_UNROLL
      for (int part = 0; part < Channels::kParts; ++part) {
        LaneSums<ColumnLanes> lane_sums(d);
        for (std::int64_t tap = 0; tap < run.taps; ++tap)
          lane_sums.Add(tap, hn::LoadU(d, sums + tap * column + x + part * lanes));
        total[part] = lane_sums.Total();
      }
      divisor.Apply(d, total);
      Channels::Store(total, run.streams, target);
    }
  }
}

/// kSums vectors of channels of all outputs of a run, kApart columns apart: each column is summed up once, and stays in registers as long as a window of kTaps sees it.
template <class Channels, int kTaps, int kApart, int kSums>
HWY_INLINE void SlideAlong(const StraightRun<typename Channels::Bits>& run, const Divisor& divisor, std::int64_t c) {
  constexpr int kKept = kTaps - kApart;
  const typename Channels::Bits* at = run.source + c;
  typename Channels::Bits* target = run.target + c;
  ColumnVector kept[kKept][kSums];
  CENOTE_UNROLL
  for (int tap = 0; tap < kKept; ++tap, at += run.step) SumDownRows<Channels, 0>(run, at, nullptr, kept[tap]);
  for (std::int64_t o = 0; o < run.outputs; ++o, target += run.channels) {
    ColumnVector total[kSums];
    CENOTE_UNROLL
    for (int v = 0; v < kSums; ++v) {
      total[v] = hn::Add(hn::Zero(ColumnLanes()), kept[0][v]);  // no -0
      CENOTE_UNROLL
      for (int tap = 1; tap < kKept; ++tap) {
        total[v] = hn::Add(total[v], kept[tap][v]);
        kept[tap - 1][v] = kept[tap][v];
      }
    }
    CENOTE_UNROLL
    for (int tap = kKept; tap < kTaps; ++tap, at += run.step) {
      ColumnVector sum[kSums];
      SumDownRows<Channels, 0>(run, at, nullptr, sum);
      CENOTE_UNROLL
      for (int v = 0; v < kSums; ++v) {
        total[v] = hn::Add(total[v], sum[v]);
        if (tap >= kApart) kept[tap - kApart][v] = sum[v];
      }
    }
    divisor.Apply(ColumnLanes(), total);
    Channels::Store(total, run.streams, target);
  }
}

/// The same for any number of taps, whatever columns apart: the sums of a window's columns wait in L1.
template <class Channels, int kSums>
HWY_INLINE void SlideInRing(const StraightRun<typename Channels::Bits>& run, const Divisor& divisor, std::int64_t c) {
  constexpr std::int64_t kColumn = kSums * static_cast<std::int64_t>(hn::MaxLanes(ColumnLanes()));
  HWY_ALIGN float ring[kMostRingTaps * kColumn];
  const ColumnLanes d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t taps = run.taps, apart = run.apart / run.step;
  const typename Channels::Bits* at = run.source + c;
  typename Channels::Bits* target = run.target + c;
  std::int64_t next = 0;  // where a column's sum goes
  auto add_column = [&](ColumnVector(&sum)[kSums]) HWY_ATTR CENOTE_ALWAYS_INLINE {
    SumDownRows<Channels, 0>(run, at, nullptr, sum);
    CENOTE_UNROLL
    for (int v = 0; v < kSums; ++v) hn::Store(sum[v], d, ring + next * kColumn + v * lanes);
    at += run.step;
    next = next + 1 == taps ? 0 : next + 1;
  };
  ColumnVector sum[kSums];
  for (std::int64_t tap = 0; tap < taps - apart; ++tap) add_column(sum);
  for (std::int64_t o = 0; o < run.outputs; ++o, target += run.channels) {
    for (std::int64_t tap = 0; tap < apart; ++tap) add_column(sum);
    ColumnVector total[kSums];
    CENOTE_UNROLL
    for (int v = 0; v < kSums; ++v) total[v] = hn::Zero(d);
    for (std::int64_t tap = 0, from = next; tap + 1 < taps; ++tap) {
      CENOTE_UNROLL
      for (int v = 0; v < kSums; ++v) total[v] = hn::Add(total[v], hn::Load(d, ring + from * kColumn + v * lanes));
      from = from + 1 == taps ? 0 : from + 1;
    }
    CENOTE_UNROLL
    for (int v = 0; v < kSums; ++v) total[v] = hn::Add(total[v], sum[v]);
    divisor.Apply(d, total);
    Channels::Store(total, run.streams, target);
  }
}

/// kTaps: 0 where the sums of columns wait in L1.
template <class Channels, int kTaps, int kApart>
HWY_NOINLINE void SlideOverRun(const StraightRun<typename Channels::Bits>& run, const Divisor& divisor) {
  constexpr int kMost = (HWY_MAX_BYTES < 64 ? 2 : kTaps > 0 ? 8 : 4) / Channels::kParts;
  ForStretches<kMost, Channels::kElements>(
      run.channel, run.end, [&](auto vectors, std::int64_t c) HWY_ATTR CENOTE_ALWAYS_INLINE {
        if constexpr (kTaps > 0) {
          SlideAlong<Channels, kTaps, kApart, Channels::kParts * vectors()>(run, divisor, c);
        } else {
          SlideInRing<Channels, Channels::kParts * vectors()>(run, divisor, c);
        }
      });
}

template <class Channels>
HWY_INLINE void SumRun(const StraightRun<typename Channels::Bits>& run, const Divisor& divisor, float* tall_sums) {
  if (tall_sums != nullptr) return SumOfTallRun<Channels>(run, divisor, tall_sums);
  const std::int64_t columns = run.apart / run.step;
  const bool slides = run.outputs > 1 && run.apart % run.step == 0 && columns < run.taps && run.taps <= kMostRingTaps;
  if (slides && !run.in_lanes) {
    if (run.taps == 3 && columns == 1) return SlideOverRun<Channels, 3, 1>(run, divisor);
    if (run.taps == 3 && columns == 2) return SlideOverRun<Channels, 3, 2>(run, divisor);
    if (kFewReadings * columns < run.taps) return SlideOverRun<Channels, 0, 0>(run, divisor);
  }
  if (run.slices == 1 && run.rows == 2 && !run.in_lanes) return SumOfRun<Channels, 2>(run, divisor);
  if constexpr (Channels::kParts == 1 && HWY_MAX_BYTES == 64) {  // others: not measured
    if (run.channels > Channels::kMost * Channels::kElements) return SumOfLongRun<Channels>(run, divisor);
  }
  SumOfRun<Channels, 0>(run, divisor);
}

/// See StraightColumnsFn.
template <class Channels>
void SumOfColumns(const StraightColumnsPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                  char* scratch) {
  auto* tall_sums = plan.bytes > 0 ? reinterpret_cast<float*>(scratch) : nullptr;
  double known = 1;
  Divisor divisor;
  ForStraightRuns<typename Channels::Bits>(plan, pointers, begin, end,
                                           [&](const auto& run, double factor, const RunPlace&) HWY_ATTR {
                                             if (factor != known) divisor = Divisor(static_cast<float>(factor));
                                             known = factor;
                                             SumRun<Channels>(run, divisor, tall_sums);
                                           });
}

/// See StraightColumnsFn.
void NormOfColumns(const StraightColumnsPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                   char*) {
  ForStraightRuns<float>(plan, pointers, begin, end, [&](const auto& run, double taps, const RunPlace&) HWY_ATTR {
    SumOfRun<SquaredChannels, 0>(run, {static_cast<float>(taps), plan.whole});
  });
}

StraightColumnsFn NormOfColumnsOf(DType dtype) { return dtype == DType::f32 ? NormOfColumns : nullptr; }

StraightColumnsFn SumOfColumnsOf(DType dtype) {
  if (dtype == DType::f32) return SumOfColumns<SingleChannels>;
  if (dtype == DType::f16) return SumOfColumns<HalfChannels>;
  return dtype == DType::bf16 ? SumOfColumns<PairedChannels> : nullptr;
}

#else

StraightColumnsFn SumOfColumnsOf(DType) { return nullptr; }
StraightColumnsFn NormOfColumnsOf(DType) { return nullptr; }

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(SumOfColumnsOf);
StraightColumnsFn sum_of_columns(std::size_t target, DType dtype) {
  return HWY_DISPATCH_TABLE(SumOfColumnsOf)[target](dtype);
}
HWY_EXPORT(NormOfColumnsOf);
StraightColumnsFn norm_of_columns(std::size_t target, DType dtype) {
  return HWY_DISPATCH_TABLE(NormOfColumnsOf)[target](dtype);
}
}  // namespace cenote::simd
#endif
