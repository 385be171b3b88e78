// Columns of many channels, each output straight from its taps: few instructions besides a load and a maximum or a sum for each tap, and memory read in
// stretches as long as registers allow.
#include "cpu/straight_columns.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/straight_columns.cpp"
#include <hwy/foreach_target.h>

#include "cpu/along-inl.h"
#include "cpu/noticed_nan-inl.h"
#include "cpu/quotient-inl.h"
#include "cpu/unroll.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

using ColumnLanes = hn::ScalableTag<float>;
using ColumnVector = hn::Vec<ColumnLanes>;

/// f32: a vector of channels is a vector.
struct SingleChannels {
  using Bits = float;
  static constexpr int kParts = 1;
  static constexpr int kMost =
      HWY_MAX_BYTES == 64 ? 16 : 8;  // vectors of channels that registers hold, half of them for what is on its way
  static constexpr std::int64_t kElements = hn::MaxLanes(ColumnLanes());

  template <int kVectors>
  static HWY_INLINE void Load(const float* from, ColumnVector (&to)[kVectors]) {
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) to[v] = hn::LoadU(ColumnLanes(), from + v * kElements);
  }

  template <int kVectors>
  static HWY_INLINE void Store(const ColumnVector (&values)[kVectors], bool streams, float* to) {
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      float* at = to + v * kElements;
      if (streams) {
        hn::Stream(values[v], ColumnLanes(), at);
      } else {
        hn::StoreU(values[v], ColumnLanes(), at);
      }
    }
  }
};

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

/// Outputs that are alike, and what they see. All but counts in elements.
template <class Bits>
struct StraightRun {
  const Bits* source;  // the first tap of the first window
  std::int64_t slices, rows, taps;
  std::int64_t slice_step, row_step, step;  // from one to the next
  std::int64_t outputs, apart, channels;    // apart: from window to window; channels: from output to output
  std::int64_t channel, end;                // those of each column that are folded
  Bits* target;
  bool in_lanes, streams;
};

/// Calls work<vectors>(channel) for channels [c, end), kMost vectors of kElements at a time and then fewer; the ragged end from its last whole vector.
template <int kMost, std::int64_t kElements, class Work>
HWY_INLINE void ForStretches(std::int64_t c, std::int64_t end, const Work& work) {
  for (; c + kMost * kElements <= end; c += kMost * kElements) work(std::integral_constant<int, kMost>{}, c);
  auto at_most_once = [&](auto vectors) HWY_ATTR CENOTE_ALWAYS_INLINE {
    if constexpr (vectors() < kMost) {
      if (c + vectors() * kElements <= end) {
        work(vectors, c);
        c += vectors() * kElements;
      }
    }
  };
  at_most_once(std::integral_constant<int, 8>{});
  at_most_once(std::integral_constant<int, 4>{});
  at_most_once(std::integral_constant<int, 2>{});
  at_most_once(std::integral_constant<int, 1>{});
  if (c < end) work(std::integral_constant<int, 1>{}, end - kElements);
}

/// Calls work(first tap) for the rows of a window that begins `at`, in order.
template <class Bits, class Work>
HWY_INLINE void ForRows(const StraightRun<Bits>& run, const Bits* at, const Work& work) {
  const std::int64_t rows = run.rows, row_step = run.row_step;
  for (std::int64_t z = 0; z < run.slices; ++z, at += run.slice_step) {
    const Bits* from = at;
    for (std::int64_t y = 0; y < rows; ++y, from += row_step) work(from);
  }
}

/// `elements` of an output by the rule: where there is a NaN.
HWY_NOINLINE inline void MaxAgain(const StraightRun<float>& run, const float* at, std::int64_t elements, float* to) {
  const ColumnLanes d;
  for (std::int64_t x = 0; x < elements; x += SingleChannels::kElements) {
    Accumulator<ColumnLanes, Fold::max, false> best{hn::Set(d, IdentityOf<Fold::max, float>())};
    ForRows(run, at + x, [&](const float* from) HWY_ATTR {
      for (std::int64_t t = 0; t < run.taps; ++t) best.Next(d, hn::LoadU(d, from + t * run.step), nullptr);
    });
    hn::StoreU(best.value, d, to + x);
  }
}

/// kVectors vectors of an output, in row-major order, so that ties come out right by themselves; NaN, which the instruction for a maximum loses, is only
/// noticed, two vectors at a time.
template <int kVectors>
HWY_INLINE void MaxOfTaps(const StraightRun<float>& run, const float* at, float* to) {
  // Several, so that none waits for another; without masks they take registers.
  constexpr int kNoticing = HWY_MAX_BYTES < 64 || kVectors < 4 ? 1 : smaller(kVectors / 2, 4);
  const ColumnLanes d;
  NoticedNaN<ColumnLanes> noticed[kNoticing];
  ColumnVector best[kVectors];
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) best[v] = hn::Set(d, IdentityOf<Fold::max, float>());
  const std::int64_t taps = run.taps, step = run.step;
  ForRows(run, at, [&](const float* from) HWY_ATTR CENOTE_ALWAYS_INLINE {
    for (std::int64_t t = 0; t < taps; ++t, from += step) {
      asm("" : "+r"(from));  // one address for all
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; v += 2) {
        const auto a = hn::LoadU(d, from + v * SingleChannels::kElements);
        const auto b = v + 1 < kVectors ? hn::LoadU(d, from + (v + 1) * SingleChannels::kElements) : a;
        noticed[v / 2 % kNoticing].Show(a, b);
        best[v] = hn::Max(a, best[v]);
        if (v + 1 < kVectors) best[v + 1] = hn::Max(b, best[v + 1]);
      }
    }
  });
  bool nan = false;
  CENOTE_UNROLL
  for (int v = 0; v < kNoticing; ++v) nan = nan || noticed[v].any();
  if (HWY_UNLIKELY(nan)) return MaxAgain(run, at, kVectors * SingleChannels::kElements, to);
  SingleChannels::Store(best, run.streams, to);
}

HWY_NOINLINE inline void MaxOfRun(const StraightRun<float>& run) {
  const float* at = run.source;
  float* target = run.target;
  for (std::int64_t o = 0; o < run.outputs; ++o, at += run.apart, target += run.channels) {
    ForStretches<SingleChannels::kMost, SingleChannels::kElements>(
        run.channel, run.end, [&](auto vectors, std::int64_t c) HWY_ATTR CENOTE_ALWAYS_INLINE {
          MaxOfTaps<vectors()>(run, at + c, target + c);
        });
  }
}

/// kSums vectors of what the rows hold from `at` on, added up down them. kRows: how many in a single slice, 0 where only known at run time.
template <class Channels, int kRows, int kSums>
HWY_INLINE void SumDownRows(const StraightRun<typename Channels::Bits>& run, const typename Channels::Bits* at,
                            ColumnVector (&sum)[kSums]) {
  Channels::Load(at, sum);
  auto add = [&](const typename Channels::Bits* from) HWY_ATTR CENOTE_ALWAYS_INLINE {
    asm("" : "+r"(from));  // one address for all
    ColumnVector more[kSums];
    Channels::Load(from, more);
    CENOTE_UNROLL
    for (int v = 0; v < kSums; ++v) sum[v] = hn::Add(sum[v], more[v]);
  };
  if constexpr (kRows > 0) {
    CENOTE_UNROLL
    for (int y = 1; y < kRows; ++y) add(at + y * run.row_step);
  } else {
    const std::int64_t rows = run.rows, row_step = run.row_step;
    const typename Channels::Bits* from = at + row_step;
    for (std::int64_t z = run.slices, y = 1;; y = 0) {
      for (; y < rows; ++y, from += row_step) add(from);
      if (--z == 0) break;
      from = at += run.slice_step;
    }
  }
}

/// The sums of an output's columns, added up in the lanes of long windows (see LaneSums), and those pairwise.
template <class Channels, int kSums>
HWY_INLINE void SumInLanes(const StraightRun<typename Channels::Bits>& run, const typename Channels::Bits* at,
                           ColumnVector (&total)[kSums]) {
  constexpr std::int64_t kLanes = LaneSums<ColumnLanes>::kLanes;
  constexpr std::int64_t kSlot = kSums * static_cast<std::int64_t>(hn::MaxLanes(ColumnLanes()));
  const ColumnLanes d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  HWY_ALIGN float slots[kLanes * kSlot];
  for (std::int64_t tap = 0; tap < run.taps; ++tap, at += run.step) {
    ColumnVector sum[kSums];
    SumDownRows<Channels, 0>(run, at, sum);
    float* slot = slots + tap % kLanes * kSlot;
    CENOTE_UNROLL
    for (int v = 0; v < kSums; ++v)
      hn::Store(hn::Add(tap < kLanes ? hn::Zero(d) : hn::Load(d, slot + v * lanes), sum[v]), d, slot + v * lanes);
  }
  const std::int64_t used = smaller(run.taps, kLanes);
  for (std::int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::int64_t i = 0; i < smaller(width, used - width); ++i) {
      for (std::int64_t x = 0; x < kSlot; x += lanes) {
        float* to = slots + i * kSlot + x;
        hn::Store(hn::Add(hn::Load(d, to), hn::Load(d, to + width * kSlot)), d, to);
      }
    }
  }
  CENOTE_UNROLL
  for (int v = 0; v < kSums; ++v) total[v] = hn::Load(d, slots + v * lanes);
}

/// Down the rows under each tap, then along, the order of the other ways to sum up.
template <class Channels, int kRows>
HWY_NOINLINE void SumOfRun(const StraightRun<typename Channels::Bits>& run, const Divisor& divisor) {
  const typename Channels::Bits* at = run.source;
  typename Channels::Bits* target = run.target;
  for (std::int64_t o = 0; o < run.outputs; ++o, at += run.apart, target += run.channels) {
    ForStretches<Channels::kMost, Channels::kElements>(
        run.channel, run.end, [&](auto vectors, std::int64_t c) HWY_ATTR CENOTE_ALWAYS_INLINE {
          constexpr int kSums = Channels::kParts * vectors();
          ColumnVector total[kSums];
          if (kRows == 0 && HWY_UNLIKELY(run.in_lanes)) {
            SumInLanes<Channels>(run, at + c, total);
          } else {
            SumDownRows<Channels, kRows>(run, at + c, total);
            CENOTE_UNROLL
            for (int v = 0; v < kSums; ++v) total[v] = hn::Add(hn::Zero(ColumnLanes()), total[v]);  // no -0
            const typename Channels::Bits* from = at + c + run.step;
            for (std::int64_t tap = 1; tap < run.taps; ++tap, from += run.step) {
              ColumnVector sum[kSums];
              SumDownRows<Channels, kRows>(run, from, sum);
              CENOTE_UNROLL
              for (int v = 0; v < kSums; ++v) total[v] = hn::Add(total[v], sum[v]);
            }
          }
          divisor.Apply(ColumnLanes(), total);
          Channels::Store(total, run.streams, target + c);
        });
  }
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
  for (int tap = 0; tap < kKept; ++tap, at += run.step) SumDownRows<Channels, 0>(run, at, kept[tap]);
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
      SumDownRows<Channels, 0>(run, at, sum);
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
    SumDownRows<Channels, 0>(run, at, sum);
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
    return SlideOverRun<Channels, 0, 0>(run, divisor);
  }
  if (run.slices == 1 && run.rows == 2 && !run.in_lanes) return SumOfRun<Channels, 2>(run, divisor);
  SumOfRun<Channels, 0>(run, divisor);
}

/// Calls work(run, factor of the divisor) for units [begin, end).
template <class Bits, class Work>
HWY_INLINE void ForStraightRuns(const StraightColumnsPlan& plan, const RowPointers& pointers, std::int64_t begin,
                                std::int64_t end, const Work& work) {
  const RowTensor &source = plan.source, &target = plan.target;
  const auto heights = static_cast<std::int64_t>(plan.rows.size()),
             depths = static_cast<std::int64_t>(plan.slices.size());
  const std::int64_t bands = plan.bands(), units_of_band = plan.tiles_apart;
  const auto tiles = static_cast<std::int64_t>(plan.tiles.size());
  StraightRun<Bits> run{};
  run.step = plan.step * plan.channels;
  run.channels = plan.channels;
  run.in_lanes = plan.in_lanes;
  run.streams = plan.streams && reinterpret_cast<std::uintptr_t>(pointers.target) % 64 == 0;
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t part = unit % units_of_band, band = unit / units_of_band % bands;
    const std::int64_t od = unit / units_of_band / bands % depths, n = unit / units_of_band / bands / depths;
    const RowRange& slices = plan.slices[static_cast<std::size_t>(od)];
    const std::int64_t last = smaller((band + 1) * plan.band, heights);
    run.slices = slices.count;
    run.slice_step = slices.step * source.depth;
    for (std::int64_t t = tiles * part / units_of_band; t < tiles * (part + 1) / units_of_band; ++t) {
      const ColumnTile& tile = plan.tiles[static_cast<std::size_t>(t)];
      run.channel = tile.channel;
      run.end = tile.end;
      for (std::int64_t oh = band * plan.band; oh < last; ++oh) {
        const RowRange& seen = plan.rows[static_cast<std::size_t>(oh)];
        run.rows = seen.count;
        run.row_step = seen.step * source.height;
        const Bits* from = static_cast<const Bits*>(pointers.source) + n * source.outer_major +
                           slices.first * source.depth + seen.first * source.height;
        Bits* to =
            static_cast<Bits*>(pointers.target) + n * target.outer_major + od * target.depth + oh * target.height;
        const double factor = plan.row_factors[0].empty() ? 1
                                                          : plan.row_factors[0][static_cast<std::size_t>(od)] *
                                                                plan.row_factors[1][static_cast<std::size_t>(oh)];
        for (const AlikeOutputs& alike : tile.runs) {
          run.source = from + alike.column * plan.channels;
          run.taps = alike.taps;
          run.outputs = alike.count;
          run.apart = alike.apart * plan.channels;
          run.target = to + alike.first * plan.channels;
          work(run, factor * alike.factor);
        }
      }
    }
  }
  if (run.streams) hwy::FlushStream();
}

/// See StraightColumnsFn.
void MaxOfColumns(const StraightColumnsPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                  char*) {
  ForStraightRuns<float>(plan, pointers, begin, end,
                         [](const StraightRun<float>& run, double) HWY_ATTR { MaxOfRun(run); });
}

template <class Channels>
void SumOfColumns(const StraightColumnsPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                  char* scratch) {
  auto* tall_sums = plan.bytes > 0 ? reinterpret_cast<float*>(scratch) : nullptr;
  double known = 1;
  Divisor divisor;
  ForStraightRuns<typename Channels::Bits>(plan, pointers, begin, end, [&](const auto& run, double factor) HWY_ATTR {
    if (factor != known) divisor = Divisor(static_cast<float>(factor));
    known = factor;
    SumRun<Channels>(run, divisor, tall_sums);
  });
}

StraightColumnsFn MaxOfColumnsOf(DType dtype) { return dtype == DType::f32 ? MaxOfColumns : nullptr; }

StraightColumnsFn SumOfColumnsOf(DType dtype) {
  if (dtype == DType::f32) return SumOfColumns<SingleChannels>;
  return dtype == DType::bf16 ? SumOfColumns<PairedChannels> : nullptr;
}

#else

StraightColumnsFn MaxOfColumnsOf(DType) { return nullptr; }
StraightColumnsFn SumOfColumnsOf(DType) { return nullptr; }

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(MaxOfColumnsOf);
HWY_EXPORT(SumOfColumnsOf);
StraightColumnsFn max_of_columns(std::size_t target, DType dtype) {
  return HWY_DISPATCH_TABLE(MaxOfColumnsOf)[target](dtype);
}
StraightColumnsFn sum_of_columns(std::size_t target, DType dtype) {
  return HWY_DISPATCH_TABLE(SumOfColumnsOf)[target](dtype);
}
}  // namespace cenote::simd
#endif
