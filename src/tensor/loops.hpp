// Loops over strided elements and over element types, shared by copies, arithmetic and reductions.
#pragma once

#include "tensor/refuse.hpp"

#include <cenote/dtype.hpp>
#include <cenote/view.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace cenote::detail {

template <class T>
struct TypeTag {
  using type = T;
};

/// Calls body(TypeTag<T>{}) with the C++ type of the dtype.
template <class Body>
decltype(auto) visit_dtype(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::f32: return body(TypeTag<float>{});
    case DType::f64: return body(TypeTag<double>{});
    case DType::f16: return body(TypeTag<f16>{});
    case DType::bf16: return body(TypeTag<bf16>{});
    case DType::i8: return body(TypeTag<std::int8_t>{});
    case DType::u8: return body(TypeTag<std::uint8_t>{});
    case DType::i16: return body(TypeTag<std::int16_t>{});
    case DType::i32: return body(TypeTag<std::int32_t>{});
    case DType::i64: return body(TypeTag<std::int64_t>{});
    case DType::u16: return body(TypeTag<std::uint16_t>{});
    case DType::u32: break;
  }
  return body(TypeTag<std::uint32_t>{});
}

template <class T>
inline constexpr bool is_float_type = std::is_floating_point_v<T> || std::is_same_v<T, f16> || std::is_same_v<T, bf16>;

/// The C++ number an element computes as: the 16-bit floats as float.
template <class T>
constexpr auto load(T value) noexcept {
  if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>) {
    return to_float(value);
  } else {
    return value;
  }
}

template <class T>
using Number = decltype(load(T{}));

/// Rounds to nearest for floating types. Floating to integer: drops the fraction, saturates, NaN gives 0.
template <class T, class From>
constexpr T convert(From from) noexcept {
  if constexpr (std::is_same_v<T, f16>) {
    return to_f16(static_cast<float>(from));
  } else if constexpr (std::is_same_v<T, bf16>) {
    return to_bf16(static_cast<float>(from));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<T>) {
    if (from != from) return 0;
    // 2^digits is exact in every floating type here, the largest integer need not be.
    const From above = static_cast<From>(std::uint64_t{1} << (std::numeric_limits<T>::digits - 1)) * From{2};
    if (from >= above) return std::numeric_limits<T>::max();
    if (from <= static_cast<From>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    return static_cast<T>(from);
  } else {
    return static_cast<T>(from);
  }
}

/// A row to be visited, whatever the visitor's type: the loops below are compiled once per K, not once per element type.
template <std::size_t K>
struct RowVisitor {
  void* visitor;
  void (*visit)(void* visitor, const std::array<std::int64_t, K>& offsets, std::int64_t count,
                const std::array<std::int64_t, K>& steps);
};

template <std::size_t K>
void visit_rows(const Shape& shape, const std::array<Strides, K>& strides, bool any_order, RowVisitor<K> row) {
  struct Loop {
    std::int64_t size;
    std::array<std::int64_t, K> step;
  };
  std::array<Loop, kMaxRank + 1> loops;
  int count = 0;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] == 0) return;
    if (shape[d] == 1) continue;
    Loop& loop = loops[static_cast<std::size_t>(count++)];
    loop.size = shape[d];
    for (std::size_t k = 0; k < K; ++k) loop.step[k] = strides[k][d];
  }
  if (any_order) {
    std::stable_sort(loops.begin(), loops.begin() + count,
                     [](const Loop& a, const Loop& b) { return std::abs(a.step[0]) > std::abs(b.step[0]); });
  }
  int merged = 0;  // neighbours that continue each other in every tensor become one loop
  for (int i = 1; i < count; ++i) {
    Loop& outer = loops[static_cast<std::size_t>(merged)];
    const Loop& inner = loops[static_cast<std::size_t>(i)];
    bool fits = true;
    for (std::size_t k = 0; k < K; ++k) fits = fits && outer.step[k] == inner.step[k] * inner.size;
    if (fits) {
      outer = {outer.size * inner.size, inner.step};
    } else {
      loops[static_cast<std::size_t>(++merged)] = inner;
    }
  }
  if (count == 0) {
    loops[0] = {1, {}};
  } else {
    count = merged + 1;
  }
  const int inner = std::max(count, 1) - 1;
  std::array<std::int64_t, kMaxRank + 1> position{};
  std::array<std::int64_t, K> offsets{};
  for (;;) {
    row.visit(row.visitor, offsets, loops[static_cast<std::size_t>(inner)].size,
              loops[static_cast<std::size_t>(inner)].step);
    int d = inner - 1;
    for (; d >= 0; --d) {
      const auto i = static_cast<std::size_t>(d);
      for (std::size_t k = 0; k < K; ++k) offsets[k] += loops[i].step[k];
      if (++position[i] < loops[i].size) break;
      for (std::size_t k = 0; k < K; ++k) offsets[k] -= loops[i].step[k] * loops[i].size;
      position[i] = 0;
    }
    if (d < 0) return;
  }
}

/// Calls row(offsets, count, steps) so that together the calls visit every index once, for K tensors of one shape.
/// With `any_order` the loops follow the memory of the first tensor; otherwise indices come in row-major order.
template <std::size_t K, class Row>
void for_each_row(const Shape& shape, const std::array<Strides, K>& strides, bool any_order, Row&& row) {
  using Visitor = std::remove_reference_t<Row>;
  visit_rows<K>(
      shape, strides, any_order,
      {const_cast<void*>(static_cast<const void*>(&row)),
       [](void* visitor, const std::array<std::int64_t, K>& offsets, std::int64_t count,
          const std::array<std::int64_t, K>& steps) { (*static_cast<Visitor*>(visitor))(offsets, count, steps); }});
}

}  // namespace cenote::detail
