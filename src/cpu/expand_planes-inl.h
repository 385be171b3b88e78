// Backward of sums and averages over planes: the output rows that see an input row are summed up and divided, and every vector of input columns takes its lanes
// from one vector of those sums, or adds up neighbouring ones. Down the rows first, then along: the order of all other ways to sum.
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

/// Gradients of the output slices that see an input slice, divided. They are added to 0: there is no -0 among them.
template <class T>
class SliceRows {
 public:
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  static constexpr std::int64_t kLanes = hn::MaxLanes(D());

  /// `plane`: where it begins in the tensor.
  SliceRows(const ExpandPlan& plan, const T* source, std::int64_t plane, const ExpandSlices& slices)
      : plan_(plan),
        source_(source),
        slice_(plane + slices.seen.first * plan.rows * plan.columns),
        apart_(slices.seen.step * plan.rows * plan.columns),
        slices_(slices.seen.count),
        alike_(slices.alike),
        each_(plan.divisors.each.data() + slices.seen.first * plan.divisors.slice),
        each_apart_(slices.seen.step * plan.divisors.slice),
        by_(hn::Set(D(), plan.divisors.multiplies ? 1 / plan.divisors.all : plan.divisors.all)) {}

  /// Element `at` of the one slice and those behind it, as far as there are any.
  HWY_INLINE V One(std::int64_t at) const { return hn::Add(hn::Zero(D()), Divided(Load(at), at)); }

  /// The rows of each run, summed up, plan.sum_pitch apart, with zeros behind. Where all of a run have one divisor, they are divided once.
  HWY_NOINLINE void Sum(const ExpandRun* runs, std::int64_t count, float* HWY_RESTRICT to) const {
    if (plan_.divisors.multiplies) {
      Sums(runs, count, to, [by = by_](V v, std::int64_t) HWY_ATTR { return hn::Mul(v, by); });
    } else if (plan_.divisors.all == 0) {
      Sums(runs, count, to,
           [each = each_](V v, std::int64_t at) HWY_ATTR { return hn::Div(v, hn::LoadU(D(), each + at)); });
    } else {  // what is -0 is added to 0
      Sums(runs, count, to, [by = by_](V v, std::int64_t) HWY_ATTR { return hn::Div(v, by); });
    }
  }

 private:
  template <class Divided>
  HWY_INLINE void Sums(const ExpandRun* runs, std::int64_t count, float* HWY_RESTRICT to,
                       const Divided& divided) const {
    const std::int64_t columns = plan_.columns;
    for (const ExpandRun* run = runs; run < runs + count; ++run, to += plan_.sum_pitch) {
      if (run->seen.count == 0) continue;
      const std::int64_t first = run->seen.first * columns, step = run->seen.step * columns;
      const std::int64_t last = first + (slices_ - 1) * apart_ + (run->seen.count - 1) * step;
      const bool alike = alike_ && run->alike;
      auto sum_up = [&](const auto& load) HWY_ATTR CENOTE_ALWAYS_INLINE {
        for (std::int64_t x = 0, at = first; x < columns; x += kLanes, at += kLanes) {
          V sum = load(at);
          if (!alike) sum = divided(sum, at);
          std::int64_t slice = at, by = at;  // where its divisors are
          for (std::int64_t z = 0, i = 1; z < slices_; ++z, i = 0, slice += apart_, by += each_apart_) {
            for (; i < run->seen.count; ++i) {
              const V more = load(slice + i * step);
              sum = hn::Add(sum, alike ? more : divided(more, by + i * step));
            }
          }
          if (alike) sum = divided(sum, at);
          if (x + kLanes > columns)
            sum = hn::IfThenElseZero(hn::FirstN(D(), static_cast<std::size_t>(columns - x)), sum);
          hn::StoreU(sum, D(), to + plan_.margin + x);
        }
      };
      if (slice_ + last + columns + kLanes <= plan_.extent) {
        sum_up([&](std::int64_t at) HWY_ATTR { return LoadAs(D(), source_ + slice_ + at); });
      } else {
        sum_up([&](std::int64_t at) HWY_ATTR { return Load(at); });
      }
    }
  }

  HWY_INLINE V Load(std::int64_t at) const {
    at += slice_;
    if (at + kLanes <= plan_.extent) return LoadAs(D(), source_ + at);
    HWY_ALIGN T rest[kLanes] = {};
    std::memcpy(static_cast<void*>(rest), source_ + at, static_cast<std::size_t>(plan_.extent - at) * sizeof(T));
    return LoadAs(D(), rest);
  }

  HWY_INLINE V Divided(V v, std::int64_t at) const {
    if (plan_.divisors.multiplies) return hn::Mul(v, by_);
    if (plan_.divisors.all == 0) return hn::Div(v, hn::LoadU(D(), each_ + at));
    return Quotient(D(), v, by_, plan_.divisors.all < 0);
  }

  const ExpandPlan& plan_;
  const T* source_;
  std::int64_t slice_, apart_, slices_;  // the first slice, elements to the next, and how many
  bool alike_;
  const float* each_;  // divisors of the first slice, where they differ
  std::int64_t each_apart_;
  V by_;
};

/// A group's rows, where each column is seen by one output and each row by one at most.
template <class T>
HWY_NOINLINE void ExpandRows(const ExpandPlan& plan, const ExpandGroup& group, const SliceRows<T>& seen_rows,
                             PacedRows& target) {
  const hn::ScalableTag<float> d;
  const RoundedTag<T, decltype(d)> rounded;
  constexpr std::int64_t kLanes = SliceRows<T>::kLanes;
  const std::int64_t width = plan.width;
  const ExpandVector *vectors = plan.vectors.data(), *vectors_end = vectors + plan.vectors.size();
  const ExpandRun* runs = plan.runs.data() + group.first_run;
  for (std::int64_t i = 0; i < group.runs; ++i) {
    const ExpandRun& run = runs[i];
    if (run.seen.count == 0) {
      target.Zero(run.rows);
      continue;
    }
    const std::int64_t source = run.seen.first * plan.columns;
    for (std::int64_t left = run.rows, rows = 0; left > 0; left -= rows) {
      target.Reserve(smaller(left, plan.paced.rows));
      rows = smaller(left, target.room());
      auto* HWY_RESTRICT to = reinterpret_cast<RoundedLane<T>*>(target.Take(rows));
      WaitingLines waiting = target.waiting;
      const std::int64_t step_lines = ceil_div(rows * kLanes * static_cast<std::int64_t>(sizeof(T)), kLine);
      const std::int32_t* HWY_RESTRICT taken = plan.lanes.data();
      for (const ExpandVector* vector = vectors; vector < vectors_end; ++vector, taken += kLanes) {
        const auto seen = seen_rows.One(source + vector->output);
        const auto v = RoundVector<T>(d, hn::TableLookupLanes(seen, hn::SetTableIndices(d, taken)));
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

/// A group's rows from the sums of its runs: vector by vector, down all of them, so that what is known of its columns stays in registers. kMost: plan.most,
/// 0 for any where windows are one apart.
template <int kMost, bool kShifted, class T>
HWY_NOINLINE void ExpandSums(const ExpandPlan& plan, const ExpandGroup& group, const float* HWY_RESTRICT sums,
                             PacedRows& target) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const RoundedTag<T, decltype(d)> rounded;
  constexpr std::int64_t kLanes = SliceRows<T>::kLanes;
  constexpr std::int64_t kBytes = kLanes * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t width = plan.width, step = plan.step, pitch = plan.sum_pitch;
  const ExpandRun *runs = plan.runs.data() + group.first_run, *runs_end = runs + group.runs;
  target.Reserve(group.rows);
  auto* HWY_RESTRICT to = reinterpret_cast<RoundedLane<T>*>(target.Take(group.rows));
  WaitingLines waiting = target.waiting;
  const std::int32_t* HWY_RESTRICT taken = plan.lanes.data();
  for (const ExpandVector& vector : plan.vectors) {
    hn::Vec<decltype(di)> lane[kMost + 1];
    hn::Mask<decltype(d)> some[kMost + 1];
    if constexpr (!kShifted) {
      CENOTE_UNROLL
      for (int m = 0; m < kMost; ++m, taken += kLanes) {
        const auto one = hn::LoadU(di, taken);
        some[m] = hn::RebindMask(d, hn::Gt(one, hn::Set(di, -1)));
        lane[m] = hn::And(one, hn::Set(di, static_cast<std::int32_t>(kLanes - 1)));
      }
    }
    const float* HWY_RESTRICT row = sums + vector.output;
    auto* at = to + vector.column;
    for (const ExpandRun* run = runs; run < runs_end; ++run, row += pitch) {
      auto sum = hn::Zero(d);
      if (run->seen.count > 0) {
        const auto first = hn::LoadU(d, row);
        for (std::int64_t m = 0; kMost == 0 && m < plan.most; ++m) sum = hn::Add(sum, hn::LoadU(d, row + m * step));
        CENOTE_UNROLL
        for (int m = 0; m < kMost; ++m) {
          if constexpr (kShifted) {
            sum = hn::Add(sum, hn::LoadU(d, row + m * step));
          } else {
            const auto seen = hn::TableLookupLanes(first, hn::IndicesFromVec(d, lane[m]));
            sum = hn::Add(sum, hn::IfThenElseZero(some[m], seen));
          }
        }
      }
      const auto v = RoundVector<T>(d, sum);
      for (std::int64_t y = 0; y < run->rows; ++y, at += width) StoreFirst(rounded, v, width, at);
      waiting.Write(ceil_div(run->rows * kBytes, kLine));
    }
  }
  target.waiting = waiting;
}

template <class T>
using ExpandSumsFn = void (*)(const ExpandPlan&, const ExpandGroup&, const float* HWY_RESTRICT, PacedRows&);

template <class T>
ExpandSumsFn<T> ExpandSumsOf(const ExpandPlan& plan) {
  static_assert(kMostExpandedOutputs == 5);
  if (plan.shifted) return plan.most == 3 ? ExpandSums<3, true, T> : ExpandSums<0, true, T>;
  return plan.most == 2 ? ExpandSums<2, false, T> : plan.most == 3 ? ExpandSums<3, false, T> : ExpandSums<5, false, T>;
}

template <class T>
void ExpandPlanes(const ExpandPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                  char* scratch) {
  PacedRows target(plan.paced, scratch + plan.paced_at);
  float* const sums = reinterpret_cast<float*>(scratch);
  std::memset(scratch, 0, plan.paced_at);
  const auto slices = static_cast<std::int64_t>(plan.slices.size()),
             groups = static_cast<std::int64_t>(plan.groups.size());
  const ExpandSumsFn<T> expand_sums = ExpandSumsOf<T>(plan);
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t band = unit % plan.bands, slice = unit / plan.bands % slices, plane = unit / plan.bands / slices;
    const ExpandSlices& seen = plan.slices[static_cast<std::size_t>(slice)];
    T* const first = static_cast<T*>(pointers.target) + plane * plan.target_pitch + slice * plan.heights * plan.width;
    const SliceRows<T> seen_rows(plan, static_cast<const T*>(pointers.source), plane * plan.source_pitch, seen);
    for (std::int64_t g = band * plan.band; g < smaller((band + 1) * plan.band, groups); ++g) {
      const ExpandGroup& group = plan.groups[static_cast<std::size_t>(g)];
      target.GoTo(first + group.first_row * plan.width);
      if (seen.seen.count == 0) {
        target.Zero(group.rows);
      } else if (plan.apart) {
        ExpandRows<T>(plan, group, seen_rows, target);
      } else {
        // All sums before any is read: none is while it is still being written.
        seen_rows.Sum(plan.runs.data() + group.first_run, group.runs, sums);
        expand_sums(plan, group, sums, target);
      }
    }
  }
}

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
