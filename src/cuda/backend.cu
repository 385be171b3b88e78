// Which kernels solve a problem, and running them.
#include "cuda/device.hpp"
#include "cuda/launch.hpp"
#include "cuda/simplify.hpp"
#include "cuda/tiling.hpp"

#include <atomic>
#include <new>

namespace cenote::gpu {
namespace {

const Kernels& kernels_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return kernels_f64();
    case DType::f16: return kernels_f16();
    case DType::bf16: return kernels_bf16();
    case DType::i8: return kernels_i8();
    case DType::u8: return kernels_u8();
    case DType::i16: return kernels_i16();
    case DType::i32: return kernels_i32();
    case DType::i64: return kernels_i64();
    default: return kernels_f32();
  }
}

bool is_small_square(const Problem& p) {
  const Axis &h = p.axis[1], &w = p.axis[2];
  return h.rule == WindowRule::sliding && w.rule == WindowRule::sliding && h.kernel == w.kernel && h.kernel <= 3 &&
         h.dilation == 1 && w.dilation == 1 && h.stride <= 2 && has_no_empty_window(h) && has_no_empty_window(w) &&
         has_no_empty_window(p.axis[0]);
}

/// What a plan launches, in order. Where channels can be taken several at a time, `vector` says how, for aligned pointers.
struct Launches {
  Launch vector, scalar, then;
  Problem problem;              // the one that is run
  bool aligned_unpool = false;  // `vector` takes an unpool's tensors as gradients
  bool mirrored = false;        // a backward run as a forward: from grad_output to grad_input
  std::string name;
};

class Chooser {
 public:
  explicit Chooser(const Problem& p) : p_(simplified(p)), kernels_(kernels_of(p.dtype)), wide_(!fits_in_31_bits(p_)) {}

  Status choose(Launches& result) {
    result.problem = p_;
    if (p_.op == Op::max_unpool) {
      if (p_.pass == Pass::forward) {
        unpool(result);
      } else {
        unpool_backward(result);
      }
    } else if (p_.pass == Pass::forward) {
      forward(result);
    } else if (p_.op == Op::fractional_max_pool) {
      if (p_.index_kind == IndexKind::window && p_.random_samples.n == 0 && p_.random_samples.c == 0 &&
          p_.random_samples.w == 0) {
        return Status::failure(ErrorCode::invalid_argument, "random_samples",
                               "%s%dd backward: window indices need the forward's random_samples", name_of(p_.op),
                               p_.dims);
      }
      ordered(result);
    } else {
      backward(result);
    }
    if (wide_) result.name += ", 64-bit positions";
    return {};
  }

 private:
  Fold fold() const {
    switch (p_.reduction) {
      case Reduction::max: return Fold::max;
      case Reduction::min: return Fold::min;
      case Reduction::power: return p_.norm_type == 2 && !wide_ ? Fold::square : Fold::power;
      default: return Fold::sum;
    }
  }

  bool channel_vectors(std::initializer_list<const Layout*> layouts, int lanes = 0) const {
    if (lanes == 0) lanes = kernels_.lanes;
    if (wide_ || p_.channels % lanes != 0) return false;
    for (const Layout* layout : layouts) {
      if (!has_channel_vectors(*layout, lanes)) return false;
    }
    return true;
  }

  /// Whether rows begin at multiples of so many elements.
  static bool has_aligned_rows(const Layout& layout, std::int64_t elements) {
    return layout.w == 1 && layout.n % elements == 0 && layout.c % elements == 0 && layout.d % elements == 0 &&
           layout.h % elements == 0;
  }

  /// A launch whose threads walk down strips of `rows` rows. `phase`: columns before the plane where the first strip begins.
  static Launch walk(const Problem& p, Function function, bool large, bool channels_fastest, std::int64_t rows,
                     std::int64_t phase = 0) {
    const std::int64_t height = larger(large ? p.axis[1].input : p.axis[1].output, 1);
    rows = larger(smaller(rows, height), 1);
    // Few threads: one row each.
    std::int64_t elements = p.batch * p.channels;
    for (const Axis& axis : p.axis) elements *= large ? axis.input : axis.output;
    if (elements < 132 * 512 * function.lanes * function.columns) rows = 1;
    function.rows = static_cast<int>(rows);
    Problem shifted = p;
    shifted.axis[2].input += phase;
    Launch launch = make_launch(p, function, false, large, channels_fastest, function.lanes);
    const Launch wider = make_launch(shifted, function, false, large, channels_fastest, function.lanes);
    launch.narrow.grid = wider.narrow.grid;
    launch.threads_per_entry = wider.threads_per_entry;
    launch.batch_per_launch = wider.batch_per_launch;
    launch.narrow.strip = static_cast<std::int32_t>(rows);
    return launch;
  }

  /// Rows of a strip where what two strips share, or a thread's beginning, costs more than what lies far apart: all that leaves
  /// four threads for each that a large GPU runs at a time, so that the last ones to finish are few.
  static std::int64_t tall_strip(const Problem& p, const Function& function) {
    const std::int64_t wanted = 4 * 132 * 1024, rows = larger(p.axis[1].input, 1);
    const std::int64_t across = ceil_div(p.axis[2].input, function.columns);
    const std::int64_t per_row = larger(p.batch * (p.channels / function.lanes) * p.axis[0].input * across, 1);
    const std::int64_t strip = ceil_div(rows, larger(ceil_div(wanted, per_row), 1));
    return ceil_div(rows, ceil_div(rows, strip));  // strips of one size
  }

  void forward(Launches& result) {
    if (forward_lines(result) || forward_turned(result) || forward_down(result) || forward_rows(result)) return;
    if (forward_bands(result) || forward_tiles(result)) return;
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

  /// Never run, but planned.
  bool is_empty() const {
    bool empty = p_.batch == 0 || p_.channels == 0;
    for (const Axis& axis : p_.axis) empty = empty || axis.input == 0 || axis.output == 0;
    return empty;
  }

  /// Long windows of one slice that overlap much: their cost must not grow with their length.
  bool forward_lines(Launches& result) {
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
    return cut_regions(result.scalar, p_, run, function.lanes);
  }

  /// From channels last to planar.
  bool forward_turned(Launches& result) {
    if (wide_ || is_empty() || p_.absolute || p_.channels < 8 || p_.output.w != 1 || p_.axis[2].output < 8 ||
        p_.axis[2].rule == WindowRule::fractional || !is_channels_fastest(p_.input, p_, p_.axis[2].input) ||
        is_channels_fastest(p_.output, p_, p_.axis[2].output)) {
      return false;
    }
    const Function function = kernels_.fold_turned(fold(), p_.with_indices);
    if (function.entry == nullptr) return false;
    result.scalar = make_launch(p_, function, false, false, true, 1);
    const std::int64_t groups = ceil_div(p_.channels, kTurned), columns = ceil_div(p_.axis[2].output, kTurned);
    Turned& turned = result.scalar.narrow.turned;
    turned.channel_groups = Divisor<std::int32_t>(groups);
    turned.column_groups = Divisor<std::int32_t>(columns);
    turned.channels = static_cast<std::int32_t>(p_.channels);
    result.scalar.tiles = p_.batch * groups * columns * p_.axis[0].output * p_.axis[1].output;
    result.name = "channels last to planar, turned in shared memory";
    return result.scalar.tiles <= INT32_MAX;
  }

  /// Small square windows, by threads that walk down.
  bool forward_down(Launches& result) {
    const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
    if (wide_ || is_empty() || p_.absolute || !is_small_square(p_) || d.rule != WindowRule::sliding) return false;
    const auto kernel = static_cast<int>(h.kernel), stride = static_cast<int>(h.stride);
    const bool deep = d.kernel > 1, indices = p_.with_indices;
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
    if (single.entry == nullptr) return false;
    const bool channels_fastest = is_channels_fastest(p_.input, p_, w.input);
    // Narrow rows that are not aligned leave little to a warp: tiles of whole rows then.
    const bool narrow = !channels_fastest && w.output < 32;
    Launches tiles;
    if (narrow && forward_tiles(tiles)) result.scalar = tiles.scalar, result.name = tiles.name;
    if (result.scalar.entry == nullptr) result.scalar = walk(p_, single, false, channels_fastest, 8);
    if (result.name.empty())
      result.name = "walks down strips of " + std::to_string(result.scalar.narrow.strip) + " rows";
    if (channels_fastest) {
      const Function vector = function_for(Way::channels, 0);
      if (indices ? channel_vectors({&p_.input, &p_.output, &p_.indices}, vector.lanes)
                  : channel_vectors({&p_.input, &p_.output}, vector.lanes)) {
        result.vector = walk(p_, vector, false, true, rows);
      }
      return true;
    }
    if (h.stride != w.stride || h.pad_begin != w.pad_begin) return true;
    const Function columns = function_for(Way::columns, static_cast<int>(w.pad_begin));
    if (columns.entry == nullptr) return true;
    const std::int64_t own = columns.columns * w.stride;
    // The last window may hang over the right edge by one column.
    if (p_.output.w == 1 && (!indices || p_.indices.w == 1) && w.input % own == 0 &&
        ceil_div(w.output, columns.columns) == w.input / own &&
        has_aligned_rows(p_.input, smaller(own, static_cast<std::int64_t>(16 / size_of(p_.dtype)))) &&
        (w.output - 1) * w.stride - w.pad_begin + w.kernel <= w.input + 1) {
      result.vector = walk(p_, columns, false, false, rows);
      if (w.output % columns.columns == 0 && has_aligned_rows(p_.output, columns.columns) &&
          (!indices || has_aligned_rows(p_.indices, columns.columns))) {
        result.vector.paired = columns.columns;
      }
      result.name += ", " + std::to_string(columns.columns) + " columns at once";
    }
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
    if (!channels_fastest && w.input < 32 &&
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
    const Axis& w = p_.axis[2];
    const Function single = kernels_.spread_down(Way::single, share);
    if (single.entry == nullptr) return false;
    const bool channels_fastest = is_channels_fastest(p_.grad_input, p_, w.input);
    result.scalar = walk(p_, single, true, channels_fastest, tall_strip(p_, single));
    result.name = "walks down strips of " + std::to_string(result.scalar.narrow.strip) + " rows";
    if (channels_fastest) {
      const Function vector = kernels_.spread_down(Way::channels, share);
      if (share == Share::index ? channel_vectors({&p_.grad_input, &p_.grad_output, &p_.indices}, vector.lanes)
                                : channel_vectors({&p_.grad_input, &p_.grad_output}, vector.lanes)) {
        result.vector = walk(p_, vector, true, true, tall_strip(p_, vector));
      }
    }
    return true;
  }

  /// The backward of windows that are whole planes; `result` holds another way already.
  void spread_whole_planes(Launches& result, Share share) {
    const Axis &h = p_.axis[1], &w = p_.axis[2];
    const std::int64_t elements = p_.batch * p_.channels * w.input;
    if (wide_ || is_empty() || (share != Share::index && share != Share::sum)) return;
    if (p_.axis[0].input == 1 && p_.axis[0].output == 1 && h.input == 1 && h.output == 1 &&
        w.rule == WindowRule::sliding && w.output == 1 && w.kernel == w.input && w.pad_begin == 0 &&
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
    result.scalar = make_launch(p_, kernels_.spread_norms(false, square), false, false, channels_fastest, 1);
    if (p_.axis[2].kernel == 2 && has_aligned_rows(p_.input, 2) && has_aligned_rows(p_.grad_input, 2))
      result.vector = make_launch(p_, kernels_.spread_norms(true, square), false, false, channels_fastest, 1);
    result.name = "one thread to a window";
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

  /// Small square windows of planar tensors with aligned rows. What is not aligned after all in a run goes the other ways.
  bool forward_rows(Launches& result) {
    const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
    const bool line = d.input == 1 && d.output == 1 && d.kernel == 1 && h.input == 1 && h.output == 1 &&
                      h.kernel == 1 && w.rule == WindowRule::sliding && w.dilation == 1 && w.kernel <= 8 &&
                      w.stride <= 8 && w.pad_begin == 0 && has_no_empty_window(w);
    const bool square = is_small_square(p_) && h.stride == w.stride && h.pad_begin == w.pad_begin;
    if (wide_ || is_empty() || p_.absolute || (!line && !square)) return false;
    const Function function =
        kernels_.fold_rows(fold(), p_.with_indices, static_cast<int>(h.kernel), static_cast<int>(w.kernel),
                           static_cast<int>(w.stride), static_cast<int>(w.pad_begin));
    if (function.entry == nullptr || p_.input.w != 1 || p_.output.w != 1 || (p_.with_indices && p_.indices.w != 1)) {
      return false;
    }
    const std::int64_t own = function.columns * w.stride;
    auto aligned = [](const Layout& layout, std::int64_t elements) {
      return layout.n % elements == 0 && layout.c % elements == 0 && layout.d % elements == 0 &&
             layout.h % elements == 0;
    };
    const std::int64_t vector = smaller(own, static_cast<std::int64_t>(16 / size_of(p_.dtype)));
    if (w.input % own != 0 || (w.output + function.columns - 1) / function.columns != w.input / own ||
        !aligned(p_.input, vector)) {
      return false;
    }
    // A last output column whose window hangs over the right edge by more than the kernel knows of.
    if ((w.output - 1) * w.stride - w.pad_begin + w.kernel > w.input + 1) return false;
    result.vector = make_launch(p_, function, false, false, false, 1);
    if (w.output % function.columns == 0 && aligned(p_.output, function.columns) &&
        (!p_.with_indices || aligned(p_.indices, function.columns))) {
      result.vector.paired = function.columns;
    }
    Launches other;
    if (forward_tiles(other)) {
      result.scalar = other.scalar;
    } else {
      const Function direct = kernels_.fold_windows(false, fold(), p_.with_indices, false);
      result.scalar = make_launch(p_, direct, false, false, false, 1);
    }
    result.name = "aligned rows, " + std::to_string(function.rows) + "x" + std::to_string(function.columns) +
                  " outputs to a thread";
    return true;
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
    Chooser chooser(mirrored);
    if (chooser.wide_) return false;
    chooser.forward(result);
    result.name = "the forward of the gradient: " + result.name;
    result.mirrored = true;
    result.problem = chooser.p_;
    return true;
  }

  /// Windows of several rows, planar tensors; a band of rows is read by whole rows, whatever the windows across.
  bool forward_bands(Launches& result) {
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

  /// Dense planar tensors, through shared memory.
  bool forward_tiles(Launches& result) {
    if (wide_ || is_empty() || !is_dense(p_.input, p_, true) || !is_dense(p_.output, p_, false) ||
        p_.axis[2].rule == WindowRule::fractional || (p_.with_indices && !is_dense(p_.indices, p_, false))) {
      return false;
    }
    if (is_small_square(p_) && !p_.absolute) {
      const auto kernel = static_cast<int>(p_.axis[1].kernel), stride = static_cast<int>(p_.axis[1].stride);
      const Function function = kernels_.fold_tiles(fold(), p_.with_indices, kernel, stride);
      if (function.entry != nullptr) {
        result.scalar = make_launch(p_, function, false, false, false, 1);
        result.name = "tiles in shared memory, strips of " + std::to_string(function.rows) + " outputs";
        if (tile_forward(result.scalar, p_, function, 1)) return true;
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

  void backward(Launches& result) {
    const Share share = p_.reduction == Reduction::power ? Share::power
                        : p_.absolute                    ? Share::infinite
                        : p_.with_indices                ? Share::index
                                                         : Share::sum;
    const bool channels_fastest = is_channels_fastest(p_.grad_input, p_, p_.axis[2].input);
    if (share == Share::sum && transposed_sum(result)) return;
    if (share == Share::power && spread_norms(result)) return;
    const bool single_channels = !channels_fastest || !channel_vectors({&p_.grad_input, &p_.grad_output, &p_.indices});
    const bool often_seen = share == Share::index && is_floating(p_.dtype) && seen_by() >= 16 && !wide_;
    if (often_seen && !is_empty() && by_columns(result)) return;
    if (gather_down(result, share)) {
      if (!channels_fastest) gather_aligned_rows(result, share);
      if (!channels_fastest && share == Share::sum) spread_aligned_runs(result, share);
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
  bool by_columns(Launches& result) {
    const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
    if (d.input != 1 || d.output != 1 || d.kernel != 1 || h.rule != WindowRule::sliding ||
        w.rule != WindowRule::sliding || h.dilation != 1 || w.dilation != 1) {
      return false;
    }
    const bool channels_fastest = is_channels_fastest(p_.grad_input, p_, w.input);
    result.scalar = make_launch(p_, kernels_.add_by_columns(false), false, true, channels_fastest, 1);
    if (!cut_parts(result.scalar, p_, channels_fastest)) return false;
    auto aligned = [](const Layout& layout) {
      return layout.w == 1 && layout.n % kPartVector == 0 && layout.c % kPartVector == 0 && layout.h % kPartVector == 0;
    };
    if (aligned(p_.grad_output) && aligned(p_.indices) && w.output % kPartVector == 0) {
      result.vector = result.scalar;
      result.vector.entry = kernels_.add_by_columns(true).entry;
    }
    result.name = "one thread to a part of a plane, outputs in order";
    if (p_.dtype == DType::f16 || p_.dtype == DType::bf16) {
      Launches again;
      ordered(again);
      result.then = again.scalar;
      result.then.most_blocks = kBlocksToLookAgain;
      result.name += "; indices that no pool made: " + again.name;
    }
    return true;
  }

  // Blocks of a launch that nearly always finds nothing to do.
  static constexpr std::int64_t kBlocksToLookAgain = 132 * 4;

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

  const Problem p_;
  const Kernels& kernels_;
  bool wide_;
};

class CudaKernel final : public Kernel {
 public:
  CudaKernel(const Described& described) : problem_(described.problem), device_(described.input.device.index) {}

  Status prepare() {
    register_device_memory();
    int devices = 0;
    cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess) return device_failure(error, "looking for devices");
    if (device_ < 0 || device_ >= devices) {
      return Status::failure(ErrorCode::device, "device", "cuda:%d does not exist: this machine has %d CUDA device%s",
                             device_, devices, devices == 1 ? "" : "s");
    }
    if (Status status = Chooser(problem_).choose(launches_); !status.ok()) return status;
    const CurrentDevice current(device_);
    error = current.error();
    // Loading code now keeps it out of run(), where a capture may be under way.
    for (const Launch* launch : {&launches_.vector, &launches_.scalar, &launches_.then}) {
      cudaFuncAttributes attributes;
      if (error == cudaSuccess && launch->entry != nullptr) error = cudaFuncGetAttributes(&attributes, launch->entry);
      if (error == cudaSuccess && launch->shared_bytes > (40 << 10)) {
        // The same for all plans, which share the function.
        error = cudaFuncSetAttribute(launch->entry, cudaFuncAttributeMaxDynamicSharedMemorySize, kMostRegionBytes);
      }
    }
    if (error == cudaSuccess && (problem_.with_indices || problem_.op == Op::fractional_max_pool))
      error = fault_.allocate();
    if (error == cudaSuccess && launches_.then.entry != nullptr) error = irregular_.allocate();
    if (error != cudaSuccess) return device_failure(error, "preparing a plan");
    target = "cuda";
    explain = "cuda: " + launches_.name;
    if (launches_.vector.lanes > 1) explain += ", " + std::to_string(launches_.vector.lanes) + " channels at once";
    return {};
  }

  Status run(const RunArgs& args) const noexcept override {
    if (Status status = check(); !status.ok()) return status;
    const CurrentDevice current(device_);
    if (current.error() != cudaSuccess) return device_failure(current.error(), "choosing the device");
    Pointers at{args.input,       args.output,     args.indices,     args.saved_indices,  args.random_samples,
                args.grad_output, args.grad_input, fault_.address(), irregular_.address()};
    if (launches_.mirrored) {
      at.input = args.grad_output;
      at.output = args.grad_input;
    }
    const auto stream = static_cast<cudaStream_t>(args.stream);
    const bool vector = launches_.vector.entry != nullptr && is_aligned(at);
    if (vector && launches_.aligned_unpool) {
      at.grad_output = args.input;
      at.grad_input = args.output;
    }
    cudaError_t error = run_launch(vector ? launches_.vector : launches_.scalar, launches_.problem, at, stream);
    if (error == cudaSuccess && launches_.then.entry != nullptr)
      error = run_launch(launches_.then, launches_.problem, at, stream);
    return error == cudaSuccess ? Status() : device_failure(error, "launching a kernel");
  }

  Status check() const noexcept override {
    switch (fault_.fetch()) {
      case 0: return {};
      case kFaultSample:
        return Status::failure(ErrorCode::invalid_argument, "random_samples",
                               "%s%dd: an earlier run of this plan met a random sample outside [0, 1)",
                               name_of(problem_.op), problem_.dims);
      default:
        return Status::failure(
            ErrorCode::invalid_index, "saved_indices",
            "%s%dd%s: an earlier run of this plan met an index outside its %s", name_of(problem_.op), problem_.dims,
            problem_.pass == Pass::backward ? " backward" : "",
            problem_.op == Op::max_unpool || problem_.op == Op::fractional_max_pool ? "plane" : "window");
    }
  }

 private:
  static bool is_aligned(const Pointers& at) noexcept {
    std::uintptr_t all = 0;
    for (const void* pointer : {at.input, static_cast<const void*>(at.output), static_cast<const void*>(at.indices),
                                at.saved_indices, at.grad_output, static_cast<const void*>(at.grad_input)}) {
      all |= reinterpret_cast<std::uintptr_t>(pointer);
    }
    return all % 16 == 0;
  }

  Problem problem_;
  int device_;
  Launches launches_;
  FaultWord fault_;
  DeviceWord irregular_;
};

}  // namespace
}  // namespace cenote::gpu

namespace cenote {

std::unique_ptr<Kernel> make_cuda_kernel(const Described& described, const PlanOptions&, Status& status) {
  auto kernel = std::make_unique<gpu::CudaKernel>(described);
  status = kernel->prepare();
  if (!status.ok()) return nullptr;
  return kernel;
}

}  // namespace cenote
