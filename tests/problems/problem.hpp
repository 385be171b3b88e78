// One pooling call to try, written as a line that can be copied out of a failure and replayed:
//
//   max2d f32 nchw n2c17 h30w31 k3x2 s2x2 p1x1 d1x1 ceil
//
// The first three words are op and rank, dtype and layout (see Layout: nchw, nhwc, strided, spaced, ...); then, in any order:
//   n2c17            batch and channels; without n the input is unbatched
//   d4h30w31         the input's sizes (of unpool: the pooled side's)
//   shape2x17x30     instead of both, a shape of any rank (to try refusals)
//   k3x2 s2 d1x1     kernel_size, stride, dilation: one number for all axes, or one each; k[3] is a list of one
//   p1x1  p1x1:2x2   padding, or padding at the beginning and at the end; also same_upper, same_lower
//   ceil nopad div7  ceil_mode, count_include_pad = false, divisor_override
//   norm2.5          lp's norm_type
//   out5x*           output_size; * keeps the input's
//   ratio0.5x0.6     fractional output_ratio
//   idx:window       only this index kind (flat64, flat32, window); otherwise all are tried
//   ties             how values are drawn: normal ties negative nan inf neginf zeros tiny extreme
//   seed7            of the values
//   fwd bwd          only this pass
#pragma once

#include <cenote/plan.hpp>

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace cenote::testing {

enum class Layout : std::uint8_t {
  planar,         // nchw: contiguous
  channels_last,  // nhwc
  strided,        // gaps between elements, dimensions in an unusual order
  spaced,         // planes without gaps, some elements from one to the next
  flipped,        // the spatial axes run backwards through memory
  broadcast,      // every channel is the same memory
};

enum class ValueKind : std::uint8_t { normal, ties, negative, nan, inf, neginf, zeros, tiny, extreme };

enum class Passes : std::uint8_t { both, forward, backward };

struct Problem {
  PoolSpec spec;
  DType dtype = DType::f32;
  Layout layout = Layout::planar;
  Shape shape;
  std::optional<IndexKind> only_kind{};
  ValueKind values = ValueKind::normal;
  std::uint64_t seed = 1;
  Passes passes = Passes::both;

  bool batched() const { return shape.rank() == spec.dims + 2; }
};

/// A string that is no problem; the message names the word.
struct ProblemError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Problem parse_problem(std::string_view text);
/// The shortest line that parses to the same problem.
std::string to_string(const Problem& problem);

/// Whether the op writes indices, or (max_unpool) reads them.
constexpr bool has_indices(Op op) {
  return op == Op::max_pool || op == Op::min_pool || op == Op::adaptive_max_pool || op == Op::fractional_max_pool ||
         op == Op::max_unpool;
}

/// "max", "aavg", ... ; the golden recording's "max_pool" and the like are Op's own names.
const char* prefix_of(Op op);
ValueKind value_kind_of(std::string_view name);  ///< throws ProblemError

}  // namespace cenote::testing
