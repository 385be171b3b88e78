// Sums and averages over planes, and their backward: the rows that a row of results sees are summed up, and each vector of results adds up lanes of two vectors of those sums, by tables. The rows of
// a small plane are one, so that a short row wastes no lanes. Down the rows first, then along: the order of all other ways to sum.
#include "cpu/gradients/lane_sums.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/gradients/lane_sums.cpp"
#include <hwy/foreach_target.h>

#include <cstring>

#include "cpu/rows/finish-inl.h"
#include "cpu/vectors/paced-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

/// Lanes of two vectors, or zeros, by a table.
class PickedLanes {
  using D = hn::ScalableTag<float>;
  using DI = hn::RebindToSigned<D>;

 public:
  static constexpr std::int64_t kLanes = hn::MaxLanes(D());

  PickedLanes() = default;
  explicit HWY_INLINE PickedLanes(const std::int32_t* table)
      : lanes_(hn::LoadU(DI(), table)), some_(hn::RebindMask(D(), hn::Gt(lanes_, hn::Set(DI(), -1)))) {}

  HWY_INLINE hn::Vec<D> Of(hn::Vec<D> first, hn::Vec<D> second) const {
#if HWY_TARGET <= HWY_AVX3
    return {_mm512_maskz_permutex2var_ps(some_.raw, first.raw, lanes_.raw, second.raw)};
#else
    // The instruction looks at the low bits alone.
    const hn::Vec<D> low{_mm256_permutevar8x32_ps(first.raw, lanes_.raw)};
    const hn::Vec<D> high{_mm256_permutevar8x32_ps(second.raw, lanes_.raw)};
    const auto is_high = hn::Gt(lanes_, hn::Set(DI(), static_cast<std::int32_t>(kLanes - 1)));
    return hn::IfThenElseZero(some_, hn::IfThenElse(hn::RebindMask(D(), is_high), high, low));
#endif
  }

 private:
  hn::Vec<DI> lanes_;
  hn::Mask<D> some_;
};

template <class T>
class LaneSummer {
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  static constexpr std::int64_t kLanes = hn::MaxLanes(D());
  static constexpr std::int64_t kBytes = kLanes * static_cast<std::int64_t>(sizeof(T));

 public:
  LaneSummer(const LanePlan& plan, const RowPointers& pointers, char* scratch)
      : plan_(plan),
        source_(static_cast<const T*>(pointers.source)),
        target_(static_cast<T*>(pointers.target)),
        sums_(reinterpret_cast<float*>(scratch)),
        rows_(plan.paced, scratch + plan.paced_at) {
    const SliceDivisors& divisors = plan.divisors;
    hn::Store(hn::Set(D(), divisors.all), D(), all_);
    const bool differ = divisors.all == 0;
    each_ = differ ? divisors.each.data() : all_;
    each_step_ = differ ? 1 : 0;
  }

  void Run(std::int64_t begin, std::int64_t end) {
    const auto groups = static_cast<std::int64_t>(plan_.groups.size());
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t band = unit % plan_.bands, first = unit / plan_.bands * plan_.batch;
      const std::int64_t count = smaller(plan_.batch, plan_.slice_count() - first);
      FindSlices(first, count);
      for (std::int64_t g = band * plan_.band; g < smaller((band + 1) * plan_.band, groups); ++g)
        RunGroup(plan_.groups[static_cast<std::size_t>(g)]);
    }
  }

 private:
  /// A slice of results, and the first source slice that it is made of.
  struct Slice {
    const LaneSlices* seen;
    std::int64_t source, target;  // where they begin
    float* sums;
    const float* by;  // forward: what averages are divided by
  };
  /// A row of results: its sums, where it is put, and what it is divided by.
  struct Row {
    const float* sums;
    RoundedLane<T>* to;
    const float* by;
  };

  HWY_NOINLINE void FindSlices(std::int64_t first, std::int64_t count) {
    const auto slices = static_cast<std::int64_t>(plan_.slices.size());
    std::int64_t plane = first / slices, slice = first % slices;
    for (std::int64_t i = 0; i < count; ++i) {
      const LaneSlices& seen = plan_.slices[static_cast<std::size_t>(slice)];
      slices_[i] = {&seen, plane * plan_.source_pitch + seen.seen.first * plan_.source_slice,
                    plane * plan_.target_pitch + slice * plan_.target_slice, sums_ + i * plan_.sum_pitch,
                    each_ + slice * plan_.divisors.slice};
      if (++slice < slices) continue;
      slice = 0;
      ++plane;
    }
    slices_end_ = slices_ + count;
  }

  HWY_NOINLINE void RunGroup(const LaneGroup& group) {
    // All sums before any is read: none is while it is still being written.
    for (std::int64_t r = group.first_run; r < group.end_run; ++r) SumRun(plan_.runs[static_cast<std::size_t>(r)]);
    const std::int64_t start = group.first_row * plan_.width;
    Row rows[kMostLaneRows];
    Row* row = rows;
    for (const Slice* slice = slices_; slice < slices_end_; ++slice) {
      rows_.GoTo(target_ + slice->target + start);
      rows_.Reserve(group.rows);
      auto* const to = reinterpret_cast<RoundedLane<T>*>(rows_.Take(group.rows));
      const float* const by = slice->by + each_step_ * start;
      if (plan_.row_sums.empty()) {
        *row++ = {slice->sums, to, by};
        continue;
      }
      const std::int64_t* const sums = plan_.row_sums.data() + group.first_row;
      for (std::int64_t y = 0, at = 0; y < group.rows; ++y, at += plan_.width)
        *row++ = {slice->sums + sums[y], to + at, by + each_step_ * at};
    }
    static_assert(kMostLaneSums == 5);
    if (plan_.most == 2) return Add<2>(group, rows, row);
    if (plan_.most == 3) return Add<3>(group, rows, row);
    Add<5>(group, rows, row);
  }

  /// A run of all slices.
  HWY_NOINLINE void SumRun(const LaneRun& run) const {
    const bool few = run.count > 0 && run.count <= 3;
    const std::int64_t safe = plan_.extent - run.first - (run.count - 1) * run.step - run.elements - kLanes;
    for (const Slice* slice = slices_; slice < slices_end_; ++slice) {
      if (!few || slice->seen->seen.count != 1 || slice->source > safe) {
        SumAnyRows(run, *slice);
        continue;
      }
      const T* const from = source_ + slice->source + run.first;
      float* const to = slice->sums + run.at;
      const float* by = each_ + each_step_ * (slice->seen->seen.first * plan_.divisors.slice + run.first);
      if (run.count == 1) {
        SumRows<1>(run, from, by, to);
      } else if (run.count == 2) {
        SumRows<2>(run, from, by, to);
      } else {
        SumRows<3>(run, from, by, to);
      }
    }
  }

  bool divides_rows() const { return !plan_.forward && plan_.divisors.all != 1; }

  /// Sums are added to 0: there is no -0 among them.
  template <int kRows>
  HWY_INLINE void SumRows(const LaneRun& run, const T* from, const float* by, float* HWY_RESTRICT to) const {
    const D d;
    const std::int64_t elements = run.elements, step = run.step, each_step = each_step_, each_row = each_step * step;
    const bool once = divides_rows() && run.alike, each = divides_rows() && !run.alike;
    for (std::int64_t x = 0; x < elements; x += kLanes, from += kLanes, by += each_step * kLanes) {
      V sum = LoadAs(d, from);
      if (each) sum = hn::Div(sum, hn::LoadU(d, by));
      CENOTE_UNROLL
      for (int i = 1; i < kRows; ++i) {
        V v = LoadAs(d, from + i * step);
        if (each) v = hn::Div(v, hn::LoadU(d, by + i * each_row));
        sum = hn::Add(sum, v);
      }
      if (once) sum = hn::Div(sum, hn::LoadU(d, by));
      hn::StoreU(hn::Add(sum, hn::Zero(d)), d, to + x);
    }
  }

  HWY_NOINLINE void SumAnyRows(const LaneRun& run, const Slice& slice) const {
    const D d;
    const RowRange& seen = slice.seen->seen;
    const bool alike = run.alike && slice.seen->alike, once = divides_rows() && alike && run.count * seen.count > 0,
               each = divides_rows() && !alike;
    std::int64_t from[kMostLaneSources], by[kMostLaneSources], count = 0;
    for (std::int64_t z = 0; z < seen.count; ++z) {
      for (std::int64_t i = 0; i < run.count; ++i, ++count) {
        from[count] = slice.source + run.first + z * seen.step * plan_.source_slice + i * run.step;
        by[count] = (seen.first + z * seen.step) * plan_.divisors.slice + run.first + i * run.step;
      }
    }
    auto sum_up = [&](std::int64_t x, auto vectors, const auto& load) HWY_ATTR CENOTE_ALWAYS_INLINE {
      V sum[vectors()];
      CENOTE_UNROLL
      for (int v = 0; v < vectors(); ++v) sum[v] = hn::Zero(d);
      for (std::int64_t i = 0; i < count; ++i) {
        CENOTE_UNROLL
        for (int v = 0; v < vectors(); ++v) {
          V one = load(from[i] + x + v * kLanes);
          if (each) one = hn::Div(one, hn::LoadU(d, each_ + each_step_ * (by[i] + x + v * kLanes)));
          sum[v] = hn::Add(sum[v], one);
        }
      }
      CENOTE_UNROLL
      for (int v = 0; v < vectors(); ++v) {
        if (once) sum[v] = hn::Div(sum[v], hn::LoadU(d, each_ + each_step_ * (by[0] + x + v * kLanes)));
        hn::StoreU(hn::Add(sum[v], hn::Zero(d)), d, slice.sums + run.at + x + v * kLanes);
      }
    };
    constexpr std::int64_t kTogether = 4;
    std::int64_t x = 0;
    for (; x + kTogether * kLanes <= run.elements; x += kTogether * kLanes) {
      sum_up(x, std::integral_constant<int, kTogether>{},
             [&](std::int64_t at) HWY_ATTR { return LoadAs(D(), source_ + at); });
    }
    for (; x < run.elements; x += kLanes)
      sum_up(x, std::integral_constant<int, 1>{}, [&](std::int64_t at) HWY_ATTR { return Load(at); });
  }

  HWY_INLINE V Load(std::int64_t at) const {
    if (at + kLanes <= plan_.extent) return LoadAs(D(), source_ + at);
    HWY_ALIGN T rest[kLanes] = {};
    std::memcpy(static_cast<void*>(rest), source_ + at, static_cast<std::size_t>(plan_.extent - at) * sizeof(T));
    return LoadAs(D(), rest);
  }

  /// Vector by vector, for all rows: what is known of its lanes stays in registers.
  template <int kMost>
  HWY_NOINLINE void Add(const LaneGroup& group, const Row* rows, const Row* rows_end) {
    const D d;
    const RoundedTag<T, D> rounded;
    const bool divides = plan_.forward && plan_.divisors.all != 1;
    const auto no_minus = hn::Set(d, plan_.divisors.all < 0 ? 0.0F : -0.0F);  // of a sum of 0
    const std::int64_t lines = ceil_div((rows_end - rows) * kBytes, kLine), each_step = each_step_;
    const std::int32_t* const lanes = plan_.lanes.data();
    WaitingLines waiting = rows_.waiting;
    const LaneVector* const end = plan_.vectors.data() + group.end_vector;
    for (const LaneVector* vector = plan_.vectors.data() + group.first_vector; vector < end; ++vector) {
      PickedLanes picked[kMost];
      CENOTE_UNROLL
      for (int m = 0; m < kMost; ++m) picked[m] = PickedLanes(lanes + vector->lanes + m * kLanes);
      const std::int64_t at = vector->at, first = vector->first, second = vector->second, count = vector->count;
      for (const Row* row = rows; row < rows_end; ++row) {
        const auto low = hn::LoadU(d, row->sums + first), high = hn::LoadU(d, row->sums + second);
        auto sum = picked[0].Of(low, high);
        CENOTE_UNROLL
        for (int m = 1; m < kMost; ++m) sum = hn::Add(sum, picked[m].Of(low, high));
        if (divides) sum = hn::Add(hn::Div(sum, hn::LoadU(d, row->by + each_step * at)), no_minus);
        StoreFirst(rounded, RoundVector<T>(d, sum), count, row->to + at);
      }
      waiting.Write(lines);
    }
    rows_.waiting = waiting;
  }

  const LanePlan& plan_;
  const T* source_;
  T* target_;
  float* sums_;
  Slice slices_[kMostLaneRows];
  const Slice* slices_end_ = slices_;
  PacedRows rows_;
  HWY_ALIGN float all_[kLanes];
  const float* each_;  // divisors, the next one so far behind the last
  std::int64_t each_step_;
};

template <class T>
void SumLanes(const LanePlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end, char* scratch) {
  LaneSummer<T>(plan, pointers, scratch).Run(begin, end);
}

LaneSumsFn LaneSumsOf(DType dtype) {
  switch (dtype) {
    case DType::f32: return SumLanes<float>;
    case DType::f16: return SumLanes<f16>;
    case DType::bf16: return SumLanes<bf16>;
    default: return nullptr;
  }
}

#else

LaneSumsFn LaneSumsOf(DType) { return nullptr; }

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(LaneSumsOf);
LaneSumsFn lane_sums(std::size_t target, DType dtype) { return HWY_DISPATCH_TABLE(LaneSumsOf)[target](dtype); }
}  // namespace cenote::simd
#endif
