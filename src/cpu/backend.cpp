// The CPU backend: chooses between the row kernels and the plain ones, and cuts the work for the executor.
#include "cpu/kernels.hpp"
#include "cpu/plain.hpp"
#include "cpu/scratch.hpp"
#include "geometry/index_math.hpp"
#include "plan/kernel.hpp"

#include <algorithm>
#include <thread>

namespace cenote::simd {
namespace {

/// Below this many bytes a call is run on the calling thread: waking another costs more than it saves.
constexpr std::int64_t kSerialBytes = 128 * 1024;
/// Pieces per thread: enough to even out threads that start late, few enough to keep rows together.
constexpr std::int64_t kPiecesPerThread = 4;

std::size_t slot_count() { return std::max<std::size_t>(2, std::thread::hardware_concurrency()); }

/// Calls body(begin, end) for pieces of [0, units).
template <class Body>
void split(const Executor* given, std::int64_t units, std::int64_t bytes, const Body& body) noexcept {
  const Executor& executor = given != nullptr ? *given : default_executor();
  const std::int64_t threads = bytes < kSerialBytes ? 1 : executor.concurrency();
  if (threads <= 1 || units == 1) return body(0, units);
  struct Context {
    const Body& body;
    std::int64_t units, pieces;
  } context{body, units, std::min(units, threads * kPiecesPerThread)};
  executor.parallel_for(
      context.pieces,
      [](void* opaque, std::int64_t i) noexcept {
        const Context& c = *static_cast<Context*>(opaque);
        // units * (i + 1) stays far below 2^63: a plan has fewer than 2^56 rows.
        c.body(c.units * i / c.pieces, c.units * (i + 1) / c.pieces);
      },
      &context);
}

/// Names the first index that is no tap of its window (or no place in its plane).
Status find_invalid_index(const Problem& p, const void* indices, const std::int64_t* const (&starts)[3]) noexcept {
  const bool unpool = p.op == Op::max_unpool, fractional = p.op == Op::fractional_max_pool;
  for (std::int64_t n = 0; n < p.batch; ++n) {
    for (std::int64_t c = 0; c < p.channels; ++c) {
      for (std::int64_t od = 0; od < p.axis[0].output; ++od) {
        for (std::int64_t oh = 0; oh < p.axis[1].output; ++oh) {
          for (std::int64_t ow = 0; ow < p.axis[2].output; ++ow) {
            const Layout& l = p.indices;
            const std::int64_t index =
                read_index(indices, p.index_dtype, n * l.n + c * l.c + od * l.d + oh * l.h + ow * l.w);
            if (index == -1 && !unpool) continue;
            bool valid = false;
            if (p.index_kind == IndexKind::window) {
              // Fractional windows lie inside the input wherever they start.
              valid = fractional ? index >= 0 && index < p.axis[0].kernel * p.axis[1].kernel * p.axis[2].kernel
                                 : flat_of_tap(p, windows_of(p, starts, od, oh, ow), index) >= 0;
            } else {
              valid = unpool || fractional ? index >= 0 && index < plane_size(p)
                                           : has_tap_at(p, windows_of(p, starts, od, oh, ow), index);
            }
            if (valid) continue;
            return Status::failure(ErrorCode::invalid_index, "saved_indices",
                                   "%s%dd%s: index %lld at (n %lld, c %lld, d %lld, h %lld, w %lld) is not %s",
                                   name_of(p.op), p.dims, p.pass == Pass::backward ? " backward" : "",
                                   static_cast<long long>(index), static_cast<long long>(n), static_cast<long long>(c),
                                   static_cast<long long>(od), static_cast<long long>(oh), static_cast<long long>(ow),
                                   unpool ? "a place in the plane it points into"
                                   : fractional && p.index_kind != IndexKind::window
                                       ? "-1 or a place in the plane it points into"
                                       : "-1 or an element of its window");
          }
        }
      }
    }
  }
  return Status::failure(ErrorCode::invalid_index, "saved_indices",
                         "%s%dd: an index does not point into its plane or window", name_of(p.op), p.dims);
}

class FoldKernel final : public Kernel {
 public:
  FoldKernel(RowPlan plan, FoldRowsFn fold, std::int64_t bytes)
      : plan_(std::move(plan)), fold_(fold), bytes_(bytes), scratch_(slot_count(), plan_.bytes) {}

  Status run(const RunArgs& args) const noexcept override {
    const RowPointers pointers{args.input, args.output, plan_.problem.with_indices ? args.indices : nullptr, nullptr};
    split(args.executor, plan_.units(), bytes_, [&](std::int64_t begin, std::int64_t end) {
      const ScratchPool::Lease lease(scratch_);
      fold_(plan_, pointers, begin, end, lease.data());
    });
    return {};
  }

 private:
  RowPlan plan_;
  FoldRowsFn fold_;
  std::int64_t bytes_;
  ScratchPool scratch_;
};

class SumBackwardKernel final : public Kernel {
 public:
  SumBackwardKernel(RowPlan plan, RowPlan forward, SumBackwardFn backward, std::int64_t bytes, std::size_t row_bytes)
      : plan_(std::move(plan)),
        forward_(std::move(forward)),
        backward_(backward),
        bytes_(bytes),
        scratch_(slot_count(), plan_.bytes + forward_.bytes + row_bytes) {}

  Status run(const RunArgs& args) const noexcept override {
    const RowPointers pointers{args.grad_output, args.grad_input, nullptr, args.input};
    split(args.executor, plan_.units(), bytes_, [&](std::int64_t begin, std::int64_t end) {
      const ScratchPool::Lease lease(scratch_);
      backward_(plan_, &forward_, pointers, begin, end, lease.data());
    });
    return {};
  }

 private:
  RowPlan plan_, forward_;
  SumBackwardFn backward_;
  std::int64_t bytes_;
  ScratchPool scratch_;
};

class MaxBackwardKernel final : public Kernel {
 public:
  MaxBackwardKernel(RowPlan plan, MaxBackwardFn backward, std::int64_t bytes)
      : plan_(std::move(plan)), backward_(backward), bytes_(bytes), scratch_(slot_count(), plan_.bytes) {
    for (const Axis& axis : plan_.problem.axis) {
      for (std::int64_t o = 0; axis.dilation > 1 && !empty_windows_ && o < axis.output; ++o) {
        empty_windows_ = window(axis, o).count == 0;
      }
    }
  }

  Status run(const RunArgs& args) const noexcept override {
    const RowPointers pointers{args.grad_output, args.grad_input, nullptr, args.saved_indices};
    IndexTally tally;
    split(args.executor, plan_.units(), bytes_, [&](std::int64_t begin, std::int64_t end) {
      const ScratchPool::Lease lease(scratch_);
      backward_(plan_, pointers, begin, end, lease.data(), tally);
    });
    const std::int64_t* const no_starts[3] = {};
    if (tally.matched != tally.expected) return find_invalid_index(plan_.problem, args.saved_indices, no_starts);
    // An empty window sees no row, so that nothing above has looked at its index.
    if (empty_windows_ && !empty_windows_are_none(args.saved_indices)) {
      return find_invalid_index(plan_.problem, args.saved_indices, no_starts);
    }
    return {};
  }

 private:
  bool empty_windows_are_none(const void* indices) const noexcept {
    const Problem& p = plan_.problem;
    const std::int64_t* const no_starts[3] = {};
    for (std::int64_t od = 0; od < p.axis[0].output; ++od) {
      for (std::int64_t oh = 0; oh < p.axis[1].output; ++oh) {
        for (std::int64_t ow = 0; ow < p.axis[2].output; ++ow) {
          const OutputWindows w = windows_of(p, no_starts, od, oh, ow);
          if (w.axis[0].count != 0 && w.axis[1].count != 0 && w.axis[2].count != 0) continue;
          const Layout& l = p.indices;
          for (std::int64_t i = 0; i < p.batch * p.channels; ++i) {
            const std::int64_t at = i / p.channels * l.n + i % p.channels * l.c + od * l.d + oh * l.h + ow * l.w;
            if (read_index(indices, p.index_dtype, at) != -1) return false;
          }
        }
      }
    }
    return true;
  }

  RowPlan plan_;
  MaxBackwardFn backward_;
  std::int64_t bytes_;
  ScratchPool scratch_;
  bool empty_windows_ = false;
};

using PlaneFn = void (*)(const PlaneRun&);

/// One plane at a time. Fractional pools compute each plane's window starts from its samples.
class PlaneKernel final : public Kernel {
 public:
  PlaneKernel(const Problem& p, PlaneFn plane, std::int64_t bytes)
      : problem_(p),
        plane_(plane),
        bytes_(bytes),
        fractional_(p.op == Op::fractional_max_pool),
        starts_bytes_(fractional_ ? static_cast<std::size_t>(p.axis[0].output + p.axis[1].output + p.axis[2].output) * 8
                                  : 0),
        half_sums_((p.dtype == DType::f16 || p.dtype == DType::bf16) && plane == plain_max_backward),
        scratch_(slot_count(), starts_bytes_ + (half_sums_ ? static_cast<std::size_t>(plane_size(p)) * 4 : 0)) {}

  Status run(const RunArgs& args) const noexcept override {
    const bool sampled = fractional_ && (problem_.pass == Pass::forward || problem_.index_kind == IndexKind::window);
    if (sampled) {
      if (Status status = check_samples(args.random_samples); !status.ok()) return status;
    }
    std::atomic<std::int64_t> invalid{0};
    split(args.executor, problem_.batch * problem_.channels, bytes_, [&](std::int64_t begin, std::int64_t end) {
      const ScratchPool::Lease lease(scratch_);
      auto* table = reinterpret_cast<std::int64_t*>(lease.data());
      auto* sums = half_sums_ ? reinterpret_cast<double*>(lease.data() + starts_bytes_) : nullptr;
      for (std::int64_t i = begin; i < end; ++i) {
        PlaneRun plane{problem_, args, i / problem_.channels, i % problem_.channels, {}, &invalid, sums};
        std::int64_t* starts = table;
        for (int a = 3 - problem_.dims; sampled && a < 3; ++a) {
          fractional_starts(problem_.axis[a], problem_.dtype, sample(args.random_samples, plane.n, plane.c, a), starts);
          plane.starts[a] = starts;
          starts += problem_.axis[a].output;
        }
        plane_(plane);
      }
    });
    const std::int64_t* const no_starts[3] = {};
    return invalid == 0 ? Status() : find_invalid_index(problem_, args.saved_indices, no_starts);
  }

 private:
  double sample(const void* samples, std::int64_t n, std::int64_t c, int axis) const noexcept {
    const Layout& l = problem_.random_samples;
    const std::int64_t at = n * l.n + c * l.c + sample_of_axis(problem_.dims, axis) * l.w;
    switch (problem_.dtype) {
      case DType::f64: return static_cast<const double*>(samples)[at];
      case DType::f32: return static_cast<const float*>(samples)[at];
      case DType::f16: return to_float(static_cast<const f16*>(samples)[at]);
      default: return to_float(static_cast<const bf16*>(samples)[at]);
    }
  }

  Status check_samples(const void* samples) const noexcept {
    for (std::int64_t i = 0; i < problem_.batch * problem_.channels; ++i) {
      for (int a = 3 - problem_.dims; a < 3; ++a) {
        const double value = sample(samples, i / problem_.channels, i % problem_.channels, a);
        if (value >= 0 && value < 1) continue;
        return Status::failure(
            ErrorCode::invalid_argument, "random_samples",
            "%s%dd: random_samples must lie in [0, 1), got %g at (n %lld, c %lld)", name_of(problem_.op), problem_.dims,
            value, static_cast<long long>(i / problem_.channels), static_cast<long long>(i % problem_.channels));
      }
    }
    return {};
  }

  Problem problem_;
  PlaneFn plane_;
  std::int64_t bytes_;
  bool fractional_;
  std::size_t starts_bytes_;
  bool half_sums_;
  ScratchPool scratch_;
};

/// Nothing to write: an empty batch, or a result with a size of 0.
class IdleKernel final : public Kernel {
 public:
  Status run(const RunArgs&) const noexcept override { return {}; }
};

struct Fold {
  FoldRowsFn function;
  std::size_t lane;
};

/// The largest sum of `taps` values of an integer type that still fits in 32 bits.
bool sums_fit_in_32_bits(const Problem& p) {
  std::int64_t taps = 1;
  for (const Axis& axis : p.axis) taps *= smaller(axis.kernel, axis.input);
  const int bits = static_cast<int>(size_of(p.dtype)) * 8;
  return bits < 32 && taps < (std::int64_t{1} << (31 - bits));
}

Fold choose_fold(const Problem& p, const RowKernels& k) {
  switch (p.reduction) {
    case Reduction::max:
      if (p.absolute) return {k.max_absolute, k.max_lane};
      return p.with_indices ? Fold{k.max_indexed, k.fold_lane} : Fold{k.max, k.max_lane};
    case Reduction::min:
      if (p.absolute) return {k.min_absolute, k.max_lane};
      return p.with_indices ? Fold{k.min_indexed, k.fold_lane} : Fold{k.min, k.max_lane};
    case Reduction::sum: return {k.sum, k.fold_lane};  // integers wrap: low bits are all that is kept
    case Reduction::average:
      if (is_floating(p.dtype) || sums_fit_in_32_bits(p)) return {k.sum, k.fold_lane};
      return {k.sum_wide, k.wide_lane};
    case Reduction::power: return {k.power, k.fold_lane};
  }
  return {};
}

/// Why the columns of a row are folded as they are.
std::string reason_of(const RowPlan& plan) {
  const Axis& axis = plan.problem.axis[2];
  const std::string stride = "stride " + std::to_string(axis.stride);
  switch (plan.columns) {
    case Columns::consecutive: return "stride 1 makes neighbouring outputs read neighbouring columns";
    case Columns::strided: return "planar rows with " + stride + " can be deinterleaved";
    case Columns::phased: return "planar rows with " + stride + " can be interleaved from their phases";
    case Columns::per_channel: return std::to_string(plan.inner) + " channels fill whole vectors";
    case Columns::spanned:
      return "windows of up to " + std::to_string(plan.table.most) + " taps are worth a vector each";
    case Columns::gathered:
      return plan.inner > 1 ? std::to_string(plan.inner) + " channels do not fill a vector"
                            : "short windows follow each other at no step that loads could follow";
  }
  return {};
}

std::string describe_rows(const RowPlan& plan, const char* what) {
  return std::string(what) + "; rows of " + (plan.inner == 1 ? "single planes" : "channels-last columns") + " in " +
         std::to_string(plan.tiles.size()) + (plan.tiles.size() == 1 ? " tile; " : " tiles; ") + name_of(plan.columns) +
         ", because " + reason_of(plan);
}

std::unique_ptr<Kernel> make_fold(const Described& described, const RowKernels& kernels) {
  const Problem& p = described.problem;
  Fold fold = choose_fold(p, kernels);
  RowPlan plan;
  if (!make_row_plan(p, RowTask::fold, fold.lane, kernels.vector_bytes, plan)) return nullptr;
  if (plan.columns == Columns::gathered && fold.lane < 4) {
    // There is no gather of bytes: carry codes nobody asked for, in lanes that can be gathered.
    fold = {p.reduction == Reduction::min ? kernels.min_indexed : kernels.max_indexed, kernels.fold_lane};
    if (!make_row_plan(p, RowTask::fold, fold.lane, kernels.vector_bytes, plan)) return nullptr;
  }
  const std::string explain = describe_rows(plan, "fold down the rows, then along them");
  auto kernel = std::make_unique<FoldKernel>(std::move(plan), fold.function, described.bytes_moved);
  kernel->explain = explain;
  return kernel;
}

std::unique_ptr<Kernel> make_sum_backward(const Described& described, const RowKernels& kernels) {
  const Problem& p = described.problem;
  const bool power = p.reduction == Reduction::power;
  RowPlan plan{}, forward{};
  if (!make_row_plan(p, RowTask::sum_backward, kernels.fold_lane, kernels.vector_bytes, plan)) return nullptr;
  std::size_t row_bytes = 0;
  if (power) {
    // The forward's rows are cut like the backward's, whatever the input's layout.
    if (!make_row_plan(p, RowTask::fold, kernels.fold_lane, kernels.vector_bytes, forward, plan.inner)) return nullptr;
    row_bytes = plan.packed_pitch;
  }
  const std::string explain = describe_rows(plan, "gather from the rows of grad_output");
  auto kernel = std::make_unique<SumBackwardKernel>(std::move(plan), std::move(forward),
                                                    power ? kernels.power_backward : kernels.sum_backward,
                                                    described.bytes_moved, row_bytes);
  kernel->explain = explain;
  return kernel;
}

/// Windows an input element is in, on average: what a gather compares per element.
double comparisons_per_element(const Problem& p) {
  double comparisons = 1;
  for (const Axis& axis : p.axis) {
    comparisons *=
        static_cast<double>(axis.kernel) * static_cast<double>(axis.output) / static_cast<double>(axis.input);
  }
  return comparisons;
}

std::unique_ptr<Kernel> make_max_backward(const Described& described, const RowKernels& kernels) {
  // Beyond this many comparisons per element a scatter is cheaper.
  constexpr double kMostComparisons = 36;
  const Problem& p = described.problem;
  RowPlan plan;
  if (p.op == Op::fractional_max_pool || p.absolute || comparisons_per_element(p) > kMostComparisons) return nullptr;
  if (!make_row_plan(p, RowTask::max_backward, kernels.fold_lane, kernels.vector_bytes, plan)) return nullptr;
  const std::string explain = describe_rows(plan, "gather: each input asks the outputs that see it");
  auto kernel = std::make_unique<MaxBackwardKernel>(std::move(plan), kernels.max_backward, described.bytes_moved);
  kernel->explain = explain;
  return kernel;
}

bool is_max(const Problem& p) { return p.reduction == Reduction::max || p.reduction == Reduction::min; }

std::unique_ptr<Kernel> make_kernel(const Described& described, const Target& target) {
  const Problem& p = described.problem;
  const RowKernels& kernels = *kernels_of(p.dtype, target);
  const bool forward = p.pass == Pass::forward;
  std::unique_ptr<Kernel> kernel;
  PlaneFn plane = nullptr;
  bool idle = p.batch == 0 || p.channels == 0;
  for (const Axis& axis : p.axis) idle = idle || axis.input == 0 || axis.output == 0;
  if (idle) {
    kernel = std::make_unique<IdleKernel>();
    kernel->explain = "nothing to do: a tensor of the call is empty";
  } else if (p.op == Op::max_unpool) {
    plane = forward ? plain_unpool : plain_unpool_backward;
  } else if (forward) {
    if (p.op != Op::fractional_max_pool) kernel = make_fold(described, kernels);
    plane = plain_forward;
  } else if (is_max(p)) {
    kernel = make_max_backward(described, kernels);
    plane = plain_max_backward;
  } else {
    kernel = make_sum_backward(described, kernels);
    plane = plain_sum_backward;
  }
  if (!kernel) {
    kernel = std::make_unique<PlaneKernel>(p, plane, described.bytes_moved);
    kernel->explain =
        std::string("plane by plane, element by element, because ") +
        (p.op == Op::max_unpool || p.op == Op::fractional_max_pool ? "its indices or windows follow no order"
         : p.pass == Pass::backward && is_max(p) && plane_size(p) < (std::int64_t{1} << 30)
             ? "so many windows see each element that asking them all costs more than scattering"
             : "the plane is beyond 32-bit positions");
  }
  kernel->target = target.name;
  return kernel;
}

}  // namespace

const RowKernels* kernels_of(DType dtype, const Target& target) {
  switch (dtype) {
    case DType::f32: return kernels_f32(target.index);
    case DType::f64: return kernels_f64(target.index);
    case DType::f16: return kernels_f16(target.index);
    case DType::bf16: return kernels_bf16(target.index);
    case DType::i8: return kernels_i8(target.index);
    case DType::u8: return kernels_u8(target.index);
    case DType::i16: return kernels_i16(target.index);
    case DType::i32: return kernels_i32(target.index);
    default: return kernels_i64(target.index);
  }
}

}  // namespace cenote::simd

namespace cenote {

std::vector<std::string> cpu_targets() {
  std::vector<std::string> names;
  for (const simd::Target& target : simd::targets()) names.push_back(target.name);
  return names;
}

std::unique_ptr<Kernel> make_cpu_kernel(const Described& described, const PlanOptions& options, Status& status) {
  const std::vector<simd::Target> targets = simd::targets();
  const auto chosen = std::find_if(targets.begin(), targets.end(), [&](const simd::Target& t) {
    return options.target.empty() || t.name == options.target;
  });
  if (chosen == targets.end()) {
    status = Status::failure(ErrorCode::invalid_argument, "target",
                             "target: this machine and build have no instruction set \"%s\"", options.target.c_str());
    return nullptr;
  }
  try {
    return simd::make_kernel(described, *chosen);
  } catch (const std::bad_alloc&) {
    status = Status::failure(ErrorCode::out_of_memory, "plan", "%s%dd: not enough memory for the plan",
                             name_of(described.problem.op), described.problem.dims);
    return nullptr;
  }
}

}  // namespace cenote
