// Averages and sums of columns of many channels under few taps, straight from them, in long stretches.
#include "cpu/sum_columns.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/sum_columns.cpp"
#include <hwy/foreach_target.h>

#include "cpu/column_stretches-inl.h"
#include "cpu/quotient-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

using SumLanes = hn::ScalableTag<float>;
using SumVector = hn::Vec<SumLanes>;

/// f32: a vector of channels is a vector.
struct SingleChannels {
  using Bits = float;
  static constexpr int kParts = 1;
  static constexpr int kMost =
      HWY_MAX_BYTES == 64 ? 16 : 4;  // vectors of channels whose sums and totals registers hold

  template <int kVectors>
  static HWY_INLINE void Load(const float* from, SumVector (&to)[kVectors]) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(SumLanes()));
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) to[v] = hn::LoadU(SumLanes(), from + v * lanes);
  }

  template <int kVectors>
  static HWY_INLINE void Store(const SumVector (&values)[kVectors], bool streams, float* to) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(SumLanes()));
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      float* at = to + v * lanes;
      if (streams) {
        hn::Stream(values[v], SumLanes(), at);
      } else {
        hn::StoreU(values[v], SumLanes(), at);
      }
    }
  }
};

/// bf16: two channels lie in each lane of a vector of 32 bits, the upper one an f32 but for bits to be cut off, the lower one a shift away from it. They are
/// summed up apart, rounded apart and put together again: nothing is spread over wider vectors.
struct PairedChannels {
  using Bits = std::uint16_t;
  using Words = hn::RebindToUnsigned<SumLanes>;
  using Halves = hn::Repartition<std::uint16_t, SumLanes>;
  static constexpr int kParts = 2;
  static constexpr int kMost = HWY_MAX_BYTES == 64 ? 4 : 2;

  /// The lower channels of each pair first, then the upper ones.
  template <int kVectors>
  static HWY_INLINE void Load(const std::uint16_t* from, SumVector (&to)[kVectors]) {
    constexpr int kPairs = kVectors / 2;
    CENOTE_UNROLL
    for (int v = 0; v < kPairs; ++v) {
      const auto word =
          hn::BitCast(Words(), hn::LoadU(Halves(), from + v * static_cast<std::int64_t>(hn::Lanes(Halves()))));
      to[v] = hn::BitCast(SumLanes(), hn::ShiftLeft<16>(word));
      to[kPairs + v] = hn::BitCast(SumLanes(), hn::And(word, hn::Set(Words(), 0xffff0000U)));
    }
  }

  template <int kVectors>
  static HWY_INLINE void Store(const SumVector (&values)[kVectors], bool streams, std::uint16_t* to) {
    auto nan = hn::IsNaN(values[0]);
    CENOTE_UNROLL
    for (int v = 1; v < kVectors; ++v) nan = hn::Or(nan, hn::IsNaN(values[v]));
    if (HWY_UNLIKELY(!hn::AllFalse(SumLanes(), nan))) {
      StoreRounded<true>(values, streams, to);
    } else {
      StoreRounded<false>(values, streams, to);
    }
  }

 private:
  /// To the nearest, ties to even; the upper half of each word counts. NaN stays NaN.
  template <bool kMayBeNaN>
  static HWY_INLINE hn::Vec<Words> RoundWord(SumVector v) {
    const Words words;
    const auto word = hn::BitCast(words, v);
    const auto odd = hn::And(hn::ShiftRight<16>(word), hn::Set(words, 1U));
    const auto rounded = hn::Add(word, hn::Add(odd, hn::Set(words, 0x7fffU)));
    if constexpr (!kMayBeNaN) return rounded;
    return hn::IfThenElse(hn::RebindMask(words, hn::IsNaN(v)), hn::Or(word, hn::Set(words, 0x400000U)), rounded);
  }

  template <bool kMayBeNaN, int kVectors>
  static HWY_INLINE void StoreRounded(const SumVector (&values)[kVectors], bool streams, std::uint16_t* to) {
    constexpr int kPairs = kVectors / 2;
    CENOTE_UNROLL
    for (int v = 0; v < kPairs; ++v) {
      const auto lower = hn::ShiftRight<16>(RoundWord<kMayBeNaN>(values[v]));
      const auto upper = hn::And(RoundWord<kMayBeNaN>(values[kPairs + v]), hn::Set(Words(), 0xffff0000U));
      const auto pair = hn::BitCast(Halves(), hn::Or(lower, upper));
      std::uint16_t* at = to + v * static_cast<std::int64_t>(hn::Lanes(Halves()));
      if (streams) {
        hn::Stream(pair, Halves(), at);
      } else {
        hn::StoreU(pair, Halves(), at);
      }
    }
  }
};

/// A row of outputs: the rows it sees.
template <class Channels>
struct SummedRows {
  const typename Channels::Bits* source[kMostSummedRows];
  int count;
  double factor;
  typename Channels::Bits* target;
  bool streams;
};

/// A row of outputs.
template <class Channels>
struct SummedOutputs {
  const SumColumnsPlan& plan;
  const SummedRows<Channels>& rows;

  template <int kVectors>
  HWY_NOINLINE void Fold(const Stretches& stretches) const {
    double known = 0;
    Divisor divisor;
    for (std::int64_t o = 0; o < plan.columns; ++o) {
      const double factor = plan.column_factor[plan.column_factor.size() == 1 ? 0 : static_cast<std::size_t>(o)];
      if (factor != known) divisor = Divisor(static_cast<float>(rows.factor * factor));
      known = factor;
      const std::int64_t at = plan.first[static_cast<std::size_t>(o)] * plan.channels, to = o * plan.channels;
      for (std::int64_t s = 0; s < stretches.count; ++s)
        Sum<kVectors>(at + stretches[s], plan.count[static_cast<std::size_t>(o)], divisor, to + stretches[s]);
    }
  }

  /// kVectors vectors of the output whose first tap lies `at`: down the rows under each tap, then along, the order of the other ways to sum up. Two taps are summed up side by side, so that memory is read as
  /// it lies.
  template <int kVectors>
  HWY_INLINE void Sum(std::int64_t at, std::int64_t taps, const Divisor& divisor, std::int64_t to) const {
    const SumLanes d;
    constexpr int kSums = Channels::kParts * kVectors;
    SumVector total[kSums], sum[kSums];
    if (Channels::kParts == 1 && taps == 2) {
      Channels::Load(rows.source[0] + at, total);
      Channels::Load(rows.source[0] + at + plan.channels, sum);
      for (int y = 1; y < rows.count; ++y) {
        Add(rows.source[y] + at, total);
        Add(rows.source[y] + at + plan.channels, sum);
      }
      CENOTE_UNROLL
      for (int v = 0; v < kSums; ++v) total[v] = hn::Add(hn::Add(hn::Zero(d), total[v]), sum[v]);
    } else {
      CENOTE_UNROLL
      for (int v = 0; v < kSums; ++v) total[v] = hn::Zero(d);
      for (std::int64_t tap = 0; tap < taps; ++tap, at += plan.channels) {
        Channels::Load(rows.source[0] + at, sum);
        for (int y = 1; y < rows.count; ++y) Add(rows.source[y] + at, sum);
        CENOTE_UNROLL
        for (int v = 0; v < kSums; ++v) total[v] = hn::Add(total[v], sum[v]);
      }
    }
    if constexpr (Channels::kParts == 1) {
      divisor.Divide(d, total);
    } else {
      divisor.Apply(d, total);
    }
    Channels::Store(total, rows.streams, rows.target + to);
  }

  template <int kSums>
  static HWY_INLINE void Add(const typename Channels::Bits* from, SumVector (&sum)[kSums]) {
    asm("" : "+r"(from));  // one address for all
    SumVector more[kSums];
    Channels::Load(from, more);
    CENOTE_UNROLL
    for (int v = 0; v < kSums; ++v) sum[v] = hn::Add(sum[v], more[v]);
  }
};

/// See SumColumnsFn.
template <class Channels>
void SumColumns(const SumColumnsPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end, char*) {
  using Bits = typename Channels::Bits;
  const RowTensor &source = plan.source, &target = plan.target;
  const auto heights = static_cast<std::int64_t>(plan.rows.size()),
             depths = static_cast<std::int64_t>(plan.slices.size());
  SummedRows<Channels> rows{};
  rows.streams = plan.streams && reinterpret_cast<std::uintptr_t>(pointers.target) % 64 == 0;
  const Stretches stretches =
      CutExactly(plan.channels, static_cast<std::int64_t>(hn::Lanes(SumLanes())) * Channels::kParts, Channels::kMost);
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t oh = unit % heights, od = unit / heights % depths, n = unit / heights / depths;
    const RowRange &slices = plan.slices[static_cast<std::size_t>(od)], &seen = plan.rows[static_cast<std::size_t>(oh)];
    rows.count = 0;
    for (std::int64_t z = 0; z < slices.count; ++z) {
      for (std::int64_t y = 0; y < seen.count; ++y) {
        rows.source[rows.count++] = static_cast<const Bits*>(pointers.source) + n * source.outer_major +
                                    (slices.first + z * slices.step) * source.depth +
                                    (seen.first + y * seen.step) * source.height;
      }
    }
    rows.factor = plan.row_factors[0].empty() ? 1
                                              : plan.row_factors[0][static_cast<std::size_t>(od)] *
                                                    plan.row_factors[1][static_cast<std::size_t>(oh)];
    rows.target = static_cast<Bits*>(pointers.target) + n * target.outer_major + od * target.depth + oh * target.height;
    FoldInStretches<Channels::kMost>(SummedOutputs<Channels>{plan, rows}, stretches);
  }
  if (rows.streams) hwy::FlushStream();
}

SumColumnsFn SumColumnsOf(DType dtype) {
  if (dtype == DType::f32) return SumColumns<SingleChannels>;
  return dtype == DType::bf16 ? SumColumns<PairedChannels> : nullptr;
}

#else

SumColumnsFn SumColumnsOf(DType) { return nullptr; }

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(SumColumnsOf);
SumColumnsFn sum_columns(std::size_t target, DType dtype) { return HWY_DISPATCH_TABLE(SumColumnsOf)[target](dtype); }
}  // namespace cenote::simd
#endif
