// From indices to positions of a band: one multiplication per index instead of a division, the loops vectorised by the compiler
// for every instruction set.
#include "cpu/scatter_plan.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/locate.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <limits>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// Beyond every position, and not "none".
constexpr std::uint32_t kBeyond = 0x7fffffffU;

template <class Index>
void LoadIndices(const void* indices, std::int64_t count, std::uint32_t* HWY_RESTRICT to) {
  const Index* from = static_cast<const Index*>(indices);
  for (std::int64_t i = 0; i < count; ++i) {
    const Index index = from[i];
    if constexpr (std::is_signed_v<Index>) {
      const bool fits = index >= 0 && index < static_cast<Index>(kBeyond);
      to[i] = index == -1 ? kNowhere : fits ? static_cast<std::uint32_t>(index) : kBeyond;
    } else {
      to[i] = index == std::numeric_limits<Index>::max() ? kNowhere
              : index < kBeyond                          ? static_cast<std::uint32_t>(index)
                                                         : kBeyond;
    }
  }
}

/// The windows of a job's outputs along the row: from tables, or all the same.
template <bool kOneColumn>
struct RowWindows {
  const std::uint32_t *first, *taps, *skipped;
  std::uint32_t one_first, one_taps, one_skipped;
  HWY_INLINE std::uint32_t FirstOf(std::int64_t i) const { return kOneColumn ? one_first : first[i]; }
  HWY_INLINE std::uint32_t TapsOf(std::int64_t i) const { return kOneColumn ? one_taps : taps[i]; }
  HWY_INLINE std::uint32_t SkippedOf(std::int64_t i) const { return kOneColumn ? one_skipped : skipped[i]; }
};

/// Flat positions: counted from the window's first tap, they fall apart into whole rows and a rest.
template <bool kDilated, bool kDeep, class Windows>
bool LocateFlat(const ScatterPlan& plan, const LocateJob& job, const Windows& windows) {
  const Divider width = plan.width, height = plan.height;
  const Divider step_w(plan.step[2]), step_h(plan.step[1]), step_d(plan.step[0]);
  const auto row = static_cast<std::uint32_t>((job.depth.first * plan.problem.axis[1].input + job.height.first) *
                                              plan.problem.axis[2].input);
  const auto deep = static_cast<std::uint32_t>(job.depth.count), high = static_cast<std::uint32_t>(job.height.count);
  const auto base = static_cast<std::uint32_t>(job.base);
  std::uint32_t* HWY_RESTRICT spots = job.spots;
  std::uint32_t wrong = 0;
  for (std::int64_t i = 0; i < job.count; ++i) {
    const std::uint32_t index = spots[i];
    const std::uint32_t offset = index - row - windows.FirstOf(i);
    const std::uint32_t distance = offset < kBeyond ? offset : kBeyond;
    std::uint32_t rows = width(distance);
    std::uint32_t columns = distance - rows * width.divisor;
    std::uint32_t slices = 0;
    if constexpr (kDeep) {
      slices = height(rows);
      rows -= slices * height.divisor;
    }
    bool valid = true;
    if constexpr (kDilated) {
      const std::uint32_t c = step_w(columns), r = step_h(rows), s = step_d(slices);
      valid = c * step_w.divisor == columns && r * step_h.divisor == rows && s * step_d.divisor == slices;
      columns = c, rows = r, slices = s;
    }
    valid = valid && columns < windows.TapsOf(i) && rows < high && (!kDeep || slices < deep);
    wrong |= valid || index == kNowhere ? 0U : 1U;
    spots[i] = valid ? index - base : kNowhere;
  }
  return wrong == 0;
}

/// Taps of the window. kEven: every window has the kernel's taps, clipped or not.
template <bool kEven, class Windows>
bool LocateTaps(const ScatterPlan& plan, const LocateJob& job, const Windows& windows) {
  const Axis* axis = plan.problem.axis;
  const auto plane_width = static_cast<std::uint32_t>(axis[2].input),
             plane_height = static_cast<std::uint32_t>(axis[1].input);
  const auto whole_h = static_cast<std::uint32_t>(job.height.whole);
  const auto deep = static_cast<std::uint32_t>(job.depth.count), high = static_cast<std::uint32_t>(job.height.count);
  const auto first_d = static_cast<std::uint32_t>(job.depth.first),
             first_h = static_cast<std::uint32_t>(job.height.first);
  const auto skipped_d = static_cast<std::uint32_t>(job.depth.skipped),
             skipped_h = static_cast<std::uint32_t>(job.height.skipped);
  const std::uint32_t step_d = plan.step[0], step_h = plan.step[1], step_w = plan.step[2];
  const auto base = static_cast<std::uint32_t>(job.base);
  std::uint32_t* HWY_RESTRICT spots = job.spots;
  std::uint32_t wrong = 0;
  for (std::int64_t i = 0; i < job.count; ++i) {
    const std::uint32_t index = spots[i];
    const std::uint32_t tap = index < kBeyond ? index : kBeyond;
    const std::uint32_t whole_w = kEven ? plan.kernel_width.divisor : windows.TapsOf(i);
    const std::uint32_t lines = kEven ? plan.kernel_width(tap) : tap / (whole_w == 0 ? 1 : whole_w);
    const std::uint32_t slices = kEven ? plan.kernel_height(lines) : lines / (whole_h == 0 ? 1 : whole_h);
    const std::uint32_t w = tap - lines * whole_w - windows.SkippedOf(i), h = lines - slices * whole_h - skipped_h,
                        d = slices - skipped_d;
    const bool valid = w < windows.TapsOf(i) && h < high && d < deep;
    const std::uint32_t flat =
        ((first_d + d * step_d) * plane_height + first_h + h * step_h) * plane_width + windows.FirstOf(i) + w * step_w;
    wrong |= valid || index == kNowhere ? 0U : 1U;
    spots[i] = valid ? flat - base : kNowhere;
  }
  return wrong == 0;
}

/// Unpooling: any place of the plane will do.
bool LocateAnywhere(const ScatterPlan& plan, const LocateJob& job) {
  const auto places = static_cast<std::uint32_t>(plane_size(plan.problem));
  std::uint32_t wrong = 0;
  for (std::int64_t i = 0; i < job.count; ++i) wrong |= job.spots[i] < places ? 0U : 1U;
  return wrong == 0;
}

template <class Windows>
bool LocateIn(const ScatterPlan& plan, const LocateJob& job, const Windows& windows) {
  if (plan.problem.index_kind == IndexKind::window) {
    const bool even = plan.problem.axis[2].rule == WindowRule::sliding;
    return even ? LocateTaps<true>(plan, job, windows) : LocateTaps<false>(plan, job, windows);
  }
  if (plan.problem.op == Op::max_unpool) return LocateAnywhere(plan, job);
  const bool deep = plan.problem.axis[0].input > 1;
  if (plan.dilated) return LocateFlat<true, true>(plan, job, windows);
  return deep ? LocateFlat<false, true>(plan, job, windows) : LocateFlat<false, false>(plan, job, windows);
}

bool Locate(const ScatterPlan& plan, const LocateJob& job) {
  switch (job.dtype) {
    case DType::i64: LoadIndices<std::int64_t>(job.indices, job.count, job.spots); break;
    case DType::i32: LoadIndices<std::int32_t>(job.indices, job.count, job.spots); break;
    case DType::u8: LoadIndices<std::uint8_t>(job.indices, job.count, job.spots); break;
    case DType::u16: LoadIndices<std::uint16_t>(job.indices, job.count, job.spots); break;
    default: LoadIndices<std::uint32_t>(job.indices, job.count, job.spots); break;
  }
  if (job.one_column) {
    return LocateIn(plan, job, RowWindows<true>{nullptr, nullptr, nullptr, *job.first, *job.taps, *job.skipped});
  }
  return LocateIn(plan, job, RowWindows<false>{job.first, job.taps, job.skipped, 0, 0, 0});
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(Locate);
LocateFn locate(std::size_t target) { return HWY_DISPATCH_TABLE(Locate)[target]; }
}  // namespace cenote::simd
#endif
