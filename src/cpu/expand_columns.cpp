// The backward of averages and sums in columns of many channels: the rows of outputs that see a row of inputs are added up and divided once, column
// by column, and each column of inputs is the sum of the few such outputs that see it, stored to all rows that the same outputs see.
#include "cpu/expand_columns.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/expand_columns.cpp"
#include <hwy/foreach_target.h>

#include "cpu/quotient-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

/// The rows of outputs that see some rows of inputs, and those.
template <class T>
struct ExpandedRows {
  const T* source[kMostSeenRows];
  double factor[kMostSeenRows];  // the rows' share of their divisors
  int count;
  bool alike;  // all factors are the same: rows are added up first
  T* target[kRowsWritten];
  int targets;
  bool streams;
};

/// An output, or the place behind the last: what is divided by, and where it and those before it that reach into its columns are kept.
struct Expanded {
  std::int64_t output;
  const Divisor* divisors;  // of each row of outputs, or one for all
  std::int64_t first, middle,
      last;  // columns from its first on that lie in the input: one output fewer sees those from the middle on
  int seen;  // outputs that see a column, at most
  float* kept;
  const float* before[kMostSeenColumns];  // of the one before, and so on
};

/// Adds kVectors vectors of what the rows send into the column that begins `at`.
template <int kVectors, class T, class D>
HWY_INLINE void SumOfRows(D d, const ExpandedRows<T>& rows, const Divisor* divisors, std::int64_t at,
                          hn::Vec<D> (&sum)[kVectors]) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (int row = 0; row < rows.count; ++row) {
    const T* from = rows.source[row] + at;
    hn::Vec<D> values[kVectors];
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) values[v] = LoadAs(d, from + v * lanes);
    if (!rows.alike) divisors[row].Apply(d, values);
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) sum[v] = hn::Add(sum[v], values[v]);
  }
  if (rows.alike) divisors[0].Apply(d, sum);
}

/// Stores values to `columns` columns from `at` on, in all rows.
template <int kVectors, class T, class D>
HWY_INLINE void StoreColumns(D d, const ExpandColumnsPlan& plan, const ExpandedRows<T>& rows, std::int64_t at,
                             std::int64_t columns, const hn::Vec<D> (&values)[kVectors]) {
  if (columns <= 0) return;
  using Rounded = RoundedTag<T, D>;
  using Lane = RoundedLane<T>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<Rounded> rounded[kVectors];
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) rounded[v] = RoundVector<T>(d, values[v]);
  for (int row = 0; row < rows.targets; ++row) {
    Lane* to = reinterpret_cast<Lane*>(rows.target[row]) + at;
    for (std::int64_t column = 0; column < columns; ++column, to += plan.channels) {
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        if (rows.streams) {
          hn::Stream(rounded[v], Rounded(), to + v * lanes);
        } else {
          hn::StoreU(rounded[v], Rounded(), to + v * lanes);
        }
      }
    }
  }
}

/// kVectors vectors of channels, from `c` on, of the columns that begin with those of an output and end before those of the next.
template <int kVectors, class T>
HWY_INLINE void ExpandColumn(const ExpandColumnsPlan& plan, const ExpandedRows<T>& rows, const Expanded& at,
                             std::int64_t c) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V own[kVectors], few[kVectors], all[kVectors];
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) own[v] = few[v] = all[v] = hn::Zero(d);
  if (at.output < plan.outputs) SumOfRows(d, rows, at.divisors, at.output * plan.channels + c, own);
  // In the order of the outputs, from +0 on: no sum is -0.
  for (int back = at.seen - 1; back > 0; --back) {
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const V value = hn::LoadU(d, at.before[back] + c + v * lanes);
      all[v] = hn::Add(all[v], value);
      if (back < at.seen - 1) few[v] = hn::Add(few[v], value);
    }
  }
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) all[v] = hn::Add(all[v], own[v]);
  if (at.seen > 1) {
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(own[v], d, at.kept + c + v * lanes);
      few[v] = hn::Add(few[v], own[v]);
    }
  }
  const std::int64_t to = (at.output * plan.stride - plan.left) * plan.channels + c;
  StoreColumns(d, plan, rows, to + at.first * plan.channels, at.middle - at.first, all);
  StoreColumns(d, plan, rows, to + at.middle * plan.channels, at.last - at.middle, few);
}

/// All channels of them.
template <class T>
HWY_NOINLINE void ExpandChannels(const ExpandColumnsPlan& plan, const ExpandedRows<T>& rows, const Expanded& at) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  std::int64_t c = 0;
  for (; c + 4 * lanes <= plan.channels; c += 4 * lanes) ExpandColumn<4>(plan, rows, at, c);
  // The ragged end once more from its last whole vector.
  for (; c < plan.channels; c += lanes) ExpandColumn<1>(plan, rows, at, std::min(c, plan.channels - lanes));
}

/// The columns of some rows of inputs, one output after the other, so that memory is read and written as it lies.
template <class T>
HWY_NOINLINE void ExpandRow(const ExpandColumnsPlan& plan, const ExpandedRows<T>& rows, float* scratch) {
  const auto seen = static_cast<int>((plan.kernel - 1) / plan.stride + 1);
  Divisor divisors[kMostSeenRows];
  double known = 0;
  for (int back = 1; back < seen; ++back)
    std::fill_n(scratch + static_cast<std::size_t>(back) * plan.pitch, plan.channels, 0.0F);
  Expanded at{};
  at.seen = seen;
  at.divisors = divisors;
  for (std::int64_t o = 0; o * plan.stride - plan.left < plan.width; ++o) {
    const std::int64_t begins = o * plan.stride - plan.left;
    at.output = o;
    at.first = std::max<std::int64_t>(0, -begins);
    at.last = std::max(at.first, std::min(plan.stride, plan.width - begins));
    at.middle = std::clamp(plan.kernel - (seen - 1) * plan.stride, at.first, at.last);
    const double factor = plan.column_factor[plan.column_factor.size() == 1 ? 0 : std::min(o, plan.outputs - 1)];
    if (factor != known) {
      for (int row = 0; row < (rows.alike ? 1 : rows.count); ++row)
        divisors[row] = Divisor(static_cast<float>(rows.factor[row] * factor));
      known = factor;
    }
    auto slot = [&](std::int64_t output) {
      return scratch + static_cast<std::size_t>((output + seen) % seen) * plan.pitch;
    };
    at.kept = slot(o);
    for (int back = 1; back < seen; ++back) at.before[back] = slot(o - back);
    ExpandChannels(plan, rows, at);
  }
}

/// See ExpandColumnsFn.
template <class T>
void ExpandColumns(const ExpandColumnsPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end,
                   char* scratch) {
  const RowTensor &source = plan.source, &target = plan.target;
  const auto groups = static_cast<std::int64_t>(plan.rows.size()),
             depths = static_cast<std::int64_t>(plan.slices.size());
  auto* kept = reinterpret_cast<float*>(scratch);
  ExpandedRows<T> rows{};
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
        rows.source[rows.count] = static_cast<const T*>(pointers.source) + at;
        rows.factor[rows.count] = plan.row_factors[0].empty() ? 1
                                                              : plan.row_factors[0][static_cast<std::size_t>(od)] *
                                                                    plan.row_factors[1][static_cast<std::size_t>(oh)];
        rows.alike = rows.alike && rows.factor[rows.count] == rows.factor[0];
        ++rows.count;
      }
    }
    rows.targets = static_cast<int>(inputs.count);
    for (int row = 0; row < rows.targets; ++row) {
      rows.target[row] = static_cast<T*>(pointers.target) + n * target.outer_major + z * target.depth +
                         (inputs.first + row) * target.height;
    }
    if (rows.count == 0) {
      for (int row = 0; row < rows.targets; ++row)
        std::memset(static_cast<void*>(rows.target[row]), 0,
                    static_cast<std::size_t>(plan.width * plan.channels) * sizeof(T));
    } else {
      ExpandRow(plan, rows, kept);
    }
  }
  if (rows.streams) hwy::FlushStream();
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
