// The scatters: gradients of the max family summed up where their indices point, unpooled values put there and taken from there.
#if defined(CENOTE_CPU_SCATTER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_SCATTER_INL_H_
#undef CENOTE_CPU_SCATTER_INL_H_
#else
#define CENOTE_CPU_SCATTER_INL_H_
#endif

#include <hwy/cache_control.h>

#include <cstring>

#include "cpu/convert-inl.h"
#include "cpu/scatter.hpp"
#include "cpu/thresholds.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// Which positions the located elements are counted from, and how many there are.
struct Stage {
  std::int64_t base, positions;
};

/// Calls visit(offset, count) for stretches of the unit's outputs in their order, located in `spots`: offset(layout) is the first
/// one's element in a tensor of the small side. Before each step along the plan's axis, advance(first, end) is told which slices
/// its windows reach into. Stretches with a wrong index are left out where kSkipWrong. False when there was one.
template <bool kSkipWrong, class Advance, class Visit>
HWY_INLINE bool ForEachStretch(const ScatterPlan& plan, LocateFn locate, const ScatterUnit& unit, const void* indices,
                               std::uint32_t* spots, const Advance& advance, const Visit& visit) {
  const Problem& p = plan.problem;
  const auto index_bytes = static_cast<std::int64_t>(size_of(p.index_dtype));
  const std::int64_t wide = plan.expanded ? plan.inner : 1;  // elements per column in the tables
  bool valid = true;
  LocateJob job{};
  job.dtype = p.index_dtype;
  job.one_column = plan.inner > 1 && !plan.expanded;
  job.step = static_cast<std::uint32_t>(plan.inner == 1 ? 1 : p.op == Op::max_unpool ? plan.position : unit.channels);
  job.spots = spots;
  auto reach = [&](std::int64_t first, std::int64_t end) HWY_ATTR {
    const Stage stage = advance(first, end);
    job.base = stage.base + unit.slab * (p.axis[1].input * p.axis[2].input);
    job.positions = static_cast<std::uint32_t>(stage.positions);
  };
  auto reach_windows = [&](std::int64_t first, std::int64_t last) HWY_ATTR {
    const Axis& axis = p.axis[plan.axis];
    reach(earliest_tap(axis, first), latest_end(axis, last));
  };
  const bool whole = !plan.rows.empty();  // planes as one row of all their outputs
  const std::int64_t depths = whole ? 1 : unit.outputs_end[0], heights = whole ? 1 : unit.outputs_end[1];
  const std::int64_t columns =
      whole ? p.axis[0].output * p.axis[1].output * p.axis[2].output : unit.outputs_end[2] * wide;
  if (whole) reach(0, p.axis[plan.axis].input);
  for (std::int64_t od = unit.outputs_first[0]; od < depths; ++od) {
    job.depth = window(p.axis[0], od);
    if (plan.axis == 0 && !whole) reach_windows(od, od);
    for (std::int64_t oh = unit.outputs_first[1]; oh < heights; ++oh) {
      job.height = window(p.axis[1], oh);
      if (plan.axis == 1 && !whole) reach_windows(oh, oh);
      for (std::int64_t x = unit.outputs_first[2] * wide; x < columns; x += job.one_column ? 1 : plan.segment) {
        job.count = job.one_column ? unit.channels : smaller(plan.segment, columns - x);
        job.first = plan.first.data() + x;
        job.taps = plan.taps.data() + x;
        job.skipped = plan.skipped.data() + x;
        job.channel = plan.expanded ? plan.channel.data() + x : nullptr;
        if (plan.axis == 2 && !whole) {
          reach_windows(x / wide, (x + (job.one_column ? 1 : job.count) - 1) / wide);
        }
        auto offset = [&](const Layout& l) HWY_ATTR {
          return unit.major * l.n + (unit.minor + unit.channel) * l.c + od * l.d + oh * l.h +
                 (plan.expanded || whole ? x : x * l.w);
        };
        job.indices = static_cast<const char*>(indices) + offset(p.indices) * index_bytes;
        for (std::int64_t b = 0; b < job.count * index_bytes; b += 64)
          hwy::Prefetch(static_cast<const char*>(job.indices) + kPrefetchBytes + b);
        const bool located = locate(plan, job);
        valid = valid && located;
        if (located || !kSkipWrong) visit(offset, job.count);
      }
    }
  }
  return valid;
}

/// The sums of the slices that outputs still to come may add to. Those they cannot reach any more are written and make room.
template <class T, class C>
class RollingSums {
 public:
  RollingSums(const ScatterPlan& plan, const ScatterUnit& unit, C* sums, void* gradient)
      : plan_(plan),
        unit_(unit),
        sums_(sums),
        gradient_(static_cast<T*>(gradient) + unit.major * plan.problem.grad_input.n +
                  (unit.minor + unit.channel) * plan.problem.grad_input.c + unit.slab * plan.problem.grad_input.d),
        slice_(plan.slice * unit.channels),
        low_(unit.band.first),
        high_(unit.band.first) {}

  /// Makes slices up to `end` ready; none before `first` is needed again.
  Stage Advance(std::int64_t first, std::int64_t end) {
    const std::int64_t last = unit_.band.first + unit_.band.slices;
    end = smaller(end, last);
    if (end > high_) {
      if (end - low_ > plan_.capacity) {
        const std::int64_t kept = smaller(larger(first, low_), high_);
        Write(low_, kept);
        std::memmove(static_cast<void*>(sums_), sums_ + (kept - low_) * slice_, Bytes(high_ - kept));
        low_ = kept;
        while (end - low_ > plan_.capacity) {  // slices that no window reaches into
          Zero(high_, low_ + plan_.capacity);
          Write(low_, high_ = low_ + plan_.capacity);
          low_ = high_;
        }
      }
      Zero(high_, end);
      high_ = end;
    }
    return {low_ * plan_.slice, smaller(plan_.capacity, last - low_) * plan_.slice};
  }

  /// Writes what is left.
  void Finish() {
    const std::int64_t last = unit_.band.first + unit_.band.slices;
    Advance(last, last);
    Write(low_, high_);
  }

 private:
  std::size_t Bytes(std::int64_t slices) const { return static_cast<std::size_t>(slices * slice_) * sizeof(C); }
  void Zero(std::int64_t from, std::int64_t to) {
    if (to > from) std::memset(static_cast<void*>(sums_ + (from - low_) * slice_), 0, Bytes(to - from));
  }
  void Write(std::int64_t from, std::int64_t to) const {
    const Problem& p = plan_.problem;
    const C* sums = sums_ + (from - low_) * slice_;
    if (plan_.linear && unit_.channels == plan_.position) {
      StoreAs(sums, gradient_ + from * slice_, (to - from) * slice_, plan_.streams);
      return;
    }
    const Layout& l = p.grad_input;
    const std::int64_t height = p.axis[1].input, width = p.axis[2].input;
    for (std::int64_t flat = from * plan_.slice; flat < to * plan_.slice; ++flat, sums += unit_.channels) {
      T* pixel =
          gradient_ + (plan_.linear ? flat * plan_.position
                                    : flat / width / height * l.d + flat / width % height * l.h + flat % width * l.w);
      StoreAs(sums, pixel, unit_.channels, false);
    }
  }

  const ScatterPlan& plan_;
  const ScatterUnit& unit_;
  C* sums_;
  T* gradient_;
  std::int64_t slice_;       // elements of a slice in scratch
  std::int64_t low_, high_;  // slices that `sums_` holds
};

/// Units [begin, end) of the max family's backward. Every byte of grad_input is written once, sums are taken in the order of the
/// outputs: the same whatever the bands and the threads.
template <class T, class C>
bool ScatterAdd(const ScatterPlan& plan, LocateFn locate, const ScatterPointers& pointers, std::int64_t begin,
                std::int64_t end, char* scratch) {
  C* HWY_RESTRICT sums = reinterpret_cast<C*>(scratch);
  auto* spots = reinterpret_cast<std::uint32_t*>(scratch + plan.spots_at);
  C* values = reinterpret_cast<C*>(scratch + plan.values_at);
  const auto* gradients = static_cast<const T*>(pointers.small_in);
  bool valid = true;
  for (std::int64_t index = begin; index < end; ++index) {
    const ScatterUnit unit(plan, index);
    RollingSums<T, C> rolling(plan, unit, sums, pointers.large_out);
    const bool fine = ForEachStretch<false>(
        plan, locate, unit, pointers.indices, spots,
        [&](std::int64_t first, std::int64_t stop) HWY_ATTR { return rolling.Advance(first, stop); },
        [&](const auto& offset, std::int64_t count) HWY_ATTR {
          const C* HWY_RESTRICT gradient = values;
          if constexpr (std::is_same_v<T, C>) {
            gradient = gradients + offset(plan.problem.grad_output);
            for (std::int64_t i = 0; i < count; i += 64 / static_cast<std::int64_t>(sizeof(T)))
              hwy::Prefetch(gradient + kPrefetchBytes / static_cast<std::int64_t>(sizeof(T)) + i);
          } else {
            LoadElements(gradients + offset(plan.problem.grad_output), values, count);
          }
          for (std::int64_t i = 0; i < count; ++i) sums[spots[i]] = WrappingSum(sums[spots[i]], gradient[i]);
        });
    rolling.Finish();
    valid = valid && fine;
  }
  if (plan.streams) hwy::FlushStream();
  return valid;
}

/// Unpooling: zeros, and each value where its index points; where several point to one place, the last one stays.
template <class U>
bool ScatterPut(const ScatterPlan& plan, LocateFn locate, const ScatterPointers& pointers, std::int64_t begin,
                std::int64_t end, char* scratch) {
  auto* spots = reinterpret_cast<std::uint32_t*>(scratch + plan.spots_at);
  const auto* values = static_cast<const U*>(pointers.small_in);
  const Layout& l = plan.problem.output;
  bool valid = true;
  for (std::int64_t index = begin; index < end; ++index) {
    const ScatterUnit unit(plan, index);
    U* to = static_cast<U*>(pointers.large_out) + unit.major * l.n + (unit.minor + unit.channel) * l.c;
    const std::int64_t step = plan.inner == 1 ? plan.position : 1;
    if (plan.position == unit.channels) {
      std::memset(to, 0, static_cast<std::size_t>(unit.positions * unit.channels) * sizeof(U));
    } else {
      for (std::int64_t i = 0; i < unit.positions; ++i) {
        for (std::int64_t c = 0; c < unit.channels; ++c) to[i * plan.position + c] = 0;
      }
    }
    const Stage plane{0, unit.positions};
    const bool fine = ForEachStretch<true>(
        plan, locate, unit, pointers.indices, spots, [&](std::int64_t, std::int64_t) HWY_ATTR { return plane; },
        [&](const auto& offset, std::int64_t count) HWY_ATTR {
          const U* from = values + offset(plan.problem.input);
          for (std::int64_t i = 0; i < count; ++i) to[spots[i] * step] = from[i];
        });
    valid = valid && fine;
  }
  return valid;
}

/// The backward of unpooling: each gradient from where its index points.
template <class U>
bool ScatterTake(const ScatterPlan& plan, LocateFn locate, const ScatterPointers& pointers, std::int64_t begin,
                 std::int64_t end, char* scratch) {
  auto* spots = reinterpret_cast<std::uint32_t*>(scratch + plan.spots_at);
  const Layout& l = plan.problem.grad_output;
  bool valid = true;
  for (std::int64_t index = begin; index < end; ++index) {
    const ScatterUnit unit(plan, index);
    const U* from = static_cast<const U*>(pointers.large_in) + unit.major * l.n + (unit.minor + unit.channel) * l.c;
    const std::int64_t step = plan.inner == 1 ? plan.position : 1;
    const Stage plane{0, unit.positions};
    const bool fine = ForEachStretch<true>(
        plan, locate, unit, pointers.indices, spots, [&](std::int64_t, std::int64_t) HWY_ATTR { return plane; },
        [&](const auto& offset, std::int64_t count) HWY_ATTR {
          U* to = static_cast<U*>(pointers.small_out) + offset(plan.problem.grad_input);
          for (std::int64_t i = 0; i < count; ++i) to[i] = from[spots[i] * step];
        });
    valid = valid && fine;
  }
  return valid;
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
