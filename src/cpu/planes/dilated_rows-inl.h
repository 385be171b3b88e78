// Maxima of dilated windows over planar rows, forward, a band of rows at a time: the columns of each row that is seen are taken apart by what they leave when divided by the
// stride, with the padding around them, so that each tap of neighbouring windows is a plain vector; then rows are folded along, and then down.
#if defined(CENOTE_CPU_PLANES_DILATED_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_PLANES_DILATED_ROWS_INL_H_
#undef CENOTE_CPU_PLANES_DILATED_ROWS_INL_H_
#else
#define CENOTE_CPU_PLANES_DILATED_ROWS_INL_H_
#endif

#include <hwy/cache_control.h>

#include "cpu/planes/bands-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

class DilatedFolder {
  using D = hn::ScalableTag<float>;
  static constexpr std::int64_t kLanes = hn::MaxLanes(D()), kMaskBytes = kLanes / 8;

 public:
  DilatedFolder(const BandPlan& plan, char* scratch)
      : plan_(plan),
        pitch_(ceil_div(plan.columns, kLanes) * kLanes),
        packed_(reinterpret_cast<float*>(scratch + plan.packed_at) + plan.left),
        kept_(reinterpret_cast<float*>(scratch + plan.kept_at)),
        staged_(reinterpret_cast<float*>(scratch + plan.result_at)) {
    phases_ = kept_ + plan.kept_rows * pitch_;
    for (std::int64_t tap = 0; tap < plan.taps; ++tap) {
      const std::int64_t column = tap * plan.step;
      place_[tap] = column % plan.stride * plan.phase_pitch + column / plan.stride;
    }
  }

  void Run(const float* source, float* target, std::int64_t begin, std::int64_t end) {
    const D d;
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t slice = unit / plan_.bands, plane = slice / plan_.slices, z = slice % plan_.slices;
      const std::int64_t first_row = unit % plan_.bands * plan_.band;
      const std::int64_t end_row = smaller(first_row + plan_.band, plan_.rows);
      // Where rows are dilated, neither the first nor the last need be the ones that see the first or the last.
      std::int64_t first_y = plan_.heights, end_y = 0;
      for (std::int64_t o = first_row; o < end_row; ++o) {
        const RowRange& height = plan_.height_rows[static_cast<std::size_t>(o)];
        first_y = smaller(first_y, height.first);
        end_y = larger(end_y, height.first + (height.count - 1) * plan_.row_step + 1);
      }
      const std::int64_t first = plan_.depth_rows[static_cast<std::size_t>(z)].first * plan_.heights + first_y;
      const float* from = FindRows(source, plane * plan_.source_pitch + first * plan_.width, end_y - first_y);
      float* to = target + plane * plan_.target_pitch + (z * plan_.rows + first_row) * plan_.columns;
      float* result = plan_.streams ? staged_ : to;
      const std::int64_t rows = ceil_div(end_y - first_y, plan_.row_unit);
      auto nan = hn::MaskFromVec(hn::Zero(d));
      switch (plan_.stride) {
        case 1: nan = TakeApart<1>(from, rows); break;
        case 2: nan = TakeApart<2>(from, rows); break;
        default: nan = TakeApart<3>(from, rows);
      }
      if (HWY_LIKELY(hn::AllFalse(d, nan))) {
        FoldBand<false>(rows, first_row, end_row, first_y, result);
      } else {
        FoldBand<true>(rows, first_row, end_row, first_y, result);
      }
      if (plan_.streams) writer_.Write(staged_, to, (end_row - first_row) * plan_.columns);
    }
  }

 private:
  /// The rows of a band, or a copy of them where vectors would reach beyond the tensor.
  const float* FindRows(const float* source, std::int64_t at, std::int64_t rows) const {
    const std::int64_t reach = (rows - 1) * plan_.width + plan_.phase_pitch * plan_.stride - plan_.left + 1;
    if (at >= plan_.left && at + larger(reach, rows * plan_.width) <= plan_.extent) return source + at;
    std::memcpy(packed_, source + at, static_cast<std::size_t>(rows * plan_.width) * sizeof(float));
    return packed_;
  }

  /// Every `row_unit`th row. Returns where there was a NaN.
  template <int kStride>
  HWY_NOINLINE hn::Mask<D> TakeApart(const float* from, std::int64_t rows) const {
    const D d;
    const auto identity = hn::Set(d, IdentityOf<Fold::max, float>());
    const Apart<kStride, D> apart(d);
    auto nan = hn::MaskFromVec(hn::Zero(d));
    const std::int64_t width = plan_.width, left = plan_.left, pitch = plan_.phase_pitch;
    const unsigned used = plan_.phases;
    // The next band's, as far as this one is read.
    const auto ahead = static_cast<std::uintptr_t>(plan_.ahead) * sizeof(float);
    float* to = phases_;
    for (std::int64_t y = 0; y < rows; ++y, from += plan_.row_unit * width, to += kStride * pitch) {
      const std::uint8_t* masks = plan_.inside.data();
      for (std::int64_t i = 0; i < pitch; i += kLanes, masks += kStride * kMaskBytes) {
        const std::int64_t first = i * kStride - left;
        hn::Vec<D> v[Apart<kStride, D>::kLoads];
        CENOTE_UNROLL
        for (int k = 0; k < Apart<kStride, D>::kLoads; ++k)
          v[k] = first < width ? hn::LoadU(d, from + first + k * Apart<kStride, D>::kNext) : identity;
        if (ahead != 0) {
          CENOTE_UNROLL
          for (int k = 0; k < kStride; ++k)
            hwy::Prefetch(
                reinterpret_cast<const float*>(reinterpret_cast<std::uintptr_t>(from + first + k * kLanes) + ahead));
        }
        auto put = [&](auto phase) HWY_ATTR CENOTE_ALWAYS_INLINE {
          constexpr int kPhase = decltype(phase)::value;
          if ((used >> kPhase & 1) == 0) return;
          auto one = apart.template Get<kPhase>(d, v);
          one = hn::IfThenElse(hn::LoadMaskBits(d, masks + kPhase * kMaskBytes), one, identity);
          nan = hn::Or(nan, hn::IsNaN(one));
          hn::Store(one, d, to + kPhase * pitch + i);
        };
        put(std::integral_constant<int, 0>());
        if constexpr (kStride > 1) put(std::integral_constant<int, 1>());
        if constexpr (kStride > 2) put(std::integral_constant<int, 2>());
      }
    }
    return nan;
  }

  /// kAny: there are NaNs, of which the last is kept.
  template <bool kAny>
  HWY_NOINLINE void FoldBand(std::int64_t rows, std::int64_t first_row, std::int64_t end_row, std::int64_t first_y,
                             float* to) const {
    const D d;
    auto join = [d](hn::Vec<D>& value, hn::Vec<D> v) HWY_ATTR CENOTE_ALWAYS_INLINE {
      // What the instruction gives for equal ones is its second operand.
      const auto greater = hn::Max(v, value);
      value = kAny ? hn::IfThenElse(hn::IsNaN(v), v, greater) : greater;
    };
    const float* from = phases_;
    float* kept = kept_;
    const std::int64_t pitch = pitch_, columns = plan_.columns, unit = plan_.row_unit, taps = plan_.taps;
    for (std::int64_t y = 0; y < rows; ++y, from += plan_.stride * plan_.phase_pitch, kept += pitch) {
      for (std::int64_t x = 0; x < pitch; x += kLanes) {
        auto value = hn::LoadU(d, from + x);
        for (std::int64_t tap = 1; tap < taps; ++tap) join(value, hn::LoadU(d, from + x + place_[tap]));
        hn::Store(value, d, kept + x);
      }
    }
    const std::int64_t step = plan_.row_step / unit * pitch;
    for (std::int64_t o = first_row; o < end_row; ++o, to += columns) {
      const RowRange& height = plan_.height_rows[static_cast<std::size_t>(o)];
      const float* row = kept_ + (height.first - first_y) / unit * pitch;
      const std::int64_t count = height.count;
      for (std::int64_t x = 0; x < columns; x += kLanes) {
        auto value = hn::Load(d, row + x);
        for (std::int64_t y = 1; y < count; ++y) join(value, hn::Load(d, row + x + y * step));
        StoreFirst(d, value, columns - x, to + x);
      }
    }
  }

  const BandPlan& plan_;
  std::int64_t pitch_;  // of rows that are folded along
  float *packed_, *kept_, *phases_, *staged_;
  std::int64_t place_[kMostBandTaps];  // of each tap, in a row that is taken apart
  StreamWriter writer_;
};

inline void FoldDilatedRows(const BandPlan& plan, const void* source, void* target, std::int64_t begin,
                            std::int64_t end, char* scratch) {
  DilatedFolder folder(plan, scratch);
  folder.Run(static_cast<const float*>(source), static_cast<float*>(target), begin, end);
}

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
