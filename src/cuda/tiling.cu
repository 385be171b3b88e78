#include "cuda/tiling.hpp"

namespace cenote::gpu {
namespace {

/// Ranges of source positions for ranges of results along one axis.
struct Along {
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

// Tiles of this many source bytes keep six to eight blocks on a multiprocessor, one part of them waiting for memory while the
// other folds; wide rows and deep windows may take up to what a block gets without asking.
constexpr std::int64_t kWantedBytes = 24 << 10;
constexpr std::int64_t kMostBytes = 47 << 10;
// Results a tile should have at least, so that every thread has some.
constexpr std::int64_t kWantedResults = 4096;
// Tiles a launch should have, so that every multiprocessor of a large GPU gets some.
constexpr std::int64_t kWantedTiles = 132 * 8;

struct Cut {
  std::int64_t planes = 1, slices = 1, rows = 1;
};

/// `bytes(cut)`: what a tile would keep in shared memory; `results(cut)`: what it would make.
template <class Bytes>
bool choose_cut(const Along& depth, const Along& height, std::int64_t width, std::int64_t planes,
                std::int64_t row_multiple, std::int64_t most_results, Bytes bytes, Cut& cut) {
  const std::int64_t plane = depth.results() * height.results() * width;
  auto fits = [&](const Cut& c, std::int64_t limit) {
    return bytes(c) <= limit &&
           c.planes * c.slices * c.rows * width <= larger(most_results, c.rows == row_multiple ? INT64_MAX : 0);
  };
  cut = {1, depth.results(), height.results()};
  if (bytes(cut) <= kWantedBytes && plane <= most_results) {
    // Whole planes, as many as fit and leave enough tiles.
    const std::int64_t enough = larger(planes / kWantedTiles, 1);
    while (cut.planes < enough) {
      Cut more = cut;
      more.planes = smaller(cut.planes * 2, enough);
      if (bytes(more) > kWantedBytes || more.planes * plane > most_results) break;
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
    if (fits(cut, kWantedBytes)) return true;
  }
  if (fits(cut, kWantedBytes)) return true;
  for (cut.rows = ceil_div(cut.rows, row_multiple) * row_multiple; cut.rows > row_multiple;
       cut.rows = ceil_div((cut.rows + 1) / 2, row_multiple) * row_multiple) {
    if (fits(cut, kWantedBytes)) break;
  }
  // The halving may have gone too far.
  while (cut.rows + row_multiple < height.results()) {
    Cut more = cut;
    more.rows += row_multiple;
    if (!fits(more, kWantedBytes)) break;
    cut = more;
  }
  return bytes(cut) <= kMostBytes;
}

void fill(Launch& launch, const Problem& p, const Cut& cut, const Along& depth, const Along& height, std::int64_t width,
          const Function& function) {
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

}  // namespace

bool is_dense(const Layout& layout, const Problem& p, bool large) {
  const std::int64_t size[3] = {large ? p.axis[0].input : p.axis[0].output, large ? p.axis[1].input : p.axis[1].output,
                                large ? p.axis[2].input : p.axis[2].output};
  const std::int64_t sizes[5] = {p.batch, p.channels, size[0], size[1], size[2]};
  const std::int64_t strides[5] = {layout.n, layout.c, layout.d, layout.h, layout.w};
  std::int64_t dense = 1;
  for (int i = 4; i >= 0; --i) {
    if (sizes[i] > 1 && strides[i] != dense) return false;
    dense *= larger(sizes[i], 1);
  }
  return true;
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

bool tile_forward(Launch& launch, const Problem& p, const Function& function, int group) {
  const Along depth{&p.axis[0], false}, height{&p.axis[1], false};
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
  if (!choose_cut(depth, height, p.axis[2].output, p.batch * p.channels, function.rows, INT64_MAX / 4, bytes, cut))
    return false;
  fill(launch, p, cut, depth, height, p.axis[2].output, function);
  if (launch.tiles > INT32_MAX) return false;
  launch.narrow.tiling.pitch = static_cast<std::int32_t>(ceil_div(height.reach(cut.rows) * row, 16) * 16 + 32);
  launch.shared_bytes = static_cast<std::size_t>(bytes(cut));
  launch.threads_per_result = group;
  return true;
}

bool tile_gather(Launch& launch, const Problem& p, const Function& function, bool selected, int kept_bytes) {
  const Along depth{&p.axis[0], true}, height{&p.axis[1], true};
  const std::int64_t width = p.axis[2].output;
  if (p.batch * p.channels > INT32_MAX / 2) return false;
  auto outputs = [&](const Cut& cut) { return cut.planes * depth.reach(cut.slices) * height.reach(cut.rows) * width; };
  auto bytes = [&](const Cut& cut) { return outputs(cut) * (kept_bytes + (selected ? 4 : 0)) + 32; };
  Cut cut;
  if (!choose_cut(depth, height, p.axis[2].input, p.batch * p.channels, function.rows, 4 * kWantedResults, bytes, cut))
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

bool cut_regions(Launch& launch, const Problem& p, bool channels_fastest) {
  const Axis &h = p.axis[1], &w = p.axis[2];
  const bool indices = p.with_indices;
  const std::int64_t value = p.reduction == Reduction::max || p.reduction == Reduction::min
                                 ? static_cast<std::int64_t>(size_of(p.dtype))
                                 : larger(static_cast<std::int64_t>(size_of(p.dtype)), 4);
  constexpr std::int64_t kBytes = 44 << 10;
  const std::int64_t wanted_regions = channels_fastest ? smaller(p.channels, 8) : 1;
  auto source = [](const Axis& axis, std::int64_t outputs) { return (outputs - 1) * axis.stride + axis.kernel; };
  auto pitch = [&](std::int64_t columns) {
    return source(w, columns) | 1;
  };  // odd: lines below each other lie in different banks
  auto bytes = [&](std::int64_t rows, std::int64_t columns) {
    const std::int64_t row = channels_fastest ? source(w, columns) : pitch(columns);
    return source(h, rows) * row * (value + (indices ? 4 : 0));
  };
  // The region whose source exceeds it least.
  std::int64_t best_rows = 0, best_columns = 0;
  double best = 0;
  for (std::int64_t rows : {8, 16, 24, 32, 48, 64, 96, 128}) {
    for (std::int64_t columns : {8, 16, 24, 32, 48, 64, 96, 128, 192, 256}) {
      const std::int64_t r = smaller(rows, h.output), c = smaller(columns, w.output);
      if (bytes(r, c) * wanted_regions > kBytes) continue;
      if (h.output == 1 && !channels_fastest && columns > 96) continue;  // one line a region: more regions instead
      const double covered = static_cast<double>(ceil_div(h.output, r) * r) / static_cast<double>(h.output) *
                             static_cast<double>(ceil_div(w.output, c) * c) / static_cast<double>(w.output);
      const double score = static_cast<double>(r * c) / static_cast<double>(source(h, r) * source(w, c)) / covered;
      if (score > best * 1.02) best = score, best_rows = r, best_columns = c;
    }
  }
  if (best_rows == 0) return false;
  const std::int64_t region = bytes(best_rows, best_columns);
  Regions& regions = launch.narrow.regions;
  const std::int64_t tiles = ceil_div(h.output, best_rows) * ceil_div(w.output, best_columns);
  const std::int64_t planes = p.batch * p.channels;
  // Enough lines for every thread, but not more than the memory of five blocks on a multiprocessor.
  std::int64_t count = wanted_regions;
  if (!channels_fastest) {
    while (count * smaller(source(h, best_rows), best_columns) < kLineBlock && (count + 1) * region <= kBytes) ++count;
  } else {
    while (count < p.channels && count < 32 && 2 * count * region <= kBytes) count *= 2;
    count = smaller(count, p.channels);
  }
  regions.regions = static_cast<std::int32_t>(count);
  regions.rows = static_cast<std::int32_t>(best_rows);
  regions.columns = static_cast<std::int32_t>(best_columns);
  regions.source_rows = static_cast<std::int32_t>(source(h, best_rows));
  regions.source_columns = static_cast<std::int32_t>(source(w, best_columns));
  regions.tiles_y = Divisor<std::int32_t>(ceil_div(h.output, best_rows));
  regions.tiles_x = Divisor<std::int32_t>(ceil_div(w.output, best_columns));
  regions.channels = Divisor<std::int32_t>(p.channels);
  regions.channel_groups = Divisor<std::int32_t>(ceil_div(p.channels, count));
  regions.by_regions = Divisor<std::int32_t>(count);
  regions.by_source_rows = Divisor<std::int32_t>(regions.source_rows);
  regions.by_source_columns = Divisor<std::int32_t>(regions.source_columns);
  regions.by_rows = Divisor<std::int32_t>(best_rows);
  regions.by_columns = Divisor<std::int32_t>(best_columns);
  regions.channels_fastest = channels_fastest;
  if (planes * tiles > INT32_MAX / 2) return false;
  regions.total_regions = static_cast<std::int32_t>(planes * tiles);
  regions.column_step = channels_fastest ? regions.regions : 1;
  regions.row_step =
      channels_fastest ? regions.source_columns * regions.regions : static_cast<std::int32_t>(pitch(best_columns));
  regions.region_step = channels_fastest ? 1 : regions.source_rows * regions.row_step;
  const std::int64_t elements = channels_fastest ? static_cast<std::int64_t>(regions.source_rows) * regions.row_step
                                                 : static_cast<std::int64_t>(regions.regions) * regions.region_step;
  launch.narrow.tiling.codes_at = static_cast<std::int32_t>(ceil_div(elements * value, 16) * 16);
  launch.shared_bytes = static_cast<std::size_t>(launch.narrow.tiling.codes_at + (indices ? elements * 4 : 0));
  launch.block = kLineBlock;
  launch.tiles = channels_fastest ? p.batch * tiles * ceil_div(p.channels, count) : ceil_div(planes * tiles, count);
  return launch.shared_bytes <= (48 << 10);
}

}  // namespace cenote::gpu
