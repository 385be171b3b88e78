// The CPU backend: which kernel for which problem.
#include "cpu/columns/column_band_kernel.hpp"
#include "cpu/columns/narrow_columns_kernel.hpp"
#include "cpu/columns/narrow_sums_kernel.hpp"
#include "cpu/columns/straight_columns_kernel.hpp"
#include "cpu/gradients/collect_kernel.hpp"
#include "cpu/gradients/expand_columns_kernel.hpp"
#include "cpu/gradients/expand_kernel.hpp"
#include "cpu/gradients/flat_kernel.hpp"
#include "cpu/gradients/gather_kernel.hpp"
#include "cpu/gradients/lane_sum_kernel.hpp"
#include "cpu/gradients/line_kernel.hpp"
#include "cpu/gradients/norm_gradients_kernel.hpp"
#include "cpu/gradients/pick_columns_kernel.hpp"
#include "cpu/gradients/pick_kernel.hpp"
#include "cpu/gradients/scatter_kernel.hpp"
#include "cpu/gradients/transposed.hpp"
#include "cpu/gradients/winner_kernel.hpp"
#include "cpu/merged.hpp"
#include "cpu/plain/plane_kernel.hpp"
#include "cpu/plain/unpool_kernel.hpp"
#include "cpu/planes/band_kernel.hpp"
#include "cpu/planes/strip_kernel.hpp"
#include "cpu/planes/whole_kernel.hpp"
#include "cpu/planes/wide_kernel.hpp"
#include "cpu/planes/widened_kernel.hpp"
#include "cpu/rows/block_kernel.hpp"
#include "cpu/rows/row_work.hpp"
#include "cpu/thresholds.hpp"

#include <algorithm>

namespace cenote::simd {
namespace {

/// Nothing to write: an empty batch, or a result with a size of 0.
class IdleKernel final : public Kernel {
 public:
  Status run(const RunArgs&) const noexcept override { return {}; }
};

bool is_max(const Problem& p) { return p.reduction == Reduction::max || p.reduction == Reduction::min; }

PlaneFn plain_function(const Problem& p) {
  const bool forward = p.pass == Pass::forward;
  if (p.op == Op::max_unpool) return forward ? plain_unpool : plain_unpool_backward;
  if (forward) return plain_forward;
  return is_max(p) ? plain_max_backward : plain_sum_backward;
}

std::string plain_reason(const Problem& p) {
  return std::string("plane by plane, element by element, because ") +
         (p.op == Op::fractional_max_pool ? "its windows follow no order"
          : p.op == Op::max_unpool        ? "the unpooled positions follow no step"
          : plane_size(p) < (std::int64_t{1} << 30)
              ? "its tensors have neither consecutive rows nor consecutive channels"
              : "the plane is beyond 32-bit positions");
}

/// What most calls of networks are: one idea each. Null where none is made for the problem.
std::unique_ptr<Kernel> make_special_kernel(const Described& described, const Target& target, const RowWork* rows) {
  const RowKernels& kernels = *kernels_of(described.problem.dtype, target);
  std::unique_ptr<Kernel> kernel = make_whole_kernel(described, kernels, rows);
  if (!kernel) kernel = make_winner_kernel(described);
  if (!kernel) kernel = make_expand_kernel(described, kernels, rows);
  if (!kernel) kernel = make_lane_sum_kernel(described, target, rows);
  if (!kernel) kernel = make_band_kernel(described, target, rows, true);
  if (!kernel) kernel = make_strip_kernel(described, kernels, rows);
  if (!kernel) kernel = make_narrow_columns_kernel(described, target, rows);
  if (!kernel) kernel = make_narrow_sums_kernel(described, target, rows);
  if (!kernel) kernel = make_straight_columns_kernel(described, target, rows);
  if (!kernel) kernel = make_column_band_kernel(described, target, rows);
  if (!kernel && described.bytes_moved < kPickedCall) kernel = make_pick_kernel(described, target);
  if (!kernel) kernel = make_band_kernel(described, target, rows, false);
  if (!kernel) kernel = make_wide_kernel(described, target, rows, false);
  if (!kernel) kernel = make_flat_kernel(described, target);
  if (!kernel) kernel = make_line_kernel(described, target);
  if (!kernel) kernel = make_gather_kernel(described, kernels);
  if (!kernel) kernel = make_pick_kernel(described, target);
  if (!kernel) kernel = make_collect_kernel(described, kernels);
  if (!kernel) kernel = make_norm_gradients_kernel(described, target, rows);
  if (!kernel) kernel = make_expand_columns_kernel(described, target, rows);
  if (!kernel) kernel = make_pick_columns_kernel(described, target, rows);
  return kernel;
}

std::unique_ptr<Kernel> make_special_kernel(const Described& described, const Target& target) {
  const std::optional<RowWork> rows = RowWork::make(described.problem, *kernels_of(described.problem.dtype, target));
  return make_special_kernel(described, target, rows ? &*rows : nullptr);
}

/// Sums of bytes over windows one apart, which take lanes of 32 bits in blocks, too, and maxima with indices over windows one or two apart, which strips find. (Two threads: 3x3/1 averages over 256 planes of 64 x 64 483 us
/// in blocks and 151, over 2000 of 14 x 14 99 and 53; but 3x3/2 over 512 of 56 x 56 111 and 144. With indices 2x2/2 over 127 planes of 32 x 32 70 and 11, over 4096 of 7 x 7 29 and 25, 3x3/1 over 1024 of 28 x 28 241 and
/// 206, 3x3/2 78 and 82; but 8x8/8 over 1536 of 48 x 48 116 and 233.)
bool gains_as_f32(const Problem& p) {
  const Axis& width = p.axis[2];
  if (size_of(p.dtype) != 1 || width.rule != WindowRule::sliding) return false;
  const bool sums = p.reduction == Reduction::sum || p.reduction == Reduction::average;
  return sums ? width.stride == 1 : p.with_indices && width.stride <= 2;
}

std::unique_ptr<Kernel> make_kernel(const Described& described, const Target& target) {
  const Problem& p = described.problem;
  bool idle = p.batch == 0 || p.channels == 0;
  for (const Axis& axis : p.axis) idle = idle || axis.input == 0 || axis.output == 0;
  std::unique_ptr<Kernel> kernel;
  if (idle) {
    kernel = std::make_unique<IdleKernel>();
    kernel->explain = "nothing to do: a tensor of the call is empty";
  } else if (const std::optional<Described> fewer = merged(described)) {
    kernel = make_merged_kernel(described, make_kernel(*fewer, target));
  } else if (const std::optional<Described> forward = as_forward(described)) {
    kernel = make_transposed_kernel(make_kernel(*forward, target));
  } else {
    const RowKernels& kernels = *kernels_of(p.dtype, target);
    std::optional<RowWork> rows = RowWork::make(p, kernels);
    kernel = make_special_kernel(described, target, rows ? &*rows : nullptr);
    if (!kernel && gains_as_f32(p))
      kernel = make_widened_kernel(described, target, rows ? &*rows : nullptr, make_special_kernel);
    if (!kernel) kernel = make_block_kernel(described, kernels, target, rows ? &*rows : nullptr);
    if (!kernel) kernel = make_widened_kernel(described, target, rows ? &*rows : nullptr, make_special_kernel);
    if (!kernel) kernel = make_wide_kernel(described, target, rows ? &*rows : nullptr, true);
    if (!kernel && rows) kernel = make_row_kernel(described, std::move(*rows));
    if (!kernel) kernel = make_unpool_kernel(described);
    if (!kernel) kernel = make_scatter_kernel(described, kernels, target);
    if (!kernel) {
      kernel = make_plane_kernel(described, plain_function(p));
      kernel->explain = plain_reason(p);
    }
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
