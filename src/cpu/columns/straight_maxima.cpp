// Maxima of columns of many channels, each output straight from its taps, with indices and without: few instructions besides a load and a maximum for each tap.
#include "cpu/columns/straight_columns.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/columns/straight_maxima.cpp"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>

#include "cpu/columns/straight_columns-inl.h"
#include "cpu/vectors/noticed_nan-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

/// Where NaN are noticed for so many vectors: in several places, so that none waits for another; without masks they take registers.
template <int kVectors>
inline constexpr int kNoticing = HWY_MAX_BYTES < 64 || kVectors < 4 ? 1 : smaller(kVectors / 2, 4);

/// `elements` of an output by the rule: where there is a NaN.
HWY_NOINLINE inline void MaxAgain(const StraightRun<float>& run, const float* at, std::int64_t elements, float* to) {
  const ColumnLanes d;
  for (std::int64_t x = 0; x < elements; x += SingleChannels::kElements) {
    Accumulator<ColumnLanes, Fold::max, false> best{hn::Set(d, IdentityOf<Fold::max, float>())};
    ForRows(run, at + x, [&](const float* from) HWY_ATTR {
      for (std::int64_t t = 0; t < run.taps; ++t) best.Next(d, hn::LoadU(d, from + t * run.step), nullptr);
    });
    hn::StoreU(best.value, d, to + x);
  }
}

/// kVectors vectors of an output, in row-major order, so that ties come out right by themselves; NaN, which the instruction for a maximum loses, is only
/// noticed, two vectors at a time.
/// Where there are fewer than registers hold, what is read next, `ahead` elements on, or what is behind it (see kStraightAheadBytes), is asked for early. (Two threads, without and with: 4x4/4 over 2 x 128 x 128 x 64 40.4 us and 37.8, 2x2/2 over
/// 100 x 14 x 14 x 128 60.6 and 57.0, over 64 x 32 x 32 x 64 99.8 and 99.4; with as many as registers hold, over 8 x 28 x 28 x 256, 36.2 and 37.6.)
template <int kVectors>
HWY_INLINE void MaxOfTaps(const StraightRun<float>& run, const float* at, std::int64_t ahead, float* to) {
  const ColumnLanes d;
  constexpr int kPlaces = kNoticing<kVectors>;
  NoticedNaN<ColumnLanes> noticed[kPlaces];
  ColumnVector best[kVectors];
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) best[v] = hn::Set(d, IdentityOf<Fold::max, float>());
  const std::int64_t taps = run.taps, step = run.step;
  ForRows(run, at, [&](const float* from) HWY_ATTR CENOTE_ALWAYS_INLINE {
    for (std::int64_t t = 0; t < taps; ++t, from += step) {
      asm("" : "+r"(from));  // one address for all
      if constexpr (kVectors < SingleChannels::kMost) {
        CENOTE_UNROLL
        for (int v = 0; v < kVectors; v += 64 / HWY_MAX_BYTES)
          hwy::Prefetch(from + ahead + v * SingleChannels::kElements);
      }
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; v += 2) {
        const auto a = hn::LoadU(d, from + v * SingleChannels::kElements);
        const auto b = v + 1 < kVectors ? hn::LoadU(d, from + (v + 1) * SingleChannels::kElements) : a;
        noticed[v / 2 % kPlaces].Show(a, b);
        best[v] = hn::Max(a, best[v]);
        if (v + 1 < kVectors) best[v + 1] = hn::Max(b, best[v + 1]);
      }
    }
  });
  bool nan = false;
  CENOTE_UNROLL
  for (int v = 0; v < kPlaces; ++v) nan = nan || noticed[v].any();
  if (HWY_UNLIKELY(nan)) return MaxAgain(run, at, kVectors * SingleChannels::kElements, to);
  SingleChannels::Store(best, run.streams, to);
}

HWY_NOINLINE inline void MaxOfRun(const StraightRun<float>& run) {
  const float* at = run.source;
  float* target = run.target;
  for (std::int64_t o = 0; o < run.outputs; ++o, at += run.apart, target += run.channels) {
    ForStretches<SingleChannels::kMost, SingleChannels::kElements>(
        run.channel, run.end, [&](auto vectors, std::int64_t c) HWY_ATTR CENOTE_ALWAYS_INLINE {
          const std::int64_t done = c + vectors() * SingleChannels::kElements;
          MaxOfTaps<vectors()>(run, at + c, (done < run.end ? done - c : run.apart + run.channel - c) + run.ahead,
                               target + c);
        });
  }
}

/// The same where maxima have indices, which are codes of 32 bits first: of the first tap, and from one to the next. Halves are converted as they are read.
template <class T>
struct IndexedRun {
  StraightRun<T> values;
  const StraightColumnsPlan& plan;
  char* indices;
  std::int64_t index_bytes;  // of one
  RunCodes codes;
  bool stream_indices;
  bool fetches;  // the next window is asked for early
};

/// Calls work(tap, code) for the taps of a window that begins `at`, in order.
template <class T, class Work>
HWY_INLINE void ForTaps(const IndexedRun<T>& run, const T* at, std::uint32_t code, const Work& work) {
  const std::int64_t taps = run.values.taps, step = run.values.step;
  const std::uint32_t tap_code = run.codes.tap;
  for (std::int64_t z = 0; z < run.values.slices; ++z, at += run.values.slice_step, code += run.codes.slice) {
    const T* row = at;
    std::uint32_t row_code = code;
    for (std::int64_t y = 0; y < run.values.rows; ++y, row += run.values.row_step, row_code += run.codes.row) {
      const T* from = row;
      std::uint32_t c = row_code;
      for (std::int64_t t = 0; t < taps; ++t, from += step, c += tap_code) work(from, static_cast<std::int32_t>(c));
    }
  }
}

using ColumnCodes = hn::RebindToSigned<ColumnLanes>;

/// Vectors of codes as indices. What kind they are is asked here, so that all have one loop: as fast, and a third of the code.
template <class T, int kVectors>
HWY_INLINE void StoreIndices(const hn::Vec<ColumnCodes> (&codes)[kVectors], const IndexedRun<T>& run, char* to) {
  const ColumnCodes d;
  const hn::Half<ColumnCodes> half;
  const hn::Rebind<std::int64_t, decltype(half)> d64;
  auto for_halves = [&](const auto& store) HWY_ATTR CENOTE_ALWAYS_INLINE {
    auto* at = reinterpret_cast<std::int64_t*>(to);
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v, at += SingleChannels::kElements) {
      store(hn::PromoteTo(d64, hn::LowerHalf(half, codes[v])), at);
      store(hn::PromoteTo(d64, hn::UpperHalf(half, codes[v])), at + hn::Lanes(d64));
    }
  };
  if (run.index_bytes == 8) {
    if (run.stream_indices)
      return for_halves([&](auto v, std::int64_t* at) HWY_ATTR CENOTE_ALWAYS_INLINE { hn::Stream(v, d64, at); });
    return for_halves([&](auto v, std::int64_t* at) HWY_ATTR CENOTE_ALWAYS_INLINE { hn::StoreU(v, d64, at); });
  }
  if (run.index_bytes == 4) {
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v)
      hn::StoreU(codes[v], d, reinterpret_cast<std::int32_t*>(to) + v * SingleChannels::kElements);
    return;
  }
  const hn::Rebind<std::uint8_t, ColumnCodes> narrow;
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v)
    hn::StoreU(hn::DemoteTo(narrow, codes[v]), narrow,
               reinterpret_cast<std::uint8_t*>(to) + v * SingleChannels::kElements);
}

/// A vector of values each of which a T can hold: nothing is rounded.
template <class T>
HWY_INLINE void StoreValues(ColumnVector values, bool streams, T* to) {
  const RoundedTag<T, ColumnLanes> d;
  auto* at = reinterpret_cast<RoundedLane<T>*>(to);
  hn::Vec<decltype(d)> elements;
  if constexpr (std::is_same_v<T, bf16>) {
    const hn::RebindToUnsigned<ColumnLanes> words;
    elements = hn::TruncateTo(d, hn::ShiftRight<16>(hn::BitCast(words, values)));
  } else {
    elements = RoundVector<T>(ColumnLanes(), values);
  }
  if (streams) {
    hn::Stream(elements, d, at);
  } else {
    hn::StoreU(elements, d, at);
  }
}

/// As MaxAgain.
template <class T>
HWY_NOINLINE void IndexedMaxAgain(const IndexedRun<T>& run, const T* at, std::uint32_t code, std::int64_t elements,
                                  T* to, char* indices) {
  const ColumnLanes d;
  for (std::int64_t x = 0; x < elements; x += SingleChannels::kElements) {
    Accumulator<ColumnLanes, Fold::max_indexed, false> best{hn::Set(d, IdentityOf<Fold::max, float>()),
                                                            hn::Set(ColumnCodes(), static_cast<std::int32_t>(code))};
    ForTaps(run, at + x, code, [&](const T* from, std::int32_t c) HWY_ATTR {
      best.Next(d, LoadAs(d, from), [&]() HWY_ATTR { return hn::Set(ColumnCodes(), c); });
    });
    StoreValues(best.value, false, to + x);
    const hn::Vec<ColumnCodes> codes[1] = {best.code};
    StoreIndices(codes, run, indices + x * run.index_bytes);
  }
}

/// kVectors vectors of an output and the codes of their first maxima. NaN as in MaxOfTaps. The next window is asked for
/// early where results go around the caches and windows share nothing. (Two threads, memory that others use as
/// well, 8-byte indices: 2x2/2 over 2 x 136 x 136 x 256 1525 us without and 1062 with, over 8 x 56 x 56 x 256 659 and 555;
/// but 3x3/2 over 112 x 112 x 64, whose windows share rows, 568 and 698: there rows are, see FetchRows.)
template <int kVectors, class T>
HWY_INLINE void IndexedMaxOfTaps(const IndexedRun<T>& run, const T* at, std::int64_t ahead, std::uint32_t first_code,
                                 T* to, char* indices) {
  const ColumnLanes d;
  const ColumnCodes di;
  constexpr int kPlaces = kNoticing<kVectors>;
  constexpr auto kLineElements = static_cast<std::int64_t>(64 / sizeof(T));
  NoticedNaN<ColumnLanes> noticed[kPlaces];
  ColumnVector best[kVectors];
  hn::Vec<ColumnCodes> codes[kVectors];
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    best[v] = hn::Set(d, IdentityOf<Fold::max, float>());
    codes[v] = hn::Set(di, static_cast<std::int32_t>(first_code));  // an infinity below all is its window's first
  }
  const bool fetches = run.fetches;
  ForTaps(run, at, first_code, [&](const T* from, std::int32_t c) HWY_ATTR CENOTE_ALWAYS_INLINE {
    asm("" : "+r"(from));  // one address for all
    if (fetches) {
      CENOTE_UNROLL
      for (std::int64_t x = 0; x < kVectors * SingleChannels::kElements; x += kLineElements)
        hwy::Prefetch(from + ahead + x);
    }
    auto code = hn::Set(di, c);
    asm(""
        : "+v"(
            code.raw));  // spread once, not by each blend (3x3/1 over 160 x 160 x 64, f16, one thread: 2500 us, 2260 so)
    auto join = [&](int v, ColumnVector value) HWY_ATTR CENOTE_ALWAYS_INLINE {
      codes[v] = hn::IfThenElse(hn::RebindMask(di, hn::Gt(value, best[v])), code, codes[v]);
      best[v] = hn::Max(value, best[v]);
    };
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; v += 2) {
      const auto a = LoadAs(d, from + v * SingleChannels::kElements);
      const auto b = v + 1 < kVectors ? LoadAs(d, from + (v + 1) * SingleChannels::kElements) : a;
      noticed[v / 2 % kPlaces].Show(a, b);
      join(v, a);
      if (v + 1 < kVectors) join(v + 1, b);
    }
  });
  bool nan = false;
  CENOTE_UNROLL
  for (int v = 0; v < kPlaces; ++v) nan = nan || noticed[v].any();
  if (HWY_UNLIKELY(nan)) return IndexedMaxAgain(run, at, first_code, kVectors * SingleChannels::kElements, to, indices);
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) StoreValues(best[v], run.values.streams, to + v * SingleChannels::kElements);
  StoreIndices(codes, run, indices);
}

/// Asks for as much of the rows that outputs some rows on see first as lies over `bytes` of those that begin `at`.
HWY_INLINE void FetchRows(const StraightColumnsPlan& plan, std::int64_t slices, const void* at, std::int64_t bytes) {
  for (std::int64_t z = 0; z < slices; ++z) {
    // Numbers, for they may lie beyond the tensor.
    std::uintptr_t row = reinterpret_cast<std::uintptr_t>(at) +
                         static_cast<std::uintptr_t>(plan.fetch_ahead + z * plan.fetch_depth_pitch);
    for (std::int64_t y = 0; y < plan.fetch_rows; ++y, row += static_cast<std::uintptr_t>(plan.fetch_pitch)) {
      for (std::int64_t x = 0; x < bytes; x += 64)
        hwy::Prefetch(reinterpret_cast<const char*>(row + static_cast<std::uintptr_t>(x)));
    }
  }
}

template <class T>
HWY_NOINLINE void IndexedMaxOfRun(const IndexedRun<T>& run) {
  const StraightRun<T>& values = run.values;
  const T* at = values.source;
  T* target = values.target;
  char* indices = run.indices;
  std::uint32_t code = run.codes.first;
  const std::int64_t bytes = values.apart * static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t o = 0; o < values.outputs; ++o) {
    if (run.plan.fetch_ahead != 0) FetchRows(run.plan, values.slices, at, bytes);
    ForStretches<HWY_MAX_BYTES == 64 ? 8 : 4, SingleChannels::kElements>(
        values.channel, values.end, [&](auto vectors, std::int64_t c) HWY_ATTR CENOTE_ALWAYS_INLINE {
          const std::int64_t done = c + vectors() * SingleChannels::kElements;
          const std::int64_t ahead = (done < values.end ? done - c : values.apart + values.channel - c) + values.ahead;
          IndexedMaxOfTaps<vectors()>(run, at + c, ahead, code, target + c, indices + c * run.index_bytes);
        });
    at += values.apart;
    target += values.channels;
    indices += values.channels * run.index_bytes;
    code += run.codes.apart;
  }
}

/// See StraightColumnsFn.
void MaxOfColumns(const StraightColumnsPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                  char*) {
  ForStraightRuns<float>(plan, pointers, begin, end,
                         [](const StraightRun<float>& run, double, const RunPlace&) HWY_ATTR { MaxOfRun(run); });
}

template <class T>
void IndexedMaxOfColumns(const StraightColumnsPlan& plan, const RowPointers& pointers, std::int64_t begin,
                         std::int64_t end, char*) {
  const std::int64_t index_bytes = plan.index_bytes;
  const bool streams = index_bytes == 8 && plan.streams && reinterpret_cast<std::uintptr_t>(pointers.indices) % 64 == 0;
  ForStraightRuns<T>(
      plan, pointers, begin, end, [&](const StraightRun<T>& run, double, const RunPlace& place) HWY_ATTR {
        const RowTensor& t = plan.indices;
        const std::int64_t first =
            place.n * t.outer_major + place.od * t.depth + place.oh * t.height + place.alike.first * plan.channels;
        IndexedMaxOfRun<T>({run, plan, static_cast<char*>(pointers.indices) + first * index_bytes, index_bytes,
                            plan.codes.of(place.slices, place.rows, place.alike), streams,
                            streams && plan.fetch_ahead == 0 && run.apart >= run.taps * run.step});
      });
  if (streams) hwy::FlushStream();
}

StraightColumnsFn MaxOfColumnsOf(DType dtype) { return dtype == DType::f32 ? MaxOfColumns : nullptr; }

StraightColumnsFn IndexedMaxOfColumnsOf(DType dtype) {
  switch (dtype) {
    case DType::f32: return IndexedMaxOfColumns<float>;
    case DType::f16: return IndexedMaxOfColumns<f16>;
    case DType::bf16: return IndexedMaxOfColumns<bf16>;
    default: return nullptr;
  }
}

#else

StraightColumnsFn MaxOfColumnsOf(DType) { return nullptr; }
StraightColumnsFn IndexedMaxOfColumnsOf(DType) { return nullptr; }

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(MaxOfColumnsOf);
HWY_EXPORT(IndexedMaxOfColumnsOf);
StraightColumnsFn max_of_columns(std::size_t target, DType dtype) {
  return HWY_DISPATCH_TABLE(MaxOfColumnsOf)[target](dtype);
}
StraightColumnsFn indexed_max_of_columns(std::size_t target, DType dtype) {
  return HWY_DISPATCH_TABLE(IndexedMaxOfColumnsOf)[target](dtype);
}
}  // namespace cenote::simd
#endif
