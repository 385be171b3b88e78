// Which kernels a forward pool takes. Long windows have a file of their own.
#pragma once

#include "cuda/choose.hpp"

namespace cenote::gpu {

class Forward : public Choice {
 public:
  explicit Forward(const Choice& choice) : Choice(choice) {}

  void choose(Launches& result);

 private:
  /// The first of the ways that are made for windows of some kind, if one fits.
  bool by_shape(Launches& result);
  /// Averages of adaptive windows of different sizes.
  bool forward_adaptive(Launches& result);
  /// The same for planes of which a block can keep a few.
  bool adaptive_planes(Launches& result);
  /// Windows of few taps, none empty, none leaving its slice; `along_rows`: of some more where they leave no row either.
  bool has_few_taps(bool along_rows) const;
  /// Whether what a sum adds for an element takes multiplications at most. Other powers take longer than elements do to arrive: 3x3/2 of norm
  /// 2.5 156 us by the kernel for any windows, 172 through tiles (63 MB).
  bool is_multiplied() const;
  /// Windows of few taps over dense planar tensors.
  bool forward_tile_windows(Launches& result);
  /// Windows of few taps along rows over dense planar tensors that share nothing.
  bool forward_row_windows(Launches& result);
  /// Sums over windows that share nothing, where channels fill no vector, or of planes.
  bool forward_channel_rows(Launches& result, bool planar);
  /// Windows of few taps, straight from memory.
  bool forward_direct(Launches& result);
  /// Windows of many taps of neighbouring channels, straight from memory.
  bool forward_streams(Launches& result);
  /// Long windows of one slice that overlap much: their cost must not grow with their length.
  bool forward_lines(Launches& result);
  /// The order of a sum, and so its bits, must not depend on where tensors lie: the same kernel then, by single elements.
  void also_unaligned(Launches& result, const Function& unaligned);
  /// The same for windows one apart and aligned rows; `result` holds another way already, for pointers that are not aligned.
  void lane_quads(Launches& result);
  void channel_panes(Launches& result);
  /// The same for sums along rows alone.
  bool forward_along(Launches& result);
  /// From channels last to planar.
  bool forward_turned(Launches& result);
  /// Sums of 3x3 windows one apart.
  bool forward_slide(Launches& result);
  /// Small windows that overlap, over planes that a block can keep whole.
  bool slide_planes(Launches& result);
  /// Small square windows, by threads that walk down.
  bool forward_down(Launches& result);
  /// Whether small square windows over planar rows that are not aligned are folded sooner by threads that keep their column
  /// (forward_tile_windows) than by others (measured on an H200). `narrow`: rows that leave little to a warp.
  bool is_better_by_columns(bool narrow) const;
  /// So few outputs that what counts is how soon a thread begins.
  bool few_outputs(Launches& result);
  /// Maxima of windows that also overlap along the depth; `result` holds another way already, whose pointers and rows are aligned alike.
  void deep_maxima(Launches& result, Way way);
  /// Maxima of narrow elements, several to a register; `result` holds another way already, for pointers that are not aligned.
  void packed_maxima(Launches& result);
  /// Windows of 2x2 whose rows are too narrow for more; `result` holds another way already, for pointers that are not aligned.
  void packed_pairs(Launches& result);
  /// Small square windows of planar tensors with aligned rows. What is not aligned after all in a run goes the other ways.
  bool forward_rows(Launches& result);
  /// Windows of several rows, planar tensors; a band of rows is read by whole rows, whatever the windows across.
  bool forward_bands(Launches& result);
  /// Windows that are whole planes of any size; `tiled`: `result` holds another way already, for pointers that are not aligned.
  bool whole_planes(Launches& result, bool tiled);
  /// The same for sums of elements of two bytes, many planes to a block.
  bool narrow_planes(Launches& result);
  /// Dense planar tensors, through shared memory.
  bool forward_tiles(Launches& result);
};

}  // namespace cenote::gpu
