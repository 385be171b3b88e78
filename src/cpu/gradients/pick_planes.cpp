// Backward of maxima over planes whose windows share nothing: every vector of input columns takes the gradients and taps of the outputs that see it, and keeps
// those whose tap it is, for all rows of the windows. By the size of elements, whatever the dtype.
#include "cpu/gradients/pick_planes.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/gradients/pick_planes.cpp"
#include <hwy/foreach_target.h>

#include "cpu/vectors/convert-inl.h"
#include "cpu/vectors/paced-inl.h"
#include "cpu/vectors/unroll.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

/// Whether all these bytes are below `taps`.
bool AreBelow(std::int64_t taps, const std::uint8_t* bytes, std::int64_t count) {
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
struct PickedRows {
  std::int64_t count;
  const std::uint8_t* taps;
  const char* gradients;
  std::int32_t number;  // of the first tap of the slice
  char* to;
};

/// Numbers from memory in lanes at least as wide.
template <class D, class T>
HWY_INLINE hn::Vec<D> LoadWide(D d, const T* from) {
  const hn::Rebind<T, D> narrow;
  if constexpr (sizeof(T) == sizeof(hn::TFromD<D>)) {
    return hn::BitCast(d, hn::LoadU(narrow, from));
  } else if constexpr (sizeof(T) * 2 < sizeof(hn::TFromD<D>) && sizeof(hn::TFromD<D>) == 8) {
    return hn::PromoteTo(d, hn::PromoteTo(hn::Rebind<std::uint32_t, D>(), hn::LoadU(narrow, from)));
  } else {
    return hn::PromoteTo(d, hn::LoadU(narrow, from));
  }
}

/// A sum is no -0.
template <class Bits, class D>
HWY_INLINE hn::Vec<D> NoNegativeZero(D d, hn::Vec<D> v) {
  if constexpr (sizeof(Bits) == 2) {
    return hn::IfThenElseZero(hn::Ne(v, hn::Set(d, 0x8000U)), v);
  } else {
    const hn::RebindToFloat<D> floating;
    return hn::BitCast(d, hn::Add(hn::Zero(floating), hn::BitCast(floating, v)));
  }
}

/// Bits: an unsigned integer of the element's size.
template <int kHeight, class Bits>
void PickRows(const PickPlan& plan, const PickedRows& rows, WaitingLines& waiting) {
  using Lane = std::conditional_t<sizeof(Bits) == 8, std::uint64_t, std::uint32_t>;
  const hn::ScalableTag<Lane> d;
  const hn::Rebind<Bits, decltype(d)> stored;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Axis &height = plan.axis[1], &axis = plan.axis[2];
  const std::int64_t width = plan.width, columns = plan.columns, down = height.stride * width;
  const std::int64_t step_lines = ceil_div(kHeight * lanes * static_cast<std::int64_t>(sizeof(Bits)), kLine);
  WaitingLines lines = waiting;
  const std::uint32_t *lane = plan.lanes.data(), *numbers = plan.numbers.data();
  for (const PickVector& vector : plan.vectors) {
    const auto from = hn::IndicesFromVec(d, LoadWide(d, lane));
    hn::Vec<decltype(d)> number[kHeight];
    CENOTE_UNROLL
    for (int y = 0; y < kHeight; ++y) {
      number[y] = hn::Add(LoadWide(d, numbers), hn::Set(d, static_cast<Lane>(rows.number + y * axis.kernel)));
    }
    const std::uint8_t* HWY_RESTRICT taps = rows.taps + vector.output;
    const Bits* HWY_RESTRICT gradients = reinterpret_cast<const Bits*>(rows.gradients) + vector.output;
    Bits* HWY_RESTRICT to = reinterpret_cast<Bits*>(rows.to) + vector.column;
    for (std::int64_t o = 0; o < rows.count; ++o, taps += columns, gradients += columns, to += down) {
      const auto tap = hn::TableLookupLanes(LoadWide(d, taps), from);
      const auto gradient = NoNegativeZero<Bits>(d, hn::TableLookupLanes(LoadWide(d, gradients), from));
      CENOTE_UNROLL
      for (int y = 0; y < kHeight; ++y) {
        const auto kept = hn::IfThenElseZero(hn::Eq(tap, number[y]), gradient);
        if constexpr (sizeof(Bits) == sizeof(Lane)) {
          StoreFirst(d, kept, width, to + y * width);
        } else {
          StoreFirst(stored, hn::TruncateTo(stored, kept), width, to + y * width);
        }
      }
      lines.Write(step_lines);
    }
    lane += lanes;
    numbers += lanes;
  }
  waiting = lines;
}

using PickRowsFn = void (*)(const PickPlan&, const PickedRows&, WaitingLines&);

template <class Bits>
PickRowsFn PickRowsOf(std::int64_t height) {
  static_assert(kMostPickedRows == 4);
  return height == 1   ? PickRows<1, Bits>
         : height == 2 ? PickRows<2, Bits>
         : height == 3 ? PickRows<3, Bits>
                       : PickRows<4, Bits>;
}

bool PickPlanes(const PickPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                char* scratch) {
  const auto pick = plan.size == 2   ? PickRowsOf<std::uint16_t>(plan.axis[1].kernel)
                    : plan.size == 4 ? PickRowsOf<std::uint32_t>(plan.axis[1].kernel)
                                     : PickRowsOf<std::uint64_t>(plan.axis[1].kernel);
  const Axis &depth = plan.axis[0], &height = plan.axis[1], &width = plan.axis[2];
  const std::int64_t columns = plan.columns, slice_outputs = height.output * columns;
  const auto* indices = static_cast<const std::uint8_t*>(pointers.indices);
  const std::int64_t size = plan.size, row = plan.width * size;
  const auto* source = static_cast<const char*>(pointers.source);
  bool valid = true;
  PacedRows target(plan.paced, scratch + plan.paced_at);
  std::int64_t band = begin % plan.bands, slice = begin / plan.bands % depth.input;
  std::int64_t plane = begin / plan.bands / depth.input;
  const std::int64_t beyond = static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<std::uint32_t>()));
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const auto [seen, tap] = plan.slices[static_cast<std::size_t>(slice)];
    const std::int64_t first = band * plan.band, last = smaller(first + plan.band, height.output);
    const std::int64_t bottom = last == height.output ? height.input : last * height.stride;
    char* to = static_cast<char*>(pointers.target) + plane * plan.target_pitch * size + slice * height.input * row;
    target.GoTo(to + first * height.stride * row);
    if (seen < 0) target.Zero(bottom - first * height.stride);
    // Once for each output slice. Nothing is written through an index.
    if (seen >= 0 && tap == 0) {
      const std::uint8_t* taps = indices + plane * plan.index_pitch + seen * slice_outputs + first * columns;
      valid = AreBelow(plan.taps, taps, (last - first) * columns) && valid;
    }
    for (std::int64_t o = first; seen >= 0 && o < last; o += plan.block) {
      PickedRows rows{};
      rows.count = smaller(plan.block, last - o);
      const std::int64_t at = seen * slice_outputs + o * columns, count = rows.count * columns;
      rows.taps = indices + plane * plan.index_pitch + at;
      rows.gradients = source + (plane * plan.source_pitch + at) * size;
      rows.number = static_cast<std::int32_t>(tap * height.kernel * width.kernel);
      // Vectors reach beyond a block; behind the last there is nothing.
      if (plane * plan.source_pitch + at + count + beyond > plan.source_extent) {
        std::memcpy(scratch + plan.gradients_at, rows.gradients, static_cast<std::size_t>(count * size));
        rows.gradients = scratch + plan.gradients_at;
      }
      if (plane * plan.index_pitch + at + count + beyond > plan.index_extent) {
        std::memcpy(scratch + plan.taps_at, rows.taps, static_cast<std::size_t>(count));
        rows.taps = reinterpret_cast<const std::uint8_t*>(scratch + plan.taps_at);
      }
      const std::int64_t unseen = height.stride - height.kernel;
      const std::int64_t seen_rows = rows.count * height.stride - unseen;
      const std::int64_t put = o + rows.count < last ? rows.count * height.stride : seen_rows;
      target.Reserve(put);
      rows.to = target.Take(put);
      for (std::int64_t i = 1; unseen > 0 && i * height.stride <= put; ++i) {
        std::memset(rows.to + (i * height.stride - unseen) * row, 0, static_cast<std::size_t>(unseen * row));
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

PickPlanesFn PickPlanesFunction() { return PickPlanes; }

#else

PickPlanesFn PickPlanesFunction() { return nullptr; }

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(PickPlanesFunction);
PickPlanesFn pick_planes(std::size_t target) { return HWY_DISPATCH_TABLE(PickPlanesFunction)[target](); }
}  // namespace cenote::simd
#endif
