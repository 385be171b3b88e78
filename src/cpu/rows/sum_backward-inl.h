// The backward of sums, averages and Lp: each row of grad_input is folded from the rows of grad_output that see it.
#if defined(CENOTE_CPU_ROWS_SUM_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_ROWS_SUM_BACKWARD_INL_H_
#undef CENOTE_CPU_ROWS_SUM_BACKWARD_INL_H_
#else
#define CENOTE_CPU_ROWS_SUM_BACKWARD_INL_H_
#endif

#include <hwy/cache_control.h>

#include "cpu/rows/direct-inl.h"
#include "cpu/rows/tall-inl.h"

#include <array>

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// A whole row of T as C.
template <class T, class C>
void LoadRow(const RowTensor& tensor, std::int64_t columns, std::int64_t inner, const T* row, T* staged, C* to) {
  const std::int64_t elements = columns * inner;
  if (!tensor.dense) {
    pack_row(tensor, columns, inner, row, staged);
    row = staged;
  }
  LoadElements(row, to, elements);
}

/// The forward's sums of x^p for outputs [first, first + columns) of row (od, oh), tile by tile.
template <class T, class C>
void PowerSums(const RowPlan& forward, const RowPointers& pointers, const Workspace<T, C>& space,
               const UnitCursor& unit, std::int64_t od, std::int64_t oh, std::int64_t first, std::int64_t columns,
               C* to) {
  const RowRange depth = SourceRows(forward, 0, od), height = SourceRows(forward, 1, oh);
  for (const Tile& tile : forward.tiles) {
    const std::int64_t begin = larger(tile.target_first, first);
    const std::int64_t end = smaller(tile.target_first + tile.target_columns, first + columns);
    if (begin >= end) continue;
    const std::int64_t rows = FoldSourceRows<Fold::sum, Map::power>(forward, unit, tile, depth, height,
                                                                    static_cast<const T*>(pointers.input), space);
    if (rows > 0) {
      Along<Fold::sum, false>(
          AlongRow<C>{forward, tile, space.buffer, space.codes, space.result, space.result_codes, 0});
    }
    C* at = to + (begin - first) * forward.inner;
    const std::int64_t elements = (end - begin) * forward.inner;
    if (rows > 0) {
      std::copy_n(space.result + (begin - tile.target_first) * forward.inner, elements, at);
    } else {
      std::fill_n(at, elements, C{0});
    }
  }
}

/// The row of grad_output at (od, oh), as what each tap of its windows receives (before Lp's inner derivative).
template <Map kMap, class T, class C>
void ScaledRow(const RowPlan& plan, const RowPlan* forward, const RowPointers& pointers, const Workspace<T, C>& space,
               char* scratch, const UnitCursor& unit, std::int64_t od, std::int64_t oh, C* to) {
  const Tile& tile = unit.tile();
  const std::int64_t first = tile.source_first, columns = tile.source_columns;
  LoadRow(plan.source, columns, plan.inner,
          static_cast<const T*>(pointers.source) + unit.offset(plan.source, od, oh, first), space.staged, to);
  const double row_factor = RowFactor(plan, od, oh);
  if constexpr (kMap != Map::power) {
    if (plan.problem.reduction == Reduction::average) DivideRow(plan, first, columns, row_factor, to, to);
  } else {
    // h = g * e * v^(e-1) * K/n with v the forward's K/n * sum x^p, and 0 where v is 0.
    const Workspace<T, C> inside(*forward, scratch + plan.bytes);
    C* sums = reinterpret_cast<C*>(scratch + plan.bytes + forward->bytes);
    PowerSums<T, C>(*forward, pointers, inside, unit, od, oh, first, columns, sums);
    ScalePowerSums(*forward, first, columns, row_factor, sums);
    const double exponent = 1 / plan.problem.norm_type;
    const hn::ScalableTag<C> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    // Columns of one count at a time.
    const bool uniform = plan.column_factor.empty();
    for (std::int64_t o = 0, next = 0; o < columns; o = next) {
      next = uniform ? columns : o + 1;
      const double n = row_factor * (uniform ? plan.uniform_factor : plan.column_factor[first + o]);
      const C share = static_cast<C>(n == 0 ? 0 : exponent * (plan.power_factor / n));
      for (std::int64_t q = o * plan.inner; q < next * plan.inner; ++q) to[q] *= share;
    }
    const auto zero = hn::Zero(d);
    for (std::int64_t q = 0; q < columns * plan.inner; q += lanes) {
      const auto v = hn::LoadU(d, sums + q);
      const auto h = hn::Mul(hn::LoadU(d, to + q), PowerOf(d, v, plan.root_slope_kind, exponent - 1));
      hn::StoreU(hn::IfThenElse(hn::Eq(v, zero), zero, h), d, to + q);
    }
  }
}

/// Rows of grad_output as Lp scales them, which takes the forward's sums again: kept for the next rows of grad_input that they see.
template <class T, class C>
class KeptRows {
 public:
  KeptRows(const RowPlan& plan, const Workspace<T, C>& space) : plan_(plan), rows_(space.packed + plan.packed_pitch) {}

  /// The row at (od, oh), which make(row) fills where it is not kept.
  template <class Make>
  const C* Row(const UnitCursor& unit, std::int64_t od, std::int64_t oh, Make make) {
    const std::int64_t plane = unit.major * plan_.outer_minor_count + unit.minor;
    const std::int64_t number = (plane * plan_.problem.axis[0].output + od) * plan_.problem.axis[1].output + oh;
    const auto slot = static_cast<std::size_t>(number % kSlots);
    C* row = reinterpret_cast<C*>(rows_ + slot * plan_.packed_pitch);
    if (kept_[slot] != Kept{number, unit.tile_index}) make(row);
    kept_[slot] = {number, unit.tile_index};
    return row;
  }

 private:
  static constexpr int kSlots = kRowBlock - 1;  // the first of the packed rows has other uses
  struct Kept {
    std::int64_t number = -1, tile = -1;
    bool operator==(const Kept&) const = default;
  };
  const RowPlan& plan_;
  char* rows_;
  std::array<Kept, kSlots> kept_;
};

/// Lp: grad_input_i = p * x_i^(p-1) * (sum of h over the windows that hold i).
template <class T, class C>
void MultiplyBySlope(const RowPlan& plan, const RowPointers& pointers, const Workspace<T, C>& space,
                     const UnitCursor& unit, C* x, C* values) {
  const auto* input = static_cast<const T*>(pointers.input);
  const Tile& tile = unit.tile();
  LoadRow(plan.input, tile.target_columns, plan.inner,
          input + unit.offset(plan.input, unit.depth, unit.height, tile.target_first), space.staged, x);
  const hn::ScalableTag<C> d;
  const double p = plan.problem.norm_type;
  const auto factor = hn::Set(d, static_cast<C>(p));
  for (std::int64_t q = 0; q < tile.target_columns * plan.inner; q += static_cast<std::int64_t>(hn::Lanes(d))) {
    const auto slope = hn::Mul(factor, PowerOf(d, hn::LoadU(d, x + q), plan.slope_kind, p - 1));
    hn::StoreU(hn::Mul(hn::LoadU(d, values + q), slope), d, values + q);
  }
}

/// `count` elements, at least a vector.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void CopyVectors(D d, const T* from, T* to, std::int64_t count) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    CENOTE_UNROLL
    for (int v = 0; v < 4; ++v) hn::StoreU(hn::LoadU(d, from + i + v * lanes), d, to + i + v * lanes);
  }
  for (; i < count; i += lanes) {
    const std::int64_t at = smaller(i, count - lanes);
    hn::StoreU(hn::LoadU(d, from + at), d, to + at);
  }
}

/// The same around the caches, in whole lines.
template <class T>
HWY_INLINE void StreamColumn(const T* from, T* to, std::int64_t count) {
  constexpr auto kElements = static_cast<std::int64_t>(kLine / sizeof(T));
  for (std::int64_t i = 0; i < count; i += kElements)
    StreamLine(reinterpret_cast<const char*>(from + i), reinterpret_cast<char*>(to + i));
}

/// Where SpreadRow does, for rows that one output row sees.
inline bool MaySpread(const RowPlan& plan) {
  return plan.columns == Columns::per_channel && plan.table.most == 1 && plan.source.dense;
}

/// A target row of columns of many channels where no two windows share a column: each output's gradient, divided, in every column
/// that it sees, as C or rounded to T. `source`: the tile's first source column. `kept`: null, or room for a column, from which it is written around the caches.
template <class C, class T, class Target>
HWY_NOINLINE void SpreadRow(const RowPlan& plan, const Tile& tile, const T* HWY_RESTRICT source, double row_factor,
                            Target* HWY_RESTRICT to, [[maybe_unused]] T* kept = nullptr) {
  const hn::ScalableTag<C> d;
  using Rounded = RoundedTag<Target, decltype(d)>;
  using Lane = RoundedLane<Target>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t inner = plan.inner, end = tile.target_first + tile.target_columns;
  for (std::int64_t column = tile.target_first, next; column < end; column = next) {
    const auto seen = [&](std::int64_t c) HWY_ATTR { return plan.table.count[c] == 0 ? -1 : plan.table.first[c]; };
    const std::int64_t by = seen(column);
    for (next = column + 1; next < end && seen(next) == by;) ++next;
    Lane* first = reinterpret_cast<Lane*>(to) + (column - tile.target_first) * inner;
    if (by < 0) {
      std::memset(static_cast<void*>(first), 0, static_cast<std::size_t>((next - column) * inner) * sizeof(Lane));
      continue;
    }
    const DirectDivisor<C> divisor(plan, row_factor, by);
    const T* from = source + (by - tile.source_first) * inner;
    auto rounded = [&](std::int64_t c) HWY_ATTR {
      hn::Vec<decltype(d)> gradient[1] = {LoadAs(d, from + c)};
      divisor.Apply(d, gradient);
      return RoundVector<Target>(d, hn::Add(hn::Zero(d), gradient[0]));
    };
    const bool streams = kHasGathers && std::is_same_v<T, Target> && kept != nullptr;
    if (inner <= 4 * lanes && !streams) {
      auto spread = [&](std::int64_t c, auto vectors) HWY_ATTR {
        hn::Vec<Rounded> v[vectors()];
        CENOTE_UNROLL
        for (int i = 0; i < vectors(); ++i) v[i] = rounded(c + i * lanes);
        Lane* at = first + c;
        for (std::int64_t times = next - column; times > 0; --times, at += inner) {
          CENOTE_UNROLL
          for (int i = 0; i < vectors(); ++i) hn::StoreU(v[i], Rounded(), at + i * lanes);
        }
      };
      if (inner == 4 * lanes) {
        spread(0, std::integral_constant<int, 4>{});
      } else {
        for (std::int64_t c = 0; c < inner; c += lanes) {
          spread(smaller(c, inner - lanes), std::integral_constant<int, 1>{});
        }
      }
      continue;
    }
    // One column after the other, so that memory is written as it lies.
    Lane* source_column = streams ? reinterpret_cast<Lane*>(kept) : first;
    for (std::int64_t c = 0; c < inner; c += lanes) {
      const std::int64_t at = smaller(c, inner - lanes);
      hn::StoreU(rounded(at), Rounded(), source_column + at);
    }
    if (streams) {
      for (Lane *at = first, *stop = first + (next - column) * inner; at < stop; at += inner)
        StreamColumn(source_column, at, inner);
      continue;
    }
    for (Lane *at = first + inner, *stop = first + (next - column) * inner; at < stop; at += inner) {
      CopyVectors(Rounded(), first, at, inner);
    }
  }
}

/// One row of grad_input, put at `result`, or a little behind it: that is returned.
template <Map kMap, class T, class C, class Tall>
const C* SumTargetRow(const RowPlan& plan, const RowPlan* forward, const RowPointers& pointers,
                      const Workspace<T, C>& space, char* scratch, const UnitCursor& unit, const RowRange& depth,
                      const RowRange& height, Tall& tall, [[maybe_unused]] KeptRows<T, C>& kept, C* result) {
  const Problem& p = plan.problem;
  const Tile& tile = unit.tile();
  const std::int64_t rows = tile.source_columns > 0 ? depth.count * height.count : 0;
  C* scaled = reinterpret_cast<C*>(space.packed);
  auto finish = [&](C* values) HWY_ATTR {
    if constexpr (kMap == Map::power) MultiplyBySlope(plan, pointers, space, unit, scaled, values);
    return values;
  };
  if (rows == 0) {
    std::memset(static_cast<void*>(result), 0, static_cast<std::size_t>(tile.target_columns * plan.inner) * sizeof(C));
    return finish(result);
  }
  auto row_at = [&](std::int64_t i, std::int64_t& od, std::int64_t& oh) {
    od = depth.first + i / height.count * depth.step;
    oh = height.first + i % height.count * height.step;
  };
  // Where all covering rows have one divisor, they are summed first and divided once. Integers truncate each quotient.
  bool alike = kMap != Map::power && (hwy::IsFloat<C>() || p.reduction == Reduction::sum);
  const double factor = RowFactor(plan, depth.first, height.first);
  std::int64_t od = 0, oh = 0;
  for (std::int64_t i = 1; alike && i < rows; ++i) {
    row_at(i, od, oh);
    alike = RowFactor(plan, od, oh) == factor;
  }
  const auto* source = static_cast<const T*>(pointers.source);
  if constexpr (hwy::IsFloat<C>() && kHasVectors && kMap != Map::power) {
    if (MaySpread(plan) && alike && rows == 1) {
      SpreadRow<C>(plan, tile, source + unit.offset(plan.source, depth.first, height.first, tile.source_first), factor,
                   result);
      return result;
    }
  }
  C* buffer = space.buffer + tile.pad_left * plan.inner;
  if (alike) {
    if (plan.tall) {
      tall.Run(unit, tile);
    } else {
      FoldSourceRows<Fold::sum, Map::identity>(plan, unit, tile, depth, height, source, space);
    }
    if (p.reduction == Reduction::average)
      DivideRow(plan, tile.source_first, tile.source_columns, factor, buffer, buffer);
  }
  for (std::int64_t i = 0; !alike && i < rows; ++i) {
    row_at(i, od, oh);
    const C* row = scaled;
    auto make = [&](C* to) HWY_ATTR { ScaledRow<kMap>(plan, forward, pointers, space, scratch, unit, od, oh, to); };
    if constexpr (kMap == Map::power) {
      row = kept.Row(unit, od, oh, make);
    } else {
      make(scaled);
    }
    RowBlock<C, CodeOf<C>> block{{row}, {0}, 1, i > 0};
    Ahead nothing;
    Down<Fold::sum>(block, tile.source_columns * plan.inner, nothing, buffer, space.codes);
    FillPadding<Fold::sum>(plan, tile, space.buffer, space.codes);
  }
  Along<Fold::sum, false>(AlongRow<C>{plan, tile, space.buffer, space.codes, result, space.result_codes, 0});
  return finish(result + tile.column_shift);
}

/// Units [begin, end) of grad_input. `forward` is the forward's plan (Lp only); its scratch, and a row for its sums, lie behind
/// this plan's.
template <Map kMap, class T, class C>
void SumBackwardRows(const RowPlan& plan, const RowPlan* forward, const RowPointers& pointers, std::int64_t begin,
                     std::int64_t end, char* scratch) {
  const Workspace<T, C> space(plan, scratch);
  UnitCursor unit(plan, begin);
  TallFold<Fold::sum, Map::identity, T, C> tall(plan, pointers.source, space, scratch);
  KeptRows<T, C> kept(plan, space);
  StreamWriter writer;
  RowRange last_depth{}, last_height{};
  std::int64_t last_tile = -1;
  const C* values = nullptr;
  const T* last = nullptr;
  const bool in_place = plan.target.dense && !plan.streams;
  const bool whole_lines = kHasGathers && MaySpread(plan) && StreamsWholeLines(plan, pointers.target);
  const bool spreads = whole_lines || (in_place && MaySpread(plan));
  // A row that is still in L1 is the quickest source of the next; a longer one is spread again, from fewer bytes.
  const auto row_bytes = plan.tiles[0].target_columns * plan.inner * static_cast<std::int64_t>(sizeof(T));
  const bool copies = in_place && (!spreads || row_bytes <= kTileBytes);
  for (std::int64_t index = begin; index < end; ++index, unit.next()) {
    const Tile& tile = unit.tile();
    const RowRange depth = SourceRows(plan, 0, unit.depth), height = SourceRows(plan, 1, unit.height);
    T* target = static_cast<T*>(pointers.target) + unit.offset(plan.target, unit.depth, unit.height, tile.target_first);
    C* result = space.result;
    if constexpr (std::is_same_v<T, C> && kMap != Map::power) {
      // Where whole vectors do not reach beyond the row, it is put straight where it belongs.
      if (plan.columns == Columns::per_channel && in_place) result = target;
    }
    // Going down, neighbouring rows seen by the same outputs get the same gradients (times Lp's slopes).
    const bool same = kMap != Map::power && unit.tile_index == last_tile && unit.height > 0 && depth == last_depth &&
                      height == last_height;
    last_tile = unit.tile_index;
    last_depth = depth;
    last_height = height;
    if (same && copies) {
      std::memcpy(static_cast<void*>(target), last,
                  static_cast<std::size_t>(tile.target_columns * plan.inner) * sizeof(T));
      continue;
    }
    last = target;
    if constexpr (hwy::IsFloat<C>() && kHasVectors && kMap != Map::power) {
      if (spreads && depth.count * height.count == 1 && tile.source_columns > 0) {
        const std::int64_t from = unit.offset(plan.source, depth.first, height.first, tile.source_first);
        SpreadRow<C>(plan, tile, static_cast<const T*>(pointers.source) + from,
                     RowFactor(plan, depth.first, height.first), target, whole_lines ? space.staged : nullptr);
        continue;
      }
    }
    if (!same)
      values = SumTargetRow<kMap>(plan, forward, pointers, space, scratch, unit, depth, height, tall, kept, result);
    if (static_cast<const void*>(values) != target)
      PutRow(plan, tile.target_columns, values, space.staged, target, writer);
  }
  if (whole_lines) hwy::FlushStream();
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
