#include "competitor.hpp"
#include "data.hpp"

#include <cenote/executor.hpp>
#include <cenote/plan.hpp>

namespace cenote::bench {

namespace {

TensorDesc tensor(const Row& row, DType dtype, const Shape& shape) {
  return row.layout == MemoryFormat::channels_last ? TensorDesc::channels_last(dtype, shape)
                                                   : TensorDesc::contiguous(dtype, shape);
}

Shape input_shape(const Row& row) { return Shape{std::span<const std::int64_t>(row.pool->shape)}; }

Shape output_shape(const Row& row) {
  const int dims = row.pool->spec.dims;
  Shape shape = input_shape(row);
  for (int i = 0; i < dims; ++i) shape[2 + i] = row.pool->geometry.output[static_cast<std::size_t>(3 - dims + i)];
  return shape;
}

/// The max family's backward, which the kind of its indices is chosen for.
bool takes_saved_kind(const Row& row) { return uses_saved_indices(row) && row.pool->spec.op != Op::max_unpool; }

/// Every tensor in the row's layout: left alone, a plan answers in the layout PyTorch would, which for some ops is another one.
Plan make_plan(const Row& row) {
  PoolSpec spec = row.pool->spec;
  spec.return_indices = row.pass == RowPass::forward_indices;
  spec.index_kind = takes_saved_kind(row) ? row.saved_kind : IndexKind::flat64;
  const Shape input = input_shape(row), output = output_shape(row);
  PlanOptions options;
  if (row.pass == RowPass::backward) {
    options.grad_output = tensor(row, row.dtype, output);
    options.grad_input = tensor(row, row.dtype, input);
  } else {
    options.output = tensor(row, row.dtype, output);
  }
  if (uses_saved_indices(row) || spec.return_indices) {
    const DType dtype = takes_saved_kind(row) ? saved_index_dtype(row) : DType::i64;
    options.indices = tensor(row, dtype, spec.op == Op::max_unpool ? input : output);
  }
  return Plan::make(row.pass == RowPass::backward ? Pass::backward : Pass::forward, tensor(row, row.dtype, input), spec,
                    options);
}

class CenoteCall final : public Call {
 public:
  explicit CenoteCall(const Workload& w) : executor_(w.threads), plan_(make_plan(w.row)) {
    const bool backward = w.row.pass == RowPass::backward;
    args_.executor = &executor_;
    args_.saved_indices = w.saved_indices;
    if (takes_saved_kind(w.row) && w.row.saved_kind != IndexKind::flat64) save_indices(w);
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
  /// PyTorch's indices as those that cenote's forward would have saved.
  void save_indices(const Workload& w) {
    const Shape shape = output_shape(w.row);
    const TensorDesc flat = tensor(w.row, DType::i64, shape), own = tensor(w.row, saved_index_dtype(w.row), shape);
    own_indices_ = Buffer(static_cast<std::size_t>(own.numel()) * size_of(own.dtype));
    convert_indices(tensor(w.row, w.row.dtype, input_shape(w.row)), w.spec(), IndexKind::flat64,
                    TensorView{flat, const_cast<std::int64_t*>(w.saved_indices)}, w.row.saved_kind,
                    TensorView{own, own_indices_.data()});
    args_.saved_indices = own_indices_.data();
  }

  OpenMPExecutor executor_;
  Plan plan_;
  RunArgs args_;
  Buffer own_indices_;
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
