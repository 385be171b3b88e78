// What a pooling call looks at: sizes and windows, worked out from the definition and on purpose not shared with the library.
#pragma once

#include <cenote/options.hpp>
#include <cenote/view.hpp>

#include <cstdint>
#include <vector>

namespace cenote::reference {

/// A valid call with every default filled in. Axes are depth, height, width; missing leading ones have length 1 and a window
/// of one tap. For max_unpool, `input` is the large (unpooled) side and `output` the small one: it is the pool it undoes.
struct Pool {
  Op op = Op::max_pool;
  int dims = 2;
  DType dtype = DType::f32;
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  std::int64_t input[3] = {1, 1, 1};
  std::int64_t output[3] = {1, 1, 1};
  std::int64_t kernel[3] = {1, 1, 1};
  std::int64_t stride[3] = {1, 1, 1};
  std::int64_t dilation[3] = {1, 1, 1};
  std::int64_t pad_begin[3] = {0, 0, 0};
  std::int64_t pad_end[3] = {0, 0, 0};
  bool count_include_pad = true;
  std::int64_t divisor_override = 0;  ///< 0: none
  double norm_type = 2;

  std::int64_t planes() const { return batch * channels; }
  std::int64_t input_plane() const { return input[0] * input[1] * input[2]; }
  std::int64_t output_plane() const { return output[0] * output[1] * output[2]; }
  std::int64_t kernel_volume() const { return kernel[0] * kernel[1] * kernel[2]; }
  bool is_adaptive() const { return op == Op::adaptive_max_pool || op == Op::adaptive_avg_pool; }
  bool is_extremum() const {
    return op == Op::max_pool || op == Op::min_pool || op == Op::adaptive_max_pool || op == Op::fractional_max_pool;
  }
};

/// Fills in defaults and computes the output's sizes. `shape` is the input's: (N, C, spatial) or (C, spatial). Checks nothing:
/// an output size below 1 says that the call is not valid.
Pool resolve(const PoolSpec& spec, DType dtype, const Shape& shape);

/// The forward's output shape, batched as `shape` is.
Shape output_shape(const Pool& pool, const Shape& shape);

/// The positions one output sees along one axis, in order; those outside [0, input) are padding or overhang.
struct Window {
  std::vector<std::int64_t> taps;
  std::int64_t counted = 0;  ///< taps before the end of the right padding: what count_include_pad counts
};

/// `sample` is the fractional pool's random number for this axis and plane.
Window window(const Pool& pool, int axis, std::int64_t o, double sample);

/// The most taps any window has: decides the element type of `window` indices.
std::int64_t most_taps(const Pool& pool);

/// One output element and the three windows whose product it sees.
struct Box {
  std::int64_t plane;   ///< n * channels + c
  std::int64_t output;  ///< position in the whole output, row-major
  const Window* depth;
  const Window* height;
  const Window* width;

  std::int64_t counted() const { return depth->counted * height->counted * width->counted; }
};

/// Calls visit(box) for every output element in row-major order. `samples`: one per plane and axis, as the caller gave them
/// (2d: width first), empty for all ops but fractional pooling.
template <class Visit>
void for_each_box(const Pool& pool, const std::vector<double>& samples, Visit visit) {
  std::int64_t output = 0;
  for (std::int64_t plane = 0; plane < pool.planes(); ++plane) {
    std::vector<Window> windows[3];
    for (int axis = 0; axis < 3; ++axis) {
      const int which = pool.dims == 2 ? 2 - axis : axis;
      const bool sampled = !samples.empty() && axis >= 3 - pool.dims;
      const double sample = sampled ? samples[static_cast<std::size_t>(plane * pool.dims + which)] : 0;
      for (std::int64_t o = 0; o < pool.output[axis]; ++o) windows[axis].push_back(window(pool, axis, o, sample));
    }
    for (const Window& depth : windows[0]) {
      for (const Window& height : windows[1]) {
        for (const Window& width : windows[2]) visit(Box{plane, output++, &depth, &height, &width});
      }
    }
  }
}

/// Calls visit(position, flat, ordinal) for every tap of the box inside the input, in row-major order: the element's position
/// in the whole input, its position in the plane, and which tap of the whole (unclipped) box it is.
template <class Visit>
void for_each_tap(const Pool& pool, const Box& box, Visit visit) {
  std::int64_t ordinal = 0;
  for (std::int64_t z : box.depth->taps) {
    for (std::int64_t y : box.height->taps) {
      for (std::int64_t x : box.width->taps) {
        const bool inside = z >= 0 && z < pool.input[0] && y >= 0 && y < pool.input[1] && x >= 0 && x < pool.input[2];
        const std::int64_t flat = (z * pool.input[1] + y) * pool.input[2] + x;
        if (inside) visit(box.plane * pool.input_plane() + flat, flat, ordinal);
        ++ordinal;
      }
    }
  }
}

}  // namespace cenote::reference
