// The backward of the max family as a gather: each input element asks the outputs that see it whether it won.
// Parallel, deterministic, every byte of grad_input written once.
#if defined(CENOTE_CPU_MAX_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_MAX_BACKWARD_INL_H_
#undef CENOTE_CPU_MAX_BACKWARD_INL_H_
#else
#define CENOTE_CPU_MAX_BACKWARD_INL_H_
#endif

#include <atomic>

#include "cpu/max_backward.hpp"
#include "cpu/sum_backward-inl.h"
#include "geometry/index_math.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// Codes that no input element has: "none" (padding too), and indices that cannot be right.
inline constexpr int kNoCode = -2, kInvalidCode = -3;

/// Indices of one output row as codes.
template <class Index, class Code>
void CodesFromIndices(const Index* HWY_RESTRICT from, Code* HWY_RESTRICT to, std::int64_t count) {
  constexpr Index kNone = static_cast<Index>(-1);
  for (std::int64_t i = 0; i < count; ++i) {
    const Index index = from[i];
    bool fits = true;
    if constexpr (std::is_signed_v<Index>) fits = index >= 0;
    if constexpr (sizeof(Index) > sizeof(Code) || (std::is_unsigned_v<Index> && sizeof(Index) == sizeof(Code))) {
      fits = fits && index <= static_cast<Index>(std::numeric_limits<Code>::max());
    }
    to[i] = index == kNone ? Code{kNoCode} : fits ? static_cast<Code>(index) : Code{kInvalidCode};
  }
}

/// The indices of output row (od, oh) as codes. Taps of windows that differ in size are rewritten as flat positions.
template <class Code>
void LoadCodes(const RowPlan& plan, const RowPointers& pointers, const UnitCursor& unit, std::int64_t od,
               std::int64_t oh, char* staged, Code* to) {
  const Problem& p = plan.problem;
  const std::int64_t first = unit.tile().source_first, columns = unit.tile().source_columns,
                     elements = columns * plan.inner;
  const std::int64_t at = unit.offset(plan.indices, od, oh, first);
  auto load = [&](const auto* indices) HWY_ATTR {
    using Index = std::remove_cv_t<std::remove_pointer_t<decltype(indices)>>;
    const Index* row = indices + at;
    if (!plan.indices.dense) {
      pack_row(plan.indices, columns, plan.inner, row, reinterpret_cast<Index*>(staged));
      row = reinterpret_cast<const Index*>(staged);
    }
    CodesFromIndices(row, to, elements);
  };
  switch (p.index_dtype) {
    case DType::i64: load(static_cast<const std::int64_t*>(pointers.input)); break;
    case DType::i32: load(static_cast<const std::int32_t*>(pointers.input)); break;
    case DType::u8: load(static_cast<const std::uint8_t*>(pointers.input)); break;
    case DType::u16: load(static_cast<const std::uint16_t*>(pointers.input)); break;
    default: load(static_cast<const std::uint32_t*>(pointers.input)); break;
  }
  if (p.index_kind == IndexKind::window && plan.code_kind == Codes::flat) {
    const std::int64_t* const no_starts[3] = {};
    for (std::int64_t q = 0; q < elements; ++q) {
      if (to[q] < 0) continue;
      const std::int64_t flat = flat_of_tap(p, windows_of(p, no_starts, od, oh, first + q / plan.inner), to[q]);
      to[q] = flat < 0 ? Code{kInvalidCode} : static_cast<Code>(flat);
    }
  }
}

/// Output rows prepared for comparison: gradients and codes, padded on both sides with what never matches.
template <class C>
struct PreparedRows {
  const C* gradients[kRowBlock];
  const CodeOf<C>* codes[kRowBlock];
  CodeOf<C> base[kRowBlock];  // what the first column (flat) or tap 0 (taps) of the input row compares with
  int count;
};

template <class C>
struct MatchRow {
  const RowPlan& plan;
  const Tile& tile;
  const PreparedRows<C>& rows;
  C* result;
  bool continues;
  std::int64_t matched = 0;
};

/// One comparison: adds the gradients whose code is `target`.
template <class D, class DI, class C = hn::TFromD<D>>
HWY_INLINE void AddMatching(D d, DI, hn::Vec<DI> code, hn::Vec<DI> target, hn::Vec<D> gradient, hn::Vec<D>& sum,
                            hn::Vec<DI>& count) {
  const auto won = hn::Eq(code, target);
  sum = hn::Add(sum, hn::IfThenElseZero(hn::RebindMask(d, won), gradient));
  count = hn::Sub(count, hn::VecFromMask(DI(), won));
}

/// Planar, stride S up to 4 and no dilation: input column S*u + phase - pad is seen by outputs u, u-1, ...
template <int kStride, class C>
void MatchPhased(MatchRow<C>& row) {
  const hn::ScalableTag<C> d;
  const hn::RebindToSigned<decltype(d)> di;
  using Code = CodeOf<C>;
  const RowPlan& plan = row.plan;
  const Axis& axis = plan.problem.axis[2];
  const bool flat = plan.code_kind == Codes::flat;
  const Tile& tile = row.tile;
  const std::int64_t units = (tile.column_shift + tile.target_columns + kStride - 1) / kStride;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto spread = hn::Iota(di, 0);
  for (int i = 1; i < kStride; ++i) spread = hn::Add(spread, hn::Iota(di, 0));
  const auto nowhere = hn::Set(di, static_cast<Code>(hwy::LimitsMin<Code>() / 2));
  auto count = hn::Zero(di);
  for (std::int64_t u = 0; u < units; u += lanes) {
    hn::Vec<decltype(d)> phase[kStride];
    for (int f = 0; f < kStride; ++f) {
      const std::int64_t seen_by = f < axis.kernel ? (axis.kernel - f + kStride - 1) / kStride : 0;
      const std::int64_t at = tile.pad_left + tile.first_unit - tile.source_first + u;
      const std::int64_t column = kStride * (tile.first_unit + u) + f - axis.pad_begin;
      // Lanes beyond the tile's ends are not stored, and must not match: they are other tiles' or rows' elements, or padding.
      const std::int64_t end = tile.target_first + tile.target_columns;
      const bool inside = column >= tile.target_first && column + kStride * (lanes - 1) < end;
      const auto columns = hn::Add(spread, hn::Set(di, static_cast<Code>(column)));
      const auto real = hn::And(hn::Gt(columns, hn::Set(di, static_cast<Code>(tile.target_first - 1))),
                                hn::Lt(columns, hn::Set(di, static_cast<Code>(end))));
      auto sum = hn::Zero(d);
      for (int r = 0; r < row.rows.count; ++r) {
        for (std::int64_t m = seen_by - 1; m >= 0; --m) {
          auto target = flat ? hn::Add(columns, hn::Set(di, row.rows.base[r]))
                             : hn::Set(di, static_cast<Code>(row.rows.base[r] + f + m * kStride));
          if (!inside) target = hn::IfThenElse(real, target, nowhere);
          AddMatching(d, di, hn::LoadU(di, row.rows.codes[r] + at - m), target,
                      hn::LoadU(d, row.rows.gradients[r] + at - m), sum, count);
        }
      }
      phase[f] = sum;
    }
    C* to = row.result + u * kStride;
    if constexpr (kStride == 1) {
      hn::StoreU(row.continues ? hn::Add(hn::LoadU(d, to), phase[0]) : phase[0], d, to);
    } else {
      HWY_ALIGN C together[kStride * hn::MaxLanes(d)];
      C* store_to = row.continues ? together : to;
      if constexpr (kStride == 2) {
        hn::StoreInterleaved2(phase[0], phase[1], d, store_to);
      } else if constexpr (kStride == 3) {
        hn::StoreInterleaved3(phase[0], phase[1], phase[2], d, store_to);
      } else {
        hn::StoreInterleaved4(phase[0], phase[1], phase[2], phase[3], d, store_to);
      }
      for (std::int64_t i = 0; row.continues && i < kStride * lanes; ++i) to[i] += together[i];
    }
  }
  HWY_ALIGN Code counted[hn::MaxLanes(di)];
  hn::Store(count, di, counted);
  for (std::int64_t i = 0; i < lanes; ++i) row.matched += counted[i];
}

/// Channels-last columns that fill vectors.
template <class C>
void MatchChannels(MatchRow<C>& row) {
  const hn::ScalableTag<C> d;
  const hn::RebindToSigned<decltype(d)> di;
  using Code = CodeOf<C>;
  const RowPlan& plan = row.plan;
  const bool flat = plan.code_kind == Codes::flat;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t inner = plan.inner;
  std::int64_t matched = 0;
  for (std::int64_t i = 0; i < row.tile.target_columns; ++i) {
    const std::int64_t x = row.tile.target_first + i;
    const Cover seen = cover(plan.problem.axis[2], x);
    std::int64_t c = 0;
    for (bool last = false; !last; c += lanes) {
      // The ragged end: the last whole vector again, its first lanes neither counted nor added a second time.
      const std::int64_t at = c + lanes <= inner ? c : inner - lanes;
      last = c + lanes >= inner;
      const auto fresh = hn::Gt(hn::Iota(di, static_cast<Code>(at)), hn::Set(di, static_cast<Code>(c - 1)));
      auto count = hn::Zero(di);
      auto sum = hn::Zero(d);
      for (int r = 0; r < row.rows.count; ++r) {
        for (std::int64_t m = 0; m < seen.count; ++m) {
          const std::int64_t from = (seen.first + m * seen.step - row.tile.source_first) * inner + at;
          const Code target = static_cast<Code>(row.rows.base[r] + (flat ? x : seen.first_tap - m * seen.tap_step));
          AddMatching(d, di, hn::LoadU(di, row.rows.codes[r] + from), hn::Set(di, target),
                      hn::LoadU(d, row.rows.gradients[r] + from), sum, count);
        }
      }
      C* to = row.result + i * inner + at;
      if (row.continues) {
        const auto before = hn::LoadU(d, to);
        sum = hn::IfThenElse(hn::RebindMask(d, fresh), hn::Add(before, sum), before);
      }
      hn::StoreU(sum, d, to);
      HWY_ALIGN Code counted[hn::MaxLanes(di)];
      hn::Store(hn::IfThenElseZero(fresh, count), di, counted);
      for (std::int64_t lane = 0; lane < lanes; ++lane) matched += counted[lane];
    }
  }
  row.matched += matched;
}

/// Everything else: each input element looks up the outputs that see it. Codes are flat.
template <class C>
void MatchGathered(MatchRow<C>& row) {
  const hn::ScalableTag<C> d;
  const hn::RebindToSigned<decltype(d)> di;
  using Code = CodeOf<C>;
  const RowPlan& plan = row.plan;
  const LaneTable<Code>& table = LanesOf<C>(plan);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto step = hn::Set(di, static_cast<Code>(plan.table.step * plan.inner));
  const auto nowhere = hn::Set(di, Code{kNoCode});
  auto count = hn::Zero(di);
  const std::int64_t from = row.tile.target_first * plan.inner, elements = row.tile.target_columns * plan.inner;
  const auto origin = hn::Set(di, static_cast<Code>(row.tile.source_first * plan.inner)), zero = hn::Zero(di);
  for (std::int64_t q = 0; q < elements; q += lanes) {
    // Lanes beyond the tile are the next one's: they see nothing here.
    const auto real = hn::Lt(hn::Iota(di, static_cast<Code>(q)), hn::Set(di, static_cast<Code>(elements)));
    const auto seen_by = hn::IfThenElseZero(real, hn::LoadU(di, table.count.data() + from + q));
    const auto column = hn::LoadU(di, table.column_codes.data() + from + q);
    auto sum = hn::Zero(d);
    for (int r = 0; r < row.rows.count; ++r) {
      auto position =
          hn::IfThenElseZero(real, hn::Max(hn::Sub(hn::LoadU(di, table.position.data() + from + q), origin), zero));
      const auto target = hn::Add(column, hn::Set(di, row.rows.base[r]));
      for (std::int64_t m = 0; m < plan.table.most; ++m) {
        const auto inside = hn::Lt(hn::Set(di, static_cast<Code>(m)), seen_by);
        const auto code = hn::IfThenElse(inside, hn::GatherIndex(di, row.rows.codes[r], position), nowhere);
        AddMatching(d, di, code, target, hn::GatherIndex(d, row.rows.gradients[r], position), sum, count);
        const auto more = hn::Lt(hn::Set(di, static_cast<Code>(m + 1)), seen_by);
        position = hn::IfThenElse(more, hn::Add(position, step), position);
      }
    }
    C* to = row.result + q;
    hn::StoreU(row.continues ? hn::Add(hn::LoadU(d, to), sum) : sum, d, to);
  }
  HWY_ALIGN Code counted[hn::MaxLanes(di)];
  hn::Store(count, di, counted);
  for (std::int64_t i = 0; i < lanes; ++i) row.matched += counted[i];
}

template <class C>
void Match(MatchRow<C>& row) {
  switch (row.plan.columns) {
    case Columns::per_channel: return MatchChannels(row);
    case Columns::phased:
      switch (row.plan.problem.axis[2].stride) {
        case 1: return MatchPhased<1>(row);
        case 2: return MatchPhased<2>(row);
        case 3: return MatchPhased<3>(row);
        default: return MatchPhased<4>(row);
      }
    default: return MatchGathered(row);
  }
}

/// Prepared output rows, kept from one input row to the next: an output row is converted once, not once per input row it sees.
template <class T, class C>
class RowCache {
 public:
  using Code = CodeOf<C>;
  RowCache(const RowPlan& plan, const RowPointers& pointers, const Workspace<T, C>& space)
      : plan_(plan),
        pointers_(pointers),
        space_(space),
        row_elements_(static_cast<std::int64_t>(plan.packed_pitch / sizeof(C))),
        gradients_(reinterpret_cast<C*>(space.packed)),
        codes_(reinterpret_cast<Code*>(space.packed + kRowBlock * plan.packed_pitch)) {
    forget();
  }

  void forget() {
    for (auto& place : held_) place = {-1, -1};
  }

  /// Fills entry `i` of `rows` with output row (od, oh).
  void get(const UnitCursor& unit, std::int64_t od, std::int64_t oh, int i, PreparedRows<C>& rows) {
    // Without dilation the covering rows are consecutive: their remainders differ, so that none pushes out another.
    const int slot = plan_.cached_rows
                         ? static_cast<int>(od % plan_.cached_depths * plan_.cached_heights + oh % plan_.cached_heights)
                         : i;
    C* g = gradients_ + slot * row_elements_;
    Code* k = codes_ + slot * row_elements_;
    rows.gradients[i] = g;
    rows.codes[i] = k;
    if (plan_.cached_rows && held_[slot].depth == od && held_[slot].height == oh) return;
    held_[slot] = {od, oh};
    const Tile& tile = unit.tile();
    const std::int64_t left = tile.pad_left * plan_.inner, elements = tile.source_columns * plan_.inner;
    LoadRow(plan_.source, tile.source_columns, plan_.inner,
            static_cast<const T*>(pointers_.source) + unit.offset(plan_.source, od, oh, tile.source_first),
            space_.staged, g + left);
    LoadCodes(plan_, pointers_, unit, od, oh, reinterpret_cast<char*>(space_.staged), k + left);
    for (std::int64_t x = 0; x < left; ++x) k[x] = Code{kNoCode};
    for (std::int64_t x = 0; x < tile.pad_right * plan_.inner; ++x) k[left + elements + x] = Code{kNoCode};
  }

 private:
  struct Place {
    std::int64_t depth, height;
  };
  const RowPlan& plan_;
  const RowPointers& pointers_;
  const Workspace<T, C>& space_;
  std::int64_t row_elements_;
  C* gradients_;
  Code* codes_;
  Place held_[kRowBlock];
};

/// Units [begin, end) of grad_input. Adds to `tally` what its check of the indices needs: each valid index matches exactly once.
template <class T, class C>
void MaxBackwardRows(const RowPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                     char* scratch, IndexTally& tally) {
  using Code = CodeOf<C>;
  const Workspace<T, C> space(plan, scratch);
  const Problem& p = plan.problem;
  RowCache<T, C> cache(plan, pointers, space);
  std::int64_t matched = 0, expected = 0;
  UnitCursor unit(plan, begin);
  for (std::int64_t index = begin; index < end; ++index, unit.next()) {
    const Tile& tile = unit.tile();
    if (unit.height == 0 && (unit.depth == 0 || plan.tiles.size() > 1)) cache.forget();
    const Cover depth = cover(p.axis[0], unit.depth), height = cover(p.axis[1], unit.height);
    const std::int64_t rows = tile.source_columns > 0 ? depth.count * height.count : 0;
    PreparedRows<C> prepared{};
    std::int64_t z = 0, y = 0;
    for (std::int64_t done = 0; done < rows || done == 0; done += kRowBlock) {
      prepared.count = static_cast<int>(smaller(kRowBlock, rows - done));
      for (int i = 0; i < prepared.count; ++i, ++y) {
        if (y == height.count) y = 0, ++z;
        const std::int64_t od = depth.first + z * depth.step, oh = height.first + y * height.step;
        cache.get(unit, od, oh, i, prepared);
        const Window wd = window(p.axis[0], od), wh = window(p.axis[1], oh);
        if (wd.first == unit.depth && wh.first == unit.height) {  // the first row of its window: counted once
          const Code* owned = prepared.codes[i] + (tile.pad_left + tile.owned_first - tile.source_first) * plan.inner;
          for (std::int64_t x = 0; x < tile.owned * plan.inner; ++x) expected += owned[x] != Code{kNoCode} ? 1 : 0;
        }
        std::int64_t base = (unit.depth * p.axis[1].input + unit.height) * p.axis[2].input;
        if (plan.code_kind != Codes::flat) {
          const std::int64_t tap_d = wd.skipped + (unit.depth - wd.first) / wd.step,
                             tap_h = wh.skipped + (unit.height - wh.first) / wh.step;
          base = (tap_d * wh.whole + tap_h) * p.axis[2].kernel;
        }
        prepared.base[i] = static_cast<Code>(base);
      }
      MatchRow<C> block{plan, tile, prepared, space.result, done > 0};
      Match(block);
      matched += block.matched;
    }
    PutRow(plan.target, tile.target_columns, plan.inner, space.result + tile.column_shift, space.staged,
           static_cast<T*>(pointers.target) + unit.offset(plan.target, unit.depth, unit.height, tile.target_first));
  }
  tally.matched.fetch_add(matched, std::memory_order_relaxed);
  tally.expected.fetch_add(expected, std::memory_order_relaxed);
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
