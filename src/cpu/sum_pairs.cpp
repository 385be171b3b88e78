// Averages and sums of bf16 columns of many channels: two channels lie in each lane of a vector of 32 bits, the upper one an f32 but for bits to be cut
// off, the lower one a shift away from it. They are summed up apart, rounded apart and put together again: nothing is spread over wider vectors.
#include "cpu/sum_pairs.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/sum_pairs.cpp"
#include <hwy/foreach_target.h>

#include "cpu/quotient-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

using PairLanes = hn::ScalableTag<float>;
using PairWords = hn::RebindToUnsigned<PairLanes>;
using PairHalves = hn::Repartition<std::uint16_t, PairLanes>;

/// A row of outputs: the rows it sees.
struct PairRows {
  const std::uint16_t* source[kMostPairRows];
  int count;
  double factor;
  std::uint16_t* target;
  bool streams;
};

/// kPairs vectors of pairs: the lower channels of each first, then the upper ones.
template <int kPairs>
HWY_INLINE void LoadPairs(const std::uint16_t* from, hn::Vec<PairLanes> (&to)[2 * kPairs]) {
  const PairLanes d;
  const PairWords words;
  const PairHalves halves;
  CENOTE_UNROLL
  for (int v = 0; v < kPairs; ++v) {
    const auto word = hn::BitCast(words, hn::LoadU(halves, from + v * static_cast<std::int64_t>(hn::Lanes(halves))));
    to[v] = hn::BitCast(d, hn::ShiftLeft<16>(word));
    to[kPairs + v] = hn::BitCast(d, hn::And(word, hn::Set(words, 0xffff0000U)));
  }
}

/// Rounded to the nearest, ties to even; the upper half of each word counts. NaN stays NaN.
template <bool kMayBeNaN>
HWY_INLINE hn::Vec<PairWords> RoundWord(hn::Vec<PairLanes> v) {
  const PairWords words;
  const auto word = hn::BitCast(words, v);
  const auto odd = hn::And(hn::ShiftRight<16>(word), hn::Set(words, 1U));
  const auto rounded = hn::Add(word, hn::Add(odd, hn::Set(words, 0x7fffU)));
  if constexpr (!kMayBeNaN) return rounded;
  return hn::IfThenElse(hn::RebindMask(words, hn::IsNaN(v)), hn::Or(word, hn::Set(words, 0x400000U)), rounded);
}

template <bool kMayBeNaN, int kPairs>
HWY_INLINE void StorePairs(const hn::Vec<PairLanes> (&values)[2 * kPairs], bool streams, std::uint16_t* to) {
  const PairWords words;
  const PairHalves halves;
  CENOTE_UNROLL
  for (int v = 0; v < kPairs; ++v) {
    const auto lower = hn::ShiftRight<16>(RoundWord<kMayBeNaN>(values[v]));
    const auto upper = hn::And(RoundWord<kMayBeNaN>(values[kPairs + v]), hn::Set(words, 0xffff0000U));
    const auto pair = hn::BitCast(halves, hn::Or(lower, upper));
    std::uint16_t* at = to + v * static_cast<std::int64_t>(hn::Lanes(halves));
    if (streams) {
      hn::Stream(pair, halves, at);
    } else {
      hn::StoreU(pair, halves, at);
    }
  }
}

/// kPairs vectors of the output whose first tap lies `at`: down the rows under each tap, then along, the order of the other ways to sum up.
template <int kPairs>
HWY_INLINE void SumOutput(const SumPairsPlan& plan, const PairRows& rows, std::int64_t at, std::int64_t taps,
                          const Divisor& divisor, std::uint16_t* to) {
  const PairLanes d;
  constexpr int kVectors = 2 * kPairs;
  hn::Vec<PairLanes> total[kVectors];
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) total[v] = hn::Zero(d);
  for (std::int64_t tap = 0; tap < taps; ++tap, at += plan.channels) {
    hn::Vec<PairLanes> sum[kVectors], next[kVectors];
    LoadPairs<kPairs>(rows.source[0] + at, sum);
    for (int row = 1; row < rows.count; ++row) {
      LoadPairs<kPairs>(rows.source[row] + at, next);
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) sum[v] = hn::Add(sum[v], next[v]);
    }
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) total[v] = hn::Add(total[v], sum[v]);
  }
  divisor.Apply(d, total);
  auto nan = hn::IsNaN(total[0]);
  CENOTE_UNROLL
  for (int v = 1; v < kVectors; ++v) nan = hn::Or(nan, hn::IsNaN(total[v]));
  if (HWY_UNLIKELY(!hn::AllFalse(d, nan))) {
    StorePairs<true, kPairs>(total, rows.streams, to);
  } else {
    StorePairs<false, kPairs>(total, rows.streams, to);
  }
}

HWY_NOINLINE void SumRowOfPairs(const SumPairsPlan& plan, const PairRows& rows) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(PairHalves()));
  const std::int64_t channels = plan.channels;
  double known = 0;
  Divisor divisor;
  for (std::int64_t o = 0; o < plan.columns; ++o) {
    const double factor = plan.column_factor[plan.column_factor.size() == 1 ? 0 : static_cast<std::size_t>(o)];
    if (factor != known) divisor = Divisor(static_cast<float>(rows.factor * factor));
    known = factor;
    const std::int64_t at = plan.first[static_cast<std::size_t>(o)] * channels;
    const std::int64_t taps = plan.count[static_cast<std::size_t>(o)];
    std::uint16_t* to = rows.target + o * channels;
    std::int64_t c = 0;
    for (; c + 2 * lanes <= channels; c += 2 * lanes) SumOutput<2>(plan, rows, at + c, taps, divisor, to + c);
    // The ragged end once more from its last whole vector.
    for (; c < channels; c += lanes) {
      const std::int64_t from = std::min(c, channels - lanes);
      SumOutput<1>(plan, rows, at + from, taps, divisor, to + from);
    }
  }
}

/// See SumPairsFn.
void SumPairs(const SumPairsPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end, char*) {
  const RowTensor &source = plan.source, &target = plan.target;
  const auto heights = static_cast<std::int64_t>(plan.rows.size()),
             depths = static_cast<std::int64_t>(plan.slices.size());
  PairRows rows{};
  rows.streams = plan.streams && reinterpret_cast<std::uintptr_t>(pointers.target) % 64 == 0;
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t oh = unit % heights, od = unit / heights % depths, n = unit / heights / depths;
    const RowRange &slices = plan.slices[static_cast<std::size_t>(od)], &seen = plan.rows[static_cast<std::size_t>(oh)];
    rows.count = 0;
    for (std::int64_t z = 0; z < slices.count; ++z) {
      for (std::int64_t y = 0; y < seen.count; ++y) {
        rows.source[rows.count++] = static_cast<const std::uint16_t*>(pointers.source) + n * source.outer_major +
                                    (slices.first + z * slices.step) * source.depth +
                                    (seen.first + y * seen.step) * source.height;
      }
    }
    rows.factor = plan.row_factors[0].empty() ? 1
                                              : plan.row_factors[0][static_cast<std::size_t>(od)] *
                                                    plan.row_factors[1][static_cast<std::size_t>(oh)];
    rows.target =
        static_cast<std::uint16_t*>(pointers.target) + n * target.outer_major + od * target.depth + oh * target.height;
    SumRowOfPairs(plan, rows);
  }
  if (rows.streams) hwy::FlushStream();
}

SumPairsFn SumPairsOf() { return SumPairs; }

#else

SumPairsFn SumPairsOf() { return nullptr; }

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(SumPairsOf);
SumPairsFn sum_pairs(std::size_t target) { return HWY_DISPATCH_TABLE(SumPairsOf)[target](); }
}  // namespace cenote::simd
#endif
