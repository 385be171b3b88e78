// The backward of averages and sums in columns of many channels: the rows of outputs that see a row of inputs are added up and divided once, column
// by column, and each column of inputs is the sum of the few such outputs that see it, stored to all rows that the same outputs see.
#include "cpu/gradients/expand_columns.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/gradients/expand_columns.cpp"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>

#include "cpu/vectors/quotient-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

/// The rows of outputs that see some rows of inputs, and those.
struct ExpandedRows {
  const void* source[kMostSeenRows];
  double factor[kMostSeenRows];  // the rows' share of their divisors
  int count;
  bool alike;  // all factors are the same: rows are added up first
  void* target[kRowsWritten];
  int targets;
  bool streams;
};

/// An output, or the place behind the last: what is divided by, and where it and those before it that reach into its columns are kept.
struct Expanded {
  std::int64_t output;
  Divisor divisors[kMostSeenRows];  // of each row of outputs, or one for all
  std::int64_t first, middle,
      last;  // columns from its first on that lie in the input: one output fewer sees those from the middle on
  int seen;  // outputs that see a column, at most
  float* kept[kMostSeenColumns];  // its own, that of the one before, and so on
};

/// Adds up what rows of different divisors send into elements from `at` on, into `to`: beside the padding, where that does not count. Not inlined: those are few.
template <class T>
HWY_NOINLINE void SumOfDividedRows(const ExpandedRows& rows, const Divisor* divisors, std::int64_t at,
                                   std::int64_t elements, float* to) {
  const hn::ScalableTag<float> d;
  for (std::int64_t i = 0; i < elements; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    auto sum = hn::Zero(d);
    for (int row = 0; row < rows.count; ++row) {
      hn::Vec<decltype(d)> values[1] = {LoadAs(d, static_cast<const T*>(rows.source[row]) + at + i)};
      divisors[row].Apply(d, values);
      sum = hn::Add(sum, values[0]);
    }
    hn::StoreU(sum, d, to + i);
  }
}

/// kVectors vectors of what the rows send into the column that begins `at`.
template <class T, int kVectors, class D>
HWY_INLINE void SumOfRows(D d, const ExpandedRows& rows, const Divisor* divisors, std::int64_t at,
                          hn::Vec<D> (&sum)[kVectors]) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if (HWY_UNLIKELY(!rows.alike)) {
    HWY_ALIGN float sums[kVectors * hn::MaxLanes(d)];
    SumOfDividedRows<T>(rows, divisors, at, kVectors * lanes, sums);
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) sum[v] = hn::Load(d, sums + v * lanes);
    return;
  }
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) sum[v] = hn::Zero(d);
  for (int row = 0; row < rows.count; ++row) {
    const T* from = static_cast<const T*>(rows.source[row]) + at;
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) sum[v] = hn::Add(sum[v], LoadAs(d, from + v * lanes));
  }
  divisors[0].Apply(d, sum);
}

/// Stores to the columns of an output, in all rows: `some` to those before the middle, `others` behind it. `to`: elements to the first.
template <bool kStreams, class T, int kVectors, class D>
HWY_INLINE void StoreColumns(D d, const ExpandColumnsPlan& plan, const ExpandedRows& rows, const Expanded& at,
                             std::int64_t to, const hn::Vec<D> (&some)[kVectors],
                             const hn::Vec<D> (&others)[kVectors]) {
  using Lane = RoundedLane<T>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (int row = 0; row < rows.targets; ++row) {
    Lane* column = static_cast<Lane*>(rows.target[row]) + to;
    std::int64_t x = at.first;
    for (; x < at.middle; ++x, column += plan.channels) {
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        if constexpr (kStreams) {
          hn::Stream(some[v], d, column + v * lanes);
        } else {
          hn::StoreU(some[v], d, column + v * lanes);
        }
      }
    }
    for (; x < at.last; ++x, column += plan.channels) {
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        if constexpr (kStreams) {
          hn::Stream(others[v], d, column + v * lanes);
        } else {
          hn::StoreU(others[v], d, column + v * lanes);
        }
      }
    }
  }
}

/// kVectors vectors of channels, from `c` on, of the columns that begin with those of an output and end before those of the next.
template <int kVectors, class T>
HWY_INLINE void ExpandColumn(const ExpandColumnsPlan& plan, const ExpandedRows& rows, const Expanded& at,
                             std::int64_t c) {
  const hn::ScalableTag<float> d;
  using Rounded = RoundedTag<T, decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> own[kVectors], few[kVectors], all[kVectors];
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) own[v] = few[v] = all[v] = hn::Zero(d);
  if (at.output < plan.outputs) SumOfRows<T>(d, rows, at.divisors, at.output * plan.channels + c, own);
  // In the order of the outputs, from +0 on: no sum is -0.
  for (int back = at.seen - 1; back > 0; --back) {
    const float* kept = at.kept[back] + c;
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const auto value = hn::LoadU(d, kept + v * lanes);
      all[v] = hn::Add(all[v], value);
      if (back < at.seen - 1) few[v] = hn::Add(few[v], value);
    }
  }
  if (at.seen > 1) {
    float* kept = at.kept[0] + c;
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(own[v], d, kept + v * lanes);
      few[v] = hn::Add(few[v], own[v]);
    }
  }
  hn::Vec<Rounded> some[kVectors], others[kVectors];
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    some[v] = RoundVector<T>(d, hn::Add(all[v], own[v]));
    others[v] = RoundVector<T>(d, few[v]);
  }
  const std::int64_t to = (at.output * plan.stride - plan.left + at.first) * plan.channels + c;
  if (rows.streams) {
    StoreColumns<true, T>(Rounded(), plan, rows, at, to, some, others);
  } else {
    StoreColumns<false, T>(Rounded(), plan, rows, at, to, some, others);
  }
}

/// All channels of the columns of outputs that are alike, up to `end`.
template <class T>
HWY_NOINLINE void ExpandOutputs(const ExpandColumnsPlan& plan, const ExpandedRows& rows, std::int64_t end,
                                Expanded& at) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  const std::int64_t channels = plan.channels;
  for (; at.output < end; ++at.output) {
    std::int64_t c = 0;
    // The ragged end from so many vectors before it: some are done again, but not around the caches, where columns are whole lines.
    for (; c + 4 * lanes <= channels || (c + 2 * lanes < channels && channels >= 4 * lanes && !rows.streams);
         c += 4 * lanes)
      ExpandColumn<4, T>(plan, rows, at, std::min(c, channels - 4 * lanes));
    for (; c + lanes < channels && channels >= 2 * lanes; c += 2 * lanes)
      ExpandColumn<2, T>(plan, rows, at, std::min(c, channels - 2 * lanes));
    for (; c < channels; c += lanes) ExpandColumn<1, T>(plan, rows, at, std::min(c, channels - lanes));
    for (int back = at.seen - 1; back > 0; --back) std::swap(at.kept[back], at.kept[back - 1]);
  }
}

using ExpandOutputsFn = void (*)(const ExpandColumnsPlan&, const ExpandedRows&, std::int64_t end, Expanded&);

/// The columns of some rows of inputs, one output after the other, so that memory is read and written as it lies.
HWY_NOINLINE inline void ExpandRow(const ExpandColumnsPlan& plan, const ExpandedRows& rows, ExpandOutputsFn outputs,
                                   float* scratch) {
  Expanded at{};
  at.seen = static_cast<int>((plan.kernel - 1) / plan.stride + 1);
  for (int back = 0; back < at.seen; ++back) {
    at.kept[back] = scratch + static_cast<std::size_t>(back) * plan.pitch;
    if (back > 0) std::fill_n(at.kept[back], plan.channels, 0.0F);
  }
  auto factor_of = [&](std::int64_t o) {
    return plan.column_factor[plan.column_factor.size() == 1 ? 0 : std::min(o, plan.outputs - 1)];
  };
  double known = 0;
  while (at.output * plan.stride - plan.left < plan.width) {
    const std::int64_t begins = at.output * plan.stride - plan.left;
    at.first = std::max<std::int64_t>(0, -begins);
    at.last = std::max(at.first, std::min(plan.stride, plan.width - begins));
    at.middle = std::clamp(plan.kernel - (at.seen - 1) * plan.stride, at.first, at.last);
    const double factor = factor_of(at.output);
    if (factor != known) {
      for (int row = 0; row < (rows.alike ? 1 : rows.count); ++row)
        at.divisors[row] = Divisor(static_cast<float>(rows.factor[row] * factor));
      known = factor;
    }
    // Those after it whose columns all lie in the input, too.
    std::int64_t end = at.output + 1;
    const std::int64_t inside = std::min(plan.outputs, (plan.width + plan.left) / plan.stride);
    while (at.first == 0 && end < inside && factor_of(end) == factor) ++end;
    outputs(plan, rows, end, at);
  }
}

/// Units [begin, end) of elements of `size` bytes.
HWY_NOINLINE inline void ExpandUnits(const ExpandColumnsPlan& plan, const RowPointers& pointers, std::int64_t begin,
                                     std::int64_t end, std::int64_t size, ExpandOutputsFn outputs, float* kept) {
  const RowTensor &source = plan.source, &target = plan.target;
  const auto groups = static_cast<std::int64_t>(plan.rows.size()),
             depths = static_cast<std::int64_t>(plan.slices.size());
  ExpandedRows rows{};
  rows.streams = plan.streams && reinterpret_cast<std::uintptr_t>(pointers.target) % 64 == 0;
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const InputRows& inputs = plan.rows[static_cast<std::size_t>(unit % groups)];
    const std::int64_t z = unit / groups % depths, n = unit / groups / depths;
    const RowRange& slices = plan.slices[static_cast<std::size_t>(z)];
    rows.count = 0;
    rows.alike = true;
    for (std::int64_t i = 0; i < slices.count; ++i) {
      for (std::int64_t j = 0; j < inputs.seen_by.count; ++j) {
        const std::int64_t od = slices.first + i * slices.step, oh = inputs.seen_by.first + j * inputs.seen_by.step;
        const std::int64_t at = n * source.outer_major + od * source.depth + oh * source.height;
        rows.source[rows.count] = static_cast<const char*>(pointers.source) + at * size;
        rows.factor[rows.count] = plan.row_factors[0].empty() ? 1
                                                              : plan.row_factors[0][static_cast<std::size_t>(od)] *
                                                                    plan.row_factors[1][static_cast<std::size_t>(oh)];
        rows.alike = rows.alike && rows.factor[rows.count] == rows.factor[0];
        ++rows.count;
      }
    }
    rows.targets = static_cast<int>(inputs.count);
    for (int row = 0; row < rows.targets; ++row) {
      rows.target[row] = static_cast<char*>(pointers.target) +
                         (n * target.outer_major + z * target.depth + (inputs.first + row) * target.height) * size;
    }
    if (rows.count == 0) {
      for (int row = 0; row < rows.targets; ++row)
        std::memset(rows.target[row], 0, static_cast<std::size_t>(plan.width * plan.channels * size));
    } else {
      ExpandRow(plan, rows, outputs, kept);
    }
  }
  if (rows.streams) hwy::FlushStream();
}

/// See ExpandColumnsFn.
template <class T>
void ExpandColumns(const ExpandColumnsPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                   char* scratch) {
  ExpandUnits(plan, pointers, begin, end, sizeof(T), ExpandOutputs<T>, reinterpret_cast<float*>(scratch));
}

ExpandColumnsFn ExpandColumnsOf(DType dtype) {
  switch (dtype) {
    case DType::f32: return ExpandColumns<float>;
    case DType::f16: return ExpandColumns<f16>;
    case DType::bf16: return ExpandColumns<bf16>;
    default: return nullptr;
  }
}

#else

ExpandColumnsFn ExpandColumnsOf(DType) { return nullptr; }

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(ExpandColumnsOf);
ExpandColumnsFn expand_columns(std::size_t target, DType dtype) {
  return HWY_DISPATCH_TABLE(ExpandColumnsOf)[target](dtype);
}
}  // namespace cenote::simd
#endif
