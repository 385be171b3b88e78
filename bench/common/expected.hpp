// The right answers, from the tests' reference, and the numbers they are asked for.
#pragma once

#include "data.hpp"

#include <cenote/dtype.hpp>
#include <cenote/executor.hpp>

namespace cenote::bench {

inline double to_double(f16 value) { return to_float(value); }
inline double to_double(bf16 value) { return to_float(value); }
template <class T>
double to_double(T value) {
  return static_cast<double>(value);
}

/// Calls f with a value of the C++ type of dtype.
template <class F>
auto with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f64: return f(double{});
    case DType::f16: return f(f16{});
    case DType::bf16: return f(bf16{});
    case DType::i8: return f(std::int8_t{});
    case DType::u8: return f(std::uint8_t{});
    case DType::i16: return f(std::int16_t{});
    case DType::i32: return f(std::int32_t{});
    case DType::i64: return f(std::int64_t{});
    default: return f(float{});
  }
}

/// Floating point: uniform in [-1, 1). Integers: every value of a byte.
void fill_random(void* data, DType dtype, std::int64_t count, std::uint64_t seed);

/// Indices for max_unpool, no two of a plane the same: a random tap where windows do not overlap, else each window's first.
void fill_unpool_indices(const Geometry& geometry, std::int64_t* indices);

/// Fills output, indices and grad_input (those that have memory) and the tolerances from the rest of `data`.
void compute_expected(const Case& pool, DType dtype, const Executor& executor, CaseData& data);

}  // namespace cenote::bench
