// Windows over planar rows at no step that loads could follow: the input rows of some rows of outputs are folded down to one each, next to each other. From those vectors of outputs,
// whichever rows they belong to, take their taps, four at a time: the block of each window, and the squares of them turned.
#include "cpu/planes/wide_windows.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/planes/wide_windows.cpp"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>

#include "cpu/rows/along-inl.h"
#include "cpu/rows/finish-inl.h"
#include "cpu/vectors/noticed_nan-inl.h"
#include "cpu/vectors/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2  // masked loads worth their name, and blocks that are cheap to put together

using D = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<D>;
using V = hn::Vec<D>;
using VI = hn::Vec<DI>;
constexpr std::int64_t kLanes = hn::MaxLanes(D());
constexpr int kBlockTaps = 4;

/// What rows have that maxima by the instruction for them are not right for.
enum class Found { nothing, nan, minus_zero };

class WideFolder {
 public:
  WideFolder(const WideWindows& plan, const RowPointers& pointers, char* scratch)
      : plan_(plan),
        source_(static_cast<const float*>(pointers.source)),
        target_(static_cast<float*>(pointers.target)),
        indices_(pointers.indices),
        values_(reinterpret_cast<float*>(scratch + plan.values_at)),
        row_codes_(reinterpret_cast<std::int32_t*>(scratch + plan.row_codes_at)),
        codes_(reinterpret_cast<std::int32_t*>(scratch + plan.codes_at)) {}

  /// Groups [begin, end).
  template <Fold kFold>
  void Run(std::int64_t begin, std::int64_t end) {
    for (std::int64_t group = begin; group < end; ++group) {
      const std::int64_t first = group * plan_.group, rows = smaller(plan_.group, plan_.rows - first);
      FoldGroup<kFold>(first, rows);
      if constexpr (kFold == Fold::max_indexed) PutCodes(first * plan_.columns, rows * plan_.columns);
    }
  }

 private:
  /// Calls fold_row(row of the group, what it sees, its plane).
  template <class FoldRow>
  HWY_INLINE void ForRows(std::int64_t first, std::int64_t rows, const FoldRow& fold_row) const {
    const auto plane_rows = static_cast<std::int64_t>(plan_.seen.size());
    const float* plane = source_ + first / plane_rows * plan_.source_pitch;
    std::int64_t in_plane = first % plane_rows;
    for (std::int64_t row = 0; row < rows; ++row) {
      fold_row(row, plan_.seen[static_cast<std::size_t>(in_plane)], plane);
      if (++in_plane < plane_rows) continue;
      in_plane = 0;
      plane += plan_.source_pitch;
    }
  }

  template <Fold kFold>
  void FoldGroup(std::int64_t first, std::int64_t rows) const {
    const Found found = plan_.vectors == 1   ? FoldRows<kFold, 1>(first, rows)
                        : plan_.vectors == 2 ? FoldRows<kFold, 2>(first, rows)
                                             : FoldRows<kFold, 4>(first, rows);
    if constexpr (kFold != Fold::sum) {
      if (HWY_UNLIKELY(found == Found::nan)) return FoldInOrder(first, rows);
      // Which of several zeros is the first, only codes can tell.
      if (HWY_UNLIKELY(found == Found::minus_zero)) return FoldGroup<Fold::max_indexed>(first, rows);
    }
    const std::int64_t outputs = rows * plan_.columns;
    float* to = target_ + first * plan_.columns;
    const std::int64_t divisor = first % static_cast<std::int64_t>(plan_.seen.size()) * plan_.columns;
    for (std::int64_t q = 0; q < outputs; q += kLanes) {
      const V result = kFold == Fold::sum ? SumAlong(q, divisor + q) : MaxAlong<kFold>(q);
      if (q + kLanes <= outputs) {
        hn::StoreU(result, D(), to + q);
      } else {
        hn::BlendedStore(result, hn::FirstN(D(), static_cast<std::size_t>(outputs - q)), D(), to + q);
      }
    }
  }

  /// What later rows see, as it lies in memory.
  HWY_INLINE void FetchAhead(const SeenRows& seen, const float* plane) const {
    const auto line = static_cast<std::int64_t>(64 / sizeof(float));
    for (std::int64_t z = 0; z < seen.slices; ++z) {
      // A number, for it may lie beyond the tensor.
      auto at = reinterpret_cast<std::uintptr_t>(plane) +
                static_cast<std::uintptr_t>(seen.first + z * plan_.slice_step + plan_.ahead) * sizeof(float);
      for (std::int64_t i = 0; i < plan_.fresh; i += line, at += 64) hwy::Prefetch(reinterpret_cast<const float*>(at));
    }
  }

  /// The input rows of each row down to one.
  template <Fold kFold, int kVectors>
  HWY_NOINLINE Found FoldRows(std::int64_t first, std::int64_t rows) const {
    const D d;
    NoticedNaN<D> nan;
    auto minus_zero = hn::MaskFromVec(hn::Zero(d));
    const std::int64_t span = smaller(plan_.width, kVectors * kLanes), last = plan_.width - span;
    const auto inside = hn::FirstN(d, static_cast<std::size_t>(span - (kVectors - 1) * kLanes));
    ForRows(first, rows, [&](std::int64_t row, const SeenRows& seen, const float* plane) HWY_ATTR CENOTE_ALWAYS_INLINE {
      if (plan_.ahead != 0) FetchAhead(seen, plane);
      // The last columns once more from the last whole vectors.
      for (std::int64_t next = 0; next < plan_.width; next += kVectors * kLanes) {
        const std::int64_t x = smaller(next, last);
        FoldDown<kFold, kVectors>(seen, plane + seen.first + x, inside, row * plan_.row_pitch + x, nan, minus_zero);
      }
    });
    if constexpr (kFold == Fold::sum) return Found::nothing;
    if (HWY_UNLIKELY(nan.any())) return Found::nan;
    return kFold == Fold::max && HWY_UNLIKELY(!hn::AllFalse(d, minus_zero)) ? Found::minus_zero : Found::nothing;
  }

  /// kVectors vectors of columns down the rows from `from` on, to `at` of the folded ones. `inside`: which columns of the last there are. `minus_zero`: where maxima are.
  template <Fold kFold, int kVectors>
  HWY_INLINE void FoldDown(const SeenRows& seen, const float* from, hn::Mask<D> inside, std::int64_t at,
                           NoticedNaN<D>& any_nan, hn::Mask<D>& minus_zero) const {
    const D d;
    const DI di;
    NoticedNaN<D> nan[(kVectors + 1) / 2];  // one would wait for itself
    auto load = [&](const float* row, V(&v)[kVectors]) HWY_ATTR CENOTE_ALWAYS_INLINE {
      CENOTE_UNROLL
      for (int i = 0; i + 1 < kVectors; ++i) v[i] = hn::LoadU(d, row + i * kLanes);
      v[kVectors - 1] = hn::MaskedLoad(inside, d, row + (kVectors - 1) * kLanes);
      CENOTE_UNROLL
      for (int i = 0; kFold != Fold::sum && i < kVectors; i += 2)
        nan[i / 2].Show(v[i], v[i + 1 < kVectors ? i + 1 : i]);
    };
    V folded[kVectors];
    VI codes[kVectors];
    load(from, folded);
    CENOTE_UNROLL
    for (auto& code : codes) code = hn::Set(di, seen.code);
    for (std::int32_t z = 0; z < seen.slices; ++z) {
      const std::int32_t skipped = z == 0 ? 1 : 0;
      const float* row = from + z * plan_.slice_step + skipped * plan_.row_step;
      std::int32_t row_code = seen.code + z * seen.slice_codes + skipped * plan_.row_codes;
      for (std::int32_t y = skipped; y < seen.rows; ++y, row += plan_.row_step, row_code += plan_.row_codes) {
        V next[kVectors];
        load(row, next);
        CENOTE_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          if constexpr (kFold == Fold::sum) {
            folded[v] = hn::Add(folded[v], next[v]);
          } else {
            if constexpr (kFold == Fold::max_indexed) {
              const auto wins = hn::RebindMask(di, hn::Gt(next[v], folded[v]));
              codes[v] = hn::IfThenElse(wins, hn::Set(di, row_code), codes[v]);
            }
            folded[v] = hn::Max(next[v], folded[v]);  // the second of equal ones, which came first
          }
        }
      }
    }
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(folded[v], d, values_ + at + v * kLanes);
      if (kFold == Fold::max_indexed) hn::StoreU(codes[v], di, row_codes_ + at + v * kLanes);
      if constexpr (kFold == Fold::max) {
        const auto zeros = hn::Eq(hn::BitCast(di, folded[v]), hn::BitCast(di, hn::SignBit(d)));
        minus_zero = hn::Or(minus_zero, hn::RebindMask(d, zeros));
      }
    }
    if constexpr (kFold != Fold::sum) {
      CENOTE_UNROLL
      for (const auto& noticed : nan) any_nan.Join(noticed);
    }
  }

  /// Taps tap to tap + 3 of the outputs from q on, from folded rows of values or codes: those beyond a window are anything.
  template <class Tag, class T = hn::TFromD<Tag>>
  HWY_INLINE void TakeTaps(Tag tag, const T* rows, std::int64_t q, std::int64_t tap,
                           hn::Vec<Tag> (&taps)[kBlockTaps]) const {
    const hn::FixedTag<T, kBlockTaps> block;
    const std::int32_t* positions = plan_.positions.data() + q;
    CENOTE_UNROLL
    for (std::size_t i = 0; i < kBlockTaps; ++i) {
      taps[i] = FromBlocks(
          tag, 0, [&](std::size_t b) HWY_ATTR { return hn::LoadU(block, rows + positions[b * kBlockTaps + i] + tap); });
    }
    TransposeBlocks(tag, taps);
  }

  /// Which lanes have more than `tap` taps.
  HWY_INLINE hn::Mask<D> Inside(std::int64_t q, std::int64_t tap) const {
    const DI di;
    const VI count = hn::LoadU(di, plan_.counts.data() + q);
    return hn::RebindMask(D(), hn::Gt(count, hn::Set(di, static_cast<std::int32_t>(tap))));
  }

  /// Calls join(tap, its lanes) for taps [tap, tap + 4) of the outputs from q on that there are; `other` stands in lanes whose window has ended.
  template <class Join>
  HWY_INLINE void JoinTaps(std::int64_t q, std::int64_t tap, V other, const Join& join) const {
    V taps[kBlockTaps];
    TakeTaps(D(), values_, q, tap, taps);
    CENOTE_UNROLL
    for (int i = 0; i < kBlockTaps; ++i) {
      if (tap + i >= plan_.taps) break;
      join(i, plan_.even ? taps[i] : hn::IfThenElse(Inside(q, tap + i), taps[i], other));
    }
  }

  /// A vector of sums, from output q of the group on, divided. `divisor`: the first of its divisors, where they differ.
  HWY_INLINE V SumAlong(std::int64_t q, std::int64_t divisor) const {
    const D d;
    V total = hn::Zero(d);
    if (plan_.in_lanes) {
      LaneSums<D> sums(d);
      for (std::int64_t tap = 0; tap < plan_.taps; tap += kBlockTaps)
        JoinTaps(q, tap, hn::Zero(d), [&](int i, V v) HWY_ATTR { sums.Add(tap + i, v); });
      total = sums.Total();
    } else {
      for (std::int64_t tap = 0; tap < plan_.taps; tap += kBlockTaps)
        JoinTaps(q, tap, hn::Zero(d), [&](int, V v) HWY_ATTR { total = hn::Add(total, v); });
    }
    const SliceDivisors& by = plan_.divisors;
    if (by.multiplies) return hn::Mul(total, hn::Set(d, 1 / by.all));
    return Quotient(d, total, by.all != 0 ? hn::Set(d, by.all) : hn::LoadU(d, by.each.data() + divisor), by.all < 0);
  }

  /// A vector of maxima. Of equal ones the one of the first row is kept, in a row the first.
  template <Fold kFold>
  HWY_INLINE V MaxAlong(std::int64_t q) const {
    const D d;
    const DI di;
    const V nan = hn::NaN(d);  // neither greater nor equal
    V best = nan;
    VI code = hn::Zero(di);
    for (std::int64_t tap = 0; tap < plan_.taps; tap += kBlockTaps) {
      VI codes[kBlockTaps];
      if (kFold == Fold::max_indexed) TakeTaps(di, row_codes_, q, tap, codes);
      JoinTaps(q, tap, nan, [&](int i, V v) HWY_ATTR {
        if constexpr (kFold == Fold::max) {
          best = i == 0 && tap == 0 ? v : hn::Max(v, best);
        } else {
          const VI other = hn::Add(codes[i], hn::Set(di, static_cast<std::int32_t>(tap) + i));
          const auto earlier = hn::RebindMask(d, hn::Lt(other, code));
          auto wins = hn::Or(hn::Gt(v, best), hn::And(hn::Eq(v, best), earlier));
          if (i == 0 && tap == 0) wins = hn::Not(hn::MaskFromVec(hn::Zero(d)));
          best = hn::IfThenElse(wins, v, best);
          code = hn::IfThenElse(hn::RebindMask(di, wins), other, code);
        }
      });
    }
    if constexpr (kFold == Fold::max_indexed) {
      if (plan_.counts_own_taps) code = CountOwnTaps(q, code);
      hn::StoreU(hn::Add(code, hn::LoadU(di, plan_.codes.data() + q)), di, codes_ + q);
    }
    return best;
  }

  /// Codes counted the taps of rows of the widest window; now of each window itself.
  HWY_INLINE VI CountOwnTaps(std::int64_t q, VI code) const {
    const D d;
    const DI di;
    const auto widest = hn::Set(di, plan_.row_codes);
    // The quotient of numbers of 24 bits never rounds up to the next whole one.
    const VI row = hn::ConvertTo(di, hn::Div(hn::ConvertTo(d, code), hn::ConvertTo(d, widest)));
    const VI own = hn::LoadU(di, plan_.counts.data() + q);
    return hn::Sub(code, hn::Mul(row, hn::Sub(widest, own)));
  }

  /// Element by element, where there are NaNs: the last one is kept.
  HWY_NOINLINE void FoldInOrder(std::int64_t first, std::int64_t rows) const {
    ForRows(first, rows, [&](std::int64_t row, const SeenRows& seen, const float* plane) {
      for (std::int64_t o = 0; o < plan_.columns; ++o) {
        const auto q = static_cast<std::size_t>(row * plan_.columns + o);
        const std::int64_t taps = plan_.counts[q];
        const float* window = plane + seen.first + plan_.positions[static_cast<std::size_t>(o)];
        float best = window[0];
        std::int64_t code = 0;
        for (std::int64_t z = 0; z < seen.slices; ++z) {
          for (std::int64_t y = 0; y < seen.rows; ++y) {
            const float* of_row = window + z * plan_.slice_step + y * plan_.row_step;
            for (std::int64_t tap = 0; tap < taps; ++tap) {
              const float v = of_row[tap];
              if (!(v > best) && v == v) continue;
              best = v;
              code = z * seen.slice_codes + y * plan_.row_codes;
              if (plan_.counts_own_taps) code = code / plan_.row_codes * taps;
              code += tap;
            }
          }
        }
        target_[first * plan_.columns + static_cast<std::int64_t>(q)] = best;
        codes_[q] = static_cast<std::int32_t>(seen.code + plan_.codes[q] + code);
      }
    });
  }

  void PutCodes(std::int64_t at, std::int64_t count) {
    auto put = [&](auto* to) HWY_ATTR {
      if constexpr (sizeof(*to) == 8) {
        if (plan_.streams) return index_writer_.Write(codes_, to + at, count);
      }
      StoreAs(codes_, to + at, count);
    };
    WithIndexType(plan_.index_dtype, indices_, put);
  }

  const WideWindows& plan_;
  const float* source_;
  float* target_;
  void* indices_;
  float* values_;
  std::int32_t* row_codes_;
  std::int32_t* codes_;
  StreamWriter index_writer_;
};

template <Fold kFold>
void FoldWideWindows(const WideWindows& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                     char* scratch) {
  WideFolder(plan, pointers, scratch).Run<kFold>(begin, end);
}

WideWindowsFolds WideWindowsOf(DType dtype) {
  if (dtype != DType::f32) return {};
  return {FoldWideWindows<Fold::max>, FoldWideWindows<Fold::max_indexed>, FoldWideWindows<Fold::sum>, kLanes};
}

#else

WideWindowsFolds WideWindowsOf(DType) { return {}; }

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(WideWindowsOf);
WideWindowsFolds wide_windows_of(std::size_t target, DType dtype) {
  return HWY_DISPATCH_TABLE(WideWindowsOf)[target](dtype);
}
}  // namespace cenote::simd
#endif
