// The backward of averages and sums in columns of many channels: the rows of outputs that see a row of inputs are added up and divided once, column
// by column, and each column of inputs is the sum of the few such outputs that see it, stored to all rows that the same outputs see.
#include "cpu/expand_columns.hpp"

#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/expand_columns.cpp"
#include <hwy/foreach_target.h>

#include "cpu/convert-inl.h"
#include "cpu/unroll.hpp"

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

/// What sums are divided by. Small integers take no division: a product with the reciprocal, put right by what it leaves over, is rounded as the quotient is (for all
/// elements and divisors below 4096, which was tried), as long as nothing leaves the range of normal numbers. A -0 may become 0: what is divided is added to +0.
class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(float by) : by_(by), reciprocal_(1.0F / by) {
    if (by == 0.0F || by == 1.0F) return;
    const bool power_of_two = by > 0 && (std::bit_cast<std::uint32_t>(by) & 0x7fffffU) == 0;
    const bool small = by > 0 && by < 4096.0F && by == std::floor(by);
    way_ = power_of_two ? Way::multiply : small ? Way::correct : Way::divide;
  }

  template <int kVectors, class D, class V = hn::Vec<D>>
  HWY_INLINE void Apply(D d, V (&values)[kVectors]) const {
    if (way_ == Way::none) return;
    if (way_ == Way::divide) return Divide(d, values);
    const V reciprocal = hn::Set(d, reciprocal_);
    if (way_ == Way::multiply) {
      CENOTE_UNROLL
      for (int v = 0; v < kVectors; ++v) values[v] = hn::Mul(values[v], reciprocal);
      return;
    }
    const V by = hn::Set(d, by_), least = hn::Set(d, 0x1p-100F);
    V quotients[kVectors];
    auto doubtful = hn::MaskFromVec(hn::Zero(d));
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const V near = hn::Mul(values[v], reciprocal);
      const V over = hn::NegMulAdd(near, by, values[v]);
      quotients[v] = hn::MulAdd(over, reciprocal, near);
      const auto ordinary = hn::Or(hn::Ge(hn::Abs(quotients[v]), least), hn::Eq(values[v], hn::Zero(d)));
      doubtful = hn::Or(doubtful, hn::Not(ordinary));
    }
    if (HWY_UNLIKELY(!hn::AllFalse(d, doubtful))) return Divide(d, values);
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) values[v] = quotients[v];
  }

 private:
  enum class Way : std::uint8_t { none, multiply, correct, divide } way_ = Way::none;
  float by_ = 1, reciprocal_ = 1;

  template <int kVectors, class D, class V = hn::Vec<D>>
  HWY_INLINE void Divide(D d, V (&values)[kVectors]) const {
    const V by = hn::Set(d, by_);
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) values[v] = hn::Div(values[v], by);
  }
};

/// An output, or the place behind the last: what is divided by, and where it and those before it that reach into its columns are kept.
template <int kSeen>
struct Expanded {
  std::int64_t output;
  const Divisor* divisors;  // of each row of outputs, or one for all
  std::int64_t first, middle,
      last;  // columns from its first on that lie in the input: kSeen outputs see those before the middle, one fewer the others
  float* kept;
  const float* before[kSeen];  // the one before, and so on
};

/// kVectors vectors of what the rows send into the column that begins `at`.
template <int kVectors, class T, class D>
HWY_INLINE void SumOfRows(D d, const ExpandedRows<T>& rows, const Divisor* divisors, std::int64_t at,
                          hn::Vec<D> (&sum)[kVectors]) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) sum[v] = LoadAs(d, rows.source[0] + at + v * lanes);
  if (!rows.alike) divisors[0].Apply(d, sum);
  for (int row = 1; row < rows.count; ++row) {
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
template <int kSeen, int kVectors, class T>
HWY_INLINE void ExpandColumn(const ExpandColumnsPlan& plan, const ExpandedRows<T>& rows, const Expanded<kSeen>& at,
                             std::int64_t c) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V own[kVectors], few[kVectors], all[kVectors];
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) own[v] = few[v] = all[v] = hn::Zero(d);
  if (at.output < plan.outputs) SumOfRows(d, rows, at.divisors, at.output * plan.channels + c, own);
  // In the order of the outputs, from +0 on: no sum is -0.
  CENOTE_UNROLL
  for (int back = kSeen - 1; back > 0; --back) {
    CENOTE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const V value = hn::LoadU(d, at.before[back] + c + v * lanes);
      all[v] = hn::Add(all[v], value);
      if (back < kSeen - 1) few[v] = hn::Add(few[v], value);
    }
  }
  CENOTE_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    if (kSeen > 1) hn::StoreU(own[v], d, at.kept + c + v * lanes);
    all[v] = hn::Add(all[v], own[v]);
    if (kSeen > 1) few[v] = hn::Add(few[v], own[v]);
  }
  const std::int64_t to = (at.output * plan.stride - plan.left) * plan.channels + c;
  StoreColumns(d, plan, rows, to + at.first * plan.channels, at.middle - at.first, all);
  StoreColumns(d, plan, rows, to + at.middle * plan.channels, at.last - at.middle, few);
}

/// All channels of them.
template <int kSeen, class T>
HWY_NOINLINE void ExpandChannels(const ExpandColumnsPlan& plan, const ExpandedRows<T>& rows,
                                 const Expanded<kSeen>& at) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  std::int64_t c = 0;
  for (; c + 4 * lanes <= plan.channels; c += 4 * lanes) ExpandColumn<kSeen, 4>(plan, rows, at, c);
  if (c + 2 * lanes <= plan.channels) {
    ExpandColumn<kSeen, 2>(plan, rows, at, c);
    c += 2 * lanes;
  }
  // The ragged end once more from its last whole vector.
  for (; c < plan.channels; c += lanes) ExpandColumn<kSeen, 1>(plan, rows, at, std::min(c, plan.channels - lanes));
}

/// The columns of some rows of inputs, one output after the other, so that memory is read and written as it lies.
template <int kSeen, class T>
HWY_NOINLINE void ExpandRow(const ExpandColumnsPlan& plan, const ExpandedRows<T>& rows, float* scratch) {
  Divisor divisors[kMostSeenRows];
  double known = 0;
  for (int back = 1; back < kSeen; ++back)
    std::fill_n(scratch + static_cast<std::size_t>(back) * plan.pitch, plan.channels, 0.0F);
  Expanded<kSeen> at{};
  at.divisors = divisors;
  for (std::int64_t o = 0; o * plan.stride - plan.left < plan.width; ++o) {
    const std::int64_t begins = o * plan.stride - plan.left;
    at.output = o;
    at.first = std::max<std::int64_t>(0, -begins);
    at.last = std::max(at.first, std::min(plan.stride, plan.width - begins));
    at.middle = std::clamp(plan.kernel - (kSeen - 1) * plan.stride, at.first, at.last);
    const double factor = plan.column_factor[plan.column_factor.size() == 1 ? 0 : std::min(o, plan.outputs - 1)];
    if (factor != known) {
      for (int row = 0; row < (rows.alike ? 1 : rows.count); ++row)
        divisors[row] = Divisor(static_cast<float>(rows.factor[row] * factor));
      known = factor;
    }
    auto slot = [&](std::int64_t output) {
      return scratch + static_cast<std::size_t>((output + kSeen) % kSeen) * plan.pitch;
    };
    at.kept = slot(o);
    for (int back = 1; back < kSeen; ++back) at.before[back] = slot(o - back);
    ExpandChannels<kSeen>(plan, rows, at);
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
    } else if (plan.kernel <= plan.stride) {
      ExpandRow<1>(plan, rows, kept);
    } else if (plan.kernel <= 2 * plan.stride) {
      ExpandRow<2>(plan, rows, kept);
    } else {
      ExpandRow<3>(plan, rows, kept);
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
