// The scatters: gradients of the max family summed up where their indices point.
#if defined(CENOTE_CPU_GRADIENTS_SCATTER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_GRADIENTS_SCATTER_INL_H_
#undef CENOTE_CPU_GRADIENTS_SCATTER_INL_H_
#else
#define CENOTE_CPU_GRADIENTS_SCATTER_INL_H_
#endif

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "cpu/gradients/scatter.hpp"
#include "cpu/gradients/tap_columns-inl.h"
#include "cpu/thresholds.hpp"
#include "cpu/vectors/index_vectors-inl.h"
#include "cpu/vectors/stream-inl.h"
#include "cpu/vectors/unroll.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// Which positions the located elements are counted from, and how many there are.
struct Stage {
  std::int64_t base, positions;
};

/// Calls visit(offset, count) for stretches of the unit's outputs in their order, located in `spots`: offset(layout) is the first
/// one's element in a tensor of the outputs. Before each step along the plan's axis, advance(first, end) is told which slices
/// its windows reach into. False when an index was wrong. Where the plan adds by taps, add(job, columns, offset) does it for several columns; where it finds an index that is no tap, it does nothing and they are located.
template <class Advance, class Add, class Visit>
HWY_INLINE bool ForEachStretch(const ScatterPlan& plan, LocateFn locate, const ScatterUnit& unit, const void* indices,
                               std::uint32_t* spots, const Advance& advance, const Add& add, const Visit& visit) {
  const Problem& p = plan.problem;
  const auto index_bytes = static_cast<std::int64_t>(size_of(p.index_dtype));
  bool valid = true;
  LocateJob job{};
  job.dtype = p.index_dtype;
  job.one_column = plan.column_by_column();
  job.step = static_cast<std::uint32_t>(plan.inner == 1 ? 1 : unit.channels);
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
  const std::int64_t columns = unit.outputs_end[2] * plan.wide();
  for (std::int64_t od = unit.outputs_first[0]; od < unit.outputs_end[0]; ++od) {
    job.depth = window(p.axis[0], od);
    if (plan.axis == 0) reach_windows(od, od);
    for (std::int64_t oh = unit.outputs_first[1]; oh < unit.outputs_end[1]; ++oh) {
      job.height = window(p.axis[1], oh);
      if (plan.axis == 1) reach_windows(oh, oh);
      std::int64_t stretch = 0, looked_at = 0;
      for (std::int64_t x = unit.outputs_first[2] * plan.wide(); x < columns; x += stretch) {
        stretch = job.one_column ? 1 : plan.segment;
        job.count = job.one_column ? unit.channels : smaller(plan.segment, columns - x);
        set_tables(plan, x, job);
        if (plan.axis == 2) {
          reach_windows(x / plan.wide(), (x + (job.one_column ? 1 : job.count) - 1) / plan.wide());
        }
        auto offset = [&](const Layout& l) HWY_ATTR {
          return unit.major * l.n + (unit.minor + unit.channel) * l.c + od * l.d + oh * l.h +
                 (plan.expanded ? x : x * l.w);
        };
        job.indices = static_cast<const char*>(indices) + offset(p.indices) * index_bytes;
        if (plan.by_taps && x >= looked_at) {
          const std::int64_t together = smaller(larger(kTapElements / unit.channels, 1), columns - x);
          if (add(job, together, offset)) {
            stretch = together;
            continue;
          }
          looked_at = x + together;
        }
        for (std::int64_t b = 0; job.one_column && b < job.count * index_bytes; b += 64)
          hwy::Prefetch(static_cast<const char*>(job.indices) + kPrefetchBytes + b);
        valid = locate(plan, job) && valid;
        visit(offset, job.count);
      }
    }
  }
  return valid;
}

/// The sums of the slices that outputs still to come may add to. Those they cannot reach any more are written and make room.
template <class T, class C>
class RollingSums {
 public:
  RollingSums(const ScatterPlan& plan, const ScatterUnit& unit, C* scratch, void* gradient, StreamWriter& writer)
      : plan_(plan),
        unit_(unit),
        writer_(writer),
        sums_(scratch),
        gradient_(static_cast<T*>(gradient) + unit.major * plan.problem.grad_input.n +
                  (unit.minor + unit.channel) * plan.problem.grad_input.c + unit.slab * plan.problem.grad_input.d),
        slice_(plan.slice * unit.channels * unit.planes),
        low_(unit.band.first),
        high_(unit.band.first) {
    if constexpr (std::is_same_v<T, C>) {
      if (plan.in_place) sums_ = gradient_ + low_ * slice_;
    }
  }

  C* sums() const { return sums_; }

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
    return {low_ * plan_.slice, smaller(plan_.capacity, last - low_) * plan_.slice * unit_.planes};
  }

  /// Writes what is left.
  void Finish() {
    const std::int64_t last = unit_.band.first + unit_.band.slices;
    Advance(last, last);
    if (!plan_.in_place) Write(low_, high_);
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
      T* target = gradient_ + from * slice_;
      const std::int64_t elements = (to - from) * slice_;
      return plan_.streams ? writer_.Write(sums, target, elements) : StoreAs(sums, target, elements);
    }
    const Layout& l = p.grad_input;
    const std::int64_t height = p.axis[1].input, width = p.axis[2].input;
    for (std::int64_t flat = from * plan_.slice; flat < to * plan_.slice; ++flat, sums += unit_.channels) {
      T* pixel =
          gradient_ + (plan_.linear ? flat * plan_.position
                                    : flat / width / height * l.d + flat / width % height * l.h + flat % width * l.w);
      StoreAs(sums, pixel, unit_.channels);
    }
  }

  const ScatterPlan& plan_;
  const ScatterUnit& unit_;
  StreamWriter& writer_;
  C* sums_;
  T* gradient_;
  std::int64_t slice_;       // elements of a slice in scratch
  std::int64_t low_, high_;  // slices that `sums_` holds
};

/// Columns of many channels: every tap of an output's window is compared with its indices, a vector of channels at a time, and
/// the gradients of those that point to it are added. Each index must be found once, or be "none".
template <class T, class C>
bool CompareColumns(const ScatterPlan& plan, const ScatterPointers& pointers, const ScatterUnit& unit,
                    RollingSums<T, C>& rolling) {
  using Code = CodeOf<C>;
  const hn::ScalableTag<C> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Problem& p = plan.problem;
  const std::int64_t height = p.axis[1].input, width = p.axis[2].input, channels = unit.channels;
  const std::int64_t slab = unit.slab * height * width;
  const auto* indices = static_cast<const std::int64_t*>(pointers.indices);
  const auto* gradients = static_cast<const T*>(pointers.grad_output);
  const auto none = hn::Set(di, Code{-1});
  auto wrong = hn::Zero(di);
  Stage stage{};
  auto advance = [&](int axis, std::int64_t o) HWY_ATTR {
    if (axis == plan.axis) stage = rolling.Advance(earliest_tap(p.axis[axis], o), latest_end(p.axis[axis], o));
  };
  for (std::int64_t od = unit.outputs_first[0]; od < unit.outputs_end[0]; ++od) {
    const Window depth_window = window(p.axis[0], od);
    advance(0, od);
    for (std::int64_t oh = unit.outputs_first[1]; oh < unit.outputs_end[1]; ++oh) {
      const Window height_window = window(p.axis[1], oh);
      advance(1, oh);
      for (std::int64_t ow = unit.outputs_first[2]; ow < unit.outputs_end[2]; ++ow) {
        advance(2, ow);
        const auto column = static_cast<std::size_t>(ow);
        // Where the window's taps lie, in the band and as indices.
        C* places[kComparedTaps];
        Code codes[kComparedTaps];
        int taps = 0;
        for (std::int64_t z = 0; z < depth_window.count; ++z) {
          for (std::int64_t y = 0; y < height_window.count; ++y) {
            const std::int64_t line =
                (depth_window.first + z * depth_window.step) * height + height_window.first + y * height_window.step;
            for (std::int64_t x = 0; x < plan.taps[column]; ++x, ++taps) {
              const std::int64_t position = line * width + plan.first[column] + x * plan.step[2];
              const std::int64_t place = position - slab - stage.base;
              places[taps] = place >= 0 && place < stage.positions ? rolling.sums() + place * channels : nullptr;
              codes[taps] = static_cast<Code>(position);
            }
          }
        }
        auto offset = [&](const Layout& l)
                          HWY_ATTR { return unit.major * l.n + unit.channel * l.c + od * l.d + oh * l.h + ow * l.w; };
        const std::int64_t* index = indices + offset(p.indices);
        const T* gradient = gradients + offset(p.grad_output);
        for (std::int64_t next = 0; next < channels; next += lanes) {
          const bool whole = next + lanes <= channels;
          const std::int64_t c = whole ? next : channels - lanes;  // the ragged end from its last whole vector, ...
          const auto code = LoadIndexVector(di, index + c);
          auto found = hn::Eq(code, none);
          const auto g = LoadAs(d, gradient + c);
          const auto fresh = hn::Not(hn::FirstN(di, static_cast<std::size_t>(next - c)));  // ... of which these are new
          for (int tap = 0; tap < taps; ++tap) {
            auto here = hn::Eq(code, hn::Set(di, codes[tap]));
            found = hn::Or(found, here);
            if (places[tap] == nullptr) continue;
            if (!whole) here = hn::And(here, fresh);
            const auto sum = hn::LoadU(d, places[tap] + c);
            hn::StoreU(hn::IfThenElse(hn::RebindMask(d, here), hn::Add(sum, g), sum), d, places[tap] + c);
          }
          wrong = hn::Or(wrong, hn::IfThenZeroElse(found, none));
        }
      }
    }
  }
  return hn::AllTrue(di, hn::Eq(wrong, hn::Zero(di)));
}

/// Outputs of one plane: where their gradients go.
template <class C>
struct PlaneSpots {
  const std::uint32_t* HWY_RESTRICT spots;
  const C* HWY_RESTRICT gradient;
  C* HWY_RESTRICT sums;

  HWY_INLINE void Add(std::int64_t i) const {
    if (spots[i] != kNowhere) sums[spots[i]] = WrappingSum(sums[spots[i]], gradient[i]);
  }
};

template <class C>
HWY_NOINLINE void AddSpots(const PlaneSpots<C>& plane, std::int64_t from, std::int64_t to) {
  for (; from < to; ++from) plane.Add(from);
}

/// Several planes in turns, since neighbouring windows often have one winner and a sum must wait for the one before it; each is `lag` outputs ahead of the next.
template <class C>
HWY_NOINLINE void AddSpotsInTurns(const PlaneSpots<C> (&planes)[kPlanesInTurns], std::int64_t count, std::int64_t lag) {
  constexpr std::int64_t kLast = kPlanesInTurns - 1;
  PlaneSpots<C> ahead[kPlanesInTurns];
  for (std::int64_t i = 0; i < kPlanesInTurns; ++i) {
    const std::int64_t first = (kLast - i) * lag;
    if (first > 0) AddSpots(planes[i], 0, first);
    ahead[i] = {planes[i].spots + first, planes[i].gradient + first, planes[i].sums};
  }
  for (std::int64_t x = 0; x < count - kLast * lag; ++x) {
    CENOTE_UNROLL
    for (std::int64_t i = 0; i < kPlanesInTurns; ++i) ahead[i].Add(x);
  }
  for (std::int64_t i = 1; i < kPlanesInTurns && lag > 0; ++i) AddSpots(planes[i], count - i * lag, count);
}

/// `count` gradients from element `first` on, in the compute type.
template <class C>
using LoadGradientsFn = void (*)(const void* gradients, std::int64_t first, std::int64_t count, C* to);
template <class T, class C>
void LoadGradients(const void* gradients, std::int64_t first, std::int64_t count, C* to) {
  LoadElements(static_cast<const T*>(gradients) + first, to, count);
}

/// The planes of a unit, located whole, some outputs of each at a time, and added to in turns. `load`: null where gradients are in the compute type already. False when an index was wrong.
template <class C>
HWY_NOINLINE bool ScatterPlanes(const ScatterPlan& plan, LocateFn locate, const ScatterUnit& unit,
                                const ScatterPointers& pointers, LoadGradientsFn<C> load, std::uint32_t* spots,
                                C* values, C* sums) {
  const Problem& p = plan.problem;
  const std::int64_t outputs = plane_outputs(p) * plan.inner, positions = plane_size(p), plane = positions * plan.inner;
  const std::int64_t index_begin = unit.major * p.indices.n + unit.minor * p.indices.c;
  const std::int64_t begin = unit.major * p.grad_output.n + unit.minor * p.grad_output.c;
  const auto index_bytes = static_cast<std::int64_t>(size_of(p.index_dtype));
  // Those that are tabled together are located together.
  const bool together = plan.tabled > 1;
  const std::int64_t located = together ? unit.planes * outputs : outputs, jobs = together ? 1 : unit.planes;
  const bool channels = plan.inner > 1;  // which share no sum
  const bool apart = channels || std::all_of(std::begin(p.axis), std::end(p.axis), [](const Axis& axis) {
                       return axis.rule == WindowRule::sliding && axis.kernel <= axis.stride;
                     });
  bool valid = true;
  LocateJob job{};
  job.dtype = p.index_dtype;
  job.step = static_cast<std::uint32_t>(plan.inner);
  job.depth = window(p.axis[0], 0);
  job.height = window(p.axis[1], 0);
  for (std::int64_t x = 0; x < located; x += job.count) {
    job.count = smaller(plan.segment, located - x);
    set_tables(plan, x, job);
    for (std::int64_t i = 0; i < jobs; ++i) {
      job.indices = static_cast<const char*>(pointers.indices) + (index_begin + i * outputs + x) * index_bytes;
      job.positions =
          static_cast<std::uint32_t>((unit.planes - i) * positions);  // spare elements are behind all of them
      job.spots = spots + i * job.count;
      valid = locate(plan, job) && valid;
      if (load != nullptr) load(pointers.grad_output, begin + i * outputs + x, job.count, values + i * job.count);
    }
    const std::int64_t count = together ? outputs : job.count;
    auto plane_at = [&](std::int64_t i) -> PlaneSpots<C> {
      const C* gradient =
          load != nullptr ? values + i * count : static_cast<const C*>(pointers.grad_output) + begin + i * outputs + x;
      return {spots + i * count, gradient, sums + (together ? 0 : i * plane)};
    };
    if (together && apart) {  // no sum waits for another
      AddSpots(plane_at(0), 0, job.count);
      continue;
    }
    std::int64_t i = 0;
    for (; !channels && i + kPlanesInTurns <= unit.planes; i += kPlanesInTurns) {
      static_assert(kPlanesInTurns == 4);
      AddSpotsInTurns({plane_at(i), plane_at(i + 1), plane_at(i + 2), plane_at(i + 3)}, count, plan.lag);
    }
    for (; i < unit.planes; ++i) AddSpots(plane_at(i), 0, count);
  }
  return valid;
}

/// The same where the windows of a row are so wide that many in a row have one winner: its sum stays in a register for as long. (Aligned: 31x31/1 over 3 x 1024 x 1024 takes 2560 or 3180 us of one thread,
/// depending on where the same instructions lie.)
template <class C>
HWY_NOINLINE __attribute__((aligned(64))) void AddRuns(const std::uint32_t* HWY_RESTRICT spots,
                                                       const C* HWY_RESTRICT gradient, std::int64_t count,
                                                       C* HWY_RESTRICT sums) {
  std::uint32_t at = kNowhere;
  C sum{};
  for (std::int64_t i = 0; i < count; ++i) {
    if (spots[i] != at) {
      if (at != kNowhere) sums[at] = sum;
      at = spots[i];
      sum = at == kNowhere ? C{} : sums[at];
    }
    sum = WrappingSum(sum, gradient[i]);
  }
  if (at != kNowhere) sums[at] = sum;
}

/// Units [begin, end) of the max family's backward. Every byte of grad_input is written once, sums are taken in the order of the
/// outputs: the same whatever the bands and the threads.
template <class T, class C>
bool ScatterAdd(const ScatterPlan& plan, LocateFn locate, const ScatterPointers& pointers, std::int64_t begin,
                std::int64_t end, char* scratch) {
  auto* spots = reinterpret_cast<std::uint32_t*>(scratch + plan.spots_at);
  C* values = reinterpret_cast<C*>(scratch + plan.values_at);
  const auto* gradients = static_cast<const T*>(pointers.grad_output);
  StreamWriter writer;
  bool valid = true;
  for (std::int64_t index = begin; index < end; ++index) {
    const ScatterUnit unit(plan, index);
    RollingSums<T, C> rolling(plan, unit, reinterpret_cast<C*>(scratch), pointers.grad_input, writer);
    if constexpr (hwy::IsFloat<C>() && kHasGathers) {
      if (plan.compares && unit.channels >= static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<C>()))) {
        valid = CompareColumns(plan, pointers, unit, rolling) && valid;
        rolling.Finish();
        continue;
      }
    }
    C* HWY_RESTRICT sums = rolling.sums();
    if (!plan.rows.empty()) {
      rolling.Advance(0, plan.problem.axis[plan.axis].input);
      const LoadGradientsFn<C> load = std::is_same_v<T, C> ? nullptr : LoadGradients<T, C>;
      valid = ScatterPlanes(plan, locate, unit, pointers, load, spots, values, sums) && valid;
      rolling.Finish();
      continue;
    }
#if HWY_TARGET != HWY_SCALAR
    const TapColumns<T, C> tap_columns(plan, unit.channels);
#endif
    auto gradient_at = [&](const auto& offset, std::int64_t count) HWY_ATTR -> const C* {
      const T* gradient = gradients + offset(plan.problem.grad_output);
      if constexpr (std::is_same_v<T, C>) {
        for (std::int64_t i = 0; plan.column_by_column() && i < count; i += 64 / static_cast<std::int64_t>(sizeof(T)))
          hwy::Prefetch(gradient + kPrefetchBytes / static_cast<std::int64_t>(sizeof(T)) + i);
        return gradient;
      } else {
        LoadElements(gradient, values, count);
        return values;
      }
    };
    const bool fine = ForEachStretch(
        plan, locate, unit, pointers.indices, spots,
        [&](std::int64_t first, std::int64_t stop) HWY_ATTR { return rolling.Advance(first, stop); },
        [&]([[maybe_unused]] const LocateJob& job, [[maybe_unused]] std::int64_t together,
            [[maybe_unused]] const auto& offset) HWY_ATTR {
#if HWY_TARGET == HWY_SCALAR
          return false;
#else
          if (!ColumnsAreTaps(plan, job, together, unit.channels)) return false;
          tap_columns.Add(job, together, gradients + offset(plan.problem.grad_output), values, sums);
          return true;
#endif
        },
        [&](const auto& offset, std::int64_t count) HWY_ATTR {
          const C* HWY_RESTRICT gradient = gradient_at(offset, count);
          if constexpr (hwy::IsFloat<C>()) {
            if (plan.wide_windows) return AddRuns(spots, gradient, count, sums);
          }
          AddSpots<C>({spots, gradient, sums}, 0, count);
        });
    rolling.Finish();
    valid = valid && fine;
  }
  return valid;
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
