// Cutting a call into pieces that fit in memory, each a call of its own.
//
// Dimensions are cut from the slowest in memory to the fastest: whole batches, then planes, then rows of one plane, until a piece
// fits. The pieces' results therefore follow each other in the output file. A sliding window cut along a spatial axis is the same
// window over a slice with other padding; an adaptive one stays adaptive where the slice has the whole's ratio.
#pragma once

#include "file_axes.hpp"

#include "geometry/problem.hpp"

#include <cenote/plan.hpp>

#include <cstdint>
#include <vector>

namespace cenote::tool {

/// One piece: a box of the output and the box of the input it needs.
struct Piece {
  std::int64_t output_begin[5], output_size[5];
  std::int64_t input_begin[5], input_size[5];
  std::int64_t pad_begin[3], pad_end[3];  // by spatial axis
  bool inside_plane = false;              // cut along a spatial axis
};

class Pieces {
 public:
  /// `memory` bounds the bytes of input, output and indices of a piece where the geometry allows it. `spatial`: whether planes
  /// may be cut (not for fractional pooling and unpooling, whose windows are not where a formula says).
  Pieces(const Described& whole, const FileAxes& axes, bool fortran_order, std::int64_t memory, bool spatial);

  std::int64_t count() const noexcept { return count_; }
  Piece at(std::int64_t number) const;

 private:
  std::int64_t input_span(int dim, std::int64_t outputs) const;

  const Problem problem_;
  int rank_ = 0;
  std::int64_t input_[5] = {}, output_[5] = {};
  int order_[5] = {};  // slowest first
  std::int64_t chunk_[5] = {};
  std::int64_t chunks_[5] = {};
  std::int64_t count_ = 1;
};

/// The spec of a piece: the whole's, with the piece's padding where it is cut inside a plane.
PoolSpec spec_of(const Piece& piece, const PoolSpec& whole, const Problem& problem);
TensorDesc input_of(const Piece& piece, const TensorDesc& whole);
/// Dense, in the file's order.
TensorDesc output_of(const Piece& piece, const TensorDesc& whole);
std::int64_t first_element(const std::int64_t* begin, const TensorDesc& whole);
/// Elements from the first to the last of the piece's input, gaps included.
std::int64_t extent(const TensorDesc& desc);

/// Flat indices of a piece cut inside a plane count in its slice: makes them count in the whole plane. Leaves -1 alone.
void shift_indices(const Piece& piece, const Problem& problem, DType dtype, void* indices, std::int64_t count);

}  // namespace cenote::tool
