// cenote-gpu-test: everything that needs a GPU, and nothing else. CENOTE_TEST_SEED picks other problems, CENOTE_TEST_PROBLEMS how
// many, CENOTE_GOLDEN_DIR another recording. A failure prints the problem's line.
#include "cuda/elsewhere.hpp"
#include "golden/judge.hpp"
#include "problems/buffer.hpp"
#include "problems/random.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <utility>

namespace cenote::testing {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

Gpu& aligned() {
  static Gpu gpu(Gpu::Alignment::vectors);
  return gpu;
}
Gpu& misaligned() {
  static Gpu gpu(Gpu::Alignment::elements);
  return gpu;
}

bool is_max_family(const Problem& problem) { return has_indices(problem.spec.op); }

/// Against the reference, aligned and not; the max family has the CPU's bits as well.
std::vector<Setting> settings_for(const Problem& problem) {
  std::vector<Setting> settings;
  if (is_max_family(problem)) settings.push_back({});
  settings.push_back({"", nullptr, &aligned()});
  settings.push_back({"", nullptr, &misaligned()});
  return settings;
}

void expect_right(const Problem& problem) {
  EXPECT_EQ(check_problem(problem, settings_for(problem)), "") << "problem: " << to_string(problem);
}
void expect_right(const std::string& line) { expect_right(parse_problem(line)); }

TEST(Gpu, GoldenRecording) {
  const char* directory = std::getenv("CENOTE_GOLDEN_DIR");
  int failures = 0;
  for (const Case& recorded : read_recording(directory != nullptr ? directory : CENOTE_GOLDEN_DIR)) {
    for (Gpu* gpu : {&aligned(), &misaligned()}) {
      const std::string trouble = judge(recorded, {"", nullptr, gpu});
      EXPECT_EQ(trouble, "") << "case " << recorded.id << ": " << to_string(recorded.problem);
      failures += trouble.empty() ? 0 : 1;
    }
    if (failures > 40) return;
  }
}

TEST(Gpu, SmallProblems) {
  Random random(from_environment("CENOTE_TEST_SEED", 2026) * 1000 + 11);
  for (std::uint64_t i = 0; i < from_environment("CENOTE_TEST_PROBLEMS", 1500); ++i)
    expect_right(draw_problem(random, Extent::small));
}

TEST(Gpu, LargeProblems) {
  Random random(from_environment("CENOTE_TEST_SEED", 2026) * 1000 + 12);
  for (std::uint64_t i = 0; i < from_environment("CENOTE_TEST_PROBLEMS", 1500) / 25; ++i) {
    expect_right(draw_problem(random, Extent::large));
  }
}

/// Every kernel the backend chooses from, at sizes that are no multiple of anything.
const char* const kEveryKernel[] = {
    "max2d f16 nhwc n1c64 h60w70 k13 s1 p6 ties",
    "avg2d bf16 nhwc n1c64 h60w70 k9 s1 p4 nopad",
    "max2d f32 nhwc n1c8 h9w60 k1x23 s1 p0x11 ties",
    "max2d f32 nchw n2c5 h31w33 k2",
    "max2d f32 nchw n2c5 h32w34 k2",
    "max2d f32 nhwc n2c8 h31w33 k2",
    "max2d f32 nchw n2c5 h31w33 k3 s2 p1",
    "max2d f32 nchw n2c5 h32w34 k3 s2 p1",
    "max2d f32 nchw n2c5 h31w33 k3 s2",
    "max2d f32 nchw n2c5 h32w34 k3 s2 ceil",
    "max2d f32 nhwc n2c8 h32w34 k3 s2 p1",
    "max2d f16 nhwc n2c16 h31w33 k3 s2",
    "max2d f32 nchw n2c5 h31w33 k3 s1 p1 ties",
    "max2d bf16 nhwc n2c16 h31w33 k3 s1 p1 ties",
    "max2d f16 nchw n2c5 h31w34 k3 s1",
    "max2d f32 nchw n2c5 h31w33 k3 s2 p1 nan",
    "max2d f32 nhwc n2c4 h31w33 k3 s1 p1 nan",
    "max2d f32 nchw n1c2 h20w20 k13 s1 p6 ties",
    "max2d f32 nhwc n1c4 h20w20 k9 s1 p4 nan",
    "max2d f32 nchw n1c2 h70w90 k31 s1 p15",
    "max2d f32 nhwc n1c4 h50w60 k15 s1 p7 zeros",
    "max2d f64 nchw n1c2 h30w33 k7 s1 p3",
    "max2d f16 nchw n1c2 h30w33 k7 s1 p3 ties",
    "max2d bf16 nchw n1c3 h30w33 k11x5 s1x2 p5x2",
    "max2d u8 nchw n2c5 h31w33 k3 s2 p1",
    "max2d u8 nhwc n2c16 h31w33 k3 s2 p1",
    "max2d i8 nhwc n2c32 h31w33 k3 s1 p1",
    "max2d i64 nhwc n2c4 h31w33 k3 s2 p1",
    "min2d f32 nchw n2c5 h31w33 k3 s2 p1 nan",
    "min2d bf16 nhwc n2c8 h31w33 k2 zeros",
    "max3d f32 ncdhw n2c3 d7h15w17 k2",
    "max3d f32 ncdhw n2c3 d7h15w17 k3 s2 p1",
    "max3d f32 ndhwc n2c4 d7h15w17 k3 s2 p1",
    "max3d f32 ncdhw n2c3 d7h15w17 k1x3x3 s1x2x2 p0x1x1",
    "max3d f16 ndhwc n2c8 d5h9w10 k2",
    "max1d f32 ncw n2c5 w1001 k4",
    "max1d f32 ncw n2c5 w1000 k2",
    "max1d f16 ncw n2c5 w1003 k64 s1",
    "avg1d f32 ncw n2c5 w1003 k64 s1",
    "avg1d f32 ncw n2c5 w1003 k64 s1 p32 nopad",
    "avg2d f32 nchw n2c5 h31w33 k3 s1 p1",
    "avg2d f16 nchw n2c5 h31w33 k3 s1 p1 nopad",
    "avg2d f32 nhwc n2c8 h31w33 k3 s1 p1",
    "avg2d f32 nchw n2c5 h31w33 k2",
    "avg2d f16 nhwc n2c8 h32w34 k2",
    "avg2d f32 nchw n2c5 h56w56 k7",
    "avg2d f32 nhwc n2c8 h56w56 k7",
    "avg2d f32 nchw n1c3 h60w61 k15 s1 p7",
    "avg2d f32 nhwc n1c8 h60w61 k15 s1 p7 nopad",
    "avg2d bf16 nchw n1c3 h40w41 k9 s1 p4 nopad",
    "sum2d f32 nchw n2c5 h31w33 k3 s2 p1",
    "sum2d i32 nchw n2c5 h31w33 k3 s1 p1",
    "avg2d i64 nchw n2c5 h31w33 k3 s1 p1",
    "avg3d f32 ncdhw n2c3 d8h14w16 k2",
    "avg3d f64 ndhwc n2c4 d8h14w16 k3 s2 p1",
    "aavg2d f32 nchw n3c7 h7w7 out1",
    "aavg2d f32 nhwc n3c8 h7w7 out1",
    "aavg2d f16 nchw n3c7 h7w7 out1",
    "amax2d f32 nchw n3c7 h14w14 out1 ties",
    "amax2d f32 nhwc n3c8 h14w14 out1 nan",
    "amax2d f32 nchw n3c7 h14w14 out1 zeros",
    "amax2d f32 nchw n2c5 h56w56 out7 ties",
    "amax2d f32 nhwc n2c8 h56w56 out7",
    "aavg2d f32 nchw n2c5 h14w14 out5",
    "aavg2d f32 nhwc n2c8 h14w14 out5",
    "aavg2d f32 nchw n2c5 h60w60 out6",
    "amax2d bf16 nchw n2c5 h100w99 out3x2 nan",
    "aavg3d f32 ncdhw n2c3 d8h9w10 out1",
    "lp2d f32 nchw n2c5 h30w32 k2 norm2",
    "lp2d f32 nhwc n2c8 h30w32 k3 s2 norm3",
    "lp1d f16 ncw n2c5 w100 k3 s1 norm2",
    "max2d f32 nchw n1c2 h200w300 k9 s2 p4",
    "max2d f32 nchw n2c3 h30w32 k2",
    "max2d f16 nhwc n2c16 h31w33 k3 s2 p1 nan",
    "max1d f32 ncw n2c5 w64 k4 ties",
    "avg1d f16 ncw n2c5 w64 k2",
    "max1d u8 ncw n2c5 w48 k4",
    "lp1d f32 ncw n2c5 w64 k4 norm2",
    "max2d bf16 nhwc n2c8 h30w33 k2 zeros",
    "max2d f16 nhwc n2c24 h30w33 k3 s1 p1 neginf",
    "max3d bf16 ndhwc n2c8 d5h9w10 k3 s2 p1 ties",
    "max2d f16 nchw n2c3 h32w32 k3 s2 p1",
    "max2d bf16 nchw n2c3 h32w40 k3 s2 p1 nan",
    "max2d f32 nchw n2c3 h13w20 k3 s1 p1 zeros",
    "avg2d f32 nchw n2c3 h24w32 k3 s2 p1 nopad",
    "avg2d f16 nchw n2c3 h24w32 k2",
    "avg2d f32 nchw n2c3 h24w32 k3 s1 p1 nopad",
    "max2d f32 nchw n2c3 h16w2000 k3 s2 ceil",
    "max3d f32 ncdhw n2c3 d6h16w16 k3 s2 p1 nan",
    "max3d f32 ncdhw n2c3 d6h16w24 k2",
    "unpool2d f32 nchw n2c3 h12w16 k2",
    "unpool2d f16 nchw n2c3 h12w16 k2",
    "avg2d f32 nchw n2c3 h30w35 k4x5 s5x6 p2",
    "max2d f32 nchw n3c5 h48w40 k8",
    "max2d f32 nchw n3c5 h40w44 k3 s5 p1",
    "aavg3d f16 ncdhw n3c7 d2h3w5 out1",
    "avg1d f32 ncw n3c5 w5000 k4",
    "max1d f16 ncw n3c5 w5000 k4 s5",
    "max2d f16 nhwc n1c5 h70w80 k7x9 s1 p3x4 neginf",
    "max2d f32 nchw n3c2 h33w35 k5 s1 p2 zeros",
    "avg2d f16 nhwc n2c3 h40w50 k8x5 s1 p4x2",
    "avg2d f32 nchw n2c3 h40w50 k6 s1",
    "avg1d bf16 ncw n3c5 w500 k33 s2 p16 ceil",
    "max1d f32 ncw n3c50 w500 k33 s1 p16 nan",
    "max1d f32 ncw n64c512 w8 k8 s8 d2 ceil ties",
    "avg1d f32 ncw n64c512 w8 k8 s8 d2 ceil",
    "max2d f32 nchw n64c512 h1w9 k3x9 p1x0 idx:window ties",
    "avg2d f32 nchw n64c512 h1w9 k4x9 s2x9 p1x0 ceil",
    "max2d f16 nhwc n2c20 h7w7 k5 s1 p2 ties",
    "fmax2d f32 nchw n2c5 h40w41 k2 out17x19",
    "fmax3d f16 ncdhw n2c3 d9h10w11 k2 out4x5x6",
    "unpool2d f32 nchw n2c5 h18w24 k2",
    "unpool2d f32 nhwc n2c8 h18w24 k2",
    "unpool2d f32 nchw n2c5 h18w24 k3 s2",
    "unpool2d f16 nchw n1c2 h300w200 k2",
    "unpool1d i32 ncw n2c3 w100 k2",
    "unpool3d f32 ncdhw n2c3 d4h5w6 k2",
    "max2d f32 nchw n3c5 h40w50 k3 s2 p1 ties",
    "max2d f32 nchw n3c5 h41w99 k3 s2 ceil nan",
    "max2d f16 nchw n3c5 h40w48 k3 s2 p1 zeros",
    "max2d bf16 nchw n3c5 h40w48 k3 s1 p1 ties",
    "max2d f32 nhwc n2c12 h45w37 k3 s1 p1 ties",
    "max2d f16 nhwc n2c12 h45w37 k3 s2 p1 ties",
    "max2d f32 nhwc n2c7 h45w37 k3 s2 nan",
    "max2d f32 nhwc n2c8 h45w37 k2 p1 zeros",
    "max2d f32 nhwc n2c8 h45w38 k3 s2 p0x1:1x0",
    "max3d f32 ncdhw n2c3 d6h20w40 k1x3x3 s1x2x2 p0x1x1 ties",
    "max3d f32 ndhwc n2c4 d7h15w17 k2x3x3 s2 p1 nan",
    "max3d f32 ndhwc n2c4 d7h15w17 k2 idx:window",
    "avg3d f32 ndhwc n2c4 d7h15w17 k2x3x3 s2 p1 nopad",
    "avg2d f16 nhwc n2c16 h33w35 k3 s1 p1 extreme",
    "avg2d f16 nhwc n2c16 h33w35 k3 s2 p1 inf",
    "avg2d bf16 nchw n3c5 h35w35 k3 s1 p1 tiny",
    "avg2d f32 nhwc n2c12 h20w21 k3 s2 p1 div7",
    "avg2d f32 nchw n3c5 h30w36 k3 s2 p1 nopad",
    "avg2d f16 nchw n3c5 h56w56 k2",
    "avg2d f32 nchw n2c5 h60w60 k10",
    "max2d f32 nchw n2c5 h60w60 k10 ties",
    "max2d f16 nchw n2c5 h61w56 k8x7 s9x7 p3 nan",
    "avg2d f32 nchw n2c5 h30w60 k5x4 s6x5 p2 nopad",
    "aavg2d f32 nhwc n2c12 h14w17 out5x6",
    "amax2d f32 nhwc n2c12 h14w17 out5x6 ties",
    "amax2d f16 nhwc n2c12 h14w17 out1 nan",
    "amax2d f32 nchw n3c7 h14w14 out5 zeros",
    "amax2d f16 nchw n3c7 h23w30 out4x7 nan",
    "aavg2d f16 nchw n3c7 h23w31 out4x7",
    "aavg3d f32 ndhwc n2c8 d5h9w10 out2x3x4",
    "amax2d f16 nchw n31c7 h3w3 out1 ties",
    "avg3d f32 ndhwc n2c12 d8h14w18 k2",
    "avg3d f16 ndhwc n2c40 d5h9w70 k3 s2 p1 nopad",
    "amax2d f32 nhwc n2c8 h60w60 out6 ties",
    "amax2d bf16 nhwc n2c16 h61w60 out6x5 nan",
    "max2d f32 nhwc n2c8 h40w40 k6 s5 p3 neginf",
    "lp2d f32 nchw n2c5 h30w33 k2x3 norm3",
    "lp2d f16 nhwc n2c5 h30w32 k2 norm2",
    "lp3d f32 ncdhw n2c3 d4h6w8 k2 norm2",
    "max2d f32 nchw n3c70 h20w20 k5 s1 p2 ties",
    "max2d f16 nchw n3c70 h20w20 k5 s1 p2 nan",
    "max2d f64 nhwc n2c7 h20w24 k6x5 s1 p3x2 zeros",
    "max2d f32 nhwc n1c3 h90w100 k31 s1 p15 nan",
    "max2d f32 nchw n1c3 h60w100 k17x1 s1 p8x0 ties",
    "max2d f32 nchw n1c3 h60w100 k1x23 s1 p0x11 ties",
    "avg2d f32 nhwc n1c17 h60w40 k13 s1 p6 nopad",
    "avg2d f16 nchw n1c3 h60w100 k25x9 s2x1 p12x4",
    "sum1d f32 ncw n40c3 w900 k65 s1 p32",
    "max2d f32 nchw n2c5 h31w33 k3 s1 p1 d2",
    "max2d f32 nhwc n2c8 h31w33 k3 s1 p1 d2",
    "max2d f32 nchw n16c129 h14w14 k2 ties",
    "max2d f16 nchw n16c129 h14w14 k2 nan",
    "max2d f32 nchw n16c129 h14w14 k2 idx:window",
    "avg2d f32 nchw n16c129 h14w14 k2",
    "avg2d bf16 nchw n16c129 h14w14 k2",
    "max2d f32 nchw n67c128 h8w8 k5 s1 p2 ties",
    "max2d f16 nchw n67c127 h8w7 k5 s1 p2",
    "max2d f64 nchw n67c128 h8w8 k4 s1 nan",
    "max2d f32 nhwc n133c40 h8w8 k5 s1 p2 zeros",
    "max2d bf16 nhwc n266c8 h7w9 k4x5 s1 p2 ties",
    "max2d f32 nchw n67c128 h8w8 k5 s1 p2 idx:window",
    "max2d f32 nchw n3c40 h70w50 k9 s1 p4 ties",
    "max2d f16 nhwc n3c20 h70w50 k9x17 s1x2 p4x8 ties",
    "max2d f32 nchw n1c3 h80w90 k31 s1 p15 idx:window",
    "avg1d f32 ncw n2c5 w4003 k64 s1",
    "avg1d f16 ncw n2c5 w5000 k33 s1 p16 nopad",
    "avg1d f32 ncw n1c3 w9000 k80 s1 p40",
    "sum1d bf16 ncw n2c3 w4100 k16 s1",
    "aavg2d f16 nchw n3c7 h19w23 out5x7",
    "aavg2d bf16 nhwc n3c16 h19w23 out18x7",
    "aavg2d f32 nhwc n3c12 h40w23 out17x3",
    "aavg2d f32 nchw n2c5 h9w9 out9x4",
    "aavg2d f32 nchw n2c5 h5w9 out7x4",
    "avg2d f32 nchw n3c5 h37w35 k3 s1 p1",
    "avg2d f16 nhwc n3c8 h37w35 k3 s1 p1 nopad",
    "avg2d f16 nchw n3c5 h37w35 k3 s1 p0x1 extreme",
    "avg1d f32 ncw n3c5 w4000 k4",
    "max1d f16 ncw n3c5 w4000 k2 nan",
    "avg2d f16 nhwc n3c16 h20w22 k2",
    "lp2d f16 nchw n2c5 h30w32 k2 norm2",
    "lp2d f32 nchw n2c5 h30w32 k2 norm3",
    "avg3d f32 ndhwc n2c33 d8h14w40 k2",
    "avg2d f32 nhwc n2c8 h60w60 k10",
    "max2d f32 nhwc n2c8 h60w60 k10 nan",
    "max2d f32 nchw n1c9 h17w24 k9 s1 p0x0:0x0 ties",
    "avg2d f32 nchw n1c9 h17w24 k9 s1 p0x0:0x0",
    "max2d f32 nchw n1c9 h17w24 k9 s1 p1x1:3x3 zeros",
    "avg2d f32 nchw n1c9 h17w24 k9 s1 p1x1:3x3",
    "max2d f32 nchw n1c9 h17w24 k9 s1 p2x2:2x2 nan",
    "avg2d f32 nchw n1c9 h17w24 k9 s1 p2x2:2x2",
    "max2d f32 nchw n1c9 h17w24 k9 s1 p3x3:1x1",
    "avg2d f32 nchw n1c9 h17w24 k9 s1 p3x3:1x1",
    "max2d f32 nchw n1c9 h17w24 k10 s1 p0x0:1x1 zeros",
    "avg2d f32 nchw n1c9 h17w24 k10 s1 p0x0:1x1",
    "max2d f32 nchw n1c9 h17w24 k10 s1 p1x1:0x0 nan",
    "avg2d f32 nchw n1c9 h17w24 k10 s1 p1x1:0x0",
    "max2d f32 nchw n1c9 h17w24 k10 s1 p2x2:3x3",
    "avg2d f32 nchw n1c9 h17w24 k10 s1 p2x2:3x3",
    "max2d f32 nchw n1c9 h17w24 k10 s1 p3x3:2x2 ties",
    "avg2d f32 nchw n1c9 h17w24 k10 s1 p3x3:2x2",
    "max2d f32 nchw n1c9 h17w24 k11 s1 p0x0:2x2 nan",
    "avg2d f32 nchw n1c9 h17w24 k11 s1 p0x0:2x2",
    "max2d f32 nchw n1c9 h17w24 k11 s1 p1x1:1x1",
    "avg2d f32 nchw n1c9 h17w24 k11 s1 p1x1:1x1",
    "max2d f32 nchw n1c9 h17w24 k11 s1 p2x2:0x0 ties",
    "avg2d f32 nchw n1c9 h17w24 k11 s1 p2x2:0x0",
    "max2d f32 nchw n1c9 h17w24 k11 s1 p3x3:3x3 zeros",
    "avg2d f32 nchw n1c9 h17w24 k11 s1 p3x3:3x3",
    "max2d f32 nchw n1c9 h17w24 k12 s1 p0x0:3x3",
    "avg2d f32 nchw n1c9 h17w24 k12 s1 p0x0:3x3",
    "max2d f32 nchw n1c9 h17w24 k12 s1 p1x1:2x2 ties",
    "avg2d f32 nchw n1c9 h17w24 k12 s1 p1x1:2x2",
    "max2d f32 nchw n1c9 h17w24 k12 s1 p2x2:1x1 zeros",
    "avg2d f32 nchw n1c9 h17w24 k12 s1 p2x2:1x1",
    "max2d f32 nchw n1c9 h17w24 k12 s1 p3x3:0x0 nan",
    "avg2d f32 nchw n1c9 h17w24 k12 s1 p3x3:0x0",
    "max2d f32 nchw n1c13 h20w20 k5 s1 p2 ties",
    "max2d f32 nchw n1c13 h20w20 k7 s1 p3 neginf",
    "max2d f32 nchw n1c1 h140w160 k31 s1 p15 ties",
    "max2d f16 nchw n1c5 h40w36 k7 s1 p3 zeros",
    "max2d bf16 nchw n1c5 h40w36 k6 s1 p3x3:2x2 nan",
    "avg2d f32 nchw n1c1 h140w160 k15 s1 p7 nopad",
    "avg2d f16 nchw n1c5 h40w36 k8 s1 p4x4:3x3 nopad",
    "max2d f32 nhwc n1c12 h20w20 k13 s1 p6 zeros",
    "max2d f32 nhwc n2c40 h20w21 k5 s1 p2 nan",
    "max2d f32 nhwc n1c16 h140w70 k15 s1 p7 ties",
    "max2d f16 nhwc n1c8 h40w41 k7 s1 p3 neginf",
    "max2d bf16 nhwc n1c16 h40w41 k6 s1 p3x3:2x2 ties",
    "avg2d f32 nhwc n1c16 h140w70 k15 s1 p7",
    "avg2d f16 nhwc n1c8 h40w41 k7 s1 p3 nopad",
    "max2d f32 nhwc n1c16 h140w70 k15 s1 p7 nan",
    "max2d f32 nhwc n2c8 h40w90 k7x9 s1 p3x4 ties",
    "avg2d f32 nhwc n2c8 h40w90 k5 s1 p2 nopad",
    "avg2d f32 nhwc n1c20 h37w19 k9x17 s1 p4x8",
    "aavg2d f32 nhwc n3c24 h7w7 out1",
    "amax2d f32 nhwc n3c23 h14w14 out1 zeros",
    "amax2d f16 nhwc n3c40 h10w10 out1 nan",
    "amax2d f32 nhwc n2c12 h14w28 out1x2 ties",
    "aavg2d bf16 nhwc n3c16 h16w24 out2x3",
    "avg3d f32 ndhwc n2c8 d6h8w8 k3x4x4",
    "max2d f32 nhwc n2c8 h45w47 k11 neginf",
    "max2d f32 nchw n2c5 h32w32 k3 s2 p1 idx:window ties",
    "max2d f16 nchw n2c5 h32w32 k2 idx:window nan",
    "max2d f32 nchw n2c5 h28w28 k3 s1 p1 idx:window ties",
    "max3d f32 ncdhw n1c3 d6h16w16 k2 idx:window",
    "max2d f16 nchw n2c3 h37w48 k3 s2 p1 neginf",
    "max2d bf16 nchw n2c3 h31w24 k3 s2 p1 zeros",
    "max3d f16 ncdhw n2c3 d3h31w32 k1x3x3 s1x2x2 p0x1x1 nan",
    "max2d u8 nchw n2c3 h37w64 k3 s2 p1 ties",
    "max2d i8 nchw n2c3 h30w48 k3 s2 p1",
    "max2d i8 nchw n2c3 h31w96 k3 s2 p1 ties",
};

// Backwards large enough for tiles of cells in shared memory: rows that begin anywhere, cut rows, several planes and slices, windows that
// hang over; and forwards with indices of such rows.
const char* const kCells[] = {
    "max2d f32 nchw n3c9 h55w55 k3 s2 ties",
    "max2d f32 nchw n1c7 h109w109 k3 s2 ceil nan",
    "max2d f32 nchw n2c3 h112w112 k3 s2 p1 ties",
    "max2d f32 nchw n1c3 h99w301 k3 s2 p1 ties",
    "max2d f32 nchw n1c3 h67w523 k3 s2 p0x1:1x0 ceil",
    "max2d f32 nchw n1c3 h80w600 k3 s2 idx:window ties",
    "max2d f32 nchw n2c50 h28w28 k3 s1 p1 ties",
    "max2d f32 nchw n2c50 h27w31 k3 s1 zeros",
    "max2d f32 nchw n1c3 h130w190 k3 s1 p1 ties",
    "max2d f32 nchw n40c30 h17w9 k3 s1 p1 ties",
    "max2d f32 nchw n40c30 h7w19 k3 s2 p1 idx:window ties",
    "max2d f32 nchw n45c101 h7w19 k3 s2 p1 ties",
    "max2d f16 nchw n45c101 h9w11 k3 s1 idx:window ties",
    "max3d f32 ncdhw n15c101 d3h9w11 k1x3x3 s1 ties",
    "max2d f32 nchw n3c9 h55w55 k3 s2 p2:0 ties",
    "max2d f32 nhwc n2c20 h43w51 k3 s1 p2:0 ties",
    "max2d f16 nchw n3c9 h55w55 k3 s2 ties",
    "max2d f16 nchw n2c7 h71w83 k3 s1 p1 nan",
    "max2d bf16 nchw n1c3 h99w531 k3 s2 p1 ties",
    "max2d bf16 nchw n3c9 h55w55 k3 s2 p1 idx:window",
    "min2d f32 nchw n3c9 h55w57 k3 s2 p1 ties",
    "max3d f32 ncdhw n2c5 d7h41w43 k1x3x3 s1x2x2 p0x1x1 ties",
    "max3d f16 ncdhw n2c5 d7h41w43 k1x3x3 s1 ties",
    "max2d f32 nhwc n2c20 h43w51 k3 s1 p1 ties",
    "max2d f32 nhwc n2c36 h43w51 k3 s1 p0x1:1x0 nan",
    "max2d f16 nhwc n2c12 h83w51 k3 s1 p1 ties",
    "max2d bf16 nhwc n2c72 h33w31 k3 s1 idx:window ties",
    "max3d f32 ndhwc n2c20 d9h23w21 k3 s2 p1 ties",
    "max3d f32 ndhwc n2c36 d8h23w21 k3 s2 ceil nan",
    "max3d f32 ndhwc n2c20 d9h23w21 k3 s1 p1 ties",
    "max3d f16 ndhwc n2c68 d7h23w21 k3 s2 p1 idx:window ties",
    "max3d bf16 ndhwc n2c12 d9h23w21 k2x3x3 s1x2x2 p1 ties",
    "max3d f32 ndhwc n2c12 d9h23w21 k3 s3x2x2 p1 ties",
};

// Enough results for the kernels that many small planes take.
const char* const kManyPlanes[] = {
    "avg2d f32 nchw n4c17 h35w35 k3 s1 p1",        "avg2d f16 nchw n4c17 h35w35 k3 s1 p1 nopad",
    "avg2d bf16 nchw n4c17 h33w37 k3 s1 p1x1:0x1", "aavg2d f32 nchw n33c513 h7w7 out1",
    "aavg2d f16 nchw n33c513 h7w7 out1",           "amax2d f32 nchw n17c513 h10w10 out1 zeros",
    "amax2d f32 nchw n17c513 h10w10 out1 nan",     "amax2d bf16 nchw n33c513 h5w7 out1 ties",
    "amax2d f32 nchw n33c65 h33w33 out1 ties",     "max2d f32 nchw n66c129 h9w7 k5 s1 p2 ties",
    "max2d f16 nchw n66c129 h7w9 k5 s1 p2 ties",   "max2d f64 nchw n66c129 h7w6 k5 s1 p2",
    "aavg2d f32 nchw n16c33 h14w14 out5",          "aavg2d f16 nchw n16c33 h14w14 out5",
    "aavg2d f32 nchw n70c17 h13w17 out5x4",        "aavg2d f32 nchw n33c8192 h8w8 out1",
    "amax2d f32 nhwc n33c1024 h23w23 out1 ties",
};

TEST(Gpu, EveryKernel) {
  for (const char* line : kEveryKernel) expect_right(line);
}

TEST(Gpu, TilesOfCells) {
  for (const char* line : kCells) expect_right(line);
}

TEST(Gpu, ManySmallPlanes) {
  for (const char* line : kManyPlanes) expect_right(line);
}

TEST(Gpu, SameBitsTwentyTimes) {
  const std::vector<Setting> settings(20, Setting{"", nullptr, &aligned()});
  for (const char* line : kEveryKernel) EXPECT_EQ(check_problem(parse_problem(line), settings), "") << line;
  for (const char* line : kCells) EXPECT_EQ(check_problem(parse_problem(line), settings), "") << line;
}

/// A refused run touches nothing but its result, and says so afterwards, once.
TEST(Gpu, IndicesOutsideTheirWindowsAreReported) {
  for (const char* line :
       {"max2d f32 nchw n2c3 h12w12 k3 s2 p1", "max2d f32 nhwc n2c4 h12w12 k2", "max2d f32 nchw n2c3 h20w20 k13 s1 p6",
        "max2d f32 nchw n67c128 h8w8 k5 s1 p2", "max2d f32 nchw n16c129 h14w14 k2", "max1d f32 ncw n2c3 w64 k4",
        "max2d f32 nchw n3c9 h55w55 k3 s2", "max2d f32 nchw n45c101 h7w19 k3 s2 p1",
        "max2d f32 nhwc n2c20 h43w51 k3 s1 p1", "max3d f32 ndhwc n2c20 d9h23w21 k3 s2 p1",
        "amax2d f32 nchw n2c3 h12w12 out5", "fmax2d f32 nchw n2c3 h12w12 k2 out5", "max1d f64 ncw n2c3 w20 k3 s1",
        "unpool2d f32 nchw n2c3 h6w6 k2"}) {
    const Problem problem = parse_problem(line);
    const Pool pool = reference::resolve(problem.spec, problem.dtype, problem.shape);
    Given<double> given = draw_given<double>(problem, pool);
    const Expectation<double> expectation = expect_reference(problem, pool, given);
    for (std::int64_t bad : {std::int64_t{-2}, std::int64_t{144000}, std::int64_t{1} << 40, INT64_MIN}) {
      Integers flat = expectation.flat.empty() ? given.flat : expectation.flat;
      flat[flat.size() / 2] = bad;
      for (Gpu* gpu : {&aligned(), &misaligned()}) {
        const Setting setting{"", nullptr, gpu};
        const Outcome<double> outcome = run_backward(problem, given, IndexKind::flat64, flat, setting);
        EXPECT_NE(outcome.trouble.find("index outside"), std::string::npos)
            << line << " index " << bad << ": " << outcome.trouble;
        if (problem.spec.op == Op::max_unpool) {
          Given<double> wrong = given;
          wrong.flat = flat;
          const Outcome<double> forward = run_forward(problem, wrong, IndexKind::flat64, setting);
          EXPECT_NE(forward.trouble.find("index outside"), std::string::npos)
              << line << " index " << bad << ": " << forward.trouble;
        }
      }
    }
  }
}

/// The same for taps: behind the window's last one, and inside the window but outside the input. 255 is "none".
TEST(Gpu, TapsOutsideTheirWindowsAreReported) {
  for (const auto& [line, taps] : {std::pair{"max2d f32 nchw n2c3 h32w32 k3 s2 p1", 9},
                                   {"max2d f16 nchw n2c3 h32w32 k3 s2 p1", 9},
                                   {"max2d f32 nchw n2c3 h32w32 k2", 4},
                                   {"max3d f32 ncdhw n1c3 d6h16w16 k2", 8},
                                   {"max2d f32 nhwc n2c8 h32w32 k3 s2 p1", 9},
                                   {"max2d f32 nchw n3c9 h55w55 k3 s2 p1", 9},
                                   {"max2d f32 nhwc n2c20 h43w51 k3 s1 p1", 9},
                                   {"max3d f32 ndhwc n2c20 d9h23w21 k3 s2 p1", 27},
                                   {"max2d f32 nchw n2c3 h20w20 k13 s1 p6", 169}}) {
    const Problem problem = parse_problem(line);
    const Pool pool = reference::resolve(problem.spec, problem.dtype, problem.shape);
    const Given<double> given = draw_given<double>(problem, pool);
    const Expectation<double> expectation = expect_reference(problem, pool, given);
    auto trouble = [&](std::size_t at, std::int64_t tap) {
      Integers ordinal = expectation.ordinal;
      ordinal[at] = tap;
      return run_backward(problem, given, IndexKind::window, ordinal, {"", nullptr, &aligned()}).trouble;
    };
    const std::size_t middle = expectation.ordinal.size() / 2;
    for (const std::int64_t bad : {std::int64_t{taps}, std::int64_t{taps} + 1, std::int64_t{254}}) {
      EXPECT_NE(trouble(middle, bad).find("index outside"), std::string::npos) << line << " tap " << bad;
    }
    const bool padded = problem.spec.padding.begin.values[0].value > 0;
    if (padded) {
      EXPECT_NE(trouble(0, 0).find("index outside"), std::string::npos) << line << " a tap in the padding";
    }
    EXPECT_EQ(trouble(middle, 255), "") << line << " none";
  }
}

/// Plain maxima are given up where the first NaN or -0 appears, here after most of the results have been stored.
TEST(Gpu, LateNanAndNegativeZero) {
  for (const char* line : {"max2d f32 nhwc n1c16 h140w70 k15 s1 p7", "max2d f32 nchw n1c3 h140w72 k15 s1 p7"}) {
    for (const double late : {std::numeric_limits<double>::quiet_NaN(), -0.0}) {
      const Problem problem = parse_problem(line);
      const Pool pool = reference::resolve(problem.spec, problem.dtype, problem.shape);
      Given<double> given = draw_given<double>(problem, pool);
      given.input.back() = late;
      const Expectation<double> expectation = expect_reference(problem, pool, given);
      EXPECT_EQ(check_call(problem, given, expectation, {"", nullptr, &aligned()}, nullptr), "") << line << " " << late;
    }
  }
}

TEST(Gpu, SamplesOutsideTheirRangeAreReported) {
  const Problem problem = parse_problem("fmax2d f32 nchw n2c3 h12w12 k2 out5");
  const Pool pool = reference::resolve(problem.spec, problem.dtype, problem.shape);
  for (double bad :
       {1.0, -0.25, 1e30, -1e30, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Given<double> given = draw_given<double>(problem, pool);
    given.samples[3] = bad;
    const Outcome<double> outcome = run_forward(problem, given, IndexKind::flat64, {"", nullptr, &aligned()});
    EXPECT_NE(outcome.trouble.find("random sample"), std::string::npos) << bad << ": " << outcome.trouble;
  }
}

/// Indices no pool made: anywhere in the plane, many in one place.
TEST(Gpu, UnpoolTakesTheLastOfManyAnywhere) {
  for (const char* line : {"unpool2d f32 nchw n2c3 h10w11 k2", "unpool2d f32 nhwc n2c8 h10w11 k2",
                           "unpool2d f16 nchw n1c2 h90w91 k2 s3"}) {
    const Problem problem = parse_problem(line);
    const Pool pool = reference::resolve(problem.spec, problem.dtype, problem.shape);
    Given<double> given = draw_given<double>(problem, pool);
    Random random(7);
    for (std::int64_t& index : given.flat) index = random.between(0, pool.input_plane() - 1) / 3;
    const std::vector<double> expected = reference::unpool(pool, given.input, given.flat);
    for (Gpu* gpu : {&aligned(), &misaligned()}) {
      const Outcome<double> outcome = run_forward(problem, given, IndexKind::flat64, {"", nullptr, gpu});
      EXPECT_EQ(outcome.trouble, "") << line;
      EXPECT_EQ(outcome.result, expected) << line;
    }
  }
}

/// Indices that lie in their windows, but that no pool made: each output names some element of its window.
TEST(Gpu, BackwardTakesAnyElementOfTheWindow) {
  for (const char* line : {"max2d f32 nchw n2c3 h20w20 k7 s1 p3", "max2d f16 nchw n2c3 h20w20 k7 s1 p3",
                           "max2d f32 nchw n67c128 h8w8 k5 s1 p2", "max2d f16 nhwc n133c40 h8w8 k5 s1 p2",
                           "max2d f16 nchw n16c129 h14w14 k2", "max2d bf16 nhwc n2c4 h33w20 k9 s1 p4",
                           "max2d f32 nhwc n2c8 h21w23 k3 s2 p1", "max2d f16 nchw n2c3 h24w32 k3 s1 p1",
                           "amax2d f32 nhwc n2c4 h14w14 out5", "max2d f32 nchw n2c3 h24w32 k4",
                           "max2d f32 nchw n3c9 h55w55 k3 s2", "max2d bf16 nchw n2c7 h71w83 k3 s1 p1",
                           "max2d f32 nhwc n2c20 h43w51 k3 s1 p1", "max3d f16 ndhwc n2c20 d9h23w21 k3 s2 p1"}) {
    const Problem problem = parse_problem(line);
    const Pool pool = reference::resolve(problem.spec, problem.dtype, problem.shape);
    const Given<double> given = draw_given<double>(problem, pool);
    Integers flat;
    Random random(11);
    auto any_of = [&](const reference::Window& window, std::int64_t size) {
      std::int64_t tap = -1;
      while (tap < 0 || tap >= size) {
        tap =
            window.taps[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(window.taps.size()) - 1))];
      }
      return tap;
    };
    reference::for_each_box(pool, {}, [&](const reference::Box& box) {
      const std::int64_t z = any_of(*box.depth, pool.input[0]), y = any_of(*box.height, pool.input[1]);
      flat.push_back((z * pool.input[1] + y) * pool.input[2] + any_of(*box.width, pool.input[2]));
    });
    const Outcome<double> expected = run_backward(problem, given, IndexKind::flat64, flat, {});
    ASSERT_EQ(expected.trouble, "") << line;
    for (Gpu* gpu : {&aligned(), &misaligned()}) {
      const Outcome<double> outcome = run_backward(problem, given, IndexKind::flat64, flat, {"", nullptr, gpu});
      EXPECT_EQ(outcome.trouble, "") << line;
      EXPECT_EQ(outcome.result, expected.result) << line;
    }
  }
}

/// One plan, its buffers on the device, and a stream.
struct Prepared {
  Plan plan;
  DeviceArray input, output;
  std::int64_t bytes;

  Prepared(const TensorDesc& desc, const PoolSpec& spec, std::uint64_t seed)
      : plan(Plan::make(Pass::forward, desc, spec)),
        input(desc.numel() * 4),
        output(plan.output().numel() * 4),
        bytes(plan.output().numel() * 4) {
    std::vector<float> values(static_cast<std::size_t>(desc.numel()));
    Random random(seed);
    for (float& value : values) value = static_cast<float>(random.uniform());
    require(cudaMemcpy(input.as(), values.data(), values.size() * 4, cudaMemcpyHostToDevice), "sending");
    clear();
  }
  void clear() { require(cudaMemset(output.as(), 0xa5, static_cast<std::size_t>(bytes)), "clearing"); }
  std::vector<std::uint32_t> result() const {
    std::vector<std::uint32_t> bits(static_cast<std::size_t>(bytes / 4));
    require(cudaMemcpy(bits.data(), output.as(), static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost), "fetching");
    return bits;
  }
};

TEST(Gpu, RunsCanBeCapturedInAGraph) {
  const TensorDesc desc = TensorDesc::contiguous(DType::f32, {4, 8, 57, 59}, cuda);
  Prepared prepared(desc, to_spec(MaxPool<2>{.kernel_size = 3, .stride = 2, .padding = 1}), 1);
  ASSERT_TRUE(prepared.plan.run({.input = prepared.input.as(), .output = prepared.output.as()}).ok());
  const auto expected = prepared.result();
  prepared.clear();
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  require(cudaStreamCreate(&stream), "creating a stream");
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capturing");
  for (int i = 0; i < 20; ++i) {
    const Status status =
        prepared.plan.run({.input = prepared.input.as(), .output = prepared.output.as(), .stream = stream});
    EXPECT_TRUE(status.ok()) << status.message();
  }
  require(cudaStreamEndCapture(stream, &graph), "ending the capture");
  std::size_t nodes = 0;
  require(cudaGraphGetNodes(graph, nullptr, &nodes), "counting");
  EXPECT_EQ(nodes, 20U);
  require(cudaGraphInstantiate(&exec, graph, 0), "instantiating");
  require(cudaGraphLaunch(exec, stream), "replaying");
  require(cudaStreamSynchronize(stream), "waiting");
  EXPECT_EQ(prepared.result(), expected);
  require(cudaGraphExecDestroy(exec), "destroying");
  require(cudaGraphDestroy(graph), "destroying");
  require(cudaStreamDestroy(stream), "destroying");
}

TEST(Gpu, TwoStreamsAtOnce) {
  const TensorDesc desc = TensorDesc::contiguous(DType::f32, {8, 16, 100, 101}, cuda);
  const PoolSpec spec = to_spec(AvgPool<2>{.kernel_size = 3, .stride = 1, .padding = 1});
  Prepared one(desc, spec, 1), two(desc, spec, 2);
  for (Prepared* p : {&one, &two}) ASSERT_TRUE(one.plan.run({.input = p->input.as(), .output = p->output.as()}).ok());
  const auto first = one.result(), second = two.result();
  ASSERT_NE(first, second);
  one.clear();
  two.clear();
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams)
    require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(one.plan.run({.input = one.input.as(), .output = one.output.as(), .stream = streams[0]}).ok());
    EXPECT_TRUE(one.plan.run({.input = two.input.as(), .output = two.output.as(), .stream = streams[1]}).ok());
  }
  for (cudaStream_t stream : streams) {
    require(cudaStreamSynchronize(stream), "waiting");
    require(cudaStreamDestroy(stream), "destroying");
  }
  EXPECT_EQ(one.result(), first);
  EXPECT_EQ(two.result(), second);
}

TEST(Gpu, DevicesThatDoNotExistAreRefused) {
  const TensorDesc desc = TensorDesc::contiguous(DType::f32, {1, 1, 4, 4}, {DeviceType::cuda, 63});
  try {
    static_cast<void>(Plan::make(desc, MaxPool<2>{.kernel_size = 2}));
    FAIL() << "a plan on cuda:63";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device);
    EXPECT_NE(std::string(error.what()).find("cuda:63"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace cenote::testing
