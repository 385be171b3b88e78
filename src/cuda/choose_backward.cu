// Which kernels a backward pool takes: the first of these ways that fits it.
#include "cuda/choose_backward.hpp"

#include "cuda/tiling.hpp"

namespace cenote::gpu {
namespace {

// Blocks of a launch that nearly always finds nothing to do.
constexpr std::int64_t kBlocksToLookAgain = 132 * 4;

}  // namespace

std::int64_t tall_strip(const Problem& p, const Function& function) {
  const std::int64_t wanted = 4 * 132 * 1024, rows = larger(p.axis[1].input, 1);
  const std::int64_t across = ceil_div(p.axis[2].input, function.columns);
  const std::int64_t per_row = larger(p.batch * (p.channels / function.lanes) * p.axis[0].input * across, 1);
  const std::int64_t strip = ceil_div(rows, larger(ceil_div(wanted, per_row), 1));
  return ceil_div(rows, ceil_div(rows, strip));  // strips of one size
}

void Backward::choose(Launches& result) {
  if (p_.op == Op::fractional_max_pool) {
    ordered(result);
    return;
  }
  const Share share = p_.reduction == Reduction::power ? Share::power
                      : p_.absolute                    ? Share::infinite
                      : p_.with_indices                ? Share::index
                                                       : Share::sum;
  const bool channels_fastest = is_channels_fastest(p_.grad_input, p_, p_.axis[2].input);
  if (share == Share::sum && transposed_sum(result)) return;
  if (gather_few(result, share)) return;
  if (share == Share::power && spread_norms(result)) return;
  if (share == Share::sum && spread_channel_rows(result, false)) return;
  if (share == Share::sum && spread_adaptive(result)) return;
  if (share == Share::sum && gather_sums(result)) return;
  const bool single_channels = !channels_fastest || !channel_vectors({&p_.grad_input, &p_.grad_output, &p_.indices});
  const bool often_seen = share == Share::index && is_floating(p_.dtype) && seen_by() >= 16 && !wide_;
  if (often_seen && !is_empty() && by_winners(result)) return;
  const Axis &h = p_.axis[1], &w = p_.axis[2];
  if (gather_down(result, share)) {
    if (share == Share::index && gather_columns(result)) return;
    if (channels_fastest) {
      if (share == Share::index) gather_staged_channels(result);
    } else if (share != Share::index || !gather_staged(result)) {
      // Narrow aligned rows leave a warp stores of many pieces: 24 columns 51 us, 56 columns 104 (132 and 360 MB).
      if (share == Share::index && size_of(p_.dtype) == 4 && w.input <= 64 && spread_packed_pairs(result, share))
        return;
      if (share == Share::sum) {
        spread_aligned_runs(result, share);
      } else {
        gather_aligned_rows(result, share);
      }
      if (result.vector.entry == nullptr && spread_packed_pairs(result, share)) return;
      // Rows that are narrower are in tiles by now.
      if (result.vector.entry == nullptr && share == Share::sum && w.input >= 32 && spread_channel_rows(result, true))
        return;
      if (result.vector.entry == nullptr) gather_tile_windows(result, share);
    }
    spread_whole_windows(result, share);
    return;
  }
  const bool has_cells = !wide_ && is_small_square(p_) && h.stride == w.stride &&
                         kernels_.gather_cells(false, share, false, static_cast<int>(h.kernel),
                                               static_cast<int>(h.stride), static_cast<int>(h.pad_begin % h.stride))
                                 .entry != nullptr;
  if (!has_cells && gather_direct(result, share)) return;
  if (channels_fastest && spread_down(result, share)) {
    spread_whole_windows(result, share);
    return;
  }
  const bool many = often_seen && single_channels;
  // Straight from memory where a thread's elements are aligned or windows overlap on every side; otherwise through shared memory.
  const bool straight = share == Share::index && p_.axis[0].kernel <= p_.axis[0].stride &&
                        (p_.axis[1].stride == 1 || (p_.axis[1].kernel == 2 && p_.axis[2].input % 4 == 0));
  const bool cells = (straight || channels_fastest) && !wide_ && is_small_square(p_) &&
                     p_.axis[1].stride == p_.axis[2].stride &&
                     kernels_.gather_cells(false, share, false, static_cast<int>(p_.axis[1].kernel),
                                           static_cast<int>(p_.axis[1].stride),
                                           static_cast<int>(p_.axis[1].pad_begin % p_.axis[1].stride))
                             .entry != nullptr;
  if (!many && !cells && (share == Share::index || share == Share::sum) &&
      gather_tiles(result, share == Share::index ? Gather::selected : Gather::average)) {
    gather_tile_windows(result, share);
    gather_aligned_rows(result, share);
    if (share == Share::index) gather_slices(result);
    spread_aligned_runs(result, share);
    spread_row_windows(result, share);
    spread_apart(result, share);
    spread_whole_planes(result, share);
    // Rows that are not aligned leave whole windows stores of fewer than 16 bytes.
    if (h.kernel == 2 && w.kernel == 1) spread_whole_windows(result, share);
    if (p_.axis[1].kernel == 1 && (!has_row_windows(8) || has_aligned_rows(p_.grad_input, kernels_.lanes)))
      spread_whole_windows(result, share);
    return;
  }
  const bool vector =
      channels_fastest && (share == Share::index ? channel_vectors({&p_.grad_input, &p_.grad_output, &p_.indices})
                           : share == Share::sum ? channel_vectors({&p_.grad_input, &p_.grad_output})
                                                 : false);
  if (!wide_ && is_small_square(p_) && h.stride == w.stride && h.pad_begin % h.stride == w.pad_begin % w.stride) {
    const auto kernel = static_cast<int>(h.kernel), stride = static_cast<int>(h.stride);
    const auto phase = static_cast<int>(h.pad_begin % h.stride);
    const bool taps = p_.index_kind == IndexKind::window;
    const Function scalar = kernels_.gather_cells(false, share, taps, kernel, stride, phase);
    if (scalar.entry != nullptr) {
      result.scalar = make_launch(p_, scalar, false, true, channels_fastest, 1);
      result.name = "cells of " + std::to_string(scalar.rows) + "x" + std::to_string(scalar.columns) + " elements";
      const Layout& g = p_.grad_input;
      if (scalar.columns > 1 && g.w == 1 && w.input % scalar.columns == 0 && g.h % scalar.columns == 0 &&
          g.d % scalar.columns == 0 && g.c % scalar.columns == 0 && g.n % scalar.columns == 0) {
        result.scalar.paired = scalar.columns;
      }
      if (vector) {
        result.vector = make_launch(p_, kernels_.gather_cells(true, share, taps, kernel, stride, phase), false, true,
                                    true, kernels_.lanes);
      } else {
        gather_aligned_rows(result, share);
      }
      if (channels_fastest && share == Share::index) gather_staged_channels(result);
      return;
    }
  }
  if (many) {
    ordered(result);
    return;
  }
  result.scalar = make_launch(p_, kernels_.gather_windows(false, share, wide_), wide_, true, channels_fastest, 1);
  if (vector) {
    const Function function = kernels_.gather_windows(true, share, false);
    if (function.entry != nullptr) result.vector = make_launch(p_, function, false, true, true, kernels_.lanes);
  }
  result.name = "one thread to an element";
  if (share == Share::power) gather_norms(result);
}

void Backward::unpool(Launches& result) {
  const std::size_t element = wide_ ? 8 : 4;
  Launch anywhere = make_launch(p_, kernels_.unpool_ranges(wide_), wide_, true, false, 1);
  cut_planes(anywhere, p_, static_cast<std::int64_t>(49152 / element), kBlock, element);
  anywhere.most_blocks = kBlocksToLookAgain;
  bool windows = !wide_;
  for (const Axis& axis : p_.axis) windows = windows && has_no_empty_window(axis);
  if (!windows) {
    result.scalar = anywhere;
    result.scalar.most_blocks = 0;
    result.name = "a block to a range of the plane";
    return;
  }
  result.then = anywhere;
  if (gather_tiles(result, Gather::last)) {
    gather_aligned_rows(result, Share::last);
    result.name += "; indices outside their windows: a block to a range of the plane";
    return;
  }
  const bool channels_fastest = is_channels_fastest(p_.output, p_, p_.axis[2].input);
  result.scalar = make_launch(p_, kernels_.unpool_windows(false), false, true, channels_fastest, 1);
  if (channels_fastest && channel_vectors({&p_.input, &p_.output, &p_.indices})) {
    result.vector = make_launch(p_, kernels_.unpool_windows(true), false, true, true, kernels_.lanes);
  }
  result.name = "one thread to an element; indices outside their windows: a block to a range of the plane";
}

void Backward::unpool_backward(Launches& result) {
  const bool dense = !wide_ && p_.index_kind != IndexKind::window && is_dense(p_.grad_input, p_, false) &&
                     is_dense(p_.indices, p_, false) && is_dense(p_.grad_output, p_, true);
  const bool channels_fastest = is_channels_fastest(p_.grad_input, p_, p_.axis[2].output);
  result.scalar = make_launch(p_, dense ? kernels_.take_from_planes() : kernels_.take_at_indices(wide_), wide_, false,
                              channels_fastest, 1);
  result.name = "one thread to an element";
}

std::int64_t Backward::seen_by() const {
  std::int64_t count = 1;
  for (const Axis& axis : p_.axis) {
    const std::int64_t stride =
        axis.rule == WindowRule::sliding ? axis.stride : larger(axis.input / larger(axis.output, 1), 1);
    count *= ceil_div(axis.kernel, stride);
  }
  return count;
}

bool Backward::transposed_sum(Launches& result) {
  if (wide_ || is_empty() || !is_floating(p_.dtype)) return false;
  Problem mirrored = p_;
  std::int64_t divisor = 1;
  for (int a = 0; a < 3; ++a) {
    const Axis& axis = p_.axis[a];
    if (axis.rule != WindowRule::sliding || axis.stride != 1 || axis.dilation != 1 || axis.pad_begin > axis.kernel - 1)
      return false;
    const Window first = window(axis, 0), last = window(axis, axis.output - 1);
    if (p_.reduction == Reduction::average && p_.divisor_override == 0) {
      const bool uniform =
          p_.count_include_pad ? last.padded == axis.kernel : first.count == axis.kernel && last.count == axis.kernel;
      if (!uniform) return false;
      divisor *= axis.kernel;
    }
    Axis& other = mirrored.axis[a];
    other.input = axis.output;
    other.output = axis.input;
    other.pad_begin = axis.kernel - 1 - axis.pad_begin;
    other.pad_end = axis.input - axis.output + axis.kernel - 1 - other.pad_begin;
    if (other.pad_end < 0 || !has_no_empty_window(other)) return false;
  }
  mirrored.pass = Pass::forward;
  mirrored.input = p_.grad_output;
  mirrored.output = p_.grad_input;
  mirrored.grad_output = mirrored.grad_input = Layout{};
  if (p_.reduction == Reduction::average && p_.divisor_override == 0) mirrored.divisor_override = divisor;
  const Choice choice(mirrored);
  if (choice.is_wide()) return false;
  choose_forward(choice, result);
  result.name = "the forward of the gradient: " + result.name;
  result.mirrored = true;
  result.problem = choice.problem();
  return true;
}

void choose_backward(const Choice& choice, Launches& result) { Backward(choice).choose(result); }

void choose_unpool(const Choice& choice, Launches& result) {
  if (choice.problem().pass == Pass::forward) {
    Backward(choice).unpool(result);
  } else {
    Backward(choice).unpool_backward(result);
  }
}

}  // namespace cenote::gpu
