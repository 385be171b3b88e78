// The backward of Lp of norm 2 where no two windows share an element, in one pass: a window's sum of squares again, in the order of the forward, what each of
// its elements is multiplied by, and those elements once more while they are in L1.
#include "cpu/gradients/norm_gradients.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/gradients/norm_gradients.cpp"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>

#include "cpu/planes/bands-inl.h"
#include "cpu/vectors/paced-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

using Lanes = hn::ScalableTag<float>;
using Vector = hn::Vec<Lanes>;
constexpr std::int64_t kLanes = hn::MaxLanes(Lanes());

/// As many lanes as there are elements, zeros in the others.
HWY_INLINE Vector LoadFirst(const float* from, std::int64_t count) {
  const Lanes d;
  if (HWY_LIKELY(count >= kLanes)) return hn::LoadU(d, from);
  return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(larger(0, count))), d, from);
}

/// What windows' elements are multiplied by, but for 2 * x: g * (K / n) / 2 / sqrt(v), where v is the sum of squares * K / n; 0 where that is.
HWY_INLINE Vector Share(Vector sum, Vector gradient, Vector taps, float whole, bool cut_off) {
  const Lanes d;
  const auto full = hn::Set(d, whole);
  auto share = hn::Set(d, 0.5F);
  if (cut_off) {
    sum = hn::IfThenElse(hn::Eq(taps, full), sum, hn::Mul(hn::Div(sum, taps), full));
    share = hn::Mul(share, hn::Div(full, taps));
  }
  const auto h = hn::Mul(hn::Mul(gradient, share), hn::Div(hn::Set(d, 1.0F), hn::Sqrt(sum)));
  const auto zero = hn::Zero(d);
  return hn::Add(zero, hn::IfThenElse(hn::Eq(sum, zero), zero, h));  // no -0, as where several are added up
}

HWY_INLINE Vector TimesSlope(Vector share, Vector x) { return hn::Mul(share, hn::Mul(hn::Set(Lanes(), 2.0F), x)); }

/// Elements that no window sees: a 0 that has their sign, or NaN.
HWY_NOINLINE inline void PutUnseen(const float* x, std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; i += kLanes)
    StoreFirst(Lanes(), TimesSlope(hn::Zero(Lanes()), LoadFirst(x + i, count - i)), count - i, to + i);
}

/// The rows of a window, and where their gradients go.
struct NormRows {
  const float* from[kRowBlock];
  float* to[kRowBlock];
  std::int64_t count;
};

/// Which output of a vector sees each of kStride vectors of columns, and as which tap.
template <int kStride>
struct SeenColumns {
  alignas(64) std::int32_t output[kStride * kLanes], tap[kStride * kLanes];

  constexpr SeenColumns() : output(), tap() {
    for (int i = 0; i < kStride * static_cast<int>(kLanes); ++i) {
      output[i] = i / kStride;
      tap[i] = i % kStride;
    }
  }
};
template <int kStride>
inline constexpr SeenColumns<kStride> kSeenColumns{};

/// A row of outputs, and every column of the input rows that it sees. `ahead`: what is asked for meanwhile, a number; 0: nothing is.
template <int kStride>
HWY_NOINLINE void PutRowGradients(const NormGradientsPlan& plan, const NormRows& rows, const float* gradient,
                                  float row_taps, std::uintptr_t ahead, WaitingLines& lines) {
  const Lanes d;
  const hn::RebindToSigned<Lanes> di;
  const Apart<kStride, Lanes> apart(d);
  WaitingLines waiting = lines;
  const SeenColumns<kStride>& seen = kSeenColumns<kStride>;
  decltype(hn::SetTableIndices(d, seen.output)) seen_by[kStride];
  hn::Mask<Lanes> inside[kStride];
  CENOTE_UNROLL
  for (int v = 0; v < kStride; ++v) {
    seen_by[v] = hn::SetTableIndices(d, seen.output + v * kLanes);
    const auto tap = hn::Load(di, seen.tap + v * kLanes);
    inside[v] = hn::RebindMask(d, hn::Lt(tap, hn::Set(di, static_cast<std::int32_t>(plan.wide))));
  }
  const std::int64_t width = plan.width, count = rows.count, wide = plan.wide;
  const std::int64_t step_lines = ceil_div(count * kStride * kLanes * static_cast<std::int64_t>(sizeof(float)), kLine);
  for (std::int64_t o = 0, x = 0; x < width; o += kLanes, x += kStride * kLanes) {
    Vector sums[kStride];
    CENOTE_UNROLL
    for (int v = 0; v < kStride; ++v) sums[v] = hn::Zero(d);
    for (std::int64_t y = 0; y < count; ++y) {
      CENOTE_UNROLL
      for (int v = 0; v < kStride; ++v) {
        const auto one = LoadFirst(rows.from[y] + x + v * kLanes, width - x - v * kLanes);
        sums[v] = hn::Add(sums[v], hn::Mul(one, one));
      }
    }
    if (ahead != 0) {
      for (std::int64_t line = 0; line < step_lines; ++line, ahead += kLine)
        hwy::Prefetch(reinterpret_cast<const char*>(ahead));
    }
    auto sum = hn::Add(hn::Zero(d), apart.template Get<0>(d, sums));
    if (wide > 1) sum = hn::Add(sum, apart.template Get<1>(d, sums));
    if constexpr (kStride > 2) {
      if (wide > 2) sum = hn::Add(sum, apart.template Get<2>(d, sums));
      if (wide > 3) sum = hn::Add(sum, apart.template Get<3>(d, sums));
    }
    auto taps = hn::Zero(d);
    if (plan.cut_off) taps = hn::Mul(hn::Set(d, row_taps), LoadFirst(plan.column_taps.data() + o, plan.columns - o));
    const auto share = Share(sum, LoadFirst(gradient + o, plan.columns - o), taps, plan.whole, plan.cut_off);
    const auto has_output = hn::FirstN(d, static_cast<std::size_t>(larger(0, plan.columns - o)));
    const auto real = hn::IfThenElseZero(has_output, share);
    CENOTE_UNROLL
    for (int v = 0; v < kStride; ++v) {
      const std::int64_t at = x + v * kLanes;
      if (at >= width) break;
      const auto all = hn::IfThenElseZero(inside[v], hn::TableLookupLanes(real, seen_by[v]));
      for (std::int64_t y = 0; y < count; ++y)
        StoreFirst(d, TimesSlope(all, LoadFirst(rows.from[y] + at, width - at)), width - at, rows.to[y] + at);
    }
    waiting.Write(step_lines);
  }
  lines = waiting;
}

void PlanarNormGradients(const NormGradientsPlan& plan, const RowPointers& pointers, std::int64_t begin,
                         std::int64_t end, char* scratch) {
  const auto put = plan.apart == 2 ? PutRowGradients<2> : PutRowGradients<4>;
  PacedRows target(plan.paced, scratch);
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t o = unit % plan.rows, z = unit / plan.rows % plan.slices, plane = unit / plan.rows / plan.slices;
    const std::int64_t major = plane / plan.minors, minor = plane % plan.minors;
    const auto offset = [&](const RowTensor& t, std::int64_t d, std::int64_t h) {
      return major * t.outer_major + minor * t.outer_minor + d * t.depth + h * t.height;
    };
    const std::int64_t first = o * plan.stride, last = o + 1 == plan.rows ? plan.heights : first + plan.stride;
    const std::int64_t seen = smaller(plan.high, plan.heights - first);
    const auto* x = static_cast<const float*>(pointers.input) + offset(plan.input, z * plan.deep, first);
    auto* to = static_cast<float*>(pointers.target) + offset(plan.target, z * plan.deep, first);
    NormRows rows;
    rows.count = 0;
    float* block = to;
    if (plan.paced.streams) {
      target.GoTo(to);
      target.Reserve(seen);
      block = reinterpret_cast<float*>(target.Take(seen));
    }
    for (std::int64_t d = 0; d < plan.deep; ++d) {
      for (std::int64_t y = 0; y < seen; ++y, ++rows.count) {
        rows.from[rows.count] = x + d * plan.input.depth + y * plan.input.height;
        rows.to[rows.count] = block + d * plan.target.depth + y * plan.target.height;
      }
    }
    const std::uintptr_t ahead =
        plan.fetches ? reinterpret_cast<std::uintptr_t>(x + plan.stride * plan.input.height) : 0;
    const float row_taps =
        plan.cut_off ? plan.row_taps[0][static_cast<std::size_t>(z)] * plan.row_taps[1][static_cast<std::size_t>(o)]
                     : 0;
    put(plan, rows, static_cast<const float*>(pointers.source) + offset(plan.source, z, o), row_taps, ahead,
        target.waiting);
    for (std::int64_t d = 0; d < plan.deep; ++d) {
      for (std::int64_t y = seen; y < last - first; ++y) {
        float* row = to + d * plan.target.depth + y * plan.target.height;
        if (plan.paced.streams) {
          target.Reserve(1);
          row = reinterpret_cast<float*>(target.Take(1));
        }
        PutUnseen(x + d * plan.input.depth + y * plan.input.height, plan.width, row);
      }
    }
  }
}

/// kVectors vectors of channels of one output.
template <int kVectors>
HWY_INLINE void PutColumnGradients(const NormGradientsPlan& plan, const NormRows& rows, std::int64_t at,
                                   std::int64_t taps, const float* gradient, float n, bool streams) {
  const Lanes d;
  Vector sum[kVectors];
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) sum[v] = hn::Zero(d);
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    Vector down[kVectors];
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) down[v] = hn::Zero(d);
    for (std::int64_t y = 0; y < rows.count; ++y) {
      const float* from = rows.from[y] + at + tap * plan.channels;
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const auto one = hn::LoadU(d, from + v * kLanes);
        down[v] = hn::Add(down[v], hn::Mul(one, one));
      }
    }
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) sum[v] = hn::Add(sum[v], down[v]);
  }
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v)
    sum[v] = Share(sum[v], hn::LoadU(d, gradient + v * kLanes), hn::Set(d, n), plan.whole, plan.cut_off);
  for (std::int64_t y = 0; y < rows.count; ++y) {
    for (std::int64_t i = 0; i < taps * plan.channels; i += plan.channels) {
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const auto result = TimesSlope(sum[v], hn::LoadU(d, rows.from[y] + at + i + v * kLanes));
        float* to = rows.to[y] + at + i + v * kLanes;
        if (streams) {
          hn::Stream(result, d, to);
        } else {
          hn::StoreU(result, d, to);
        }
      }
    }
  }
}

void ColumnNormGradients(const NormGradientsPlan& plan, const RowPointers& pointers, std::int64_t begin,
                         std::int64_t end, char*) {
  constexpr int kMost = 4;
  const std::int64_t channels = plan.channels;
  const bool streams = plan.streams && reinterpret_cast<std::uintptr_t>(pointers.target) % kLine == 0;
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t o = unit % plan.rows, z = unit / plan.rows % plan.slices, n = unit / plan.rows / plan.slices;
    const auto offset = [&](const RowTensor& t, std::int64_t d, std::int64_t h) {
      return n * t.outer_major + d * t.depth + h * t.height;
    };
    const std::int64_t first = o * plan.stride, last = o + 1 == plan.rows ? plan.heights : first + plan.stride;
    const std::int64_t seen = smaller(plan.high, plan.heights - first);
    const auto* x = static_cast<const float*>(pointers.input) + offset(plan.input, z * plan.deep, first);
    auto* to = static_cast<float*>(pointers.target) + offset(plan.target, z * plan.deep, first);
    const auto* gradient = static_cast<const float*>(pointers.source) + offset(plan.source, z, o);
    NormRows rows;
    rows.count = 0;
    for (std::int64_t d = 0; d < plan.deep; ++d) {
      for (std::int64_t y = 0; y < last - first; ++y) {
        rows.from[rows.count] = x + d * plan.input.depth + y * plan.input.height;
        rows.to[rows.count] = to + d * plan.target.depth + y * plan.target.height;
        if (y < seen) {
          ++rows.count;
        } else {
          PutUnseen(rows.from[rows.count], plan.width * channels, rows.to[rows.count]);
        }
      }
    }
    for (std::int64_t column = 0; column < plan.columns; ++column, gradient += channels) {
      const std::int64_t begins = column * plan.apart, taps = smaller(plan.wide, plan.width - begins);
      const float counted = plan.cut_off ? plan.row_taps[0][static_cast<std::size_t>(z)] *
                                               plan.row_taps[1][static_cast<std::size_t>(o)] *
                                               plan.column_taps[static_cast<std::size_t>(column)]
                                         : 0;
      std::int64_t c = 0;
      for (; c + kMost * kLanes <= channels; c += kMost * kLanes)
        PutColumnGradients<kMost>(plan, rows, begins * channels + c, taps, gradient + c, counted, streams);
      for (; c < channels; c += kLanes) {
        const std::int64_t at = smaller(c, channels - kLanes);
        PutColumnGradients<1>(plan, rows, begins * channels + at, taps, gradient + at, counted, streams);
      }
      const std::int64_t next = column + 1 == plan.columns ? plan.width : begins + plan.apart;
      const std::int64_t unseen = (next - begins - taps) * channels, at = (begins + taps) * channels;
      for (std::int64_t y = 0; unseen > 0 && y < rows.count; ++y) PutUnseen(rows.from[y] + at, unseen, rows.to[y] + at);
    }
  }
  if (streams) hwy::FlushStream();
}

NormGradientsFn NormGradientsOf(bool columns) { return columns ? ColumnNormGradients : PlanarNormGradients; }

#else

NormGradientsFn NormGradientsOf(bool) { return nullptr; }

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(NormGradientsOf);
NormGradientsFn norm_gradients(std::size_t target, bool columns) {
  return HWY_DISPATCH_TABLE(NormGradientsOf)[target](columns);
}
}  // namespace cenote::simd
#endif
