// The scatters: gradients of the max family summed up where their indices point, unpooled values put there and taken from there.
#if defined(CENOTE_CPU_SCATTER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_SCATTER_INL_H_
#undef CENOTE_CPU_SCATTER_INL_H_
#else
#define CENOTE_CPU_SCATTER_INL_H_
#endif

#include <cstring>

#include "cpu/convert-inl.h"
#include "cpu/scatter.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// Calls visit(at, spots, count, channel) for stretches of the unit's outputs in their order: `at` names the first one's element
/// in a tensor of the small side's layout, spots[i] the position of the i-th. False when an index is wrong.
template <class At, class Visit>
HWY_INLINE bool ForEachStretch(const ScatterPlan& plan, LocateFn locate, const ScatterUnit& unit, const void* indices,
                               std::uint32_t* spots, const At& index_at, const Visit& visit) {
  const Problem& p = plan.problem;
  const bool planar = plan.inner == 1;
  const auto index_bytes = static_cast<std::int64_t>(size_of(p.index_dtype));
  bool valid = true;
  LocateJob job{};
  job.dtype = p.index_dtype;
  job.one_column = !planar;
  job.base = unit.base;
  job.spots = spots;
  for (std::int64_t od = unit.outputs_first[0]; od < unit.outputs_end[0]; ++od) {
    job.depth = window(p.axis[0], od);
    for (std::int64_t oh = unit.outputs_first[1]; oh < unit.outputs_end[1]; ++oh) {
      job.height = window(p.axis[1], oh);
      const std::int64_t end = unit.outputs_end[2];
      for (std::int64_t ow = unit.outputs_first[2]; ow < end; ow += planar ? kSegment : 1) {
        job.count = planar ? smaller(kSegment, end - ow) : unit.channels;
        job.first = plan.first.data() + ow;
        job.taps = plan.taps.data() + ow;
        job.skipped = plan.skipped.data() + ow;
        job.indices = static_cast<const char*>(indices) + index_at(p.indices, od, oh, ow) * index_bytes;
        valid = locate(plan, job) && valid;
        visit(od, oh, ow, job.count);
      }
    }
  }
  return valid;
}

/// Offset of an output's first element, for the unit's plane or channels.
struct OutputOffset {
  const ScatterUnit& unit;
  HWY_INLINE std::int64_t operator()(const Layout& l, std::int64_t d, std::int64_t h, std::int64_t w) const {
    return unit.major * l.n + (unit.minor + unit.channel) * l.c + d * l.d + h * l.h + w * l.w;
  }
};

/// The summed band to the gradient.
template <class T, class C>
void WriteBand(const ScatterPlan& plan, const ScatterUnit& unit, const C* sums, T* gradient) {
  const Problem& p = plan.problem;
  const Layout& l = p.grad_input;
  T* to = gradient + unit.major * l.n + (unit.minor + unit.channel) * l.c;
  const bool whole_columns = unit.channels == plan.inner && (plan.inner == 1 || l.c == 1);
  if (plan.linear && whole_columns && plan.position == plan.inner) {
    StoreAs(sums, to + unit.base * plan.inner, unit.positions * plan.inner);
    return;
  }
  const std::int64_t height = p.axis[1].input, width = p.axis[2].input;
  for (std::int64_t i = 0; i < unit.positions; ++i) {
    const std::int64_t flat = unit.base + i;
    T* pixel = to + (plan.linear ? flat * plan.position
                                 : flat / width / height * l.d + flat / width % height * l.h + flat % width * l.w);
    const C* from = sums + i * unit.channels;
    if (unit.channels == 1) {
      StoreAs(from, pixel, 1);
    } else {
      StoreAs(from, pixel, unit.channels);
    }
  }
}

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
    const OutputOffset at{unit};
    std::memset(static_cast<void*>(sums), 0, static_cast<std::size_t>(unit.positions * unit.channels) * sizeof(C));
    const auto limit = static_cast<std::uint32_t>(unit.positions);
    const auto step = static_cast<std::uint32_t>(unit.channels);
    valid = ForEachStretch(plan, locate, unit, pointers.indices, spots, at,
                           [&](std::int64_t od, std::int64_t oh, std::int64_t ow, std::int64_t count) HWY_ATTR {
                             const T* from = gradients + at(plan.problem.grad_output, od, oh, ow);
                             const C* gradient = nullptr;
                             if constexpr (std::is_same_v<T, C>) {
                               gradient = from;
                             } else {
                               LoadElements(from, values, count);
                               gradient = values;
                             }
                             if (plan.inner == 1) {
                               for (std::int64_t i = 0; i < count; ++i) {
                                 if (spots[i] < limit) sums[spots[i]] = WrappingSum(sums[spots[i]], gradient[i]);
                               }
                             } else {
                               for (std::int64_t i = 0; i < count; ++i) {
                                 if (spots[i] >= limit) continue;
                                 C& sum = sums[std::size_t{spots[i]} * step + static_cast<std::size_t>(i)];
                                 sum = WrappingSum(sum, gradient[i]);
                               }
                             }
                           }) &&
            valid;
    WriteBand(plan, unit, sums, static_cast<T*>(pointers.large_out));
  }
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
    const OutputOffset at{unit};
    U* to = static_cast<U*>(pointers.large_out) + unit.major * l.n + (unit.minor + unit.channel) * l.c;
    const std::int64_t step = plan.position;
    if (unit.channels == step) {
      std::memset(to, 0, static_cast<std::size_t>(unit.positions * step) * sizeof(U));
    } else {
      for (std::int64_t i = 0; i < unit.positions; ++i) {
        for (std::int64_t c = 0; c < unit.channels; ++c) to[i * step + c] = 0;
      }
    }
    const auto limit = static_cast<std::uint32_t>(unit.positions);
    valid = ForEachStretch(plan, locate, unit, pointers.indices, spots, at,
                           [&](std::int64_t od, std::int64_t oh, std::int64_t ow, std::int64_t count) HWY_ATTR {
                             const U* from = values + at(plan.problem.input, od, oh, ow);
                             const std::int64_t own = plan.inner == 1 ? 0 : 1;
                             for (std::int64_t i = 0; i < count; ++i) {
                               if (spots[i] >= limit) {
                                 valid = false;
                               } else {
                                 to[spots[i] * step + i * own] = from[i];
                               }
                             }
                           }) &&
            valid;
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
    const OutputOffset at{unit};
    const U* from = static_cast<const U*>(pointers.large_in) + unit.major * l.n + (unit.minor + unit.channel) * l.c;
    const std::int64_t step = plan.position;
    const auto limit = static_cast<std::uint32_t>(unit.positions);
    valid = ForEachStretch(plan, locate, unit, pointers.indices, spots, at,
                           [&](std::int64_t od, std::int64_t oh, std::int64_t ow, std::int64_t count) HWY_ATTR {
                             U* to = static_cast<U*>(pointers.small_out) + at(plan.problem.grad_input, od, oh, ow);
                             const std::int64_t own = plan.inner == 1 ? 0 : 1;
                             for (std::int64_t i = 0; i < count; ++i) {
                               if (spots[i] >= limit) {
                                 valid = false;
                               } else {
                                 to[i] = from[spots[i] * step + i * own];
                               }
                             }
                           }) &&
            valid;
  }
  return valid;
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
