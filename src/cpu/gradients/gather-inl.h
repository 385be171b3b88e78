// The backward of maxima whose windows do not overlap along planar rows: each input gathers the gradients of those outputs whose index
// points to it. Every element of the gradient is written once, in order, and its sum taken in the order of the outputs.
#if defined(CENOTE_CPU_GRADIENTS_GATHER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_GRADIENTS_GATHER_INL_H_
#undef CENOTE_CPU_GRADIENTS_GATHER_INL_H_
#else
#define CENOTE_CPU_GRADIENTS_GATHER_INL_H_
#endif

#include "cpu/gradients/seeing.hpp"
#include "cpu/rows/fold_rows-inl.h"
#include "cpu/vectors/index_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// An output row that sees the input row: its indices and gradients in the compute type's lanes, with room behind them, and the
/// first tap of the row of its windows that the input row is, where indices count taps.
template <class C>
struct SeeingRow {
  const CodeOf<C>* codes;
  const C* values;
  CodeOf<C> number;
};

/// The output rows last converted. Input rows that follow each other are seen by the same ones.
template <class T, class C>
class SeeingRows {
 public:
  using Code = CodeOf<C>;
  static constexpr Code kNoOutput = -3;  // no index

  SeeingRows(const RowPlan& plan, const RowPointers& pointers, char* scratch)
      : plan_(plan), pointers_(pointers), slots_(scratch + plan.slots_at), outputs_(plan) {}

  /// Those of one input row, in the order of the outputs. Returns how many.
  int Find(const UnitCursor& unit, SeeingRow<C>* rows) {
    const Tile& tile = unit.tile();
    const bool taps = plan_.problem.index_kind == IndexKind::window;
    int count = 0;
    outputs_.for_each(unit, [&](const SeeingOutput& o) HWY_ATTR {
      char* at = slots_ + static_cast<std::size_t>(2 * o.slot) * plan_.slot_pitch;
      auto* codes = reinterpret_cast<Code*>(at);
      auto* values = reinterpret_cast<C*>(at + plan_.slot_pitch);
      if (o.is_new) {
        ConvertRow(tile, unit.offset(plan_.indices, o.depth, o.height, tile.source_first), codes);
        const std::int64_t source = unit.offset(plan_.source, o.depth, o.height, tile.source_first);
        LoadElements(static_cast<const T*>(pointers_.source) + source, values, tile.source_columns);
      }
      rows[count++] = {codes, values, taps ? static_cast<Code>(o.number) : Code{0}};
    });
    return count;
  }

 private:
  void ConvertRow(const Tile& tile, std::int64_t at, Code* codes) const {
    const std::int64_t elements = tile.source_columns;
    if (plan_.problem.index_dtype == DType::i64) {
      Convert(static_cast<const std::int64_t*>(pointers_.indices) + at, elements, codes);
    } else {
      Convert(static_cast<const std::uint8_t*>(pointers_.indices) + at, elements, codes);
    }
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<C>()));
    std::fill_n(codes + elements, 2 * lanes, kNoOutput);
  }

  template <class Index>
  static void Convert(const Index* from, std::int64_t elements, Code* to) {
    const hn::ScalableTag<Code> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    std::int64_t x = 0;
    for (; x + lanes <= elements; x += lanes) hn::StoreU(LoadIndexVector(d, from + x), d, to + x);
    for (; x < elements; ++x) to[x] = IndexCode<Code>(from[x]);
  }

  const RowPlan& plan_;
  const RowPointers& pointers_;
  char* slots_;
  SeeingOutputs outputs_;
};

/// A planar row whose windows do not overlap: column S*u + phase of the interleaved row is seen by output u alone, of every row that
/// sees it. Writes whole vectors.
template <int kStride, class D, class C = hn::TFromD<D>>
void GatherRow(D d, const RowPlan& plan, const UnitCursor& unit, const SeeingRow<C>* rows, int count,
               C* HWY_RESTRICT result, hn::Vec<hn::RebindToSigned<D>>& found) {
  using Code = CodeOf<C>;
  constexpr Code kNotHere = -(1 << 30);  // no index, nor with a tap added
  const hn::RebindToSigned<D> di;
  const Tile& tile = unit.tile();
  const Problem& p = plan.problem;
  const Axis& axis = p.axis[2];
  const bool flat = p.index_kind != IndexKind::window;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t end = tile.target_first + tile.target_columns;
  const std::int64_t units = (tile.column_shift + tile.target_columns + kStride - 1) / kStride;
  const std::int64_t line = (unit.depth * p.axis[1].input + unit.height) * axis.input;
  const auto strides = StridedIota<kStride>(di);
  for (std::int64_t u = 0; u < units; u += lanes) {
    const std::int64_t column = tile.target_first - tile.column_shift + u * kStride;
    const bool cut_off = column < tile.target_first || column + lanes * kStride > end;
    hn::Vec<D> sum[kStride];
    CENOTE_UNROLL
    for (int f = 0; f < kStride; ++f) {
      sum[f] = hn::Zero(d);
      if (f >= axis.kernel) continue;
      // What an index is that points here: the place itself, or the number of the tap.
      const auto columns = hn::Add(strides, hn::Set(di, static_cast<Code>(column + f)));
      auto here = flat ? hn::Add(columns, hn::Set(di, static_cast<Code>(line))) : hn::Set(di, static_cast<Code>(f));
      if (cut_off) {
        const auto inside = hn::And(hn::Gt(columns, hn::Set(di, static_cast<Code>(tile.target_first - 1))),
                                    hn::Lt(columns, hn::Set(di, static_cast<Code>(end))));
        here = hn::IfThenElse(inside, here, hn::Set(di, kNotHere));
      }
      for (int row = 0; row < count; ++row) {
        const auto want = hn::Add(here, hn::Set(di, rows[row].number));
        const auto points = hn::Eq(hn::LoadU(di, rows[row].codes + u), want);
        const auto gradient = hn::LoadU(d, rows[row].values + u);
        sum[f] = hn::IfThenElse(hn::RebindMask(d, points), hn::Add(sum[f], gradient), sum[f]);
        found = hn::IfThenElse(points, hn::Add(found, hn::Set(di, Code{1})), found);
      }
    }
    StorePhases<kStride>(d, sum, result + u * kStride);
  }
}

/// Units [begin, end) of grad_input. Returns how many outputs' indices were found in their windows.
template <class T, class C>
std::int64_t GatherRows(const RowPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                        char* scratch) {
  using D = hn::ScalableTag<C>;
  const D d;
  const hn::RebindToSigned<D> di;
  const Workspace<T, C> space(plan, scratch);
  SeeingRows<T, C> seeing(plan, pointers, scratch);
  SeeingRow<C> rows[kMostSlots];
  StreamWriter writer;
  UnitCursor unit(plan, begin);
  std::int64_t total = 0;
  for (std::int64_t index = begin; index < end; ++index, unit.next()) {
    const Tile& tile = unit.tile();
    auto found = hn::Zero(di);
    const int count = tile.source_columns > 0 ? seeing.Find(unit, rows) : 0;
    T* target = static_cast<T*>(pointers.target) + unit.offset(plan.target, unit.depth, unit.height, tile.target_first);
    switch (plan.problem.axis[2].stride) {
      case 2: GatherRow<2>(d, plan, unit, rows, count, space.result, found); break;
      case 3: GatherRow<3>(d, plan, unit, rows, count, space.result, found); break;
      default: GatherRow<4>(d, plan, unit, rows, count, space.result, found); break;
    }
    total += static_cast<std::int64_t>(hn::GetLane(hn::SumOfLanes(di, found)));
    PutRow(plan, tile.target_columns, space.result + tile.column_shift, space.staged, target, writer);
  }
  return total;
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
