// Planes in strips: which strips a plane is cut into, what a strip may read and write, and what becomes of its results.
#if defined(CENOTE_CPU_PLANES_STRIP_PLANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_PLANES_STRIP_PLANES_INL_H_
#undef CENOTE_CPU_PLANES_STRIP_PLANES_INL_H_
#else
#define CENOTE_CPU_PLANES_STRIP_PLANES_INL_H_
#endif

#include "cpu/planes/strips-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

/// Strips of keys, and again of values where keys cannot tell.
template <class T, class C>
struct KeyStrips {
  Strips<Fold::max, T, Key> keys;
  Strips<Fold::max, T, C> values;
  std::int64_t lanes;

  explicit KeyStrips(const StripPlan& plan) : keys(plan), values(plan), lanes(smaller(keys.lanes, values.lanes)) {}
  std::int64_t stored() const { return larger(keys.lanes, values.lanes); }

  void FoldPlanes(const StripPlan& plan, const Strip<T, C>& strip) const {
    if (plan.keys) {
      const StripDoubts doubts = keys.fold(plan, {.from = strip.from,
                                                  .end_row = plan.rows,
                                                  .first_codes = nullptr,
                                                  .room = strip.room,
                                                  .to = strip.to,
                                                  .codes = nullptr,
                                                  .planes = strip.planes});
      bool doubtful = doubts.nan;
      for (std::int64_t i = 0; doubts.zero && !doubtful && i < strip.planes; ++i)
        doubtful = HasMinusZeros(plan, strip.from + plan.left + i * plan.source_pitch, 0, plan.rows);
      if (!doubtful) return;
    }
    values.fold(plan, strip);
  }

  void FoldBand(const StripPlan& plan, const T* from, std::int64_t slice, std::int64_t first_row, std::int64_t end_row,
                const std::int32_t*, std::int64_t room, T* to, CodeOf<C>* codes) const {
    if (plan.keys) {
      const StripDoubts doubts =
          keys.FoldBand(plan, from, slice, first_row, end_row, nullptr, room, to, reinterpret_cast<Key*>(codes));
      if (!doubts.nan && (!doubts.zero || !HasMinusZeros(plan, from, first_row, end_row))) return;
    }
    values.FoldBand(plan, from, slice, first_row, end_row, nullptr, room, to, codes);
  }

  /// In the rows that windows of these output rows see.
  HWY_NOINLINE static bool HasMinusZeros(const StripPlan& plan, const T* from, std::int64_t first_row,
                                         std::int64_t end_row) {
    const hn::ScalableTag<Key> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const std::int64_t last = (end_row - 1) * plan.stride - plan.top + (plan.taps - 1) * plan.row_step;
    const std::int64_t begin = larger(0, first_row * plan.stride - plan.top) * plan.width;
    const std::int64_t end = smaller(plan.heights, last + 1) * plan.width;
    auto any = hn::MaskFromVec(hn::Zero(d));
    for (std::int64_t z = 0; z < plan.together; ++z) {
      const T* slice = from + z * plan.heights * plan.width;
      std::int64_t x = begin;
      for (; x + lanes <= end; x += lanes) any = hn::Or(any, Keys<T>::IsMinusZero(d, Keys<T>::Bits(d, slice + x)));
      for (; x < end; ++x) {
        if (to_float(slice[x]) == 0 && std::signbit(to_float(slice[x]))) return true;
      }
    }
    return !hn::AllFalse(d, any);
  }
};

/// Planes from `plane` on that one strip each covers, folded straight to where they belong, their codes to `codes`. Returns how many were.
template <Fold kFold, class T, class C, class AnyStrips>
std::int64_t FoldNarrowPlanes(const StripPlan& plan, const AnyStrips& strips, std::int64_t plane, std::int64_t end,
                              const T* source, T* target, CodeOf<C>* codes) {
  // Halves have no stores with masks: what a row leaves behind its end the next one overwrites, but for that of the last planes.
  constexpr bool kMasked = std::is_same_v<T, C>;
  const std::int64_t outputs = plan.rows * plan.columns;
  if (plan.streams || (kMasked && plan.staged) || plan.slices != 1 || plan.together != 1 || plan.kept != 0 ||
      plan.row_step != 1 || plan.columns > strips.lanes || plan.target_pitch != outputs ||
      plane * plan.source_pitch < plan.left) {
    return 0;
  }
  if (!kMasked) end -= ceil_div(strips.stored() - plan.columns, outputs);
  end = smaller(end, (plan.extent - plan.reach) / plan.source_pitch + 1);  // what is read must be there
  if (plan.powers.roots || !kMasked)
    end = smaller(end, plane + larger(1, kTileBytes / (outputs * static_cast<std::int64_t>(sizeof(T)))));
  if (kFold == Fold::max_indexed) end = smaller(end, plane + plan.narrow_planes);
  if (plan.extent < plan.reach || plane >= end) return 0;
  strips.FoldPlanes(plan, {.from = source + plane * plan.source_pitch - plan.left,
                           .slice = 0,
                           .column = 0,
                           .first_row = 0,
                           .end_row = plan.rows,
                           .first_codes = plan.first_codes.empty() ? nullptr : plan.first_codes.data(),
                           .room = (end - plane) * outputs,
                           .to = target + plane * outputs,
                           .codes = codes,
                           .planes = end - plane});
  if constexpr (kFold == Fold::sum && std::is_same_v<T, float>) {
    for (std::int64_t i = plane; plan.powers.roots && i < end; ++i)
      TakeRoots(plan.powers, 0, outputs, target + i * outputs);
  }
  return end - plane;
}

/// An output slice from the slices of its windows, in order.
template <Fold kFold, class C, class T>
void FoldSlices(const StripPlan& plan, const RowRange& depth, const T* slices, const CodeOf<C>* slice_codes,
                const std::int32_t* HWY_RESTRICT first_codes, std::int64_t room, T* HWY_RESTRICT to,
                CodeOf<C>* HWY_RESTRICT to_codes) {
  const hn::ScalableTag<C> d;
  const hn::RebindToSigned<decltype(d)> di;
  using Code = CodeOf<C>;
  const std::int64_t count = plan.rows * plan.columns;
  std::int64_t places[kRowBlock];
  for (std::int64_t z = 0; z < depth.count; ++z) places[z] = (depth.first + z) % plan.kept * plan.slice_pitch;
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    Accumulator<decltype(d), kFold, false> a;
    a.First(d, hn::Set(d, IdentityOf<kFold, C>()),
            [&]() HWY_ATTR { return first_codes != nullptr ? LoadFirstCodes(di, first_codes + i) : hn::Zero(di); });
    for (std::int64_t z = 0; z < depth.count; ++z) {
      const std::int64_t at = places[z] + i;
      auto code = [&]() HWY_ATTR {
        const std::int64_t step = plan.flat ? 0 : (depth.skipped + z) * plan.taps * plan.taps;
        return hn::Add(hn::LoadU(di, slice_codes + at), hn::Set(di, static_cast<Code>(step)));
      };
      const auto v = LoadAs(d, slices + at);
      if (z == 0 && first_codes == nullptr) {
        a.First(d, v, code);
      } else {
        a.Next(d, v, code);
      }
    }
    StoreUpTo(d, a.value, room - i, to + i);
    if constexpr (kFold == Fold::max_indexed) hn::StoreU(a.code, di, to_codes + i);
  }
}

/// A slice, or those that are folded together, with room around what output rows [first_row, end_row) see of it: itself, or a copy where vectors
/// would reach beyond the tensor, of those rows or of all that is folded together.
template <class T>
const T* ReadableSlice(const StripPlan& plan, const T* source, std::int64_t plane, std::int64_t z,
                       std::int64_t first_row, std::int64_t end_row, char* scratch) {
  const std::int64_t slice = plan.heights * plan.width, at = plane * plan.source_pitch + z * slice;
  if (at >= plan.left && at + plan.reach <= plan.extent) return source + at;
  std::int64_t first = larger(0, first_row * plan.stride - plan.top);
  std::int64_t end =
      smaller(plan.heights, (end_row - 1) * plan.stride - plan.top + (plan.taps - 1) * plan.row_step + 1);
  const std::int64_t last = at + (plan.together - 1) * slice + (end - 1) * plan.width;
  if (at + first * plan.width >= plan.left && last + plan.row_reach <= plan.extent) return source + at;
  if (plan.together > 1) {
    first = 0;
    end = plan.together * plan.heights;
  }
  T* packed = reinterpret_cast<T*>(scratch + plan.packed_at) + plan.left;
  std::memcpy(static_cast<void*>(packed), source + at + first * plan.width,
              static_cast<std::size_t>((end - first) * plan.width) * sizeof(T));
  return packed - first * plan.width;
}

/// `count` results, where they are not in the tensors yet.
template <class T, class Code>
void PutResults(const StripPlan& plan, const T* values, T* target, std::int64_t count, const Code* codes, void* indices,
                std::int64_t index_at, Writers& writers) {
  if (plan.streams) {
    writers.values.Write(values, target, count);
  } else if (values != target) {
    std::memcpy(static_cast<void*>(target), values, static_cast<std::size_t>(count) * sizeof(T));
  }
  auto put = [&](auto* to) HWY_ATTR {
    if constexpr (sizeof(*to) == 8) {
      if (plan.streams) return writers.indices.Write(codes, to + index_at, count);
    }
    StoreAs(codes, to + index_at, count);
  };
  if (indices != nullptr) WithIndexType(plan.index_dtype, indices, put);
}

template <Fold kFold, class T, class C>
void FoldPlanesInStrips(const StripPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                        char* scratch) {
  using Code = CodeOf<C>;
  constexpr std::int64_t kNoEnd = std::int64_t{1} << 40;
  T* const staged = reinterpret_cast<T*>(scratch + plan.result_at);
  T* const slices = reinterpret_cast<T*>(scratch + plan.slices_at);
  Code* const slice_codes = reinterpret_cast<Code*>(scratch + plan.slice_codes_at);
  Code* const codes = reinterpret_cast<Code*>(scratch + plan.codes_at);
  const std::int64_t slice = plan.rows * plan.columns, outputs = plan.slices * slice;
  const std::conditional_t<kFold == Fold::max && kIsHalf<T>, KeyStrips<T, C>, Strips<kFold, T, C>> strips(plan);
  const bool puts = plan.staged || pointers.indices != nullptr;
  Writers writers;
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t plane = unit / plan.parts, part = unit % plan.parts;
    const T* source = static_cast<const T*>(pointers.source);
    T* const results = static_cast<T*>(pointers.target);
    const std::int64_t narrow =
        plan.parts > 1 ? 0 : FoldNarrowPlanes<kFold, T, C>(plan, strips, plane, end, source, results, codes);
    if (narrow > 0) {
      T* const first = results + plane * outputs;
      if (pointers.indices != nullptr)
        PutResults(plan, first, first, narrow * outputs, codes, pointers.indices, plane * plan.index_pitch, writers);
      unit += narrow - 1;
      continue;
    }
    T* target = results + plane * plan.target_pitch;
    auto readable = [&](std::int64_t z, std::int64_t row, std::int64_t end_row) {
      return ReadableSlice(plan, source, plane, z, row, end_row, scratch);
    };
    const std::int64_t first_row = plan.rows * part / plan.parts, part_end = plan.rows * (part + 1) / plan.parts;
    auto result_at = [&](std::int64_t at) { return plan.staged ? staged : target + at; };
    // What is behind a part's rows of a slice belongs to another, which may be done.
    auto room_at = [&](std::int64_t at) {
      if (plan.staged) return kNoEnd;
      return (plan.parts > 1 ? at / slice * slice + part_end * plan.columns : outputs) - at;
    };
    auto put = [&](std::int64_t at, std::int64_t count) {
      if (!puts) return;
      PutResults(plan, result_at(at), target + at, count, codes, pointers.indices, plane * plan.index_pitch + at,
                 writers);
    };
    std::int64_t last_kept = -1;
    for (std::int64_t o = 0; o < plan.slices; ++o) {
      const RowRange& depth = plan.depth_rows[static_cast<std::size_t>(o)];
      const std::int32_t* first_codes = plan.first_codes.empty() ? nullptr : plan.first_codes.data();
      if (plan.kept == 0) {
        for (std::int64_t row = first_row; row < part_end; row += plan.band) {
          const std::int64_t end_row = smaller(row + plan.band, part_end), at = o * slice + row * plan.columns;
          const T* from = readable(depth.first, row, end_row);
          strips.FoldBand(plan, from, depth.first, row, end_row, first_codes != nullptr ? first_codes + at : nullptr,
                          room_at(at), result_at(at), codes);
          if constexpr (kFold == Fold::sum && std::is_same_v<T, float>) {
            if (plan.powers.roots)
              TakeRoots(plan.powers, row * plan.columns, (end_row - row) * plan.columns, result_at(at));
          }
          put(at, (end_row - row) * plan.columns);
        }
        continue;
      }
      if constexpr (kFold != Fold::sum) {
        for (std::int64_t z = larger(depth.first, last_kept + 1); z < depth.first + depth.count; ++z) {
          const std::int64_t at = z % plan.kept * plan.slice_pitch;
          for (std::int64_t row = 0; row < plan.rows; row += plan.band) {
            const std::int64_t end_row = smaller(row + plan.band, plan.rows), row_at = at + row * plan.columns;
            const T* from = readable(z, row, end_row);
            strips.FoldBand(plan, from, z, row, end_row, nullptr, kNoEnd, slices + row_at, slice_codes + row_at);
          }
          last_kept = z;
        }
        const std::int64_t at = o * slice;
        FoldSlices<kFold, C>(plan, depth, slices, slice_codes, first_codes != nullptr ? first_codes + at : nullptr,
                             room_at(at), result_at(at), codes);
        put(at, slice);
      }
    }
  }
}

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
