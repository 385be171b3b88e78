#include "cuda/choose.hpp"

#include "cuda/simplify.hpp"
#include "cuda/tiling.hpp"

#include <cstdlib>

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

}  // namespace

Choice::Choice(const Problem& p) : p_(simplified(p)), kernels_(kernels_of(p.dtype)), wide_(!fits_in_31_bits(p_)) {}

Fold Choice::fold() const {
  switch (p_.reduction) {
    case Reduction::max: return Fold::max;
    case Reduction::min: return Fold::min;
    case Reduction::power: return p_.norm_type == 2 && !wide_ ? Fold::square : Fold::power;
    default: return Fold::sum;
  }
}

bool Choice::channel_vectors(std::initializer_list<const Layout*> layouts, int lanes) const {
  if (lanes == 0) lanes = kernels_.lanes;
  if (wide_ || p_.channels % lanes != 0) return false;
  for (const Layout* layout : layouts) {
    Layout steps = *layout;
    // Along an axis of one position nobody steps, whatever the stride.
    const bool large = layout == &p_.input || layout == &p_.grad_input;
    if (p_.op != Op::max_unpool) {
      std::int64_t* const along[3] = {&steps.d, &steps.h, &steps.w};
      for (int a = 0; a < 3; ++a) {
        if ((large ? p_.axis[a].input : p_.axis[a].output) == 1) *along[a] = 0;
      }
      if (p_.batch == 1) steps.n = 0;
    }
    if (!has_channel_vectors(steps, lanes)) return false;
  }
  return true;
}

bool Choice::has_aligned_rows(const Layout& layout, std::int64_t elements) {
  return layout.w == 1 && layout.n % elements == 0 && layout.c % elements == 0 && layout.d % elements == 0 &&
         layout.h % elements == 0;
}

bool Choice::is_small_square(const Problem& p) {
  const Axis &h = p.axis[1], &w = p.axis[2];
  return h.rule == WindowRule::sliding && w.rule == WindowRule::sliding && h.kernel == w.kernel && h.kernel <= 3 &&
         h.dilation == 1 && w.dilation == 1 && h.stride <= 2 && has_no_empty_window(h) && has_no_empty_window(w) &&
         has_no_empty_window(p.axis[0]);
}

std::int64_t Choice::count_elements(const Problem& p, bool large) {
  std::int64_t elements = p.batch * p.channels;
  for (const Axis& axis : p.axis) elements *= large ? axis.input : axis.output;
  return elements;
}

bool Choice::is_few(bool large) const { return count_elements(p_, large) < 132 * 512; }

bool Choice::is_empty() const {
  bool empty = p_.batch == 0 || p_.channels == 0;
  for (const Axis& axis : p_.axis) empty = empty || axis.input == 0 || axis.output == 0;
  return empty;
}

bool Choice::has_row_windows(std::int64_t most_taps, bool padded) const {
  const Axis& w = p_.axis[2];
  const bool whole = w.pad_begin == 0 && (w.output - 1) * w.stride + w.kernel <= w.input;
  return !wide_ && !is_empty() && is_identity(p_.axis[0]) && is_identity(p_.axis[1]) && w.rule == WindowRule::sliding &&
         w.dilation == 1 && w.kernel >= 2 && w.kernel <= most_taps && (whole || padded) &&
         count_elements(p_, true) <= INT32_MAX - 65536;
}

bool Choice::has_channel_rows(const Layout& large, const Layout& small, bool planar, int lanes) const {
  if (wide_ || is_empty() || !is_identity(p_.axis[0]) || p_.axis[0].input != 1 ||
      count_elements(p_, true) > INT32_MAX - 65536) {
    return false;
  }
  if (planar ? size_of(p_.dtype) != 4 || !is_dense(large, p_, true) || !is_dense(small, p_, false)
             : p_.channels % lanes == 0 || !is_channels_fastest(large, p_, p_.axis[2].input) ||
                   !is_dense_by_channels(large, p_, true) || !is_dense_by_channels(small, p_, false)) {
    return false;
  }
  for (const Axis* axis : {&p_.axis[1], &p_.axis[2]}) {
    if (axis->rule != WindowRule::sliding || axis->dilation != 1 || axis->stride < axis->kernel ||
        axis->pad_begin != 0 || (axis->output - 1) * axis->stride + axis->kernel > axis->input) {
      return false;
    }
  }
  return true;
}

Problem Choice::one_by_one(bool planar) const {
  Problem p = p_;
  if (planar) {
    p.batch *= p.channels;
    p.channels = 1;
  }
  return p;
}

bool Choice::is_packed_pairs() const {
  if (wide_ || is_empty() || !is_identity(p_.axis[0]) || count_elements(p_, true) > INT32_MAX - 65536) return false;
  for (const Axis* axis : {&p_.axis[1], &p_.axis[2]}) {
    if (axis->rule != WindowRule::sliding || axis->kernel != 2 || axis->stride != 2 || axis->dilation != 1 ||
        axis->pad_begin != 0 || axis->output * 2 != axis->input) {
      return false;
    }
  }
  return true;
}

bool Choice::is_adaptive_plane(bool more_windows) const {
  const Axis &d = p_.axis[0], &h = p_.axis[1], &w = p_.axis[2];
  return !wide_ && !is_empty() && d.input == 1 && d.output == 1 && d.kernel == 1 && h.rule == WindowRule::adaptive &&
         w.rule == WindowRule::adaptive && (more_windows || (h.output <= h.input && w.output <= w.input));
}

Launch Choice::walk(const Problem& p, Function function, bool large, bool channels_fastest, std::int64_t rows,
                    std::int64_t phase) {
  const std::int64_t height = larger(large ? p.axis[1].input : p.axis[1].output, 1);
  rows = larger(smaller(rows, height), 1);
  // Few threads: one row each.
  if (count_elements(p, large) < 132 * 512 * function.lanes * function.columns) rows = 1;
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

Launch Choice::walk_directly(const Problem& p, const Function& function, bool large, bool channels_fastest,
                             std::int64_t most_rows) {
  constexpr std::int64_t kWantedThreads = 132 * 4096, kMostAcross = 8;
  const std::int64_t height = larger(large ? p.axis[1].input : p.axis[1].output, 1);
  const std::int64_t width = larger(large ? p.axis[2].input : p.axis[2].output, 1);
  const std::int64_t wanted = larger(count_elements(p, large) / function.lanes / kWantedThreads, 1);
  const std::int64_t rows = smaller(wanted, most_rows);
  Launch launch = walk(p, function, large, channels_fastest, ceil_div(height, ceil_div(height, rows)));
  launch.narrow.across = 1;
  if (!channels_fastest && height < 4) {
    const std::int64_t across = smaller(smaller(wanted, kMostAcross), larger(width / 64, 1));
    const std::int64_t places = across == 1 ? width : ceil_div(width, 32 * across) * 32;
    launch.narrow.across = static_cast<std::int32_t>(across);
    launch.narrow.grid.width = Divisor<std::int32_t>(places);
    launch.threads_per_entry = launch.threads_per_entry / width * places;
  }
  return launch;
}

void Choice::through_planes(Launch& launch, bool large, std::int64_t together) const {
  const std::int64_t results = count_elements(p_, large);
  launch.batch_per_launch = p_.batch;
  launch.threads_per_entry = results / p_.batch;
  launch.tiles = ceil_div(results, together);
  launch.narrow.through.plane = Divisor<std::int32_t>(p_.axis[0].input * p_.axis[1].input * p_.axis[2].input);
}

bool Choice::shape_few(Launch& launch, const Layout& read, const Layout& written, bool large,
                       bool channels_fastest) const {
  const Axis &h = p_.axis[1], &w = p_.axis[2];
  // Of few elements, but with strides of any size.
  auto reaches = [&](const Layout& layout, bool input) {
    const double n = static_cast<double>(p_.batch) * static_cast<double>(std::llabs(layout.n)),
                 c = static_cast<double>(p_.channels) * static_cast<double>(std::llabs(layout.c));
    const std::int64_t height = input ? h.input : h.output, width = input ? w.input : w.output;
    return n + c + static_cast<double>(height * std::llabs(layout.h) + width * std::llabs(layout.w));
  };
  if (reaches(read, !large) + reaches(written, large) + reaches(p_.indices, false) > INT32_MAX) return false;
  Few& few = launch.few;
  auto narrow = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
  few.read_n = narrow(read.n), few.read_c = narrow(read.c), few.read_h = narrow(read.h), few.read_w = narrow(read.w);
  few.written_n = narrow(written.n), few.written_c = narrow(written.c);
  few.written_h = narrow(written.h), few.written_w = narrow(written.w);
  few.indices_n = narrow(p_.indices.n), few.indices_c = narrow(p_.indices.c);
  few.indices_h = narrow(p_.indices.h), few.indices_w = narrow(p_.indices.w);
  few.index_kind = p_.index_kind, few.index_dtype = p_.index_dtype;
  few.height = narrow(h.input), few.width = narrow(w.input);
  few.out_height = narrow(h.output), few.out_width = narrow(w.output);
  few.stride_h = narrow(h.stride), few.stride_w = narrow(w.stride);
  few.pad_h = narrow(h.pad_begin), few.pad_w = narrow(w.pad_begin);
  few.divisor = launch.narrow.divisor_f32, few.reciprocal = launch.narrow.reciprocal_f32;
  few.exact_reciprocal = launch.narrow.exact_reciprocal;
  const std::int64_t rows = large ? h.input : h.output, columns = large ? w.input : w.output;
  few.x = narrow(channels_fastest ? p_.channels : columns);
  few.y = narrow(channels_fastest ? columns : rows);
  few.z = narrow(p_.batch * (channels_fastest ? rows : p_.channels));
  few.inner = Divisor<std::int32_t>(channels_fastest ? rows : p_.channels);
  unsigned left = kFewBlock;
  auto split = [&left](std::int64_t count, unsigned& each, unsigned& groups) {
    groups = static_cast<unsigned>(ceil_div(count, left));
    each = static_cast<unsigned>(ceil_div(count, groups));
    left /= each;
  };
  split(few.x, launch.few_threads.x, launch.few_blocks.x);
  split(few.y, launch.few_threads.y, launch.few_blocks.y);
  split(few.z, launch.few_threads.z, launch.few_blocks.z);
  return launch.few_blocks.y < 65536 && launch.few_blocks.z < 65536;
}

Status choose(const Problem& p, Launches& result) {
  const Choice choice(p);
  const Problem& solved = choice.problem();
  result.problem = solved;
  if (solved.op == Op::max_unpool) {
    choose_unpool(choice, result);
  } else if (solved.pass == Pass::forward) {
    choose_forward(choice, result);
  } else {
    if (solved.op == Op::fractional_max_pool && solved.index_kind == IndexKind::window &&
        solved.random_samples.n == 0 && solved.random_samples.c == 0 && solved.random_samples.w == 0) {
      return Status::failure(ErrorCode::invalid_argument, "random_samples",
                             "%s%dd backward: window indices need the forward's random_samples", name_of(solved.op),
                             solved.dims);
    }
    choose_backward(choice, result);
  }
  if (choice.is_wide()) result.name += ", 64-bit positions";
  return {};
}

}  // namespace cenote::gpu
