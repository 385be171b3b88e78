// Backward of maxima over planes whose windows share nothing: what its kernels need besides pointers.
#pragma once

#include "cpu/gradients/gather_planes.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cenote::simd {

/// A vector of inputs along a row, and the first output that sees one of them.
struct PickVector {
  std::int64_t column, output;
};

/// Made once per plan, read-only in run(). Planes lie `*_pitch` elements apart and are dense. No input is seen by two outputs, and no window is cut off.
struct PickPlan {
  std::int64_t planes, source_pitch, target_pitch, index_pitch;
  std::int64_t source_extent, index_extent;  // elements from the first to the last
  std::int64_t size;                         // of an element, in bytes
  Axis axis[3];
  std::int64_t width,
      columns;  // elements of a row of inputs and of outputs: those of all channels where the tensor is channels-last
  std::int64_t taps;              // of a window
  std::vector<SlicePair> slices;  // of each input slice
  std::int64_t bands, band;       // that the output rows of a slice are cut into, for threads to share; rows of each
  std::int64_t block;             // output rows whose input rows are put together at once
  std::vector<PickVector> vectors;
  std::vector<std::uint32_t> lanes,
      numbers;  // of each vector: the output that every lane takes, and its tap along the row; where none does, kNoNumber
  PacedPlan paced;  // of the target's rows

  // Scratch, bytes from the start of a slot: a block of gradients and one of taps, with what vectors reach beyond.
  std::size_t gradients_at, taps_at, paced_at, bytes;

  std::int64_t units() const { return planes * static_cast<std::int64_t>(slices.size()) * bands; }
};

/// The most rows of a window.
inline constexpr std::int64_t kMostPickedRows = 4;

/// Units [begin, end): bands of slices of planes. False if an index is no tap of its window.
using PickPlanesFn = bool (*)(const PickPlan&, const RowPointers&, std::int64_t begin, std::int64_t end, char* scratch);

/// Null where there is none for the instruction set.
PickPlanesFn pick_planes(std::size_t target);

}  // namespace cenote::simd
