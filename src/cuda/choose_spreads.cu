// Backward pools that are spread: windows overlap little or not at all, and each gives its elements their share.
#include "cuda/choose_backward.hpp"
#include "cuda/tiling.hpp"

namespace cenote::gpu {
namespace {

/// A pool of windows side by side along one long axis, written as rows of it: what threads work out once serves more elements.
Problem in_rows(const Problem& p, bool indexed) {
  const Axis& w = p.axis[2];
  for (int a = 0; a < 2; ++a) {
    if (p.axis[a].input != 1 || p.axis[a].output != 1 || p.axis[a].kernel != 1) return p;
  }
  if (w.stride != w.kernel || w.pad_begin != 0 || w.output * w.stride != w.input) return p;
  for (std::int64_t row = 512 / w.stride * w.stride; row >= 64; row -= w.stride) {
    if (w.input % row != 0 || row % 8 != 0) continue;
    Problem result = p;
    const std::int64_t rows = w.input / row;
    result.axis[1] = {WindowRule::sliding, rows, rows, 1, 1, 1, 0, 0};
    result.axis[2].input = row;
    result.axis[2].output = row / w.stride;
    result.grad_input.h = row * p.grad_input.w;
    result.grad_output.h = result.axis[2].output * p.grad_output.w;
    if (indexed) result.indices.h = result.axis[2].output * p.indices.w;
    return result;
  }
  return p;
}

/// Which positions along an adaptive axis another window begins to see as the first, and which two see, a bit to each.
void note_seen(const Axis& axis, std::uint32_t& begin, std::uint32_t& shared) {
  begin = shared = 0;
  for (std::int64_t i = 0; i < axis.input; ++i) {
    const Cover seen = cover(axis, i);
    if (i > 0 && cover(axis, i - 1).first < seen.first) begin |= std::uint32_t{1} << i;
    if (seen.count > 1) shared |= std::uint32_t{1} << i;
  }
}

}  // namespace

void Backward::keep_small_operands(Launch& launch, Share share) const {
  constexpr std::int64_t kMostKept = 20 << 20, kLeastStored = 64 << 20;
  const auto element = static_cast<std::int64_t>(size_of(p_.dtype)),
             index = static_cast<std::int64_t>(size_of(p_.index_dtype));
  const std::int64_t small = count_elements(p_, false), large = count_elements(p_, true);
  const bool indexed = share == Share::index;
  auto follows = [&](const Layout& layout) {  // its elements lie without gaps, in any order
    return (p_.batch - 1) * layout.n + (p_.channels - 1) * layout.c + (p_.axis[0].output - 1) * layout.d +
               (p_.axis[1].output - 1) * layout.h + (p_.axis[2].output - 1) * layout.w ==
           small - 1;
  };
  if (small * (element + (indexed ? index : 0)) > kMostKept || large * element < kLeastStored || large < 7 * small ||
      !follows(p_.grad_output) || (indexed && !follows(p_.indices)) || launch.batch_per_launch < p_.batch) {
    return;
  }
  launch.narrow.gradient_bytes = static_cast<std::int32_t>(small * element);
  launch.narrow.index_bytes = static_cast<std::int32_t>(indexed ? small * index : 0);
}

bool Backward::spread_down(Launches& result, Share share) {
  if (wide_ || is_empty() || (share != Share::index && share != Share::sum) || seen_by() > 4) return false;
  for (const Axis& axis : p_.axis) {
    if (axis.rule == WindowRule::fractional || axis.dilation != 1) return false;
  }
  const Axis &h = p_.axis[1], &w = p_.axis[2];
  const Function single = kernels_.spread_down(Way::single, share);
  if (single.entry == nullptr) return false;
  // Where windows lie side by side, whole ones, and no more than a few rows.
  auto rows_of = [&](const Function& function) {
    const bool apart = h.rule == WindowRule::sliding && h.stride >= h.kernel && h.stride >= 4;
    return apart ? h.stride * ceil_div(7, h.stride) : tall_strip(p_, function);
  };
  const bool channels_fastest = is_channels_fastest(p_.grad_input, p_, w.input);
  result.scalar = walk(p_, single, true, channels_fastest, rows_of(single));
  result.name = "walks down strips of " + std::to_string(result.scalar.narrow.strip) + " rows";
  if (channels_fastest) {
    const Function vector = kernels_.spread_down(Way::channels, share);
    if (share == Share::index ? channel_vectors({&p_.grad_input, &p_.grad_output, &p_.indices}, vector.lanes)
                              : channel_vectors({&p_.grad_input, &p_.grad_output}, vector.lanes)) {
      result.vector = walk(p_, vector, true, true, rows_of(vector));
      keep_small_operands(result.vector, share);
    }
  }
  return true;
}

void Backward::spread_whole_planes(Launches& result, Share share) {
  const Axis &h = p_.axis[1], &w = p_.axis[2];
  const std::int64_t elements = p_.batch * p_.channels * w.input;
  if (wide_ || is_empty() || (share != Share::index && share != Share::sum)) return;
  if (is_identity(p_.axis[0]) && p_.axis[0].input == 1 && is_identity(h) && h.input == 1 &&
      w.rule == WindowRule::sliding && w.output == 1 && w.kernel == w.input && w.dilation == 1 && w.pad_begin == 0 &&
      w.input >= kernels_.lanes && elements < INT32_MAX - 65536 && p_.divisor_override == 0 &&
      is_dense(p_.grad_input, p_, true) && is_dense(p_.grad_output, p_, false) &&
      (share == Share::sum || is_dense(p_.indices, p_, false))) {
    const Function planes = kernels_.spread_planes(share);
    if (planes.entry == nullptr) return;
    result.vector = make_launch(p_, planes, false, true, false, 1);
    result.vector.batch_per_launch = p_.batch;
    result.vector.tiles = ceil_div(elements, kBlock * kPieces * kernels_.lanes);
    keep_small_operands(result.vector, share);
    result.name = "planes spread; else " + result.name;
  }
}

bool Backward::spread_adaptive(Launches& result) {
  if (p_.reduction != Reduction::average || p_.divisor_override != 0 || !is_adaptive_plane()) return false;
  const Function single = kernels_.spread_adaptive(Way::single);
  if (single.entry == nullptr) return false;
  const Axis& h = p_.axis[1];
  const bool channels_fastest = is_channels_fastest(p_.grad_input, p_, p_.axis[2].input);
  const std::int64_t rows = ceil_div(h.input, ceil_div(h.input, 16));
  result.scalar = walk(p_, single, true, channels_fastest, rows);
  result.name = "walks down strips of " + std::to_string(result.scalar.narrow.strip) + " rows";
  if (channels_fastest && channel_vectors({&p_.grad_input, &p_.grad_output}))
    result.vector = walk(p_, kernels_.spread_adaptive(Way::channels), true, true, rows);
  if (result.vector.entry != nullptr) keep_small_operands(result.vector, Share::sum);
  const std::int64_t planes = p_.batch * p_.channels, elements = h.input * p_.axis[2].input;
  const std::int64_t outputs = h.output * p_.axis[2].output;
  // Shared memory for results and shares.
  constexpr std::int64_t kWantedBytes = 16 << 10;
  const auto element = static_cast<std::int64_t>(size_of(p_.dtype));
  const std::int64_t plane_bytes = elements * element + outputs * 4, more = 32;
  const std::int64_t together =
      planes_together(planes, (kWantedBytes - more) / plane_bytes, p_.axis[2].input, kAdaptiveBlock);
  if (!channels_fastest && together * plane_bytes + more <= kWantedBytes && h.input <= 32 && p_.axis[2].input <= 32 &&
      !is_few(true) && planes * elements < INT32_MAX - 65536 && is_dense(p_.grad_input, p_, true) &&
      is_dense(p_.grad_output, p_, false)) {
    result.scalar = make_launch(p_, kernels_.spread_adaptive_planes(), false, true, false, 1);
    group_planes(result.scalar, p_, together, kAdaptiveBlock, together * plane_bytes + more + 16);
    result.scalar.narrow.tiling.codes_at =
        static_cast<std::int32_t>(ceil_div(together * elements * element, 16) * 16 + 16);
    note_seen(h, result.scalar.narrow.rows_begin, result.scalar.narrow.rows_shared);
    note_seen(p_.axis[2], result.scalar.narrow.columns_begin, result.scalar.narrow.columns_shared);
    keep_small_operands(result.scalar, Share::sum);
    result.name = "small planes, gradients divided in shared memory";
  }
  return true;
}

bool Backward::spread_norms(Launches& result) {
  if (wide_ || is_empty()) return false;
  for (const Axis& axis : p_.axis) {
    if (axis.rule != WindowRule::sliding || axis.dilation != 1 || axis.stride != axis.kernel || axis.pad_begin != 0 ||
        axis.output * axis.kernel != axis.input) {
      return false;
    }
  }
  const bool channels_fastest = is_channels_fastest(p_.grad_input, p_, p_.axis[2].input);
  const bool square = p_.norm_type == 2;
  result.scalar = make_launch(p_, kernels_.spread_norms(Way::single, square), false, false, channels_fastest, 1);
  const Function columns = kernels_.spread_norms(Way::columns, square);
  if (p_.axis[0].kernel == 1 && p_.axis[1].kernel == 2 && p_.axis[2].kernel == 2 &&
      p_.axis[2].output % columns.columns == 0 && has_aligned_rows(p_.input, 2 * columns.columns) &&
      has_aligned_rows(p_.grad_input, 2 * columns.columns) && has_aligned_rows(p_.grad_output, columns.columns)) {
    result.vector = make_launch(p_, columns, false, false, false, 1);
  }
  result.name = "one thread to a window";
  return true;
}

void Backward::spread_whole_windows(Launches& result, Share share) {
  const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
  if (wide_ || is_empty()) return;
  for (const Axis& axis : p_.axis) {
    if (axis.rule != WindowRule::sliding || axis.dilation != 1 || axis.stride != axis.kernel || axis.pad_begin != 0 ||
        axis.output * axis.kernel != axis.input) {
      return;
    }
  }
  const bool indexed = share == Share::index;
  for (Way way : {Way::channels, Way::columns, Way::single}) {
    if (d.kernel > 2 || h.kernel > 3 || w.kernel > 4) return;
    const Function function = kernels_.spread_windows(way, share, p_.index_dtype, static_cast<int>(d.kernel),
                                                      static_cast<int>(h.kernel), static_cast<int>(w.kernel));
    if (function.entry == nullptr) continue;
    const bool channels_fastest = way == Way::channels;
    if (channels_fastest != is_channels_fastest(p_.grad_input, p_, w.input)) continue;
    if (channels_fastest
            ? !channel_vectors({&p_.grad_input, &p_.grad_output}, function.lanes) ||
                  (indexed && !channel_vectors({&p_.indices}, function.lanes))
            : w.output % function.columns != 0 || !has_aligned_rows(p_.grad_input, function.columns * w.kernel) ||
                  !has_aligned_rows(p_.grad_output, function.columns) ||
                  (indexed && !has_aligned_rows(p_.indices, function.columns))) {
      continue;
    }
    result.vector = make_launch(p_, function, false, false, channels_fastest, function.lanes);
    result.name = "one thread to a window; else " + result.name;
    return;
  }
}

bool Backward::spread_packed_pairs(Launches& result, Share share) {
  const Function function = kernels_.spread_packed_pairs(share, p_.index_dtype);
  if (function.entry == nullptr || !is_packed_pairs() || is_few(true) || !is_dense(p_.grad_input, p_, true) ||
      !is_dense(p_.grad_output, p_, false) || (share == Share::index && !is_dense(p_.indices, p_, false))) {
    return false;
  }
  result.vector = make_launch(p_, function, false, true, false, 1);
  result.vector.batch_per_launch = p_.batch;
  result.vector.threads_per_entry = count_elements(p_, true) / 2 / p_.batch;
  result.vector.tiles = ceil_div(count_elements(p_, true) / 2, kBlock * function.columns);
  result.name = "16 bytes of elements to a thread; else " + result.name;
  return true;
}

void Backward::spread_row_windows(Launches& result, Share share) {
  const Axis& w = p_.axis[2];
  const Function function = kernels_.spread_row_windows(share, p_.index_dtype, w.output * w.kernel == w.input);
  if (function.entry == nullptr || !has_row_windows(32) || w.stride < w.kernel || is_few(true) ||
      !is_dense(p_.grad_input, p_, true) || !is_dense(p_.grad_output, p_, false) ||
      (share == Share::index && !is_dense(p_.indices, p_, false))) {
    return;
  }
  Launch launch = make_launch(p_, function, false, true, false, 1);
  if (share == Share::sum && !launch.narrow.uniform_divisor) return;
  through_planes(launch, true, kBlock * function.columns);
  result.vector = launch;
  result.name = "16 bytes of elements to a thread, through all rows; else " + result.name;
}

bool Backward::spread_channel_rows(Launches& result, bool planar) {
  const Function function = kernels_.spread_channel_rows();
  if (function.entry == nullptr || is_few(true) || !has_channel_rows(p_.grad_input, p_.grad_output, planar, 4))
    return false;
  Launch launch = make_launch(one_by_one(planar), function, false, true, true, 1);
  if (!launch.narrow.uniform_divisor) return false;
  through_planes(launch, true, kBlock * function.columns);
  result.scalar = result.vector = launch;
  result.vector.narrow.aligned = true;
  result.name = "16 bytes of elements to a thread, through all channels";
  return true;
}

void Backward::spread_apart(Launches& result, Share share) {
  const Axis &h = p_.axis[1], &w = p_.axis[2];
  const Function function = kernels_.spread_apart(share, p_.index_dtype);
  if (wide_ || is_empty() || function.entry == nullptr || is_few(true) || !is_identity(p_.axis[0]) || is_identity(h) ||
      w.input < function.columns || count_elements(p_, true) > INT32_MAX - 65536 ||
      !is_dense(p_.grad_input, p_, true) || !is_dense(p_.grad_output, p_, false) ||
      (share == Share::index && !is_dense(p_.indices, p_, false))) {
    return;
  }
  for (const Axis* axis : {&h, &w}) {
    if (axis->rule != WindowRule::sliding || axis->dilation != 1 || axis->stride < axis->kernel ||
        axis->pad_begin != 0 || !has_no_empty_window(*axis)) {
      return;
    }
  }
  // Runs of aligned rows look at an output once for all rows of its window.
  if (has_aligned_rows(p_.grad_input, kernels_.lanes)) return;
  Launch launch = make_launch(p_, function, false, true, false, 1);
  if (share == Share::sum && !launch.narrow.uniform_divisor) return;
  through_planes(launch, true, kBlock * function.columns);
  result.vector = launch;
  result.name = "16 bytes of elements to a thread, through all planes; else " + result.name;
}

void Backward::spread_aligned_runs(Launches& result, Share share) {
  if (wide_ || is_empty() || (share != Share::index && share != Share::sum)) return;
  for (const Axis& axis : p_.axis) {
    if (axis.rule != WindowRule::sliding || axis.dilation != 1 || axis.stride < axis.kernel) return;
  }
  const Problem p = in_rows(p_, share == Share::index);
  const Axis& h = p.axis[1];
  const Function runs = kernels_.spread_runs(share, static_cast<int>(p.axis[2].input % 64));
  if (runs.entry == nullptr || !has_aligned_rows(p.grad_input, runs.columns)) return;
  // A strip of whole windows, of some rows at least.
  const std::int64_t rows = h.stride <= 8 ? h.stride * ceil_div(4, h.stride) : ceil_div(h.stride, 2);
  result.vector = walk(p, runs, true, false, rows);
  keep_small_operands(result.vector, share);
  result.name = "aligned runs spread; else " + result.name;
}

}  // namespace cenote::gpu
