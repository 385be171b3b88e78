// Backward of maxima of three rows and columns, one apart, over planes that stay as large as they are. An input and the outputs that see it lie at fixed distances, also where a row or a plane ends
// between them: then no right tap says so. So the tensor is one plane, and a vector of inputs goes down its rows, with the sums of three of them in registers; each is stored when the last
// row of outputs that sees it has been added. Sums are taken in the order of the outputs.
#include "cpu/gradients/gather_flat.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/gradients/gather_flat.cpp"
#include <hwy/foreach_target.h>

#include <cstring>

#include "cpu/vectors/convert-inl.h"
#include "cpu/vectors/unroll.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

/// Taps of a vector of outputs. Sixteen bytes compared are a mask for AVX-512; AVX2 compares lanes as wide as what the mask is for.
struct FlatCodes {
  using D = hn::ScalableTag<float>;
#if HWY_TARGET <= HWY_AVX3
  using Tag = hn::Rebind<std::uint8_t, D>;
  explicit HWY_INLINE FlatCodes(const std::uint8_t* from) : taps(hn::LoadU(Tag(), from)) {}
  HWY_INLINE hn::Mask<D> Are(int tap) const {
    return WideMask(D(), hn::Eq(taps, hn::Set(Tag(), static_cast<std::uint8_t>(tap))));
  }
#else
  using Tag = hn::Rebind<std::uint32_t, D>;
  explicit HWY_INLINE FlatCodes(const std::uint8_t* from)
      : taps(hn::PromoteTo(Tag(), hn::LoadU(hn::Rebind<std::uint8_t, D>(), from))) {}
  HWY_INLINE hn::Mask<D> Are(int tap) const {
    return hn::RebindMask(D(), hn::Eq(taps, hn::Set(Tag(), static_cast<std::uint32_t>(tap))));
  }
#endif
  hn::Vec<Tag> taps;
};

/// Outputs of the first rows, of the last, and of those between.
template <class T>
struct FlatOutputs {
  const T* values[3];
  const std::uint8_t* taps[3];
  std::int64_t first[3];  // the element that those begin with
};

/// Two vectors of columns, from `x` and from `apart` elements behind it on, of every plan.dilation-th row from `first` on: one alone would wait for its sums.
template <class T>
HWY_NOINLINE void GatherDown(const FlatPlan& plan, const FlatOutputs<T>& outputs, std::int64_t first, std::int64_t end,
                             std::int64_t x, std::int64_t apart, T* target) {
  const hn::ScalableTag<float> d;
  const RoundedTag<T, decltype(d)> rounded;
  const std::int64_t dilation = plan.dilation, pitch = plan.pitch, pad = plan.pad, rows = plan.rows;
  std::int64_t shifts[kFlatTaps];
  std::copy_n(plan.shifts, kFlatTaps, shifts);
  const T* values = nullptr;
  const std::uint8_t* taps = nullptr;
  std::int64_t part_end = -1, before = 0;
  hn::Vec<decltype(d)> sum[kFlatTaps][2];
  CENOTE_UNROLL
  for (int i = 0; i < 2 * kFlatTaps; ++i) sum[i / 2][i % 2] = hn::Zero(d);
  for (std::int64_t y = first - (kFlatTaps - 1) * dilation; y < end; y += dilation) {
    const std::int64_t o = y + pad;  // this input row is the first of its windows
    if (o >= 0 && o < rows) {
      if (o >= part_end) {
        const int part = o < plan.safe_first ? 0 : o < plan.safe_end ? 1 : 2;
        values = outputs.values[part];
        taps = outputs.taps[part];
        before = outputs.first[part] - x;
        part_end = part == 0 ? plan.safe_first : part == 1 ? plan.safe_end : rows;
      }
      const T* row_values = values + (o * pitch - before);
      const std::uint8_t* row_taps = taps + (o * pitch - before);
      CENOTE_UNROLL
      for (int tap = kFlatTaps - 1; tap >= 0; --tap) {  // outputs ascend
        CENOTE_UNROLL
        for (int v = 0; v < 2; ++v) {
          const std::int64_t from = shifts[tap] + v * apart;
          const FlatCodes codes(row_taps + from);
          const auto value = LoadOnce(d, row_values + from);
          CENOTE_UNROLL
          for (int row = 0; row < kFlatTaps; ++row) {
            sum[row][v] = hn::IfThenElse(codes.Are(row * kFlatTaps + tap), hn::Add(sum[row][v], value), sum[row][v]);
          }
        }
      }
    }
    CENOTE_UNROLL
    for (int v = 0; v < 2; ++v) {
      if (y >= first) {
        auto* to = reinterpret_cast<RoundedLane<T>*>(target) + y * pitch + x + v * apart;
        hn::StoreU(RoundVector<T>(d, sum[0][v]), rounded, to);
      }
      CENOTE_UNROLL
      for (int row = 0; row + 1 < kFlatTaps; ++row) sum[row][v] = sum[row + 1][v];
      sum[kFlatTaps - 1][v] = hn::Zero(d);
    }
  }
}

/// Whether the taps of these rows are taps of their windows. `taps`: of the tensor.
HWY_NOINLINE inline bool AreFlatTaps(const FlatPlan& plan, const std::uint8_t* taps, std::int64_t first,
                                     std::int64_t end) {
  const hn::ScalableTag<std::uint8_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  HWY_ALIGN std::uint8_t bits[16];
  for (int tap = 0; tap < 16; ++tap) {
    const bool is_one = tap < kFlatTaps * kFlatTaps;
    bits[tap] =
        static_cast<std::uint8_t>(is_one ? kColumnBit << tap % kFlatTaps | kRowBit << tap / kFlatTaps : kNoTapBit);
  }
  const auto table = hn::LoadDup128(d, bits);
  const auto most = hn::Set(d, std::uint8_t{15});
  auto wrong = hn::Zero(d);
  for (std::int64_t row = first, next; row < end; row = next) {
    const std::int64_t y = row % plan.height, in_table = y % plan.tabled;
    next = smaller(end, row - in_table + plan.tabled);
    const auto more = hn::Set(d, plan.row_outside[static_cast<std::size_t>(y)]);
    const std::uint8_t* outside = plan.outside.data() + in_table * plan.pitch;
    const std::int64_t begin = row * plan.pitch, count = (next - row) * plan.pitch;
    for (std::int64_t i = 0; i < count; i += lanes) {
      auto seen = hn::Zero(d);
      if (begin + i + lanes <= plan.count()) {
        seen = hn::LoadU(d, taps + begin + i);
      } else {
        HWY_ALIGN std::uint8_t rest[hn::MaxLanes(d)] = {};
        std::memcpy(rest, taps + begin + i, static_cast<std::size_t>(plan.count() - begin - i));
        seen = hn::Load(d, rest);
      }
      const auto forbidden = hn::Or(hn::LoadU(d, outside + i), more);
      auto bad = hn::And(hn::TableLookupBytes(table, hn::Min(seen, most)), forbidden);
      if (i + lanes > count) bad = hn::IfThenElseZero(hn::FirstN(d, static_cast<std::size_t>(count - i)), bad);
      wrong = hn::Or(wrong, bad);
    }
  }
  return hn::AllTrue(d, hn::Eq(wrong, hn::Zero(d)));
}

template <class T>
bool GatherFlat(const FlatPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                char* scratch) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  T* const target = static_cast<T*>(pointers.target);
  FlatOutputs<T> outputs{};
  outputs.values[1] = static_cast<const T*>(pointers.source);
  outputs.taps[1] = static_cast<const std::uint8_t*>(pointers.indices);
  // Vectors of the first rows and the last reach beyond the tensor: there is nothing.
  const std::int64_t edges[2][2] = {
      {-plan.before, plan.safe_first * plan.pitch + plan.behind},
      {plan.safe_end * plan.pitch - plan.before, larger(plan.count(), plan.safe_end * plan.pitch) + plan.behind}};
  for (int edge = 0; edge < 2; ++edge) {
    const std::int64_t first = edges[edge][0], stop = edges[edge][1];
    const std::int64_t from = smaller(larger(0, first), plan.count()), count = smaller(stop, plan.count()) - from;
    T* values = reinterpret_cast<T*>(scratch + plan.values_at[edge]);
    auto* taps = reinterpret_cast<std::uint8_t*>(scratch + plan.taps_at[edge]);
    std::memset(static_cast<void*>(values), 0, static_cast<std::size_t>(stop - first) * sizeof(T));
    std::memset(taps, UINT8_MAX, static_cast<std::size_t>(stop - first));
    std::memcpy(static_cast<void*>(values + from - first), outputs.values[1] + from,
                static_cast<std::size_t>(count) * sizeof(T));
    std::memcpy(taps + from - first, outputs.taps[1] + from, static_cast<std::size_t>(count));
    outputs.values[2 * edge] = values;
    outputs.taps[2 * edge] = taps;
    outputs.first[2 * edge] = first;
  }
  bool valid = true;
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t first = unit * plan.band, stop = smaller(first + plan.band, plan.rows);
    valid = AreFlatTaps(plan, outputs.taps[1], first, stop) && valid;
    // The ragged end from its last two vectors; of few columns those overlap.
    const std::int64_t apart = smaller(lanes, plan.pitch - lanes), step = apart + lanes;
    for (std::int64_t x = 0; x < plan.pitch; x += step) {
      for (std::int64_t row = first; row < smaller(first + plan.dilation, stop); ++row)
        GatherDown(plan, outputs, row, stop, smaller(x, plan.pitch - step), apart, target);
    }
  }
  return valid;
}

GatherFlatFn GatherFlatOf(DType dtype) {
  switch (dtype) {
    case DType::f32: return GatherFlat<float>;
    case DType::f16: return GatherFlat<f16>;
    case DType::bf16: return GatherFlat<bf16>;
    default: return nullptr;
  }
}

#else

GatherFlatFn GatherFlatOf(DType) { return nullptr; }

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(GatherFlatOf);
GatherFlatFn gather_flat(std::size_t target, DType dtype) { return HWY_DISPATCH_TABLE(GatherFlatOf)[target](dtype); }
}  // namespace cenote::simd
#endif
