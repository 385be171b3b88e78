#include "cpu/expand_kernel.hpp"

#include "cpu/dense_planes.hpp"
#include "cpu/scratch.hpp"
#include "cpu/split.hpp"
#include "cpu/thresholds.hpp"

#include <algorithm>
#include <utility>

namespace cenote::simd {
namespace {

class ExpandKernel final : public Kernel {
 public:
  ExpandKernel(const Described& described, ExpandPlan plan, ExpandPlanesFn function)
      : problem_(described.problem),
        plan_(std::move(plan)),
        function_(function),
        bytes_(described.bytes_moved),
        scratch_(slot_count(), plan_.bytes) {
    explain =
        "vectors of each row of gradients, turned into the columns that they were averages of, because few outputs "
        "see an input";
  }

  Status run(const RunArgs& args) const noexcept override {
    const RowPointers pointers = row_pointers(problem_, args);
    split(args.executor, plan_.units(), bytes_, [&](std::int64_t begin, std::int64_t end) {
      const ScratchPool::Lease lease(scratch_);
      function_(plan_, pointers, begin, end, lease.data());
    });
    return {};
  }

 private:
  Problem problem_;
  ExpandPlan plan_;
  ExpandPlanesFn function_;
  std::int64_t bytes_;
  ScratchPool scratch_;
};

/// False where a vector of columns is seen by more outputs than fill one, or a column by too many.
bool make_vectors(const Axis& axis, std::int64_t lanes, ExpandPlan& plan) {
  plan.most = 1;
  plan.apart = true;
  for (std::int64_t x = 0; x < axis.input; ++x) plan.most = larger(plan.most, cover(axis, x).count);
  if (plan.most > kMostExpandedOutputs) return false;
  for (std::int64_t next = 0; next < axis.input; next += lanes) {
    const std::int64_t column = larger(0, smaller(next, axis.input - lanes));  // the ragged end from its last vector
    const std::int64_t end = smaller(column + lanes, axis.input);
    std::int64_t first = axis.output - 1, last = 0;
    for (std::int64_t x = column; x < end; ++x) {
      const Cover seen = cover(axis, x);
      if (seen.count == 0) continue;
      first = smaller(first, seen.first);
      last = larger(last, seen.first + (seen.count - 1) * seen.step);
    }
    if (last - first >= lanes) return false;
    for (std::int64_t i = 0; i < plan.most; ++i) {
      for (std::int64_t x = column; x < column + lanes; ++x) {
        const Cover seen = x < end ? cover(axis, x) : Cover{first, 1, 1, 0, 0};
        plan.apart = plan.apart && seen.count == 1;
        plan.lanes.push_back(i < seen.count ? static_cast<std::int32_t>(seen.first + i * seen.step - first) : -1);
      }
    }
    plan.vectors.push_back({column, first});
  }
  return true;
}

void make_runs(const RowPlan& rows, ExpandPlan& plan) {
  for (const RowRange& seen : rows.source_rows[1]) {
    plan.apart = plan.apart && seen.count <= 1;
    if (!plan.runs.empty() && plan.runs.back().seen == seen) {
      ++plan.runs.back().rows;
      continue;
    }
    bool alike = true;
    for (std::int64_t i = 1; i < seen.count; ++i)
      alike = alike && factor_of(rows, 1, seen.first + i * seen.step) == factor_of(rows, 1, seen.first);
    plan.runs.push_back({1, seen, alike});
  }
}

/// `most`: runs of a group.
void make_groups(std::int64_t most, ExpandPlan& plan) {
  const auto runs = static_cast<std::int64_t>(plan.runs.size());
  std::int64_t row = 0;
  for (std::int64_t first = 0; first < runs; first += most) {
    ExpandGroup group{first, smaller(most, runs - first), row, 0};
    for (std::int64_t i = 0; i < group.runs; ++i) group.rows += plan.runs[static_cast<std::size_t>(first + i)].rows;
    row += group.rows;
    plan.groups.push_back(group);
  }
}

}  // namespace

std::unique_ptr<Kernel> make_expand_kernel(const Described& described, const RowKernels& kernels, const RowWork* rows) {
  if (kernels.expand_planes == nullptr || rows == nullptr || described.problem.pass != Pass::backward) return nullptr;
  const RowPlan& row_plan = rows->plan();
  const Problem& p = row_plan.problem;
  if (row_plan.inner != 1 || row_plan.tall || (p.reduction != Reduction::sum && p.reduction != Reduction::average))
    return nullptr;
  const Axis &depth = p.axis[0], &height = p.axis[1], &width = p.axis[2];
  const DensePlanes source = dense_planes(p, p.grad_output, false), target = dense_planes(p, p.grad_input, true);
  if (!source.dense || !target.dense || width.input > kMostExpanded) return nullptr;
  // Slices and rows beyond number have no tables.
  if (row_plan.source_rows[0].empty() || row_plan.source_rows[1].empty()) return nullptr;
  // Many columns one apart are summed up in another order.
  if (width.rule == WindowRule::sliding && width.stride == 1 && width.kernel >= kDoublingTaps) return nullptr;

  ExpandPlan plan{};
  const auto lanes = static_cast<std::int64_t>(kernels.vector_bytes / sizeof(float));
  plan.planes = p.batch * p.channels;
  plan.source_pitch = source.pitch;
  plan.target_pitch = target.pitch;
  plan.extent = source.pitch * (plan.planes - 1) + source.count;
  plan.heights = height.input;
  plan.width = width.input;
  plan.rows = height.output;
  plan.columns = width.output;
  for (const RowRange& seen : row_plan.source_rows[0]) {
    if (seen.count > 1) return nullptr;
    plan.slices.push_back(seen.count == 0 ? -1 : seen.first);
  }
  for (const RowRange& seen : row_plan.source_rows[1]) {
    if (seen.count > kMostExpandedOutputs) return nullptr;
  }
  if (!make_vectors(width, lanes, plan)) return nullptr;
  const auto size = static_cast<std::int64_t>(size_of(p.dtype));
  plan.paced = {described.bytes_moved >= kStreamBytes, plan.width * size,
                larger(1, kStagedBytes / (plan.width * size))};
  if (plan.paced.streams && plan.width * size > kTileBytes)
    return nullptr;  // a row that is put together must stay in L1
  make_runs(row_plan, plan);
  const std::int64_t least = plan.apart ? kLeastExpanded : kLeastSummed;
  if (plan.width < (size < 4 ? least + least / 2 : least)) return nullptr;
  if (!make_slice_divisors(row_plan, lanes, plan.divisors)) return nullptr;
  plan.sum_pitch = plan.columns + 2 * lanes;  // vectors reach beyond
  const std::int64_t sums = larger(1, kSummedBytes / (plan.sum_pitch * static_cast<std::int64_t>(sizeof(float))));
  make_groups(sums, plan);
  // Few slices are shared between threads in bands.
  const auto groups = static_cast<std::int64_t>(plan.groups.size());
  plan.bands = smaller(ceil_div(kFewestUnits, plan.planes * depth.input), groups);
  plan.band = ceil_div(groups, plan.bands);
  plan.bands = ceil_div(groups, plan.band);

  const auto line = [](std::int64_t bytes) { return static_cast<std::size_t>(bytes + 63) / 64 * 64; };
  plan.paced_at = line((plan.apart ? 0 : sums * plan.sum_pitch) * static_cast<std::int64_t>(sizeof(float)));
  plan.bytes = plan.paced_at + plan.paced.bytes();
  return std::make_unique<ExpandKernel>(described, std::move(plan), kernels.expand_planes);
}

}  // namespace cenote::simd
