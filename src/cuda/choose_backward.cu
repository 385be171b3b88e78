// Which kernels a backward pool takes, and max_unpool, which is one without sums.
#include "cuda/choose.hpp"
#include "cuda/tiling.hpp"

namespace cenote::gpu {
namespace {

// Blocks of a launch that nearly always finds nothing to do.
constexpr std::int64_t kBlocksToLookAgain = 132 * 4;

class Backward : public Choice {
 public:
  explicit Backward(const Choice& choice) : Choice(choice) {}

  void choose(Launches& result) {
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
    if (share == Share::power && spread_norms(result)) return;
    if (share == Share::sum && spread_adaptive(result)) return;
    const bool single_channels = !channels_fastest || !channel_vectors({&p_.grad_input, &p_.grad_output, &p_.indices});
    const bool often_seen = share == Share::index && is_floating(p_.dtype) && seen_by() >= 16 && !wide_;
    if (often_seen && !is_empty() && by_winners(result)) return;
    if (gather_down(result, share)) {
      if (!channels_fastest) gather_aligned_rows(result, share);
      if (!channels_fastest && share == Share::sum) spread_aligned_runs(result, share);
      if (!channels_fastest && result.vector.entry == nullptr && spread_packed_pairs(result, share)) return;
      if (share == Share::sum) spread_whole_windows(result, share);
      return;
    }
    if (channels_fastest && spread_down(result, share)) return;
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
      gather_aligned_rows(result, share);
      spread_aligned_runs(result, share);
      spread_whole_planes(result, share);
      if (p_.axis[1].kernel == 1) spread_whole_windows(result, share);
      return;
    }
    const bool vector =
        channels_fastest && (share == Share::index ? channel_vectors({&p_.grad_input, &p_.grad_output, &p_.indices})
                             : share == Share::sum ? channel_vectors({&p_.grad_input, &p_.grad_output})
                                                   : false);
    const Axis &h = p_.axis[1], &w = p_.axis[2];
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
  }

  void unpool(Launches& result) {
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

  void unpool_backward(Launches& result) {
    const bool dense = !wide_ && p_.index_kind != IndexKind::window && is_dense(p_.grad_input, p_, false) &&
                       is_dense(p_.indices, p_, false) && is_dense(p_.grad_output, p_, true);
    const bool channels_fastest = is_channels_fastest(p_.grad_input, p_, p_.axis[2].output);
    result.scalar = make_launch(p_, dense ? kernels_.take_from_planes() : kernels_.take_at_indices(wide_), wide_, false,
                                channels_fastest, 1);
    result.name = "one thread to an element";
  }

 private:
  /// Rows of a strip where what two strips share, or a thread's beginning, costs more than what lies far apart: all that leaves
  /// four threads for each that a large GPU runs at a time, so that the last ones to finish are few.
  static std::int64_t tall_strip(const Problem& p, const Function& function) {
    const std::int64_t wanted = 4 * 132 * 1024, rows = larger(p.axis[1].input, 1);
    const std::int64_t across = ceil_div(p.axis[2].input, function.columns);
    const std::int64_t per_row = larger(p.batch * (p.channels / function.lanes) * p.axis[0].input * across, 1);
    const std::int64_t strip = ceil_div(rows, larger(ceil_div(wanted, per_row), 1));
    return ceil_div(rows, ceil_div(rows, strip));  // strips of one size
  }

  /// The backward of sums with stride 1 is the forward of the same sums over the gradient, mirrored.
  bool transposed_sum(Launches& result) {
    if (wide_ || is_empty() || !is_floating(p_.dtype)) return false;
    Problem mirrored = p_;
    std::int64_t divisor = 1;
    for (int a = 0; a < 3; ++a) {
      const Axis& axis = p_.axis[a];
      if (axis.rule != WindowRule::sliding || axis.stride != 1 || axis.dilation != 1 ||
          axis.pad_begin > axis.kernel - 1)
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

  /// The backward of small square windows, by threads that walk down.
  bool gather_down(Launches& result, Share share) {
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

  /// The backward of windows that overlap little.
  bool spread_down(Launches& result, Share share) {
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
      }
    }
    return true;
  }

  /// The backward of windows that are whole planes; `result` holds another way already.
  void spread_whole_planes(Launches& result, Share share) {
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
      result.name = "planes spread; else " + result.name;
    }
  }

  /// The backward of averages of adaptive windows of different sizes.
  bool spread_adaptive(Launches& result) {
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
    const std::int64_t planes = p_.batch * p_.channels, elements = h.input * p_.axis[2].input;
    const std::int64_t outputs = h.output * p_.axis[2].output;
    const std::int64_t together = smaller(smaller(kAdaptiveElements / elements, kAdaptiveOutputs / outputs),
                                          kAdaptiveLines / larger(h.input, p_.axis[2].input));
    if (!channels_fastest && together > 0 && !is_few(true) && planes * elements < INT32_MAX - 65536 &&
        is_dense(p_.grad_input, p_, true) && is_dense(p_.grad_output, p_, false)) {
      result.scalar = make_launch(p_, kernels_.spread_adaptive_planes(), false, true, false, 1);
      result.scalar.narrow.tiling.planes = static_cast<std::int32_t>(together);
      result.scalar.narrow.tiling.total_planes = static_cast<std::int32_t>(planes);
      result.scalar.tiles = ceil_div(planes, together);
      result.name = "small planes, gradients divided in shared memory";
    }
    return true;
  }

  /// The backward of lp_pool where windows lie side by side.
  bool spread_norms(Launches& result) {
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

  /// The backward of small windows side by side that cover the plane; `result` holds another way already.
  void spread_whole_windows(Launches& result, Share share) {
    const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
    if (wide_ || is_empty() || !is_identity(d)) return;
    for (const Axis* axis : {&h, &w}) {
      if (axis->rule != WindowRule::sliding || axis->dilation != 1 || axis->stride != axis->kernel ||
          axis->pad_begin != 0 || axis->output * axis->kernel != axis->input) {
        return;
      }
    }
    const bool indexed = share == Share::index;
    for (Way way : {Way::channels, Way::columns, Way::single}) {
      const Function function = kernels_.spread_windows(way, share, p_.index_dtype, static_cast<int>(h.kernel % 64),
                                                        static_cast<int>(w.kernel % 64));
      if (function.entry == nullptr || h.kernel > 2 || w.kernel > 4) continue;
      const bool channels_fastest = way == Way::channels;
      if (channels_fastest != is_channels_fastest(p_.grad_input, p_, w.input)) continue;
      if (channels_fastest
              ? !channel_vectors({&p_.grad_input, &p_.grad_output}, function.lanes)
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

  /// The same for 2x2 windows of planar tensors whose rows are too narrow for more.
  bool spread_packed_pairs(Launches& result, Share share) {
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

  /// A pool of windows side by side along one long axis, written as rows of it: what threads work out once serves more elements.
  static Problem in_rows(const Problem& p, bool indexed) {
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

  /// The backward of windows that do not overlap, planar tensors with aligned rows; `result` holds another way already.
  void spread_aligned_runs(Launches& result, Share share) {
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
    result.name = "aligned runs spread; else " + result.name;
  }

  /// The backward of forward_rows, and max_unpool; `result` holds another way already, for what is not aligned in a run.
  void gather_aligned_rows(Launches& result, Share share) {
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
    if (function.entry == nullptr || p.grad_input.w != 1 || p.grad_output.w != 1 || (indexed && p.indices.w != 1))
      return;
    const std::int64_t own = function.columns / w.stride;
    auto aligned = [](const Layout& layout, std::int64_t elements) {
      return layout.n % elements == 0 && layout.c % elements == 0 && layout.d % elements == 0 &&
             layout.h % elements == 0;
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

  /// The same for backward passes and max_unpool.
  bool gather_tiles(Launches& result, Gather gather) {
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

  /// About how many outputs see one element.
  std::int64_t seen_by() const {
    std::int64_t count = 1;
    for (const Axis& axis : p_.axis) {
      const std::int64_t stride =
          axis.rule == WindowRule::sliding ? axis.stride : larger(axis.input / larger(axis.output, 1), 1);
      count *= ceil_div(axis.kernel, stride);
    }
    return count;
  }

  /// Long windows with little stride, where asking every output that sees an element costs more than walking through all.
  bool by_winners(Launches& result) {
    const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
    if (d.input != 1 || d.output != 1 || d.kernel != 1 || h.rule != WindowRule::sliding ||
        w.rule != WindowRule::sliding || h.dilation != 1 || w.dilation != 1) {
      return false;
    }
    const bool channels_fastest = is_channels_fastest(p_.grad_input, p_, w.input);
    const bool plain = p_.index_kind == IndexKind::flat64;
    auto follows = [](const Layout& layout, std::int64_t width) { return layout.h == width * layout.w; };
    if (follows(p_.grad_input, w.input) && follows(p_.grad_output, w.output) && follows(p_.indices, w.output)) {
      const bool planar = !channels_fastest && is_dense(p_.grad_output, p_, false) && is_dense(p_.indices, p_, false);
      result.scalar = make_launch(p_, kernels_.add_in_turn(plain, planar), false, true, channels_fastest, 1);
      if (cut_turns(result.scalar, p_, channels_fastest)) {
        result.scalar.block = planar ? kPlaneBlock : kTurnBlock;
        result.name = "one thread to a plane, outputs in order";
        return true;
      }
    }
    result.scalar = make_launch(p_, kernels_.add_for_winners(plain), false, true, channels_fastest, 1);
    if (!cut_parts(result.scalar, p_, channels_fastest)) return false;
    result.name = "parts of planes in shared memory, a thread to each element that won";
    return true;
  }

  void ordered(Launches& result) {
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
};

}  // namespace

void choose_backward(const Choice& choice, Launches& result) { Backward(choice).choose(result); }

void choose_unpool(const Choice& choice, Launches& result) {
  if (choice.problem().pass == Pass::forward) {
    Backward(choice).unpool(result);
  } else {
    Backward(choice).unpool_backward(result);
  }
}

}  // namespace cenote::gpu
