// Tall windows, row after row (van Herk's and Gil and Werman's way): source rows are cut into blocks as tall as a window. A window
// that starts in one block ends in the next: it is a suffix of the one and a prefix of the other, whatever its height.
#if defined(CENOTE_CPU_ROWS_TALL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_ROWS_TALL_INL_H_
#undef CENOTE_CPU_ROWS_TALL_INL_H_
#else
#define CENOTE_CPU_ROWS_TALL_INL_H_
#endif

#include "cpu/rows/fold_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// Folds the rows of one target row after the other into the workspace's buffer, as FoldSourceRows does. Keeps the suffixes of the
/// block that windows start in and a prefix of the next. Both are in order, so that ties need no comparison of codes; where the
/// blocks lie depends on the problem alone, and so do the bits of a sum.
template <Fold kFold, Map kMap, class T, class C>
class TallFold {
 public:
  using Code = CodeOf<C>;
  TallFold(const RowPlan& plan, const void* source, const Workspace<T, C>& space, char* scratch)
      : plan_(plan),
        space_(space),
        source_(static_cast<const T*>(source)),
        rows_(scratch + plan.tall_at),
        kernel_(plan.problem.axis[1].kernel),
        extent_(plan.transposed ? plan.problem.axis[1].output : plan.problem.axis[1].input) {}

  /// Returns how many rows there are.
  std::int64_t Run(const UnitCursor& unit, const Tile& tile) {
    const Axis& axis = plan_.problem.axis[1];
    const std::int64_t start =
        plan_.transposed ? unit.height + axis.pad_begin - (kernel_ - 1) : unit.height * axis.stride - axis.pad_begin;
    const std::int64_t first = larger(start, 0), end = smaller(start + kernel_, extent_);
    if (first >= end || tile.source_columns == 0) return 0;
    const std::int64_t block = floor_div(start, kernel_), boundary = (block + 1) * kernel_;
    const Place place{unit.major, unit.minor, unit.depth, unit.tile_index, block};
    elements_ = tile.source_columns * plan_.inner;
    if (!(place == place_)) {
      place_ = place;
      const std::int64_t stop = smaller(boundary, extent_);
      for (std::int64_t h = stop - 1; h >= first; --h) {
        const std::int64_t slot = h - block * kernel_;
        FoldRow(unit, tile, h, true, h + 1 < stop ? slot + 1 : kNone, slot);
      }
      prefix_ = kNone;
      next_ = larger(boundary, 0);
    }
    for (; next_ < end; ++next_) {
      const std::int64_t to = prefix_ == kernel_ ? kernel_ + 1 : kernel_;
      FoldRow(unit, tile, next_, false, prefix_, to);
      prefix_ = to;
    }
    const bool has_suffix = first < smaller(boundary, extent_);
    const Code shift =
        plan_.code_kind == Codes::taps ? static_cast<Code>(-start * plan_.problem.axis[2].kernel) : Code{0};
    Join(has_suffix ? first - block * kernel_ : kNone, prefix_, shift, tile);
    FinishSourceRows<kFold>(plan_, tile, space_);
    return end - first;
  }

 private:
  static constexpr std::int64_t kNone = -1;
  struct Place {
    std::int64_t major = -1, minor = -1, depth = -1, tile = -1, block = -1;
    bool operator==(const Place&) const = default;
  };

  C* Values(std::int64_t slot) const {
    return reinterpret_cast<C*>(rows_ + static_cast<std::size_t>(2 * slot) * plan_.tall_pitch);
  }
  Code* CodesOf(std::int64_t slot) const {
    return reinterpret_cast<Code*>(rows_ + static_cast<std::size_t>(2 * slot + 1) * plan_.tall_pitch);
  }

  /// Slot `to` = source row h and slot `other`, the row first or last.
  void FoldRow(const UnitCursor& unit, const Tile& tile, std::int64_t h, bool row_first, std::int64_t other,
               std::int64_t to) {
    const hn::ScalableTag<C> d;
    const hn::RebindToSigned<decltype(d)> di;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const Problem& p = plan_.problem;
    const T* row = source_ + unit.offset(plan_.source, unit.depth, h, tile.source_first);
    using S = Folded<kMap, T, C>;
    if (!plan_.source.dense || elements_ < lanes) {
      T* packed = kMap == Map::identity ? reinterpret_cast<T*>(space_.packed) : space_.staged;
      pack_row(plan_.source, tile.source_columns, plan_.inner, row, packed);
      row = packed;
    }
    const S* folded = nullptr;
    if constexpr (kMap == Map::identity) {
      folded = row;
    } else {
      MapRow<kMap>(plan_, row, elements_, reinterpret_cast<S*>(space_.packed));
      folded = reinterpret_cast<const S*>(space_.packed);
    }
    std::int64_t code = 0;
    switch (plan_.code_kind) {
      case Codes::flat: code = (unit.depth * p.axis[1].input + h) * p.axis[2].input; break;
      case Codes::taps: code = h * p.axis[2].kernel; break;
      case Codes::ascending: code = h * plan_.widest; break;
    }
    const auto row_code = [&]() HWY_ATTR { return hn::Set(di, static_cast<Code>(code)); };
    const C* values = other == kNone ? nullptr : Values(other);
    const Code* codes = other == kNone ? nullptr : CodesOf(other);
    for (std::int64_t next = 0; next < elements_; next += lanes) {
      const std::int64_t x = next + lanes <= elements_ ? next : larger(0, elements_ - lanes);
      const auto v = LoadAs(d, folded + x);
      Accumulator<decltype(d), kFold, false> a;
      if (values == nullptr) {
        a.First(d, v, row_code);
      } else if (row_first) {
        a.First(d, v, row_code);
        a.Next(d, hn::LoadU(d, values + x), [&]() HWY_ATTR { return hn::LoadU(di, codes + x); });
      } else {
        a.First(d, hn::LoadU(d, values + x), [&]() HWY_ATTR { return hn::LoadU(di, codes + x); });
        a.Next(d, v, row_code);
      }
      a.Store(d, Values(to) + x, CodesOf(to) + x);
    }
  }

  /// The buffer = slot `suffix` and slot `prefix`.
  void Join(std::int64_t suffix, std::int64_t prefix, Code shift, const Tile& tile) {
    const hn::ScalableTag<C> d;
    const hn::RebindToSigned<decltype(d)> di;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const std::int64_t one = suffix == kNone ? prefix : suffix;
    C* buffer = space_.buffer + tile.pad_left * plan_.inner;
    Code* codes = space_.codes + tile.pad_left * plan_.inner;
    const auto moved = hn::Set(di, shift);
    for (std::int64_t x = 0; x < elements_; x += lanes) {  // whole vectors: the padding behind is filled later
      Accumulator<decltype(d), kFold, false> a;
      a.First(d, hn::LoadU(d, Values(one) + x), [&]() HWY_ATTR { return hn::LoadU(di, CodesOf(one) + x); });
      if (suffix != kNone && prefix != kNone) {
        a.Next(d, hn::LoadU(d, Values(prefix) + x), [&]() HWY_ATTR { return hn::LoadU(di, CodesOf(prefix) + x); });
      }
      if constexpr (kFold == Fold::max_indexed) a.code = hn::Add(a.code, moved);
      a.Store(d, buffer + x, codes + x);
    }
  }

  const RowPlan& plan_;
  const Workspace<T, C>& space_;
  const T* source_;
  char* rows_;
  std::int64_t kernel_, extent_, elements_ = 0;
  Place place_;                             // whose suffixes there are
  std::int64_t prefix_ = kNone, next_ = 0;  // slot of the prefix, and the row it lacks next
};

/// Units [begin, end) of the forward.
template <Fold kFold, Map kMap, class T, class C>
void FoldRows(const RowPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end, char* scratch) {
  const Workspace<T, C> space(plan, scratch);
  UnitCursor unit(plan, begin);
  TallFold<kFold, kMap, T, C> tall(plan, pointers.source, space, scratch);
  Writers writers(plan, pointers);
  for (std::int64_t i = begin; i < end; ++i, unit.next()) {
    FoldForwardRow<kFold, kMap>(plan, pointers, space, unit, tall, writers);
  }
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
