// Backward of sums and averages over planes: the output rows that see an input row are summed up and divided, and every vector of input columns takes its lanes
// from one vector of those sums. Down the rows first, then along: the order of all other ways to sum.
#if defined(CENOTE_CPU_EXPAND_PLANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_EXPAND_PLANES_INL_H_
#undef CENOTE_CPU_EXPAND_PLANES_INL_H_
#else
#define CENOTE_CPU_EXPAND_PLANES_INL_H_
#endif

#include "cpu/expand_planes.hpp"
#include "cpu/finish-inl.h"
#include "cpu/paced-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

/// Gradients of a slice of outputs, divided. They are added to 0: there is no -0 among them.
template <class T>
class SliceRows {
 public:
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  static constexpr std::int64_t kLanes = hn::MaxLanes(D());

  /// `slice`: where it begins in the tensor.
  SliceRows(const ExpandPlan& plan, const T* source, std::int64_t slice)
      : plan_(plan),
        source_(source),
        slice_(slice),
        by_(hn::Set(D(), plan.divisors.multiplies ? 1 / plan.divisors.all : plan.divisors.all)) {}

  /// Element `at` of the slice and those behind it, as far as there are any.
  HWY_INLINE V One(std::int64_t at) const { return hn::Add(hn::Zero(D()), Divided(Load(at), at)); }

  /// The rows of one run, summed up. Where all have one divisor, they are divided once.
  HWY_NOINLINE void Sum(const ExpandRun& run, float* HWY_RESTRICT to) const {
    const std::int64_t first = run.seen.first * plan_.columns, step = run.seen.step * plan_.columns;
    for (std::int64_t x = 0; x < plan_.columns; x += kLanes) {
      V sum = Load(first + x);
      if (!run.alike) sum = Divided(sum, first + x);
      for (std::int64_t i = 1, at = first + step + x; i < run.seen.count; ++i, at += step) {
        sum = hn::Add(sum, run.alike ? Load(at) : Divided(Load(at), at));
      }
      hn::StoreU(run.alike ? Divided(sum, first + x) : sum, D(), to + x);
    }
  }

 private:
  HWY_INLINE V Load(std::int64_t at) const {
    at += slice_;
    if (at + kLanes <= plan_.extent) return LoadAs(D(), source_ + at);
    HWY_ALIGN T rest[kLanes] = {};
    std::memcpy(static_cast<void*>(rest), source_ + at, static_cast<std::size_t>(plan_.extent - at) * sizeof(T));
    return LoadAs(D(), rest);
  }

  HWY_INLINE V Divided(V v, std::int64_t at) const {
    if (plan_.divisors.multiplies) return hn::Mul(v, by_);
    if (plan_.divisors.all == 0) return hn::Div(v, hn::LoadU(D(), plan_.divisors.each.data() + at));
    return Quotient(D(), v, by_, plan_.divisors.all < 0);
  }

  const ExpandPlan& plan_;
  const T* source_;
  std::int64_t slice_;
  V by_;
};

/// A group's rows. `sums`: of its runs, where inputs are seen by several outputs.
template <bool kApart, class T>
HWY_NOINLINE void ExpandRows(const ExpandPlan& plan, const ExpandGroup& group, const SliceRows<T>& seen_rows,
                             float* sums, PacedRows& target) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const RoundedTag<T, decltype(d)> rounded;
  constexpr std::int64_t kLanes = SliceRows<T>::kLanes;
  const std::int64_t width = plan.width, most = plan.most;
  const ExpandVector *vectors = plan.vectors.data(), *vectors_end = vectors + plan.vectors.size();
  const ExpandRun* runs = plan.runs.data() + group.first_run;
  // All sums before any is read: none is while it is still being written.
  for (std::int64_t i = 0; !kApart && i < group.runs; ++i) {
    if (runs[i].seen.count > 0) seen_rows.Sum(runs[i], sums + i * plan.sum_pitch);
  }
  for (std::int64_t i = 0; i < group.runs; ++i) {
    const ExpandRun& run = runs[i];
    if (run.seen.count == 0) {
      target.Zero(run.rows);
      continue;
    }
    const std::int64_t source = run.seen.first * plan.columns;
    const float* HWY_RESTRICT row = sums + i * plan.sum_pitch;
    for (std::int64_t left = run.rows, rows = 0; left > 0; left -= rows) {
      target.Reserve(smaller(left, plan.paced.rows));
      rows = smaller(left, target.room());
      auto* HWY_RESTRICT to = reinterpret_cast<RoundedLane<T>*>(target.Take(rows));
      WaitingLines waiting = target.waiting;
      const std::int64_t step_lines = ceil_div(rows * kLanes * static_cast<std::int64_t>(sizeof(T)), kLine);
      const std::int32_t* HWY_RESTRICT taken = plan.lanes.data();
      for (const ExpandVector* vector = vectors; vector < vectors_end; ++vector) {
        auto sum = hn::Zero(d);
        if constexpr (kApart) {
          sum = hn::TableLookupLanes(seen_rows.One(source + vector->output), hn::SetTableIndices(d, taken));
          taken += kLanes;
        } else {
          const auto seen = hn::LoadU(d, row + vector->output);
          for (std::int64_t m = 0; m < most; ++m, taken += kLanes) {
            const auto lane = hn::LoadU(di, taken);
            const auto none = hn::RebindMask(d, hn::Lt(lane, hn::Zero(di)));
            const auto index = hn::And(lane, hn::Set(di, static_cast<std::int32_t>(kLanes - 1)));
            sum = hn::Add(sum, hn::IfThenZeroElse(none, hn::TableLookupLanes(seen, hn::IndicesFromVec(d, index))));
          }
        }
        const auto v = RoundVector<T>(d, sum);
        auto* at = to + vector->column;
        if (width >= kLanes) {
          for (std::int64_t y = 0; y < rows; ++y, at += width) hn::StoreU(v, rounded, at);
        } else {
          for (std::int64_t y = 0; y < rows; ++y, at += width) StoreFirst(rounded, v, width, at);
        }
        waiting.Write(step_lines);
      }
      target.waiting = waiting;
    }
  }
}

template <class T>
void ExpandPlanes(const ExpandPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                  char* scratch) {
  PacedRows target(plan.paced, scratch + plan.paced_at);
  float* const sums = reinterpret_cast<float*>(scratch);
  const auto slices = static_cast<std::int64_t>(plan.slices.size()),
             groups = static_cast<std::int64_t>(plan.groups.size());
  const auto expand = plan.apart ? ExpandRows<true, T> : ExpandRows<false, T>;
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t band = unit % plan.bands, slice = unit / plan.bands % slices, plane = unit / plan.bands / slices;
    const std::int64_t seen = plan.slices[static_cast<std::size_t>(slice)];
    T* const first = static_cast<T*>(pointers.target) + plane * plan.target_pitch + slice * plan.heights * plan.width;
    const SliceRows<T> seen_rows(plan, static_cast<const T*>(pointers.source),
                                 plane * plan.source_pitch + larger(0, seen) * plan.rows * plan.columns);
    for (std::int64_t g = band * plan.band; g < smaller((band + 1) * plan.band, groups); ++g) {
      const ExpandGroup& group = plan.groups[static_cast<std::size_t>(g)];
      target.GoTo(first + group.first_row * plan.width);
      if (seen >= 0) {
        expand(plan, group, seen_rows, sums, target);
      } else {
        target.Zero(group.rows);
      }
    }
  }
}

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
