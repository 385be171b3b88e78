// Windows one apart over planar rows that stay as long as they are, forward: an output lies where its middle input does, so that the rows of a band are one
// long run, and a short row wastes no lanes. Columns that a tap has beyond its row are masked: which ones follows from where a vector begins, and
// recurs. Maxima fold along the run, then down; sums down, then along, the order of all other ways to sum.
#if defined(CENOTE_CPU_PLANES_JOINED_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_PLANES_JOINED_ROWS_INL_H_
#undef CENOTE_CPU_PLANES_JOINED_ROWS_INL_H_
#else
#define CENOTE_CPU_PLANES_JOINED_ROWS_INL_H_
#endif

#include <hwy/cache_control.h>

#include "cpu/planes/bands.hpp"
#include "cpu/rows/finish-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

/// Where `inside`, the greater one, `value` where they are equal or `v` is NaN; elsewhere `value`.
template <class D>
HWY_INLINE hn::Vec<D> MaxInside(D, hn::Mask<D> inside, hn::Vec<D> v, hn::Vec<D> value) {
#if HWY_TARGET <= HWY_AVX3
  return hn::Vec<D>{_mm512_mask_max_ps(value.raw, inside.raw, v.raw, value.raw)};
#else
  return hn::IfThenElse(inside, hn::Max(v, value), value);
#endif
}

template <Fold kFold, class T>
class JoinedFolder {
  using D = hn::ScalableTag<float>;
  static constexpr std::int64_t kLanes = hn::MaxLanes(D()), kMaskBytes = kLanes / 8;

 public:
  JoinedFolder(const BandPlan& plan, char* scratch)
      : plan_(plan),
        packed_(reinterpret_cast<T*>(scratch + plan.packed_at) + plan.left),
        kept_(reinterpret_cast<float*>(scratch + plan.kept_at) + ceil_div(plan.left, kLanes) * kLanes),
        staged_(reinterpret_cast<T*>(scratch + plan.result_at)) {}

  /// So many bands before those results are read: a load that takes from two stores waits until both are in the cache.
  void Run(const T* source, T* target, std::int64_t begin, std::int64_t end) {
    for (std::int64_t next = begin; next < end; next += plan_.batch) {
      const std::int64_t count = smaller(plan_.batch, end - next);
      auto nan = hn::MaskFromVec(hn::Zero(D()));
      for (std::int64_t i = 0; i < count; ++i) {
        const Unit unit = Find(next + i, i);
        const T* from = FindRows(source, unit);
        if constexpr (kFold == Fold::sum) {
          SumRows(from, unit);
        } else {
          WithTaps(plan_.taps, [&](auto taps) HWY_ATTR { nan = hn::Or(nan, MaxAlong(taps, from, unit)); });
        }
      }
      const bool any = !hn::AllFalse(D(), nan);
      for (std::int64_t i = 0; i < count; ++i) {
        const Unit unit = Find(next + i, i);
        T* result = plan_.streams ? staged_ : target + unit.to;
        if constexpr (kFold == Fold::sum) {
          WithTaps(plan_.taps, [&](auto taps) HWY_ATTR { SumAlong(taps, unit, result); });
        } else if (HWY_UNLIKELY(any)) {
          AnyMax(FindRows(source, unit), unit, result);
        } else {
          for (const RowRun* run = unit.runs; run != unit.runs_end; ++run) MaxDown(*run, unit, result);
        }
        if (plan_.streams) writer_.Write(staged_, target + unit.to, unit.count);
      }
    }
  }

 private:
  /// A band of a slice: its runs, where it is read and written, and how much.
  struct Unit {
    const RowRun *runs, *runs_end;
    std::int64_t first_y, rows, first_row, count;
    std::int64_t from, to;
    float* kept;
  };

  HWY_NOINLINE Unit Find(std::int64_t index, std::int64_t place) const {
    const std::int64_t slice = plan_.bands == 1 ? index : index / plan_.bands, band = index - slice * plan_.bands;
    const std::int64_t plane = plan_.slices == 1 ? slice : slice / plan_.slices, z = slice - plane * plan_.slices;
    const JoinedBand& joined = plan_.joined[static_cast<std::size_t>(band)];
    const std::int64_t source_row =
        plan_.depth_rows[static_cast<std::size_t>(z)].first * plan_.heights + joined.first_y;
    Unit unit;
    unit.runs = plan_.runs.data() + joined.run;
    unit.runs_end = plan_.runs.data() + joined.end_run;
    unit.first_y = joined.first_y;
    unit.rows = joined.end_y - joined.first_y;
    unit.first_row = unit.runs->row;
    unit.count = (unit.runs_end[-1].row + unit.runs_end[-1].rows - unit.first_row) * plan_.width;
    unit.from = plane * plan_.source_pitch + source_row * plan_.width;
    unit.to = plane * plan_.target_pitch + (z * plan_.rows + unit.first_row) * plan_.width;
    unit.kept = kept_ + place * plan_.kept_pitch;
    return unit;
  }

  /// Loops over the taps of the most frequent windows are unrolled.
  template <class Do>
  static HWY_INLINE void WithTaps(std::int64_t taps, const Do& with) {
    constexpr std::int64_t kFrequent = 5, kOfSums = 3;
    if (taps == kFrequent) return with(std::integral_constant<std::int64_t, kFrequent>());
    if constexpr (kFold == Fold::sum) {
      if (taps == kOfSums) return with(std::integral_constant<std::int64_t, kOfSums>());
    }
    with(taps);
  }

  template <class Count, class Do>
  static HWY_INLINE void Repeat(Count count, const Do& once) {
    if constexpr (std::is_same_v<Count, std::int64_t>) {
      for (std::int64_t i = 0; i < count; ++i) once(i);
    } else {
      CENOTE_UNROLL
      for (std::int64_t i = 0; i < Count::value; ++i) once(i);
    }
  }

  /// The rows of a band, or a copy of them where vectors would reach beyond the tensor.
  HWY_NOINLINE const T* FindRows(const T* source, const Unit& unit) const {
    const std::int64_t count = unit.rows * plan_.width, at = unit.from;
    if (at >= plan_.left && at + count + kLanes + plan_.taps * plan_.step <= plan_.extent) return source + at;
    std::memcpy(static_cast<void*>(packed_), source + at, static_cast<std::size_t>(count) * sizeof(T));
    return packed_;
  }

  /// fold(place, inside) for each vector of a run and each of its taps; begin(p) before, and end(p) behind.
  template <class Taps, class Begin, class Tap, class End>
  HWY_INLINE void ForVectors(Taps taps, std::int64_t count, const Begin& begin, const Tap& fold, const End& end) const {
    const D d;
    const std::uint8_t* masks = plan_.inside.data();
    const std::uint8_t *const masks_begin = masks, *const masks_end = masks + plan_.inside.size();
    const std::int64_t step = plan_.step, left = plan_.left;
    for (std::int64_t p = 0; p < count; p += kLanes) {
      begin(p);
      Repeat(taps, [&](std::int64_t tap) HWY_ATTR CENOTE_ALWAYS_INLINE {
        fold(p + tap * step - left, hn::LoadMaskBits(d, masks + tap * kMaskBytes));
      });
      end(p);
      masks += taps * kMaskBytes;
      if (masks == masks_end) masks = masks_begin;
    }
  }

  /// Returns where there was a NaN: each element is looked at once, where the window of its place is folded.
  template <class Taps>
  HWY_NOINLINE hn::Mask<D> MaxAlong(Taps taps, const T* from, const Unit& unit) const {
    const D d;
    auto value = hn::Zero(d);
    auto nan = hn::MaskFromVec(value);
    float* const kept = unit.kept;
    // What the next band has where this one is read, as a number, for it may lie beyond the tensor. (Sums down the rows gain nothing by it.)
    const std::uintptr_t ahead =
        reinterpret_cast<std::uintptr_t>(from) + static_cast<std::uintptr_t>(plan_.ahead) * sizeof(T);
    ForVectors(
        taps, unit.rows * plan_.width,
        [&](std::int64_t p) HWY_ATTR CENOTE_ALWAYS_INLINE {
          if (plan_.ahead != 0)
            hwy::Prefetch(reinterpret_cast<const T*>(ahead + static_cast<std::uintptr_t>(p) * sizeof(T)));
          nan = hn::Or(nan, hn::IsNaN(LoadAs(d, from + p)));
          value = hn::Set(d, IdentityOf<Fold::max, float>());
        },
        [&](std::int64_t at, hn::Mask<D> inside)
            HWY_ATTR CENOTE_ALWAYS_INLINE { value = MaxInside(d, inside, LoadAs(d, from + at), value); },
        [&](std::int64_t p) HWY_ATTR CENOTE_ALWAYS_INLINE { hn::Store(value, d, kept + p); });
    return nan;
  }

  HWY_INLINE void Put(hn::Vec<D> v, std::int64_t p, std::int64_t count, T* to) const {
    const D d;
    StoreFirst(RoundedTag<T, D>(), RoundVector<T>(d, v), count - p, reinterpret_cast<RoundedLane<T>*>(to) + p);
  }

  /// Rows of outputs that see as many rows each, in one go; what their last vector has beyond them, the next ones overwrite.
  HWY_NOINLINE void MaxDown(const RowRun& run, const Unit& unit, T* to) const {
    WithTaps(run.count, [&](auto rows) HWY_ATTR {
      const D d;
      const std::int64_t pitch = plan_.width * plan_.row_step, begin = (run.row - unit.first_row) * plan_.width;
      const std::int64_t end = begin + run.rows * plan_.width;
      const float* from = unit.kept + (run.first - unit.first_y) * plan_.width - begin;
      for (std::int64_t p = begin; p < end; p += kLanes) {
        auto value = hn::Set(d, IdentityOf<Fold::max, float>());
        Repeat(rows, [&](std::int64_t y)
                         HWY_ATTR CENOTE_ALWAYS_INLINE { value = hn::Max(hn::LoadU(d, from + p + y * pitch), value); });
        Put(value, p, unit.count, to);
      }
    });
  }

  /// Once more where there are NaNs, of which the last is kept.
  HWY_NOINLINE void AnyMax(const T* from, const Unit& unit, T* to) const {
    const D d;
    Accumulator<D, Fold::max, false> a{};
    const auto identity = hn::Set(d, IdentityOf<Fold::max, float>());
    ForVectors(
        plan_.taps, unit.rows * plan_.width, [&](std::int64_t) HWY_ATTR { a.value = identity; },
        [&](std::int64_t at, hn::Mask<D> inside)
            HWY_ATTR { a.Next(d, hn::IfThenElse(inside, LoadAs(d, from + at), identity), nullptr); },
        [&](std::int64_t p) HWY_ATTR { hn::Store(a.value, d, unit.kept + p); });
    for (const RowRun* runs = unit.runs; runs != unit.runs_end; ++runs) {
      const std::int64_t begin = (runs->row - unit.first_row) * plan_.width, end = begin + runs->rows * plan_.width;
      const float* row = unit.kept + (runs->first - unit.first_y) * plan_.width - begin;
      for (std::int64_t p = begin; p < end; p += kLanes) {
        a.value = identity;
        for (std::int64_t y = 0; y < runs->count; ++y)
          a.Next(d, hn::LoadU(d, row + p + y * plan_.width * plan_.row_step), nullptr);
        Put(a.value, p, unit.count, to);
      }
    }
  }

  HWY_NOINLINE void SumRows(const T* from, const Unit& unit) const {
    for (const RowRun* runs = unit.runs; runs != unit.runs_end; ++runs) {
      WithTaps(runs->count, [&](auto rows) HWY_ATTR {
        const D d;
        const std::int64_t pitch = plan_.width * plan_.row_step, begin = (runs->row - unit.first_row) * plan_.width;
        const std::int64_t end = begin + runs->rows * plan_.width;
        const T* row = from + (runs->first - unit.first_y) * plan_.width - begin;
        for (std::int64_t p = begin; p < end; p += kLanes) {
          auto sum = hn::Zero(d);
          Repeat(rows, [&](std::int64_t y)
                           HWY_ATTR CENOTE_ALWAYS_INLINE { sum = hn::Add(sum, LoadAs(d, row + p + y * pitch)); });
          hn::StoreU(sum, d, unit.kept + p);
        }
      });
    }
  }

  template <class Taps>
  HWY_NOINLINE void SumAlong(Taps taps, const Unit& unit, T* to) const {
    const D d;
    const SliceDivisors& divisors = plan_.divisors;
    const float* each = divisors.all == 0 ? divisors.each.data() + unit.first_row * plan_.width : nullptr;
    const auto all = hn::Set(d, divisors.all), inverse = hn::Div(hn::Set(d, 1.0F), all);
    const bool multiplies = divisors.multiplies, negative = divisors.all < 0;
    auto total = hn::Zero(d);
    const float* const kept = unit.kept;
    const std::int64_t elements = unit.count;
    ForVectors(
        taps, elements, [&](std::int64_t) HWY_ATTR CENOTE_ALWAYS_INLINE { total = hn::Zero(d); },
        [&](std::int64_t at, hn::Mask<D> inside) HWY_ATTR CENOTE_ALWAYS_INLINE {
          total = hn::Add(total, hn::IfThenElseZero(inside, hn::LoadU(d, kept + at)));
        },
        [&](std::int64_t p) HWY_ATTR CENOTE_ALWAYS_INLINE {
          const auto quotient = multiplies
                                    ? hn::Mul(total, inverse)
                                    : Quotient(d, total, each == nullptr ? all : hn::LoadU(d, each + p), negative);
          Put(quotient, p, elements, to);
        });
  }

  const BandPlan& plan_;
  T* packed_;
  float* kept_;
  T* staged_;
  StreamWriter writer_;
};

template <Fold kFold, class T>
void FoldJoinedRows(const BandPlan& plan, const void* source, void* target, std::int64_t begin, std::int64_t end,
                    char* scratch) {
  JoinedFolder<kFold, T> folder(plan, scratch);
  folder.Run(static_cast<const T*>(source), static_cast<T*>(target), begin, end);
}

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
