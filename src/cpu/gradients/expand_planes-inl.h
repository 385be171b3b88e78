// Backward of sums and averages over planes whose windows share nothing: some rows of outputs are divided and rounded, and every vector of input columns takes its lanes from one
// vector of those quotients. From there on bits are moved, of halves twice as many to a vector.
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

/// Gradients from element `at` of the source on, divided and rounded. They are added to 0: there is no -0 among them. `each`: the first of their divisors, where they differ.
template <class T>
HWY_NOINLINE void DivideGradients(const ExpandPlan& plan, const T* source, std::int64_t at, std::int64_t count,
                                  const float* each, RoundedLane<T>* HWY_RESTRICT to) {
  const hn::ScalableTag<float> d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  const SliceDivisors& divisors = plan.divisors;
  const bool multiplies = divisors.multiplies, differ = !multiplies && divisors.all == 0, negative = divisors.all < 0;
  const auto by = hn::Set(d, multiplies ? 1 / divisors.all : divisors.all);
  for (std::int64_t x = 0; x < count; x += kLanes) {
    auto v = hn::Zero(d);
    if (HWY_LIKELY(at + x + kLanes <= plan.extent)) {
      v = LoadAs(d, source + at + x);
    } else {
      HWY_ALIGN T rest[kLanes] = {};
      std::memcpy(static_cast<void*>(rest), source + at + x,
                  static_cast<std::size_t>(plan.extent - at - x) * sizeof(T));
      v = LoadAs(d, rest);
    }
    if (multiplies) {
      v = hn::Mul(v, by);
    } else if (differ) {
      v = hn::Div(v, hn::LoadU(d, each + x));
    } else {
      v = Quotient(d, v, by, negative);
    }
    hn::StoreU(RoundVector<T>(d, hn::Add(hn::Zero(d), v)), RoundedTag<T, decltype(d)>(), to + x);
  }
}

/// Lane lanes[i] of v in lane i. Lanes of 16 bits are taken from each half of a vector where no instruction takes them from all of it.
template <class D, class V = hn::Vec<D>, class VI = hn::Vec<hn::RebindToSigned<D>>>
HWY_INLINE V TakeLanes(D d, V v, VI lanes) {
  const hn::RebindToSigned<D> di;
  using Lane = hn::TFromD<decltype(di)>;
  if constexpr (sizeof(Lane) == 4) {
    const auto low_bits = hn::Set(di, static_cast<Lane>(hn::MaxLanes(d) - 1));
    return hn::TableLookupLanes(v, hn::IndicesFromVec(d, hn::And(lanes, low_bits)));
  } else {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
    return V{_mm512_permutexvar_epi16(lanes.raw, v.raw)};
#else
    const auto byte = hn::ShiftLeft<1>(hn::And(lanes, hn::Set(di, Lane{7})));
    const auto bytes = hn::BitCast(d, hn::Or(hn::Or(byte, hn::ShiftLeft<8>(byte)), hn::Set(di, Lane{0x100})));
    const auto low = hn::TableLookupBytes(hn::ConcatLowerLower(d, v, v), bytes);
    const auto high = hn::TableLookupBytes(hn::ConcatUpperUpper(d, v, v), bytes);
    return hn::IfThenElse(hn::RebindMask(d, hn::Gt(lanes, hn::Set(di, Lane{7}))), high, low);
#endif
  }
}

/// The runs of a group, each column and each row seen by one output at most. `divided`: the rows that it sees.
template <class T>
HWY_NOINLINE void ExpandRows(const ExpandPlan& plan, const ExpandGroup& group, const RoundedLane<T>* divided,
                             PacedRows& target) {
  const hn::ScalableTag<RoundedLane<T>> d;
  const hn::RebindToSigned<decltype(d)> di;
  using Lane = hn::TFromD<decltype(di)>;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  const std::int64_t width = plan.width;
  const ExpandVector *vectors = plan.vectors.data(), *vectors_end = vectors + plan.vectors.size();
  const Lane* HWY_RESTRICT tables = nullptr;
  if constexpr (sizeof(Lane) == 4) {
    tables = plan.lanes.data();
  } else {
    tables = plan.short_lanes.data();
  }
  for (std::int64_t i = group.first_run; i < group.end_run; ++i) {
    const ExpandRun& run = plan.runs[static_cast<std::size_t>(i)];
    if (run.seen < 0) {
      target.Zero(run.rows);
      continue;
    }
    const RoundedLane<T>* HWY_RESTRICT from = divided + (run.seen - group.first_seen) * plan.columns;
    for (std::int64_t left = run.rows, rows = 0; left > 0; left -= rows) {
      target.Reserve(smaller(left, plan.paced.rows));
      rows = smaller(left, target.room());
      auto* HWY_RESTRICT to = reinterpret_cast<RoundedLane<T>*>(target.Take(rows));
      WaitingLines waiting = target.waiting;
      const std::int64_t step_lines = ceil_div(rows * kLanes * static_cast<std::int64_t>(sizeof(T)), kLine);
      const Lane* HWY_RESTRICT taken = tables;
      for (const ExpandVector* vector = vectors; vector < vectors_end; ++vector, taken += kLanes) {
        const auto lanes = hn::LoadU(di, taken);
        const auto some = hn::RebindMask(d, hn::Gt(lanes, hn::Set(di, Lane{-1})));
        const auto seen = hn::LoadU(d, from + vector->output);
        const auto v = hn::IfThenElseZero(some, TakeLanes(d, seen, lanes));
        auto* at = to + vector->column;
        if (width >= kLanes) {
          for (std::int64_t y = 0; y < rows; ++y, at += width) hn::StoreU(v, d, at);
        } else {
          for (std::int64_t y = 0; y < rows; ++y, at += width) StoreFirst(d, v, width, at);
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
  auto* const divided = reinterpret_cast<RoundedLane<T>*>(scratch + plan.divided_at);
  const auto slices = static_cast<std::int64_t>(plan.slices.size());
  const auto groups = static_cast<std::int64_t>(plan.groups.size());
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t band = unit % plan.bands, slice = unit / plan.bands % slices, plane = unit / plan.bands / slices;
    const std::int64_t seen = plan.slices[static_cast<std::size_t>(slice)];
    const std::int64_t first_group = band * plan.band, end_group = smaller(first_group + plan.band, groups);
    const auto run = [&plan](std::int64_t i) -> const ExpandRun& { return plan.runs[static_cast<std::size_t>(i)]; };
    const ExpandRun& first = run(plan.groups[static_cast<std::size_t>(first_group)].first_run);
    const ExpandRun& last = run(plan.groups[static_cast<std::size_t>(end_group - 1)].end_run - 1);
    target.GoTo(static_cast<T*>(pointers.target) + plane * plan.target_pitch +
                (slice * plan.heights + first.row) * plan.width);
    if (seen < 0) {
      target.Zero(last.row + last.rows - first.row);
      continue;
    }
    const std::int64_t source = plane * plan.source_pitch + seen * plan.rows * plan.columns;
    const float* each = plan.divisors.each.data() + seen * plan.divisors.slice;
    for (std::int64_t g = first_group; g < end_group; ++g) {
      const ExpandGroup& group = plan.groups[static_cast<std::size_t>(g)];
      const std::int64_t at = group.first_seen * plan.columns;
      DivideGradients(plan, static_cast<const T*>(pointers.source), source + at, group.seen * plan.columns, each + at,
                      divided);
      ExpandRows<T>(plan, group, divided, target);
    }
  }
}

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
