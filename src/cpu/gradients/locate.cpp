// From indices to elements of a band, a vector at a time: the rows of a window are tried one by one; where there are many, a
// multiplication takes a division's place. Each index is checked against its window on the way.
#include "cpu/gradients/scatter_plan.hpp"
#include "cpu/thresholds.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/gradients/locate.cpp"
#include <hwy/foreach_target.h>

#include "cpu/gradients/flat_taps-inl.h"
#include "cpu/vectors/index_vectors-inl.h"

#include <limits>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// Beyond every position, and not "none".
constexpr std::uint32_t kBeyond = 0x7fffffffU;

/// Indices as 32-bit numbers, "none" as kNowhere. False where one does not fit.
template <class Index>
bool LoadIndices(const void* indices, std::int64_t count, std::uint32_t* HWY_RESTRICT to) {
  using Bits = std::make_unsigned_t<Index>;
  const Bits* from = static_cast<const Bits*>(indices);
  constexpr Bits kNone = std::numeric_limits<Bits>::max();
  const hn::ScalableTag<std::uint32_t> d;
  const auto nowhere = hn::Set(d, kNowhere);
  std::int64_t i = 0, step = static_cast<std::int64_t>(hn::Lanes(d));
  if constexpr (sizeof(Index) == 8) {
    // Where the bits plus 1 stay within 31 bits, the low half is the index, or all ones.
    const hn::ScalableTag<std::uint64_t> d64;
    const hn::Rebind<std::uint32_t, decltype(d64)> half;
    step = static_cast<std::int64_t>(hn::Lanes(d64));
    const auto one = hn::Set(d64, std::uint64_t{1});
    auto high = hn::Zero(d64);
    for (; count >= step && i < count; i += step) {
      const std::int64_t at = i + step <= count ? i : count - step;
      const auto v = hn::LoadU(d64, from + at);
      high = hn::Or(high, hn::ShiftRight<31>(hn::Add(v, one)));
      hn::StoreU(hn::TruncateTo(half, v), half, to + at);
    }
    if (!hn::AllTrue(d64, hn::Eq(high, hn::Zero(d64)))) return false;
  } else {
    const hn::Rebind<Bits, decltype(d)> narrow;
    for (; count >= step && i < count; i += step) {
      const std::int64_t at = i + step <= count ? i : count - step;
      const auto v = hn::LoadU(narrow, from + at);
      if constexpr (sizeof(Index) == 4) {
        hn::StoreU(v, d, to + at);
      } else {
        const auto wide = hn::PromoteTo(d, v);
        hn::StoreU(hn::IfThenElse(hn::Eq(wide, hn::Set(d, kNone)), nowhere, wide), d, to + at);
      }
    }
  }
  for (; i < count; ++i) {
    const Bits bits = from[i];
    if (bits != kNone && bits > kBeyond) return false;
    to[i] = bits == kNone ? kNowhere : static_cast<std::uint32_t>(bits);
  }
  return true;
}

/// The windows of a job's outputs along the row: from tables, or all the same.
template <bool kOneColumn>
struct RowWindows {
  const std::uint32_t *first, *taps, *skipped;
  std::uint32_t one_first, one_taps, one_skipped;
  HWY_INLINE std::uint32_t FirstOf(std::int64_t i) const { return kOneColumn ? one_first : first[i]; }
  HWY_INLINE std::uint32_t TapsOf(std::int64_t i) const { return kOneColumn ? one_taps : taps[i]; }
  HWY_INLINE std::uint32_t SkippedOf(std::int64_t i) const { return kOneColumn ? one_skipped : skipped[i]; }
  template <class D>
  HWY_INLINE hn::Vec<D> FirstOf(D d, std::int64_t i) const {
    return kOneColumn ? hn::Set(d, one_first) : hn::LoadU(d, first + i);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> TapsOf(D d, std::int64_t i) const {
    return kOneColumn ? hn::Set(d, one_taps) : hn::LoadU(d, taps + i);
  }
};

/// Positions of the band become elements of it; what lies outside goes to the spare elements behind, neighbours to different ones.
class Elements {
 public:
  using D = hn::ScalableTag<std::uint32_t>;
  using V = hn::Vec<D>;
  Elements(const ScatterPlan& plan, const LocateJob& job)
      : job_(job),
        positions_(hn::Set(D(), job.positions)),
        step_(hn::Set(D(), job.step)),
        spare_(plan.in_place ? hn::Set(D(), kNowhere)
                             : hn::Add(hn::Set(D(), job.positions * job.step), hn::Iota(D(), 0))) {}

  /// spots[i...] from positions, of which only the valid ones count.
  HWY_INLINE void Put(std::int64_t i, V position, hn::Mask<D> valid) const {
    const D d;
    V element = position;
    if (job_.one_column) {
      element = hn::Add(hn::Mul(position, step_), hn::Iota(d, static_cast<std::uint32_t>(i)));
    } else if (job_.channel != nullptr) {
      const V channel = hn::LoadU(d, job_.channel + i);
      element = hn::Add(job_.step == 1 ? position : hn::Mul(position, step_), channel);
    }
    hn::StoreU(hn::IfThenElse(hn::And(valid, hn::Lt(position, positions_)), element, spare_), d, job_.spots + i);
  }

 private:
  const LocateJob& job_;
  V positions_, step_, spare_;
};

/// The most rows of a window that are tried one by one before a division is cheaper.
constexpr std::int64_t kTriedRows = 24;

/// Flat positions of windows with few rows: counted from the window's first tap, each row begins at a known distance.
template <class Windows>
bool LocateInRows(const ScatterPlan& plan, const LocateJob& job, const Windows& windows) {
  const hn::ScalableTag<std::uint32_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t width = plan.problem.axis[2].input, height = plan.problem.axis[1].input;
  const auto first_row = static_cast<std::uint32_t>((job.depth.first * height + job.height.first) * width);
  std::uint32_t rows[kTriedRows];
  int count = 0;
  for (std::int64_t z = 0; z < job.depth.count; ++z) {
    for (std::int64_t y = 0; y < job.height.count; ++y) {
      rows[count++] = static_cast<std::uint32_t>((z * job.depth.step * height + y * job.height.step) * width);
    }
  }
  const auto nowhere = hn::Set(d, kNowhere), base = hn::Set(d, static_cast<std::uint32_t>(job.base)),
             start = hn::Set(d, first_row);
  const Elements elements(plan, job);
  auto wrong = hn::Zero(d);
  for (std::int64_t i = 0; i < job.count; i += lanes) {  // whole vectors: tables and spots have room behind them
    const auto index = hn::LoadU(d, job.spots + i);
    const auto distance = hn::Sub(index, hn::Add(start, windows.FirstOf(d, i)));
    const auto taps = windows.TapsOf(d, i);
    auto valid = hn::Lt(hn::Sub(distance, hn::Set(d, rows[0])), taps);
    for (int r = 1; r < count; ++r) valid = hn::Or(valid, hn::Lt(hn::Sub(distance, hn::Set(d, rows[r])), taps));
    auto fine = hn::Or(valid, hn::Eq(index, nowhere));
    if (i + lanes > job.count) fine = hn::Or(fine, hn::Not(hn::FirstN(d, static_cast<std::size_t>(job.count - i))));
    wrong = hn::Or(wrong, hn::IfThenZeroElse(fine, nowhere));
    elements.Put(i, hn::Sub(index, base), valid);
  }
  return hn::AllTrue(d, hn::Eq(wrong, hn::Zero(d)));
}

/// The same where columns are dilated: tap by tap.
template <class Windows>
bool LocateTapByTap(const ScatterPlan& plan, const LocateJob& job, const Windows& windows) {
  const hn::ScalableTag<std::uint32_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t width = plan.problem.axis[2].input, height = plan.problem.axis[1].input;
  const auto nowhere = hn::Set(d, kNowhere), base = hn::Set(d, static_cast<std::uint32_t>(job.base));
  const auto start = hn::Set(d, static_cast<std::uint32_t>((job.depth.first * height + job.height.first) * width));
  const Elements elements(plan, job);
  auto wrong = hn::Zero(d);
  for (std::int64_t i = 0; i < job.count; i += lanes) {
    const auto index = hn::LoadU(d, job.spots + i);
    const auto distance = hn::Sub(index, hn::Add(start, windows.FirstOf(d, i)));
    const auto taps = windows.TapsOf(d, i);
    auto valid = hn::MaskFromVec(hn::Zero(d));
    for (std::int64_t z = 0; z < job.depth.count; ++z) {
      for (std::int64_t y = 0; y < job.height.count; ++y) {
        auto tap = static_cast<std::uint32_t>((z * job.depth.step * height + y * job.height.step) * width);
        for (std::int64_t x = 0; x < plan.problem.axis[2].kernel; ++x, tap += plan.step[2]) {
          const auto inside = hn::Lt(hn::Set(d, static_cast<std::uint32_t>(x)), taps);
          valid = hn::Or(valid, hn::And(inside, hn::Eq(distance, hn::Set(d, tap))));
        }
      }
    }
    auto fine = hn::Or(valid, hn::Eq(index, nowhere));
    if (i + lanes > job.count) fine = hn::Or(fine, hn::Not(hn::FirstN(d, static_cast<std::size_t>(job.count - i))));
    wrong = hn::Or(wrong, hn::IfThenZeroElse(fine, nowhere));
    elements.Put(i, hn::Sub(index, base), valid);
  }
  return hn::AllTrue(d, hn::Eq(wrong, hn::Zero(d)));
}

/// Flat positions of whole planes: tables tell where each window begins and how many columns each of its rows has.
bool LocateInPlanes(const ScatterPlan& plan, const LocateJob& job) {
  const hn::ScalableTag<std::uint32_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto nowhere = hn::Set(d, kNowhere);
  const auto rows = static_cast<std::int64_t>(plan.rows.size());
  const auto pitch = static_cast<std::int64_t>(plan.first.size());
  const Elements elements(plan, job);
  auto wrong = hn::Zero(d);
  for (std::int64_t i = 0; i < job.count; i += lanes) {
    const auto index = hn::LoadU(d, job.spots + i);
    const auto distance = hn::Sub(index, hn::LoadU(d, job.first + i));
    auto valid = hn::Lt(distance, hn::LoadU(d, job.taps + i));
    for (std::int64_t r = 1; r < rows; ++r) {
      valid = hn::Or(valid, hn::Lt(hn::Sub(distance, hn::Set(d, plan.rows[static_cast<std::size_t>(r)])),
                                   hn::LoadU(d, job.taps + r * pitch + i)));
    }
    auto fine = hn::Or(valid, hn::Eq(index, nowhere));
    if (i + lanes > job.count) fine = hn::Or(fine, hn::Not(hn::FirstN(d, static_cast<std::size_t>(job.count - i))));
    wrong = hn::Or(wrong, hn::IfThenZeroElse(fine, nowhere));
    elements.Put(i, index, valid);
  }
  return hn::AllTrue(d, hn::Eq(wrong, hn::Zero(d)));
}

/// Flat positions of any windows: counted from the window's first tap, they fall apart into whole rows and a rest.
template <bool kDilated, bool kDeep, class Windows>
bool LocateFlat(const ScatterPlan& plan, const LocateJob& job, const Windows& windows) {
  const Divider width = plan.width, height = plan.height;
  const Divider step_w(plan.step[2]), step_h(plan.step[1]), step_d(plan.step[0]);
  const auto row = static_cast<std::uint32_t>((job.depth.first * plan.problem.axis[1].input + job.height.first) *
                                              plan.problem.axis[2].input);
  const auto deep = static_cast<std::uint32_t>(job.depth.count), high = static_cast<std::uint32_t>(job.height.count);
  const auto base = static_cast<std::uint32_t>(job.base);
  std::uint32_t* HWY_RESTRICT spots = job.spots;
  std::uint32_t wrong = 0;
  for (std::int64_t i = 0; i < job.count; ++i) {
    const std::uint32_t index = spots[i];
    const std::uint32_t offset = index - row - windows.FirstOf(i);
    const std::uint32_t distance = offset < kBeyond ? offset : kBeyond;
    std::uint32_t rows = width(distance);
    std::uint32_t columns = distance - rows * width.divisor;
    std::uint32_t slices = 0;
    if constexpr (kDeep) {
      slices = height(rows);
      rows -= slices * height.divisor;
    }
    bool valid = true;
    if constexpr (kDilated) {
      const std::uint32_t c = step_w(columns), r = step_h(rows), s = step_d(slices);
      valid = c * step_w.divisor == columns && r * step_h.divisor == rows && s * step_d.divisor == slices;
      columns = c, rows = r, slices = s;
    }
    valid = valid && columns < windows.TapsOf(i) && rows < high && (!kDeep || slices < deep);
    wrong |= valid || index == kNowhere ? 0U : 1U;
    spots[i] = valid ? index - base : kNowhere;
  }
  return wrong == 0;
}

/// Where taps lie, counted from the unclipped window's first one, and their places in the window along the three axes, a byte each. The
/// one behind the last of the largest window is in none.
class TapPlaces {
 public:
  using D = hn::ScalableTag<std::uint32_t>;
  using V = hn::Vec<D>;
  TapPlaces(const ScatterPlan& plan, const LocateJob& job) : plan_(plan), job_(job) {
    const Axis *depth = &plan.problem.axis[0], *height = depth + 1, *width = depth + 2;
    unknown_ = static_cast<std::uint32_t>(depth->kernel * height->kernel * width->kernel);
    in_registers_ = !plan.tap_offsets.empty() && unknown_ < hn::Lanes(D());
    in_two_ = !plan.tap_offsets.empty() && hn::Lanes(D()) == kTableSlack && unknown_ < 2 * kTableSlack;
    width_ = static_cast<std::uint32_t>(width->kernel);
    height_ = static_cast<std::uint32_t>(height->rule == WindowRule::adaptive ? job.height.whole : height->kernel);
    width_magic_ = tap_magic(width_);
    height_magic_ = tap_magic(height_);
    column_ = static_cast<std::uint32_t>(width->dilation);
    row_ = static_cast<std::uint32_t>(height->dilation * width->input);
    slice_ = static_cast<std::uint32_t>(depth->dilation * height->input * width->input);
  }

  /// Of taps of the job's outputs from `i` on.
  HWY_INLINE void Find(std::int64_t i, V index, V& offset, V& place) const {
    const D d;
    const V unknown = hn::Set(d, unknown_), tap = hn::Min(index, unknown);
#if HWY_TARGET != HWY_SCALAR
    if (in_registers_) {
      const auto at = hn::IndicesFromVec(d, tap);
      offset = hn::TableLookupLanes(hn::LoadU(d, plan_.tap_offsets.data()), at);
      place = hn::TableLookupLanes(hn::LoadU(d, plan_.tap_places.data()), at);
      return;
    }
#endif
#if HWY_TARGET <= HWY_AVX3
    if (in_two_) {
      const auto at = hn::IndicesFromVec(d, hn::And(tap, hn::Set(d, std::uint32_t{kTableSlack - 1})));
      const auto behind = hn::Gt(tap, hn::Set(d, std::uint32_t{kTableSlack - 1}));
      auto find = [&](const std::uint32_t* table) HWY_ATTR {
        return hn::IfThenElse(behind, hn::TableLookupLanes(hn::LoadU(d, table + kTableSlack), at),
                              hn::TableLookupLanes(hn::LoadU(d, table), at));
      };
      offset = find(plan_.tap_offsets.data());
      place = find(plan_.tap_places.data());
      return;
    }
#endif
    auto size = [&](const std::uint32_t* table, std::uint32_t all) HWY_ATTR {
      if (table == nullptr) return hn::Set(d, all);
      return job_.one_column ? hn::Set(d, *table) : hn::LoadU(d, table + i);
    };
    const V line = hn::ShiftRight<kTapShift>(hn::Mul(tap, size(job_.wide_magics, width_magic_)));
    const V x = hn::Sub(tap, hn::Mul(line, size(job_.wides, width_)));
    const V z = hn::ShiftRight<kTapShift>(hn::Mul(line, size(job_.high_magics, height_magic_)));
    const V y = hn::Sub(line, hn::Mul(z, size(job_.highs, height_)));
    offset =
        hn::Add(hn::Add(hn::Mul(z, hn::Set(d, slice_)), hn::Mul(y, hn::Set(d, row_))), hn::Mul(x, hn::Set(d, column_)));
    place = hn::Or(hn::Or(hn::ShiftLeft<16>(z), hn::ShiftLeft<8>(y)), x);
    place = hn::IfThenElse(hn::Eq(tap, unknown), hn::Set(d, kNowhere), place);
  }

 private:
  static_assert(kTabledTaps <= 4096);  // see tap_magic

  const ScatterPlan& plan_;
  const LocateJob& job_;
  std::uint32_t unknown_;
  bool in_registers_, in_two_;  // few taps are looked up, in one vector or two
  std::uint32_t width_, height_, width_magic_, height_magic_;
  std::uint32_t column_, row_, slice_;  // steps in the plane
};

/// Taps that have tables. What a window's clipping leaves of it is one comparison of the four bytes that TapPlaces gives.
template <bool kOneColumn>
bool LocateTabledTaps(const ScatterPlan& plan, const LocateJob& job) {
  const hn::ScalableTag<std::uint32_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const bool whole_planes = !plan.rows.empty();  // whose tables know everything
  auto rows = [&](std::int64_t value) { return hn::Set(d, whole_planes ? 0 : static_cast<std::uint32_t>(value)); };
  const auto origin = rows(first_line(plan.problem, job) * plan.problem.axis[2].input - job.base);
  const auto skipped = rows(skipped_byte(job.depth) << 16 | skipped_byte(job.height) << 8);
  const auto limit = rows(last_byte(job.depth) << 16 | last_byte(job.height) << 8);
  const TapPlaces taps(plan, job);
  const auto nowhere = hn::Set(d, kNowhere);
  const Elements elements(plan, job);
  auto column = [&](const std::uint32_t* table, std::int64_t i)
                    HWY_ATTR { return kOneColumn ? hn::Set(d, *table) : hn::LoadU(d, table + i); };
  auto wrong = hn::Zero(d);
  for (std::int64_t i = 0; i < job.count; i += lanes) {  // whole vectors: tables and spots have room behind them
    const auto index = hn::LoadU(d, job.spots + i);
    auto offset = hn::Undefined(d), place = hn::Undefined(d);
    taps.Find(i, index, offset, place);
    const auto valid =
        BytesWithin(d, place, hn::Or(skipped, column(job.skips, i)), hn::Or(limit, column(job.limits, i)));
    auto fine = hn::Or(valid, hn::Eq(index, nowhere));
    if (i + lanes > job.count) fine = hn::Or(fine, hn::Not(hn::FirstN(d, static_cast<std::size_t>(job.count - i))));
    wrong = hn::Or(wrong, hn::IfThenZeroElse(fine, nowhere));
    elements.Put(i, hn::Add(hn::Add(origin, column(job.origins, i)), offset), valid);
  }
  return hn::AllTrue(d, hn::Eq(wrong, hn::Zero(d)));
}

/// The same for whole planes and deep windows of few taps, a byte each, where all of them are taps of their windows: false where one is not, or is "none".
bool LocateFewTaps(const ScatterPlan& plan, const LocateJob& job) {
  const hn::ScalableTag<std::uint32_t> d;
  const hn::Rebind<std::uint8_t, decltype(d)> narrow;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if (job.count < lanes) return false;
  const auto* indices = static_cast<const std::uint8_t*>(job.indices);
  const TapPlaces taps(plan, job);
  const auto most = hn::Set(d, std::uint32_t{kFewTaps}), one = hn::Set(d, 1U), step = hn::Set(d, job.step);
  auto valid = one;
  for (std::int64_t next = 0; next < job.count; next += lanes) {
    const std::int64_t i = next + lanes <= job.count ? next : job.count - lanes;
    const auto tap = hn::Min(hn::PromoteTo(d, hn::LoadU(narrow, indices + i)), most);
    auto offset = hn::Undefined(d), place = hn::Undefined(d);
    taps.Find(i, tap, offset, place);
    valid = hn::And(valid, hn::Shr(hn::LoadU(d, job.left + i), tap));
    hn::StoreU(hn::Add(hn::LoadU(d, job.corners + i), hn::Mul(offset, step)), d, job.spots + i);
  }
  return hn::AllTrue(d, hn::Eq(valid, one));
}

#if HWY_TARGET != HWY_SCALAR
/// The same for all windows that FlatTaps knows.
bool LocateFlatTaps(const ScatterPlan& plan, const LocateJob& job) {
  const FlatTaps::D d;
  const hn::Half<FlatTaps::D> half;
  const hn::ScalableTag<std::uint32_t> wide;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if (job.count < lanes) return false;
  const bool whole_planes = !plan.rows.empty();
  const std::int64_t width = plan.problem.axis[2].input;
  const auto origin = hn::Set(wide, static_cast<std::uint32_t>(first_line(plan.problem, job) * width - job.base));
  const auto step = hn::Set(wide, job.step);
  const auto* begins = whole_planes ? job.corners : job.origins;
  const Elements elements(plan, job);
  FlatTaps flat(plan, job);
  for (std::int64_t next = 0; next < job.count; next += lanes) {
    const std::int64_t i = next + lanes <= job.count ? next : job.count - lanes;
    const auto windows = job.one_column ? FlatTaps::All(job, 0) : FlatTaps::Each(job, i);
    const auto taps = job.dtype == DType::u8 ? FlatTaps::Load(static_cast<const std::uint8_t*>(job.indices) + i)
                                             : FlatTaps::Load(static_cast<const std::uint16_t*>(job.indices) + i);
    const auto distance = flat.Distance(taps, windows);
    auto put = [&](std::int64_t at, hn::Vec<decltype(half)> part) HWY_ATTR {
      const auto begin = job.one_column ? hn::Set(wide, *begins) : hn::LoadU(wide, begins + at);
      const auto apart = hn::PromoteTo(wide, part);
      if (whole_planes) {
        hn::StoreU(hn::Add(begin, hn::Mul(apart, step)), wide, job.spots + at);
      } else {
        elements.Put(at, hn::Add(origin, hn::Add(begin, apart)), hn::Eq(begin, begin));
      }
    };
    put(i, hn::LowerHalf(half, distance));
    put(i + lanes / 2, hn::UpperHalf(half, distance));
  }
  return flat.AreTaps();
}
#endif

/// Taps of windows too large for tables.
template <class Windows>
bool LocateTaps(const ScatterPlan& plan, const LocateJob& job, const Windows& windows) {
  const Axis* axis = plan.problem.axis;
  const bool even = axis[2].rule == WindowRule::sliding;
  const auto plane_width = static_cast<std::uint32_t>(axis[2].input),
             plane_height = static_cast<std::uint32_t>(axis[1].input);
  const auto whole_h = static_cast<std::uint32_t>(job.height.whole);
  const auto deep = static_cast<std::uint32_t>(job.depth.count), high = static_cast<std::uint32_t>(job.height.count);
  const auto first_d = static_cast<std::uint32_t>(job.depth.first),
             first_h = static_cast<std::uint32_t>(job.height.first);
  const auto skipped_d = static_cast<std::uint32_t>(job.depth.skipped),
             skipped_h = static_cast<std::uint32_t>(job.height.skipped);
  const std::uint32_t step_d = plan.step[0], step_h = plan.step[1], step_w = plan.step[2];
  const auto base = static_cast<std::uint32_t>(job.base);
  std::uint32_t* HWY_RESTRICT spots = job.spots;
  std::uint32_t wrong = 0;
  for (std::int64_t i = 0; i < job.count; ++i) {
    const std::uint32_t index = spots[i];
    const std::uint32_t tap = index < kBeyond ? index : kBeyond;
    const std::uint32_t whole_w = even ? static_cast<std::uint32_t>(axis[2].kernel) : windows.TapsOf(i);
    const std::uint32_t lines = tap / (whole_w == 0 ? 1 : whole_w);
    const std::uint32_t slices = lines / (whole_h == 0 ? 1 : whole_h);
    const std::uint32_t w = tap - lines * whole_w - windows.SkippedOf(i), h = lines - slices * whole_h - skipped_h,
                        d = slices - skipped_d;
    const bool valid = w < windows.TapsOf(i) && h < high && d < deep;
    const std::uint32_t flat =
        ((first_d + d * step_d) * plane_height + first_h + h * step_h) * plane_width + windows.FirstOf(i) + w * step_w;
    wrong |= valid || index == kNowhere ? 0U : 1U;
    spots[i] = valid ? flat - base : kNowhere;
  }
  return wrong == 0;
}

/// Spots that are positions so far.
void ToElements(const ScatterPlan& plan, const LocateJob& job) {
  const hn::ScalableTag<std::uint32_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Elements elements(plan, job);
  for (std::int64_t i = 0; i < job.count; i += lanes) {
    const auto spot = hn::LoadU(d, job.spots + i);
    elements.Put(i, spot, hn::Eq(spot, spot));
  }
}

template <class Windows>
bool LocateByDivision(const ScatterPlan& plan, const LocateJob& job, const Windows& windows) {
  if (plan.problem.index_kind == IndexKind::window) {
    return LocateTaps(plan, job, windows);
  }
  const bool deep = plan.problem.axis[0].input > 1;
  if (plan.dilated) return LocateFlat<true, true>(plan, job, windows);
  return deep ? LocateFlat<false, true>(plan, job, windows) : LocateFlat<false, false>(plan, job, windows);
}

template <class Windows>
bool LocateIn(const ScatterPlan& plan, const LocateJob& job, const Windows& windows) {
  const std::int64_t rows = job.depth.count * job.height.count;
  if (plan.problem.index_kind != IndexKind::window && rows > 0) {
    if (plan.step[2] == 1 && rows <= kTriedRows) return LocateInRows(plan, job, windows);
    if (plan.step[2] > 1 && rows * plan.problem.axis[2].kernel <= kTriedRows) return LocateTapByTap(plan, job, windows);
  }
  const bool valid = LocateByDivision(plan, job, windows);
  ToElements(plan, job);
  return valid;
}

bool Load(const LocateJob& job) {
  switch (job.dtype) {
    case DType::i64: return LoadIndices<std::int64_t>(job.indices, job.count, job.spots);
    case DType::i32: return LoadIndices<std::int32_t>(job.indices, job.count, job.spots);
    case DType::u8: return LoadIndices<std::uint8_t>(job.indices, job.count, job.spots);
    case DType::u16: return LoadIndices<std::uint16_t>(job.indices, job.count, job.spots);
    default: return LoadIndices<std::uint32_t>(job.indices, job.count, job.spots);
  }
}

bool Locate(const ScatterPlan& plan, const LocateJob& job) {
  if (!plan.left.empty() && LocateFewTaps(plan, job)) return true;
#if HWY_TARGET != HWY_SCALAR
  if (!plan.flat_skips.empty() && LocateFlatTaps(plan, job)) return true;
#endif
  if (!Load(job)) {
    for (std::int64_t i = 0; i < job.count; ++i) job.spots[i] = kNowhere;
    ToElements(plan, job);
    return false;
  }
  if (!plan.origins.empty()) {
    return job.one_column ? LocateTabledTaps<true>(plan, job) : LocateTabledTaps<false>(plan, job);
  }
  if (!plan.rows.empty()) return LocateInPlanes(plan, job);
  if (job.one_column) {
    return LocateIn(plan, job, RowWindows<true>{nullptr, nullptr, nullptr, *job.first, *job.taps, *job.skipped});
  }
  return LocateIn(plan, job, RowWindows<false>{job.first, job.taps, job.skipped, 0, 0, 0});
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(Locate);
LocateFn locate(std::size_t target) { return HWY_DISPATCH_TABLE(Locate)[target]; }
}  // namespace cenote::simd
#endif
