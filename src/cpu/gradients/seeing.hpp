// Which output rows see an input row, in the backward of maxima.
#pragma once

#include "cpu/rows/rows.hpp"

namespace cenote::simd {

/// An output row that sees the input row. `number`: of the first tap of the row of its windows that the input row is.
struct SeeingOutput {
  std::int64_t depth, height;
  std::int64_t slot;  // where what is known about it is kept
  std::int64_t number;
  bool is_new;  // the slot has held another one
};

/// Remembers which output rows have been seen: input rows that follow each other are seen by the same ones.
class SeeingOutputs {
 public:
  explicit SeeingOutputs(const RowPlan& plan) : plan_(plan) {
    for (std::int64_t& row : held_) row = -1;
  }

  /// Calls visit(output) for those of one input row, in the order of the outputs.
  template <class Visit>
  void for_each(const UnitCursor& unit, const Visit& visit) {
    const Problem& p = plan_.problem;
    const Cover& depth = plan_.covers[0][static_cast<std::size_t>(unit.depth)];
    const Cover& height = plan_.covers[1][static_cast<std::size_t>(unit.height)];
    const std::int64_t plane = unit.major * plan_.outer_minor_count + unit.minor;
    const std::int64_t stack = plane * static_cast<std::int64_t>(plan_.tiles.size()) + unit.tile_index;
    for (std::int64_t z = 0; z < depth.count; ++z) {
      for (std::int64_t y = 0; y < height.count; ++y) {
        const std::int64_t od = depth.first + z * depth.step, oh = height.first + y * height.step;
        const std::int64_t tap_depth = depth.first_tap - z * depth.tap_step;
        const std::int64_t tap_height = height.first_tap - y * height.tap_step;
        const std::int64_t slot = plan_.slot_of[0][static_cast<std::size_t>(od)] * plan_.slot_heights +
                                  plan_.slot_of[1][static_cast<std::size_t>(oh)];
        const std::int64_t row = (stack * p.axis[0].output + od) * p.axis[1].output + oh;
        const bool is_new = held_[slot] != row;
        held_[slot] = row;
        visit(SeeingOutput{od, oh, slot, (tap_depth * p.axis[1].kernel + tap_height) * p.axis[2].kernel, is_new});
      }
    }
  }

 private:
  const RowPlan& plan_;
  std::int64_t held_[kMostSlots];
};

/// An output row that sees the input row: the winning taps of its outputs, where its gradients begin, and the number of the first tap that
/// the input row is.
struct SeeingTaps {
  const std::uint8_t* taps;
  std::int64_t gradients;
  int number;
};

/// An output that sees the input column.
struct SeeingColumn {
  const std::uint8_t* taps;
  std::int64_t gradients;
  std::uint8_t want;  // the tap of its window that the input is
};

/// Those of `count` output rows, which begin with output `first`. Returns how many.
int seeing_columns(const SeeingTaps* rows, int count, const Cover& cover, std::int64_t first, std::int64_t inner,
                   SeeingColumn* seeing);

}  // namespace cenote::simd
