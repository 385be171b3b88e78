// Averages and sums of columns of few channels, a row of outputs at a time.
#pragma once

#include "cpu/kernels.hpp"

#include <cstddef>
#include <cstdint>

namespace cenote::simd {

/// Rows of a window, at most; and elements behind what is buffered that may be read and written, in vectors of a line.
inline constexpr int kMostNarrowRows = 256;
inline constexpr std::int64_t kNarrowSlackBytes = 192;

/// Outputs of a row whose windows have as many columns each, cut into vectors. Of each vector: elements from the buffered sums' beginning to its first tap, and from
/// the results' beginning. What is stored beside a vector's own elements is overwritten by the next one.
struct NarrowSumRun {
  std::int64_t first, vectors;  // in the tables, at least four
  std::int64_t taps;
  bool whole;  // vectors are as long as registers, otherwise of 16 bytes of f32
};

/// Buffered: f32, or 16 bits for bytes. Each writes whole vectors and nothing but them.
struct NarrowSums {
  /// Sums of `count` rows, of at least a vector.
  void (*down)(const void* const* rows, std::int64_t count, std::int64_t elements, void* sums);
  /// Those added up along; `step`: elements from tap to tap. Long windows in lanes, see LaneSums.
  void (*along)(const void* sums, std::int64_t step, bool in_lanes, const NarrowSumRun& run, const std::int32_t* from,
                const std::int32_t* to, void* results);
  /// Results divided and rounded.
  void (*finish)(const void* results, std::int64_t elements, float divisor, void* target);
  std::int64_t lanes;         // of whole vectors
  std::int64_t few_channels;  // that the shorter vectors hold
  std::size_t size;           // of what is buffered
};

/// For columns of so many channels; without functions where there is none for the element type and instruction set.
NarrowSums narrow_sums(std::size_t target, DType dtype);

}  // namespace cenote::simd
