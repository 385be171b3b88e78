#include "pieces.hpp"

#include <algorithm>
#include <numeric>

namespace cenote::tool {
namespace {

/// The geometry axis of a logical dimension; the last of the three is the last spatial dimension.
const Axis& axis_of(const Problem& problem, int dim) { return problem.axis[3 - problem.dims + dim - 2]; }

bool is_dense(const TensorDesc& desc, const Strides& strides) {
  for (int d = 0; d < desc.rank(); ++d) {
    if (desc.shape[d] > 1 && strides[d] != desc.strides[d]) return false;
  }
  return true;
}

/// Dense strides in the order of the whole's strides.
Strides dense_like(const Shape& shape, const Strides& whole) {
  int order[kMaxRank];
  std::iota(order, order + shape.rank(), 0);
  std::stable_sort(order, order + shape.rank(), [&](int a, int b) { return whole[a] > whole[b]; });
  Strides strides = shape;
  std::int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[order[i]] = step;
    step *= std::max<std::int64_t>(shape[order[i]], 1);
  }
  return strides;
}

template <class T>
void shift(const Piece& piece, const Problem& problem, T* indices, std::int64_t count) {
  const Axis* axis = problem.axis;
  const int missing = 3 - problem.dims;
  std::int64_t size[3] = {1, 1, 1}, begin[3] = {0, 0, 0};
  for (int a = missing; a < 3; ++a) {
    size[a] = piece.input_size[2 + a - missing];
    begin[a] = piece.input_begin[2 + a - missing];
  }
  for (std::int64_t i = 0; i < count; ++i) {
    if (indices[i] < 0) continue;
    const std::int64_t flat = indices[i];
    const std::int64_t x = flat % size[2] + begin[2];
    const std::int64_t y = flat / size[2] % size[1] + begin[1];
    const std::int64_t z = flat / size[2] / size[1] + begin[0];
    indices[i] = static_cast<T>((z * axis[1].input + y) * axis[2].input + x);
  }
}

}  // namespace

Pieces::Pieces(const Described& whole, const FileAxes& axes, bool fortran_order, std::int64_t memory, bool spatial)
    : problem_(whole.problem), rank_(axes.logical_rank()) {
  for (int d = 0; d < rank_; ++d) {
    input_[d] = whole.input.shape[d];
    output_[d] = whole.output.shape[d];
    chunk_[d] = std::max<std::int64_t>(output_[d], 1);
  }
  int next = 0;
  bool listed[5] = {};
  for (int i = 0; i < axes.rank; ++i) {
    const int d = axes.logical[fortran_order ? axes.rank - 1 - i : i];
    order_[next++] = d;
    listed[d] = true;
  }
  for (int d = 0; d < rank_; ++d) {
    if (!listed[d]) order_[next++] = d;  // size 1: never cut
  }

  const auto element = static_cast<std::int64_t>(size_of(problem_.dtype));
  const std::int64_t index = problem_.with_indices ? static_cast<std::int64_t>(size_of(problem_.index_dtype)) : 0;
  const std::int64_t output_cost = element + (problem_.op == Op::max_unpool ? 0 : index);
  const std::int64_t input_cost = element + (problem_.op == Op::max_unpool ? index : 0);
  std::int64_t input_inner = input_cost, output_inner = output_cost;
  for (int d = 0; d < rank_; ++d) {
    input_inner *= std::max<std::int64_t>(input_[d], 1);
    output_inner *= std::max<std::int64_t>(output_[d], 1);
  }
  for (int i = 0; i < rank_ && input_inner + output_inner > memory; ++i) {
    const int d = order_[i];
    // Past an axis that cannot be cut, slices would be scattered over all of it and save nothing.
    if (d >= 2 && (!spatial || (output_[d] <= 1 && input_[d] > 1))) break;
    if (output_[d] <= 1) continue;
    const std::int64_t input_step = input_inner / std::max<std::int64_t>(input_[d], 1);
    const std::int64_t output_step = output_inner / output_[d];
    const auto cost = [&](std::int64_t n) { return input_span(d, n) * input_step + n * output_step; };
    std::int64_t least = 1, unit = 1;
    if (d >= 2) {
      const Axis& axis = axis_of(problem_, d);
      if (axis.rule == WindowRule::adaptive) {
        unit = axis.output / std::gcd(axis.input, axis.output);
        if (cost(unit) > memory) unit = 1;
      } else {
        // Enough outputs that every piece holds a whole kernel of real input beside its padding.
        least = 1 + ceil_div(larger(axis.pad_begin, axis.pad_end + axis.stride), axis.stride);
      }
    }
    std::int64_t n = output_[d] / unit;
    if (cost(n * unit) > memory) {  // the largest multiple of unit that fits, by bisection
      std::int64_t low = 1, high = n;
      while (low + 1 < high) {
        const std::int64_t middle = low + (high - low) / 2;
        (cost(middle * unit) <= memory ? low : high) = middle;
      }
      n = low;
    }
    // Single adaptive outputs are pieces of their own; several together are adaptive only in whole units.
    chunk_[d] = std::min(output_[d], larger(n * unit, least));
    if (d >= 2 && axis_of(problem_, d).rule == WindowRule::adaptive && unit == 1 &&
        axis_of(problem_, d).input % axis_of(problem_, d).output != 0) {
      chunk_[d] = 1;
    }
    input_inner = input_span(d, chunk_[d]) * input_step;
    output_inner = chunk_[d] * output_step;
    if (chunk_[d] > 1) break;
  }
  for (int d = 0; d < rank_; ++d) {
    // A remainder shorter than a chunk joins the chunk before it along sliding axes, see `least`.
    const bool joins = d >= 2 && axis_of(problem_, d).rule == WindowRule::sliding;
    chunks_[d] = output_[d] == 0 ? 0 : joins ? larger(1, output_[d] / chunk_[d]) : ceil_div(output_[d], chunk_[d]);
    count_ *= chunks_[d];
  }
}

std::int64_t Pieces::input_span(int dim, std::int64_t outputs) const {
  if (dim < 2) return outputs;
  const Axis& axis = axis_of(problem_, dim);
  if (axis.rule == WindowRule::adaptive) return smaller(axis.input, outputs * axis.input / larger(axis.output, 1) + 2);
  return smaller(axis.input, (outputs - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1);
}

Piece Pieces::at(std::int64_t number) const {
  Piece piece{};
  for (int i = rank_ - 1; i >= 0; --i) {
    const int d = order_[i];
    const std::int64_t c = number % chunks_[d];
    number /= chunks_[d];
    const std::int64_t begin = c * chunk_[d];
    const std::int64_t end = c + 1 == chunks_[d] ? output_[d] : begin + chunk_[d];
    piece.output_begin[d] = begin;
    piece.output_size[d] = end - begin;
    piece.input_begin[d] = d < 2 ? begin : 0;
    piece.input_size[d] = d < 2 ? end - begin : input_[d];
    if (d < 2) continue;
    const Axis& axis = axis_of(problem_, d);
    piece.pad_begin[d - 2] = axis.pad_begin;
    piece.pad_end[d - 2] = axis.pad_end;
    if (chunks_[d] == 1) continue;
    piece.inside_plane = true;
    if (axis.rule == WindowRule::adaptive) {
      piece.input_begin[d] = adaptive_start(axis, begin);
      piece.input_size[d] = adaptive_end(axis, end - 1) - piece.input_begin[d];
      continue;
    }
    const std::int64_t start = begin * axis.stride - axis.pad_begin;
    const std::int64_t stop = (end - 1) * axis.stride - axis.pad_begin + (axis.kernel - 1) * axis.dilation + 1;
    piece.input_begin[d] = larger(start, 0);
    piece.pad_begin[d - 2] = larger(-start, 0);
    if (end < output_[d]) {
      // Windows that reach into the right padding are all in the last chunk, see `least`.
      piece.input_size[d] = stop - piece.input_begin[d];
      piece.pad_end[d - 2] = 0;
    } else {
      // The end of the whole: the same padding and the same overhang in ceil mode.
      piece.input_size[d] = axis.input - piece.input_begin[d];
    }
  }
  return piece;
}

PoolSpec spec_of(const Piece& piece, const PoolSpec& whole, const Problem& problem) {
  PoolSpec spec = whole;
  const bool adaptive = problem.axis[2].rule == WindowRule::adaptive;
  std::int64_t outputs[3];
  for (int a = 0; a < whole.dims; ++a) outputs[a] = piece.output_size[2 + a];
  const auto dims = static_cast<std::size_t>(whole.dims);
  if (adaptive) spec.output_size = DimList(std::span<const std::int64_t>(outputs, dims));
  if (piece.inside_plane && problem.axis[2].rule == WindowRule::sliding && whole.op != Op::max_unpool) {
    spec.padding = PaddingList(DimList(std::span<const std::int64_t>(piece.pad_begin, dims)),
                               DimList(std::span<const std::int64_t>(piece.pad_end, dims)));
  }
  return spec;
}

TensorDesc input_of(const Piece& piece, const TensorDesc& whole) {
  TensorDesc desc = whole;
  for (int d = 0; d < whole.rank(); ++d) desc.shape[d] = piece.input_size[d];
  const Strides dense = dense_like(desc.shape, whole.strides);
  if (is_dense(desc, dense)) desc.strides = dense;
  return desc;
}

TensorDesc output_of(const Piece& piece, const TensorDesc& whole) {
  TensorDesc desc = whole;
  for (int d = 0; d < whole.rank(); ++d) desc.shape[d] = piece.output_size[d];
  desc.strides = dense_like(desc.shape, whole.strides);
  return desc;
}

std::int64_t first_element(const std::int64_t* begin, const TensorDesc& whole) {
  std::int64_t first = 0;
  for (int d = 0; d < whole.rank(); ++d) first += begin[d] * whole.strides[d];
  return first;
}

std::int64_t extent(const TensorDesc& desc) {
  std::int64_t last = 0;
  for (int d = 0; d < desc.rank(); ++d) {
    if (desc.shape[d] == 0) return 0;
    last += (desc.shape[d] - 1) * desc.strides[d];
  }
  return last + 1;
}

void shift_indices(const Piece& piece, const Problem& problem, DType dtype, void* indices, std::int64_t count) {
  if (!piece.inside_plane) return;
  if (dtype == DType::i64) shift(piece, problem, static_cast<std::int64_t*>(indices), count);
  if (dtype == DType::i32) shift(piece, problem, static_cast<std::int32_t*>(indices), count);
}

}  // namespace cenote::tool
