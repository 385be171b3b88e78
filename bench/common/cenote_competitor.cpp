#include "competitor.hpp"

#include <cenote/executor.hpp>
#include <cenote/plan.hpp>

namespace cenote::bench {

namespace {

/// Every tensor in the row's layout: left alone, a plan answers in the layout PyTorch would, which for some ops is another one.
Plan make_plan(const Row& row) {
  PoolSpec spec = row.pool->spec;
  spec.return_indices = row.pass == RowPass::forward_indices;
  spec.index_kind = IndexKind::flat64;
  const auto tensor = [&](DType dtype, const Shape& shape) {
    return row.layout == MemoryFormat::channels_last ? TensorDesc::channels_last(dtype, shape)
                                                     : TensorDesc::contiguous(dtype, shape);
  };
  const Geometry& g = row.pool->geometry;
  const Shape input{std::span<const std::int64_t>(row.pool->shape)};
  Shape output = input;
  for (int i = 0; i < spec.dims; ++i) output[2 + i] = g.output[static_cast<std::size_t>(3 - spec.dims + i)];
  PlanOptions options;
  if (row.pass == RowPass::backward) {
    options.grad_output = tensor(row.dtype, output);
    options.grad_input = tensor(row.dtype, input);
  } else {
    options.output = tensor(row.dtype, output);
  }
  if (uses_saved_indices(row) || spec.return_indices) {
    options.indices = tensor(DType::i64, spec.op == Op::max_unpool ? input : output);
  }
  return Plan::make(row.pass == RowPass::backward ? Pass::backward : Pass::forward, tensor(row.dtype, input), spec,
                    options);
}

class CenoteCall final : public Call {
 public:
  explicit CenoteCall(const Workload& w) : executor_(w.threads), plan_(make_plan(w.row)) {
    const bool backward = w.row.pass == RowPass::backward;
    args_.executor = &executor_;
    args_.saved_indices = w.saved_indices;
    if (backward) {
      if (w.spec().op == Op::lp_pool) args_.input = w.input;
      args_.grad_output = w.grad_output;
      args_.grad_input = w.grad_input;
    } else {
      args_.input = w.input;
      args_.output = w.output;
      args_.indices = w.indices;
    }
  }

  void run() override {
    if (const Status status = plan_.run(args_); !status.ok()) status.raise();
  }

 private:
  OpenMPExecutor executor_;
  Plan plan_;
  RunArgs args_;
};

class Cenote final : public Competitor {
 public:
  std::string name() const override { return "cenote"; }
  std::string version() const override {
    const auto targets = cpu_targets();
    return targets.empty() ? "" : targets.front();
  }
  std::unique_ptr<Call> prepare(const Workload& workload) override { return std::make_unique<CenoteCall>(workload); }
};

}  // namespace

std::string explain_plan(const Row& row) { return make_plan(row).explain(); }

std::unique_ptr<Competitor> make_cenote() { return std::make_unique<Cenote>(); }

}  // namespace cenote::bench
