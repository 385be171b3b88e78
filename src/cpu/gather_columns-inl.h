// The backward of maxima for columns of many channels whose indices are taps of their windows, a byte each: every input gathers from
// the outputs that chose it. Sixteen bytes compared are a mask for sixteen gradients. (Windows that share nothing: see pick_columns.cpp.)
#if defined(CENOTE_CPU_GATHER_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_GATHER_COLUMNS_INL_H_
#undef CENOTE_CPU_GATHER_COLUMNS_INL_H_
#else
#define CENOTE_CPU_GATHER_COLUMNS_INL_H_
#endif

#include "cpu/fold_rows-inl.h"
#include "cpu/seeing.hpp"
#include "cpu/thresholds.hpp"
#include "cpu/unroll.hpp"
#include "cpu/window_taps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR  // see kHasVectors

/// An output row that sees the input row: the winning taps of its outputs, where its gradients begin, and the number of the first tap that
/// the input row is.
struct SeeingTaps {
  const std::uint8_t* taps;
  std::int64_t gradients;
  int number;
};

/// The output rows that see input rows one after the other. Their indices are checked against their windows where those begin.
class TapRows {
 public:
  TapRows(const RowPlan& plan, const RowPointers& pointers) : plan_(plan), pointers_(pointers), outputs_(plan) {}

  /// Outputs whose windows begin in the units so far, and one less for each row with an index outside its window.
  std::int64_t found() const { return found_; }

  /// Those of one input row, in the order of the outputs. Returns how many.
  int Find(const UnitCursor& unit, SeeingTaps* rows) {
    const Axis* axis = plan_.problem.axis;
    const Tile& tile = unit.tile();
    int count = 0;
    outputs_.for_each(unit, [&](const SeeingOutput& o) HWY_ATTR {
      const Window deep = window(axis[0], o.depth), high = window(axis[1], o.height);
      const auto* taps = static_cast<const std::uint8_t*>(pointers_.indices) +
                         unit.offset(plan_.indices, o.depth, o.height, tile.source_first);
      if (deep.first == unit.depth && high.first == unit.height) {  // the first input row that it sees
        const Window* windows = plan_.windows.data() + tile.source_first;
        const bool valid = TapsOfRowInside(axis, windows, tile.source_columns, plan_.inner, deep, high, taps);
        found_ += tile.owned * plan_.inner - (valid ? 0 : 1);
      }
      rows[count++] = {taps, unit.offset(plan_.source, o.depth, o.height, tile.source_first),
                       static_cast<int>(o.number)};
    });
    return count;
  }

 private:
  const RowPlan& plan_;
  const RowPointers& pointers_;
  SeeingOutputs outputs_;
  std::int64_t found_ = 0;
};

/// An output that sees the input column.
template <class T>
struct SeeingColumn {
  const std::uint8_t* taps;
  const T* gradients;
  std::uint8_t want;  // the tap of its window that the input is
};

/// Rounded to T. Around the caches where `streams`: vectors then fill whole lines.
template <class D, class T>
HWY_INLINE void PutVector(D d, hn::Vec<D> v, bool streams, T* HWY_RESTRICT to) {
  if constexpr (std::is_same_v<T, hn::TFromD<D>>) {
    if (streams) return hn::Stream(v, d, to);
  }
  StoreVectorAs(d, v, to);
}

/// kVectors vectors of channels of one input column, `at` elements behind where the outputs point to.
template <int kVectors, class D, class T>
HWY_NOINLINE void GatherChannels(D d, const SeeingColumn<T>* seeing, int count, std::int64_t at, bool streams,
                                 T* HWY_RESTRICT result) {
  const hn::Rebind<std::uint8_t, D> d8;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<D> sum[kVectors];
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) sum[v] = hn::Zero(d);
  for (int i = 0; i < count; ++i) {
    const auto want = hn::Set(d8, seeing[i].want);
    const std::uint8_t* taps = seeing[i].taps + at;
    const T* gradients = seeing[i].gradients + at;
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const auto points = WideMask(d, hn::Eq(hn::LoadU(d8, taps + v * lanes), want));
      sum[v] = hn::IfThenElse(points, hn::Add(sum[v], LoadAs(d, gradients + v * lanes)), sum[v]);
    }
  }
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) PutVector(d, sum[v], streams, result + v * lanes);
}

/// The columns of an input row, one by one.
template <class D, class T>
class GatheredRow {
 public:
  GatheredRow(D d, const RowPlan& plan, const Tile& tile, const SeeingTaps* rows, int count, const T* source,
              bool streams, T* result)
      : d_(d),
        plan_(plan),
        tile_(tile),
        rows_(rows),
        count_(count),
        source_(source),
        streams_(streams),
        result_(result) {
    const std::int64_t stride = plan.problem.axis[2].stride;
    kept_ = stride <= kGatherPhases ? stride : 1;
    for (int i = 0; i < kept_; ++i) phases_[i].cover = nullptr;
  }

  void Gather(std::int64_t column) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d_));
    const std::int64_t inner = plan_.inner;
    const Cover& cover = plan_.covers[2][static_cast<std::size_t>(column)];
    Phase& phase = phases_[column % kept_];
    if (phase.cover == nullptr || phase.cover->count != cover.count || phase.cover->first_tap != cover.first_tap) {
      phase.cover = &cover;
      phase.count = 0;
      for (int row = 0; row < count_; ++row) {
        for (std::int64_t x = 0; x < cover.count; ++x) {
          const std::int64_t at = (cover.first + x * cover.step - tile_.source_first) * inner;
          phase.seeing[phase.count++] = {
              rows_[row].taps + at, source_ + rows_[row].gradients + at,
              static_cast<std::uint8_t>(rows_[row].number + static_cast<int>(cover.first_tap - x * cover.tap_step))};
        }
      }
    }
    const std::int64_t moved = (cover.first - phase.cover->first) * inner;
    T* to = result_ + (column - tile_.target_first) * inner;
    std::int64_t c = 0;
    for (; c + 4 * lanes <= inner; c += 4 * lanes)
      GatherChannels<4>(d_, phase.seeing, phase.count, moved + c, streams_, to + c);
    if (c + 2 * lanes <= inner) {
      GatherChannels<2>(d_, phase.seeing, phase.count, moved + c, streams_, to + c);
      c += 2 * lanes;
    }
    for (; c < inner; c += lanes) {
      const std::int64_t at = smaller(c, inner - lanes);
      GatherChannels<1>(d_, phase.seeing, phase.count, moved + at, streams_, to + at);
    }
  }

 private:
  // Columns a stride apart are seen by outputs a column apart: what was found out for one serves the other.
  struct Phase {
    SeeingColumn<T> seeing[kGatheredColumnTaps];
    int count;
    const Cover* cover;
  };

  D d_;
  const RowPlan& plan_;
  const Tile& tile_;
  const SeeingTaps* rows_;
  int count_;
  const T* source_;
  bool streams_;
  T* result_;
  std::int64_t kept_;
  Phase phases_[kGatherPhases];
};

/// Where strides of columns are gathered together: what networks are trained in, and vectors long enough to be worth their size.
template <class T>
constexpr bool kHasStrides = HWY_ARCH_X86&& HWY_TARGET <= HWY_AVX2 && !std::is_same_v<T, double>;

/// Columns kStride * first to kStride * end of the padded row, where all outputs that could see them are there: a stride of columns at a time,
/// whose outputs are loaded once, those of kRows rows.
template <int kTaps, int kStride, int kRows, class D, class T>
HWY_NOINLINE void GatherStrides(D d, const RowPlan& plan, const Tile& tile, const SeeingTaps* rows, std::int64_t first,
                                std::int64_t end, const T* source, bool streams, T* HWY_RESTRICT result) {
  constexpr int kBack = (kTaps - 1) / kStride;  // the outputs before the last that see a stride of columns
  const hn::Rebind<std::uint8_t, D> d8;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t inner = plan.inner;
  HWY_ALIGN std::uint8_t wanted[kRows][kTaps][16];  // the numbers of the taps along each row, in all lanes
  for (int row = 0; row < kRows; ++row) {
    for (int tap = 0; tap < kTaps; ++tap) std::memset(wanted[row][tap], rows[row].number + tap, 16);
  }
  for (std::int64_t stride = first; stride < end; ++stride) {
    const std::int64_t at = (stride - kBack - tile.source_first) * inner;
    T* to = result + (stride * kStride - plan.problem.axis[2].pad_begin - tile.target_first) * inner;
    for (std::int64_t next = 0; next < inner; next += lanes) {
      const std::int64_t c = smaller(next, inner - lanes);  // the ragged end from its last whole vector
      hn::Vec<D> sum[kStride];
      CENOTE_UNROLL
      for (int column = 0; column < kStride; ++column) sum[column] = hn::Zero(d);
      CENOTE_UNROLL
      for (int row = 0; row < kRows; ++row) {
        const std::uint8_t* taps = rows[row].taps + at + c;
        const T* gradients = source + rows[row].gradients + at + c;
        CENOTE_UNROLL
        for (int output = 0; output <= kBack; ++output) {
          const auto tap = hn::LoadU(d8, taps + output * inner);
          const auto gradient = LoadAs(d, gradients + output * inner);
          CENOTE_UNROLL
          for (int column = 0; column < kStride; ++column) {
            const int want = column + (kBack - output) * kStride;
            if (want >= kTaps) continue;
            const auto points = WideMask(d, hn::Eq(tap, hn::Load(d8, wanted[row][want])));
            sum[column] = hn::IfThenElse(points, hn::Add(sum[column], gradient), sum[column]);
          }
        }
      }
      CENOTE_UNROLL
      for (int column = 0; column < kStride; ++column) {
        PutVector(d, sum[column], streams, to + column * inner + c);
      }
    }
  }
}

/// A row of columns.
template <class D, class T>
void GatherColumns(D d, const RowPlan& plan, const Tile& tile, const SeeingTaps* rows, int count, const T* source,
                   bool streams, T* HWY_RESTRICT result) {
  GatheredRow<D, T> row(d, plan, tile, rows, count, source, streams, result);
  std::int64_t column = tile.target_first;
  const std::int64_t end = column + tile.target_columns;
  const Axis& axis = plan.problem.axis[2];
  if constexpr (kHasStrides<T>) {
    auto strides = [&]<int kTaps, int kStride, int kRows>() HWY_ATTR {
      if (axis.dilation != 1 || axis.kernel != kTaps || axis.stride != kStride || count != kRows) return;
      constexpr int kBack = (kTaps - 1) / kStride;
      const std::int64_t first = larger(ceil_div(column + axis.pad_begin, kStride), kBack + tile.source_first);
      const std::int64_t last = smaller((end + axis.pad_begin) / kStride, tile.source_first + tile.source_columns);
      if (last <= first) return;
      for (; column < first * kStride - axis.pad_begin; ++column) row.Gather(column);
      GatherStrides<kTaps, kStride, kRows>(d, plan, tile, rows, first, last, source, streams, result);
      column = last * kStride - axis.pad_begin;
    };
    strides.template operator()<2, 1, 2>();
    strides.template operator()<3, 2, 1>();
    strides.template operator()<3, 2, 2>();
    strides.template operator()<3, 1, 3>();
    strides.template operator()<4, 2, 2>();
    strides.template operator()<5, 2, 2>();
    strides.template operator()<5, 2, 3>();
  }
  for (; column < end; ++column) row.Gather(column);
}

/// Units [begin, end) of grad_input. Returns what TapRows::found() says.
template <class T, class C>
std::int64_t GatherColumnRows(const RowPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                              char* scratch) {
  const hn::ScalableTag<C> d;
  const Workspace<T, C> space(plan, scratch);
  TapRows seeing(plan, pointers);
  SeeingTaps rows[kMostSlots];
  StreamWriter writer;
  // Columns that begin and end with a cache line need not be put together before they go around the caches.
  const bool whole_lines = std::is_same_v<T, C> && StreamsWholeLines(plan, pointers.target);
  UnitCursor unit(plan, begin);
  for (std::int64_t index = begin; index < end; ++index, unit.next()) {
    const Tile& tile = unit.tile();
    const int count = tile.source_columns > 0 ? seeing.Find(unit, rows) : 0;
    T* target = static_cast<T*>(pointers.target) + unit.offset(plan.target, unit.depth, unit.height, tile.target_first);
    T* result = plan.target.dense && (!plan.streams || whole_lines) ? target : space.staged;
    GatherColumns(d, plan, tile, rows, count, static_cast<const T*>(pointers.source), whole_lines, result);
    if (!plan.target.dense) {
      unpack_row(plan.target, tile.target_columns, plan.inner, result, target);
    } else if (result != target) {
      writer.Write(result, target, tile.target_columns * plan.inner);
    }
  }
  if (whole_lines) hwy::FlushStream();
  return seeing.found();
}

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
