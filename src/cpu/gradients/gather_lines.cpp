// Backward of maxima over planes whose windows overlap along the rows, but not down them: a vector of columns a stride apart compares what it is to the outputs that see it with the taps that their
// indices name, one such output after the other. Sums are taken in the order of the outputs.
#include "cpu/gradients/gather_lines.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/gradients/gather_lines.cpp"
#include <hwy/foreach_target.h>

#include "cpu/rows/along-inl.h"
#include "cpu/vectors/stream-inl.h"
#include "cpu/vectors/unroll.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

/// In a row of taps, where there is no output.
inline constexpr std::uint8_t kNoTap = 255;

/// Strides [0, count) of columns. `codes`, `values`: from the output on that the first one's number names. Writes kLineVectors whole vectors of strides at a time.
template <int kStride, class C>
void GatherLine(const LinePlan& plan, const std::uint8_t* HWY_RESTRICT codes, const char* values_at,
                const std::uint8_t* HWY_RESTRICT numbers, std::int64_t count, char* result_at) {
  const hn::ScalableTag<C> d;
  const hn::Rebind<std::uint8_t, decltype(d)> bytes;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const C* HWY_RESTRICT values = reinterpret_cast<const C*>(values_at);
  C* HWY_RESTRICT result = reinterpret_cast<C*>(result_at);
  const LineTap* phases[kStride + 1];
  for (int phase = 0; phase <= kStride; ++phase)
    phases[phase] = plan.taps.data() + plan.phases[static_cast<std::size_t>(phase)];
  for (std::int64_t u = 0; u < count; u += kLineVectors * lanes) {
    hn::Vec<decltype(d)> sum[kLineVectors][kStride];
    CENOTE_UNROLL
    for (int phase = 0; phase < kStride; ++phase) {
      CENOTE_UNROLL
      for (int v = 0; v < kLineVectors; ++v) sum[v][phase] = hn::Zero(d);
      for (const LineTap* tap = phases[phase]; tap != phases[phase + 1]; ++tap) {
        const std::uint8_t* code = codes + u + tap->shift;
        const C* value = values + u + tap->shift;
        const auto number = hn::LoadU(bytes, numbers + tap->number);
        CENOTE_UNROLL
        for (int v = 0; v < kLineVectors; ++v) {
          const auto here = WideMask(d, hn::Eq(hn::LoadU(bytes, code + v * lanes), number));
          const auto added = hn::Add(sum[v][phase], hn::LoadU(d, value + v * lanes));
          sum[v][phase] = hn::IfThenElse(here, added, sum[v][phase]);
        }
      }
    }
    CENOTE_UNROLL
    for (int v = 0; v < kLineVectors; ++v) {
      C* to = result + (u + v * lanes) * kStride;
      if constexpr (kStride == 1) {
        hn::StoreU(sum[v][0], d, to);
      } else {
        StorePhases<kStride>(d, sum[v], to);
      }
    }
  }
}

/// What depends on the element type.
struct LineFunctions {
  void (*gather)(const LinePlan&, const std::uint8_t*, const char*, const std::uint8_t*, std::int64_t, char*);
  void (*load)(const char* from, std::int64_t count, char* to);  // null: nothing changes
  void (*put)(const char* from, std::int64_t count, char* to, bool streams, StreamWriter& writer);
};

template <class T, class C>
LineFunctions FunctionsOf(std::int64_t stride) {
  LineFunctions f{};
  f.gather = stride == 1 ? GatherLine<1, C> : stride == 2 ? GatherLine<2, C> : GatherLine<4, C>;
  if constexpr (!std::is_same_v<T, C>) {
    f.load = [](const char* from, std::int64_t count, char* to) {
      LoadElements(reinterpret_cast<const T*>(from), reinterpret_cast<C*>(to), count);
    };
  }
  f.put = [](const char* from, std::int64_t count, char* to, bool streams, StreamWriter& writer) {
    const C* values = reinterpret_cast<const C*>(from);
    T* target = reinterpret_cast<T*>(to);
    if (streams) return writer.Write(values, target, count);
    if constexpr (std::is_same_v<T, C>) {
      std::memcpy(target, values, static_cast<std::size_t>(count) * sizeof(T));
    } else {
      StoreAs(values, target, count);
    }
  };
  return f;
}

/// Copies taps. Whether they are all in [low, low + count).
bool CopyTaps(const std::uint8_t* HWY_RESTRICT from, std::int64_t outputs, std::int64_t low, std::int64_t count,
              std::uint8_t* HWY_RESTRICT to) {
  const hn::ScalableTag<std::uint8_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto first = hn::Set(d, static_cast<std::uint8_t>(low)),
             span = hn::Set(d, static_cast<std::uint8_t>(count - 1));
  auto wrong = hn::Zero(d);
  auto copy = [&](std::int64_t x) HWY_ATTR CENOTE_ALWAYS_INLINE {
    const auto taps = hn::LoadU(d, from + x);
    wrong = hn::Or(wrong, hn::SaturatedSub(hn::Sub(taps, first), span));
    hn::StoreU(taps, d, to + x);
  };
  std::int64_t x = 0;
  for (; x + lanes <= outputs; x += lanes) copy(x);
  if (x < outputs && outputs >= lanes) copy(outputs - lanes);
  bool fine = hn::AllTrue(d, hn::Eq(wrong, hn::Zero(d)));
  for (; x < outputs && outputs < lanes; ++x) {
    to[x] = from[x];
    fine = fine && from[x] >= low && from[x] < low + count;
  }
  return fine;
}

/// See GatherLinesFn.
bool GatherLines(const LinePlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                 char* scratch) {
  const Axis &height = plan.height, &width = plan.width;
  const LineFunctions line = plan.dtype == DType::f32   ? FunctionsOf<float, float>(width.stride)
                             : plan.dtype == DType::f64 ? FunctionsOf<double, double>(width.stride)
                             : plan.dtype == DType::f16 ? FunctionsOf<f16, float>(width.stride)
                                                        : FunctionsOf<bf16, float>(width.stride);
  const std::int64_t size = plan.size, lane = larger(size, static_cast<std::int64_t>(sizeof(float)));
  const std::int64_t extent = plan.before + plan.block + plan.behind;
  auto* codes = reinterpret_cast<std::uint8_t*>(scratch + plan.codes_at);
  char* result = scratch + plan.result_at;
  const auto* indices = static_cast<const std::uint8_t*>(pointers.indices);
  const bool in_place = line.load == nullptr && !plan.streams;  // rows of gradients are made where they belong
  StreamWriter writer;
  bool valid = true;
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t row = unit / plan.blocks, o = row % height.output, slice = row / height.output % plan.slices;
    const std::int64_t plane = row / height.output / plan.slices, first = unit % plan.blocks * plan.block;
    const std::int64_t strides = smaller(plan.block, plan.strides - first);
    const Window seen = window(height, o);
    // The outputs that the block's columns may see, with none around those that there are.
    const std::int64_t low = first - plan.before, from = larger(0, low);
    const std::int64_t count = larger(0, smaller(width.output, low + extent) - from), ahead = from - low;
    const std::int64_t outputs = (slice * height.output + o) * width.output + from;
    const std::uint8_t* taps = indices + plane * plan.index_pitch + outputs;
    std::memset(codes, kNoTap, static_cast<std::size_t>(ahead));
    std::memset(codes + ahead + count, kNoTap, static_cast<std::size_t>(extent - ahead - count));
    valid = CopyTaps(taps, count, seen.skipped * width.kernel, seen.count * width.kernel, codes + ahead) && valid;
    for (const LineEdge& edge : plan.edges) {
      const std::int64_t x = edge.column - from;
      if (x < 0 || x >= count) continue;
      const std::int64_t tap = taps[x] % width.kernel - edge.skipped;
      valid = valid && tap >= 0 && tap < edge.count;
    }
    const std::int64_t at = plane * plan.source_pitch + outputs;
    const char *gradients = static_cast<const char*>(pointers.source) + at * size, *values = gradients - ahead * size;
    // Vectors reach beyond a row; before the first and behind the last there is nothing.
    if (line.load != nullptr || at < ahead || at - ahead + extent > plan.source_extent) {
      char* copied = scratch + plan.values_at;
      values = copied;
      if (line.load != nullptr) {
        line.load(gradients, count, copied + ahead * lane);
      } else {
        std::memcpy(copied + ahead * lane, gradients, static_cast<std::size_t>(count * size));
      }
    }
    const std::int64_t columns = smaller(strides * width.stride, width.input - first * width.stride);
    const std::int64_t whole =
        in_place ? columns / width.stride / plan.step * plan.step : 0;  // strides in whole vectors
    char* target = static_cast<char*>(pointers.target) +
                   (plane * plan.target_pitch + slice * height.input * width.input + first * width.stride) * size;
    const std::int64_t end_row = o + 1 < height.output ? (o + 1) * height.stride - height.pad_begin : height.input;
    for (std::int64_t y = seen.first; y < end_row; ++y) {
      char* to = target + y * width.input * size;
      std::int64_t made = 0;
      if (y < seen.first + seen.count) {
        const std::uint8_t* numbers =
            plan.numbers.data() + (seen.skipped + y - seen.first) * width.kernel * kLineNumberBytes;
        auto gather = [&](std::int64_t u, std::int64_t stop, char* there) {
          line.gather(plan, codes + plan.before + u, values + (plan.before + u) * lane, numbers, stop - u, there);
        };
        gather(0, whole, to);
        made = whole * width.stride;
        if (made < columns) gather(whole, strides, result);
      } else {
        std::memset(result, 0, static_cast<std::size_t>(columns * lane));
      }
      line.put(result, columns - made, to + made * size, plan.streams, writer);
    }
  }
  return valid;
}

GatherLinesFn GatherLinesFunction() { return GatherLines; }

#else

GatherLinesFn GatherLinesFunction() { return nullptr; }

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(GatherLinesFunction);
GatherLinesFn gather_lines(std::size_t target) { return HWY_DISPATCH_TABLE(GatherLinesFunction)[target](); }
}  // namespace cenote::simd
#endif
