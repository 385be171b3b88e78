// Backward of maxima over planes whose windows are two or three columns wide: output row after output row, a vector of input columns compares what it is to the
// windows that see it with the taps that their indices name, for every row of the windows at once. Input rows that the next output row sees too wait for it
// as sums. Sums are taken in the order of the outputs.
#if defined(CENOTE_CPU_GRADIENTS_GATHER_PLANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_GRADIENTS_GATHER_PLANES_INL_H_
#undef CENOTE_CPU_GRADIENTS_GATHER_PLANES_INL_H_
#else
#define CENOTE_CPU_GRADIENTS_GATHER_PLANES_INL_H_
#endif

#include "cpu/gradients/gather_planes.hpp"
#include "cpu/gradients/window_taps-inl.h"
#include "cpu/thresholds.hpp"
#include "cpu/vectors/index_vectors-inl.h"
#include "cpu/vectors/paced-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

// Turns of even and odd columns are those of AVX2 and AVX-512: see kHasStrips in strips-inl.h.

/// The taps that a row of positions names, kNoTap where one names none. `origin`: of the first window's first tap, were there no padding.
HWY_NOINLINE inline void TapsOfPositions(const GatherPlan& plan, const std::int64_t* indices, std::int32_t origin,
                                         std::uint8_t* to) {
  const hn::CappedTag<std::int32_t, 8> d;
  const hn::Rebind<std::uint8_t, decltype(d)> bytes;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t columns = plan.axis[2].output, stride = plan.axis[2].stride;
  for (std::int64_t next = 0; next < columns; next += lanes) {
    const std::int64_t x = smaller(next, columns - lanes);  // the ragged end from its last vector
    auto steps = hn::Iota(d, 0);
    if (stride == 2) steps = hn::Add(steps, steps);
    const auto first = hn::Add(steps, hn::Set(d, origin + static_cast<std::int32_t>(stride * x)));
    const auto place = hn::Sub(LoadIndexVector(d, indices + x), first);
    auto code = hn::Set(d, std::int32_t{kNoTap});
    std::int32_t tap = 0;
    for (const std::int32_t position : plan.positions) {
      code = hn::IfThenElse(hn::Eq(place, hn::Set(d, position)), hn::Set(d, tap++), code);
    }
    hn::StoreU(hn::DemoteTo(bytes, code), bytes, to + x);
  }
}

/// Rows of taps with kNoTap around them.
class PlaneTaps {
 public:
  PlaneTaps(const GatherPlan& plan, char* scratch)
      : plan_(plan), codes_(reinterpret_cast<std::uint8_t*>(scratch + plan.codes_at)) {
    std::memset(codes_, kNoTap, static_cast<std::size_t>(plan.code_rows * plan.code_pitch));
  }

  const std::uint8_t* row(std::int64_t slot) const { return codes_ + slot * plan_.code_pitch + kGatherMargin; }

  /// Output rows [first, first + count) of a slice. `indices`: of the plane.
  HWY_NOINLINE void Fill(const void* indices, std::int64_t slice, std::int64_t first, std::int64_t count) {
    const Axis &depth = plan_.axis[0], &height = plan_.axis[1], &width = plan_.axis[2];
    const std::int64_t columns = width.output, begin = (slice * height.output + first) * columns;
    Rows rows{static_cast<const std::uint8_t*>(indices) + begin, columns, codes_ + kGatherMargin};
    if (plan_.flat) {
      const std::int64_t slice_start = slice * depth.stride - depth.pad_begin;
      for (std::int64_t slot = 0; slot < count; ++slot) {
        const std::int64_t start = (first + slot) * height.stride - height.pad_begin;
        const std::int64_t origin = (slice_start * height.input + start) * width.input - width.pad_begin;
        TapsOfPositions(plan_, static_cast<const std::int64_t*>(indices) + begin + slot * columns,
                        static_cast<std::int32_t>(origin), rows.to + slot * plan_.code_pitch);
      }
      rows.from = rows.to;
      rows.pitch = plan_.code_pitch;
    }
    // Rows whose windows are cut off, one by one, and those between them.
    const Window slices = window(depth, slice);
    const std::int64_t whole_end = smaller(plan_.whole_end, first + count);
    std::int64_t row = first;
    for (; row < smaller(plan_.whole_first, first + count); ++row) CheckCutOff(slices, window(height, row), rows);
    if (row < whole_end) {
      const std::int64_t area = height.kernel * width.kernel;
      Check(slices.skipped * area, slices.count * area, whole_end - row, rows);
      row = whole_end;
    }
    for (; row < first + count; ++row) CheckCutOff(slices, window(height, row), rows);
  }

  bool valid() const { return valid_; }

 private:
  struct Rows {
    const std::uint8_t* from;
    std::int64_t pitch;
    std::uint8_t* to;
  };

  void CheckCutOff(const Window& slices, const Window& height, Rows& rows) {
    const std::int64_t wide = plan_.axis[2].kernel, area = plan_.axis[1].kernel * wide;
    const std::uint8_t* taps = rows.to;
    if (plan_.axis[0].kernel == 1) return Check(height.skipped * wide, height.count * wide, 1, rows);
    Check(slices.skipped * area, slices.count * area, 1, rows);
    std::uint32_t bits = 0;
    for (std::int64_t z = 0; z < plan_.axis[0].kernel; ++z) {
      bits |= ((1U << (height.count * wide)) - 1) << (z * area + height.skipped * wide);
    }
    for (std::int64_t x = 0; x < plan_.axis[2].output; ++x) valid_ &= ((bits >> (taps[x] & 31U)) & 1U) != 0;
  }

  /// Copies `count` rows, whose taps must be in [low, low + taps) and inside the row, and goes on to those behind.
  void Check(std::int64_t low, std::int64_t taps, std::int64_t count, Rows& rows) {
    Copy(low, taps, count, rows);
    for (const EdgeColumn& edge : plan_.edges) {
      const std::uint8_t* tap = rows.to + edge.column;
      bool inside = true;
      for (std::int64_t row = 0; row < count; ++row) {
        inside &= ((edge.taps >> (tap[row * plan_.code_pitch] & 31U)) & 1U) != 0;
      }
      valid_ &= inside;
    }
    rows.from += count * rows.pitch;
    rows.to += count * plan_.code_pitch;
  }

  HWY_INLINE void Copy(std::int64_t low, std::int64_t taps, std::int64_t count, const Rows& rows) {
    static_assert(kLeastGathered >= 16 && kLeastOverlapping >= 16);
    const hn::CappedTag<std::uint8_t, 16> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const auto first = hn::Set(d, static_cast<std::uint8_t>(low)),
               span = hn::Set(d, static_cast<std::uint8_t>(taps - 1));
    const std::int64_t last = plan_.axis[2].output - lanes, to_pitch = plan_.code_pitch;
    auto wrong = hn::Zero(d);
    const std::uint8_t* from = rows.from;
    std::uint8_t* to = rows.to;
    for (; count > 0; --count, from += rows.pitch, to += to_pitch) {
      auto copy = [&](std::int64_t x) HWY_ATTR CENOTE_ALWAYS_INLINE {
        const auto code = hn::LoadU(d, from + x);
        wrong = hn::Or(wrong, hn::SaturatedSub(hn::Sub(code, first), span));
        hn::StoreU(code, d, to + x);
      };
      for (std::int64_t x = 0; x < last; x += lanes) copy(x);
      copy(last);
    }
    valid_ &= hn::AllTrue(d, hn::Eq(wrong, hn::Zero(d)));
  }

  const GatherPlan& plan_;
  std::uint8_t* codes_;
  bool valid_ = true;
};

/// The first `count` of even and odd columns in turns, rounded. `exact`: none need be.
template <class T, class D>
HWY_INLINE void StorePairs(D d, hn::Vec<D> even, hn::Vec<D> odd, [[maybe_unused]] bool exact, std::int64_t count,
                           T* HWY_RESTRICT to) {
  if constexpr (sizeof(T) == 2) {
    const hn::Rebind<std::uint32_t, D> words;
    const hn::Repartition<std::uint16_t, D> halves;
    auto pairs = hn::Zero(words);
    if constexpr (std::is_same_v<T, bf16>) {
      const auto bits = [&](hn::Vec<D> v)
                            HWY_ATTR CENOTE_ALWAYS_INLINE { return exact ? hn::BitCast(words, v) : RoundedBits(d, v); };
      pairs = hn::Or(hn::ShiftRight<16>(bits(even)), hn::And(bits(odd), hn::Set(words, 0xffff0000U)));
    } else {
      const auto low = hn::PromoteTo(words, RoundVector<T>(d, even));
      pairs = hn::Or(low, hn::ShiftLeft<16>(hn::PromoteTo(words, RoundVector<T>(d, odd))));
    }
    StoreFirst(halves, hn::BitCast(halves, pairs), count, reinterpret_cast<std::uint16_t*>(to));
  } else {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
#if HWY_TARGET <= HWY_AVX3
    const auto first = hn::Iota(hn::ScalableTag<std::int32_t>(), 0);
    const auto turns = hn::Add(hn::ShiftRight<1>(first),  // 0, 16, 1, 17, ...
                               hn::ShiftLeft<4>(hn::And(first, hn::Set(hn::ScalableTag<std::int32_t>(), 1))));
    const auto later = hn::Add(turns, hn::Set(hn::ScalableTag<std::int32_t>(), 8));
    StoreFirst(d, hn::Vec<D>{_mm512_permutex2var_ps(even.raw, turns.raw, odd.raw)}, count, to);
    StoreFirst(d, hn::Vec<D>{_mm512_permutex2var_ps(even.raw, later.raw, odd.raw)}, count - lanes, to + lanes);
#else
    const auto lower = hn::InterleaveLower(d, even, odd), upper = hn::InterleaveUpper(d, even, odd);
    StoreFirst(d, hn::ConcatLowerLower(d, upper, lower), count, to);
    StoreFirst(d, hn::ConcatUpperUpper(d, upper, lower), count - lanes, to + lanes);
#endif
  }
}

/// The taps of a vector of outputs. Sixteen bytes compared are a mask for AVX-512; others compare lanes as wide as what the mask is for.
template <class D>
struct TapVector {
#if HWY_TARGET <= HWY_AVX3
  using Tag = hn::Rebind<std::uint8_t, D>;
#else
  using Tag = hn::Rebind<std::uint32_t, D>;
#endif
  hn::Vec<Tag> taps;

  explicit HWY_INLINE TapVector(const std::uint8_t* from) {
#if HWY_TARGET <= HWY_AVX3
    taps = hn::LoadU(Tag(), from);
#else
    taps = hn::PromoteTo(Tag(), hn::LoadU(hn::Rebind<std::uint8_t, D>(), from));
#endif
  }
  TapVector() = default;

  /// `number`: kNumberBytes times.
  HWY_INLINE hn::Mask<D> Are(D d, const std::uint8_t* number) const {
#if HWY_TARGET <= HWY_AVX3
    return WideMask(d, hn::Eq(taps, hn::LoadU(Tag(), number)));
#else
    return hn::RebindMask(d, hn::Eq(taps, hn::Set(Tag(), std::uint32_t{*number})));
#endif
  }
};

/// Output rows and the input rows that their windows see.
struct SeenRows {
  std::int64_t count;  // output rows, one after the other
  const std::uint8_t* codes;
  const char* values;
  const std::uint8_t* numbers;  // of the taps of the input slice
  float* sums;                  // of rows that wait, carry_pitch apart
  int carried;                  // so many of the first input rows begin with the sums that wait
  int done;                     // so many are done, the others wait
  char* rows[kMostGathered];    // where they go; null: nowhere
};

/// Columns whose windows are kWidth wide and kStride apart, and no higher than wide. kOdd: those two apart begin at odd columns.
template <int kWidth, int kStride, bool kOdd, class T>
void GatherFromRows(const GatherPlan& plan, SeenRows seen, WaitingLines& waiting) {
  const hn::ScalableTag<float> d;
  // Outputs beside each other that see a stride of columns.
  constexpr int kTaken = kStride == 1 ? kWidth : kOdd ? kWidth / 2 + 1 : (kWidth + 1) / 2;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t width = plan.axis[2].input, pad = plan.axis[2].pad_begin, columns = plan.axis[2].output;
  const std::int64_t pitch = plan.carry_pitch, down = plan.axis[1].stride * width, code_pitch = plan.code_pitch;
  const std::int64_t wait = plan.axis[1].stride * pitch;
  // No sums: windows that share nothing pass each gradient on once.
  [[maybe_unused]] const bool exact = kWidth <= kStride && plan.axis[1].kernel <= plan.axis[1].stride;
  const std::uint8_t* HWY_RESTRICT numbers = seen.numbers;
  // The first of those outputs.
  const std::int64_t shift = (pad + (kOdd ? 1 : 0)) / kStride - (kTaken - 1);
  seen.codes += shift;
  const T* values = reinterpret_cast<const T*>(seen.values) + shift;
  T* rows[kWidth];
  for (int y = 0; y < kWidth; ++y) rows[y] = reinterpret_cast<T*>(seen.rows[y]);
  WaitingLines lines = waiting;
  const auto step_lines = ceil_div(seen.done * kStride * lanes * static_cast<std::int64_t>(sizeof(T)), kLine);
  for (; seen.count > 0; --seen.count) {
    for (std::int64_t x = 0; x < width; x += lanes * kStride) {
      TapVector<decltype(d)> code[kTaken];
      hn::Vec<decltype(d)> value[kTaken];
      CENOTE_UNROLL
      for (int i = 0; i < kTaken; ++i) {
        code[i] = TapVector<decltype(d)>(seen.codes + x / kStride + i);
        value[i] = LoadOnce(d, values + x / kStride + i);
      }
      CENOTE_UNROLL
      for (int y = 0; y < kWidth; ++y) {
        float* waiting = seen.sums + y * pitch + x;
        const bool carried = y < seen.carried;
        auto add = [&](int i, int tap, hn::Vec<decltype(d)>& sum) HWY_ATTR CENOTE_ALWAYS_INLINE {
          if (tap < 0 || tap >= kWidth) return;
          const auto here = code[i].Are(d, numbers + (y * kWidth + tap) * kNumberBytes);
          sum = hn::IfThenElse(here, hn::Add(sum, value[i]), sum);
        };
        auto first = carried ? hn::LoadU(d, waiting) : hn::Zero(d);
        if constexpr (kStride == 1) {
          CENOTE_UNROLL
          for (int i = 0; i < kTaken; ++i) add(i, kWidth - 1 - i, first);
          if (y >= seen.done) {
            hn::StoreU(first, d, waiting - wait);
          } else if (rows[y] != nullptr) {
            StoreFirst(RoundedTag<T, decltype(d)>(), RoundVector<T>(d, first), width - x,
                       reinterpret_cast<RoundedLane<T>*>(rows[y]) + x);
          }
        } else {
          auto second = carried ? hn::LoadU(d, waiting + lanes) : hn::Zero(d);
          CENOTE_UNROLL
          for (int i = 0; i < kTaken; ++i) {
            add(i, 2 * (kTaken - 1 - i) - (kOdd ? 1 : 0), first);
            add(i, 2 * (kTaken - 1 - i) + (kOdd ? 0 : 1), second);
          }
          if (y >= seen.done) {
            hn::StoreU(first, d, waiting - wait);
            hn::StoreU(second, d, waiting - wait + lanes);
          } else if (rows[y] != nullptr) {
            StorePairs(d, first, second, exact, width - x, rows[y] + x);
          }
        }
      }
      lines.Write(step_lines);
    }
    seen.codes += code_pitch;
    values += columns;
    for (T*& row : rows) row = row == nullptr ? nullptr : row + down;
  }
  waiting = lines;
}

using GatherFromRowsFn = void (*)(const GatherPlan&, SeenRows, WaitingLines&);

/// See GatherPlanesFn.
inline bool GatherBands(const GatherPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                        char* scratch, GatherFromRowsFn gather) {
  PlaneTaps taps(plan, scratch);
  PacedRows rows(plan.paced, scratch + plan.paced_at);
  const Axis &depth = plan.axis[0], &height = plan.axis[1], &width = plan.axis[2];
  const std::int64_t columns = width.output, kernel = height.kernel, stride = height.stride;
  const std::int64_t plane_outputs = depth.output * height.output * columns;
  const std::int64_t size = plan.size, row_bytes = width.input * size;
  char* copied = scratch + plan.values_at + kGatherMargin * size;
  SeenRows seen{};
  seen.sums = reinterpret_cast<float*>(scratch + plan.carry_at);
  std::int64_t band = begin % plan.bands, slice = begin / plan.bands % depth.input;
  std::int64_t plane = begin / plan.bands / depth.input;
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t top = band * plan.band, bottom = smaller(top + plan.band, height.input);
    const auto [output, tap] = plan.slices[static_cast<std::size_t>(slice)];
    char* target = static_cast<char*>(pointers.target) + plane * plan.target_pitch * size;
    rows.GoTo(target + (slice * height.input + top) * row_bytes);
    const char* source = static_cast<const char*>(pointers.source) + plane * plan.source_pitch * size;
    const char* indices = static_cast<const char*>(pointers.indices) + plane * plan.index_pitch * (plan.flat ? 8 : 1);
    seen.numbers = plan.numbers.data() + tap * width.kernel * width.kernel * kNumberBytes;
    // Vectors reach beyond a row of gradients: those of the first rows and the last, where no others are beside them, are copied before.
    const bool follow = plan.source_pitch == plane_outputs;
    const std::int64_t slices_rows = output * height.output;  // rows of the plane before this slice's
    const std::int64_t readable_first = (follow && plane > 0 ? 0 : plan.copied_first) - slices_rows;
    const std::int64_t readable_end = follow && plane + plan.copied_planes < plan.planes
                                          ? height.output
                                          : depth.output * height.output - plan.copied_last - slices_rows;
    // Output rows whose windows see the band.
    const std::int64_t first = larger(0, ceil_div(top + height.pad_begin - (kernel - 1), stride));
    const std::int64_t last = output < 0 ? -1 : smaller(height.output - 1, (bottom - 1 + height.pad_begin) / stride);
    std::int64_t next = top;  // input row
    std::int64_t filled = first, slot = 0;
    for (std::int64_t row = first; row <= last; row += seen.count, slot += seen.count) {
      if (row == filled) {
        filled = smaller(row + plan.code_rows, last + 1);
        slot = 0;
        taps.Fill(indices, output, row, filled - row);
      }
      const bool in_place = row >= readable_first && row < readable_end;
      seen.codes = taps.row(slot);
      seen.values = source + (slices_rows + row) * columns * size;
      if (!in_place) {
        std::memcpy(copied, seen.values, static_cast<std::size_t>(columns * size));
        seen.values = copied;
      }
      const std::int64_t start = row * stride - height.pad_begin;
      if (next < start) {
        rows.Zero(smaller(start, bottom) - next);
        next = smaller(start, bottom);
      }
      rows.Reserve(kernel);
      seen.count = 1;
      for (char*& to : seen.rows) to = nullptr;
      seen.carried = row == first ? 0 : static_cast<int>(larger(0, kernel - stride));
      if (row > first && row < last && in_place && stride <= kernel && start >= top) {
        // All rows that are done are the band's.
        seen.count = smaller(smaller(filled, last) - row, readable_end - row);
        seen.count = smaller(seen.count, rows.room() / stride);
        seen.done = static_cast<int>(stride);
        char* to = rows.Take(seen.count * stride);
        for (int y = 0; y < seen.done; ++y) seen.rows[y] = to + y * row_bytes;
        next += seen.count * stride;
      } else {
        seen.done = static_cast<int>(row == last || stride > width.kernel ? width.kernel : stride);
        for (int y = 0; y < seen.done; ++y) {
          const bool inside = y < kernel && start + y >= top && start + y < bottom;
          seen.rows[y] = inside ? rows.Take(1) : nullptr;
          next += inside ? 1 : 0;
        }
      }
      gather(plan, seen, rows.waiting);
    }
    rows.Zero(bottom - next);
    if (++band == plan.bands) {
      band = 0;
      if (++slice == depth.input) {
        slice = 0;
        ++plane;
      }
    }
  }
  return taps.valid();
}

template <class T>
bool GatherPlanes(const GatherPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                  char* scratch) {
  const Axis& width = plan.axis[2];
  const bool odd = width.pad_begin % 2 != 0;
  const GatherFromRowsFn gather = width.kernel == 5   ? GatherFromRows<5, 1, false, T>
                                  : width.stride == 1 ? GatherFromRows<3, 1, false, T>
                                  : width.kernel == 2 ? GatherFromRows<2, 2, false, T>
                                  : odd               ? GatherFromRows<3, 2, true, T>
                                                      : GatherFromRows<3, 2, false, T>;
  static_assert(kMostGathered == 5);
  return GatherBands(plan, pointers, begin, end, scratch, gather);
}

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
