// Inputs that broke other pooling libraries, by CVE number or issue: each is refused with the argument named, or gives the
// right answer where it is a valid call.
//
// Not expressible here:
//   CVE-2021-29585, -29586, -37684 as model files     there is no model format; the strides of 0 inside them are below
//   CVE-2022-21739, -35966 and missing scales         there are no quantised tensors with separate range tensors
//   CVE-2021-29574, -29576 (MaxPool3DGradGrad)        there is no double backward; their shapes are tested in the backward
//   CVE-2021-29578, -37651, 2022-21730, -35963,       pooling sequences are computed from samples, never taken from the caller;
//     -35981, -41897 (pooling sequences)              their counterparts, samples and indices, are below
//   CVE-2023-25801 (ratio on batch and channel)       a ratio exists only for the spatial axes
//   CVE-2025-46150                                    there is no second compiler whose result could differ; same bits on every
//                                                     target are tested elsewhere
//   tf#61605 (pool_size 1e38)                         kernel sizes are integers; the ratio of 1e38 is below
//   ort PR 21507, onnx PR 6195                        shape inference is the plan's own, tested everywhere else in this folder
#include "support.hpp"

#include <cmath>

namespace cenote::testing {
namespace {

namespace F = functional;

struct Report {
  const char* name;
  std::function<void()> call;
  const char* argument;  // empty: the call is valid and must not be refused
  std::vector<std::string> words;
  ErrorCode code = ErrorCode::invalid_argument;
};

Tensor indices_of(const Shape& shape, double value = 0) { return full(shape, value, {.dtype = DType::i64}); }

const std::vector<Report> kReports = {
    // --- sizes that divide by zero or wrap
    {"CVE-2021-29550: input smaller than the ratio makes an output of 0",
     [] {
       EXPECT_EQ(F::fractional_max_pool2d(ones({1, 3, 3}), {.kernel_size = 2, .output_ratio = 0.1}).shape(),
                 (Shape{1, 0, 0}));
     },
     "",
     {}},
    {"CVE-2022-21735: ratio that gives more outputs than fit",
     [] {
       F::fractional_max_pool2d(ones({1, 4, 4}), {.kernel_size = 4, .output_ratio = 0.9});
     },
     "output_ratio",
     {"0.9", "4"}},
    {"CVE-2022-41900: ratio that enlarges",
     [] {
       F::fractional_max_pool2d(ones({1, 6, 6}), {.kernel_size = 2, .output_ratio = 1.5});
     },
     "output_ratio",
     {"1.5"}},
    {"tf#61580: negative ratio",
     [] {
       F::fractional_max_pool2d(ones({1, 6, 6}), {.kernel_size = 2, .output_ratio = -1.0});
     },
     "output_ratio",
     {"-1"}},
    {"tf#61605: ratio 1e38",
     [] {
       F::fractional_max_pool2d(ones({1, 6, 6}), {.kernel_size = 2, .output_ratio = 1e38});
     },
     "output_ratio",
     {"1e+38"}},
    {"CVE-2021-29585, -29586, -37684, 2025-2953, 2023-25669: stride 0",
     [] {
       F::max_pool2d(ones({1, 1, 4, 4}), {.kernel_size = 2, .stride = 0});
     },
     "stride",
     {"got 0"}},
    {"CVE-2022-21725: stride 0 on one axis, in a backward",
     [] {
       F::avg_pool2d_backward(ones({1, 1, 9, 9}), ones({1, 1, 4, 4}), {.kernel_size = 2, .stride = {1, 0}});
     },
     "stride",
     {"got 0"}},
    {"CVE-2021-41196: pool_size [2, 2, 0]",
     [] {
       F::max_pool3d(ones({1, 1, 4, 4, 4}), {.kernel_size = {2, 2, 0}});
     },
     "kernel_size",
     {"got 0"}},
    {"CVE-2021-41196: pool_size [2, 2, -2]",
     [] {
       F::max_pool3d(ones({1, 1, 4, 4, 4}), {.kernel_size = {2, 2, -2}});
     },
     "kernel_size",
     {"got -2"}},
    {"CVE-2022-35941: negative ksize",
     [] {
       F::avg_pool2d(ones({1, 1, 4, 4}), {.kernel_size = {-1, 2}});
     },
     "kernel_size",
     {"got -1"}},
    {"pt#145077: negative stride",
     [] {
       F::avg_pool2d(ones({1, 1, 4, 4}), {.kernel_size = 2, .stride = -1});
     },
     "stride",
     {"got -1"}},
    {"pt#145077: negative padding",
     [] {
       F::avg_pool2d(ones({1, 1, 4, 4}), {.kernel_size = 2, .padding = -1});
     },
     "padding",
     {"got -1"}},
    {"pt#41767, chainer#6025: stride 0 in 1d",
     [] {
       F::max_pool1d(ones({1, 1, 4}), {.kernel_size = 2, .stride = 0});
     },
     "stride",
     {"got 0"}},
    {"Paddle#33036: kernel 0",
     [] {
       F::max_pool2d(ones({1, 1, 4, 4}), {.kernel_size = 0});
     },
     "kernel_size",
     {"got 0"}},
    {"Paddle#49919: stride 0 of an unpool",
     [] {
       F::max_unpool2d(ones({1, 1, 2, 2}), indices_of({1, 1, 2, 2}), {.kernel_size = 2, .stride = 0});
     },
     "stride",
     {"got 0"}},
    {"tt-metal#25208: dilation 0",
     [] {
       F::max_pool2d(ones({1, 1, 4, 4}), {.kernel_size = 2, .dilation = 0});
     },
     "dilation",
     {"got 0"}},
    {"pt#73192: kernel 536870912, dilation 1879048192, ceil_mode",
     [] {
       F::max_pool3d(ones({1, 4, 4, 4}), {.kernel_size = 536870912, .dilation = 1879048192, .ceil_mode = true});
     },
     "input",
     {"kernel_size 536870912", "dilation 1879048192"}},
    {"pt#189664, #191566: dilation 2^31-1 of one tap is valid",
     [] {
       Tensor x = arange(12, {.dtype = DType::f32}).reshape({1, 1, 3, 4});
       x.set_requires_grad();
       const Tensor y = F::max_pool2d(x, {.kernel_size = 1, .stride = 2, .dilation = kInt32Max});
       EXPECT_EQ(y.to_vector(), (std::vector<double>{0, 2, 8, 10}));
       y.sum().backward();
       EXPECT_EQ(x.grad().to_vector(), (std::vector<double>{1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1, 0}));
     },
     "",
     {}},
    {"CVE-2021-37674: empty axes, kernel 16, stride 16 and 18, pads 14 3 15 5",
     [] {
       F::max_pool2d(ones({3, 2, 0, 0}),
                     {.kernel_size = 16, .stride = {16, 18}, .padding = Padding<2>::asymmetric({14, 15}, {3, 5})});
     },
     "input",
     {"empty", "[3, 2, 0, 0]"}},
    {"CVE-2022-35959: input 1879048192 to the fifth",
     [] {
       Plan::make(Pass::backward, {DType::f32, {1879048192, 1879048192, 1879048192, 1879048192, 1879048192}},
                  valid_spec(Op::avg_pool, 3));
     },
     "input",
     {"63 bits", "1879048192"}},
    {"CVE-2022-35959, -35968: input -536870912 to the fourth",
     [] {
       Plan::make(Pass::backward, {DType::f32, {-536870912, -536870912, -536870912, -536870912}},
                  valid_spec(Op::avg_pool, 2));
     },
     "input",
     {"negative", "-536870912"}},
    {"CVE-2022-35963: input -1879048192 to the fourth",
     [] {
       Plan::make(Pass::backward, {DType::f32, {-1879048192, -1879048192, -1879048192, -1879048192}},
                  valid_spec(Op::fractional_max_pool, 2));
     },
     "input",
     {"negative", "-1879048192"}},
    {"pt#94696, #94698, #96277: shape with 0 and 4634247419717959497",
     [] {
       Plan::make(Pass::forward, {DType::f32, {0, 4634247419717959497, 4634247419717959497}},
                  valid_spec(Op::adaptive_avg_pool, 2));
     },
     "input",
     {"63 bits", "4634247419717959497"}},
    {"pt#96277: rank 6",
     [] {
       F::adaptive_max_pool2d(ones({1, 1, 1, 1, 2, 2}), {.output_size = 1});
     },
     "input",
     {"[1, 1, 1, 1, 2, 2]"}},
    {"pt#42582: adaptive output 9132760301568586890",
     [] {
       F::adaptive_avg_pool2d(ones({1, 3, 3}), {.output_size = {9132760301568586890, 1}});
     },
     "output_size",
     {"9132760301568586890"}},
    {"pt PR 70488: negative adaptive output",
     [] {
       F::adaptive_max_pool2d(ones({1, 3, 3}), {.output_size = {-1, 1}});
     },
     "output_size",
     {"got -1"}},
    {"pt#144836, PR 169359: unpool of size 0",
     [] {
       EXPECT_EQ(F::max_unpool2d(ones({1, 1, 1}), indices_of({1, 1, 1}), {.kernel_size = 2, .padding = 1}).shape(),
                 (Shape{1, 0, 0}));
     },
     "",
     {}},
    {"pt#144836: unpool to a size of 0 that does not fit",
     [] {
       F::max_unpool2d(ones({1, 3, 3}), indices_of({1, 3, 3}), {.kernel_size = 2, .output_size = {0, 0}});
     },
     "output_size",
     {"0", "between 4 and 8"}},
    {"ort PR 29579: more pads than axes",
     [] {
       F::max_pool2d(ones({1, 1, 4, 4}), {.kernel_size = 2, .padding = {0, 0, 0, 0}});
     },
     "padding",
     {"[0, 0, 0, 0]"}},
    {"ort PR 29579: fewer strides than axes",
     [] {
       F::max_pool3d(ones({1, 1, 4, 4, 4}), {.kernel_size = 2, .stride = {1, 1}});
     },
     "stride",
     {"[1, 1]"}},
    {"ort PR 29579: rank below 2", [] { F::max_pool1d(ones({4}), {.kernel_size = 2}); }, "input", {"[4]"}},
    {"ort PR 29579: sizes beyond 32 bits",
     [] {
       F::max_pool2d(ones({1, 1, 4, 4}), {.kernel_size = {2, (std::int64_t{1} << 32) + 2}});
     },
     "kernel_size",
     {"32 bits", "4294967298"}},

    // --- tensors of different calls
    {"CVE-2021-29570: indices of another size than the gradient",
     [] {
       F::max_pool2d_backward(ones({1, 1, 2, 2}), ones({1, 1, 4, 4}), indices_of({1, 1, 2, 4}), {.kernel_size = 2});
     },
     "indices",
     {"[1, 1, 2, 4]"}},
    {"CVE-2021-29573: everything empty",
     [] {
       F::max_pool2d_backward(ones({0, 0, 0, 0}), ones({0, 0, 0, 0}), indices_of({0, 0, 0, 0}), {.kernel_size = 1});
     },
     "input",
     {"empty", "[0, 0, 0, 0]"}},
    {"CVE-2021-29574, -29579: gradient empty, input not",
     [] {
       F::max_pool3d_backward(ones({0, 0, 0, 0, 0}), ones({1, 1, 1, 1, 1}), indices_of({1, 1, 1, 1, 1}),
                              {.kernel_size = 1});
     },
     "grad_output",
     {"[0, 0, 0, 0, 0]"}},
    {"CVE-2021-29576: input of batch 11, output of batch 1",
     [] {
       F::max_pool3d_backward(ones({1, 1, 1, 1, 1}), ones({11, 1, 1, 1, 1}), indices_of({11, 1, 1, 1, 1}),
                              {.kernel_size = 1});
     },
     "grad_output",
     {"[11, 1, 1, 1, 1]", "[1, 1, 1, 1, 1]"}},
    {"CVE-2021-29577: input [10, 7, 6, 3, 7], gradient [3, 1, 1, 1, 1]",
     [] {
       F::avg_pool3d_backward(ones({3, 1, 1, 1, 1}), ones({10, 7, 6, 3, 7}), {.kernel_size = 1, .stride = 7});
     },
     "grad_output",
     {"[3, 1, 1, 1, 1]"}},
    {"CVE-2021-29580: rank-1 tensors",
     [] {
       F::fractional_max_pool2d_backward(ones({0}), ones({3}), indices_of({0}), {.kernel_size = 1, .output_size = 1});
     },
     "input",
     {"[3]"}},
    {"CVE-2021-29580: empty gradient",
     [] {
       F::fractional_max_pool2d_backward(ones({0, 0, 0}), ones({1, 3, 3}), indices_of({1, 1, 1}),
                                         {.kernel_size = 1, .output_size = 1});
     },
     "grad_output",
     {"[0, 0, 0]"}},
    {"CVE-2022-21725: gradient larger than the input",
     [] {
       F::avg_pool2d_backward(ones({1, 1, 9, 9}), ones({1, 1, 4, 4}), {.kernel_size = 2});
     },
     "grad_output",
     {"[1, 1, 9, 9]"}},
    {"CVE-2022-35968: gradient of 1x5x7x1",
     [] {
       F::avg_pool2d_backward(ones({1, 1, 5, 7}), ones({1, 1, 4, 4}), {.kernel_size = 2});
     },
     "grad_output",
     {"[1, 1, 5, 7]"}},
    {"CVE-2023-25664: gradient 16^4, input [11, 9, 9, 78], kernel 40x128",
     [] {
       F::avg_pool2d_backward(ones({16, 16, 16, 16}), ones({11, 9, 9, 78}), {.kernel_size = {40, 128}, .stride = 30});
     },
     "input",
     {"40"}},
    {"pt#140923: gradient of batch 9, indices of batch 5",
     [] {
       F::max_pool2d_backward(ones({9, 1, 2, 2}), ones({5, 1, 4, 4}), indices_of({5, 1, 2, 2}), {.kernel_size = 2});
     },
     "grad_output",
     {"[9, 1, 2, 2]"}},
    {"pt#194800, #195547: adaptive backward with other channels",
     [] {
       F::adaptive_avg_pool2d_backward(ones({1, 8, 2, 2}), ones({1, 2, 4, 4}), {.output_size = 2});
     },
     "grad_output",
     {"[1, 8, 2, 2]"}},
    {"pt#194803: adaptive max backward with another size",
     [] {
       F::adaptive_max_pool2d_backward(ones({1, 2, 3, 3}), ones({1, 2, 4, 4}), indices_of({1, 2, 2, 2}),
                                       {.output_size = 2});
     },
     "grad_output",
     {"[1, 2, 3, 3]"}},

    // --- fractional arguments and samples
    {"pt#50967: kernel []",
     [] {
       F::fractional_max_pool2d(ones({1, 4, 4}), {.kernel_size = {}, .output_size = 2});
     },
     "kernel_size",
     {"[]"}},
    {"pt#73624: kernel 0",
     [] {
       F::fractional_max_pool2d(ones({1, 4, 4}), {.kernel_size = 0, .output_size = 2});
     },
     "kernel_size",
     {"got 0"}},
    {"pt PR 188363: negative kernel",
     [] {
       F::fractional_max_pool2d(ones({1, 4, 4}), {.kernel_size = {-1, 2}, .output_size = 2});
     },
     "kernel_size",
     {"got -1"}},
    {"pt#73186, #18705: output 0 is an empty result",
     [] {
       EXPECT_EQ(F::fractional_max_pool3d(ones({1, 4, 4, 4}), {.kernel_size = 2, .output_size = 0}).shape(),
                 (Shape{1, 0, 0, 0}));
     },
     "",
     {}},
    {"pt#91659: samples empty",
     [] {
       F::fractional_max_pool2d(ones({2, 1, 4, 4}), {.kernel_size = 2, .output_size = 2}, zeros({0}));
     },
     "random_samples",
     {"[0]"}},
    {"pt#89648: samples of a smaller batch",
     [] {
       F::fractional_max_pool2d(ones({2, 1, 4, 4}), {.kernel_size = 2, .output_size = 2}, zeros({1, 1, 2}));
     },
     "random_samples",
     {"[1, 1, 2]"}},
    {"pt#141102: rank 9",
     [] {
       ones({1, 1, 1, 1, 1, 1, 1, 1, 1});
     },
     "shape",
     {"9 dimensions"}},
    {"pt#141102: kernel -1 in a backward",
     [] {
       F::fractional_max_pool2d_backward(ones({1, 2, 2}), ones({1, 4, 4}), indices_of({1, 2, 2}),
                                         {.kernel_size = -1, .output_size = 2});
     },
     "kernel_size",
     {"got -1"}},
    {"CVE-2021-29578, -37651, 2022-21730, -41897: negative samples",
     [] {
       F::fractional_max_pool2d(ones({1, 4, 4}), {.kernel_size = 2, .output_size = 2}, full({1, 1, 2}, -2));
     },
     "random_samples",
     {"[0, 1)", "-2"}},
    {"CVE-2022-35981, -41897: fractional index before the plane",
     [] {
       F::fractional_max_pool2d_backward(ones({1, 2, 2}), ones({1, 4, 4}), indices_of({1, 2, 2}, -0x4000000),
                                         {.kernel_size = 2, .output_size = 2});
     },
     "saved_indices",
     {"-67108864"},
     ErrorCode::invalid_index},

    // --- indices
    {"pt#152804, #152913: unpool far outside",
     [] {
       F::max_unpool2d(ones({1, 1, 2, 2}), indices_of({1, 1, 2, 2}, 0x1p60), {.kernel_size = 2});
     },
     "saved_indices",
     {"1152921504606846976"},
     ErrorCode::invalid_index},
    {"ort PR 27432, mediapipe PR 6317: unpool just outside",
     [] {
       F::max_unpool2d(ones({1, 1, 2, 2}), indices_of({1, 1, 2, 2}, 16), {.kernel_size = 2});
     },
     "saved_indices",
     {"index 16"},
     ErrorCode::invalid_index},
    {"ort PR 27903: pool gradient far outside",
     [] {
       F::max_pool2d_backward(ones({1, 1, 2, 2}), ones({1, 1, 4, 4}), indices_of({1, 1, 2, 2}, 0x1p60),
                              {.kernel_size = 2});
     },
     "saved_indices",
     {"1152921504606846976"},
     ErrorCode::invalid_index},
    {"PyTorch's backward: only -1 was checked",
     [] {
       F::max_pool2d_backward(ones({1, 1, 2, 2}), ones({1, 1, 4, 4}), indices_of({1, 1, 2, 2}, 16), {.kernel_size = 2});
     },
     "saved_indices",
     {"index 16"},
     ErrorCode::invalid_index},
    {"pt#193104: 3d pool gradient outside its window",
     [] {
       F::max_pool3d_backward(ones({1, 1, 2, 2, 2}), ones({1, 1, 4, 4, 4}), indices_of({1, 1, 2, 2, 2}, 64),
                              {.kernel_size = 2});
     },
     "saved_indices",
     {"index 64"},
     ErrorCode::invalid_index},
    {"pt PR 1465: all -inf and all NaN windows have an index",
     [] {
       for (const double value : {-INFINITY, NAN}) {
         Tensor x = full({1, 2, 2}, value);
         x.set_requires_grad();
         const auto [y, indices] = F::max_pool2d_with_indices(x, {.kernel_size = 2});
         EXPECT_EQ(indices.item<std::int64_t>(), std::isnan(value) ? 3 : 0);
         y.backward(ones({1, 1, 1}));
         EXPECT_EQ(x.grad().sum().item(), 1);
       }
     },
     "",
     {}},
};

TEST(SecurityCases, AreRefusedOrRight) {
  for (const Report& report : kReports) {
    SCOPED_TRACE(report.name);
    const Refusal refusal = refusal_of(report.call);
    if (*report.argument == '\0') {
      EXPECT_EQ(refusal.message, "");
    } else {
      expect_refusal(refusal, report.argument, report.words, report.code);
    }
  }
}

}  // namespace
}  // namespace cenote::testing
