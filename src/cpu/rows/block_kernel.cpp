#include "cpu/rows/block_kernel.hpp"

#include "cpu/dense_planes.hpp"
#include "cpu/scratch.hpp"
#include "cpu/split.hpp"
#include "cpu/thresholds.hpp"
#include "cpu/vectors/transpose.hpp"

#include <utility>

namespace cenote::simd {
namespace {

/// One tensor of a run as evenly spaced planes, and its columns in scratch.
struct Planes : DensePlanes {
  bool used = false;
  std::size_t size = 0;  // bytes of an element
  std::size_t columns_at = 0;
  Transposer transposer{};
};

Planes planes_of(const Problem& p, const Layout& l, bool large, DType dtype) {
  Planes planes{dense_planes(p, l, large)};
  planes.used = true;
  planes.size = size_of(dtype);
  return planes;
}

/// What a run reads and writes, in the order of RowPointers.
struct BlockTensors {
  Planes source, input, target, indices;
};

BlockTensors tensors_of(const Problem& p) {
  BlockTensors t;
  if (p.pass == Pass::forward) {
    t.source = planes_of(p, p.input, true, p.dtype);
    t.target = planes_of(p, p.output, false, p.dtype);
    if (p.with_indices) t.indices = planes_of(p, p.indices, false, p.index_dtype);
    return t;
  }
  t.source = planes_of(p, p.grad_output, false, p.dtype);
  t.target = planes_of(p, p.grad_input, true, p.dtype);
  if (p.reduction == Reduction::power) t.input = planes_of(p, p.input, true, p.dtype);
  return t;
}

/// The problem of one block: its planes are the channels of a channels-last tensor.
Problem block_problem(const Problem& p, std::int64_t group) {
  Problem block = p;
  block.batch = 1;
  block.channels = group;
  auto columns = [&](bool large) {
    const auto extent = [&](int a) { return large ? p.axis[a].input : p.axis[a].output; };
    const std::int64_t row = extent(2) * group, slice = row * extent(1);
    return Layout{slice * extent(0), 1, slice, row, group};
  };
  block.input = block.grad_input = columns(true);
  block.output = block.grad_output = block.indices = columns(false);
  return block;
}

class BlockKernel final : public Kernel {
 public:
  BlockKernel(const Described& described, const BlockTensors& tensors, RowWork work, std::int64_t group,
              std::size_t columns_bytes)
      : problem_(described.problem),
        tensors_(tensors),
        work_(std::move(work)),
        group_(group),
        planes_(problem_.batch * problem_.channels),
        bytes_(described.bytes_moved),
        columns_bytes_(columns_bytes),
        scratch_(slot_count(), columns_bytes + work_.scratch_bytes()) {
    explain = std::to_string(group) + " planes side by side, because their rows are short; then " + work_.explain();
  }

  Status run(const RunArgs& args) const noexcept override {
    const RowPointers pointers = row_pointers(problem_, args);
    split(args.executor, ceil_div(planes_, group_), bytes_, [&](std::int64_t begin, std::int64_t end) {
      const ScratchPool::Lease lease(scratch_);
      for (std::int64_t block = begin; block < end; ++block) run_block(pointers, block * group_, lease.data());
    });
    return {};
  }

 private:
  void run_block(const RowPointers& pointers, std::int64_t first, char* scratch) const noexcept {
    const std::int64_t planes = smaller(group_, planes_ - first);
    auto columns_of = [&](const Planes& t) { return t.used ? scratch + t.columns_at : nullptr; };
    auto load = [&](const Planes& t, const void* from) {
      if (!t.used) return;
      t.transposer.to_columns(static_cast<const char*>(from) + first * t.pitch * static_cast<std::int64_t>(t.size),
                              t.pitch, planes, t.count, columns_of(t));
    };
    auto store = [&](const Planes& t, void* to) {
      if (!t.used) return;
      t.transposer.to_planes(columns_of(t), t.pitch, planes, t.count,
                             static_cast<char*>(to) + first * t.pitch * static_cast<std::int64_t>(t.size));
    };
    load(tensors_.source, pointers.source);
    load(tensors_.input, pointers.input);
    const RowPointers columns{columns_of(tensors_.source), columns_of(tensors_.target), columns_of(tensors_.indices),
                              columns_of(tensors_.input)};
    work_.run(columns, 0, work_.units(), scratch + columns_bytes_);
    store(tensors_.target, pointers.target);
    store(tensors_.indices, pointers.indices);
  }

  Problem problem_;
  BlockTensors tensors_;
  RowWork work_;
  std::int64_t group_, planes_, bytes_;
  std::size_t columns_bytes_;
  ScratchPool scratch_;
};

/// Rows too short for their own good, or columns that planar vectors cannot follow.
bool is_worth_it(const Problem& p, const RowWork* rows) {
  if (rows == nullptr) return true;
  const RowPlan& plan = rows->plan();
  if (plan.inner != 1) return false;
  const Axis& axis = plan.problem.axis[2];
  const std::int64_t longest = larger(axis.input, axis.output) * static_cast<std::int64_t>(size_of(p.dtype));
  return longest < kShortRowBytes || plan.columns == Columns::gathered || plan.columns == Columns::spanned;
}

}  // namespace

std::unique_ptr<Kernel> make_block_kernel(const Described& described, const RowKernels& kernels, const Target& target,
                                          const RowWork* rows) {
  const Problem& p = described.problem;
  const std::int64_t group = 64 / static_cast<std::int64_t>(size_of(p.dtype));
  const bool max = p.reduction == Reduction::max || p.reduction == Reduction::min;
  if (max && p.pass == Pass::backward) return nullptr;  // its indices would have to be turned too
  if (p.batch * p.channels < group / 2 || !is_worth_it(p, rows)) return nullptr;
  BlockTensors tensors = tensors_of(p);
  std::size_t at = 0;
  for (Planes* t : {&tensors.source, &tensors.input, &tensors.target, &tensors.indices}) {
    if (!t->used) continue;
    if (!t->dense || t->count > kBlockBytes) return nullptr;
    t->columns_at = at;
    t->transposer = transposer(target.index, static_cast<int>(group), t->size);
    at += (static_cast<std::size_t>(t->count * group) * t->size + 63) / 64 * 64;
  }
  if (at > static_cast<std::size_t>(kBlockBytes)) return nullptr;
  std::optional<RowWork> work = RowWork::make(block_problem(p, group), kernels);
  if (!work) return nullptr;
  return std::make_unique<BlockKernel>(described, tensors, std::move(*work), group, at);
}

}  // namespace cenote::simd
