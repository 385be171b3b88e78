#include "cuda/tiling.hpp"

namespace cenote::gpu {
namespace {

/// Ranges of source positions for ranges of results along one axis.
struct Sources {
  const Axis* axis;
  bool transposed;  // results are the inputs, the source the outputs

  std::int64_t results() const { return transposed ? axis->input : axis->output; }
  std::int64_t sources() const { return transposed ? axis->output : axis->input; }

  /// The longest source range of tiles of `size` results.
  std::int64_t reach(std::int64_t size) const {
    if (size >= results()) return sources();
    if (axis->rule == WindowRule::sliding && !transposed) {
      return smaller(sources(), (size - 1) * axis->stride + (axis->kernel - 1) * axis->dilation + 1);
    }
    if (axis->rule == WindowRule::sliding) {
      return smaller(sources(), (size - 1 + (axis->kernel - 1) * axis->dilation) / axis->stride + 1);
    }
    std::int64_t longest = 0;
    for (std::int64_t first = 0; first < results(); first += size) {
      const std::int64_t last = smaller(first + size, results()) - 1;
      if (transposed) {
        const Cover low = cover(*axis, first), high = cover(*axis, last);
        longest = larger(longest, high.first + high.count - low.first);
      } else {
        longest = larger(longest, adaptive_end(*axis, last) - adaptive_start(*axis, first));
      }
    }
    return longest;
  }
};

// What a block gets without asking.
constexpr std::int64_t kMostBytes = 47 << 10;
// Results a tile should have at least, so that every thread has some.
constexpr std::int64_t kWantedResults = 4096;
// Tiles a launch should have, so that every multiprocessor of a large GPU gets some.
constexpr std::int64_t kWantedTiles = 132 * 8;

struct Cut {
  std::int64_t planes = 1, slices = 1, rows = 1;
};

/// `bytes(cut)`: what a tile would keep in shared memory.
template <class Bytes>
bool choose_cut(const Sources& depth, const Sources& height, std::int64_t width, std::int64_t planes,
                std::int64_t row_multiple, std::int64_t most_results, std::int64_t wanted_bytes, Bytes bytes,
                Cut& cut) {
  const std::int64_t plane = depth.results() * height.results() * width;
  auto fits = [&](const Cut& c, std::int64_t limit) {
    return bytes(c) <= limit &&
           c.planes * c.slices * c.rows * width <= larger(most_results, c.rows == row_multiple ? INT64_MAX : 0);
  };
  cut = {1, depth.results(), height.results()};
  if (bytes(cut) <= wanted_bytes && plane <= most_results) {
    // Whole planes, as many as fit and leave enough tiles.
    const std::int64_t enough = larger(planes / kWantedTiles, 1);
    while (cut.planes < enough) {
      Cut more = cut;
      more.planes = smaller(cut.planes * 2, enough);
      if (bytes(more) > wanted_bytes || more.planes * plane > most_results) break;
      cut = more;
    }
    // Few results: more planes, so that no thread is idle.
    while (cut.planes < enough && cut.planes * plane < kBlock) {
      Cut more = cut;
      ++more.planes;
      if (bytes(more) > kMostBytes) break;
      cut = more;
    }
    return true;
  }
  // Fewer slices, then fewer rows.
  for (cut.slices = depth.results(); cut.slices > 1; cut.slices = (cut.slices + 1) / 2) {
    if (fits(cut, wanted_bytes)) return true;
  }
  if (fits(cut, wanted_bytes)) return true;
  for (cut.rows = ceil_div(cut.rows, row_multiple) * row_multiple; cut.rows > row_multiple;
       cut.rows = ceil_div((cut.rows + 1) / 2, row_multiple) * row_multiple) {
    if (fits(cut, wanted_bytes)) break;
  }
  // The halving may have gone too far.
  while (cut.rows + row_multiple < height.results()) {
    Cut more = cut;
    more.rows += row_multiple;
    if (!fits(more, wanted_bytes)) break;
    cut = more;
  }
  return bytes(cut) <= kMostBytes;
}

void fill(Launch& launch, const Problem& p, const Cut& cut, const Sources& depth, const Sources& height,
          std::int64_t width, const Function& function) {
  Tiling<std::int32_t>& tiling = launch.narrow.tiling;
  const std::int64_t planes = p.batch * p.channels;
  const std::int64_t items_y = ceil_div(smaller(cut.rows, height.results()), function.rows);
  const std::int64_t items_x = ceil_div(width, function.columns);
  tiling.planes = static_cast<std::int32_t>(cut.planes);
  tiling.slices = static_cast<std::int32_t>(cut.slices);
  tiling.rows = static_cast<std::int32_t>(cut.rows);
  const std::int64_t tiles_y = ceil_div(height.results(), cut.rows), tiles_z = ceil_div(depth.results(), cut.slices);
  tiling.tiles_y = Divisor<std::int32_t>(tiles_y);
  tiling.tiles_z = Divisor<std::int32_t>(tiles_z);
  tiling.items_x = Divisor<std::int32_t>(items_x);
  tiling.items_y = Divisor<std::int32_t>(items_y);
  tiling.items_z = Divisor<std::int32_t>(cut.slices);
  tiling.items = static_cast<std::int32_t>(cut.planes * cut.slices * items_y * items_x);
  tiling.total_planes = static_cast<std::int32_t>(planes);
  launch.tiles = ceil_div(planes, cut.planes) * tiles_y * tiles_z;
}

std::int64_t size_along(const Axis& axis, bool large) { return large ? axis.input : axis.output; }

/// Whether elements follow each other without a gap, the last of these axes fastest.
bool follow_each_other(const std::int64_t (&sizes)[5], const std::int64_t (&strides)[5]) {
  std::int64_t dense = 1;
  for (int i = 4; i >= 0; --i) {
    if (sizes[i] > 1 && strides[i] != dense) return false;
    dense *= larger(sizes[i], 1);
  }
  return true;
}

}  // namespace

bool is_dense(const Layout& layout, const Problem& p, bool large) {
  const std::int64_t sizes[5] = {p.batch, p.channels, size_along(p.axis[0], large), size_along(p.axis[1], large),
                                 size_along(p.axis[2], large)};
  const std::int64_t strides[5] = {layout.n, layout.c, layout.d, layout.h, layout.w};
  return follow_each_other(sizes, strides);
}

bool is_dense_by_channels(const Layout& layout, const Problem& p, bool large) {
  const std::int64_t sizes[5] = {p.batch, size_along(p.axis[0], large), size_along(p.axis[1], large),
                                 size_along(p.axis[2], large), p.channels};
  const std::int64_t strides[5] = {layout.n, layout.d, layout.h, layout.w, layout.c};
  return follow_each_other(sizes, strides);
}

Problem upright(const Problem& p) {
  Problem result = p;
  const bool line = p.axis[0].input == 1 && p.axis[0].output == 1 && p.axis[0].kernel == 1 && p.axis[1].input == 1 &&
                    p.axis[1].output == 1 && p.axis[1].kernel == 1;
  // A row that fits stays one.
  if (line && larger(p.axis[2].input, p.axis[2].output) * static_cast<std::int64_t>(size_of(p.dtype)) > (8 << 10)) {
    result.axis[1] = p.axis[2];
    result.axis[2] = p.axis[1];
  }
  return result;
}

bool tile_forward(Launch& launch, const Problem& p, const Function& function, int group, std::int64_t wanted_bytes) {
  const Sources depth{&p.axis[0], false}, height{&p.axis[1], false};
  const auto element = static_cast<std::int64_t>(size_of(p.dtype));
  const std::int64_t row = p.axis[2].input * element;
  if (p.batch * p.channels > INT32_MAX / 2) return false;
  auto apart = [&](const Cut& cut) { return cut.rows < p.axis[1].output && depth.reach(cut.slices) > 1; };
  auto bytes = [&](const Cut& cut) {
    const std::int64_t rows = height.reach(cut.rows), slices = depth.reach(cut.slices);
    if (apart(cut)) return slices * (ceil_div(rows * row, 16) * 16 + 32);
    return cut.planes * slices * rows * row + 32;
  };
  Cut cut;
  if (!choose_cut(depth, height, p.axis[2].output, p.batch * p.channels, function.rows, INT64_MAX / 4, wanted_bytes,
                  bytes, cut))
    return false;
  fill(launch, p, cut, depth, height, p.axis[2].output, function);
  if (launch.tiles > INT32_MAX) return false;
  launch.narrow.tiling.pitch = static_cast<std::int32_t>(ceil_div(height.reach(cut.rows) * row, 16) * 16 + 32);
  launch.shared_bytes = static_cast<std::size_t>(bytes(cut));
  launch.threads_per_result = group;
  return true;
}

bool tile_gather(Launch& launch, const Problem& p, const Function& function, bool selected, int kept_bytes) {
  const Sources depth{&p.axis[0], true}, height{&p.axis[1], true};
  const std::int64_t width = p.axis[2].output;
  if (p.batch * p.channels > INT32_MAX / 2) return false;
  auto outputs = [&](const Cut& cut) { return cut.planes * depth.reach(cut.slices) * height.reach(cut.rows) * width; };
  auto bytes = [&](const Cut& cut) { return outputs(cut) * (kept_bytes + (selected ? 4 : 0)) + 32; };
  Cut cut;
  if (!choose_cut(depth, height, p.axis[2].input, p.batch * p.channels, function.rows, 4 * kWantedResults, kTileBytes,
                  bytes, cut))
    return false;
  fill(launch, p, cut, depth, height, p.axis[2].input, function);
  if (launch.tiles > INT32_MAX) return false;
  Tiling<std::int32_t>& tiling = launch.narrow.tiling;
  tiling.source_y = Divisor<std::int32_t>(larger(height.reach(cut.rows), 1));
  tiling.source_z = Divisor<std::int32_t>(larger(depth.reach(cut.slices), 1));
  tiling.codes_at = static_cast<std::int32_t>(ceil_div(outputs(cut) * kept_bytes, 16) * 16);
  launch.shared_bytes = static_cast<std::size_t>(bytes(cut) + 16);
  return true;
}

std::int64_t planes_together(std::int64_t planes, std::int64_t most, std::int64_t items, std::int64_t threads) {
  std::int64_t together = 1;
  double best = 0;
  for (std::int64_t count = 1; count <= smaller(most, larger(planes / kWantedTiles, 1)); ++count) {
    const double used =
        static_cast<double>(count * items) / static_cast<double>(ceil_div(count * items, threads) * threads);
    if (used < best - 0.02) continue;
    if (used > best) best = used;
    together = count;
  }
  return together;
}

void group_planes(Launch& launch, const Problem& p, std::int64_t together, int threads, std::int64_t bytes) {
  const std::int64_t planes = p.batch * p.channels;
  launch.narrow.tiling.planes = static_cast<std::int32_t>(together);
  launch.narrow.tiling.total_planes = static_cast<std::int32_t>(planes);
  launch.block = threads;
  launch.shared_bytes = static_cast<std::size_t>(bytes);
  launch.tiles = ceil_div(planes, together);
}

bool cut_slides(Launch& launch, const Problem& p, const Function& function) {
  // Ten blocks and more on a multiprocessor of a large GPU; planes so large that there are fewer are cut into strips elsewhere.
  constexpr std::int64_t kWantedBytes = 20 << 10, kMostSlideBytes = 26 << 10;
  const std::int64_t planes = p.batch * p.channels, height = p.axis[1].output, outputs = height * p.axis[2].output;
  const std::int64_t stride = p.axis[1].stride, width = p.axis[2].input;
  const auto element = static_cast<std::int64_t>(size_of(p.dtype));
  const std::int64_t across = ceil_div(p.axis[2].output, function.columns);
  // A row of nothing, what a thread may read behind the last row, results, and codes.
  const std::int64_t nothing = kSlideBefore + ceil_div((width + kSlideMargin) * element, 16) * 16;
  auto source_bytes = [&](std::int64_t count) {
    return nothing + ceil_div((count * p.axis[1].input * width + kSlideMargin) * element, 16) * 16 + 16;
  };
  auto result_bytes = [&](std::int64_t count) {
    return source_bytes(count) + ceil_div(count * outputs * element, 16) * 16 + 16;
  };
  auto bytes = [&](std::int64_t count) {
    return result_bytes(count) + (p.with_indices ? count * outputs * 4 + 16 : 0);
  };
  if (planes > INT32_MAX / 2 || bytes(1) > kMostSlideBytes) return false;
  std::int64_t together = 1, strips = 1;
  double best_cost = 0;
  // Two apart, windows share a row of three: short strips read little twice.
  const std::int64_t enough = larger(planes / kWantedTiles, 1), fewest_rows = stride == 1 ? 4 : 2;
  for (std::int64_t count = 1; count <= enough && (count == 1 || bytes(count) <= kWantedBytes); ++count) {
    for (std::int64_t tried = 1; tried <= ceil_div(height, fewest_rows); ++tried) {
      // About what a thread's strip costs, of whose rows two more are read than made, and a block's beginning and end.
      const std::int64_t rows = ceil_div(height, tried), rounds = ceil_div(count * across * tried, kSlideBlock);
      const double cost = static_cast<double>(rounds * (17 * stride * rows + 40) + 170) / static_cast<double>(count);
      if (best_cost == 0 || cost < best_cost) best_cost = cost, together = count, strips = tried;
    }
  }
  const std::int64_t strip = ceil_div(height, strips);
  Tiling<std::int32_t>& tiling = launch.narrow.tiling;
  tiling.items_x = Divisor<std::int32_t>(across);
  tiling.items_y = Divisor<std::int32_t>(ceil_div(height, strip));
  tiling.items = static_cast<std::int32_t>(together * across * ceil_div(height, strip));
  tiling.pitch = static_cast<std::int32_t>(nothing);
  tiling.results_at = static_cast<std::int32_t>(source_bytes(together));
  tiling.codes_at = static_cast<std::int32_t>(result_bytes(together));
  launch.narrow.strip = static_cast<std::int32_t>(strip);
  group_planes(launch, p, together, kSlideBlock, bytes(together));
  return true;
}

bool cut_regions(Launch& launch, const Problem& p, int run, int together) {
  const bool channels_fastest = together > 1;
  const Axis &h = p.axis[1], &w = p.axis[2];
  const bool extreme = p.reduction == Reduction::max || p.reduction == Reduction::min;
  const auto element = static_cast<std::int64_t>(size_of(p.dtype));
  const std::int64_t value = extreme ? element : larger(element, 4), code = p.with_indices ? 4 : 0;
  const int run_y = h.kernel == 1 ? 1 : run;
  struct Shape {
    std::int64_t count, rows, columns, runs_x, runs_y, source_rows, source_columns, row_step, folded_step, bytes;
  };
  // Lines below each other lie in different banks: an odd step, or with `count` channels a step that is count modulo the banks.
  auto step_of = [&](std::int64_t columns, std::int64_t count) {
    if (!channels_fastest) return columns | 1;
    std::int64_t step = columns * count;
    while (count < 32 && step % 32 != count) ++step;
    return step;
  };
  auto shape_of = [&](std::int64_t rows, std::int64_t columns, std::int64_t count) {
    Shape s{};
    s.count = count;
    s.rows = rows;
    s.columns = columns;
    s.runs_x = ceil_div((columns - 1) * w.stride + 1, run);
    s.runs_y = ceil_div((rows - 1) * h.stride + 1, run_y);
    s.source_rows = smaller((rows - 1) * h.stride + h.kernel, h.input);
    s.source_columns = s.runs_x * run + w.kernel - 1;
    s.row_step = step_of(s.source_columns, count);
    s.folded_step = step_of(s.runs_x * run, count);
    const std::int64_t lines = s.source_rows * (channels_fastest ? 1 : count);
    s.bytes = ceil_div(lines * s.row_step * value, 16) * 16 + ceil_div(lines * s.folded_step * value, 16) * 16 +
              lines * s.folded_step * code;
    return s;
  };
  const std::int64_t planes = p.batch * p.channels;
  // Instructions of a block, about: staging, then the runs of either direction, in rounds of all threads.
  auto cost_of = [&](const Shape& s) {
    auto rounds = [](std::int64_t items) { return static_cast<double>(ceil_div(items, kLineBlock) * kLineBlock); };
    auto per_run = [](std::int64_t kernel, int length) {
      return 30.0 + 16.0 * length + 4.0 * static_cast<double>(kernel);
    };
    return static_cast<double>(s.count * s.source_rows * s.source_columns) * 9 +
           rounds(s.count * s.source_rows * s.runs_x) * per_run(w.kernel, run) +
           rounds(s.count * s.columns * s.runs_y) * per_run(h.kernel, run_y) + 20.0 * kLineBlock;
  };
  Shape s{};
  double best_cost = 0;
  for (std::int64_t rows : {8, 16, 24, 32, 48, 64, 96, 128}) {
    for (std::int64_t columns : {8, 16, 24, 32, 48, 64, 96, 128, 192, 256}) {
      const std::int64_t r = smaller(rows, h.output), c = smaller(columns, w.output);
      const std::int64_t tiles = ceil_div(h.output, r) * ceil_div(w.output, c);
      const std::int64_t least_count = together;
      const std::int64_t most_count = channels_fastest ? least_count : smaller(planes * tiles, kMostRegions);
      for (std::int64_t count = least_count; count <= most_count; ++count) {
        const Shape tried = shape_of(r, c, count);
        if (tried.bytes > kMostRegionBytes) break;
        const double cost = cost_of(tried) * static_cast<double>(tiles) / static_cast<double>(count);
        if (best_cost == 0 || cost < best_cost * 0.99) s = tried, best_cost = cost;
      }
    }
  }
  if (best_cost == 0) return false;
  const std::int64_t tiles = ceil_div(h.output, s.rows) * ceil_div(w.output, s.columns), count = s.count;
  if (planes * tiles > INT32_MAX / 2) return false;
  Regions& regions = launch.narrow.regions;
  auto narrow = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
  const std::int64_t lines = s.source_rows * count;
  regions.regions = narrow(count);
  regions.rows = narrow(s.rows);
  regions.columns = narrow(s.columns);
  regions.reach_rows = narrow((s.rows - 1) * h.stride + h.kernel);
  regions.source_rows = narrow(s.source_rows);
  regions.source_columns = narrow(s.source_columns);
  regions.runs_x = narrow(s.runs_x);
  regions.runs_y = narrow(s.runs_y);
  regions.runs_of_one = run_y == 1;
  regions.tiles_y = Divisor<std::int32_t>(ceil_div(h.output, s.rows));
  regions.tiles_x = Divisor<std::int32_t>(ceil_div(w.output, s.columns));
  regions.channels = Divisor<std::int32_t>(p.channels);
  regions.channel_groups = Divisor<std::int32_t>(ceil_div(p.channels, count));
  regions.by_source_columns = Divisor<std::int32_t>(s.source_columns);
  regions.by_source_rows = Divisor<std::int32_t>(s.source_rows);
  regions.by_lines = Divisor<std::int32_t>(lines);
  regions.by_columns = Divisor<std::int32_t>(s.columns);
  regions.by_across = Divisor<std::int32_t>(s.columns * count);
  regions.channels_fastest = channels_fastest;
  regions.total_regions = narrow(planes * tiles);
  regions.row_step = narrow(s.row_step);
  regions.folded_row_step = narrow(s.folded_step);
  const std::int64_t stored_lines = channels_fastest ? s.source_rows : lines;
  regions.folded_at = narrow(ceil_div(stored_lines * s.row_step * value, 16) * 16);
  regions.codes_at = narrow(regions.folded_at + ceil_div(stored_lines * s.folded_step * value, 16) * 16);
  launch.shared_bytes = static_cast<std::size_t>(s.bytes);
  launch.block = kLineBlock;
  launch.tiles = channels_fastest ? p.batch * tiles * ceil_div(p.channels, count) : ceil_div(planes * tiles, count);
  return launch.tiles <= INT32_MAX;
}

bool cut_bands(Launch& launch, const Problem& p, const Function& function) {
  const std::int64_t width = p.axis[2].input, lanes = width / function.columns,
                     total = p.batch * p.channels * p.axis[1].output;
  const bool extreme = p.reduction == Reduction::max || p.reduction == Reduction::min;
  const std::int64_t value = extreme ? static_cast<std::int64_t>(size_of(p.dtype)) : 4;
  if (lanes > kBlock || total > INT32_MAX / 2) return false;
  const std::int64_t in_block = kBlock / lanes;
  Bands& bands = launch.narrow.bands;
  bands.in_block = static_cast<std::int32_t>(in_block);
  bands.total = static_cast<std::int32_t>(total);
  bands.lanes = Divisor<std::int32_t>(lanes);
  bands.channels = Divisor<std::int32_t>(p.channels);
  bands.rows_at = static_cast<std::int32_t>(ceil_div(in_block * width * value, 16) * 16);
  const bool in_any_order = p.reduction == Reduction::max && !p.with_indices;
  launch.shared_bytes = static_cast<std::size_t>(bands.rows_at + (extreme && !in_any_order ? in_block * width * 4 : 0));
  launch.tiles = ceil_div(total, in_block);
  return true;
}

bool cut_turns(Launch& launch, const Problem& p, bool channels_fastest) {
  const std::int64_t planes = p.batch * p.channels, elements = p.axis[1].input * p.axis[2].input;
  const std::int64_t groups = ceil_div(channels_fastest ? p.channels : planes, 32);
  const std::int64_t bytes = elements * 32 * (p.dtype == DType::f64 ? 8 : 4);
  launch.tiles = groups * (channels_fastest ? p.batch : 1);
  // At least two blocks on each multiprocessor of a large GPU, and room for two.
  if (bytes > kMostPartBytes || elements * 32 >= kNowhere || launch.tiles < 132 * 2 || planes > INT32_MAX / 2)
    return false;
  Parts& parts = launch.narrow.parts;
  parts.groups = Divisor<std::int32_t>(groups);
  parts.channels = Divisor<std::int32_t>(p.channels);
  parts.by_kernel_w = Divisor<std::int32_t>(p.axis[2].kernel);
  parts.total = static_cast<std::int32_t>(planes);
  parts.channels_fastest = channels_fastest;
  launch.shared_bytes = static_cast<std::size_t>(bytes);
  return true;
}

bool cut_parts(Launch& launch, const Problem& p, bool channels_fastest) {
  const Axis &h = p.axis[1], &w = p.axis[2];
  const auto element = static_cast<std::int64_t>(size_of(p.dtype));
  struct Shape {
    std::int64_t rows, columns, elements, out_rows, out_columns, outputs;
  };
  auto shape_of = [&](std::int64_t rows, std::int64_t columns) {
    const std::int64_t out_rows = smaller((rows + h.kernel - 2) / h.stride + 1, h.output);
    const std::int64_t out_columns = smaller((columns + w.kernel - 2) / w.stride + 1, w.output);
    // Odd steps from plane to plane: neighbouring channels lie in different banks.
    return Shape{rows, columns, (rows * columns) | 1, out_rows, out_columns, (out_rows * out_columns + 1) | 1};
  };
  auto bytes_of = [&](const Shape& s, std::int64_t planes) {
    return planes * (s.elements * 10 + s.outputs * (element + 2)) + 128;
  };
  Shape s{};
  double best = 0;
  for (std::int64_t rows : {16, 24, 32, 48, 64, 96, 128}) {
    for (std::int64_t columns : {16, 24, 32, 48, 64, 96, 128}) {
      const Shape tried = shape_of(smaller(rows, h.input), smaller(columns, w.input));
      if (bytes_of(tried, 1) > kMostPartBytes) continue;
      const double parts = static_cast<double>(ceil_div(h.input, tried.rows) * ceil_div(w.input, tried.columns));
      // Instructions, about.
      const double cost = parts * static_cast<double>(tried.outputs * 60 + tried.elements * 20);
      if (best == 0 || cost < best * 0.98) best = cost, s = tried;
    }
  }
  if (best == 0) return false;
  const std::int64_t across = ceil_div(w.input, s.columns), down = ceil_div(h.input, s.rows);
  // Several planes where they are small, as long as every multiprocessor of a large GPU gets a few blocks.
  const std::int64_t all = channels_fastest ? p.channels : p.batch * p.channels;
  const std::int64_t enough = larger(p.batch * p.channels * across * down / (132 * 4), channels_fastest ? 4 : 1);
  std::int64_t planes = 1;
  while (planes < smaller(smaller(all, enough), kMostPartPlanes) && bytes_of(s, planes + 1) <= kWantedPartBytes &&
         (planes + 1) * s.elements < kNoElement) {
    ++planes;
  }
  // Whole sectors of channels.
  for (std::int64_t sector = 32 / element; channels_fastest && sector > 1; sector /= 2) {
    if (planes > sector) {
      planes = planes / sector * sector;
      break;
    }
  }
  const std::int64_t groups = ceil_div(all, planes), blocks = groups * across * down * (channels_fastest ? p.batch : 1);
  if (blocks > INT32_MAX / 2 || p.batch * p.channels > INT32_MAX / 2) return false;
  auto narrow = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
  Parts& parts = launch.narrow.parts;
  parts.rows = narrow(s.rows);
  parts.columns = narrow(s.columns);
  parts.planes = Divisor<std::int32_t>(planes);
  parts.elements = Divisor<std::int32_t>(s.elements);
  parts.outputs = Divisor<std::int32_t>(s.outputs);
  parts.by_columns = Divisor<std::int32_t>(s.columns);
  parts.out_columns = Divisor<std::int32_t>(s.out_columns);
  parts.across = Divisor<std::int32_t>(across);
  parts.down = Divisor<std::int32_t>(down);
  parts.channels = Divisor<std::int32_t>(p.channels);
  parts.groups = Divisor<std::int32_t>(groups);
  parts.by_kernel_w = Divisor<std::int32_t>(w.kernel);
  parts.out_rows = narrow(s.out_rows);
  parts.out_rows_at_once = narrow(larger(kWinnerBlock / (planes * s.out_columns), 1));
  parts.rows_at_once = narrow(larger(kWinnerBlock / (planes * s.columns), 1));
  parts.total = narrow(p.batch * p.channels);
  parts.channels_fastest = channels_fastest;
  parts.lasts_at = narrow(planes * s.elements * 4);
  parts.sent_at = narrow(ceil_div(planes * s.elements * 8, 8) * 8);
  parts.chosen_at = narrow(parts.sent_at + ceil_div(planes * s.outputs * element, 2) * 2);
  parts.list_at = narrow(parts.chosen_at + (planes * s.outputs + 1) * 2);
  launch.block = kWinnerBlock;
  launch.shared_bytes = static_cast<std::size_t>(parts.list_at + planes * s.elements * 2);
  launch.tiles = blocks;
  return true;
}

}  // namespace cenote::gpu
