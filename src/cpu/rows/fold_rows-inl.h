// The row kernel: for each target row, find its source rows, fold them down, fold along, finish.
#if defined(CENOTE_CPU_ROWS_FOLD_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_ROWS_FOLD_ROWS_INL_H_
#undef CENOTE_CPU_ROWS_FOLD_ROWS_INL_H_
#else
#define CENOTE_CPU_ROWS_FOLD_ROWS_INL_H_
#endif

#include <hwy/cache_control.h>

#include "cpu/rows/stencil-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

inline RowRange SourceRows(const RowPlan& plan, int axis, std::int64_t target) {
  const auto& table = plan.source_rows[axis];
  return table.empty() ? source_rows_of(plan.problem, axis, target, plan.transposed)
                       : table[static_cast<std::size_t>(target)];
}

/// Counted taps of an output along depth or height: the row's share of an average's divisor. At least 1: a window without taps
/// has the average 0.
inline double RowFactor(const RowPlan& plan, std::int64_t od, std::int64_t oh) {
  const Problem& p = plan.problem;
  if (p.reduction == Reduction::sum || p.divisor_override != 0) return 1;
  if (!plan.row_factors[0].empty() && !plan.row_factors[1].empty()) {
    return plan.row_factors[0][static_cast<std::size_t>(od)] * plan.row_factors[1][static_cast<std::size_t>(oh)];
  }
  const Window d = window(p.axis[0], od), h = window(p.axis[1], oh);
  const bool padded = p.count_include_pad || p.reduction == Reduction::power;
  return padded ? static_cast<double>(d.padded) * static_cast<double>(h.padded)
                : static_cast<double>(larger(1, d.count)) * static_cast<double>(larger(1, h.count));
}

/// Scratch of one worker, typed.
template <class T, class C>
struct Workspace {
  C* buffer;
  CodeOf<C>* codes;
  C* result;
  CodeOf<C>* result_codes;
  char* packed;
  T* staged;

  Workspace(const RowPlan& plan, char* scratch)
      : buffer(reinterpret_cast<C*>(scratch + plan.buffer_at)),
        codes(reinterpret_cast<CodeOf<C>*>(scratch + plan.codes_at)),
        result(reinterpret_cast<C*>(scratch + plan.result_at)),
        result_codes(reinterpret_cast<CodeOf<C>*>(scratch + plan.result_codes_at)),
        packed(scratch + plan.packed_at),
        staged(reinterpret_cast<T*>(scratch + plan.staged_at)) {}
};

/// Identity around the buffered columns. Its codes come after every real one's, so that where a whole window is as low as the
/// identity, its first real tap is the one kept (the sum with a tap's number must not overflow).
template <Fold kFold, class C>
void FillPadding(const RowPlan& plan, const Tile& tile, C* buffer, CodeOf<C>* codes) {
  const std::int64_t left = tile.pad_left * plan.inner, right = tile.pad_right * plan.inner;
  const std::int64_t behind = left + tile.source_columns * plan.inner;
  for (std::int64_t i = 0; i < left; ++i) buffer[i] = IdentityOf<kFold, C>();
  for (std::int64_t i = 0; i < right; ++i) buffer[behind + i] = IdentityOf<kFold, C>();
  if constexpr (kFold == Fold::max_indexed) {
    for (std::int64_t i = 0; i < left; ++i) codes[i] = std::numeric_limits<CodeOf<C>>::max() / 2;
    for (std::int64_t i = 0; i < right; ++i) codes[behind + i] = std::numeric_limits<CodeOf<C>>::max() / 2;
  }
}

/// A -0 in the buffered row: then the first zero of a window, whose sign the maximum keeps, cannot be told without knowing rows.
template <class C>
bool HasNegativeZeros(const C* HWY_RESTRICT values, std::int64_t elements) {
  if constexpr (!hwy::IsFloat<C>()) {
    return false;
  } else {
    const hn::ScalableTag<C> d;
    const hn::RebindToSigned<decltype(d)> di;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const auto minus = hn::BitCast(di, hn::SignBit(d));
    auto any = hn::MaskFromVec(hn::Zero(di));
    for (std::int64_t next = 0; next < elements;
         next += lanes) {  // a short row has old values behind it: asked once too often
      const std::int64_t x = next + lanes <= elements ? next : larger(0, elements - lanes);
      any = hn::Or(any, hn::Eq(hn::BitCast(di, hn::LoadU(d, values + x)), minus));
    }
    return !hn::AllFalse(di, any);
  }
}

/// What remains when the rows are in the buffer: columns join the codes, identity surrounds the row. (Only now: whole vectors may
/// have been stored.)
template <Fold kFold, class T, class C>
void FinishSourceRows(const RowPlan& plan, const Tile& tile, const Workspace<T, C>& space) {
  if constexpr (kFold == Fold::max_indexed) {
    if (plan.code_kind == Codes::flat) {
      CodeOf<C>* codes = space.codes + tile.pad_left * plan.inner;
      const CodeOf<C>* column = LanesOf<C>(plan).column_codes.data();
      const auto first = static_cast<CodeOf<C>>(tile.source_first);
      for (std::int64_t x = 0; x < tile.source_columns * plan.inner; ++x) codes[x] += column[x] + first;
    }
  }
  FillPadding<kFold>(plan, tile, space.buffer, space.codes);
}

/// What is fetched early while a target row is folded.
template <class T>
Ahead AheadOf(const RowPlan& plan, const UnitCursor& unit, const Tile& tile, const RowRange& depth,
              const RowRange& height, const T* source) {
  if (plan.fetch_ahead == 0) return {};
  return {plan, source + unit.offset(plan.source, depth.first, height.first, tile.source_first),
          tile.source_columns * plan.inner * static_cast<std::int64_t>(sizeof(T)), depth.count};
}

/// The source rows of one target row, folded into the buffer with its padding. Returns how many there are.
template <Fold kFold, Map kMap, class T, class C>
std::int64_t FoldSourceRows(const RowPlan& plan, const UnitCursor& unit, const Tile& tile, const RowRange& depth,
                            const RowRange& height, const T* source, const Workspace<T, C>& space) {
  const std::int64_t rows = depth.count * height.count;
  const Problem& p = plan.problem;
  const std::int64_t elements = tile.source_columns * plan.inner;
  C* buffer = space.buffer + tile.pad_left * plan.inner;
  CodeOf<C>* codes = space.codes + tile.pad_left * plan.inner;
  // Loads are whole vectors: a row shorter than one is copied to where there is room behind it.
  const bool short_row = elements < static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<C>()));
  const bool pack = !plan.source.dense || (short_row && kMap == Map::identity);
  using S = Folded<kMap, T, C>;
  Ahead ahead = AheadOf(plan, unit, tile, depth, height, source);
  std::int64_t z = 0, y = 0;
  for (std::int64_t done = 0; done < rows; done += kRowBlock) {
    RowBlock<S, CodeOf<C>> block;
    block.count = static_cast<int>(smaller(kRowBlock, rows - done));
    block.continues = done > 0;
    for (int i = 0; i < block.count; ++i, ++y) {
      if (y == height.count) y = 0, ++z;
      const std::int64_t d = depth.first + z * depth.step, h = height.first + y * height.step;
      const T* row = source + unit.offset(plan.source, d, h, tile.source_first);
      char* packed = space.packed + static_cast<std::size_t>(i) * plan.packed_pitch;
      if (pack) {
        T* to = kMap == Map::identity ? reinterpret_cast<T*>(packed) : space.staged;
        pack_row(plan.source, tile.source_columns, plan.inner, row, to);
        row = to;
      }
      if constexpr (kMap == Map::identity) {
        block.rows[i] = row;
      } else {
        if (short_row && !pack) {  // whole vectors are read
          std::memcpy(static_cast<void*>(space.staged), row, static_cast<std::size_t>(elements) * sizeof(T));
          row = space.staged;
        }
        MapRow<kMap>(plan, row, elements, reinterpret_cast<S*>(packed));
        block.rows[i] = reinterpret_cast<S*>(packed);
      }
      switch (plan.code_kind) {
        case Codes::flat: block.codes[i] = static_cast<CodeOf<C>>((d * p.axis[1].input + h) * p.axis[2].input); break;
        case Codes::taps:
          block.codes[i] =
              static_cast<CodeOf<C>>(((depth.skipped + z) * height.whole + height.skipped + y) * p.axis[2].kernel);
          break;
        case Codes::ascending: block.codes[i] = static_cast<CodeOf<C>>((done + i) * plan.widest); break;
      }
    }
    Down<kFold>(block, elements, ahead, buffer, codes);
  }
  if (rows > 0) FinishSourceRows<kFold>(plan, tile, space);
  return rows;
}

/// The same rows, from a column on, for a fold straight from the taps.
template <class T, class Code>
void FindDirectRows(const RowPlan& plan, const UnitCursor& unit, std::int64_t column, const RowRange& depth,
                    const RowRange& height, const T* source, DirectRows<T, Code>& rows) {
  const Problem& p = plan.problem;
  rows.count = 0;
  for (std::int64_t z = 0; z < depth.count; ++z) {
    for (std::int64_t y = 0; y < height.count; ++y) {
      const std::int64_t d = depth.first + z * depth.step, h = height.first + y * height.step;
      rows.rows[rows.count] = source + unit.offset(plan.source, d, h, column);
      rows.codes[rows.count] =
          static_cast<Code>(plan.code_kind == Codes::flat ? (d * p.axis[1].input + h) * p.axis[2].input
                                                          : (depth.skipped + z) * height.whole + height.skipped + y);
      ++rows.count;
    }
  }
}

/// How far one of the ways to fold has brought a target row.
template <class C>
struct FoldedRow {
  C* values;
  std::int64_t rows;        // source rows inside the input
  bool divided = false;     // averages
  bool has_indices = true;  // codes are indices, not yet to be corrected
};

/// Columns of many channels, straight from the taps. `straight`: where the values may be put; averages are divided on the way.
template <Fold kFold, class T, class C>
FoldedRow<C> FoldRowDirectly(const RowPlan& plan, const UnitCursor& unit, const RowRange& depth, const RowRange& height,
                             double row_factor, const T* source, const Workspace<T, C>& space, C* straight,
                             const DirectStreams& streams) {
  constexpr bool kDivides = kFold == Fold::sum && hwy::IsFloat<C>();
  const Tile& tile = unit.tile();
  DirectRows<T, CodeOf<C>> taps;
  FindDirectRows(plan, unit, tile.source_first, depth, height, source, taps);
  const bool divides = kDivides && plan.problem.reduction == Reduction::average;
  C* result = kDivides || kFold != Fold::sum ? straight : space.result;
  Ahead ahead = AheadOf(plan, unit, tile, depth, height, source);
  FoldDirectRow<kFold>(plan, tile, taps, divides ? row_factor : 0, streams, ahead, space.packed, result,
                       space.result_codes);
  return {result, taps.count, divides};
}

/// Maxima of 16-bit columns, straight from the taps to the target: nothing is converted.
template <class T>
void MaxRowOfKeys(const RowPlan& plan, const UnitCursor& unit, const RowRange& depth, const RowRange& height,
                  const T* source, T* staged, T* target, StreamWriter& writer) {
  const Tile& tile = unit.tile();
  DirectRows<T, std::int32_t> taps;
  FindDirectRows(plan, unit, tile.source_first, depth, height, source, taps);
  Ahead ahead = AheadOf(plan, unit, tile, depth, height, source);
  T* result = plan.target.dense && !plan.streams ? target : staged;
  MaxOfKeysRow(plan, tile, taps, ahead, result);
  if (result == target) return;
  if (plan.target.dense) return writer.Write(staged, target, tile.target_columns * plan.inner);
  unpack_row(plan.target, tile.target_columns, plan.inner, staged, target);
}

/// Planar rows, straight from the taps.
template <Fold kFold, class T, class C>
FoldedRow<C> FoldRowAsStencil(const RowPlan& plan, const UnitCursor& unit, const RowRange& depth,
                              const RowRange& height, const T* source, const Workspace<T, C>& space, C* straight) {
  const Tile& tile = unit.tile();
  const Axis& axis = plan.problem.axis[2];
  DirectRows<T, CodeOf<C>> rows;
  FindDirectRows(plan, unit, 0, depth, height, source, rows);
  if (plan.code_kind == Codes::taps) {
    for (int row = 0; row < rows.count; ++row) rows.codes[row] *= static_cast<CodeOf<C>>(axis.kernel);
  }
  // Strided loads read a little more than they need: there is something behind all rows but the tensor's last.
  const auto beyond = static_cast<std::int64_t>(4 * hn::Lanes(hn::ScalableTag<C>()));
  const bool has_more = rows.rows[rows.count - 1] - source + axis.input + beyond <= plan.source_extent;
  Ahead ahead = AheadOf(plan, unit, tile, depth, height, source);
  C* result = kFold == Fold::sum ? space.result : straight;
  FoldStencilRow<kFold>(plan, tile, rows, axis.input + (has_more ? beyond : 0), ahead, space.packed, result,
                        space.result_codes);
  return {result, rows.count};
}

/// Down the rows, then along. `tall` folds the source rows of tall windows.
template <Fold kFold, Map kMap, class T, class C, class Tall>
FoldedRow<C> FoldRowDownAndAlong(const RowPlan& plan, const UnitCursor& unit, const RowRange& depth,
                                 const RowRange& height, const T* source, const Workspace<T, C>& space, C* straight,
                                 Tall& tall) {
  const Tile& tile = unit.tile();
  const std::int64_t elements = tile.target_columns * plan.inner;
  FoldedRow<C> folded{space.result, 0, false, false};
  if (plan.tall) {
    if constexpr (kIsPlain<kMap>) folded.rows = tall.Run(unit, tile);
  } else {
    folded.rows = FoldSourceRows<kFold, kMap>(plan, unit, tile, depth, height, source, space);
  }
  const CodeOf<C> tap_step = plan.code_kind == Codes::flat ? 0 : 1;
  const bool regular = plan.columns == Columns::strided ||
                       (plan.columns == Columns::consecutive && plan.problem.axis[2].kernel < kDoublingTaps);
  if (kFold != Fold::sum && regular && folded.rows > 0 &&
      elements >= static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<C>()))) {
    folded.values = straight;
  }
  const AlongRow<C> row{plan, tile, space.buffer, space.codes, folded.values, space.result_codes, tap_step};
  if (folded.rows == 0) {
    for (std::int64_t q = 0; q < elements; ++q) space.result[q] = IdentityOf<kFold, C>();
    if constexpr (kFold == Fold::max_indexed) {
      for (std::int64_t q = 0; q < elements; ++q) space.result_codes[q] = -1;
    }
  } else if constexpr (kFold == Fold::max && hwy::IsFloat<C>()) {
    const bool in_order = folded.rows == 1 && plan.columns != Columns::spanned;
    if (in_order || !HasNegativeZeros(space.buffer + tile.pad_left * plan.inner, tile.source_columns * plan.inner)) {
      Along<kFold, false>(row);
    } else {
      // Codes only settle ties here: any ascending ones will do.
      FoldSourceRows<Fold::max_indexed, kMap>(plan, unit, tile, depth, height, source, space);
      Along<Fold::max_indexed, true>(row);
    }
  } else if (folded.rows == 1 && tile.pad_left == 0) {
    Along<kFold, false>(row);
  } else {
    Along<kFold, kFold == Fold::max_indexed>(row);
  }
  folded.has_indices = folded.rows == 0;
  return folded;
}

/// What a piece of work writes around the caches.
class Writers {
 public:
  Writers() = default;
  /// Straight from registers where columns fill whole lines.
  HWY_NOINLINE Writers(const RowPlan& plan, const RowPointers& pointers)
      : straight(plan.direct && StreamsWholeLines(plan, pointers.target)),
        straight_indices(plan.direct && StreamsWholeLines(plan, pointers.indices) &&
                         plan.problem.index_dtype == DType::i64) {}
  Writers(const Writers&) = delete;
  Writers& operator=(const Writers&) = delete;
  HWY_NOINLINE ~Writers() {
    if (straight || straight_indices) hwy::FlushStream();
  }

  const bool straight = false, straight_indices = false;
  StreamWriter values, indices;
};

/// One target row of the forward.
template <Fold kFold, Map kMap, class T, class C, class Tall>
void FoldForwardRow(const RowPlan& plan, const RowPointers& pointers, const Workspace<T, C>& space,
                    const UnitCursor& unit, Tall& tall, Writers& writers) {
  const Tile& tile = unit.tile();
  const std::int64_t od = unit.depth, oh = unit.height;
  const std::int64_t elements = tile.target_columns * plan.inner;
  const RowRange depth = SourceRows(plan, 0, od), height = SourceRows(plan, 1, oh);
  const auto* source = static_cast<const T*>(pointers.source);
  T* target = static_cast<T*>(pointers.target) + unit.offset(plan.target, od, oh, tile.target_first);
  if constexpr (kHasKeys<kFold, kMap, T>) {
    if (plan.direct) {
      return MaxRowOfKeys(plan, unit, depth, height, source, space.staged, target, writers.values);
    }
  }
  // Where nothing is left to be done to the result, it is folded straight into the target.
  C* straight = space.result;
  if constexpr (std::is_same_v<T, C> && kMap == Map::identity) {
    if (plan.target.dense && (!plan.streams || (kStreamsStraight<T> && writers.straight))) straight = target;
  }
  const double row_factor = kFold == Fold::sum ? RowFactor(plan, od, oh) : 1;
  FoldedRow<C> folded{};
  bool done = false, indexed = pointers.indices == nullptr;
  if constexpr (kHasDirect<kMap, T> && !kHasKeys<kFold, kMap, T>) {
    if (plan.direct) {
      DirectStreams streams{.values = kStreamsStraight<T> && writers.straight};
      if (kFold == Fold::max_indexed && kStreamsIndices<C> && writers.straight_indices) {
        streams.indices =
            static_cast<std::int64_t*>(pointers.indices) + unit.offset(plan.indices, od, oh, tile.target_first);
        indexed = true;
      }
      folded = FoldRowDirectly<kFold>(plan, unit, depth, height, row_factor, source, space, straight, streams);
      done = true;
    }
  }
  if constexpr (kHasStencil<kFold, kMap, T>) {
    if (plan.stencil && depth.count * height.count > 0) {
      folded = FoldRowAsStencil<kFold>(plan, unit, depth, height, source, space, straight);
      done = true;
    }
  }
  if (!done) folded = FoldRowDownAndAlong<kFold, kMap>(plan, unit, depth, height, source, space, straight, tall);

  if constexpr (kFold == Fold::sum) {
    if constexpr (kMap == Map::power) {
      ScalePowerSums(plan, tile.target_first, tile.target_columns, row_factor, space.result);
    } else if (plan.problem.reduction == Reduction::average && !folded.divided) {
      folded.values = straight;
      DivideRow(plan, tile.target_first, tile.target_columns, row_factor, space.result, straight);
    }
  }
  UndoMap<kMap>(plan, elements, space.result);
  if constexpr (kFold == Fold::max_indexed && std::is_integral_v<T> && sizeof(T) < sizeof(C)) {
    // The compute type's identity, which only an empty window shows, becomes the element type's.
    for (std::int64_t q = 0; (folded.rows == 0 || plan.may_be_empty) && q < elements; ++q) {
      constexpr C low = std::numeric_limits<T>::lowest(), high = std::numeric_limits<T>::max();
      space.result[q] = space.result[q] < low ? low : space.result[q] > high ? high : space.result[q];
    }
  }
  if (folded.values == space.result)
    PutRow(plan, tile.target_columns, space.result, space.staged, target, writers.values);
  if constexpr (kFold == Fold::max_indexed) {
    if (indexed) return;
    if (!folded.has_indices) CorrectCodes(plan, tile, space.result_codes);
    const std::int64_t at = unit.offset(plan.indices, od, oh, tile.target_first);
    auto put = [&](auto* indices) HWY_ATTR {
      using Index = std::remove_pointer_t<decltype(indices)>;
      PutIndices(plan, tile.target_columns, space.result_codes, reinterpret_cast<Index*>(space.staged), indices + at,
                 writers.indices);
    };
    WithIndexType(plan.problem.index_dtype, pointers.indices, put);
  }
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
