// The memory of a run: null, misaligned and overlapping buffers are refused before anything is written; inputs may have any
// strides.
#include "support.hpp"

namespace cenote::testing {
namespace {

struct Call {
  Op op;
  int dims;
  Pass pass;
  DType dtype = DType::f32;
};

/// Every op, both passes, with indices where there are any.
std::vector<Call> all_calls() {
  std::vector<Call> calls;
  for (const Op op : kAllOps) {
    for (const int dims : {1, 2, 3}) {
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        for (const DType dtype : {DType::f32, DType::f16}) {
          if (exists(op, dims)) calls.push_back({op, dims, pass, dtype});
        }
      }
    }
  }
  return calls;
}

Plan plan_of(const Call& call, const PlanOptions& options = {}) {
  PoolSpec spec = valid_spec(call.op, call.dims);
  spec.return_indices = true;
  return Plan::make(call.pass, valid_input(call.dims, call.dtype), spec, options);
}

/// The pointers of a run that a plan looks at, by the name a refusal uses.
struct Pointer {
  const char* argument;
  const void* value;
  std::function<void(RunArgs&, const void*)> set;
  std::size_t element;
};

std::vector<Pointer> pointers_of(const Plan& plan, const RunArgs& args) {
  std::vector<Pointer> pointers;
  const bool forward = plan.pass() == Pass::forward, reads = reads_indices(plan.spec().op, plan.pass());
  const std::size_t element = size_of(plan.input().dtype);
  if (forward || plan.spec().op == Op::lp_pool)
    pointers.push_back({"input", args.input, [](RunArgs& a, const void* p) { a.input = p; }, element});
  if (plan.indices().rank() != 0 && reads) {
    pointers.push_back({"saved_indices", args.saved_indices, [](RunArgs& a, const void* p) { a.saved_indices = p; },
                        size_of(plan.indices().dtype)});
  }
  if (plan.indices().rank() != 0 && !reads) {
    pointers.push_back({"indices", args.indices, [](RunArgs& a, const void* p) { a.indices = const_cast<void*>(p); },
                        size_of(plan.indices().dtype)});
  }
  if (plan.random_samples().rank() != 0) {
    pointers.push_back(
        {"random_samples", args.random_samples, [](RunArgs& a, const void* p) { a.random_samples = p; }, element});
  }
  if (forward) {
    pointers.push_back(
        {"output", args.output, [](RunArgs& a, const void* p) { a.output = const_cast<void*>(p); }, element});
  } else {
    pointers.push_back(
        {"grad_output", args.grad_output, [](RunArgs& a, const void* p) { a.grad_output = p; }, element});
    pointers.push_back({"grad_input", args.grad_input,
                        [](RunArgs& a, const void* p) { a.grad_input = const_cast<void*>(p); }, element});
  }
  return pointers;
}

TEST(Memory, NullPointersAreRefused) {
  for (const Call& call : all_calls()) {
    const Plan plan = plan_of(call);
    Buffers run(plan);
    for (const Pointer& pointer : pointers_of(plan, run.args())) {
      SCOPED_TRACE(label(call.op, call.dims, call.pass) + ", " + pointer.argument);
      RunArgs args = run.args();
      pointer.set(args, nullptr);
      expect_refusal(refusal_of(plan.run(args)), pointer.argument, {"null"});
      EXPECT_TRUE(run.results_untouched());
    }
  }
}

TEST(Memory, MisalignedPointersAreRefused) {
  for (const Call& call : all_calls()) {
    const Plan plan = plan_of(call);
    Buffers run(plan);
    for (const Pointer& pointer : pointers_of(plan, run.args())) {
      for (std::size_t by = 1; by < pointer.element; by *= 2) {
        SCOPED_TRACE(label(call.op, call.dims, call.pass) + ", " + pointer.argument);
        RunArgs args = run.args();
        pointer.set(args, static_cast<const char*>(pointer.value) + by);
        expect_refusal(refusal_of(plan.run(args)), pointer.argument,
                       {"aligned", std::to_string(pointer.element) + " bytes"});
        EXPECT_TRUE(run.results_untouched());
      }
    }
  }
}

/// Every result laid over every other buffer of the call: at the same address, and so that one element overlaps at either end.
TEST(Memory, ResultsThatOverlapAnythingAreRefused) {
  for (const Call& call : all_calls()) {
    const Plan plan = plan_of(call);
    Buffers run(plan);
    const std::vector<Pointer> pointers = pointers_of(plan, run.args());
    const auto bytes = [&](const std::string& name) {
      return name == "input"            ? run.input.size()
             : name == "output"         ? run.output.size()
             : name == "grad_output"    ? run.grad_output.size()
             : name == "grad_input"     ? run.grad_input.size()
             : name == "random_samples" ? run.samples.size()
                                        : run.indices.size();
    };
    for (const Pointer& result : pointers) {
      const std::string name = result.argument;
      if (name != "output" && name != "grad_input" && name != "indices") continue;
      for (const Pointer& other : pointers) {
        if (other.argument == name) continue;
        const std::size_t coarse = std::max(result.element, other.element);
        const std::size_t size = bytes(name), other_size = bytes(other.argument);
        // Room for the result on both sides of the other buffer, which moves into the middle.
        std::vector<std::uint64_t> arena((2 * size + other_size + 64) / 8 + 2, 0x5c5c5c5c5c5c5c5c);
        char* const middle = reinterpret_cast<char*>(arena.data()) + (size + 15) / 16 * 16;
        const auto before = arena;
        struct {
          const char* how;
          char* at;
          bool refused;
        } const places[] = {{"the same place", middle, true},
                            {"its last element", middle + (other_size - 1) / coarse * coarse, true},
                            {"its first element", middle - (size - 1) / coarse * coarse, true},
                            {"right behind it", middle + (other_size + coarse - 1) / coarse * coarse, false}};
        for (const auto& place : places) {
          SCOPED_TRACE(label(call.op, call.dims, call.pass) + ": " + name + " over " + other.argument + ", " +
                       place.how);
          RunArgs args = run.args();
          other.set(args, middle);
          result.set(args, place.at);
          if (!place.refused) {
            if (other.element == result.element && std::string(other.argument) == "input" && call.dtype == DType::f32) {
              std::memset(middle, 0, other_size);
              EXPECT_TRUE(plan.run(args).ok());
            }
            continue;
          }
          const Refusal refusal = refusal_of(plan.run(args));
          EXPECT_TRUE(refusal.argument == name || refusal.argument == other.argument) << refusal.argument;
          expect_refusal(refusal, refusal.argument, {"overlaps", name, other.argument});
          EXPECT_EQ(arena, before);
          EXPECT_TRUE(run.guards_intact());
        }
      }
    }
  }
}

TEST(Memory, OverlapIsNamedAfterTheResult) {
  const Plan plan = plan_of({Op::max_pool, 2, Pass::forward});
  Buffers run(plan);
  RunArgs args = run.args();
  args.output = const_cast<void*>(args.input);
  expect_refusal(refusal_of(plan.run(args)), "output", {"output overlaps that of input"});
  args.output = args.indices;
  expect_refusal(refusal_of(plan.run(args)), "output", {"output overlaps that of indices"});
}

TEST(Memory, OverlapLooksAtNegativeStridesToo) {
  // The output runs backwards through the four elements before its pointer, onto the input's end.
  const Plan plan = Plan::make(Pass::forward, TensorDesc::contiguous(DType::f32, {1, 8}), valid_spec(Op::max_pool, 1),
                               {.output = TensorDesc{DType::f32, {1, 4}, {4, -1}}});
  std::vector<float> arena(16, 1.0F);
  expect_refusal(refusal_of(plan.run({.input = arena.data(), .output = arena.data() + 10})), "output", {"overlaps"});
  EXPECT_TRUE(plan.run({.input = arena.data(), .output = arena.data() + 11}).ok());
}

// --- strides --------------------------------------------------------------------------------------------------------------

/// Layouts of the input: each must give what the contiguous one gives.
Strides reversed(const Shape& shape) {
  Strides strides = contiguous_strides(shape);
  for (auto& stride : strides) stride = -stride;
  return strides;
}
Strides gapped(const Shape& shape) {
  Strides strides = contiguous_strides(shape);
  for (auto& stride : strides) stride *= 3;
  return strides;
}
Strides mixed(const Shape& shape) {
  Strides strides = gapped(shape);
  for (int i = 0; i < shape.rank(); i += 2) strides[i] = -strides[i];
  return strides;
}
Strides transposed(const Shape& shape) {
  Strides strides = contiguous_strides(shape);
  std::int64_t step = 1;
  for (int i = 0; i < shape.rank(); ++i) strides[i] = step, step *= shape[i];
  return strides;
}

TEST(Strides, OfInputsAndResultsMayBeAnything) {
  for (const Call& call : all_calls()) {
    const Plan dense = plan_of(call);
    Buffers expected(dense);
    ASSERT_TRUE(expected.run().ok());
    for (const auto layout : {reversed, gapped, mixed, transposed}) {
      for (const std::string& target : cpu_targets()) {
        SCOPED_TRACE(label(call.op, call.dims, call.pass) + " of " + name_of(call.dtype) + " on " + target);
        const auto laid_out = [&](const TensorDesc& desc) {
          return TensorDesc{desc.dtype, desc.shape, layout(desc.shape)};
        };
        PlanOptions options;
        options.target = target;
        options.output = laid_out(dense.output());
        if (dense.indices().rank() != 0) options.indices = laid_out(dense.indices());
        if (call.pass == Pass::backward) {
          options.grad_output = laid_out(dense.grad_output());
          options.grad_input = laid_out(dense.grad_input());
        }
        const Plan plan = Plan::make(call.pass, laid_out(dense.input()), dense.spec(), options);
        Buffers run(plan);
        const Status status = run.run();
        ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_TRUE(run.guards_intact());
        const bool forward = call.pass == Pass::forward;
        EXPECT_EQ((forward ? run.output : run.grad_input).values(),
                  (forward ? expected.output : expected.grad_input).values());
        if (dense.indices().rank() != 0) {
          EXPECT_EQ(run.indices.values(), expected.indices.values());
        }
      }
    }
  }
}

/// One number in every element of the input (or gradient) through strides of 0: a constant tensor's answer.
TEST(Strides, OfZeroBroadcastInputsAndGradients) {
  for (const Call& call : all_calls()) {
    for (const std::string& target : cpu_targets()) {
      SCOPED_TRACE(label(call.op, call.dims, call.pass) + " of " + name_of(call.dtype) + " on " + target);
      const Plan dense = plan_of(call);
      Buffers expected(dense);
      expected.input.fill(3);
      if (call.pass == Pass::backward) expected.grad_output.fill(2);
      ASSERT_TRUE(expected.run().ok());

      const auto broadcast = [](const TensorDesc& desc) {
        Strides strides = desc.shape;
        for (auto& stride : strides) stride = 0;
        return TensorDesc{desc.dtype, desc.shape, strides};
      };
      PlanOptions options;
      options.target = target;
      if (call.pass == Pass::backward) options.grad_output = broadcast(dense.grad_output());
      if (call.pass == Pass::backward) options.grad_input = dense.grad_input();
      const bool reads_input = call.pass == Pass::forward || call.op == Op::lp_pool;
      const Plan plan =
          Plan::make(call.pass, reads_input ? broadcast(dense.input()) : dense.input(), dense.spec(), options);
      Buffers run(plan);
      if (reads_input) run.input.fill(3);
      if (call.pass == Pass::backward) run.grad_output.fill(2);
      const Status status = run.run();
      ASSERT_TRUE(status.ok()) << status.message();
      const bool forward = call.pass == Pass::forward;
      EXPECT_EQ((forward ? run.output : run.grad_input).values(),
                (forward ? expected.output : expected.grad_input).values());
      EXPECT_TRUE(run.guards_intact());
    }
  }
}

}  // namespace
}  // namespace cenote::testing
