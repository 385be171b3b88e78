// Forward pools of long windows that overlap much: their cost must not grow with their length.
#include "cuda/choose_forward.hpp"
#include "cuda/tiling.hpp"

namespace cenote::gpu {

bool Forward::forward_lines(Launches& result) {
  const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
  if (wide_ || is_empty() || p_.absolute || d.input != 1 || d.output != 1 || d.kernel != 1) return false;
  for (const Axis* axis : {&h, &w}) {
    if (axis->rule != WindowRule::sliding || axis->dilation != 1 || !has_no_empty_window(*axis)) return false;
  }
  // A direct fold costs the taps, this about 20 whatever the window, times what is computed between the outputs of a stride.
  if (h.kernel * w.kernel < 20 * h.stride * w.stride) return false;
  const std::int64_t longest = larger(h.kernel, w.kernel);
  const int run = longest < 12 ? 4 : longest < 24 ? 8 : 16;
  Function function = kernels_.fold_lines(true, fold(), p_.with_indices, run);
  if (function.entry == nullptr) return false;
  const bool channels_fastest = is_channels_fastest(p_.input, p_, w.input) && p_.channels >= function.lanes;
  if (!channels_fastest) function = kernels_.fold_lines(false, fold(), p_.with_indices, run);
  result.scalar = make_launch(p_, function, false, false, channels_fastest, 1);
  result.name = "long windows: along the width, then the height, in shared memory";
  if (!cut_regions(result.scalar, p_, run, function.lanes)) return false;
  channels_fastest ? channel_panes(result) : lane_quads(result);
  return true;
}

void Forward::lane_quads(Launches& result) {
  const Axis &h = p_.axis[1], &w = p_.axis[2];
  const Function function = kernels_.fold_quads(fold(), p_.with_indices, true);
  if (function.entry == nullptr || h.stride != 1 || w.stride != 1 || w.kernel < 5 || w.input % 4 != 0 ||
      w.output % 4 != 0 || !has_aligned_rows(p_.input, 4) || !has_aligned_rows(p_.output, 4) ||
      (p_.with_indices && !has_aligned_rows(p_.indices, 4))) {
    return;
  }
  result.vector = make_launch(p_, function, false, false, false, 1);
  if (cut_quads(result.vector, p_)) {
    also_unaligned(result, kernels_.fold_quads(fold(), p_.with_indices, false));
    result.name = "long windows: four columns to a lane, then down; else " + result.name;
  } else {
    result.vector = Launch{};
  }
}

void Forward::channel_panes(Launches& result) {
  const Function function = kernels_.fold_panes(fold(), p_.with_indices, true);
  if (function.entry == nullptr || p_.axis[1].stride != 1 || p_.axis[2].stride != 1 || p_.axis[2].kernel < 5) return;
  if (p_.with_indices ? !channel_vectors({&p_.input, &p_.output, &p_.indices}, function.lanes)
                      : !channel_vectors({&p_.input, &p_.output}, function.lanes)) {
    return;
  }
  result.vector = make_launch(p_, function, false, false, true, function.lanes);
  if (cut_panes(result.vector, p_, function.lanes)) {
    also_unaligned(result, kernels_.fold_panes(fold(), p_.with_indices, false));
    result.name = std::string("long windows: ") +
                  (p_.with_indices ? "along rows of columns, then down" : "down columns, then along rows of them") +
                  "; else " + result.name;
  } else {
    result.vector = Launch{};
  }
}

void Forward::also_unaligned(Launches& result, const Function& unaligned) {
  if (fold() != Fold::sum) return;
  result.scalar = result.vector;
  result.scalar.entry = unaligned.entry;
}

bool Forward::forward_along(Launches& result) {
  const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
  if (wide_ || is_empty() || fold() != Fold::sum || p_.input.w != 1 || p_.output.w != 1 || !is_identity(d) ||
      !is_identity(h) || w.rule != WindowRule::sliding || w.dilation != 1 || w.stride != 1 || w.kernel < kAlongRun ||
      w.kernel > kAlongSpan / 4 || w.output < kAlongSpan / 4) {
    return false;
  }
  const Function function = kernels_.slide_along();
  if (function.entry == nullptr) return false;
  result.scalar = make_launch(p_, function, false, false, false, 1);
  Along& along = result.scalar.narrow.along;
  along.outputs = static_cast<std::int32_t>(along_outputs(w.kernel));
  along.pieces = Divisor<std::int32_t>(ceil_div(w.output, along.outputs));
  along.channels = Divisor<std::int32_t>(p_.channels);
  result.scalar.tiles = along.pieces.value * h.output * d.output * p_.channels * p_.batch;
  result.name = "long windows along rows, runs of " + std::to_string(kAlongRun) + " elements to a thread";
  return result.scalar.tiles <= INT32_MAX;
}

}  // namespace cenote::gpu
