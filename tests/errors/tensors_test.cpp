// Gradients, outputs, indices and samples that are not the call's: of another shape, dtype, device or with memory shared
// between elements.
#include "support.hpp"

namespace cenote::testing {
namespace {

/// One of the descriptions a plan can be given, by the name its refusal must use.
struct Slot {
  const char* argument;
  std::optional<TensorDesc> PlanOptions::*option;
  bool written;
};

std::vector<Slot> slots_of(const Plan& plan) {
  const bool forward = plan.pass() == Pass::forward;
  std::vector<Slot> slots;
  if (forward) slots.push_back({"output", &PlanOptions::output, true});
  if (!forward) slots.push_back({"grad_output", &PlanOptions::grad_output, false});
  if (!forward) slots.push_back({"grad_input", &PlanOptions::grad_input, true});
  if (plan.indices().rank() != 0) {
    slots.push_back({"indices", &PlanOptions::indices, !reads_indices(plan.spec().op, plan.pass())});
  }
  return slots;
}

const TensorDesc& described(const Plan& plan, const Slot& slot) {
  const std::string name = slot.argument;
  return name == "output"        ? plan.output()
         : name == "indices"     ? plan.indices()
         : name == "grad_output" ? plan.grad_output()
                                 : plan.grad_input();
}

struct Spoiling {
  const char* name;
  std::function<void(TensorDesc&)> spoil;
  std::function<std::string(const TensorDesc&)> word;  // what the message must show of the spoilt description
  bool only_written = false;
};

std::string shape_text(const TensorDesc& desc) { return to_string(desc.shape); }

void resize(TensorDesc& desc, int axis, std::int64_t by) {
  desc.shape[axis] += by;
  desc.strides = contiguous_strides(desc.shape);
}

const std::vector<Spoiling> kSpoilings = {
    {"larger batch", [](TensorDesc& d) { resize(d, 0, 1); }, shape_text},
    {"smaller batch", [](TensorDesc& d) { resize(d, 0, -1); }, shape_text},
    {"empty batch", [](TensorDesc& d) { resize(d, 0, -2); }, shape_text},
    {"more channels", [](TensorDesc& d) { resize(d, 1, 1); }, shape_text},
    {"no channels", [](TensorDesc& d) { resize(d, 1, -3); }, shape_text},
    {"longer first axis", [](TensorDesc& d) { resize(d, 2, 1); }, shape_text},
    {"shorter last axis", [](TensorDesc& d) { resize(d, d.rank() - 1, -1); }, shape_text},
    {"negative last axis", [](TensorDesc& d) { d.shape[d.rank() - 1] = -1; }, shape_text},
    {"one dimension less",
     [](TensorDesc& d) {
       d = TensorDesc::contiguous(d.dtype, Shape(std::span<const std::int64_t>(d.shape.begin() + 1, d.shape.end())));
     },
     shape_text},
    {"no dimension", [](TensorDesc& d) { d.shape = {}, d.strides = {}; }, shape_text},
    {"all empty",
     [](TensorDesc& d) {
       for (auto& size : d.shape) size = 0;
     },
     shape_text},
    {"another dtype", [](TensorDesc& d) { d.dtype = d.dtype == DType::f64 ? DType::f32 : DType::f64; },
     [](const TensorDesc& d) { return std::string("got ") + name_of(d.dtype); }},
    {"an index's dtype", [](TensorDesc& d) { d.dtype = DType::u32; },
     [](const TensorDesc& d) { return std::string("got ") + name_of(d.dtype); }},
    {"another device", [](TensorDesc& d) { d.device = cuda; },
     [](const TensorDesc&) { return std::string("got cuda:0"); }},
    {"strides too few", [](TensorDesc& d) { d.strides = {1}; },
     [](const TensorDesc& d) { return "1 strides for " + std::to_string(d.rank()); }},
    {"strides beyond 63 bits", [](TensorDesc& d) { d.strides[0] = kInt64Max; },
     [](const TensorDesc&) { return std::string("63 bits"); }},
    {"stride 0", [](TensorDesc& d) { d.strides[1] = 0; },
     [](const TensorDesc& d) { return "share memory (shape " + to_string(d.shape); }, true},
    {"all strides 0",
     [](TensorDesc& d) {
       for (auto& stride : d.strides) stride = 0;
     },
     [](const TensorDesc& d) { return "strides " + to_string(d.strides); }, true},
    {"strides that meet", [](TensorDesc& d) { d.strides[0] = d.strides[d.rank() - 1]; },
     [](const TensorDesc& d) { return "share memory (shape " + to_string(d.shape); }, true},
};

TEST(Tensors, ThatAreNotTheCallsAreRefused) {
  for (const Op op : kAllOps) {
    for (const int dims : {1, 2, 3}) {
      if (!exists(op, dims)) continue;
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        PoolSpec spec = valid_spec(op, dims);
        spec.return_indices = true;
        const Plan plan = Plan::make(pass, valid_input(dims), spec);
        for (const Slot& slot : slots_of(plan)) {
          for (const Spoiling& one : kSpoilings) {
            if (one.only_written && !slot.written) continue;
            SCOPED_TRACE(label(op, dims, pass) + ", " + slot.argument + ": " + one.name);
            PlanOptions options;
            options.*slot.option = described(plan, slot);
            EXPECT_EQ(refusal_of([&] { Plan::make(pass, valid_input(dims), spec, options); }).message, "");
            one.spoil(*(options.*slot.option));
            expect_refusal(refusal_of([&] { Plan::make(pass, valid_input(dims), spec, options); }), slot.argument,
                           {slot.argument, one.word(*(options.*slot.option))});
          }
        }
      }
    }
  }
}

TEST(Tensors, IndicesMustHaveTheirKindsType) {
  struct {
    IndexKind kind;
    std::int64_t kernel;
    DType right;
  } const cases[] = {{IndexKind::flat64, 2, DType::i64},  {IndexKind::flat32, 2, DType::i32},
                     {IndexKind::window, 2, DType::u8},   {IndexKind::window, 15, DType::u8},
                     {IndexKind::window, 16, DType::u16}, {IndexKind::window, 256, DType::u32}};
  for (const auto& one : cases) {
    for (const DType dtype :
         {DType::i64, DType::i32, DType::i16, DType::i8, DType::u8, DType::u16, DType::u32, DType::f32, DType::f64}) {
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        SCOPED_TRACE(std::string(name_of(one.kind)) + " of " + std::to_string(one.kernel) + " in " + name_of(dtype));
        const PoolSpec spec{
            .op = Op::max_pool, .dims = 2, .kernel_size = one.kernel, .return_indices = true, .index_kind = one.kind};
        const Shape output{1, 2, 256 / one.kernel, 256 / one.kernel};
        PlanOptions options;
        options.indices = TensorDesc::contiguous(dtype, output);
        const Refusal refusal = refusal_of([&] {
          Plan::make(pass, TensorDesc::contiguous(DType::f32, {1, 2, 256, 256}), spec, options);
        });
        if (dtype == one.right) {
          EXPECT_EQ(refusal.message, "");
        } else {
          expect_refusal(refusal, "indices", {name_of(one.right), name_of(dtype)});
        }
      }
    }
  }
}

TEST(RandomSamples, OfAnotherShapeDtypeOrDeviceAreRefused) {
  for (const int dims : {2, 3}) {
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      const auto make = [&](const TensorDesc& samples) {
        return refusal_of([&] {
          Plan::make(Pass::forward, valid_input(dims, dtype), valid_spec(Op::fractional_max_pool, dims),
                     {.random_samples = samples});
        });
      };
      const DType other = dtype == DType::f32 ? DType::f64 : DType::f32;
      SCOPED_TRACE(std::to_string(dims) + "d of " + name_of(dtype));
      EXPECT_EQ(make({dtype, {2, 3, dims}}).message, "");
      EXPECT_EQ(make({dtype, {5, 3, dims}}).message, "");             // surplus rows are ignored
      EXPECT_EQ(make({dtype, {2, 3, dims}, {0, 0, 1}}).message, "");  // read only: elements may share memory
      for (const Shape& shape :
           {Shape{1, 3, dims}, Shape{0, 3, dims}, Shape{2, 2, dims}, Shape{2, 4, dims}, Shape{2, 3, dims - 1},
            Shape{2, 3, dims + 1}, Shape{2, 3}, Shape{}, Shape{2, 3, dims, 1}, Shape{0, 0, 0}, Shape{2, 3, 0}}) {
        expect_refusal(make({dtype, shape}), "random_samples", {"random_samples", to_string(shape)});
      }
      expect_refusal(make({other, {2, 3, dims}}), "random_samples", {name_of(dtype), name_of(other)});
      expect_refusal(make({DType::i64, {2, 3, dims}}), "random_samples", {name_of(dtype), "i64"});
      expect_refusal(make({dtype, {2, 3, dims}, {}, cuda}), "random_samples", {"cpu", "cuda:0"});
      expect_refusal(make({dtype, {2, 3, dims}, {1}}), "random_samples", {"1 strides for 3"});
      expect_refusal(make({dtype, {-2, 3, dims}}), "random_samples", {"[-2, 3"});
    }
  }
}

TEST(Tensors, OnADeviceThatIsNotThereAreRefused) {
  TensorDesc input = valid_input(2);
  input.device = {DeviceType::cuda, 12345};
  const Refusal refusal = refusal_of([&] { Plan::make(Pass::forward, input, valid_spec(Op::max_pool, 2)); });
  EXPECT_EQ(static_cast<int>(refusal.code), static_cast<int>(ErrorCode::device)) << refusal.message;
}

// --- convert_indices ------------------------------------------------------------------------------------------------------

TEST(ConvertIndices, RefusesWhatIsNotThePools) {
  const PoolSpec spec = valid_spec(Op::max_pool, 2);
  const TensorDesc input = valid_input(2);
  std::vector<std::int64_t> wide(54);
  std::vector<std::uint8_t> narrow(54);
  const auto view_of = [](DType dtype, const Shape& shape, void* data) {
    TensorView view;
    static_cast<TensorDesc&>(view) = TensorDesc::contiguous(dtype, shape);
    view.data = data;
    return view;
  };
  const TensorView from = view_of(DType::i64, {2, 3, 3, 3}, wide.data()),
                   to = view_of(DType::u8, {2, 3, 3, 3}, narrow.data());
  const auto convert = [&](const TensorView& a, const TensorView& b, const PoolSpec& pool) {
    return refusal_of([&] { convert_indices(input, pool, IndexKind::flat64, a, IndexKind::window, b); });
  };
  for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = static_cast<std::int64_t>(i / 3 % 3 * 12 + i % 3 * 2);
  EXPECT_EQ(convert(from, to, spec).message, "");
  expect_refusal(convert(view_of(DType::i32, {2, 3, 3, 3}, wide.data()), to, spec), "from", {"i64", "i32"});
  expect_refusal(convert(view_of(DType::i64, {2, 3, 3, 2}, wide.data()), to, spec), "from",
                 {"[2, 3, 3, 3]", "[2, 3, 3, 2]"});
  expect_refusal(convert(from, view_of(DType::u16, {2, 3, 3, 3}, narrow.data()), spec), "to", {"u8", "u16"});
  expect_refusal(convert(from, view_of(DType::u8, {1, 3, 3, 3}, narrow.data()), spec), "to",
                 {"[2, 3, 3, 3]", "[1, 3, 3, 3]"});
  expect_refusal(convert(view_of(DType::i64, {2, 3, 3, 3}, nullptr), to, spec), "from", {"null"});
  expect_refusal(convert(from, view_of(DType::u8, {2, 3, 3, 3}, nullptr), spec), "to", {"null"});
  TensorView shared = to;
  shared.strides[0] = 0;
  expect_refusal(convert(from, shared, spec), "to", {"share memory"});
  TensorView elsewhere = from;
  elsewhere.device = cuda;
  expect_refusal(convert(elsewhere, to, spec), "from", {"cuda:0"});
  expect_refusal(convert(from, to, valid_spec(Op::avg_pool, 2)), "op", {"avg_pool"});
  expect_refusal(convert(from, to, valid_spec(Op::fractional_max_pool, 2)), "random_samples", {"random_samples"});
  TensorView samples = view_of(DType::f32, {2, 3, 2}, nullptr);
  expect_refusal(refusal_of([&] {
                   convert_indices(input, valid_spec(Op::fractional_max_pool, 2), IndexKind::flat64, from,
                                   IndexKind::window, to, &samples);
                 }),
                 "random_samples", {"null"});
  std::vector<float> drawn(12, 1.0F);
  samples.data = drawn.data();
  expect_refusal(refusal_of([&] {
                   convert_indices(input, valid_spec(Op::fractional_max_pool, 2), IndexKind::flat64, from,
                                   IndexKind::window, to, &samples);
                 }),
                 "random_samples", {"[0, 1)", "got 1"});
  for (const std::int64_t bad : {std::int64_t{-2}, std::int64_t{36}, std::int64_t{2}, kInt64Max, kInt64Min}) {
    wide[0] = bad;
    expect_refusal(convert(from, to, spec), "from", {std::to_string(bad), "n 0, c 0"}, ErrorCode::invalid_index);
  }
  wide[0] = -1;
  EXPECT_EQ(convert(from, to, spec).message, "");
  EXPECT_EQ(narrow[0], 0xff);
  for (const int bad : {4, 5, 254}) {
    narrow[0] = static_cast<std::uint8_t>(bad);
    expect_refusal(refusal_of([&] { convert_indices(input, spec, IndexKind::window, to, IndexKind::flat64, from); }),
                   "from", {std::to_string(bad)}, ErrorCode::invalid_index);
  }
}

}  // namespace
}  // namespace cenote::testing
