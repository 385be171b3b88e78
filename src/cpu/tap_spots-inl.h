// Gradients of columns of many channels, added where their taps say.
#if defined(CENOTE_CPU_TAP_SPOTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_TAP_SPOTS_INL_H_
#undef CENOTE_CPU_TAP_SPOTS_INL_H_
#else
#define CENOTE_CPU_TAP_SPOTS_INL_H_
#endif

#include "cpu/index_vectors-inl.h"
#include "cpu/scatter_plan.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// Where each tap of one window lies in the band, for every number that a byte may be: made once for all channels of a column.
class TapSpots {
 public:
  /// `spare`: of the elements behind the sums that nobody reads, as many as a column has channels. Of use only where the plan adds by taps.
  TapSpots(const ScatterPlan& plan, std::uint32_t spare) : plan_(plan), wrong_(kWrong | spare) {
    for (std::size_t i = 0; plan.by_taps && i < sizeof(spots_) / sizeof(*spots_); ++i) spots_[i] = wrong_;
  }

  /// The window of the job's column.
  HWY_NOINLINE void Place(const LocateJob& job) {
    const hn::ScalableTag<std::uint32_t> d;
    const Axis *height = &plan_.problem.axis[1], *width = &plan_.problem.axis[2];
    const std::int64_t slice = job.depth.first - job.depth.skipped * job.depth.step;
    const std::int64_t line = slice * height->input + job.height.first - job.height.skipped * job.height.step;
    const auto origin = static_cast<std::uint32_t>(line * width->input - job.base) + *job.origins;
    const auto rows = [](std::int64_t deep, std::int64_t high) {
      return static_cast<std::uint32_t>(deep << 16 | high << 8);
    };
    const auto skipped = hn::Set(d, rows(skipped_byte(job.depth), skipped_byte(job.height)) | *job.skips);
    const auto limit = hn::Set(d, rows(last_byte(job.depth), last_byte(job.height)) | *job.limits);
    const auto first = hn::Set(d, origin), step = hn::Set(d, job.step), wrong = hn::Set(d, wrong_);
    const std::size_t taps = plan_.tap_offsets.size() - kTableSlack;
    for (std::size_t i = 0; i < taps; i += hn::Lanes(d)) {  // there is room behind the tables
      const auto inside = BytesWithin(d, hn::LoadU(d, plan_.tap_places.data() + i), skipped, limit);
      const auto spot = hn::Mul(hn::Add(first, hn::LoadU(d, plan_.tap_offsets.data() + i)), step);
      hn::StoreU(hn::IfThenElse(inside, spot, wrong), d, spots_ + i);
    }
  }

  /// False where some tap is none of the window's: its gradient goes to the spare elements, all others where they belong.
  template <class C>
  HWY_INLINE bool Add(const std::uint8_t* HWY_RESTRICT taps, const C* HWY_RESTRICT gradient, std::int64_t channels,
                      C* HWY_RESTRICT sums) const {
    std::uint32_t any = 0;
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::uint32_t spot = spots_[taps[c]];
      any |= spot;
      C& sum = sums[static_cast<std::int64_t>(spot & ~kWrong) + c];
      sum = WrappingSum(sum, gradient[c]);
    }
    return (any & kWrong) == 0;
  }

 private:
  static constexpr std::uint32_t kWrong = std::uint32_t{1} << 31;

  const ScatterPlan& plan_;
  std::uint32_t wrong_;
  HWY_ALIGN std::uint32_t spots_[256 + kTableSlack];
};

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
