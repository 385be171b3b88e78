// Gradients of rows of columns of many channels, added where their taps say.
#if defined(CENOTE_CPU_GRADIENTS_TAP_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_GRADIENTS_TAP_COLUMNS_INL_H_
#undef CENOTE_CPU_GRADIENTS_TAP_COLUMNS_INL_H_
#else
#define CENOTE_CPU_GRADIENTS_TAP_COLUMNS_INL_H_
#endif

#include <cstring>
#include <type_traits>

#include "cpu/gradients/flat_taps-inl.h"
#include "cpu/gradients/scatter_plan.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
/// Whether the taps of all these columns, the job's and the ones behind it, are taps of their windows.
inline HWY_NOINLINE bool ColumnsAreTaps(const ScatterPlan& plan, const LocateJob& job, std::int64_t columns,
                                        std::int64_t channels) {
  const FlatTaps::D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* taps = static_cast<const std::uint8_t*>(job.indices);
  FlatTaps flat(plan, job);
  for (std::int64_t x = 0; x < columns; ++x, taps += plan.problem.indices.w) {
    const auto windows = FlatTaps::All(job, x);
    if (channels < lanes) {
      HWY_ALIGN std::uint8_t few[HWY_MAX_BYTES];
      std::memset(few, taps[0], sizeof(few));
      std::memcpy(few, taps, static_cast<std::size_t>(channels));
      flat.Distance(FlatTaps::Load(few), windows);
      continue;
    }
    for (std::int64_t c = 0; c < channels; c += lanes)
      flat.Distance(FlatTaps::Load(taps + smaller(c, channels - lanes)), windows);
  }
  return flat.AreTaps();
}

/// Windows without depth, and taps of a byte, of some channels of each column.
template <class T, class C>
class TapColumns {
 public:
  TapColumns(const ScatterPlan& plan, std::int64_t channels) : plan_(plan), channels_(channels) {
    if (!plan.by_taps) return;
    const Axis &height = plan.problem.axis[1], &width = plan.problem.axis[2];
    for (std::int64_t narrower = 0; narrower < (width.rule == WindowRule::adaptive ? 2 : 1); ++narrower) {
      std::int64_t* offset = offsets_[narrower];
      for (std::int64_t y = 0; y < height.kernel; ++y) {
        const std::int64_t line = y * height.dilation * width.input;
        for (std::int64_t x = 0; x < width.kernel - narrower; ++x) *offset++ = (line + x * width.dilation) * channels;
      }
    }
  }

  /// Adds the gradients of such columns; those of taps outside of the band are nobody's.
  HWY_NOINLINE void Add(const LocateJob& job, std::int64_t columns, const T* gradient, C* HWY_RESTRICT values,
                        C* HWY_RESTRICT sums) const {
    const Axis &height = plan_.problem.axis[1], &width = plan_.problem.axis[2];
    const Window& rows = job.height;  // not empty, or no index would be a tap
    const std::int64_t slice = job.depth.first * height.input;
    const std::int64_t line = first_line(plan_.problem, job);
    const std::int64_t start = (slice + rows.first) * width.input - job.base;
    const std::int64_t end = (slice + rows.first + (rows.count - 1) * rows.step + 1) * width.input - job.base;
    const bool inside = start >= 0 && end <= job.positions;
    const auto elements = static_cast<std::uint64_t>(job.positions) * static_cast<std::uint64_t>(channels_);
    const auto* taps = static_cast<const std::uint8_t*>(job.indices);
    for (std::int64_t x = 0; x < columns; ++x) {
      const C* HWY_RESTRICT from = values;
      if constexpr (std::is_same_v<T, C>) {
        from = gradient;
      } else {
        LoadElements(gradient, values, channels_);
      }
      const std::int64_t column =
          static_cast<std::int32_t>(job.origins[x]);  // an unclipped window may begin before the row
      const std::int64_t begin = (line * width.input + column - job.base) * channels_;
      const std::int64_t* HWY_RESTRICT offsets = offsets_[width.kernel - job.flat_wides[x]];
      if (inside) {
        for (std::int64_t c = 0; c < channels_; ++c) {
          C& sum = sums[begin + c + offsets[taps[c]]];
          sum = WrappingSum(sum, from[c]);
        }
      } else {
        C elsewhere[kSpare] = {};
        for (std::int64_t c = 0; c < channels_; ++c) {
          // Chosen by bits: which of them are outside is no more foreseeable than a winner is.
          const std::int64_t spot = begin + c + offsets[taps[c]];
          const auto here =
              std::uintptr_t{0} - static_cast<std::uintptr_t>(static_cast<std::uint64_t>(spot) < elements);
          const auto in_band = reinterpret_cast<std::uintptr_t>(sums) + static_cast<std::uintptr_t>(spot) * sizeof(C);
          const auto outside = reinterpret_cast<std::uintptr_t>(elsewhere + c % kSpare);
          C& sum = *reinterpret_cast<C*>((in_band & here) | (outside & ~here));
          sum = WrappingSum(sum, from[c]);
        }
      }
      taps += plan_.problem.indices.w;
      gradient += plan_.problem.grad_output.w;
    }
  }

 private:
  const ScatterPlan& plan_;
  std::int64_t channels_;
  // Elements from the first tap of the unclipped window, which may lie far before the plane: of the widest windows, and of those a column narrower.
  std::int64_t offsets_[2][256];
};
#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
