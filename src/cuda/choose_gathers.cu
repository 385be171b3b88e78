// Backward pools that are gathered: each element asks the outputs that see it, or each output finds the element it chose.
#include "cuda/choose_backward.hpp"
#include "cuda/tiling.hpp"

namespace cenote::gpu {

bool Backward::gather_few(Launches& result, Share share) {
  const Axis &h = p_.axis[1], &w = p_.axis[2];
  if (wide_ || is_empty() || !is_few(true) || !is_small_square(p_) || h.stride != w.stride ||
      !is_identity(p_.axis[0]) || p_.axis[0].input != 1) {
    return false;
  }
  const bool channels_fastest = is_channels_fastest(p_.grad_input, p_, w.input);
  const Function function = kernels_.gather_few(share, p_.index_dtype, static_cast<int>(h.kernel),
                                                static_cast<int>(h.stride), channels_fastest);
  if (function.entry == nullptr) return false;
  Launch launch = make_launch(p_, function, false, true, channels_fastest, 1);
  // Averages side by side, planar, have one as short.
  if (share == Share::sum && (!launch.narrow.uniform_divisor || (!channels_fastest && h.kernel <= h.stride)))
    return false;
  if (!shape_few(launch, p_.grad_output, p_.grad_input, true, channels_fastest)) return false;
  result.scalar = launch;
  result.name = "few elements: one thread to each";
  return true;
}

bool Backward::gather_down(Launches& result, Share share) {
  const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
  if (wide_ || is_empty() || !is_small_square(p_) || h.stride != w.stride || d.rule != WindowRule::sliding ||
      d.dilation != 1 || d.kernel > d.stride) {
    return false;
  }
  const auto kernel = static_cast<int>(h.kernel), stride = static_cast<int>(h.stride);
  const DType index = p_.index_dtype;
  const Function single = kernels_.gather_down(Way::single, share, index, kernel, stride);
  if (single.entry == nullptr) return false;
  const bool channels_fastest = is_channels_fastest(p_.grad_input, p_, w.input);
  const std::int64_t phase = w.pad_begin % w.stride;
  auto rows_of = [&](const Function& function) { return h.kernel > h.stride ? tall_strip(p_, function) : 4; };
  if (!channels_fastest && w.input < 32 && !is_few(true) &&
      gather_tiles(result, share == Share::index ? Gather::selected : Gather::average))
    return true;
  result.scalar = walk(p_, single, true, channels_fastest, channels_fastest ? rows_of(single) : 16, phase);
  result.name = "walks down strips of " + std::to_string(result.scalar.narrow.strip) + " rows";
  const Function vector = kernels_.gather_down(Way::channels, share, index, kernel, stride);
  if (channels_fastest &&
      (share == Share::index ? channel_vectors({&p_.grad_input, &p_.grad_output, &p_.indices}, vector.lanes)
                             : channel_vectors({&p_.grad_input, &p_.grad_output}, vector.lanes))) {
    result.vector = walk(p_, vector, true, true, rows_of(vector), phase);
  }
  return true;
}

void Backward::gather_aligned_rows(Launches& result, Share share) {
  const bool unpool = share == Share::last;
  Problem p = p_;
  if (unpool) {
    p.grad_output = p_.input;
    p.grad_input = p_.output;
  }
  const Axis &h = p.axis[1], &w = p.axis[2];
  if (wide_ || is_empty() || !is_small_square(p) || h.stride != w.stride || h.pad_begin != w.pad_begin) return;
  const bool indexed = share != Share::sum;
  const Function function = kernels_.gather_rows(share, p.index_kind == IndexKind::window, static_cast<int>(h.kernel),
                                                 static_cast<int>(h.stride), static_cast<int>(h.pad_begin));
  if (function.entry == nullptr || p.grad_input.w != 1 || p.grad_output.w != 1 || (indexed && p.indices.w != 1)) return;
  const std::int64_t own = function.columns / w.stride;
  auto aligned = [](const Layout& layout, std::int64_t elements) {
    return layout.n % elements == 0 && layout.c % elements == 0 && layout.d % elements == 0 && layout.h % elements == 0;
  };
  if (w.input % function.columns != 0 || h.input % h.stride != 0 || w.output != w.input / w.stride ||
      !aligned(p.grad_input, smaller(function.columns, static_cast<std::int64_t>(16 / size_of(p.dtype)))) ||
      !aligned(p.grad_output, own) || (indexed && !aligned(p.indices, own))) {
    return;
  }
  const std::string name = result.name;
  result.vector = make_launch(p, function, false, true, false, 1);
  result.aligned_unpool = unpool;
  result.name = "aligned rows, " + std::to_string(function.rows) + "x" + std::to_string(function.columns) +
                " elements to a thread; else " + name;
}

bool Backward::gather_columns(Launches& result) {
  const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
  if (wide_ || is_empty() || !is_small_square(p_) || !is_identity(d) || h.kernel != 3 || h.stride != w.stride ||
      h.pad_begin != 1 || w.pad_begin != 1) {
    return false;
  }
  const bool channels_fastest = is_channels_fastest(p_.grad_input, p_, w.input);
  const Function function = kernels_.gather_columns(channels_fastest ? Way::channels : Way::columns, p_.index_dtype,
                                                    static_cast<int>(w.stride));
  if (function.entry == nullptr) return false;
  if (channels_fastest) {
    // Every output must be some strip's own.
    if (w.output > ceil_div(w.input, w.stride) ||
        !channel_vectors({&p_.grad_input, &p_.grad_output, &p_.indices}, function.lanes)) {
      return false;
    }
  } else {
    const std::int64_t own = function.columns / w.stride;
    if (w.output * w.stride != w.input || w.input % function.columns != 0 ||
        !has_aligned_rows(p_.grad_input, function.columns) || !has_aligned_rows(p_.grad_output, own) ||
        !has_aligned_rows(p_.indices, own)) {
      return false;
    }
  }
  // Short strips: neighbouring blocks work on neighbouring memory. Narrow elements have rows of fewer bytes (measured on an H200).
  const std::int64_t rows = channels_fastest ? 16 : size_of(p_.dtype) == 2 ? 8 : 4;
  Launch launch = walk(p_, function, true, channels_fastest, rows);
  if (launch.narrow.strip == 1) {  // few threads: the least that strips may have
    Function two_rows = function;
    two_rows.rows = 2;
    launch = make_launch(p_, two_rows, false, true, channels_fastest, function.lanes);
    launch.narrow.strip = 2;
  }
  result.vector = launch;
  result.name = "walks down strips of " + std::to_string(result.vector.narrow.strip) + " rows, " +
                std::to_string(function.columns) + " columns at once; else " + result.name;
  return true;
}

bool Backward::count_common(std::int64_t (&common)[2]) const {
  if (wide_ || is_empty() || !is_identity(p_.axis[0])) return false;
  for (int a = 0; a < 2; ++a) {
    const Axis& axis = p_.axis[a + 1];
    if (axis.rule == WindowRule::fractional || (axis.stride > 1 && axis.dilation > 1)) return false;
    if (axis.rule == WindowRule::adaptive) {
      if (axis.output > axis.input) return false;
      common[a] = axis.input % axis.output == 0 ? 1 : 2;
    } else {
      common[a] = axis.dilation > 1 ? axis.kernel : ceil_div(axis.kernel, axis.stride);
    }
  }
  return common[0] * common[1] > 1;
}

void Backward::gather_tile_windows(Launches& result, Share share) {
  constexpr std::int64_t kMostCommon = 49;
  std::int64_t common[2] = {};
  // Windows that do not overlap as well where they lie along rows: other ways want those to be aligned.
  const bool overlap = count_common(common), apart = is_identity(p_.axis[1]) && common[1] == 1;
  if ((!overlap && !apart) || common[0] * common[1] > kMostCommon || is_few(true) ||
      !is_dense(p_.grad_output, p_, false) || !is_dense(p_.grad_input, p_, true) ||
      (share == Share::index && !is_dense(p_.indices, p_, false))) {
    return;
  }
  const Function function =
      kernels_.gather_tile_windows(share, p_.index_dtype, !is_identity(p_.axis[1]), static_cast<int>(common[1]));
  if (function.entry == nullptr) return;
  Launch launch = make_launch(p_, function, false, true, false, 1);
  if (!cut_seers(launch, p_, common[0], function.columns)) return;
  result.vector = launch;
  result.name = "tiles in shared memory, seen by few outputs; else " + result.name;
}

void Backward::gather_norms(Launches& result) {
  std::int64_t common[2];
  if (!count_common(common) || is_few(true) || !is_dense(p_.input, p_, true) || !is_dense(p_.grad_output, p_, false) ||
      !is_dense(p_.grad_input, p_, true) || p_.axis[1].dilation != 1 || p_.axis[2].dilation != 1) {
    return;
  }
  const Function function = kernels_.gather_norms(p_.norm_type == 2);
  if (function.entry == nullptr) return;
  Launch launch = make_launch(p_, function, false, true, false, 1);
  if (!cut_norms(launch, p_)) return;
  result.scalar = launch;
  result.name = "tiles in shared memory, what windows pass on worked out once";
}

bool Backward::gather_direct(Launches& result, Share share) {
  std::int64_t common[2];
  if (!count_common(common)) return false;
  // Nine windows cost more here than elsewhere, but for those of neighbouring channels, and dilated ones (measured on an H200).
  const bool dilated = p_.axis[1].dilation > 1 || p_.axis[2].dilation > 1;
  const bool channels_fastest = is_channels_fastest(p_.grad_input, p_, p_.axis[2].input);
  if (common[0] * common[1] > 4 && !dilated && !(channels_fastest && share == Share::index)) return false;
  auto function_for = [&](bool vector) {
    return kernels_.gather_direct(vector, share, p_.index_dtype, static_cast<int>(common[0]),
                                  static_cast<int>(common[1]));
  };
  const Function single = function_for(false), vector = function_for(true);
  if (single.entry == nullptr) return false;
  const Launch launch = walk_directly(p_, single, true, channels_fastest, channels_fastest ? 4 : 8);
  if (share == Share::sum && !launch.narrow.uniform_divisor) return false;
  result.scalar = launch;
  result.name = "seen by few outputs, walks down strips of " + std::to_string(result.scalar.narrow.strip) + " rows";
  if (channels_fastest &&
      (share == Share::index ? channel_vectors({&p_.grad_input, &p_.grad_output, &p_.indices}, vector.lanes)
                             : channel_vectors({&p_.grad_input, &p_.grad_output}, vector.lanes))) {
    result.vector = walk_directly(p_, vector, true, true, 4);
  }
  gather_tile_windows(result, share);
  return true;
}

bool Backward::gather_sums(Launches& result) {
  std::int64_t common[2];
  const Axis &h = p_.axis[1], &w = p_.axis[2];
  if (!count_common(common) || is_identity(h)) return false;
  for (const Axis* axis : {&h, &w}) {
    if (axis->rule != WindowRule::sliding || axis->dilation != 1 || !has_no_empty_window(*axis)) return false;
  }
  constexpr std::int64_t kRows = 32;  // of a strip, at most: 69 us, 16: 75, 8: 86 (3x3/2, 56 x 56 planes, H200)
  const bool channels_fastest = is_channels_fastest(p_.grad_input, p_, w.input);
  const bool own_divisors = !make_launch(p_, Function{}, false, true, channels_fastest, 1).narrow.uniform_divisor;
  auto function_for = [&](bool vector) {
    return kernels_.gather_sums(vector, own_divisors, static_cast<int>(common[0]), static_cast<int>(common[1]));
  };
  const Function single = function_for(false), vector = function_for(true);
  if (single.entry == nullptr) return false;
  result.scalar = walk_directly(p_, single, true, channels_fastest, kRows);
  result.name =
      "rows of outputs added up, walks down strips of " + std::to_string(result.scalar.narrow.strip) + " rows";
  if (channels_fastest && channel_vectors({&p_.grad_input, &p_.grad_output}, vector.lanes))
    result.vector = walk_directly(p_, vector, true, true, kRows);
  return true;
}

void Backward::gather_slices(Launches& result) {
  const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
  if (wide_ || is_empty() || d.rule != WindowRule::sliding || d.dilation != 1 || !is_small_square(p_)) return;
  for (const Axis& axis : p_.axis) {
    if (axis.kernel != 3 || axis.stride != 2 || axis.pad_begin != 1) return;
  }
  const Function function = kernels_.gather_slices(p_.index_dtype);
  if (function.entry == nullptr || d.output != ceil_div(d.input, 2) || h.output * 2 != h.input ||
      w.output * 2 != w.input || w.input % function.columns != 0 ||
      !has_aligned_rows(p_.grad_input, function.columns) || !has_aligned_rows(p_.grad_output, function.columns / 2) ||
      !has_aligned_rows(p_.indices, function.columns / 2)) {
    return;
  }
  // Longer strips read fewer slices of outputs twice, and wait more (measured on an H200).
  constexpr std::int64_t kStrip = 4;
  const std::int64_t strips = ceil_div(d.input, kStrip);
  Launch launch = make_launch(p_, function, false, true, false, 1);
  launch.narrow.strip = static_cast<std::int32_t>(kStrip);
  launch.narrow.grid.flat = strips == 1;
  launch.narrow.grid.depth = Divisor<std::int32_t>(strips);
  launch.threads_per_entry = launch.threads_per_entry / d.input * strips;
  result.vector = launch;
  result.name = "walks along strips of " + std::to_string(kStrip) + " slices, " + std::to_string(function.rows) + "x" +
                std::to_string(function.columns) + " elements at once; else " + result.name;
}

bool Backward::gather_staged(Launches& result) {
  const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
  // Rows so narrow that the outputs of two of them could point to one element have other kernels.
  if (wide_ || is_empty() || is_few(true) || !is_small_square(p_) || h.stride != w.stride || h.kernel <= h.stride ||
      h.input < h.kernel || w.input < w.kernel || w.output < 8 || !is_identity(d) ||
      !is_dense(p_.grad_output, p_, false) || !is_dense(p_.indices, p_, false) || !is_dense(p_.grad_input, p_, true)) {
    return false;
  }
  const Function function =
      kernels_.gather_staged(p_.index_dtype, static_cast<int>(h.kernel), static_cast<int>(h.stride));
  if (function.entry == nullptr) return false;
  Launch launch = make_launch(p_, function, false, true, false, 1);
  if (!cut_cells(launch, p_, function)) return false;
  result.vector = launch;
  result.name = "tiles in shared memory, cells of " + std::to_string(function.rows) + "x" +
                std::to_string(function.columns) + " elements; else " + result.name;
  return true;
}

void Backward::gather_staged_channels(Launches& result) {
  const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
  if (wide_ || is_empty() || is_few(true) || !is_small_square(p_) || h.stride != w.stride || h.kernel <= h.stride ||
      h.input < h.kernel || w.input < w.kernel || d.rule != WindowRule::sliding || d.dilation != 1 || d.kernel > 3) {
    return;
  }
  const bool deep = !is_identity(d);
  if (deep && d.kernel <= d.stride) return;  // gather_down reads each output once
  const Function function =
      kernels_.gather_staged_channels(p_.index_dtype, static_cast<int>(h.kernel), static_cast<int>(h.stride), deep);
  if (function.entry == nullptr || !channel_vectors({&p_.grad_input, &p_.grad_output, &p_.indices}, function.lanes))
    return;
  Launch launch = make_launch(p_, function, false, true, true, function.lanes);
  if (!cut_cell_channels(launch, p_, function, deep)) return;
  result.vector = launch;
  result.name = "tiles in shared memory, cells of " + std::to_string(function.rows) + "x" +
                std::to_string(function.columns) + " elements; else " + result.name;
}

bool Backward::gather_tiles(Launches& result, Gather gather) {
  const bool unpool = gather == Gather::last;
  const Layout &small = unpool ? p_.input : p_.grad_output, &large = unpool ? p_.output : p_.grad_input;
  if (wide_ || is_empty() || !is_dense(small, p_, false) || !is_dense(large, p_, true) ||
      (gather != Gather::average && !is_dense(p_.indices, p_, false)) || p_.axis[2].rule == WindowRule::fractional) {
    return false;
  }
  const int kept = gather == Gather::average && size_of(p_.dtype) < 4 ? 4 : static_cast<int>(size_of(p_.dtype));
  const Axis &h = p_.axis[1], &w = p_.axis[2];
  if (is_small_square(p_) && h.stride == w.stride && h.pad_begin % h.stride == w.pad_begin % w.stride) {
    const Function cells = kernels_.gather_tile_cells(gather, static_cast<int>(h.kernel), static_cast<int>(h.stride),
                                                      static_cast<int>(h.pad_begin % h.stride));
    if (cells.entry != nullptr) {
      result.scalar = make_launch(p_, cells, false, true, false, 1);
      if (w.input % cells.columns == 0) result.scalar.paired = cells.columns;
      result.name = "tiles in shared memory, cells of " + std::to_string(cells.rows) + "x" +
                    std::to_string(cells.columns) + " elements";
      if (tile_gather(result.scalar, p_, cells, gather != Gather::average, kept)) return true;
    }
  }
  bool apart = true;
  for (const Axis& axis : p_.axis) {
    apart = apart && axis.rule == WindowRule::sliding && axis.dilation == 1 && axis.stride >= axis.kernel;
  }
  if (const Function spread = kernels_.spread_tiles(gather); apart && spread.entry != nullptr) {
    const Problem q = upright(p_);
    result.scalar = make_launch(q, spread, false, true, false, 1);
    result.name = "tiles in shared memory, windows spread";
    if (tile_gather(result.scalar, q, spread, gather != Gather::average, kept)) return true;
  }
  const Problem p = upright(p_);
  const Function function = kernels_.gather_tiles(gather, p.axis[2].input < 8 ? 1 : 4);
  if (function.entry == nullptr) return false;
  result.scalar = make_launch(p, function, false, true, false, 1);
  result.name = "tiles in shared memory, outputs gathered";
  return tile_gather(result.scalar, p, function, gather != Gather::average, kept);
}

bool Backward::by_winners(Launches& result) {
  const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
  if (d.input != 1 || d.output != 1 || d.kernel != 1 || h.rule != WindowRule::sliding ||
      w.rule != WindowRule::sliding || h.dilation != 1 || w.dilation != 1) {
    return false;
  }
  const bool channels_fastest = is_channels_fastest(p_.grad_input, p_, w.input);
  auto follows = [](const Layout& layout, std::int64_t width) { return layout.h == width * layout.w; };
  if (follows(p_.grad_input, w.input) && follows(p_.grad_output, w.output) && follows(p_.indices, w.output)) {
    const bool planar = !channels_fastest && is_dense(p_.grad_output, p_, false) && is_dense(p_.indices, p_, false);
    result.scalar = make_launch(p_, kernels_.add_in_turn(p_.index_dtype, planar), false, true, channels_fastest, 1);
    if (cut_turns(result.scalar, p_, channels_fastest)) {
      result.scalar.block = planar ? kPlaneBlock : kTurnBlock;
      result.name = "one thread to a plane, outputs in order";
      return true;
    }
  }
  result.scalar = make_launch(p_, kernels_.add_for_winners(p_.index_dtype), false, true, channels_fastest, 1);
  if (!cut_parts(result.scalar, p_, channels_fastest)) return false;
  result.name = "parts of planes in shared memory, a thread to each element that won";
  if (!channels_fastest) gather_tile_windows(result, Share::index);
  return true;
}

void Backward::ordered(Launches& result) {
  result.scalar = make_launch(p_, kernels_.add_in_order(wide_), wide_, true, false, 1);
  // 16 KB a warp: 14 warps on a multiprocessor.
  const std::size_t element = p_.dtype == DType::f64 ? 8 : 4;
  const std::int64_t most_elements = 16384 / static_cast<std::int64_t>(element);
  if (p_.op == Op::fractional_max_pool) {
    cut_planes(result.scalar, p_, most_elements, 32, element);
  } else {
    cut_rectangles(result.scalar, p_, most_elements, element);
  }
  result.name = "one warp to a part of a plane, outputs in order";
}

}  // namespace cenote::gpu
