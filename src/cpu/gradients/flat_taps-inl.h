// Taps of windows without depth, whose rows, columns and distances are numbers of 16 bits.
#if defined(CENOTE_CPU_GRADIENTS_FLAT_TAPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_GRADIENTS_FLAT_TAPS_INL_H_
#undef CENOTE_CPU_GRADIENTS_FLAT_TAPS_INL_H_
#else
#define CENOTE_CPU_GRADIENTS_FLAT_TAPS_INL_H_
#endif

#include "cpu/gradients/scatter_plan.hpp"
#include "cpu/vectors/index_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
/// For outputs of one row of windows, or of planes located whole.
class FlatTaps {
 public:
  using D = hn::ScalableTag<std::uint16_t>;
  using V = hn::Vec<D>;

  FlatTaps(const ScatterPlan& plan, const LocateJob& job)
      : skipped_(Rows(plan, skipped_byte(job.height) << 8)), limit_(Rows(plan, last_byte(job.height) << 8)) {
    const Axis &height = plan.problem.axis[1], &width = plan.problem.axis[2];
    unknown_ = Number(height.kernel * width.kernel);
    row_ = Number(height.dilation * width.input);
    column_ = Number(width.dilation);
  }

  static HWY_INLINE V Load(const std::uint8_t* taps) {
    return hn::PromoteTo(D(), hn::LoadU(hn::Rebind<std::uint8_t, D>(), taps));
  }
  static HWY_INLINE V Load(const std::uint16_t* taps) { return hn::LoadU(D(), taps); }

  /// What clipping leaves of windows along the row, how wide they were before, and what divides by that.
  struct Windows {
    V skips, limits, wides, magics;
  };
  /// Of the job's outputs from `i` on, or in all lanes of this one.
  static HWY_INLINE Windows Each(const LocateJob& job, std::int64_t i) {
    const D d;
    return {hn::LoadU(d, job.flat_skips + i), hn::LoadU(d, job.flat_limits + i), hn::LoadU(d, job.flat_wides + i),
            hn::LoadU(d, job.flat_magics + i)};
  }
  static HWY_INLINE Windows All(const LocateJob& job, std::int64_t i) {
    const D d;
    return {hn::Set(d, job.flat_skips[i]), hn::Set(d, job.flat_limits[i]), hn::Set(d, job.flat_wides[i]),
            hn::Set(d, job.flat_magics[i])};
  }

  /// How far these taps lie from the first of their unclipped windows.
  HWY_INLINE V Distance(V taps, const Windows& windows) {
    const D d;
    const V tap = hn::Min(taps, unknown_);
    const V y = hn::MulHigh(tap, windows.magics),
            x = hn::Sub(tap, hn::Mul(y, windows.wides));  // a division is a multiplication's upper half
    const auto within =
        BytesWithin(d, hn::Or(hn::ShiftLeft<8>(y), x), hn::Or(skipped_, windows.skips), hn::Or(limit_, windows.limits));
    wrong_ = hn::Or(wrong_, hn::IfThenZeroElse(within, unknown_));
    return hn::Add(hn::Mul(y, row_), hn::Mul(x, column_));
  }

  /// Whether all so far were taps of their windows.
  bool AreTaps() const { return hn::AllTrue(D(), hn::Eq(wrong_, hn::Zero(D()))); }

 private:
  static V Number(std::int64_t value) { return hn::Set(D(), static_cast<std::uint16_t>(value)); }
  /// Tables of whole planes know everything of their rows.
  static V Rows(const ScatterPlan& plan, std::int64_t value) { return Number(plan.rows.empty() ? value : 0); }

  V skipped_, limit_;
  V unknown_, row_, column_;
  V wrong_ = hn::Zero(D());
};
#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
