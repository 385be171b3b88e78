// Backward of maxima over planes whose windows share nothing: every vector of input columns takes the gradients and taps of the outputs that see it, and keeps
// those whose tap it is, for all rows of the windows.
#if defined(CENOTE_CPU_PICK_PLANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_PICK_PLANES_INL_H_
#undef CENOTE_CPU_PICK_PLANES_INL_H_
#else
#define CENOTE_CPU_PICK_PLANES_INL_H_
#endif

#include "cpu/convert-inl.h"
#include "cpu/paced-inl.h"
#include "cpu/pick_planes.hpp"
#include "cpu/unroll.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

/// Whether all these bytes are below `taps`.
HWY_NOINLINE inline bool AreBelow(std::int64_t taps, const std::uint8_t* bytes, std::int64_t count) {
  const hn::ScalableTag<std::uint8_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto last = hn::Set(d, static_cast<std::uint8_t>(taps - 1));
  auto wrong = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) wrong = hn::Or(wrong, hn::SaturatedSub(hn::LoadU(d, bytes + i), last));
  bool fine = hn::AllTrue(d, hn::Eq(wrong, hn::Zero(d)));
  for (; i < count; ++i) fine = fine && bytes[i] < taps;
  return fine;
}

/// Output rows one after the other, and the input rows that they see.
template <class T>
struct PickedRows {
  std::int64_t count;
  const std::uint8_t* taps;
  const T* gradients;
  std::int32_t number;  // of the first tap of the slice
  RoundedLane<T>* to;
};

template <int kHeight, class T>
HWY_NOINLINE void PickRows(const PickPlan& plan, const PickedRows<T>& rows, WaitingLines& waiting) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<std::uint8_t, decltype(d)> bytes;
  const RoundedTag<T, decltype(d)> rounded;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Axis &height = plan.axis[1], &axis = plan.axis[2];
  const std::int64_t width = axis.input, columns = axis.output, down = height.stride * width;
  const std::int64_t step_lines = ceil_div(kHeight * lanes * static_cast<std::int64_t>(sizeof(T)), kLine);
  WaitingLines lines = waiting;
  const std::int32_t *lane = plan.lanes.data(), *numbers = plan.numbers.data();
  for (const PickVector& vector : plan.vectors) {
    const auto from = hn::SetTableIndices(d, lane);
    const auto tap_from = hn::SetTableIndices(di, lane);
    hn::Vec<decltype(di)> number[kHeight];
    CENOTE_UNROLL
    for (int y = 0; y < kHeight; ++y) {
      number[y] =
          hn::Add(hn::LoadU(di, numbers), hn::Set(di, rows.number + y * static_cast<std::int32_t>(axis.kernel)));
    }
    const std::uint8_t* HWY_RESTRICT taps = rows.taps + vector.output;
    const T* HWY_RESTRICT gradients = rows.gradients + vector.output;
    RoundedLane<T>* HWY_RESTRICT to = rows.to + vector.column;
    for (std::int64_t o = 0; o < rows.count; ++o, taps += columns, gradients += columns, to += down) {
      const auto tap = hn::TableLookupLanes(hn::PromoteTo(di, hn::LoadU(bytes, taps)), tap_from);
      const auto gradient = hn::Add(hn::Zero(d), hn::TableLookupLanes(LoadAs(d, gradients), from));
      CENOTE_UNROLL
      for (int y = 0; y < kHeight; ++y) {
        const auto here = hn::RebindMask(d, hn::Eq(tap, number[y]));
        StoreFirst(rounded, RoundVector<T>(d, hn::IfThenElseZero(here, gradient)), width, to + y * width);
      }
      lines.Write(step_lines);
    }
    lane += lanes;
    numbers += lanes;
  }
  waiting = lines;
}

template <class T>
bool PickPlanes(const PickPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                char* scratch) {
  const Axis &depth = plan.axis[0], &height = plan.axis[1], &width = plan.axis[2];
  const std::int64_t slice_outputs = height.output * width.output, columns = width.output;
  const auto* indices = static_cast<const std::uint8_t*>(pointers.indices);
  const auto* source = static_cast<const T*>(pointers.source);
  const auto pick = height.kernel == 1   ? PickRows<1, T>
                    : height.kernel == 2 ? PickRows<2, T>
                    : height.kernel == 3 ? PickRows<3, T>
                                         : PickRows<4, T>;
  static_assert(kMostPickedRows == 4);
  bool valid = true;
  PacedRows target(plan.paced, scratch + plan.paced_at);
  std::int64_t band = begin % plan.bands, slice = begin / plan.bands % depth.input;
  std::int64_t plane = begin / plan.bands / depth.input;
  const std::int64_t beyond = static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<float>()));
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const auto [seen, tap] = plan.slices[static_cast<std::size_t>(slice)];
    const std::int64_t first = band * plan.band, last = smaller(first + plan.band, height.output);
    const std::int64_t bottom = last == height.output ? height.input : last * height.stride;
    T* to = static_cast<T*>(pointers.target) + plane * plan.target_pitch + slice * height.input * width.input;
    target.GoTo(to + first * height.stride * width.input);
    if (seen < 0) target.Zero(bottom - first * height.stride);
    // Once for each output slice. Nothing is written through an index.
    if (seen >= 0 && tap == 0) {
      const std::uint8_t* taps = indices + plane * plan.index_pitch + seen * slice_outputs + first * columns;
      valid = AreBelow(plan.taps, taps, (last - first) * columns) && valid;
    }
    for (std::int64_t o = first; seen >= 0 && o < last; o += plan.block) {
      PickedRows<T> rows{};
      rows.count = smaller(plan.block, last - o);
      const std::int64_t at = seen * slice_outputs + o * columns, count = rows.count * columns;
      rows.taps = indices + plane * plan.index_pitch + at;
      rows.gradients = source + plane * plan.source_pitch + at;
      rows.number = static_cast<std::int32_t>(tap * height.kernel * width.kernel);
      // Vectors reach beyond a block; behind the last there is nothing.
      if (plane * plan.source_pitch + at + count + beyond > plan.source_extent) {
        std::memcpy(scratch + plan.gradients_at, rows.gradients, static_cast<std::size_t>(count) * sizeof(T));
        rows.gradients = reinterpret_cast<const T*>(scratch + plan.gradients_at);
      }
      if (plane * plan.index_pitch + at + count + beyond > plan.index_extent) {
        std::memcpy(scratch + plan.taps_at, rows.taps, static_cast<std::size_t>(count));
        rows.taps = reinterpret_cast<const std::uint8_t*>(scratch + plan.taps_at);
      }
      const std::int64_t unseen = height.stride - height.kernel;
      const std::int64_t seen_rows = rows.count * height.stride - unseen;
      const std::int64_t put = o + rows.count < last ? rows.count * height.stride : seen_rows;
      target.Reserve(put);
      rows.to = reinterpret_cast<RoundedLane<T>*>(target.Take(put));
      for (std::int64_t i = 1; unseen > 0 && i * height.stride <= put; ++i) {
        std::memset(static_cast<void*>(rows.to + (i * height.stride - unseen) * width.input), 0,
                    static_cast<std::size_t>(unseen * width.input) * sizeof(T));
      }
      pick(plan, rows, target.waiting);
      if (o + rows.count == last) target.Zero(bottom - (o * height.stride + put));
    }
    if (++band < plan.bands) continue;
    band = 0;
    if (++slice < depth.input) continue;
    slice = 0;
    ++plane;
  }
  return valid;
}

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
