// Columns of many channels, each output straight from its taps: what maxima and sums have in common.
#if defined(CENOTE_CPU_COLUMNS_STRAIGHT_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_COLUMNS_STRAIGHT_COLUMNS_INL_H_
#undef CENOTE_CPU_COLUMNS_STRAIGHT_COLUMNS_INL_H_
#else
#define CENOTE_CPU_COLUMNS_STRAIGHT_COLUMNS_INL_H_
#endif

#include <hwy/cache_control.h>

#include <hwy/highway.h>

#include "cpu/columns/straight_columns.hpp"
#include "cpu/vectors/unroll.hpp"

#include <cstdint>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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

/// Outputs that are alike, and what they see. All but counts in elements.
template <class Bits>
struct StraightRun {
  const Bits* source;  // the first tap of the first window
  std::int64_t slices, rows, taps;
  std::int64_t slice_step, row_step, step;  // from one to the next
  std::int64_t outputs, apart, channels;    // apart: from window to window; channels: from output to output
  std::int64_t channel, end;                // those of each column that are folded
  Bits* target;
  std::int64_t ahead;  // from what is read next to what is asked for early, of maxima
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

/// Where a run lies, for its indices.
struct RunPlace {
  std::int64_t n, od, oh;
  const RowRange &slices, &rows;
  const AlikeOutputs& alike;
};

/// Calls work(run, factor of the divisor, place) for units [begin, end).
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
  run.ahead = plan.ahead;
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
          work(run, factor * alike.factor, RunPlace{n, od, oh, slices, seen, alike});
        }
      }
    }
  }
  if (run.streams) hwy::FlushStream();
}

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
