// Along the row: the buffered row folded, window by window, into the result row. One function per Columns mode.
//
// The buffer has tile.pad_left columns of identity in front and tile.pad_right behind (none in the table modes), and a few
// vectors of slack; the result rows have slack too, so every loop runs in whole vectors.
#if defined(CENOTE_CPU_ROWS_ALONG_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_ROWS_ALONG_INL_H_
#undef CENOTE_CPU_ROWS_ALONG_INL_H_
#else
#define CENOTE_CPU_ROWS_ALONG_INL_H_
#endif

#include "cpu/rows/down-inl.h"
#include "cpu/thresholds.hpp"
#include "cpu/vectors/unroll.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

template <class C>
struct AlongRow {
  const RowPlan& plan;
  const Tile& tile;
  C* buffer;  // may be overwritten
  CodeOf<C>* codes;
  C* result;
  CodeOf<C>* result_codes;
  // 1 where indices are taps of the window (tap j adds j to the row's code), 0 where they are flat (the column is in the code).
  CodeOf<C> tap_step;
};

template <class C>
const LaneTable<CodeOf<C>>& LanesOf(const RowPlan& plan) {
  if constexpr (sizeof(C) == 8) {
    return plan.lanes64;
  } else {
    return plan.lanes32;
  }
}

/// Elements first, first + S, first + 2S, ... Reads up to S whole vectors.
template <int kStride, class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadStrided(D d, const T* HWY_RESTRICT p) {
#if HWY_TARGET == HWY_SCALAR
  return hn::LoadU(d, p);  // one lane
#else
  const std::size_t n = hn::Lanes(d);
  if constexpr (kStride == 1) {
    return hn::LoadU(d, p);
  } else if constexpr (kStride == 2) {
    return hn::ConcatEven(d, hn::LoadU(d, p + n), hn::LoadU(d, p));
  } else if constexpr (kStride == 3) {
    hn::Vec<D> v0, v1, v2;
    hn::LoadInterleaved3(d, p, v0, v1, v2);
    return v0;
  } else {
    static_assert(kStride == 4);
    return hn::ConcatEven(d, LoadStrided<2>(d, p + 2 * n), LoadStrided<2>(d, p));
  }
#endif
}

/// 0, S, 2S, ... (There is no multiplication of 64-bit lanes everywhere.)
template <int kStride, class DI>
HWY_INLINE hn::Vec<DI> StridedIota(DI di) {
  auto strides = hn::Iota(di, 0);
  CENOTE_UNROLL
  for (int i = 1; i < kStride; ++i) strides = hn::Add(strides, hn::Iota(di, 0));
  return strides;
}

/// One vector for each phase of S, element after element: S whole vectors.
template <int kStride, class D, class T = hn::TFromD<D>>
HWY_INLINE void StorePhases(D d, const hn::Vec<D> (&phase)[kStride], T* to) {
  if constexpr (kStride == 2) {
    hn::StoreInterleaved2(phase[0], phase[1], d, to);
  } else if constexpr (kStride == 3) {
    hn::StoreInterleaved3(phase[0], phase[1], phase[2], d, to);
  } else {
    static_assert(kStride == 4);
    hn::StoreInterleaved4(phase[0], phase[1], phase[2], phase[3], d, to);
  }
}

/// Columns::consecutive (stride 1, columns of any number of elements) and Columns::strided (planar). Writes no more than the
/// result's elements where they fill a vector: it may be the target itself.
template <Fold kFold, bool kAnyOrder, int kStride, int kTaps, class C>
void AlongRegular(const AlongRow<C>& row) {
  const hn::ScalableTag<C> d;
  const hn::RebindToSigned<decltype(d)> di;
  const RowPlan& plan = row.plan;
  const Axis& axis = plan.problem.axis[2];
  const std::int64_t taps = kTaps != 0 ? kTaps : axis.kernel, step = axis.dilation * plan.inner,
                     elements = row.tile.target_columns * plan.inner;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t next = 0; next < elements; next += lanes) {
    const std::int64_t q = next + lanes <= elements ? next : larger(0, elements - lanes);
    Accumulator<decltype(d), kFold, kAnyOrder> a;
    const C* from = row.buffer + q * kStride;
    const CodeOf<C>* codes = row.codes + q * kStride;
    auto code = [&](std::int64_t tap) HWY_ATTR {
      return [&row, codes, step, tap, di]() HWY_ATTR {
        return hn::Add(LoadStrided<kStride>(di, codes + tap * step),
                       hn::Set(di, static_cast<CodeOf<C>>(tap) * row.tap_step));
      };
    };
    a.First(d, LoadStrided<kStride>(d, from), code(0));
    for (std::int64_t tap = 1; tap < taps; ++tap) a.Next(d, LoadStrided<kStride>(d, from + tap * step), code(tap));
    a.Store(d, row.result + q, row.result_codes + q);
  }
}

/// Columns::consecutive with long windows: folds of 2, 4, 8, ... taps in place, each from two of the one before. A maximum of k
/// taps is two overlapping ones of the largest power of two in k; a sum adds one for each bit of k. About log2(k) passes for k.
template <Fold kFold, bool kAnyOrder, class C>
void AlongDoubling(const AlongRow<C>& row) {
  const hn::ScalableTag<C> d;
  const hn::RebindToSigned<decltype(d)> di;
  using Code = CodeOf<C>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Axis& axis = row.plan.problem.axis[2];
  const std::int64_t taps = axis.kernel, step = axis.dilation * row.plan.inner,
                     elements = row.tile.target_columns * row.plan.inner;
  // to[x] = from the fold at x and the fold `shift` taps further on; ascending, so that reading ahead of writing in place is right.
  auto join = [&](std::int64_t count, std::int64_t shift, C* to, Code* to_codes) HWY_ATTR {
    const auto moved = hn::Set(di, static_cast<Code>(shift) * row.tap_step);
    for (std::int64_t x = 0; x < count; x += lanes) {
      Accumulator<decltype(d), kFold, kAnyOrder> a;
      a.First(d, hn::LoadU(d, row.buffer + x), [&]() HWY_ATTR { return hn::LoadU(di, row.codes + x); });
      a.Next(d, hn::LoadU(d, row.buffer + x + shift * step),
             [&]() HWY_ATTR { return hn::Add(hn::LoadU(di, row.codes + x + shift * step), moved); });
      a.Store(d, to + x, to_codes + x);
    }
  };
  std::int64_t size = 1, summed = 0;
  for (;; size *= 2) {
    if constexpr (kFold == Fold::sum) {
      if ((taps & size) != 0) {
        for (std::int64_t q = 0; q < elements; q += lanes) {
          const auto part = hn::LoadU(d, row.buffer + q + summed * step);
          hn::StoreU(summed == 0 ? hn::Add(hn::Zero(d), part) : hn::Add(hn::LoadU(d, row.result + q), part), d,
                     row.result + q);
        }
        summed += size;
      }
    }
    if (2 * size > taps) break;
    join(elements + (taps - 2 * size) * step, size, row.buffer, row.codes);
  }
  if constexpr (kFold != Fold::sum) join(elements, taps - size, row.result, row.result_codes);
}

/// Partial sums of a long window, one per position modulo their number, added up pairwise at the end: the order in which
/// AlongSpanned adds, so that a sum does not depend on the layout it was taken in.
template <class D>
struct LaneSums {
  static constexpr int kLanes = 64 / sizeof(hn::TFromD<D>);
  hn::Vec<D> part[kLanes];

  HWY_INLINE explicit LaneSums(D d) {
    for (auto& one : part) one = hn::Zero(d);
  }
  HWY_INLINE void Add(std::int64_t tap, hn::Vec<D> v) { part[tap % kLanes] = hn::Add(part[tap % kLanes], v); }
  HWY_INLINE hn::Vec<D> Total() {
    CENOTE_UNROLL
    for (int width = kLanes / 2; width > 0; width /= 2) {
      CENOTE_UNROLL
      for (int i = 0; i < width; ++i) part[i] = hn::Add(part[i], part[i + width]);
    }
    return part[0];
  }
};

/// Columns::per_channel: a column at a time, vectors across its elements.
template <Fold kFold, bool kAnyOrder, class C>
void AlongChannels(const AlongRow<C>& row) {
  const hn::ScalableTag<C> d;
  const hn::RebindToSigned<decltype(d)> di;
  const RowPlan& plan = row.plan;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t inner = plan.inner, step = plan.table.step * inner;
  for (std::int64_t o = 0; o < row.tile.target_columns; ++o) {
    const std::int64_t first = (plan.table.first[row.tile.target_first + o] - row.tile.source_first) * inner;
    const std::int64_t taps = plan.table.count[row.tile.target_first + o];
    for (std::int64_t c = 0; c < inner; c += lanes) {
      c = c + lanes <= inner ? c : inner - lanes;  // the ragged end once more from its last whole vector
      Accumulator<decltype(d), kFold, kAnyOrder> a;
      const C* from = row.buffer + first + c;
      const CodeOf<C>* codes = row.codes + first + c;
      if constexpr (kFold == Fold::sum) {
        if (plan.sums_in_lanes) {
          LaneSums<decltype(d)> sums(d);
          for (std::int64_t tap = 0; tap < taps; ++tap) sums.Add(tap, hn::LoadU(d, from + tap * step));
          hn::StoreU(sums.Total(), d, row.result + o * inner + c);
          continue;
        }
      }
      auto code = [&](std::int64_t tap) HWY_ATTR {
        return [&row, codes, step, tap, di]() HWY_ATTR {
          return hn::Add(hn::LoadU(di, codes + tap * step), hn::Set(di, static_cast<CodeOf<C>>(tap) * row.tap_step));
        };
      };
      if (taps == 0) {
        a.First(d, hn::Set(d, IdentityOf<kFold, C>()), [&]() HWY_ATTR { return hn::Zero(di); });
      } else {
        a.First(d, hn::LoadU(d, from), code(0));
      }
      for (std::int64_t tap = 1; tap < taps; ++tap) a.Next(d, hn::LoadU(d, from + tap * step), code(tap));
      a.Store(d, row.result + o * inner + c, row.result_codes + o * inner + c);
    }
  }
}

/// Lanes of two vectors, counted through both. Where there is an instruction for it, or two and a blend.
template <class C>
constexpr bool kTakesLanes = HWY_ARCH_X86 && (HWY_TARGET <= HWY_AVX3 || (HWY_TARGET == HWY_AVX2 && sizeof(C) == 4));

template <class D, class V = hn::Vec<D>, class VI = hn::Vec<hn::RebindToSigned<D>>>
HWY_INLINE V LanesOfTwo(D d, V low, V high, VI from) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  (void)d;
  using T = hn::TFromD<D>;
  if constexpr (std::is_same_v<T, float>) {
    return V{_mm512_permutex2var_ps(low.raw, from.raw, high.raw)};
  } else if constexpr (std::is_same_v<T, double>) {
    return V{_mm512_permutex2var_pd(low.raw, from.raw, high.raw)};
  } else if constexpr (sizeof(T) == 4) {
    return V{_mm512_permutex2var_epi32(low.raw, from.raw, high.raw)};
  } else {
    return V{_mm512_permutex2var_epi64(low.raw, from.raw, high.raw)};
  }
#elif HWY_ARCH_X86 && HWY_TARGET == HWY_AVX2
  const hn::RebindToSigned<D> di;
  const auto lane = hn::And(from, hn::Set(di, 7));
  const auto in_high = hn::RebindMask(d, hn::Gt(from, hn::Set(di, 7)));
  const auto indices = hn::IndicesFromVec(d, lane);
  return hn::IfThenElse(in_high, hn::TableLookupLanes(high, indices), hn::TableLookupLanes(low, indices));
#else
  (void)d, (void)high, (void)from;
  return low;
#endif
}

/// Where the lanes of a vector lie in a buffered row: `offset` elements behind `first`. As long as those fit in two vectors, they are loaded and put in
/// order, which a gather takes many times as long for.
template <class C>
struct TakenLanes {
  using D = hn::ScalableTag<C>;
  using DI = hn::RebindToSigned<D>;
  hn::Vec<DI> offset;
  std::int64_t first;
  bool near;

  HWY_INLINE TakenLanes(hn::Vec<DI> position, std::int64_t begin)
      : offset(hn::Sub(position, hn::Set(DI(), static_cast<CodeOf<C>>(begin)))), first(begin) {
    Look();
  }
  HWY_INLINE void Look() {
    if constexpr (kTakesLanes<C>) {
      const auto beyond = hn::Set(DI(), static_cast<CodeOf<C>>(2 * hn::Lanes(D())));
      near = hn::AllTrue(DI(), hn::And(hn::Gt(offset, hn::Set(DI(), CodeOf<C>{-1})), hn::Lt(offset, beyond)));
    }
  }
  template <class Tag, class T = hn::TFromD<Tag>>
  HWY_INLINE hn::Vec<Tag> Take(Tag tag, const T* row) const {
    const T* from = row + first;
    if constexpr (kTakesLanes<C>) {
      if (HWY_LIKELY(near)) return LanesOfTwo(tag, hn::LoadU(tag, from), hn::LoadU(tag, from + hn::Lanes(tag)), offset);
    }
    return hn::GatherIndex(tag, from, offset);
  }
};

/// Columns::gathered: every lane has a window of its own.
template <Fold kFold, bool kAnyOrder, class C>
void AlongGathered(const AlongRow<C>& row) {
  if constexpr (sizeof(C) >= 4) {
    const hn::ScalableTag<C> d;
    const hn::RebindToSigned<decltype(d)> di;
    using Code = CodeOf<C>;
    const RowPlan& plan = row.plan;
    const LaneTable<Code>& table = LanesOf<C>(plan);
    const std::int64_t step = plan.table.step * plan.inner, origin = row.tile.source_first * plan.inner;
    const auto zero = hn::Zero(di);
    const std::int64_t from = row.tile.target_first * plan.inner, elements = row.tile.target_columns * plan.inner;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (std::int64_t q = 0; q < elements; q += lanes) {
      const Code* positions = table.position.data() + from + q;
      // Empty windows look at the row's first column, which may lie before the buffer.
      const std::int64_t first = larger(0, positions[0] - origin);
      auto position = hn::Max(hn::Sub(hn::LoadU(di, positions), hn::Set(di, static_cast<Code>(origin))), zero);
      if (q + lanes > elements) {  // lanes beyond the tile belong to the next one
        const auto real = hn::FirstN(di, static_cast<std::size_t>(elements - q));
        position = hn::IfThenElse(real, position, hn::Set(di, static_cast<Code>(first)));
      }
      TakenLanes<C> taken(position, first);
      const auto count = hn::LoadU(di, table.count.data() + from + q);
      // Most windows are whole, whatever borders and padding cut off.
      const bool even = plan.even || hn::AllTrue(di, hn::Eq(count, hn::Set(di, static_cast<Code>(plan.table.most))));
      // Lanes whose window has ended keep reading their last tap, which changes no maximum, and add nothing to a sum.
      auto next = [&](std::int64_t tap) HWY_ATTR {
        if (even) {
          taken.first += step;
          return;
        }
        const auto more = hn::Lt(hn::Set(di, static_cast<Code>(tap + 1)), count);
        taken.offset = hn::Add(taken.offset, hn::IfThenElseZero(more, hn::Set(di, static_cast<Code>(step))));
        taken.Look();
      };
      if constexpr (kFold == Fold::sum) {
        if (plan.sums_in_lanes) {
          LaneSums<decltype(d)> sums(d);
          for (std::int64_t tap = 0; tap < plan.table.most; ++tap) {
            auto v = taken.Take(d, row.buffer);
            if (!even) v = hn::IfThenElseZero(hn::RebindMask(d, hn::Lt(hn::Set(di, static_cast<Code>(tap)), count)), v);
            sums.Add(tap, v);
            if (tap + 1 < plan.table.most) next(tap);
          }
          hn::StoreU(sums.Total(), d, row.result + q);
          continue;
        }
      }
      Accumulator<decltype(d), kFold, kAnyOrder> a;
      for (std::int64_t tap = 0; tap < plan.table.most; ++tap) {
        const auto tap_lanes = hn::Set(di, static_cast<Code>(tap));
        auto v = taken.Take(d, row.buffer);
        if (!even) {
          const auto inside = hn::Lt(tap_lanes, count);
          if constexpr (kFold == Fold::sum) v = hn::IfThenElseZero(hn::RebindMask(d, inside), v);
          if (tap == 0 && kFold != Fold::sum) {
            v = hn::IfThenElse(hn::RebindMask(d, inside), v, hn::Set(d, IdentityOf<kFold, C>()));
          }
        }
        auto code = [&]() HWY_ATTR {
          const auto ended = even ? tap_lanes : hn::Min(tap_lanes, hn::Max(hn::Sub(count, hn::Set(di, Code{1})), zero));
          return hn::Add(taken.Take(di, row.codes), row.tap_step != 0 ? ended : zero);
        };
        if (tap == 0) {
          a.First(d, v, code);
        } else if (kFold == Fold::sum || even) {
          a.Next(d, v, code);
        } else {
          // An empty window keeps its identity.
          const auto has_any = hn::RebindMask(d, hn::Gt(count, zero));
          a.Next(d, hn::IfThenElse(has_any, v, a.value), code);
        }
        if (tap + 1 < plan.table.most) next(tap);
      }
      a.Store(d, row.result + q, row.result_codes + q);
    }
  }
}

/// The largest of a long window's lanes, and the lowest code of equal ones, where no instruction is in doubt about it: which NaN it is, and which zero. (8x8/8x6 maxima of f64 over 128 planes of 256 x 256, two threads:
/// 3771 us lane by lane.)
template <Fold kFold, class D, class Parts, class C = hn::TFromD<D>>
HWY_INLINE bool LargestOfLanes(D d, const Parts& parts, C* value, CodeOf<C>* code) {
  const hn::RebindToSigned<D> di;
  auto best = parts[0].value;
  [[maybe_unused]] auto doubts = hn::MaskFromVec(hn::Zero(d));
  CENOTE_UNROLL
  for (const auto& part : parts) {
    best = hn::Max(best, part.value);
    if constexpr (hwy::IsFloat<C>()) {
      const auto minus_zero = hn::Eq(hn::BitCast(di, part.value), hn::BitCast(di, hn::SignBit(d)));
      doubts = hn::Or(doubts, hn::Or(hn::IsNaN(part.value), hn::RebindMask(d, minus_zero)));
    }
  }
  if constexpr (hwy::IsFloat<C>()) {
    if (HWY_UNLIKELY(!hn::AllFalse(d, doubts))) return false;
  }
  best = hn::MaxOfLanes(d, best);
  *value = hn::GetLane(best);
  if constexpr (kFold == Fold::max_indexed) {
    const auto none = hn::Set(di, hwy::LimitsMax<CodeOf<C>>());
    auto lowest = none;
    CENOTE_UNROLL
    for (const auto& part : parts) {
      const auto equal = hn::RebindMask(di, hn::Eq(part.value, best));
      lowest = hn::Min(lowest, hn::IfThenElse(equal, part.code, none));
    }
    *code = hn::GetLane(hn::MinOfLanes(di, lowest));
  }
  return true;
}

/// Columns::spanned: vectors along one long window, then across their lanes. Sums are the same on every instruction set: they
/// always run in 64/sizeof(C) lanes, as many vectors as that takes.
template <Fold kFold, class C>
void AlongSpanned(const AlongRow<C>& row) {
  const hn::ScalableTag<C> d;
  const hn::RebindToSigned<decltype(d)> di;
  using D = decltype(d);
  using Code = CodeOf<C>;
  constexpr std::int64_t kLanes = 64 / sizeof(C);
  constexpr auto kVectors = static_cast<int>(kLanes / static_cast<std::int64_t>(hn::MaxLanes(d)));
  static_assert(kVectors >= 1);
  const RowPlan& plan = row.plan;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto identity = hn::Set(d, IdentityOf<kFold, C>());
  const auto iota = hn::Iota(di, 0);
  HWY_ALIGN C values[kLanes];
  HWY_ALIGN Code places[kLanes];
  for (std::int64_t o = 0; o < row.tile.target_columns; ++o) {
    const std::int64_t first = plan.table.first[row.tile.target_first + o] - row.tile.source_first;
    const std::int64_t taps = plan.table.count[row.tile.target_first + o];
    Accumulator<D, kFold, true> parts[kVectors];
    for (int part = 0; part < kVectors; ++part) {
      Accumulator<D, kFold, true>& a = parts[part];
      a.First(d, identity, [&]() HWY_ATTR { return hn::Set(di, hwy::LimitsMax<Code>()); });
      for (std::int64_t tap = part * lanes; tap < taps; tap += kLanes) {
        auto v = hn::LoadU(d, row.buffer + first + tap);
        const bool whole = tap + lanes <= taps;
        const auto inside = hn::FirstN(d, static_cast<std::size_t>(whole ? lanes : taps - tap));
        if (!whole) v = hn::IfThenElse(inside, v, identity);
        a.Next(d, v, [&]() HWY_ATTR {
          const auto tap_lanes = hn::Add(iota, hn::Set(di, static_cast<Code>(tap)));
          const auto code =
              hn::Add(hn::LoadU(di, row.codes + first + tap), row.tap_step != 0 ? tap_lanes : hn::Zero(di));
          return whole ? code : hn::IfThenElse(hn::RebindMask(di, inside), code, hn::Set(di, hwy::LimitsMax<Code>()));
        });
      }
    }
    // Of bytes windows would have to be long for that to be felt.
    if constexpr (kFold != Fold::sum && kHasGathers && sizeof(C) >= 4) {
      if (LargestOfLanes<kFold>(d, parts, row.result + o, row.result_codes + o)) continue;
    }
    for (int part = 0; part < kVectors; ++part) parts[part].Store(d, values + part * lanes, places + part * lanes);
    if constexpr (kFold == Fold::sum) {
      for (std::int64_t width = kLanes / 2; width > 0; width /= 2) {
        for (std::int64_t i = 0; i < width; ++i) values[i] = WrappingSum(values[i], values[i + width]);
      }
      row.result[o] = values[0];
    } else {
      std::int64_t best = 0;
      for (std::int64_t i = 1; i < kLanes; ++i) {
        const C v = values[i], b = values[best];
        if constexpr (kFold == Fold::max) {
          if (v > b || v != v) best = i;
        } else {
          const bool earlier = places[i] < places[best];
          if (v > b || (v == b && earlier) || (v != v && !(b != b && earlier))) best = i;
        }
      }
      row.result[o] = values[best];
      if constexpr (kFold == Fold::max_indexed) row.result_codes[o] = places[best];
    }
  }
}

/// Columns::phased, the backward of a planar sum of stride S: target column S*u + phase is seen by outputs u, u-1, ...
template <int kStride, class C>
void AlongPhased(const AlongRow<C>& row) {
  const hn::ScalableTag<C> d;
  const RowPlan& plan = row.plan;
  const Axis& axis = plan.problem.axis[2];
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Tile& tile = row.tile;
  const std::int64_t units = (tile.column_shift + tile.target_columns + kStride - 1) / kStride;
  for (std::int64_t u = 0; u < units; u += lanes) {
    hn::Vec<decltype(d)> phase[kStride];
    for (int f = 0; f < kStride; ++f) {
      // Taps f, f + S, ...: outputs u - m, folded in ascending order of output.
      const std::int64_t seen_by = f < axis.kernel ? (axis.kernel - f + kStride - 1) / kStride : 0;
      const C* at = row.buffer + tile.pad_left + tile.first_unit - tile.source_first + u;
      phase[f] = hn::Zero(d);
      for (std::int64_t m = seen_by - 1; m >= 0; --m) phase[f] = hn::Add(phase[f], hn::LoadU(d, at - m));
    }
    StorePhases<kStride>(d, phase, row.result + u * kStride);
  }
}

template <Fold kFold, bool kAnyOrder, class C>
void Along(const AlongRow<C>& row) {
  const std::int64_t stride = row.plan.transposed ? 1 : row.plan.problem.axis[2].stride;
  switch (row.plan.columns) {
    case Columns::consecutive:
      if (row.plan.problem.axis[2].kernel >= kDoublingTaps) return AlongDoubling<kFold, kAnyOrder>(row);
      if constexpr (kIsCommon<C>) {
        if (row.plan.problem.axis[2].kernel == 3) return AlongRegular<kFold, kAnyOrder, 1, 3>(row);
      }
      return AlongRegular<kFold, kAnyOrder, 1, 0>(row);
    case Columns::strided:
      if (stride == 2) return AlongRegular<kFold, kAnyOrder, 2, 0>(row);
      if (stride == 3) return AlongRegular<kFold, kAnyOrder, 3, 0>(row);
      return AlongRegular<kFold, kAnyOrder, 4, 0>(row);
    case Columns::per_channel: return AlongChannels<kFold, kAnyOrder>(row);
    case Columns::gathered: return AlongGathered<kFold, kAnyOrder>(row);
    case Columns::spanned: return AlongSpanned<kFold>(row);
    case Columns::phased:
      if constexpr (kFold == Fold::sum && sizeof(C) >= 4) {
        const std::int64_t phases = row.plan.problem.axis[2].stride;
        if (phases == 2) return AlongPhased<2>(row);
        if (phases == 3) return AlongPhased<3>(row);
        return AlongPhased<4>(row);
      }
  }
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
