// A checked call: everything a kernel needs to know, nothing left to check. Plain data, shared with device code.
#pragma once

#include "geometry/axis.hpp"

#include <cenote/options.hpp>
#include <cenote/plan.hpp>
#include <cenote/view.hpp>

#include <cstdint>

namespace cenote {

/// What a window's elements are folded with.
enum class Reduction : std::uint8_t { max, min, sum, average, power };

/// Element strides of one tensor, missing axes 0.
struct Layout {
  std::int64_t n, c, d, h, w;
};

struct Problem {
  Op op;
  Pass pass;
  Reduction reduction;
  DType dtype;
  DType index_dtype;
  IndexKind index_kind;
  bool with_indices;       // forward writes them; backward of the max family and unpool read them
  bool count_include_pad;  // average, sliding
  bool absolute;           // lp_pool with an infinite norm: fold |x|
  int dims;
  std::int64_t batch;
  std::int64_t channels;
  Axis axis[3];                   // depth, height, width; missing leading ones have length 1
  std::int64_t divisor_override;  // 0: none
  double norm_type;
  Layout input, output, indices, grad_output, grad_input;  // of max_unpool: input small, output large
  Layout random_samples;                                   // n, c and (in w) the axis stride
};

/// A Problem with the descriptions of its tensors.
struct Described {
  Problem problem{};
  TensorDesc input, output, indices, grad_output, grad_input, random_samples;
  std::int64_t bytes_moved = 0;
};

/// The only way to a Problem: checks rank, dtype, arguments and layouts in PyTorch's order.
Status describe(Pass pass, const TensorDesc& input, const PoolSpec& spec, const PlanOptions& options,
                Described& result);

/// The elements of the plane of the pool's input (for max_unpool: of its output).
inline std::int64_t plane_size(const Problem& p) { return p.axis[0].input * p.axis[1].input * p.axis[2].input; }

/// Whether the channels of one position of the pool's input side lie together.
inline bool is_channels_last(const Problem& p, const Layout& layout) {
  return p.channels > 1 && layout.c == 1 && (layout.w != 1 || p.axis[2].input == 1);
}

/// Window starts of one fractional axis for one sample, computed in f64 for f64 tensors and in f32 for all others.
/// False when the sample is outside [0, 1) (or NaN). `starts` has axis.output entries.
bool fractional_starts(const Axis& axis, DType dtype, double sample, std::int64_t* starts);

/// Which sample drives axis a (0 depth, 1 height, 2 width): 2d takes width first, 3d depth first.
constexpr int sample_of_axis(int dims, int a) { return dims == 2 ? 2 - a : a; }

}  // namespace cenote
