#include "cpu/gather_kernel.hpp"

#include "cpu/check_indices.hpp"
#include "cpu/dense_planes.hpp"
#include "cpu/scratch.hpp"
#include "cpu/seeing.hpp"
#include "cpu/split.hpp"
#include "cpu/thresholds.hpp"

#include <atomic>
#include <limits>
#include <utility>

namespace cenote::simd {
namespace {

class GatherKernel final : public Kernel {
 public:
  GatherKernel(const Described& described, GatherPlan plan, GatherPlanesFn function)
      : problem_(described.problem),
        plan_(std::move(plan)),
        function_(function),
        bytes_(described.bytes_moved),
        scratch_(slot_count(), plan_.bytes) {
    explain =
        "each input gathers from the outputs whose index names it, plane by plane, because its windows are two columns "
        "wide and two apart";
  }

  Status run(const RunArgs& args) const noexcept override {
    const RowPointers pointers = row_pointers(problem_, args);
    std::atomic<bool> valid{true};
    split(args.executor, plan_.planes, bytes_, [&](std::int64_t begin, std::int64_t end) {
      const ScratchPool::Lease lease(scratch_);
      if (!function_(plan_, pointers, begin, end, lease.data())) valid.store(false, std::memory_order_relaxed);
    });
    if (valid) return {};
    return find_invalid_index(problem_, args.saved_indices);
  }

 private:
  Problem problem_;
  GatherPlan plan_;
  GatherPlanesFn function_;
  std::int64_t bytes_;
  ScratchPool scratch_;
};

/// Two columns, two apart. What rows and slices see is in tables.
bool has_narrow_windows(const Axis (&axis)[3]) {
  for (const Axis& one : axis) {
    if (one.rule != WindowRule::sliding || one.dilation != 1 || one.kernel > 3) return false;
  }
  return axis[2].kernel == 2 && axis[2].stride == 2 && axis[2].pad_begin == 0;
}

/// Calls visit(number, depth, height, width) for every tap of a window.
template <class Visit>
void for_taps(const Axis (&axis)[3], const Visit& visit) {
  int number = 0;
  for (std::int64_t z = 0; z < axis[0].kernel; ++z) {
    for (std::int64_t y = 0; y < axis[1].kernel; ++y) {
      for (std::int64_t x = 0; x < axis[2].kernel; ++x) visit(number++, z, y, x);
    }
  }
}

bool is_inside(const Window& window, std::int64_t tap) {
  return tap >= window.skipped && tap < window.skipped + window.count;
}

/// Which output rows see which input rows, and which taps of theirs are inside.
void make_rows(const Axis (&axis)[3], GatherPlan& plan) {
  constexpr std::int64_t kSide = 4;  // rows that follow each other are seen by no more
  const Axis &depth = axis[0], &height = axis[1], &width = axis[2];
  for (std::int64_t z = 0; z < depth.input; ++z) {
    const Cover in_depth = cover(depth, z);
    for (std::int64_t y = 0; y < height.input; ++y) {
      plan.first.push_back(static_cast<std::int32_t>(plan.seen_by.size()));
      for_seeing_rows(axis, in_depth, cover(height, y), [&](std::int64_t od, std::int64_t oh, std::int64_t number) {
        plan.seen_by.push_back({static_cast<std::int32_t>(od * height.output + oh), static_cast<std::int32_t>(number),
                                static_cast<std::int32_t>((depth.output > 1 ? od % kSide * kSide : 0) + oh % kSide)});
      });
    }
  }
  plan.first.push_back(static_cast<std::int32_t>(plan.seen_by.size()));
  plan.slots = depth.output > 1 ? kSide * kSide : kSide;
  for (std::int64_t z = 0; z < depth.output; ++z) {
    for (std::int64_t y = 0; y < height.output; ++y) {
      const Window in_depth = window(depth, z), in_height = window(height, y);
      std::int32_t bits = 0;
      for_taps(axis, [&](int number, std::int64_t tap_depth, std::int64_t tap_height, std::int64_t) {
        if (is_inside(in_depth, tap_depth) && is_inside(in_height, tap_height)) bits |= 1 << number;
      });
      plan.row_taps.push_back(bits);
      const std::int64_t first_depth = z * depth.stride - depth.pad_begin;
      const std::int64_t first_height = y * height.stride - height.pad_begin;
      plan.origins.push_back(
          static_cast<std::int32_t>((first_depth * height.input + first_height) * width.input - width.pad_begin));
    }
  }
}

void make_columns(const Axis (&axis)[3], GatherPlan& plan) {
  const Axis &height = axis[1], &width = axis[2];
  for (std::int64_t x = 0; x < width.output; ++x) {
    const Window in_width = window(width, x);
    std::int32_t bits = 0;
    for_taps(axis, [&](int number, std::int64_t, std::int64_t, std::int64_t tap_width) {
      if (is_inside(in_width, tap_width)) bits |= 1 << number;
    });
    plan.columns_taps.push_back(bits);
  }
  for_taps(axis, [&](int, std::int64_t z, std::int64_t y, std::int64_t x) {
    plan.positions.push_back(static_cast<std::int32_t>((z * height.input + y) * width.input + x));
  });
}

}  // namespace

std::unique_ptr<Kernel> make_gather_kernel(const Described& described, const RowKernels& kernels) {
  const Problem& p = described.problem;
  if (kernels.gather_planes == nullptr || p.pass != Pass::backward || !p.with_indices || p.absolute ||
      p.reduction != Reduction::max || p.op == Op::fractional_max_pool || p.op == Op::max_unpool)
    return nullptr;
  const Axis axis[3] = {simplified(p.axis[0]), simplified(p.axis[1]), simplified(p.axis[2])};
  if (!has_narrow_windows(axis) || has_empty_windows(p)) return nullptr;
  const bool flat = p.index_kind != IndexKind::window;
  if (p.index_dtype != (flat ? DType::i64 : DType::u8)) return nullptr;
  const DensePlanes source = dense_planes(p, p.grad_output, false), indices = dense_planes(p, p.indices, false);
  const DensePlanes target = dense_planes(p, p.grad_input, true);
  if (!source.dense || !indices.dense || !target.dense) return nullptr;
  const auto lanes = static_cast<std::int64_t>(kernels.vector_bytes / sizeof(float));
  const std::int64_t width = axis[2].input, columns = axis[2].output;
  // Positions of taps must differ, and a vector must not reach beyond the row.
  const bool slices_differ = axis[0].kernel == 1 || axis[1].input >= axis[1].kernel;
  if (columns < lanes || width < 4 || !slices_differ) return nullptr;
  const std::int64_t rows = axis[0].input * axis[1].input;
  if (target.count >= std::numeric_limits<std::int32_t>::max() / 4 || rows > kMostPlaneEntries / 9 ||
      columns > kMostPlaneOutputs)
    return nullptr;
  // Few planes are shared between threads row by row.
  if (p.batch * p.channels < kFewestUnits && described.bytes_moved >= kSerialBytes) return nullptr;

  GatherPlan plan{};
  plan.planes = p.batch * p.channels;
  plan.source_pitch = source.pitch;
  plan.target_pitch = target.pitch;
  plan.index_pitch = indices.pitch;
  plan.heights = rows;
  plan.width = width;
  plan.columns = columns;
  plan.extent = ceil_div(width, 2 * lanes) * 2 * lanes;
  plan.flat = flat;
  plan.streams = described.bytes_moved >= kStreamBytes;
  make_rows(axis, plan);
  make_columns(axis, plan);
  const auto size = static_cast<std::int64_t>(size_of(p.dtype));
  plan.slot_pitch = larger(columns, plan.extent / 2);
  plan.stage = plan.streams ? larger(1, kStagedBytes / (width * size)) : 1;
  const auto line = [](std::int64_t bytes) { return static_cast<std::size_t>(bytes + 63) / 64 * 64; };
  plan.values_at = plan.codes_at + line(plan.slots * plan.slot_pitch * 4);
  plan.stage_at = plan.values_at + line(plan.slots * plan.slot_pitch * 4);
  plan.bytes = plan.stage_at + line(((plan.stage - 1) * width + plan.extent) * size);
  return std::make_unique<GatherKernel>(described, std::move(plan), kernels.gather_planes);
}

}  // namespace cenote::simd
