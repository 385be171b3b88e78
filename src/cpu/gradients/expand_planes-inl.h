// Backward of sums and averages over planes whose windows share nothing: the output row that sees an input row is divided, and every vector of input columns takes its lanes from one
// vector of those quotients.
#if defined(CENOTE_CPU_GRADIENTS_EXPAND_PLANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_GRADIENTS_EXPAND_PLANES_INL_H_
#undef CENOTE_CPU_GRADIENTS_EXPAND_PLANES_INL_H_
#else
#define CENOTE_CPU_GRADIENTS_EXPAND_PLANES_INL_H_
#endif

#include "cpu/gradients/expand_planes.hpp"
#include "cpu/rows/finish-inl.h"
#include "cpu/vectors/paced-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

/// Gradients of a slice, divided. They are added to 0: there is no -0 among them.
template <class T>
class DividedSlice {
 public:
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  static constexpr std::int64_t kLanes = hn::MaxLanes(D());

  /// `begin`: of the slice in the tensor.
  DividedSlice(const ExpandPlan& plan, const T* source, std::int64_t begin, const float* each)
      : plan_(plan),
        source_(source),
        begin_(begin),
        each_(each),
        by_(hn::Set(D(), plan.divisors.multiplies ? 1 / plan.divisors.all : plan.divisors.all)) {}

  /// Element `at` and those behind it, as far as there are any.
  HWY_INLINE V At(std::int64_t at) const { return hn::Add(hn::Zero(D()), Divided(Load(begin_ + at), at)); }

 private:
  HWY_INLINE V Load(std::int64_t at) const {
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
  std::int64_t begin_;
  const float* each_;  // divisors of the slice, where they differ
  V by_;
};

/// Runs [first, end), each column and each row seen by one output at most.
template <class T>
HWY_NOINLINE void ExpandRows(const ExpandPlan& plan, std::int64_t first_run, std::int64_t end_run,
                             const DividedSlice<T>& slice, PacedRows& target) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const RoundedTag<T, decltype(d)> rounded;
  constexpr std::int64_t kLanes = DividedSlice<T>::kLanes;
  const std::int64_t width = plan.width;
  const ExpandVector *vectors = plan.vectors.data(), *vectors_end = vectors + plan.vectors.size();
  for (std::int64_t i = first_run; i < end_run; ++i) {
    const ExpandRun& run = plan.runs[static_cast<std::size_t>(i)];
    if (run.seen < 0) {
      target.Zero(run.rows);
      continue;
    }
    const std::int64_t source = run.seen * plan.columns;
    for (std::int64_t left = run.rows, rows = 0; left > 0; left -= rows) {
      target.Reserve(smaller(left, plan.paced.rows));
      rows = smaller(left, target.room());
      auto* HWY_RESTRICT to = reinterpret_cast<RoundedLane<T>*>(target.Take(rows));
      WaitingLines waiting = target.waiting;
      const std::int64_t step_lines = ceil_div(rows * kLanes * static_cast<std::int64_t>(sizeof(T)), kLine);
      const std::int32_t* HWY_RESTRICT taken = plan.lanes.data();
      for (const ExpandVector* vector = vectors; vector < vectors_end; ++vector, taken += kLanes) {
        const auto seen = slice.At(source + vector->output);
        const auto lanes = hn::LoadU(di, taken);
        const auto lane = hn::IndicesFromVec(d, hn::And(lanes, hn::Set(di, static_cast<std::int32_t>(kLanes - 1))));
        const auto some = hn::RebindMask(d, hn::Gt(lanes, hn::Set(di, -1)));
        const auto v = RoundVector<T>(d, hn::IfThenElseZero(some, hn::TableLookupLanes(seen, lane)));
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
  PacedRows target(plan.paced, scratch);
  const auto slices = static_cast<std::int64_t>(plan.slices.size()), runs = static_cast<std::int64_t>(plan.runs.size());
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t band = unit % plan.bands, slice = unit / plan.bands % slices, plane = unit / plan.bands / slices;
    const std::int64_t seen = plan.slices[static_cast<std::size_t>(slice)];
    const std::int64_t first_run = band * plan.band, end_run = smaller(first_run + plan.band, runs);
    const ExpandRun& first = plan.runs[static_cast<std::size_t>(first_run)];
    const ExpandRun& last = plan.runs[static_cast<std::size_t>(end_run - 1)];
    target.GoTo(static_cast<T*>(pointers.target) + plane * plan.target_pitch +
                (slice * plan.heights + first.row) * plan.width);
    if (seen < 0) {
      target.Zero(last.row + last.rows - first.row);
      continue;
    }
    const DividedSlice<T> divided(plan, static_cast<const T*>(pointers.source),
                                  plane * plan.source_pitch + seen * plan.rows * plan.columns,
                                  plan.divisors.each.data() + seen * plan.divisors.slice);
    ExpandRows<T>(plan, first_run, end_run, divided, target);
  }
}

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
