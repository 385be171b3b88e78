// Maxima of columns of many channels, without indices, several rows of outputs at a time: each source row is folded along once and joins every
// output that sees it, while it is in registers. Row-major order throughout, so that ties come out right by themselves; NaN, which the
// instruction for a maximum loses, is only noticed, two taps at a time, and what has one is folded again.
#include "cpu/columns/column_bands.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/columns/column_bands.cpp"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>

#include "cpu/vectors/noticed_nan-inl.h"
#include "cpu/vectors/unroll.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

/// A band of outputs: the rows it sees in the first slice, and where its own begin.
struct ColumnBand {
  const float* source[kMostColumnRows];
  float* target[kColumnRows];
  int count;                        // source rows of a slice
  bool streams;                     // the target is written around the caches
  std::int64_t slices, slice_step;  // elements from slice to slice
};

/// Elements from one vector to the next of those that are folded at once, which are of one column or of one column each.
struct VectorStep {
  std::int64_t source, target;
};

/// The same outputs, `vectors` of each row, by the rule: where there is a NaN.
HWY_NOINLINE void FoldBandAgain(const ColumnBandPlan& plan, const ColumnBand& band, const std::int64_t* offsets,
                                std::int64_t c, int rows, int vectors, VectorStep step, std::int64_t to) {
  const hn::ScalableTag<float> d;
  for (int r = 0; r < rows; ++r) {
    const float* const* source = band.source + r * plan.stride;
    for (int v = 0; v < vectors; ++v) {
      Accumulator<decltype(d), Fold::max, false> best{hn::Set(d, IdentityOf<Fold::max, float>())};
      for (std::int64_t z = 0; z < band.slices; ++z) {
        for (std::int64_t y = 0; y < plan.kernel; ++y) {
          const float* row = source[y] + z * band.slice_step + c + v * step.source;
          for (std::int64_t t = 0; t < plan.taps; ++t) best.Next(d, hn::LoadU(d, row + offsets[t]), nullptr);
        }
      }
      hn::StoreU(best.value, d, band.target[r] + to + v * step.target);
    }
  }
}

/// One address and one load for each: left to itself, GCC keeps an address for every vector and loads what is used twice twice.
template <class D, int kVectors>
HWY_INLINE void LoadTap(D d, const float* from, std::int64_t step, hn::Vec<D> (&to)[kVectors]) {
  asm("" : "+r"(from));
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    to[v] = hn::LoadU(d, from + v * step);
    asm("" : "+v"(to[v].raw));
  }
}

/// kVectors vectors, from channel `c` on, of the outputs of kRows rows in one column, or in as many; `offsets`: of the first one's taps from the rows' start. kTaps: how many, 0 where only
/// known at run time. What is read next, `ahead` elements on, is asked for early, but for the columns that are in the caches because these outputs see them, too. (Two threads, without and with:
/// 3x3/2 over 8 x 42 x 42 x 168 78 us and 70, (1,3,3)/2 over 16 x 112 x 112 x 64, beyond the caches, 1706 and 1187.)
template <int kRows, int kVectors, int kTaps>
HWY_INLINE void FoldColumnBand(const ColumnBandPlan& plan, const ColumnBand& band, const std::int64_t* offsets,
                               std::int64_t c, VectorStep step, std::int64_t ahead, std::int64_t to) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const std::int64_t taps = kTaps == 0 ? plan.taps : kTaps;
  const std::int64_t fetched = plan.tile == 0 ? smaller(plan.apart, taps) : 0;
  V best[kRows][kVectors];
  NoticedNaN<decltype(d)> noticed[kVectors];
  CENOTE_UNROLL
  for (int r = 0; r < kRows; ++r) {
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) best[r][v] = hn::Set(d, IdentityOf<Fold::max, float>());
  }
  for (std::int64_t z = 0; z < band.slices; ++z) {
    for (int i = 0; i < band.count; ++i) {
      const float* row = band.source[i] + z * band.slice_step + c;
      const float* early = row + offsets[taps - 1] + ahead;
      for (std::int64_t fresh = fetched; fresh > 0; --fresh, early -= plan.channels) {
        const int next = step.source == static_cast<std::int64_t>(hn::Lanes(d)) ? 64 / HWY_MAX_BYTES : 1;  // lines
        CENOTE_UNROLL
        for (int v = 0; v < kVectors; v += next) hwy::Prefetch(early + v * step.source);
      }
      V along[kVectors];
      LoadTap(d, row + offsets[0], step.source, along);
      std::int64_t t = 1;
      for (; t + 1 < taps; t += 2) {
        V a[kVectors], b[kVectors];
        LoadTap(d, row + offsets[t], step.source, a);
        LoadTap(d, row + offsets[t + 1], step.source, b);
        CENOTE_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          noticed[v].Show(a[v], b[v]);
          if (t == 1) noticed[v].Show(along[v], along[v]);
          along[v] = hn::Max(b[v], hn::Max(a[v], along[v]));
        }
      }
      if (t < taps) {
        V a[kVectors];
        LoadTap(d, row + offsets[t], step.source, a);
        CENOTE_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          noticed[v].Show(a[v], along[v]);
          along[v] = hn::Max(a[v], along[v]);
        }
      } else if (taps == 1) {
        CENOTE_UNROLL
        for (int v = 0; v < kVectors; ++v) noticed[v].Show(along[v], along[v]);
      }
      CENOTE_UNROLL
      for (int r = 0; r < kRows; ++r) {
        if (kRows > 1 && static_cast<std::uint64_t>(i - r * plan.stride) >= static_cast<std::uint64_t>(plan.kernel))
          continue;
        CENOTE_UNROLL
        for (int v = 0; v < kVectors; ++v) best[r][v] = hn::Max(along[v], best[r][v]);
      }
    }
  }
  bool nan = false;
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) nan = nan || noticed[v].any();
  if (HWY_UNLIKELY(nan)) {
    FoldBandAgain(plan, band, offsets, c, kRows, kVectors, step, to);
    return;
  }
  CENOTE_UNROLL
  for (int r = 0; r < kRows; ++r) {
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      float* at = band.target[r] + to + v * step.target;
      if (band.streams) {
        hn::Stream(best[r][v], d, at);
      } else {
        hn::StoreU(best[r][v], d, at);
      }
    }
  }
}

/// The places of the taps of the outputs in column `o`, from the rows' start. An element of the window again in place of one outside: its maximum does not change.
HWY_INLINE void FindTaps(const ColumnBandPlan& plan, std::int64_t o, std::int64_t (&offsets)[kMostColumnTaps]) {
  for (std::int64_t t = 0; t < plan.taps; ++t)
    offsets[t] = larger(0, smaller(plan.width - 1, o * plan.apart - plan.left + t)) * plan.channels;
}

/// Asks for what the outputs of the next tile see and this one's do not, row after row: rows that are read side by side are as many streams to the memory, and come at a fraction of the speed
/// of one. Behind the last tile comes the first of the next band. Addresses are numbers, for they may lie beyond the tensor.
class TilesAhead {
 public:
  TilesAhead(const ColumnBandPlan& plan, const ColumnBand& band, int rows)
      : plan_(plan), band_(band), next_band_(rows * plan.stride * plan.source.height) {}

  /// The tile after the one that begins with output `first`.
  void Start(std::int64_t first) {
    const bool wraps = first + plan_.tile >= plan_.columns;
    const std::int64_t output = wraps ? 0 : first + plan_.tile;
    const std::int64_t shared = wraps ? 0 : larger(0, plan_.taps - plan_.apart);
    const std::int64_t column = larger(0, output * plan_.apart - plan_.left + shared);
    from_ = column * plan_.channels + (wraps ? next_band_ : 0);
    size_ = larger(0, smaller(plan_.tile * plan_.apart, plan_.width - column)) * plan_.channels;
    slice_ = due_ = 0;
    row_ = 0;
  }

  /// As many rows as belong to one column of outputs.
  HWY_INLINE void Move() {
    for (due_ += band_.count * band_.slices; due_ >= plan_.tile; due_ -= plan_.tile) {
      const std::int64_t first = slice_ * band_.slice_step + from_;
      auto at =
          reinterpret_cast<std::uintptr_t>(band_.source[row_]) + static_cast<std::uintptr_t>(first) * sizeof(float);
      const std::uintptr_t end = at + static_cast<std::uintptr_t>(size_) * sizeof(float);
      for (; at < end; at += 64) hwy::Prefetch(reinterpret_cast<const char*>(at));
      if (++row_ < band_.count) continue;
      row_ = 0;
      ++slice_;
    }
  }

 private:
  const ColumnBandPlan& plan_;
  const ColumnBand& band_;
  std::int64_t next_band_;            // elements to its rows
  std::int64_t from_ = 0, size_ = 0;  // of the tile in a row
  std::int64_t slice_ = 0, due_ = 0;
  int row_ = 0;
};

/// The columns of a band, one after the other; several of few channels at once where they are not asked for in tiles, a vector of each, for a column costs as much to begin as to fold. (Two threads: 3x3/2 over
/// 8 x 56 x 56 x 16 23.5 us one by one and 13.2 so, 3x3/1 over 1000 x 1000 x 16 4180 and 2820 to 3060; in tiles, 3x3/2 over 3000 x 2000 x 16, 10.4 ms and 12.3.)
template <int kRows, int kTaps>
HWY_NOINLINE void FoldBandOfColumns(const ColumnBandPlan& plan, const ColumnBand& band) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  // As many as registers hold beside what is folded along.
  constexpr int kVectors = HWY_MAX_BYTES == 64 || kRows <= 2 ? 4 : 2;
  std::int64_t offsets[kMostColumnTaps];
  TilesAhead tiles(plan, band, kRows);
  const bool narrow = plan.tile == 0 && plan.channels < kVectors * lanes;
  const std::int64_t apart = plan.apart * plan.channels;
  for (std::int64_t o = 0, next = 0; o < plan.columns; ++o) {
    if (plan.tile != 0) {
      if (o == next) {
        tiles.Start(o);
        next += plan.tile;
      }
      tiles.Move();
    }
    FindTaps(plan, o, offsets);
    const std::int64_t to = o * plan.channels;
    if constexpr (kTaps != 0) {
      const std::int64_t first = o * plan.apart - plan.left, last = o + kVectors - 1;
      if (narrow && first >= 0 && last < plan.columns && last * plan.apart - plan.left + kTaps <= plan.width) {
        for (std::int64_t c = 0; c < plan.channels; c += lanes) {
          FoldColumnBand<kRows, kVectors, kTaps>(plan, band, offsets, c, {apart, plan.channels}, kVectors * apart,
                                                 to + c);
        }
        o = last;
        continue;
      }
    }
    for (std::int64_t c = 0; c < plan.channels; c += kVectors * lanes) {
      const std::int64_t left = plan.channels - c;
      auto fold = [&](auto vectors) HWY_ATTR CENOTE_ALWAYS_INLINE {
        // What is left ends with the last channel, and may begin with some that are done: there are so many (see make_column_band_kernel).
        const std::int64_t at = smaller(c, plan.channels - vectors() * lanes);
        const std::int64_t ahead = left > kVectors * lanes ? kVectors * lanes : apart - at;
        FoldColumnBand<kRows, vectors(), kTaps>(plan, band, offsets, at, {lanes, lanes}, ahead, to + at);
      };
      if (left > (kVectors - 1) * lanes) {
        fold(std::integral_constant<int, kVectors>{});
      } else if (kVectors > 2 && left > 2 * lanes) {
        fold(std::integral_constant<int, smaller(kVectors, 3)>{});
      } else if (kVectors > 2 && left > lanes) {
        fold(std::integral_constant<int, 2>{});
      } else {
        fold(std::integral_constant<int, 1>{});
      }
    }
  }
}

template <int kRows>
HWY_INLINE void FoldBand(const ColumnBandPlan& plan, const ColumnBand& band) {
  if (plan.taps == 2) return FoldBandOfColumns<kRows, 2>(plan, band);
  if (plan.taps == 3) return FoldBandOfColumns<kRows, 3>(plan, band);
  FoldBandOfColumns<kRows, 0>(plan, band);
}

/// See ColumnBandsFn.
void MaxOfColumnBands(const ColumnBandPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end) {
  const RowTensor &source = plan.source, &target = plan.target;
  const bool streams = plan.streams && reinterpret_cast<std::uintptr_t>(pointers.target) % 64 == 0;
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t n = unit / plan.bands / plan.depths, od = unit / plan.bands % plan.depths;
    const std::int64_t first = unit % plan.bands * plan.band, last = smaller(first + plan.band, plan.rows);
    const RowRange& slices = plan.slices[static_cast<std::size_t>(od)];
    const float* from =
        static_cast<const float*>(pointers.source) + n * source.outer_major + slices.first * source.depth;
    float* to = static_cast<float*>(pointers.target) + n * target.outer_major + od * target.depth;
    for (std::int64_t row = first; row < last;) {
      const std::int64_t left = last - row, rows = left >= 4 ? 4 : left >= 2 ? 2 : 1;
      ColumnBand band{};
      band.slices = slices.count;
      band.streams = streams;
      band.slice_step = slices.step * source.depth;
      band.count = static_cast<int>((rows - 1) * plan.stride + plan.kernel);
      for (int i = 0; i < band.count; ++i) {
        const std::int64_t y = larger(0, smaller(plan.heights - 1, row * plan.stride - plan.top + i));
        band.source[i] = from + y * source.height;
      }
      for (std::int64_t r = 0; r < rows; ++r) band.target[r] = to + (row + r) * target.height;
      if (rows == 4) {
        FoldBand<4>(plan, band);
      } else if (rows == 2) {
        FoldBand<2>(plan, band);
      } else {
        FoldBand<1>(plan, band);
      }
      row += rows;
    }
  }
  if (streams) hwy::FlushStream();
}

ColumnBandsFn ColumnBandsOf(DType dtype) { return dtype == DType::f32 ? MaxOfColumnBands : nullptr; }

#else

ColumnBandsFn ColumnBandsOf(DType) { return nullptr; }

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(ColumnBandsOf);
ColumnBandsFn column_bands(std::size_t target, DType dtype) { return HWY_DISPATCH_TABLE(ColumnBandsOf)[target](dtype); }
}  // namespace cenote::simd
#endif
