// The end of a row: averages are divided, powers rooted, minima turned back; then everything is rounded to the tensor's type.
#if defined(CENOTE_CPU_ROWS_FINISH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_ROWS_FINISH_INL_H_
#undef CENOTE_CPU_ROWS_FINISH_INL_H_
#else
#define CENOTE_CPU_ROWS_FINISH_INL_H_
#endif

#include "cpu/rows/along-inl.h"
#include "cpu/vectors/stream-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// Rounds toward zero; a division by -1 wraps instead of trapping.
inline std::int64_t DivideTowardZero(std::int64_t a, std::int64_t b) {
  return b == -1 ? static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(a)) : a / b;
}

/// A negative divisor makes no -0 of a sum of 0, as in PyTorch.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Quotient(D d, V sum, V divisor, bool negative) {
  const V quotient = hn::Div(sum, divisor);
  return negative ? hn::Add(quotient, hn::Zero(d)) : quotient;
}

/// to[q] = finish(vector at q) for every element; `to` may be `from`, or a row of the target with nothing to spare behind it.
template <class D, class Finish, class C = hn::TFromD<D>>
HWY_INLINE void FinishVectors(D d, std::int64_t elements, const C* from, C* to, Finish finish) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t q = 0;
  for (; q + lanes <= elements; q += lanes) hn::StoreU(finish(hn::LoadU(d, from + q)), d, to + q);
  if (q == elements) return;
  HWY_ALIGN C rest[hn::MaxLanes(d)];
  hn::Store(finish(hn::LoadU(d, from + q)), d, rest);  // `from` has room behind it
  std::memcpy(to + q, rest, static_cast<std::size_t>(elements - q) * sizeof(C));
}

/// to[q] = values[q] / (row_factor * column factor), for outputs [first, first + columns) of `inner` elements. One division per
/// element. `to` may be `values`.
template <class C>
void DivideRow(const RowPlan& plan, std::int64_t first, std::int64_t columns, double row_factor, const C* values,
               C* to) {
  const std::int64_t inner = plan.inner;
  const bool uniform = plan.column_factor.empty();
  const std::int64_t elements = columns * inner;
  if constexpr (hwy::IsFloat<C>()) {
    const hn::ScalableTag<C> d;
    if (uniform) {
      const C divisor = static_cast<C>(row_factor * plan.uniform_factor);
      if (divisor == C{1}) {
        if (to != values) std::memcpy(to, values, static_cast<std::size_t>(elements) * sizeof(C));
        return;
      }
      if (plan.factor_is_power_of_two && divisor > 0) {  // exact either way, and the multiplication is cheaper
        const auto scale = hn::Set(d, C{1} / divisor);
        return FinishVectors(d, elements, values, to, [&](auto v) HWY_ATTR { return hn::Mul(v, scale); });
      }
      const auto by = hn::Set(d, divisor);
      return FinishVectors(d, elements, values, to, [&](auto v) HWY_ATTR { return Quotient(d, v, by, divisor < 0); });
    }
    for (std::int64_t o = 0; o < columns; ++o) {
      const C divisor = static_cast<C>(row_factor * plan.column_factor[first + o]);
      for (std::int64_t c = 0; c < inner; ++c) {
        const C sum = values[o * inner + c];
        to[o * inner + c] = divisor == C{0} ? sum : sum / divisor;  // no element at all: the sum is 0 and stays so
      }
    }
  } else {
    // Columns with one divisor at a time.
    for (std::int64_t o = 0, next = 0; o < columns; o = next) {
      next = uniform ? columns : o + 1;
      const auto divisor =
          static_cast<std::int64_t>(row_factor * (uniform ? plan.uniform_factor : plan.column_factor[first + o]));
      const std::int64_t begin = o * inner, end = next * inner;
      if constexpr (sizeof(C) <= 4) {
        if (divisor != 0 && divisor != -1) {
          // In vectors. Truncated, the quotient of doubles is exact as long as the dividend has fewer bits than their fraction.
          const auto by = static_cast<double>(divisor);
          for (std::int64_t q = begin; q < end; ++q) to[q] = static_cast<C>(values[q] / by);
          continue;
        }
      }
      for (std::int64_t q = begin; q < end; ++q) {
        to[q] = divisor == 0 ? values[q] : static_cast<C>(DivideTowardZero(values[q], divisor));
      }
    }
  }
}

/// Lp: the window's sum of powers becomes v = K/n * sum.
template <class C>
void ScalePowerSums(const RowPlan& plan, std::int64_t first, std::int64_t columns, double row_factor,
                    C* HWY_RESTRICT values) {
  if constexpr (hwy::IsFloat<C>()) {
    const bool uniform = plan.column_factor.empty();
    if (uniform && row_factor * plan.uniform_factor == plan.power_factor) return;
    for (std::int64_t o = 0; o < columns; ++o) {
      const double n = row_factor * (uniform ? plan.uniform_factor : plan.column_factor[first + o]);
      if (n == plan.power_factor || n == 0) continue;
      const C count = static_cast<C>(n), full = static_cast<C>(plan.power_factor);
      for (std::int64_t c = 0; c < plan.inner; ++c) {
        C& value = values[o * plan.inner + c];
        value = value / count * full;
      }
    }
  }
}

/// What becomes of the folded values before they are stored.
template <Map kMap, class C>
void UndoMap(const RowPlan& plan, std::int64_t elements, C* HWY_RESTRICT values) {
  const hn::ScalableTag<C> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if constexpr (kMap == Map::negate) {
    for (std::int64_t q = 0; q < elements; q += lanes) {
      hn::StoreU(Mapped<Map::negate>(d, hn::LoadU(d, values + q), 0, 0), d, values + q);
    }
  } else if constexpr (kMap == Map::absolute) {
    if (plan.problem.norm_type > 0) return;
    for (std::int64_t q = 0; q < elements; q += lanes) hn::StoreU(hn::Abs(hn::LoadU(d, values + q)), d, values + q);
  } else if constexpr (kMap == Map::power) {
    const double root = 1 / plan.problem.norm_type;
    for (std::int64_t q = 0; q < elements; q += lanes) {
      hn::StoreU(PowerOf(d, hn::LoadU(d, values + q), plan.root_kind, root), d, values + q);
    }
  }
}

/// A row of values to the target, wherever it lies.
template <class T, class C>
void PutRow(const RowPlan& plan, std::int64_t columns, const C* values, T* staged, T* target, StreamWriter& writer) {
  const std::int64_t elements = columns * plan.inner;
  if (plan.target.dense && plan.streams) return writer.Write(values, target, elements);
  StoreAs(values, plan.target.dense ? target : staged, elements);
  if (!plan.target.dense) unpack_row(plan.target, columns, plan.inner, staged, target);
}

/// Calls put(pointer to the element type of that name): what indices are stored as.
template <class Put>
HWY_INLINE void WithIndexType(DType dtype, void* indices, const Put& put) {
  switch (dtype) {
    case DType::i64: return put(static_cast<std::int64_t*>(indices));
    case DType::u8: return put(static_cast<std::uint8_t*>(indices));
    case DType::u16: return put(static_cast<std::uint16_t*>(indices));
    default: return put(static_cast<std::int32_t*>(indices));  // u32: the same bits
  }
}

/// Codes become indices. A code of -1 is "none" in every kind.
template <class Index, class Code>
void PutIndices(const RowPlan& plan, std::int64_t columns, const Code* codes, Index* staged, Index* target,
                StreamWriter& writer) {
  const std::int64_t elements = columns * plan.inner;
  if constexpr (sizeof(Index) == 8) {
    if (plan.indices.dense && plan.streams) return writer.Write(codes, target, elements);
  }
  StoreAs(codes, plan.indices.dense ? target : staged, elements);
  if (!plan.indices.dense) unpack_row(plan.indices, columns, plan.inner, staged, target);
}

/// Columns whose window lies wholly outside the input have no winner; window taps count from the unclipped window's first one.
template <class Code>
void CorrectCodes(const RowPlan& plan, const Tile& tile, Code* HWY_RESTRICT codes) {
  const ColumnTable& table = plan.table;
  const bool table_mode = plan.columns != Columns::consecutive && plan.columns != Columns::strided;
  const bool shift = plan.code_kind == Codes::taps && table_mode;
  for (std::int64_t o = 0; (shift || plan.may_be_empty || plan.uneven_windows) && o < tile.target_columns; ++o) {
    const std::int64_t column = tile.target_first + o;
    for (std::int64_t c = 0; c < plan.inner; ++c) {
      Code& code = codes[o * plan.inner + c];
      if (shift) code += static_cast<Code>(table.skipped[column]);
      if (plan.uneven_windows) {
        // Rows were numbered by the widest window; this one is table.count[column] taps wide.
        const Code widest = static_cast<Code>(plan.problem.axis[2].kernel);
        code = static_cast<Code>(code / widest * table.count[column] + code % widest);
      }
      if (plan.may_be_empty && table.count[column] == 0) code = -1;
    }
  }
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
