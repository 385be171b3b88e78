// Backward of maxima over planar rows whose windows are two columns wide and do not overlap along them: each input adds up the gradients of the outputs whose
// index names it, a vector of outputs at a time. Sums are taken in the order of the outputs.
#if defined(CENOTE_CPU_GATHER_PLANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_GATHER_PLANES_INL_H_
#undef CENOTE_CPU_GATHER_PLANES_INL_H_
#else
#define CENOTE_CPU_GATHER_PLANES_INL_H_
#endif

#include "cpu/along-inl.h"
#include "cpu/gather_planes.hpp"
#include "cpu/index_vectors-inl.h"
#include "cpu/stream-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

/// The output rows that are kept: the tap each index names, and the gradients, in 4-byte lanes. Behind them no output has a tap.
template <class T>
class KeptRows {
 public:
  KeptRows(const GatherPlan& plan, char* scratch)
      : plan_(plan),
        codes_(reinterpret_cast<std::int32_t*>(scratch + plan.codes_at)),
        values_(reinterpret_cast<float*>(scratch + plan.values_at)) {
    std::fill_n(codes_, plan.slots * plan.slot_pitch, kNoTap);
    std::fill_n(values_, plan.slots * plan.slot_pitch, 0.0F);
  }

  const std::int32_t* codes(std::int64_t slot) const { return codes_ + slot * plan_.slot_pitch; }
  const float* values(std::int64_t slot) const { return values_ + slot * plan_.slot_pitch; }

  void BeginPlane() { std::fill_n(held_, kMostSlots, -1); }

  /// Converts the row unless it is there. `gradients`, `indices`: of the plane.
  HWY_INLINE void Keep(const SeenBy& seen, const T* gradients, const void* indices) {
    if (held_[seen.slot] == seen.row) return;
    held_[seen.slot] = seen.row;
    const std::int64_t at = seen.row * plan_.columns;
    if (plan_.flat) {
      Convert(seen, gradients + at, static_cast<const std::int64_t*>(indices) + at);
    } else {
      Convert(seen, gradients + at, static_cast<const std::uint8_t*>(indices) + at);
    }
  }

  bool valid() const { return hn::AllFalse(hn::ScalableTag<std::int32_t>(), hn::MaskFromVec(wrong_)); }

 private:
  static constexpr std::int32_t kNoTap = -64;  // no index, and no number of bits

  template <class Index>
  HWY_NOINLINE void Convert(const SeenBy& seen, const T* gradients, const Index* indices) {
    const hn::ScalableTag<float> d;
    const hn::ScalableTag<std::int32_t> di;
    const hn::ScalableTag<std::uint32_t> du;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    std::int32_t* codes = codes_ + seen.slot * plan_.slot_pitch;
    float* values = values_ + seen.slot * plan_.slot_pitch;
    const auto row_taps = hn::Set(du, static_cast<std::uint32_t>(plan_.row_taps[static_cast<std::size_t>(seen.row)]));
    for (std::int64_t next = 0; next < plan_.columns; next += lanes) {
      const std::int64_t x = smaller(next, plan_.columns - lanes);  // the ragged end from its last vector
      auto code = LoadIndexVector(di, indices + x);
      if (plan_.flat) {
        const auto step = StridedIota<2>(di);
        const std::int32_t origin =
            plan_.origins[static_cast<std::size_t>(seen.row)] + static_cast<std::int32_t>(2 * x);
        const auto place = hn::Sub(code, hn::Add(step, hn::Set(di, origin)));
        code = hn::Set(di, kNoTap);
        std::int32_t tap = 0;
        for (const std::int32_t position : plan_.positions) {
          code = hn::IfThenElse(hn::Eq(place, hn::Set(di, position)), hn::Set(di, tap++), code);
        }
      }
      // Shifting by more than there are bits leaves none.
      const auto columns_taps = hn::LoadU(du, reinterpret_cast<const std::uint32_t*>(plan_.columns_taps.data()) + x);
      const auto bit = hn::And(hn::And(row_taps, columns_taps) >> hn::BitCast(du, code), hn::Set(du, 1U));
      wrong_ = hn::Or(wrong_, hn::VecFromMask(di, hn::Eq(hn::BitCast(di, bit), hn::Zero(di))));
      hn::StoreU(code, di, codes + x);
      hn::StoreU(LoadAs(d, gradients + x), d, values + x);
    }
  }

  const GatherPlan& plan_;
  std::int32_t* codes_;
  float* values_;
  std::int32_t held_[kMostSlots];
  hn::Vec<hn::ScalableTag<std::int32_t>> wrong_ = hn::Zero(hn::ScalableTag<std::int32_t>());
};

/// Columns 2 * u and 2 * u + 1 are taps 0 and 1 of output u. Whole vectors, beyond the row's end too.
template <class T>
HWY_INLINE void GatherPlaneRow(const GatherPlan& plan, const KeptRows<T>& kept, const SeenBy* seen, std::int64_t count,
                               T* HWY_RESTRICT to) {
  const hn::ScalableTag<float> d;
  const hn::ScalableTag<std::int32_t> di;
  const RoundedTag<T, decltype(d)> rounded;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t u = 0; 2 * u < plan.width; u += lanes) {
    auto first = hn::Zero(d), second = hn::Zero(d);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto code = hn::LoadU(di, kept.codes(seen[i].slot) + u);
      const auto value = hn::LoadU(d, kept.values(seen[i].slot) + u);
      const auto at_first = hn::Eq(code, hn::Set(di, seen[i].number));
      const auto at_second = hn::Eq(code, hn::Set(di, seen[i].number + 1));
      first = hn::Add(first, hn::IfThenElseZero(hn::RebindMask(d, at_first), value));
      second = hn::Add(second, hn::IfThenElseZero(hn::RebindMask(d, at_second), value));
    }
    hn::StoreInterleaved2(RoundVector<T>(d, first), RoundVector<T>(d, second), rounded,
                          reinterpret_cast<RoundedLane<T>*>(to) + 2 * u);
  }
}

template <class T>
bool GatherPlanes(const GatherPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                  char* scratch) {
  KeptRows<T> kept(plan, scratch);
  StreamWriter writer;
  T* stage = reinterpret_cast<T*>(scratch + plan.stage_at);
  for (std::int64_t plane = begin; plane < end; ++plane) {
    const T* gradients = static_cast<const T*>(pointers.source) + plane * plan.source_pitch;
    const char* indices = static_cast<const char*>(pointers.indices) + plane * plan.index_pitch * (plan.flat ? 8 : 1);
    T* target = static_cast<T*>(pointers.target) + plane * plan.target_pitch;
    kept.BeginPlane();
    std::int64_t staged = 0;  // elements
    for (std::int64_t row = 0; row < plan.heights; ++row) {
      const SeenBy* seen = plan.seen_by.data() + plan.first[static_cast<std::size_t>(row)];
      const std::int64_t count = plan.seen_by.data() + plan.first[static_cast<std::size_t>(row) + 1] - seen;
      for (std::int64_t i = 0; i < count; ++i) kept.Keep(seen[i], gradients, indices);
      const std::int64_t at = row * plan.width;
      if (!plan.streams && at + plan.extent <= plan.heights * plan.width) {
        GatherPlaneRow(plan, kept, seen, count, target + at);
        continue;
      }
      // What would reach beyond the plane is put together elsewhere, like what goes around the caches.
      GatherPlaneRow(plan, kept, seen, count, stage + staged);
      staged += plan.width;
      if (staged < plan.stage * plan.width && row + 1 < plan.heights) continue;
      T* to = target + at + plan.width - staged;
      if (plan.streams) {
        writer.Write(stage, to, staged);
      } else {
        std::memcpy(static_cast<void*>(to), stage, static_cast<std::size_t>(staged) * sizeof(T));
      }
      staged = 0;
    }
  }
  return kept.valid();
}

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
