// Which kernels a forward pool takes: the first of these ways that fits it.
#include "cuda/choose_forward.hpp"

#include "cuda/tiling.hpp"

#include <cmath>

namespace cenote::gpu {

namespace {

// Outputs up to which a thread to each is as fast as any other way, or faster (measured on an H200).
constexpr std::int64_t kFewOutputs = 132 * 1024;

/// Of the largest window along an axis.
std::int64_t count_most_taps(const Axis& axis) {
  std::int64_t most = 0;
  for (std::int64_t o = 0; o < axis.output; ++o) most = larger(most, window(axis, o).count);
  return most;
}

}  // namespace

bool Forward::by_shape(Launches& result) {
  // A zero stands for what lies outside the input, which adds nothing to a sum of positive powers alone.
  if (p_.reduction == Reduction::power && p_.norm_type < 0) return false;
  if (few_outputs(result)) return true;
  if (forward_along(result) || forward_lines(result) || forward_turned(result) || forward_slide(result) ||
      forward_channel_rows(result, false) || forward_down(result))
    return true;
  if (!is_multiplied()) return false;
  if (forward_rows(result) || forward_adaptive(result) || forward_row_windows(result) ||
      forward_channel_rows(result, true) || forward_tile_windows(result) || forward_direct(result))
    return true;
  if (forward_streams(result) || forward_bands(result)) return true;
  const bool tiled = forward_tiles(result);
  return whole_planes(result, tiled) || tiled;
}

void Forward::choose(Launches& result) {
  if (by_shape(result)) return;
  const bool channels_fastest = is_channels_fastest(p_.input, p_, p_.axis[2].input);
  const bool indices = p_.with_indices;
  const bool vector =
      channels_fastest && p_.axis[2].rule != WindowRule::fractional && !p_.absolute &&
      (indices ? channel_vectors({&p_.input, &p_.output, &p_.indices}) : channel_vectors({&p_.input, &p_.output}));
  result.name = "one thread to a window";
  result.scalar =
      make_launch(p_, kernels_.fold_windows(false, fold(), indices, wide_), wide_, false, channels_fastest, 1);
  if (vector) {
    const Function function = kernels_.fold_windows(true, fold(), indices, false);
    if (function.entry != nullptr) result.vector = make_launch(p_, function, false, false, true, kernels_.lanes);
  }
}

bool Forward::forward_adaptive(Launches& result) {
  const Axis& w = p_.axis[2];
  if (fold() != Fold::sum || p_.reduction != Reduction::average || p_.divisor_override != 0 || w.kernel > 8)
    return false;
  if (!is_adaptive_plane()) return is_adaptive_plane(true) && adaptive_planes(result);
  const Function single = kernels_.average_adaptive(Way::single);
  if (single.entry == nullptr) return false;
  const bool channels_fastest = is_channels_fastest(p_.input, p_, w.input);
  // Tall strips, as long as there are threads for all of a large GPU.
  const std::int64_t threads = count_elements(p_, false) / (channels_fastest ? kernels_.lanes : 1);
  const std::int64_t most_rows = smaller(larger(threads / (132 * 1024), 1), 8);
  const std::int64_t rows = ceil_div(p_.axis[1].output, ceil_div(p_.axis[1].output, most_rows));
  result.scalar = walk(p_, single, false, channels_fastest, rows);
  result.name = "walks down strips of " + std::to_string(result.scalar.narrow.strip) + " windows";
  const Function vector = kernels_.average_adaptive(Way::channels);
  if (channels_fastest && channel_vectors({&p_.input, &p_.output}, vector.lanes))
    result.vector = walk(p_, vector, false, true, rows);
  if (!channels_fastest) adaptive_planes(result);
  return true;
}

bool Forward::adaptive_planes(Launches& result) {
  constexpr std::int64_t kMostBytes = 16 << 10;
  const std::int64_t wanted_bytes = leaves_first(p_) ? 12 << 10 : 6 << 10;
  const std::int64_t planes = p_.batch * p_.channels;
  const std::int64_t bytes = p_.axis[1].input * p_.axis[2].input * static_cast<std::int64_t>(size_of(p_.dtype));
  const std::int64_t outputs = p_.axis[1].output * p_.axis[2].output;
  if (bytes > kMostBytes || is_few(true) || planes > INT32_MAX / 2 || !is_dense(p_.input, p_, true) ||
      !is_dense(p_.output, p_, false)) {
    return false;
  }
  const std::int64_t most = larger(count_most_taps(p_.axis[1]), count_most_taps(p_.axis[2]));
  const Function function = kernels_.average_adaptive_planes(static_cast<int>(most));
  if (most > 4 || function.entry == nullptr) return false;
  // A round of a block takes so many whole planes.
  const std::int64_t at_once = larger(kAdaptiveBlock / outputs, 1);
  const std::int64_t together = planes_together(planes, larger(wanted_bytes / bytes, 1), 1, at_once);
  result.scalar = make_launch(p_, function, false, false, false, 1);
  group_planes(result.scalar, p_, together, kAdaptiveBlock, together * bytes + 16);
  result.name = std::to_string(together) + " planes in shared memory, a thread keeps its window";
  return true;
}

bool Forward::has_few_taps(bool along_rows) const {
  const Axis &h = p_.axis[1], &w = p_.axis[2];
  if (wide_ || is_empty() || p_.absolute || !is_identity(p_.axis[0])) return false;
  for (const Axis* axis : {&h, &w}) {
    if (axis->rule == WindowRule::fractional || !has_no_empty_window(*axis)) return false;
  }
  // Of more taps along rows, those that neighbouring threads read lie in few banks of shared memory where windows are far apart.
  if (along_rows && is_identity(h) && w.kernel > 8)
    return w.kernel <= 32 && w.rule == WindowRule::sliding && (w.stride % 2 != 0 || w.stride <= 4);
  return h.kernel <= 8 && w.kernel <= 8 && h.kernel * w.kernel <= 25;
}

bool Forward::is_multiplied() const {
  return p_.reduction != Reduction::power ||
         (p_.norm_type >= 1 && p_.norm_type <= 7 && p_.norm_type == std::floor(p_.norm_type));
}

bool Forward::forward_tile_windows(Launches& result) {
  const Axis &h = p_.axis[1], &w = p_.axis[2];
  const Function function = kernels_.fold_tile_windows(
      fold(), p_.with_indices, is_identity(h) ? 1 : static_cast<int>(larger(h.kernel, 2)), static_cast<int>(w.kernel));
  if (!has_few_taps(true) || !is_multiplied() || function.entry == nullptr || is_few(false) ||
      !is_dense(p_.input, p_, true) || !is_dense(p_.output, p_, false) ||
      (p_.with_indices && !is_dense(p_.indices, p_, false))) {
    return false;
  }
  result.scalar = make_launch(p_, function, false, false, false, 1);
  result.name = "few taps, tiles in shared memory";
  return cut_windows(result.scalar, p_);
}

bool Forward::forward_row_windows(Launches& result) {
  const Axis& w = p_.axis[2];
  const bool padded = !has_row_windows(8);
  const Function function = kernels_.fold_row_windows(fold(), p_.with_indices, static_cast<int>(w.kernel), padded);
  if (function.entry == nullptr || (padded && !has_row_windows(3, true)) || is_few(false) ||
      !is_dense(p_.input, p_, true) || !is_dense(p_.output, p_, false) ||
      (p_.with_indices && !is_dense(p_.indices, p_, false))) {
    return false;
  }
  // Tiles read once what many taps share, take narrow elements with fewer instructions, and know where many taps lie (measured on an H200).
  const bool share = w.stride < w.kernel;
  if (p_.with_indices ? !share && w.kernel > 5 : share ? w.kernel > 3 : fold() == Fold::max && size_of(p_.dtype) == 2) {
    return false;
  }
  Launch launch = make_launch(p_, function, false, false, false, 1);
  if (fold() == Fold::sum && !launch.narrow.uniform_divisor) return false;
  through_planes(launch, false, kBlock * kRowOutputs);
  result.scalar = launch;
  result.name = std::to_string(kRowOutputs) + " outputs to a thread, through all rows";
  return true;
}

bool Forward::forward_channel_rows(Launches& result, bool planar) {
  const Function function =
      kernels_.fold_channel_rows(static_cast<int>(p_.axis[1].kernel), static_cast<int>(p_.axis[2].kernel));
  if (fold() != Fold::sum || function.entry == nullptr || is_few(false) ||
      !has_channel_rows(p_.input, p_.output, planar, kernels_.lanes / 2)) {
    return false;
  }
  Launch launch = make_launch(one_by_one(planar), function, false, false, true, 1);
  launch.narrow.grid.width = Divisor<std::int32_t>(p_.axis[2].output);
  if (!launch.narrow.uniform_divisor) return false;
  through_planes(launch, false, kBlock * function.columns);
  result.scalar = launch;
  result.name = std::to_string(function.columns) + " outputs to a thread, through all channels";
  return true;
}

bool Forward::forward_direct(Launches& result) {
  if (!has_few_taps(false)) return false;
  auto function_for = [&](bool vector) {
    return kernels_.fold_direct(vector, fold(), p_.with_indices, static_cast<int>(p_.axis[1].kernel),
                                static_cast<int>(p_.axis[2].kernel));
  };
  const Function single = function_for(false), vector = function_for(true);
  if (single.entry == nullptr) return false;
  constexpr std::int64_t kRows = 4;
  const bool channels_fastest = is_channels_fastest(p_.input, p_, p_.axis[2].input);
  result.scalar = walk_directly(p_, single, false, channels_fastest, kRows);
  result.name = "few taps, walks down strips of " + std::to_string(result.scalar.narrow.strip) + " rows";
  if (channels_fastest && (p_.with_indices ? channel_vectors({&p_.input, &p_.output, &p_.indices}, vector.lanes)
                                           : channel_vectors({&p_.input, &p_.output}, vector.lanes))) {
    result.vector = walk_directly(p_, vector, false, true, kRows);
  }
  return true;
}

bool Forward::forward_streams(Launches& result) {
  const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
  if (wide_ || is_empty() || p_.absolute || w.rule == WindowRule::fractional || d.kernel * h.kernel * w.kernel < 8 ||
      !is_channels_fastest(p_.input, p_, w.input)) {
    return false;
  }
  // Threads that share a window have four taps each or more, and read what no other window sees.
  const std::int64_t taps = d.kernel * h.kernel * w.kernel;
  bool shared = taps >= 40;
  for (const Axis& axis : p_.axis) {
    shared = shared && axis.rule == WindowRule::sliding && axis.stride == axis.kernel && axis.dilation == 1 &&
             axis.pad_begin == 0 && axis.output * axis.kernel <= axis.input;
  }
  // 16 threads where each then has one batch of loads, which 8 would not have; 32 where 8 would leave a large GPU without enough of them.
  const bool few = count_elements(p_, false) / kernels_.lanes * 8 < 132 * 256;
  const int parts = !shared ? 1 : few && taps >= 32 * 8 ? 32 : taps > 64 && taps <= 128 ? 16 : 8;
  auto function_for = [&](bool vector) {
    return parts > 1 ? kernels_.fold_stream_parts(vector, fold(), p_.with_indices, parts)
                     : kernels_.fold_streams(vector, fold(), p_.with_indices);
  };
  auto launch_of = [&](const Function& function) {
    Launch launch = make_launch(p_, function, false, false, true, function.lanes);
    launch.block = parts > 1 ? kBlock : kStreamBlock;
    launch.threads_per_result = parts;
    return launch;
  };
  const Function single = function_for(false);
  if (single.entry == nullptr) return false;
  result.name = std::to_string(parts) + (parts > 1 ? " threads" : " thread") + " to a window, many loads under way";
  result.scalar = launch_of(single);
  const Function vector = function_for(true);
  if (p_.with_indices ? channel_vectors({&p_.input, &p_.output, &p_.indices}, vector.lanes)
                      : channel_vectors({&p_.input, &p_.output}, vector.lanes)) {
    result.vector = launch_of(vector);
  }
  return true;
}

bool Forward::forward_turned(Launches& result) {
  if (wide_ || is_empty() || p_.absolute || p_.channels < 8 || p_.output.w != 1 || p_.axis[2].output < 8 ||
      p_.axis[2].rule == WindowRule::fractional || !is_channels_fastest(p_.input, p_, p_.axis[2].input) ||
      is_channels_fastest(p_.output, p_, p_.axis[2].output)) {
    return false;
  }
  const Function function = kernels_.fold_turned(false, fold(), p_.with_indices);
  if (function.entry == nullptr) return false;
  result.scalar = make_launch(p_, function, false, false, true, 1);
  const std::int64_t groups = ceil_div(p_.channels, kTurned), columns = ceil_div(p_.axis[2].output, kTurned);
  Turned& turned = result.scalar.narrow.turned;
  turned.channel_groups = Divisor<std::int32_t>(groups);
  turned.column_groups = Divisor<std::int32_t>(columns);
  turned.channels = static_cast<std::int32_t>(p_.channels);
  result.scalar.tiles = p_.batch * groups * columns * p_.axis[0].output * p_.axis[1].output;
  const Function vector = kernels_.fold_turned(true, fold(), p_.with_indices);
  if (channel_vectors({&p_.input}, vector.lanes)) {
    result.vector = result.scalar;
    result.vector.entry = vector.entry;
  }
  result.name = "channels last to planar, turned in shared memory";
  return result.scalar.tiles <= INT32_MAX;
}

bool Forward::forward_slide(Launches& result) {
  const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
  if (wide_ || is_empty() || fold() != Fold::sum || !is_small_square(p_) || h.kernel != 3 || h.stride != 1 ||
      w.stride != 1 || d.input != 1 || d.output != 1 || d.kernel != 1) {
    return false;
  }
  const bool channels_fastest = is_channels_fastest(p_.input, p_, w.input);
  if (channels_fastest && size_of(p_.dtype) < 4) return false;  // 70 us, by strips 67 (35 x 35 planes, f16)
  const Function single = kernels_.slide_down(Way::single, p_.input.w == 1);
  if (single.entry == nullptr) return false;
  // Strips of one height each, so tall that the rows they share cost little.
  auto rows_of = [&](std::int64_t wanted) { return ceil_div(h.output, ceil_div(h.output, wanted)); };
  result.scalar = walk(p_, single, false, channels_fastest, rows_of(18));
  result.name = "slides down strips of " + std::to_string(result.scalar.narrow.strip) + " rows";
  if (channels_fastest && channel_vectors({&p_.input, &p_.output}))
    result.vector = walk(p_, kernels_.slide_down(Way::channels, false), false, true, rows_of(8));
  if (slide_planes(result)) return true;
  if (!channels_fastest && p_.input.w == 1 && p_.output.w == 1 && w.input == w.output && w.pad_begin == 1 &&
      !is_few(false)) {
    Launch lanes = walk(p_, kernels_.slide_lanes(), false, false, rows_of(18));
    const std::int64_t items = lanes.threads_per_entry * p_.batch;
    if (lanes.batch_per_launch >= p_.batch && items < INT32_MAX / 2) {
      lanes.tiles = ceil_div(items, kBlock / 32 * kSlideLanes);
      result.scalar = lanes;
    }
  }
  return true;
}

bool Forward::slide_planes(Launches& result) {
  const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
  auto function_for = [&](bool own_divisors) {
    return kernels_.slide_planes(fold(), p_.with_indices, static_cast<int>(h.kernel), static_cast<int>(h.stride),
                                 own_divisors);
  };
  const Function function = function_for(false);
  if (function.entry == nullptr || h.stride != w.stride || d.input != 1 || d.output != 1 || d.kernel != 1 ||
      is_few(false) || !is_dense(p_.input, p_, true) || !is_dense(p_.output, p_, false) ||
      (p_.with_indices && !is_dense(p_.indices, p_, false))) {
    return false;
  }
  // Narrow planes of whole lines begin in one bank of shared memory all of them: 100 us, by lanes that lend 60 (8 x 8 planes).
  const auto element = static_cast<std::int64_t>(size_of(p_.dtype));
  if (fold() == Fold::sum && w.input * element <= 32 && h.input * w.input * element % 128 == 0) return false;
  Launch launch = make_launch(p_, function, false, false, false, 1);
  if (fold() == Fold::sum && !launch.narrow.uniform_divisor) launch.entry = function_for(true).entry;
  if (fold() == Fold::square) launch.narrow.count_include_pad = true;  // what a norm is scaled by
  if (!cut_slides(launch, p_, function)) return false;
  result.scalar = launch;
  result.name = std::to_string(launch.narrow.tiling.planes) + " planes in shared memory, slides down strips of " +
                std::to_string(launch.narrow.strip) + " rows";
  return true;
}

bool Forward::is_better_by_columns(bool narrow) const {
  const Axis &h = p_.axis[1], &w = p_.axis[2];
  const bool apart = h.kernel <= h.stride && w.kernel <= w.stride;
  if (p_.with_indices) return apart && w.output >= 32;
  if (fold() == Fold::sum) return apart || narrow;
  return size_of(p_.dtype) == 2 && w.output >= 12;
}

bool Forward::forward_down(Launches& result) {
  const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
  if (wide_ || is_empty() || p_.absolute || !is_small_square(p_) || d.rule != WindowRule::sliding) return false;
  const auto kernel = static_cast<int>(h.kernel), stride = static_cast<int>(h.stride);
  const bool deep = d.kernel > 1, indices = p_.with_indices;
  if (deep && fold() == Fold::sum && is_channels_fastest(p_.input, p_, w.input)) return false;
  // Short strips: neighbouring blocks work on neighbouring memory. The more windows share, the taller (measured on an H200).
  const std::int64_t rows = h.stride == 1                                  ? (indices                                      ? 2
                                                                              : is_channels_fastest(p_.input, p_, w.input) ? 6
                                                                                                                           : 4)
                            : h.kernel > h.stride || size_of(p_.dtype) < 4 ? 2
                                                                           : 1;
  auto function_for = [&](Way way, int padding) {
    return kernels_.fold_down(way, fold(), indices, kernel, stride, padding, deep);
  };
  const Function single = function_for(Way::single, 0);
  if ((single.entry == nullptr || fold() == Fold::max) && slide_planes(result)) return true;
  if (single.entry == nullptr) return false;
  const bool channels_fastest = is_channels_fastest(p_.input, p_, w.input);
  // Narrow rows that are not aligned leave little to a warp, and indices of others are stored in many pieces: tiles of whole rows then.
  const bool short_rows = w.input * static_cast<std::int64_t>(size_of(p_.dtype)) <= 1024;
  const bool narrow = !channels_fastest && !is_few(false) &&
                      (w.output < 32 || (indices && h.kernel > h.stride && h.stride > 1 && short_rows));
  // Windows that share no rows: a second one to a thread pays for its beginning, and of wide elements none does.
  const bool apart = h.kernel <= h.stride;
  const std::int64_t single_rows = apart && size_of(p_.dtype) == 8 ? 1 : apart && channels_fastest ? 2 : 6;
  Launches tiles;
  if (narrow && forward_tiles(tiles)) result.scalar = tiles.scalar, result.name = tiles.name;
  if (result.scalar.entry == nullptr) result.scalar = walk(p_, single, false, channels_fastest, single_rows);
  if (result.name.empty()) result.name = "walks down strips of " + std::to_string(result.scalar.narrow.strip) + " rows";
  if (channels_fastest) {
    for (const Way way : {Way::channels, Way::half_channels}) {
      const Function vector = function_for(way, 0);
      if (vector.entry == nullptr || !(indices ? channel_vectors({&p_.input, &p_.output, &p_.indices}, vector.lanes)
                                               : channel_vectors({&p_.input, &p_.output}, vector.lanes))) {
        continue;
      }
      result.vector = walk(p_, vector, false, true, rows);
      if (way == Way::channels) deep_maxima(result, way);
      break;
    }
    return true;
  }
  // Only where there is no other way for aligned rows: sums would be added up in another order there.
  auto by_columns = [&] {
    Launches windows;
    if (result.vector.entry != nullptr) return true;
    if (slide_planes(windows) || forward_channel_rows(windows, true) ||
        (is_better_by_columns(narrow) && forward_tile_windows(windows)))
      result.scalar = windows.scalar, result.name = windows.name;
    return true;
  };
  if (h.stride != w.stride || h.pad_begin != w.pad_begin || p_.output.w != 1 || (indices && p_.indices.w != 1))
    return by_columns();
  // Indices of narrow rows: four outputs to a thread would be stored in pieces that L2 takes one by one (measured on an H200).
  if (indices && w.input <= (size_of(p_.dtype) == 2 ? 64 : 32)) packed_pairs(result);
  if (result.vector.entry != nullptr) return true;
  const Function columns = function_for(Way::columns, static_cast<int>(w.pad_begin));
  if (columns.entry == nullptr) return by_columns();
  const std::int64_t own = columns.columns * w.stride;
  // The last window may hang over the right edge by one column.
  if (w.input % own == 0 && ceil_div(w.output, columns.columns) == w.input / own &&
      has_aligned_rows(p_.input, smaller(own, static_cast<std::int64_t>(16 / size_of(p_.dtype)))) &&
      (w.output - 1) * w.stride - w.pad_begin + w.kernel <= w.input + 1) {
    result.vector = walk(p_, columns, false, false, rows);
    if (w.output % columns.columns == 0 && has_aligned_rows(p_.output, columns.columns) &&
        (!indices || has_aligned_rows(p_.indices, columns.columns))) {
      result.vector.paired = columns.columns;
    }
    result.name += ", " + std::to_string(columns.columns) + " columns at once";
    packed_maxima(result);
    deep_maxima(result, Way::columns);
    return true;
  }
  packed_pairs(result);
  return by_columns();
}

bool Forward::few_outputs(Launches& result) {
  const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
  if (wide_ || is_empty() || p_.absolute || !is_small_square(p_) || !is_identity(d) || d.input != 1) return false;
  const bool channels_fastest = is_channels_fastest(p_.input, p_, w.input);
  const Function function = kernels_.fold_few(fold(), p_.with_indices, static_cast<int>(h.kernel), channels_fastest);
  if (function.entry == nullptr || count_elements(p_, false) >= kFewOutputs) return false;
  Launch launch = make_launch(p_, function, false, false, channels_fastest, 1);
  if (fold() == Fold::sum && !launch.narrow.uniform_divisor) return false;
  if (!shape_few(launch, p_.input, p_.output, false, channels_fastest)) return false;
  result.scalar = launch;
  result.name = "few outputs: one thread to each";
  return true;
}

void Forward::deep_maxima(Launches& result, Way way) {
  const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
  const Function function = kernels_.fold_deep(way, static_cast<int>(w.pad_begin), static_cast<int>(w.stride));
  if (function.entry == nullptr || fold() != Fold::max || p_.with_indices || d.kernel != 3 || d.stride != w.stride ||
      d.dilation != 1 || h.kernel != 3 || h.stride != w.stride || is_few(false)) {
    return;
  }
  const int paired = result.vector.paired;
  const std::int64_t outputs = w.stride == 1 ? kDeepOutputs<1> : kDeepOutputs<2>;
  const std::int64_t groups = ceil_div(d.output, outputs);
  result.vector = walk(p_, function, false, way == Way::channels, w.stride == 1 ? 7 : 4);
  result.vector.paired = paired;
  result.vector.narrow.grid.flat = groups == 1;
  result.vector.narrow.grid.depth = Divisor<std::int32_t>(groups);
  result.vector.threads_per_entry = result.vector.threads_per_entry / d.output * groups;
  result.name += ", " + std::to_string(outputs) + " slices at once";
}

void Forward::packed_maxima(Launches& result) {
  const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
  const int lanes = kernels_.lanes;
  const Function function =
      kernels_.fold_packed_maxima(p_.with_indices, w.input % (2 * lanes) == 0 ? lanes : lanes / 2);
  const int columns = function.columns;
  if (function.entry == nullptr || fold() != Fold::max || !is_identity(d) || h.kernel != 3 || h.stride != 2 ||
      w.stride != 2 || h.pad_begin != 1 || w.pad_begin != 1 || w.input % (2 * columns) != 0 ||
      w.output * 2 != w.input || !has_aligned_rows(p_.input, lanes) || !has_aligned_rows(p_.output, columns)) {
    return;
  }
  // With indices, how far a tap is away is kept in 16 bits.
  if (p_.with_indices && (w.input >= (1 << 15) || !has_aligned_rows(p_.indices, columns))) return;
  result.vector = walk(p_, function, false, false, 2);
  result.name += ", several to a register";
}

void Forward::packed_pairs(Launches& result) {
  const Function function = kernels_.fold_packed_pairs(fold(), p_.with_indices);
  if (function.entry == nullptr || !is_packed_pairs() || is_few(false) || !is_dense(p_.input, p_, true) ||
      !is_dense(p_.output, p_, false) || (p_.with_indices && !is_dense(p_.indices, p_, false))) {
    return;
  }
  result.vector = make_launch(p_, function, false, false, false, 1);
  result.vector.batch_per_launch = p_.batch;
  result.vector.threads_per_entry = count_elements(p_, false) / p_.batch;
  result.vector.tiles = ceil_div(count_elements(p_, false), kBlock * function.columns);
  result.name = std::to_string(function.columns) + " outputs to a thread; else " + result.name;
}

bool Forward::forward_rows(Launches& result) {
  const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
  const bool line = is_identity(d) && is_identity(h) && w.rule == WindowRule::sliding && w.dilation == 1 &&
                    w.kernel <= 8 && w.stride <= 8 && has_no_empty_window(w);
  auto is_apart = [](const Axis& axis) {
    return axis.rule == WindowRule::sliding && axis.dilation == 1 && axis.kernel == axis.stride && axis.kernel <= 4 &&
           axis.pad_begin == 0 && has_no_empty_window(axis);
  };
  const bool square = (is_small_square(p_) && h.stride == w.stride && h.pad_begin == w.pad_begin) ||
                      (is_identity(d) && is_apart(h) && is_apart(w) && h.kernel == w.kernel);
  if (wide_ || is_empty() || p_.absolute || (!line && !square)) return false;
  // Sums of few taps are little work, and wait for memory less often where a thread's outputs are not neighbours.
  if (line && fold() == Fold::sum && w.stride < w.kernel && w.kernel <= 3 && forward_row_windows(result)) return true;
  const Function function =
      kernels_.fold_rows(fold(), p_.with_indices, static_cast<int>(h.kernel), static_cast<int>(w.kernel),
                         static_cast<int>(w.stride), static_cast<int>(w.pad_begin));
  if (function.entry == nullptr || p_.input.w != 1 || p_.output.w != 1 || (p_.with_indices && p_.indices.w != 1)) {
    return false;
  }
  const std::int64_t own = function.columns * w.stride;
  auto aligned = [](const Layout& layout, std::int64_t elements) {
    return layout.n % elements == 0 && layout.c % elements == 0 && layout.d % elements == 0 && layout.h % elements == 0;
  };
  const std::int64_t vector = smaller(own, static_cast<std::int64_t>(16 / size_of(p_.dtype)));
  if (w.input % own != 0 || (w.output + function.columns - 1) / function.columns != w.input / own ||
      !aligned(p_.input, vector)) {
    return false;
  }
  // A last output column whose window hangs over the right edge by more than the kernel knows of.
  if ((w.output - 1) * w.stride - w.pad_begin + w.kernel > w.input + larger(w.pad_begin, 1)) return false;
  result.vector = make_launch(p_, function, false, false, false, 1);
  if (w.output % function.columns == 0 && aligned(p_.output, function.columns) &&
      (!p_.with_indices || aligned(p_.indices, function.columns))) {
    result.vector.paired = function.columns;
  }
  Launches other;
  if (forward_tile_windows(other) || forward_tiles(other)) {
    result.scalar = other.scalar;
  } else {
    const Function direct = kernels_.fold_windows(false, fold(), p_.with_indices, false);
    result.scalar = make_launch(p_, direct, false, false, false, 1);
  }
  result.name = "aligned rows, " + std::to_string(function.rows) + "x" + std::to_string(function.columns) +
                " outputs to a thread";
  return true;
}

bool Forward::forward_bands(Launches& result) {
  const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
  if (wide_ || is_empty() || p_.absolute || d.input != 1 || d.output != 1 || d.kernel != 1 || h.kernel < 3 ||
      p_.input.w != 1 || p_.reduction == Reduction::power || p_.channels * p_.batch * h.output > INT32_MAX / 2) {
    return false;
  }
  for (const Axis* axis : {&h, &w}) {
    if (axis->rule == WindowRule::fractional || axis->dilation != 1 || !has_no_empty_window(*axis)) return false;
  }
  if (h.rule == WindowRule::sliding && h.kernel >= 2 * h.stride) return false;
  // Windows an odd number of columns apart lie in different banks: tiles serve them better.
  if (w.rule == WindowRule::sliding && w.stride % 2 != 0) return false;
  const Function single = kernels_.fold_bands(fold(), p_.with_indices, 1);
  if (single.entry == nullptr) return false;
  result.scalar = make_launch(p_, single, false, false, false, 1);
  result.name = "bands of rows, then along them in shared memory";
  if (!cut_bands(result.scalar, p_, single)) return false;
  const Function several = kernels_.fold_bands(fold(), p_.with_indices, static_cast<int>(w.input % 64));
  if (several.columns > 1 && has_aligned_rows(p_.input, several.columns)) {
    result.vector = make_launch(p_, several, false, false, false, 1);
    if (!cut_bands(result.vector, p_, several)) result.vector = Launch{};
  }
  return true;
}

bool Forward::whole_planes(Launches& result, bool tiled) {
  const Axis& w = p_.axis[2];
  const std::int64_t planes = p_.batch * p_.channels, vectors = w.input / kernels_.lanes;
  for (int a = 0; a < 2; ++a) {
    if (p_.axis[a].input != 1 || p_.axis[a].output != 1 || p_.axis[a].kernel != 1) return false;
  }
  if (w.rule != WindowRule::sliding || w.output != 1 || w.kernel != w.input || w.dilation != 1 || w.pad_begin != 0 ||
      p_.absolute || vectors < 1 || planes * w.input > INT32_MAX - 65536 || wide_ || is_empty() ||
      !is_dense(p_.input, p_, true) || !is_dense(p_.output, p_, false) ||
      (p_.with_indices && !is_dense(p_.indices, p_, false))) {
    return false;
  }
  if (narrow_planes(result)) return true;
  int group = vectors >= 24 ? 8 : 4;
  constexpr std::int64_t kMostStaged = 28 << 10;  // eight blocks on a multiprocessor of a large GPU
  const std::int64_t block_bytes = kBlock / group * w.input * static_cast<std::int64_t>(size_of(p_.dtype));
  // Of few planes, what counts is how soon a thread has its elements.
  const bool few = planes * group < 132 * 64, staged = block_bytes <= kMostStaged && leaves_first(p_) && !few;
  if (few) group = 32;
  // So many threads that each has three loads: short blocks, whose loads lie next to each other.
  for (int more = 32; !staged && more <= kBlock; more *= 2) {
    if (vectors >= 3 * more) group = more;
  }
  const Function function = kernels_.fold_planes(fold(), p_.with_indices, group, staged);
  // Few large planes have more threads each elsewhere, if they fit there.
  if (function.entry == nullptr || (tiled && planes * group < 132 * 512 && vectors > 16 * group)) return false;
  result.vector = make_launch(p_, function, false, false, false, 1);
  result.vector.batch_per_launch = p_.batch;
  result.vector.tiles = ceil_div(planes * group, kBlock);
  result.vector.narrow.aligned = true;
  if (staged) result.vector.shared_bytes = static_cast<std::size_t>(block_bytes) + 48;
  if (fold() == Fold::sum || !tiled) {
    result.scalar = result.vector;
    result.scalar.narrow.aligned = false;
  }
  result.name = std::to_string(group) + " threads to a plane" + (tiled ? "; else " + result.name : "");
  return true;
}

bool Forward::narrow_planes(Launches& result) {
  constexpr std::int64_t kMostBytes = 26 << 10;
  const std::int64_t wanted_bytes = leaves_first(p_) ? 14 << 10 : kMostBytes;
  const Function function = kernels_.sum_planes();
  const std::int64_t planes = p_.batch * p_.channels, size = p_.axis[2].input;
  const std::int64_t bytes = size * static_cast<std::int64_t>(size_of(p_.dtype));
  // Planes of whole pairs of words would begin in few of the banks of shared memory.
  if (function.entry == nullptr || fold() != Fold::sum || size % 4 == 0 || kMostBytes / bytes < kBlock / 2 ||
      is_few(true)) {
    return false;
  }
  const std::int64_t together = planes_together(planes, larger(wanted_bytes / bytes, kBlock / 2), 1, kBlock);
  result.scalar = make_launch(p_, function, false, false, false, 1);
  group_planes(result.scalar, p_, together, kBlock, together * bytes + 16);
  result.name = std::to_string(together) + " planes in shared memory, one thread to a plane";
  return true;
}

bool Forward::forward_tiles(Launches& result) {
  if (wide_ || is_empty() || !is_multiplied() || !is_dense(p_.input, p_, true) || !is_dense(p_.output, p_, false) ||
      p_.axis[2].rule == WindowRule::fractional || (p_.with_indices && !is_dense(p_.indices, p_, false))) {
    return false;
  }
  if (is_small_square(p_) && !p_.absolute) {
    const auto kernel = static_cast<int>(p_.axis[1].kernel), stride = static_cast<int>(p_.axis[1].stride);
    const Function function = kernels_.fold_tiles(fold(), p_.with_indices, kernel, stride);
    if (function.entry != nullptr) {
      result.scalar = make_launch(p_, function, false, false, false, 1);
      result.name = "tiles in shared memory, strips of " + std::to_string(function.rows) + " outputs";
      result.scalar.block = kTileBlock;
      if (tile_forward(result.scalar, p_, function, 1, p_.with_indices ? 16 << 10 : kTileBytes)) return true;
    }
  }
  const Problem p = upright(p_);
  // Short windows along one axis: neighbouring threads read neighbouring memory anyway.
  if (p.axis[2].input == 1 && p_.axis[2].input > 1 && p.axis[1].kernel <= 8) return false;
  // Threads share a window only where a tile has too few windows for all of them.
  std::int64_t taps = 1, sources = 1, outputs = 1;
  for (const Axis& axis : p.axis) {
    taps *= axis.kernel;
    sources *= axis.input;
    outputs *= axis.output;
  }
  const std::int64_t windows = (24 << 10) / static_cast<std::int64_t>(size_of(p.dtype)) * outputs / sources;
  const int group = taps < 24 || windows >= 96 ? 1 : windows >= 16 ? 8 : 32;
  const Function function = kernels_.fold_staged(fold(), p_.with_indices, group);
  if (function.entry == nullptr) return false;
  result.scalar = make_launch(p, function, false, false, false, 1);
  result.name =
      "tiles in shared memory, " + std::to_string(group) + (group == 1 ? " thread" : " threads") + " to a window";
  return tile_forward(result.scalar, p, function, group);
}

void choose_forward(const Choice& choice, Launches& result) { Forward(choice).choose(result); }

}  // namespace cenote::gpu
