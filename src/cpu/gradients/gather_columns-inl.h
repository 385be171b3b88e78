// The backward of maxima for columns of many channels whose indices are taps of their windows, a byte each: every input gathers from
// the outputs that chose it. Sixteen bytes compared are a mask for sixteen gradients. (Windows that share nothing: see pick_columns.cpp.)
#if defined(CENOTE_CPU_GRADIENTS_GATHER_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_GRADIENTS_GATHER_COLUMNS_INL_H_
#undef CENOTE_CPU_GRADIENTS_GATHER_COLUMNS_INL_H_
#else
#define CENOTE_CPU_GRADIENTS_GATHER_COLUMNS_INL_H_
#endif

#include <hwy/cache_control.h>

#include "cpu/gradients/seeing.hpp"
#include "cpu/gradients/window_taps-inl.h"
#include "cpu/rows/fold_rows-inl.h"
#include "cpu/thresholds.hpp"
#include "cpu/vectors/unroll.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR  // see kHasVectors

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

/// Rounded to T. Around the caches where `streams`: vectors beside each other then fill whole lines.
template <class D, class T>
HWY_INLINE void PutVector(D d, hn::Vec<D> v, bool streams, T* HWY_RESTRICT to) {
  const auto rounded = RoundVector<T>(d, v);
  auto* bits = reinterpret_cast<RoundedLane<T>*>(to);
  if (streams) {
    hn::Stream(rounded, RoundedTag<T, D>(), bits);
  } else {
    hn::StoreU(rounded, RoundedTag<T, D>(), bits);
  }
}

/// kVectors vectors of channels of one input column, `at` elements behind where the outputs point to.
template <int kVectors, class D, class T>
HWY_NOINLINE void GatherChannels(D d, const SeeingColumn* seeing, int count, const T* source, std::int64_t at,
                                 bool streams, T* HWY_RESTRICT result) {
  const hn::Rebind<std::uint8_t, D> d8;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<D> sum[kVectors];
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) sum[v] = hn::Zero(d);
  for (int i = 0; i < count; ++i) {
    const auto want = hn::Set(d8, seeing[i].want);
    const std::uint8_t* taps = seeing[i].taps + at;
    const T* gradients = source + seeing[i].gradients + at;
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const auto points = WideMask(d, hn::Eq(hn::LoadU(d8, taps + v * lanes), want));
      sum[v] = hn::IfThenElse(points, hn::Add(sum[v], LoadAs(d, gradients + v * lanes)), sum[v]);
    }
  }
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) PutVector(d, sum[v], streams, result + v * lanes);
}

/// Where strides of columns are gathered together: what networks are trained in, and vectors long enough to be worth their size.
template <class T>
constexpr bool kHasStrides = HWY_ARCH_X86&& HWY_TARGET <= HWY_AVX2 && !std::is_same_v<T, double>;

/// A vector of an output's channels, and of the sums of an input's: a lane for each.
template <class T>
struct GatheredLanes {
  using D = hn::ScalableTag<std::conditional_t<std::is_same_v<T, double>, double, float>>;
  using Taps = hn::Rebind<std::uint8_t, D>;
  using Sums = hn::Vec<D>;
  static constexpr std::int64_t kElements = hn::MaxLanes(D());

  /// The number of a tap, in all lanes.
  struct Want {
    alignas(16) std::uint8_t lanes[16];
  };
  static HWY_INLINE Want Number(int tap) {
    Want want;
    std::memset(want.lanes, tap, sizeof(want.lanes));
    return want;
  }
  static HWY_INLINE hn::Vec<Taps> Wanted(const Want& want) { return hn::Load(Taps(), want.lanes); }
  static HWY_INLINE Sums Zero() { return hn::Zero(D()); }
  HWY_INLINE GatheredLanes(const std::uint8_t* taps, const T* gradients)
      : tap(hn::LoadU(Taps(), taps)), gradient(LoadOnce(D(), gradients)) {}
  /// Adds the gradients whose tap it is.
  HWY_INLINE void AddTo(Sums& sum, hn::Vec<Taps> want) const {
    sum = hn::IfThenElse(WideMask(D(), hn::Eq(tap, want)), hn::Add(sum, gradient), sum);
  }
  static HWY_INLINE void Put(const Sums& sum, bool streams, T* to) { PutVector(D(), sum, streams, to); }

  hn::Vec<Taps> tap;
  hn::Vec<D> gradient;
};

/// bf16: two channels lie in each lane of 32 bits, the upper one an f32 but for bits to be cut off, the lower one a shift away from it. They are
/// added up apart, rounded apart and put together again.
template <>
struct GatheredLanes<bf16> {
  using D = hn::ScalableTag<float>;
  using Words = hn::RebindToUnsigned<D>;
  using Halves = hn::Repartition<std::uint16_t, D>;
  using Taps = Words;
  struct Sums {
    hn::Vec<D> lower, upper;
  };
  static constexpr std::int64_t kElements = hn::MaxLanes(Halves());

  using Want = std::int32_t;
  static HWY_INLINE Want Number(int tap) { return tap; }
  static HWY_INLINE hn::Vec<Taps> Wanted(Want want) { return hn::Set(Taps(), static_cast<std::uint32_t>(want)); }
  static HWY_INLINE Sums Zero() { return {hn::Zero(D()), hn::Zero(D())}; }
  HWY_INLINE GatheredLanes(const std::uint8_t* taps, const bf16* gradients) {
    const hn::Rebind<std::uint8_t, Halves> bytes;
    const auto pair = hn::BitCast(Words(), hn::PromoteTo(Halves(), hn::LoadU(bytes, taps)));
    const auto word = hn::BitCast(Words(), hn::LoadU(Halves(), reinterpret_cast<const std::uint16_t*>(gradients)));
    lower_tap = hn::And(pair, hn::Set(Words(), 0xffffU));
    upper_tap = hn::ShiftRight<16>(pair);
    lower = hn::BitCast(D(), hn::ShiftLeft<16>(word));
    upper = hn::BitCast(D(), hn::And(word, hn::Set(Words(), 0xffff0000U)));
  }
  HWY_INLINE void AddTo(Sums& sum, hn::Vec<Taps> want) const {
    sum.lower = hn::IfThenElse(hn::RebindMask(D(), hn::Eq(lower_tap, want)), hn::Add(sum.lower, lower), sum.lower);
    sum.upper = hn::IfThenElse(hn::RebindMask(D(), hn::Eq(upper_tap, want)), hn::Add(sum.upper, upper), sum.upper);
  }
  static HWY_INLINE void Put(const Sums& sum, bool streams, bf16* to) {
    const auto both =
        hn::Or(hn::ShiftRight<16>(RoundWord(sum.lower)), hn::And(RoundWord(sum.upper), hn::Set(Words(), 0xffff0000U)));
    auto* bits = reinterpret_cast<std::uint16_t*>(to);
    if (streams) {
      hn::Stream(hn::BitCast(Halves(), both), Halves(), bits);
    } else {
      hn::StoreU(hn::BitCast(Halves(), both), Halves(), bits);
    }
  }

  hn::Vec<Words> lower_tap, upper_tap;
  hn::Vec<D> lower, upper;

 private:
  /// To the nearest, ties to even; the upper half of each word counts. A sum that is NaN has a lower half of zeros, and stays one.
  static HWY_INLINE hn::Vec<Words> RoundWord(hn::Vec<D> v) {
    const auto word = hn::BitCast(Words(), v);
    const auto odd = hn::And(hn::ShiftRight<16>(word), hn::Set(Words(), 1U));
    return hn::Add(word, hn::Add(odd, hn::Set(Words(), 0x7fffU)));
  }
};

/// Columns `apart` elements from each other, each seen by kCount outputs, which are a column apart from those of the one before.
template <int kCount, class T>
HWY_NOINLINE void GatherAlike(const SeeingColumn* seeing, const T* source, std::int64_t inner, std::int64_t columns,
                              std::int64_t apart, bool streams, T* HWY_RESTRICT result) {
  using Lanes = GatheredLanes<T>;
  const std::uint8_t* taps[kCount];
  const T* gradients[kCount];
  typename Lanes::Want wanted[kCount];
  for (int i = 0; i < kCount; ++i) {
    taps[i] = seeing[i].taps;
    gradients[i] = source + seeing[i].gradients;
    wanted[i] = Lanes::Number(seeing[i].want);
  }
  for (std::int64_t first = 0; first < columns * inner; first += inner, result += apart) {
    for (std::int64_t next = 0; next < inner; next += Lanes::kElements) {
      const std::int64_t c = smaller(next, inner - Lanes::kElements);
      typename Lanes::Sums sum = Lanes::Zero();
      CENOTE_UNROLL
      for (int i = 0; i < kCount; ++i)
        Lanes(taps[i] + first + c, gradients[i] + first + c).AddTo(sum, Lanes::Wanted(wanted[i]));
      Lanes::Put(sum, streams, result + c);
    }
  }
}

/// The columns of an input row, those together that are seen alike.
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
        result_(result) {}

  /// Columns [first, end).
  HWY_NOINLINE void Gather(std::int64_t first, std::int64_t end) {
    const std::int64_t stride = plan_.problem.axis[2].stride;
    const Cover* covers = plan_.covers[2].data();
    for (std::int64_t phase = first; phase < smaller(first + stride, end); ++phase) {
      for (std::int64_t column = phase, next; column < end; column = next) {
        const Cover& cover = covers[column];
        std::int64_t alike = 1;
        for (next = column + stride; next < end; next += stride, ++alike) {
          const Cover& other = covers[next];
          if (other.count != cover.count || other.first_tap != cover.first_tap || other.first != cover.first + alike)
            break;
        }
        GatherRun(column, cover, alike);
      }
    }
  }

 private:
  /// So many columns a stride apart.
  void GatherRun(std::int64_t column, const Cover& cover, std::int64_t columns) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d_));
    const std::int64_t inner = plan_.inner, apart = plan_.problem.axis[2].stride * inner;
    SeeingColumn seeing[kGatheredColumnTaps];
    const int count = seeing_columns(rows_, count_, cover, tile_.source_first, inner, seeing);
    T* to = result_ + (column - tile_.target_first) * inner;
    static_assert(kAlikeOutputs == 4);
    if (count > 0 && count <= kAlikeOutputs && inner >= GatheredLanes<T>::kElements) {
      const auto gather = count == 1   ? GatherAlike<1, T>
                          : count == 2 ? GatherAlike<2, T>
                          : count == 3 ? GatherAlike<3, T>
                                       : GatherAlike<4, T>;
      return gather(seeing, source_, inner, columns, apart, streams_, to);
    }
    for (std::int64_t moved = 0; moved < columns * inner; moved += inner, to += apart) {
      std::int64_t c = 0;
      for (; c + 4 * lanes <= inner; c += 4 * lanes)
        GatherChannels<4>(d_, seeing, count, source_, moved + c, streams_, to + c);
      for (; c < inner; c += lanes) {
        const std::int64_t at = smaller(c, inner - lanes);
        GatherChannels<1>(d_, seeing, count, source_, moved + at, streams_, to + at);
      }
    }
  }

  D d_;
  const RowPlan& plan_;
  const Tile& tile_;
  const SeeingTaps* rows_;
  int count_;
  const T* source_;
  bool streams_;
  T* result_;
};

/// Columns kStride * first to kStride * end of the padded row, at least kTogether strides, where all outputs that could see them are there: so many
/// strides of columns at a time, whose outputs are loaded once, those of kRows rows (0: of `count`).
template <int kTaps, int kStride, int kTogether, int kRows, class T>
HWY_NOINLINE void GatherStrides(const RowPlan& plan, const Tile& tile, const SeeingTaps* rows, int count,
                                std::int64_t first, std::int64_t end, const T* source, bool streams,
                                T* HWY_RESTRICT result) {
  using Lanes = GatheredLanes<T>;
  constexpr int kBack = (kTaps - 1) / kStride;  // the outputs before the last that see a stride of columns
  constexpr int kColumns = kTogether * kStride;
  const std::int64_t inner = plan.inner;
  typename Lanes::Want wanted[kRows == 0 ? kMostSlots : kRows][kTaps];  // the numbers of the taps along each row
  for (int row = 0; row < count; ++row) {
    for (int tap = 0; tap < kTaps; ++tap) wanted[row][tap] = Lanes::Number(rows[row].number + tap);
  }
  for (std::int64_t next_stride = first; next_stride < end; next_stride += kTogether) {
    const std::int64_t stride = smaller(next_stride, end - kTogether);  // some are gathered twice
    const std::int64_t at = (stride - kBack - tile.source_first) * inner;
    T* to = result + (stride * kStride - plan.problem.axis[2].pad_begin - tile.target_first) * inner;
    for (std::int64_t next = 0; next < inner; next += Lanes::kElements) {
      // The ragged end from its last whole vector. Shorter columns, of half a vector at least, reach into the next, which is written after them.
      const std::int64_t c = larger(0, smaller(next, inner - Lanes::kElements));
      typename Lanes::Sums sum[kColumns];
      CENOTE_UNROLL
      for (int column = 0; column < kColumns; ++column) sum[column] = Lanes::Zero();
      auto add = [&](int row) HWY_ATTR CENOTE_ALWAYS_INLINE {
        const std::uint8_t* taps = rows[row].taps + at + c;
        const T* gradients = source + rows[row].gradients + at + c;
        CENOTE_UNROLL
        for (int o = 0; o < kBack + kTogether; ++o) {
          const Lanes output(taps + o * inner, gradients + o * inner);
          CENOTE_UNROLL
          for (int column = 0; column < kColumns; ++column) {
            const int tap = column + (kBack - o) * kStride;
            if (tap >= 0 && tap < kTaps) output.AddTo(sum[column], Lanes::Wanted(wanted[row][tap]));
          }
        }
      };
      if constexpr (kRows == 0) {
        for (int row = 0; row < count; ++row) add(row);
      } else {
        CENOTE_UNROLL
        for (int row = 0; row < kRows; ++row) add(row);
      }
      CENOTE_UNROLL
      for (int column = 0; column < kColumns; ++column) Lanes::Put(sum[column], streams, to + column * inner + c);
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
    auto strides = [&]<int kTaps, int kStride, int kTogether, int kRows>() HWY_ATTR {
      if (axis.dilation != 1 || axis.kernel != kTaps || axis.stride != kStride || (kRows != 0 && count != kRows))
        return;
      constexpr int kBack = (kTaps - 1) / kStride;
      const std::int64_t first = larger(ceil_div(column + axis.pad_begin, kStride), kBack + tile.source_first);
      std::int64_t last = smaller((end + axis.pad_begin) / kStride, tile.source_first + tile.source_columns);
      if (plan.inner < GatheredLanes<T>::kElements) --last;  // what lies behind a column is the next one's
      if (last < first + kTogether) return;
      row.Gather(column, first * kStride - axis.pad_begin);
      GatherStrides<kTaps, kStride, kTogether, kRows>(plan, tile, rows, count, first, last, source, streams, result);
      column = last * kStride - axis.pad_begin;
    };
    // As many at a time as registers are there for. The numbers of rows that are compiled, and f16 with the windows of most networks alone, keep the
    // library small.
    constexpr bool kWide = HWY_TARGET <= HWY_AVX3, kUnrolled = kWide && sizeof(T) == 4;
    constexpr int kTwo = kWide ? 2 : 1, kFew = kUnrolled ? 2 : 1;
    strides.template operator()<3, 2, kTwo, 1>();
    strides.template operator()<3, 2, kTwo, 2>();
    strides.template operator()<3, 1, kTwo, 3>();
    if constexpr (!std::is_same_v<T, f16>) {
      strides.template operator()<2, 1, kFew, 2>();
      strides.template operator()<4, 2, kFew, 2>();
      if constexpr (kUnrolled) {
        strides.template operator()<5, 2, 2, 2>();
        strides.template operator()<5, 2, 2, 3>();
      } else {
        strides.template operator()<5, 2, 1, 0>();
      }
      strides.template operator()<5, 1, 2 * kTwo, 0>();
    }
  }
  row.Gather(column, end);
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
  const bool whole_lines = StreamsWholeLines(plan, pointers.target);
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
