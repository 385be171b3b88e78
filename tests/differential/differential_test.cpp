// The library against the reference on problems drawn at random: every op, dtype, layout, index kind and instruction set.
//
// CENOTE_TEST_SEED picks other problems, CENOTE_TEST_PROBLEMS how many (of the small ones; the other tests scale along).
// A failure prints the problem's line: `cenote check '<line>'` replays it.
#include "problems/check.hpp"
#include "problems/random.hpp"
#include "problems/threads.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace cenote::testing {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

Random seeded(std::uint64_t stream) { return Random(from_environment("CENOTE_TEST_SEED", 2026) * 1000 + stream); }

/// `count` of every 8000 problems asked for.
int share(int count) {
  return static_cast<int>(from_environment("CENOTE_TEST_PROBLEMS", 8000) * static_cast<std::uint64_t>(count) / 8000);
}

void expect_right(const Problem& problem, const std::vector<Setting>& settings) {
  EXPECT_EQ(check_problem(problem, settings), "") << "problem: " << to_string(problem);
}

void expect_right(const std::string& line, const std::vector<Setting>& settings) {
  SCOPED_TRACE(line);
  expect_right(parse_problem(line), settings);
}

TEST(Differential, SmallProblems) {
  Random random = seeded(1);
  const auto settings = every_target();
  ASSERT_FALSE(settings.empty());
  for (int i = 0; i < share(8000) && !HasFatalFailure(); ++i)
    expect_right(draw_problem(random, Extent::small), settings);
}

TEST(Differential, LargeProblems) {
  Random random = seeded(2);
  const auto settings = every_target();
  for (int i = 0; i < share(120); ++i) expect_right(draw_problem(random, Extent::large), settings);
}

/// The bits must not depend on how many threads share the work, whatever the instruction set.
TEST(Differential, ThreadCounts) {
  Random random = seeded(3);
  const Threads one(1), two(2), three(3), seven(7);
  const LastFirst last_first;
  const std::vector<Setting> settings = {{"", &one},   {"", &two},        {"", &three},
                                         {"", &seven}, {"", &last_first}, {cpu_targets().back(), &three}};
  for (int i = 0; i < share(60); ++i) expect_right(draw_problem(random, Extent::large), settings);
  // Large enough that no threshold keeps the work on one thread.
  for (const char* line : {
           "max2d f32 nchw n2c24 h112w113 k3 s2 p1",
           "max2d f32 nhwc n2c24 h112w113 k3 s2 p1",
           "max2d f32 nchw n1c1 h700w701 k2",
           "avg2d f32 nchw n2c24 h112w113 k3 s1 p1",
           "avg2d bf16 nhwc n2c24 h112w113 k3 s2 p1 nopad",
           "amax2d f32 nchw n2c24 h100w101 out7",
           "aavg2d f32 nhwc n2c40 h100w101 out1",
           "aavg3d f32 ncdhw n2c16 d20h30w31 out1",
           "lp2d f32 nchw n2c16 h100w101 k3 s2 norm2",
           "aavg2d f32 nchw n2c24 h100w101 out7x11 fwd",
           "amax2d f32 nchw n3c3 h200w205 out5x7 nan fwd",
           "fmax2d f32 nchw n2c16 h100w101 k2 out40x41",
           "unpool2d f32 nchw n2c16 h50w51 k3 s2",
           "max1d i8 ncw n2c17 w30011 k9 s1 p4",
           // Narrow planes of halves, whose vectors reach into planes of other units.
           "max2d f16 nchw n8c301 h7w7 k2 fwd",
           "max2d bf16 nchw n8c401 h5w6 k3 s2 fwd",
           "avg2d f16 nchw n8c1001 h4w4 k2 fwd",
           // Few narrow planes, whose rows end in the midst of a vector and belong to several units.
           "max3d f32 ncdhw n1c6 d8h390w21 k2x2x2 s2x2x2 fwd",
           "avg3d f32 ncdhw n1c6 d8h390w21 k2x2x2 s2x2x2 fwd",
           "max3d f32 ncdhw n1c6 d8h390w21 k1x3x3 s1x2x2 fwd",
           "max2d f32 nchw n1c1 h4000w30 k2x2 s2 fwd",
           "max2d f32 spaced n7c1 h2215w12 k2x2 s2 p1x1:0x1 fwd",
           "max2d f32 nchw n7c1 h1673w17 k2x2 s2 ceil nan fwd",
       }) {
    expect_right(line, settings);
  }
}

/// Every width around and between the vector lengths, with and without a remainder, in both dense layouts.
TEST(Differential, EveryWidth) {
  const auto settings = every_target();
  for (int width = 1; width <= 70; ++width) {
    const std::string w = "w" + std::to_string(width);
    for (const char* dtype : {"f32", "i8", "bf16"}) {
      expect_right(std::string("max2d ") + dtype + " nchw n1c2 h4" + w + " k3 s2 p1 ceil ties", settings);
      expect_right(std::string("max2d ") + dtype + " nchw n1c1 h3" + w + " k2 s1 same_upper", settings);
      expect_right(std::string("avg1d ") + dtype + " ncw n1c2 " + w + " k3 s1 p1", settings);
      expect_right(std::string("sum2d ") + dtype + " nchw n1c1 h5" + w + " k3x4 s2x3 same_upper", settings);
    }
  }
}

TEST(Differential, EveryChannelCount) {
  const auto settings = every_target();
  for (int channels = 1; channels <= 40; ++channels) {
    const std::string c = "n2c" + std::to_string(channels);
    for (const char* dtype : {"f32", "u8", "f16"}) {
      expect_right(std::string("max2d ") + dtype + " nhwc " + c + " h5w6 k3 s2 p1 ties", settings);
      expect_right(std::string("avg2d ") + dtype + " nhwc " + c + " h5w6 k2 s1 nopad", settings);
      expect_right(std::string("amax2d ") + dtype + " nhwc " + c + " h5w7 out3x4 ties", settings);
    }
    expect_right("max2d f32 nhwc " + c + " h5w21 k2 nan fwd", settings);
    expect_right("max2d f32 nhwc " + c + " h5w13 k3x4 s1x2 p1x2 d1x2 ceil ties fwd", settings);
  }
}

/// Maxima over whole planes and where they lie: planes that end anywhere in a vector, with one piece or several, of which the last NaN or the first of equals may be in any.
TEST(Differential, EveryWholePlane) {
  const auto settings = every_target();
  for (const char* values : {"", " ties", " nan", " zeros", " neginf"}) {
    for (int width = 1; width <= 140; ++width)
      expect_right("max1d f32 ncw n3c7 w" + std::to_string(width) + " k" + std::to_string(width) + values + " fwd",
                   settings);
    for (const char* line : {
             "amax2d f32 nchw n2c9 h7w7 out1",
             "amax2d f16 nchw n2c19 h7w9 out1",
             "amax2d bf16 nchw n2c19 h7w9 out1",
             "amax2d f32 spaced n3c5 h9w15 out1",
             "amax2d f32 nchw n1c3 h100w82 out1",
             "amax2d bf16 nchw n1c2 h130w127 out1",
             "amax3d f32 ncdhw n1c2 d3h50w101 out1",
             "amax2d f32 nchw n1c1 h200w201 out1",
         }) {
      for (const char* seed : {" seed1", " seed2", " seed3"})
        expect_right(std::string(line) + values + seed + " fwd", settings);
    }
  }
}

/// Every remainder of channels beside whole vectors, in bands of four, two and one rows of outputs.
TEST(Differential, EveryRemainderOfChannels) {
  const auto settings = every_target();
  for (int channels = 41; channels <= 130; ++channels) {
    const std::string c = "n1c" + std::to_string(channels);
    expect_right("max2d f32 nhwc " + c + " h9w3 k3 s1 idx:window", settings);
    expect_right("max2d f32 nhwc " + c + " h6w5 k2 s2 ties idx:window", settings);
    expect_right("avg2d f32 nhwc " + c + " h5w6 k3 s1 p1 nopad", settings);
  }
}

/// Every length of the stretches that columns are cut into where outputs are folded straight from their taps, whole vectors and not.
TEST(Differential, EveryStretchOfChannels) {
  const auto settings = every_target();
  for (int vectors = 1; vectors <= 34; ++vectors) {
    for (int rest : {0, 5}) {
      const std::string c = "n1c" + std::to_string(16 * vectors + rest);
      expect_right("max2d f32 nhwc " + c + " h4w19 k2 ties fwd", settings);
      expect_right("max2d f32 nhwc " + c + " h5w7 k3 s3 p1 nan fwd", settings);
      expect_right("max2d f32 nhwc " + c + " h5w7 k3 s2 p1 ties fwd idx:window", settings);
      expect_right("max2d f32 nhwc " + c + " h5w7 k3 s1 p1 nan fwd idx:flat32", settings);
      expect_right("max2d f16 nhwc " + c + " h4w9 k2 extreme fwd", settings);
      expect_right("max2d bf16 nhwc " + c + " h5w7 k3 s2 p1 extreme fwd", settings);
      expect_right("max3d f16 ndhwc " + c + " d3h3w5 k2 s1 d1x1x2 neginf fwd", settings);
      expect_right("avg2d f32 nhwc " + c + " h4w5 k2 fwd", settings);
      expect_right("avg2d f32 nhwc " + c + " h5w7 k3 s3 p1 nopad nan fwd", settings);
      expect_right("avg2d bf16 nhwc " + c + " h5w7 k3 s3 p1 fwd", settings);
      expect_right("avg3d f32 ndhwc " + c + " d2h2w5 k2 fwd", settings);
      expect_right("sum2d f32 nhwc " + c + " h3w6 k2x3 s1x2 nan fwd", settings);
      expect_right("avg2d bf16 nhwc " + c + " h4w5 k3 s1 p1 nan fwd", settings);
      expect_right("max2d f32 nhwc " + c + " h4w7 k1x3 s1x2 p0x1 nan fwd", settings);
    }
  }
}

TEST(Differential, EveryKernelStrideAndDilation) {
  const auto settings = every_target();
  for (int kernel = 1; kernel <= 31; ++kernel) {
    for (int stride = 1; stride <= 7; stride += 2) {
      const std::string window = " k" + std::to_string(kernel) + " s" + std::to_string(stride) + " ceil";
      const std::string padded = window + " p" + std::to_string(kernel / 2);
      expect_right("max1d f32 ncw n1c2 w67" + padded, settings);
      expect_right("sum1d f32 ncw n1c2 w67" + padded, settings);
      expect_right("min1d i16 ncw n1c2 w40" + window, settings);
      if (kernel > 15) continue;
      expect_right("max2d f32 nchw n1c1 h17w19" + padded, settings);
      expect_right("avg2d f32 nhwc n1c3 h17w19" + padded + " nopad", settings);
    }
    for (int dilation = 2; dilation <= 4; ++dilation) {
      if ((kernel - 1) * dilation >= 67 + 2 * (kernel / 2)) continue;  // longer than the padded input
      const std::string window = " k" + std::to_string(kernel) + " s2 ceil d" + std::to_string(dilation);
      expect_right("max1d f32 ncw n1c2 w67" + window + " p" + std::to_string(kernel / 2) + " nan", settings);
      expect_right("avg1d f64 ncw n1c2 w67" + window + " p" + std::to_string(kernel / 2), settings);
    }
  }
}

/// Windows of every width, apart and overlapping, over columns of many channels: sums that slide along in registers and in L1, long ones in lanes, tiles of channels and of
/// columns, maxima that share rows.
TEST(Differential, EveryWindowOfColumns) {
  const auto settings = every_target();
  for (int kernel = 1; kernel <= 18; ++kernel) {
    const std::string k = std::to_string(kernel);
    expect_right("aavg2d f32 nhwc n1c300 h" + k + "w" + k + " out1 fwd", settings);
    expect_right("avg2d bf16 nhwc n1c70 h20w40 k2x" + k + " s2x" + k + " fwd", settings);
    for (int stride = 1; stride <= 5; ++stride) {
      const std::string window =
          " k3x" + k + " s2x" + std::to_string(stride) + " p1x" + std::to_string(kernel / 2) + " ceil fwd";
      expect_right("avg2d f32 nhwc n1c21 h7w40" + window + " nopad", settings);
      expect_right("sum2d bf16 nhwc n1c72 h7w40" + window + " nan", settings);
      expect_right("max2d f32 nhwc n1c259 h7w40" + window + " ties", settings);
      expect_right("max2d f32 nhwc n2c70 h7w40" + window + " nan idx:window", settings);
    }
    expect_right(
        "aavg2d f32 nhwc n1c32 h" + std::to_string(30 + kernel) + "w" + std::to_string(7 * kernel) + " out1x2 nan fwd",
        settings);
    expect_right("avg2d bf16 nhwc n3c128 h50w" + std::to_string(8 + kernel) + " k" + std::to_string(31 + kernel) +
                     "x8 s40x8 fwd",
                 settings);
    // Several stretches of channels, windows that are cut off, and long ones that overlap.
    expect_right("avg2d f32 nhwc n1c600 h8w40 k2x" + k + " s2x" + std::to_string((2 * kernel + 2) / 3) + " nan fwd",
                 settings);
    expect_right(
        "avg2d bf16 nhwc n1c150 h9w40 k" + k + " s" + k + " p" + std::to_string(kernel / 2) + " ceil nopad fwd",
        settings);
    expect_right("amax2d f32 nhwc n1c70 h9w40 out4x" + k + " ties fwd idx:window", settings);
    expect_right("amax2d f32 nhwc n1c70 h9w40 out4x" + k + " zeros fwd", settings);
    if (kernel > 8) continue;
    expect_right("max3d f32 ndhwc n2c70 d4h5w20 k2x3x" + k + " s1x2x2 p1x1x0 d1x1x2 ceil nan fwd idx:window", settings);
    expect_right("avg2d f32 nhwc n1c40 h9w41 k2x" + k + " s1x2 d1x2 fwd", settings);
    expect_right("avg2d f32 nhwc n1c1100 h9w30 k3x" + k + " s1 fwd", settings);
    expect_right("sum3d f32 ndhwc n1c35 d4h5w20 k2x3x" + k + " s1 fwd", settings);
    expect_right("max3d f32 ndhwc n1c270 d4h5w20 k2x3x" + k + " s1x2x2 zeros fwd", settings);
  }
}

/// Each way the CPU backend can take, at sizes where it takes it: small planes side by side, tall and wide windows, outputs straight
/// from their taps, scatters by planes, rows, columns and bands.
TEST(Differential, EveryWayToDoIt) {
  const auto settings = every_target();
  for (const char* values : {"", " ties", " nan", " zeros"}) {
    for (
        const char* line : {
            // Unpooled planes that are larger than a band, whose windows share rows or do not.
            "unpool2d f32 nhwc n1c64 h40w60 k2",
            "unpool2d f32 nchw n1c2 h200w231 k2",
            "unpool2d bf16 nhwc n2c70 h41w33 k3 s2 p1",
            "unpool2d f64 nchw n1c1 h150w160 k3 s2 p1",
            "unpool3d f32 ndhwc n1c33 d9h13w20 k2",
            "unpool3d f32 ncdhw n1c2 d9h50w60 k3 s2",
            "unpool2d i8 nhwc n1c300 h30w31 k2x3",
            "unpool1d f32 ncw n1c2 w70001 k2",
            "unpool2d f32 nhwc n1c256 h12w300 k3x2 s1 p2x0 d3x1",
            "unpool2d f32 nhwc n1c64 h30w60 k2 s3 p1",
            "unpool3d f32 ndhwc n1c64 d1h40w60 k2",
            "max2d f32 nchw n2c20 h7w7 k2",
            // Narrow planes, more of them than have their indices put together.
            "max2d f32 nchw n3c170 h7w7 k2 ties fwd",
            "max2d f32 nchw n3c70 h12w12 k3 s1 p1 neginf fwd",
            "max2d f32 nchw n2c151 h9w13 k3 s2 p1x0 ceil fwd",
            "max2d bf16 nchw n3c170 h7w7 k2 zeros fwd",
            "max2d f16 nchw n1c301 h2w2 k2 nan fwd",
            "avg2d f16 nchw n3c170 h7w7 k3 s2 p1 fwd",
            "max2d f32 nchw n3c17 h20w20 k5 s1 p2",
            "max2d u8 nchw n2c70 h9w9 k3 s2 p1",
            "max2d f64 nchw n2c9 h13w14 k3 s1 p1",
            "max2d f64 nchw n3c70 h7w7 k2 neginf fwd",
            "max2d f64 nchw n2c3 h30w41 k3 s1 p1 d1x2 ties fwd",
            "max3d f64 ncdhw n2c3 d5h17w19 k3 s2 p1 fwd",
            "max3d f64 ncdhw n2c3 d6h9w40 k2 nan fwd",
            "max2d f16 nchw n2c33 h14w14 k2",
            "amax2d f32 nchw n2c20 h14w15 out5x4",
            "amax2d f32 nchw n3c21 h13w13 out4x6 idx:window",
            "amax2d f16 nchw n2c9 h70w75 out3x4 idx:window",
            "amax2d f32 nchw n1c2 h90w95 out66x67 idx:window",
            "amax2d f32 nhwc n2c80 h13w12 out4x5 idx:window",
            "amax3d f32 ncdhw n2c7 d7h9w10 out3x4x4 idx:window",
            "amax3d f32 ncdhw n1c1 d20h40w41 out9x23x24 idx:window",
            "amax3d f32 ndhwc n2c70 d5h4w7 out3x5x2 idx:window",
            "amax2d f32 nhwc n2c40 h14w15 out5x4",
            "amax2d f32 nchw n2c9 h33w47 out6x7 fwd",
            "amax2d f32 nchw n2c9 h45w95 out2x11 fwd",
            "amax3d f32 ncdhw n1c5 d14h24w23 out3x4x3 fwd",
            "aavg2d f32 nchw n2c9 h45w95 out2x11 fwd",
            "aavg2d f32 nchw n2c9 h33w147 out6x7 fwd",
            "aavg3d f32 ncdhw n1c5 d14h24w23 out3x4x3 fwd",
            "max2d f32 nchw n2c9 h50w73 k7x9 s7x9 p3x4 ceil fwd",
            "max2d f32 nchw n2c9 h70w100 k7x20 s5x9 d2x1 p2x7 fwd",
            "max3d f32 ncdhw n1c5 d15h20w31 k5x5x6 s5x5x6 p2x2x3 fwd",
            "max2d f32 spaced n3c5 h41w41 k8 s8 fwd",
            "max2d f32 nchw n1c3 h72w95 k1x5 fwd",
            "avg2d f32 nchw n2c9 h50w73 k7x9 s7x9 p3x4 ceil nopad fwd",
            "avg2d f32 nchw n2c9 h50w75 k7x5 s7x5 p2x2 div-3 fwd",
            "avg2d f32 nchw n1c3 h64w700 k6x100 s6x80 p0x50 fwd",
            "avg3d f32 ncdhw n1c5 d15h20w31 k5x5x6 s5x5x6 p2x2x3 nopad fwd",
            "sum1d f32 ncw n17c3 w300 k6 s6 fwd",
            "amax2d f32 nchw n2c20 h14w14 out1",
            "max2d f32 nchw n1c20 h24w25 k13 s1 p6",
            "max2d f32 nhwc n1c20 h24w25 k13 s1 p6",
            "max2d f32 nhwc n1c3 h60w50 k31 s1 p15",
            "max2d f32 nhwc n1c40 h12w13 k3 s2 p1",
            "max2d bf16 nhwc n1c40 h12w13 k2",
            "max2d f32 nhwc n1c17 h40w13 k3 s1 p1 d2",
            "max3d f32 ncdhw n1c2 d4h20w21 k1x3x3 s1x2x2 p0x1x1",
            "max3d f32 ndhwc n1c33 d4h9w10 k1x3x3 s1x2x2 p0x1x1",
            "max3d f32 ndhwc n1c33 d7h9w10 k3 s2 p1",
            "max1d f32 ncw n1c1 w20011 k5 s3",
            "max1d f32 nwc n1c40 w501 k3 s2",
            "max1d f32 nwc n1c5 w3001 k9 s4 d2",
            "max2d f32 nchw n1c3 h9w141 k2",
            "max2d f32 nchw n1c3 h21w201 k3 s2 p1 ceil",
            "max2d f16 nchw n1c2 h11w150 k3 s1 p1",
            "max2d bf16 nchw n1c2 h9w300 k2x3 s3x4 p1",
            "max2d u8 nchw n1c2 h9w300 k3 s2 p1",
            "max2d f64 nchw n1c2 h11w210 k3 s3 p1 ceil",
            "max2d f32 nchw n1c2 h11w210 k3x2 s2x3 d2x1",
            "max2d f32 nchw n2c5 h20w20 k5 s1 p2",
            "max2d f32 nchw n2c21 h13w13 k2 s1",
            "max2d f32 nchw n1c3 h26w61 k2 s1 p1",
            "max3d f32 ncdhw n1c3 d6h9w20 k2 s2x1x1",
            "max2d f32 nchw n3c11 h7w9 k5 s1 p2",
            "max2d f32 nchw n1c3 h40w37 k5x7 s1 p2x3",
            "max2d f32 nchw n1c2 h150w33 k9x5 s1 p4x2",
            "max2d f32 nchw n1c3 h9w40 k1x3 s1 p0x1",
            "max2d f32 nchw n2c3 h19w21 k3x5 s1 p1x2 d2x1",
            "max2d f32 nchw n2c3 h14w17 k4x3 s1 p2x1 d3x1",
            "max3d f32 ncdhw n1c3 d5h9w20 k1x5x5 s2x1x1 p0x2x2",
            "max2d f32 nchw n2c3 h40w41 k3 s2 p1 d2",
            "max2d f32 nchw n2c3 h23w57 k3 s2 p1 d3",
            "max2d f32 nchw n2c3 h30w65 k2 s3 p1 d2",
            "max2d f32 nchw n2c3 h30w65 k3x5 s1x2 p1x2 d3x2",
            "max2d f32 nchw n1c2 h30w65 k3 s3 p1 d2x5 ceil",
            "max2d f32 nchw n1c1 h300w60 k3 s2 p1 d2",
            "max2d f32 nchw n2c3 h30w65 k5 s1 p2 d2",
            "max1d f32 ncw n2c3 w200 k5 s2 p2 d2",
            "max3d f32 ncdhw n1c3 d4h19w40 k1x3x3 s2x2x2 p0x1x1 d1x2x2",
            "avg2d f32 nchw n2c21 h13w13 k2 s1",
            "avg2d f32 nchw n1c3 h26w61 k2 s1 p1 nopad",
            "avg2d f32 nchw n2c9 h17w17 k3 s1 p1",
            "avg2d f32 nchw n2c9 h10w9 k3 s1 p1",
            "avg2d f32 nchw n2c4 h20w21 k5 s1 p2",
            "avg2d f32 nchw n1c2 h150w33 k5x3 s1 p2x1",
            "avg2d f32 nchw n2c9 h19w18 k5 s1 p2 nopad",
            "avg3d f32 ncdhw n1c3 d4h9w20 k1x5x5 s1 p0x2x2",
            "min2d f32 nchw n1c2 h11w210 k2",
            "max3d f32 ncdhw n1c2 d5h6w140 k2",
            "max3d f32 ncdhw n1c2 d5h6w140 k3x3x2 s2 p1",
            "max1d f32 ncw n2c2 w4003 k4 s4",
            "max2d f32 nhwc n1c71 h9w10 k3 s1 p1",
            "max2d f32 nhwc n2c71 h15w10 k3 s1 p1",  // four rows of outputs at a time, then two and one
            "max2d f32 nhwc n1c64 h14w9 k3 s2 p1 ceil",
            "max2d f32 nhwc n2c16 h19w30 k3 s2 p1 nan fwd",  // several columns of few channels at once
            "max2d f32 nhwc n1c16 h9w33 k3 s1 p1 extreme fwd",
            "max2d f32 nhwc n1c48 h11w21 k2 s1 p1 ties fwd",
            "max3d f32 ndhwc n1c8 d3h9w22 k3x3x2 s2x2x1 p1 fwd",
            "max2d f32 nhwc n1c96 h15w16 k2 s1",  // rows that lie in the same lines of an L1
            "max2d f32 nhwc n1c144 h19w9 k5x4 s2x3 p2x1",
            "max2d f32 nhwc n1c130 h70w3 k33x1 s1x2 p16x0",
            "max3d f32 ndhwc n1c80 d4h9w6 k3 s2 p1",
            "max2d f32 nhwc n1c100 h22w23 k6 s3",
            "max2d f32 nhwc n1c64 h27w14 k12x3 s5x2 p2x1",
            "aavg3d f32 ndhwc n1c270 d3h5w4 out1",  // the next rows asked for early, across slices
            "max2d f16 nhwc n1c130 h7w9 k3 s1 p1 d1x2",
            "max2d u8 nhwc n1c300 h7w9 k3 s1 p1",
            "amax2d f32 nhwc n2c200 h14w14 out1",
            "max2d f32 nhwc n1c300 h9w30 k3 s2 p1",
            "max2d f32 nhwc n1c300 h9w30 k2 idx:window",
            "max2d f32 nhwc n1c71 h9w10 k3 s1 p1 idx:window",
            "max2d f32 nhwc n2c35 h17w25 k8 idx:window",
            "max2d bf16 nhwc n1c64 h30w31 k15 s13x14 p1 ceil idx:window",
            "max2d f32 nchw n9c5 h17w25 k8 ceil idx:window",
            "max2d f32 nhwc n2c100 h11w10 k3 s2 p1 idx:window",
            "max2d f64 nhwc n1c21 h9w10 k5 s1 p2 idx:window",
            "max2d bf16 nhwc n1c40 h9w10 k2 s3 p1 idx:window",
            "max2d f32 nhwc n1c33 h12w11 k3x2 s2x1 d2x3 idx:window",
            "max3d f32 ndhwc n1c33 d7h9w10 k3 s2 p1 idx:window",
            "max2d f32 nchw n3c7 h9w10 k3 s1 p1 idx:window",
            "max2d f32 nchw n3c7 h20w20 k9 s1 p4 idx:window",
            "max2d f32 nchw n1c3 h70w75 k3 s2 p1 ceil idx:window",
            "max2d f32 nchw n1c2 h50w51 k17 s1 p8 idx:window",
            "max3d f32 ncdhw n1c3 d7h9w10 k3 s2 p1 idx:window",
            "max3d f32 ncdhw n2c3 d4h20w21 k1x3x3 s1x2x2 p0x1x1 idx:window",
            "max2d f32 nhwc n1c200 h12w40 k9 s1 p4 idx:window",
            "max2d bf16 nhwc n2c130 h12w20 k9x7 s1x2 p4x3 ties idx:window",
            "max2d i32 nhwc n1c300 h12w30 k9 s1 p4 ceil idx:window",
            "max2d f32 nhwc n1c64 h90w12 k5x9 s1 p2x4 idx:window",
            "max2d bf16 nhwc n1c64 h90w12 k5x9 s2x1 p2x4 ceil idx:window",
            "max2d f32 nhwc n1c71 h100w14 k5x8 s1 p2x4 d2x1 idx:window",
            "max3d f32 ndhwc n1c64 d5h9w10 k1x6x7 s2x1x1 p0x3x3 idx:window",
            "max3d f32 ncdhw n2c3 d5h30w31 k1x9x9 s2x1x1 p0x4x4 idx:window",
            "max2d f32 nchw n1c2 h24w190 k21 s1 p10 idx:window",
            "max2d f32 nhwc n1c3 h24w190 k21 s2 p10 d1x3 idx:window",
            "max2d f32 nchw n2c5 h30w31 k7x5 s1 p3x2 d3x2 idx:window",
            "max1d f32 ncw n2c3 w3001 k40 s1 p20 idx:window",
            "max2d f32 nhwc n1c64 h30w3 k6x6 s1 p10:12 d4 idx:window",  // windows without taps among others
            "max2d f32 nhwc n1c140000 h2w1 k1x33 s1 p0x32000:0x0 d1x1000 idx:window",  // taps 2^32 elements apart
            "max2d f32 nchw n1c1 h3w60 k255x2 s1 p509x0:509x0 d4x1 idx:window",
            "unpool2d f32 nchw n1c2 h40w41 k3 s2 idx:window",
            "unpool2d f32 nhwc n1c7 h20w21 k3 s2",
            "unpool2d f32 nhwc n1c40 h20w21 k3x2 s2x3 p1x0",
            "unpool2d bf16 nhwc n1c71 h20w21 k3 s2 p1 idx:window",
            "unpool2d u8 nhwc n9c5 h6w7 k2 idx:flat32",
            "unpool3d f64 ncdhw n1c2 d5h6w7 k2x3x2 s2 p0x1x1 idx:window",
            "unpool3d f16 ndhwc n2c3 d5h6w7 k2 idx:flat32",
            "unpool1d f32 ncw n1c1 w5000 k3 s2",
            "unpool2d i32 strided n2c3 h9w10 k3 s2 p1",
            "unpool2d f32 flipped n2c3 h9w10 k2",
            "unpool2d f32 spaced n1c3 h9w10 k2 idx:window",
            "unpool2d f32 broadcast n2c3 h9w10 k2",
            "max3d f16 ndhwc n1c150 d6h9w10 k5x5x3 s1 p2x2x1 d1x1x2 idx:window",
            "max2d f32 nhwc n1c300 h9w30 k3 s1 p1 idx:window",
            "max2d bf16 nchw n1c3 h40w70 k15 s1 p7 idx:window",
            "max2d f32 nchw n1c11 h20w20 k5 s1 p2 idx:window",
            "max2d f32 nchw n2c3 h61w64 k3 s1 p1 idx:window",
            "max2d f32 nchw n1c9 h40w131 k3 s1 p1",
            "max2d f32 nchw n1c9 h41w133 k3 s2 p1 ceil idx:window",
            "max2d bf16 nchw n1c9 h90w131 k2",
            "max2d f16 nchw n3c5 h17w33 k3 s2 p0x1 idx:window",
            "max2d f32 nchw n2c5 h17w9 k3 s1 p1x0",
            "max2d f32 nchw n2c5 h9w17 k2 p1 idx:window",
            "max3d f32 ncdhw n1c9 d5h20w21 k2",
            "max3d bf16 ncdhw n1c5 d6h9w20 k2x3x3 s1x1x1 p1 idx:window",
            "max3d f32 ncdhw n1c3 d9h9w36 k3 s2 p1",
            "max3d f32 ncdhw n1c3 d7h9w10 k1x2x2 s3x2x2",
            "max3d f16 ncdhw n1c3 d4h9w40 k2 idx:window",
            "max3d f32 ncdhw n1c3 d5h8w9 k2 ceil",
            "max2d f32 nchw n5c3 h9w43 k2 ceil idx:window",
            "max1d f32 ncw n2c8 w64 k4 idx:window",  // rows cut into alike ones
            "max1d bf16 ncw n4c8 w21 k3 idx:window",
            "max1d f64 ncw n4c8 w35 k5 ties idx:window",
            "max1d f16 nwc n4c3 w32 k4 nan idx:window",
            "max2d f32 nchw n4c8 h9w12 k1x6 idx:window",
            "avg2d f32 nchw n5c3 h9w83 k2 bwd",
            "avg2d f32 nchw n2c5 h20w48 k2 bwd",
            "avg2d f32 nchw n2c5 h21w14 k7x2 bwd",
            "avg2d f16 nchw n2c5 h21w18 k3 bwd",
            "avg2d bf16 nchw n2c5 h22w60 k5 s6 bwd",
            "aavg2d f32 nchw n2c5 h30w61 out7x13 bwd",
            "aavg2d f32 nchw n2c5 h40w57 out3x5 bwd",
            "aavg2d bf16 nchw n2c5 h60w60 out6 bwd",
            "avg2d f32 nchw n2c5 h17w65 k3 s2 p1 nopad bwd",
            "avg2d f32 nchw n2c5 h17w65 k3 s2 p1 div-3 zeros bwd",
            "avg2d f32 nchw n2c5 h16w30 k2 p1 nopad bwd",
            "avg2d f16 nchw n2c3 h20w70 k4x3 s1x2 nopad bwd",
            "avg3d f32 ncdhw n2c3 d6h7w30 k2x3x3 s3x2x3 p1x1x0 bwd",
            "avg3d f32 ncdhw n2c3 d9h7w30 k3x2x2 s2 p1x0x0 bwd",
            "avg3d f32 ncdhw n2c3 d9h13w17 k3 s2 p1 bwd",
            "avg3d f32 ncdhw n2c3 d9h13w17 k3 s2 p1 nopad bwd",
            "avg3d f32 ncdhw n1c3 d7h9w37 k3 s1 p1 nopad bwd",
            "avg3d bf16 ncdhw n2c3 d9h13w37 k3x4x5 s2x3x2 p1 ceil bwd",
            "avg3d f16 ncdhw n2c3 d7h9w37 k5x2x2 s1x2x2 p2x0x0 nopad bwd",
            "avg3d f32 ncdhw n2c3 d7h6w20 k2x1x1 s1 p1x0x0 nopad bwd",
            "aavg3d f32 ncdhw n2c3 d7h9w20 out4x5x6 bwd",
            "sum3d f32 ncdhw n2c3 d7h9w20 k3x3x2 s2 p1 zeros bwd",
            "avg2d f32 nchw n1c3 h300w129 k4 s3 bwd",
            "avg2d f32 spaced n2c3 h20w48 k2 bwd",
            "sum2d f32 nchw n2c3 h20w48 k2 bwd",
            "sum2d f16 nchw n2c3 h20w48 k3 s1 p1 bwd",
            "sum2d i32 nchw n2c3 h20w48 k3 s1 p1 bwd",
            "avg3d f32 ncdhw n1c5 d7h9w20 k3 s1 p1 bwd",
            "avg2d f16 nhwc n2c40 h9w11 k3 s1 p1 bwd",
            "avg2d f32 nchw n2c5 h9w31 k3x5 s1 p0x2:2x0 div7 bwd",
            "avg2d f32 strided n2c5 h9w11 k3x2 s1 p1 bwd",
            "avg1d f64 ncw n2c5 w300 k64 s1 bwd",
            "avg2d f32 nchw n1c3 h50w40 k15 s1 p7 bwd",
            "avg2d f32 nchw n4c40 h7w7 k7 s1 bwd",
            "avg2d f32 nhwc n4c40 h7w7 k7 s1 bwd",
            "lp2d f32 nchw n2c3 h30w40 k3 s1 norm2 bwd",
            "lp2d f32 nchw n2c3 h50w40 k17x2 s1x2 norm2 bwd",
            "lp3d f64 ndhwc n1c5 d6h7w8 k5 s1 norm3 bwd",
            "lp1d f32 ncw n1c2 w9000 k3 s2 norm2 bwd",
            "avg2d f16 nchw n5c3 h9w135 k3x2 s4x2 p1x0 bwd",
            "avg2d bf16 nchw n9c3 h8w128 k2 bwd",
            "avg3d f32 ncdhw n2c3 d5h6w75 k2 ceil div3 bwd",
            "sum2d f32 nchw n1c3 h9w43 k2 ceil bwd",
            "max2d f32 nchw n3c5 h29w28 k3 s1 p1 idx:window",
            "max2d f32 nchw n3c5 h9w17 k3 s1 p1 idx:window",
            "max2d f32 nchw n2c1 h131w26 k3 s1 p0x2:2x0 idx:window",
            "max2d f32 nhwc n2c3 h19w21 k3 s1 p1 idx:window",
            "max2d f32 nhwc n1c4 h90w100 k3 s1 p1 idx:window",
            "min2d bf16 nhwc n2c5 h17w9 k3 s1 p1 idx:window",
            "max2d f16 nchw n2c5 h37w24 k3 s1 p2:2 d2 idx:window",
            "max2d f32 nhwc n1c20 h1w1 k3 s1 p1 idx:window",
            "max2d f32 nchw n1c1 h3w20 k3 s1 p2:2 d2 idx:window",
            "max3d f32 ndhwc n2c3 d3h8w9 k1x3x3 s1 p0x1x1 idx:window",
            "max3d bf16 ncdhw n1c3 d5h9w20 k1x3x3 s1 p0x1x1 idx:window",
            "max2d f32 nhwc n3c6 h28w28 k2 idx:window",
            "max2d bf16 nhwc n2c5 h13w17 k3x2 s4x3 idx:window",
            "max3d f64 ndhwc n2c3 d5h6w9 k2 idx:window",
            "max3d f32 ndhwc n2c3 d4h6w8 k2 idx:window",
            "max2d f32 nhwc n2c12 h9w20 k1x2 idx:window",
            "max2d f16 nhwc n2c20 h9w20 k2 idx:window",
            "max2d f32 nchw n1c2 h71w50 k3 s1 idx:window",
            "max2d bf16 nchw n2c5 h9w33 k2x3 s1 p1",
            "max2d f16 nchw n3c3 h10w70 k3 s2 p1 idx:window",
            "max2d f32 nchw n3c3 h11w61 k3 s2 ceil idx:window",
            "max2d f32 spaced n2c3 h9w57 k3 s2 p0x1",
            "max2d f32 nchw n2c3 h30w60 k3 s2 p2:0 idx:window",
            "max2d bf16 nchw n2c3 h30w60 k3 s1x2 p0x2:0x1",
            "max2d f32 nchw n2c3 h20w40 k3 s1 p2:2 idx:window",
            "max1d f32 ncw n2c3 w61 k3 s2 p1:2",
            "max2d f32 nhwc n1c64 h31w33 k9 s5 p4 idx:window",
            "max2d bf16 spaced n3c2 h9w31 k3 s1 p1 idx:window",
            "max2d f32 spaced n3c2 h8w46 k2 idx:window",
            "max2d f16 nchw n1c1 h301w64 k3 s2 p1",
            "max2d f32 nchw n2c2 h12w63 k1x3 s3x2 idx:window",
            "max2d f32 nchw n2c2 h12w31 k2x3 s5x1 p1 idx:window",
            "max3d f32 ncdhw n2c2 d5h9w29 k2x3x3 s2x1x1 p1",
            "max3d bf16 ncdhw n2c2 d5h9w50 k3 s3x2x2 p1 idx:window",
            "max3d f32 ncdhw n1c2 d7h4w64 k2x2x2 s3x2x2 ceil idx:window",
            "max1d f32 ncw n3c5 w101 k3 s2 p1 idx:window",
            "max1d f16 ncw n3c5 w41 k3 s1 p1",
            "max2d f16 nchw n5c3 h8w70 k3x2 s2 p1x0 idx:window",
            "max2d bf16 nchw n2c3 h7w37 k3x2 s1x2",
            "max3d f32 ncdhw n2c3 d5h6w33 k3x3x2 s2 p1x1x0 idx:window",
            "max3d f32 ncdhw n1c9 d4h1w64 k2 s2 p0x1x0",
            "max3d f32 ncdhw n1c9 d4h2w64 k3x3x2 s1x1x2 p1x1x0",
            "max2d f32 nchw n2c5 h17w28 k3 s1 p2:2 d2",
            "max2d bf16 nchw n2c5 h19w40 k3 s1 p1 d3x1 idx:window",
            "max3d f32 ncdhw n1c3 d5h9w37 k2x3x3 s1 p0x1x1 d1x2x3 idx:window",
            "amax2d f32 nchw n2c20 h7w7 out1",
            "amax2d bf16 nchw n2c21 h14w13 out1",
            "amax2d bf16 nhwc n2c70 h14w13 out1 zeros",  // halves that are only moved
            "max2d f16 nhwc n2c70 h31w27 k6x5 idx:window",
            "max2d bf16 nhwc n2c3 h31w27 k6x5 p2 ceil zeros",
            "max2d bf16 nchw n2c5 h31w33 k6 zeros idx:window",
            "max3d f16 ncdhw n1c3 d7h9w37 k3x4x5 s3x4x6 idx:window",
            "amax2d f64 nchw n3c7 h3w9 out1",
            "max3d f16 ncdhw n1c19 d2h3w11 k2x3x11",
            "amax1d f32 ncw n2c20 w1024 out1",
            "max2d f32 nchw n2c5 h14w26 k2 s1",
            "max2d f32 nchw n2c3 h19w64 k4 s2 p1",
            "max2d f32 nchw n1c2 h30w37 k5 s2 p2 ceil",
            "max2d f32 nchw n2c3 h21w50 k4",
            "max2d f32 nchw n2c3 h17w40 k5x4 s3 p2x1",
            "max2d f32 nchw n1c1 h70w33 k6x5 s1 p3x2",
            "max2d f32 nchw n3c2 h9w17 k5 s3",
            "max2d f32 nchw n1c3 h7w3 k3x4 s2x1 p1x2",
            "max2d f32 nchw n1c2 h6w300 k1x9 s1x4 p0x4",
            "max2d f32 spaced n2c3 h12w45 k4 s2 p1",
            "max2d f16 nchw n2c3 h13w45 k5 s2 p2",
            "max2d bf16 nchw n2c3 h13w47 k2x3 s3",
            "max2d bf16 nchw n2c3 h11w33 k4 s1 p2",
            "max2d u8 nchw n2c3 h15w150 k3 s2 p1",
            "max2d u8 nchw n2c3 h15w70 k5x4 s4 p2",
            "max2d u8 nchw n2c3 h11w37 k4 s1 p1",
            "max3d f32 ncdhw n1c3 d6h9w30 k2x3x4 s1x2x2 p1",
            "max3d f32 ncdhw n2c2 d5h6w21 k3x2x2 s2x3x4",
            "max1d f32 ncw n3c4 w333 k3",
            "max1d f32 ncw n1c2 w100 k4 s2 p2",
            "amax2d f32 nchw n1c3 h90w90 out1",
            "max2d f32 nchw n1c3 h40w40 k40 s1",
            "max2d bf16 nhwc n1c64 h11w12 k3 s2 p1",
            "max2d f16 nhwc n1c230 h9w10 k3 s1 p1",
            "max2d bf16 nhwc n2c70 h16w17 k8 s7x8 p1",
            "max2d f16 nchw n9c3 h15w24 k3 s2 p1",
            "max2d f16 nchw n9c3 h15w81 k3 s2 p1 ceil",
            "max2d bf16 nchw n9c3 h11w40 k3 s1 p1",
            "max2d f16 nchw n9c1 h11w70 k3 s1 p2x3:2x3 d2x3",
            "max2d bf16 nchw n9c1 h11w24 k3 s1 p2:2 d2",
            "max2d f16 nchw n9c3 h9w75 k2",
            "max3d bf16 ncdhw n3c3 d6h10w70 k2",
            "max3d f16 ncdhw n3c3 d6h10w35 k3 s2 p1",
            "amax2d f32 nchw n2c20 h14w14 out7 idx:window",
            "amax2d f32 nhwc n2c20 h14w15 out7x5 idx:window",
            "max2d f32 nchw n3c7 h14w14 k2 idx:window",
            "max2d f16 nchw n3c7 h12w8 k3x2 s3x2 idx:window",
            "max2d bf16 nchw n2c5 h17w18 k2x3 s3x4 idx:window",
            "max2d f32 nchw n1c2 h130w37 k4 s4x5 idx:window",
            "min2d f32 nchw n2c5 h16w10 k2 idx:window",
            "max2d f32 spaced n3c3 h16w18 k2 idx:window",
            "max3d f32 ncdhw n2c3 d5h18w20 k2x2x4 s3x2x5 idx:window",
            "max3d f32 ncdhw n2c5 d4h6w16 k1x2x2 idx:window",
            "max1d f16 ncw n3c10 w12 k3 idx:window",
            "max1d f32 ncw n7c11 w25 k5 idx:window",
            "max3d f32 ncdhw n1c2 d9h23w24 k3 s1 p1 idx:window",
            "max2d f32 nchw n3c5 h28w28 k3 s2 ceil idx:window",
            "max2d f16 nchw n3c5 h15w42 k3 s2 p1 idx:window",
            "max2d f32 nchw n3c5 h14w14 k3 s1 p1 idx:window",
            "max2d bf16 nchw n3c5 h9w8 k3 s1 p2:2 idx:window",
            "max2d f32 nchw n3c5 h9w8 k2 s1 idx:window",
            "max2d f32 nchw n3c5 h10w37 k4 s2 p1x2 idx:window",
            "min2d f32 nchw n3c5 h7w31 k3x4 s2 p1 ceil idx:window",
            "max2d f32 spaced n3c3 h9w11 k3 s2 p1 idx:window",
            "max2d f32 nchw n3c5 h9w16 k4x3 s2 p2x1:2x0 ceil idx:window",
            "max2d f32 nchw n2c3 h13w70 k5 s1 p2 idx:window",  // gathered five columns wide
            "max2d bf16 nchw n2c3 h11w81 k3x5 s2x1 p1x2 idx:window",
            "max2d f16 spaced n2c3 h12w69 k4x5 s4x1 idx:window",
            "max2d f32 nchw n3c5 h7w131 k3x5 s1 p1x2 idx:window",
            "max2d f32 nchw n1c1 h97w64 k5 s3x1 p2:1x2 ceil idx:window",
            "max2d bf16 nhwc n2c77 h9w11 k2 idx:window",  // columns of which bits are chosen
            "max2d f32 nhwc n2c37 h9w11 k2 idx:window",
            "max2d f64 nhwc n2c13 h10w13 k3x2 s3x4 p1 idx:window",
            "max3d f16 ndhwc n1c20 d5h6w7 k2x1x3 s3x2x3 p1x0x1 ceil idx:window",
            "max3d f32 ndhwc n2c33 d5h7w9 k2 ceil idx:window",
            "max2d f32 nhwc n2c6 h9w13 k2",  // columns of few channels
            "max2d f32 nhwc n2c11 h9w12 k3 s2 p1",
            "max2d f32 nhwc n1c36 h13w9 k3x2 s2x3 d1x2",
            "max3d f32 ndhwc n1c24 d4h9w8 k2x2x3 s2 p1",
            "amax2d f32 nhwc n2c20 h13w11 out4x3",
            "max2d f32 nhwc n2c32 h9w15 k2 ceil",
            "max2d f32 nhwc n2c23 h9w7 k3x1 s2x1 p1x0",  // rows of windows one column wide
            "max3d f32 ndhwc n1c64 d5h6w3 k2x1x1 s2x1x1",
            "max2d f16 nhwc n1c64 h9w13 k3 s4 p1 idx:window",
            "max2d bf16 nhwc n1c33 h10w9 k4x3 s4x3 ceil idx:window",
            "max2d f32 nhwc n1c40 h9w14 k5 s1 p2 idx:window",  // strides of columns gathered together
            "max2d f32 nhwc n1c19 h7w9 k2 s1 zeros idx:window",
            "max2d f32 nhwc n2c33 h11w16 k5 s2 p2 ties idx:window",
            "max2d bf16 nhwc n2c70 h9w13 k3 s2 p1 nan idx:window",
            "max2d bf16 nhwc n1c33 h9w12 k5 s1 p2 ties idx:window",
            "max2d bf16 nhwc n1c35 h8w11 k3 s1 p1 inf idx:window",
            "max2d bf16 nhwc n1c17 h8w11 k3 s1 p1 idx:window",  // columns shorter than a vector of pairs
            "max2d bf16 nhwc n2c24 h12w15 k3 s2 p1 ties idx:window",
            "max2d bf16 nhwc n2c16 h9w16 k5 s2 p2 idx:window",
            "max2d bf16 nhwc n2c9 h9w21 k3 s2 idx:window",
            "max2d bf16 nhwc n1c64 h11w13 k4 s2 p1 tiny idx:window",
            "max3d bf16 ndhwc n1c40 d4h6w9 k2x3x3 s2x1x1 ceil idx:window",
            "max2d f16 nhwc n1c64 h11w13 k3 s2 idx:window",
            "min2d u8 nchw n9c5 h6w7 k6x7",  // planes of zeros and their winners
            "amax2d f64 spaced n3c5 h5w7 out1",
            "amax3d f16 ncdhw n3c5 d2h5w4 out1",
            "max1d f32 ncw n9c3 w32 k32",
            "max1d f32 ncw n3c5 w333 k5 s2 p2 idx:window",  // gathered along rows that windows overlap along alone
            "max1d f64 ncw n3c5 w401 k6 s4 p1 ceil idx:window",
            "max1d f16 ncw n2c3 w130 k7 s1 p3 idx:window",
            "max1d bf16 ncw n2c3 w700 k9 s4 d2 idx:window",
            "max1d f32 ncw n1c2 w9001 k3 s2 p1 idx:window",
            "min1d f32 ncw n2c3 w97 k2 s1 p1 idx:window",
            "max1d f32 spaced n2c3 w171 k3 s2 p1 d3 idx:window",
            "max2d f32 nchw n2c3 h9w140 k2x5 s3x2 p1x2 ceil idx:window",
            "max2d f64 nchw n1c3 h7w300 k3x6 s3x4 p0x3 idx:window",
            "max3d f32 ncdhw n2c3 d4h3w80 k1x1x3 s1 p0x0x1 idx:window",
            "max2d f64 nchw n3c7 h14w14 k2 idx:window",  // elements of 8 bytes that are picked
            "max2d f64 nchw n2c5 h17w18 k2x3 s3x4 idx:window",
            "max2d f64 nchw n1c2 h61w9 k4x1 s4x1 idx:window",
            "max3d f64 ncdhw n2c3 d5h18w20 k2x2x4 s3x2x5 idx:window",
            "max2d f16 nchw n1c2 h130w37 k4 s4x5 idx:window",
            "max2d f32 nchw n2c9 h24w25 k3 s2 p1 d2",  // scattered in tables of dilated windows
            "max2d f16 nchw n2c9 h27w25 k5x3 s1 p2x1 d1x3",
            "max3d f32 ncdhw n1c9 d5h9w13 k2x2x3 s1 p0x1x1 d1x2x2",
            "max2d f32 nchw n2c9 h64w64 k3 s1 p1 d3 idx:window",  // planes in turns that lie a multiple of 4 KiB apart
            "max2d f64 nchw n1c9 h32w32 k5 s1 p2 idx:window",
            "amax2d bf16 nchw n3c9 h32w64 out9x7 idx:window",
            "max2d f32 nchw n1c9 h128w150 k7 s1 p3 idx:window",  // more outputs of a plane than are located at once
            // Sums of powers where other sums go, each with windows that the last row and column cut off.
            "lp2d f32 nchw n2c20 h31w43 k2 ceil norm2",
            "lp2d f32 nchw n3c70 h15w13 k2 norm2 nan",
            "lp2d f32 nchw n3c70 h15w13 k2 ceil norm1 zeros",
            "lp2d f32 nchw n2c9 h31w43 k2 s1 norm3",
            "lp2d f32 nchw n2c9 h31w43 k3 s2 ceil norm2",
            "lp2d f32 nchw n2c9 h31w43 k3 s1 norm2",
            "lp2d f32 spaced n2c9 h31w43 k3 s1 norm2 inf",
            "lp3d f32 ncdhw n2c5 d6h13w43 k2 norm2",
            "lp3d f32 ncdhw n2c5 d6h13w43 k2 ceil norm3",
            "lp3d f32 ncdhw n2c5 d6h13w43 k3 s1 norm2",
            "lp2d f32 nchw n2c9 h31w43 k4x3 s3x4 ceil norm2",
            "lp2d f32 nchw n2c9 h31w43 k5x4 s2x3 norm1",
            "lp2d f32 nchw n2c9 h31w143 k5 s1 norm2",
            "lp2d f32 nchw n2c5 h9w1500 k2 norm2",
            "lp1d f32 ncw n2c70 w130 k4 ceil norm2",
            "lp2d f32 nhwc n2c71 h13w15 k2 ceil norm2",
            "lp2d f32 nhwc n2c130 h13w15 k3 s2 ceil norm2 inf",
            "lp2d f32 nhwc n2c64 h13w15 k3 s1 norm2",
            "lp3d f32 ndhwc n2c40 d5h7w9 k3 s1 norm2",
            "lp2d f32 nhwc n1c64 h13w25 k2x9 norm2",
            // Windows that share nothing, with rows and columns that they cut off, that cut them off, or that none sees.
            "lp2d f32 nchw n2c9 h31w44 k2 norm2 zeros bwd",
            "lp2d f32 nchw n2c9 h31w75 k2 ceil norm2 bwd",
            "lp2d f32 nchw n2c9 h31w75 k2 s3 norm2 nan bwd",
            "lp2d f32 spaced n2c9 h14w31 k3 ceil norm2 inf bwd",
            "lp2d f32 nchw n2c9 h14w31 k2x4 s3x4 norm2 bwd",
            "lp1d f32 ncw n2c70 w131 k4 ceil norm2 bwd",
            "lp3d f32 ncdhw n2c5 d6h13w43 k2 norm2 bwd",
            "lp2d f32 nhwc n2c71 h13w15 k2 ceil norm2 zeros bwd",
            "lp2d f32 nhwc n2c64 h13w16 k2 s3 norm2 nan bwd",
            "lp3d f32 ndhwc n2c40 d6h7w9 k2x2x3 norm2 bwd",
        }) {
      expect_right(std::string(line) + values, settings);
    }
  }
  for (const char* line : {
           "avg2d f32 nchw n2c20 h7w7 k2",
           "avg2d f32 nchw n2c20 h14w14 k7",
           "avg2d f32 nchw n2c9 h14w14 k3 s1 p1 nopad",
           "avg2d bf16 nchw n2c3 h9w57 k3 s1 p1 nopad",
           "avg2d f32 nchw n2c3 h9w30 k5x4 s1 p2 d1x3 nopad",
           "avg2d f32 nchw n2c3 h9w12 k2x5 s2x1 p1x2 nopad",
           "avg2d f16 nchw n2c3 h21w18 k3 s2 p1 nopad",
           "avg2d f32 spaced n2c3 h21w42 k3 s2 p1 nopad",
           "avg3d f32 ncdhw n2c3 d3h13w33 k1x3x3 s1x2x2 p0x1x1 div-7",
           "sum2d f32 nchw n2c3 h19w17 k5 s3",
           "aavg2d f32 nchw n2c3 h19w17 out7x6",
           "avg2d f32 nhwc n2c40 h14w14 k3 s2 p1 nopad",
           "max2d bf16 nchw n1c2 h20w40 k2 s1x2",
           "max2d bf16 nchw n2c2 h21w41 k2 s1x2 idx:window",
           "max3d bf16 ncdhw n1c2 d3h20w40 k1x2x2 s1x1x2",
           "avg2d f32 nhwc n2c97 h14w15 k3 s2 p1 nopad ceil",
           "avg2d f16 nhwc n1c112 h13w15 k5 s2 p2",
           "avg2d bf16 nhwc n1c48 h13w15 k4 s2 p1 nopad",
           "avg2d f32 nhwc n1c33 h13w23 k2x1 s3x4 p1x0",
           "avg2d bf16 nhwc n1c56 h9w8 k3 s2 p1 nopad",
           "avg2d f32 nhwc n1c23 h9w8 k3 s2 p1 inf",
           "avg2d f32 nhwc n2c105 h9w8 k5 s2 p2 tiny",
           "avg2d f16 nhwc n1c70 h9w8 k2 tiny",
           "avg2d f32 nhwc n1c64 h9w8 k3x2 s2 p1 nan",
           "sum2d f16 nhwc n1c35 h13w23 k3 s5x2",
           "avg2d f32 nhwc n1c64 h13w23 k4x5 s2 p2x1:0x2 div-3",
           "avg3d bf16 ndhwc n1c65 d5h9w10 k3 s2 p1 nopad",
           "avg3d bf16 ndhwc n1c97 d6h9w10 k2x3x2 s2 p0x1x1 nan",
           "avg2d bf16 nhwc n2c160 h9w10 k2 zeros",
           "sum2d bf16 nhwc n1c33 h13w15 k3x2 s2x3 nan",
           "avg2d bf16 nhwc n1c64 h13w15 k3 s2 p1 div-5",
           "avg2d bf16 nhwc n1c130 h13w15 k5x3 s3 ceil nopad",
           "avg3d f32 ndhwc n1c81 d5h9w10 k3x2x3 s1x2x1 p1x0x1 nopad",
           "avg1d f32 nwc n2c70 w31 k3 s2 p1 nopad",
           "max2d f32 nhwc n2c3 h21w40 k3 s2 p1 nan",
           "max2d f16 nhwc n2c5 h20w33 k2 zeros",
           "avg2d f64 nhwc n2c3 h21w40 k3x5 s2 p1x2 nopad",
           "avg2d i32 nhwc n2c7 h21w40 k3 s3",
           "max2d i16 nhwc n2c6 h21w40 k2x3 s2x4 ties",
           "amax2d f32 nchw n2c3 h20w190 out7x67 ties",
           "aavg2d f32 nhwc n2c3 h20w50 out7x33",
           "avg2d f32 nhwc n2c5 h13w17 k10x3 s2 same_lower nopad",
           "avg2d f32 nchw n1c3 h50w40 k15 s1 p7",
           "avg2d f32 nhwc n1c20 h50w40 k15 s1 p7 nopad",
           "avg2d f32 nchw n1c20 h30w31 k12x9 s3x1 p5x4",
           "aavg2d f32 nchw n2c20 h7w7 out1",
           "aavg2d f32 nchw n2c20 h14w15 out5x4",
           "lp2d f32 nchw n2c20 h13w14 k3 s2 norm2",
           "lp2d f32 nhwc n2c20 h30w14 k12x3 s1 norm3",
           "avg3d f32 ndhwc n1c20 d6h7w8 k2",
           "avg2d f32 nchw n1c2 h11w210 k3 s2 p1",
           "avg2d f16 nchw n1c2 h11w210 k2 nopad",
           "avg2d f32 nhwc n1c71 h9w10 k3 s1 p1 nopad",
           "avg2d f32 nhwc n1c100 h9w10 k2 s2 p1",
           "avg2d bf16 nhwc n1c200 h9w10 k3x2 s3 p1 nopad ceil",
           "avg2d f64 nhwc n1c40 h14w14 k7",
           "avg2d f32 nhwc n1c70 h20w23 k10",
           "avg2d f32 nhwc n1c64 h3w13 k3x10 ceil",
           "avg2d f32 nhwc n1c64 h1w19 k1x9 p0x2 ceil nopad",
           "avg2d f64 nhwc n1c64 h3w13 k2x10 ceil",
           "avg2d f32 nchw n1c64 h7w14 k3x9 s1x7 p0x3 ceil",
           "avg2d i32 nchw n2c3 h9w20 k3 s2 p1 nopad",
           "avg2d f64 nhwc n1c21 h12w40 k4x20",
           "avg2d bf16 nhwc n1c150 h20w70 k5x33 p2x3 nopad",
           "avg2d u8 nhwc n1c70 h20w23 k10x11",
           "avg2d f16 nhwc n1c130 h9w14 k3 s1 p1",
           "avg2d f16 nhwc n2c300 h14w14 k14 s14",
           "avg2d f16 nhwc n1c96 h70w7 k33x1 s33x1",
           "avg2d f16 nhwc n2c65 h19w17 k3 s2 p1 nopad",
           "sum3d f16 ndhwc n1c40 d5h9w9 k2",
           "avg2d f64 nhwc n1c75 h9w14 k3x5 s1 p1x2 nopad",
           "avg2d f32 nhwc n1c70 h9w14 k2x3 s1 d1x2",
           "avg2d bf16 nhwc n1c100 h14w15 k7",
           "avg2d f32 nhwc n1c600 h15w31 k7 s8",
           "avg2d f16 nhwc n1c40 h31w61 k5 s6 p1 nopad",
           "aavg2d bf16 nhwc n2c70 h12w12 out4",
           "avg2d f32 nhwc n1c64 h9w9 k3x2 s2",
           "avg2d f32 nhwc n1c40 h14w14 k5 s6 p2 div-3",
           "avg3d f32 ndhwc n1c70 d6h7w8 k2 s3",
           "sum2d f32 nhwc n1c40 h9w9 k3 s1",
           "aavg2d f32 nhwc n2c200 h7w7 out1",
           "aavg2d f32 nhwc n2c40 h7w7 out9",
           "aavg2d f64 nchw n2c21 h7w7 out1",
           "aavg2d f32 nchw n2c21 h7w7 out1 zeros",
           "aavg2d f32 nhwc n2c21 h7w7 out1 zeros",
           "avg2d f32 nhwc n1c300 h9w30 k3 s1 p1 zeros",
           "avg2d f32 nchw n2c20 h14w14 k7 zeros",
           "aavg2d f16 nchw n3c11 h7w7 out1",
           "aavg2d bf16 nchw n1c37 h14w14 out1",
           "aavg2d f32 nchw n5c1 h9w16 out1",
           "aavg2d f32 nchw n1c19 h3w1 out1",
           "aavg2d f32 nchw n2c20 h12w19 out1",
           "aavg3d f32 ncdhw n2c9 d3h5w6 out1",
           "aavg1d f32 ncw n2c20 w13 out1",
           "avg2d f32 nchw n2c20 h7w7 k7 s1",
           "avg2d f32 nchw n2c20 h6w5 k6x5 div-7",
           "avg2d f32 nchw n2c20 h11w6 k11x6 s1x6",
           "aavg2d f32 nchw n2c20 h56w56 out1",
           "aavg2d f32 nchw n1c5 h30w141 out1",
           "aavg2d f32 nchw n1c3 h2w150 out1 zeros",
           "aavg2d f64 nchw n3c9 h7w75 out1",
           "aavg2d bf16 nchw n2c19 h5w300 out1",
           "aavg2d f16 nchw n2c9 h3w50 out1",
           "aavg2d f32 spaced n2c19 h20w37 out1",
           "aavg1d f32 ncw n3c11 w1024 out1",
           "aavg1d f64 ncw n3c11 w130 out1",
           "avg3d f32 ncdhw n2c9 d2h7w7 k2x7x7 s1",
           "avg2d f32 nchw n1c3 h40w40 k40 s1",
           "avg2d f32 nhwc n1c20 h40w40 k40 s1",
           "avg2d f16 nhwc n1c40 h12w20 k12x20 s1x2",
           "sum2d f32 nchw n2c20 h28w28 k28 s3",
           "sum2d bf16 nchw n2c20 h7w7 k7",
           "avg2d f32 nchw n2c7 h17w17 k5 s3",
           "avg2d f32 nchw n2c3 h16w68 k4",
           "avg2d f32 nchw n2c3 h16w35 k4 s2 p1 nopad ceil",
           "avg2d f32 nchw n2c3 h16w35 k5x6 s1 p2x3 div-3 zeros",
           "avg2d f32 nchw n1c3 h9w70 k2 s1",
           "avg2d bf16 nchw n2c3 h14w41 k4x3 s3 p1 nopad",
           "avg2d f16 nchw n2c3 h14w41 k2x5 s2x4 p1x2",
           "sum2d f32 spaced n2c3 h9w29 k3x2 s2x1 zeros",
           "avg3d f32 ncdhw n1c3 d6h9w30 k2x3x4 s1x2x2 p1",
           "avg1d f32 ncw n3c4 w333 k3",
           "avg2d f32 nhwc n2c100 h30w100 k3 s1 p1",
           "avg2d f32 nhwc n1c700 h20w20 k7",
           "avg2d f32 nchw n1c9 h40w131 k3 s1 p1",
           "avg2d f32 nchw n2c5 h17w33 k3 s2 p1 nopad ceil",
           "avg2d bf16 nchw n2c5 h17w20 k3 s1 p1 nopad",
           "avg2d f16 nchw n2c5 h17w33 k2 p1",
           "avg2d f32 nchw n2c5 h17w33 k3 s1 p1 div-5 zeros",
           "sum2d f32 nchw n2c5 h17w33 k3 s2 p1 zeros",
           "avg3d f32 ncdhw n1c5 d6h9w20 k1x3x3 s2x1x1 p0x1x1 nopad",
           "avg3d f32 ncdhw n1c5 d6h9w20 k2",
           "avg2d f32 nchw n2c5 h19w40 k3 s1 p1 d3x2 nopad",
           "avg3d bf16 ncdhw n1c5 d7h9w41 k2 s3x2x2 p0x1x1 nopad",
       }) {
    expect_right(line, settings);
  }
}

/// Lanes of two vectors of sums of rows: small planes as one row, several of them at once, longer rows each by itself, groups of rows, the tensor's end.
TEST(Differential, LanesOfSums) {
  const Threads one(1), two(2);
  const std::vector<Setting> settings = {{"", &one}, {"", &two}};
  for (const std::string dtype : {"f32", "f16", "bf16"}) {
    for (const char* problem : {
             // Rows of less than a vector, of a little more, and of many.
             "2d * nchw n2c300 h4w4 k3 s2 p1 bwd",
             "2d * nchw n2c300 h9w6 k3 s2 p1 nopad bwd",
             "2d * nchw n3c67 h7w7 k3 s1 p1 nopad",
             "2d * nchw n3c67 h8w8 k3 s1 p1",
             "2d * nchw n3c67 h9w14 k3x2 s1 p1x0 nopad",
             "2d * nchw n2c40 h17w17 k5 s3 bwd",
             "2d * nchw n2c40 h18w19 k5 s3 p2 nopad ceil bwd",
             "2d * nchw n2c9 h33w31 k4x3 s2 p1 bwd",
             "2d * nchw n2c9 h42w42 k3 s2 p1 nopad bwd",
             "2d * nchw n2c5 h40w36 k3 s1 p1",
             "2d * nchw n1c3 h70w63 k5 s1 p2 nopad",
             "2d * nchw n1c3 h70w65 k5 s1 p2 nopad",
             "2d * nchw n1c2 h300w129 k4x7 s3x2 p1x3 nopad bwd",
             "2d * nchw n1c1 h600w61 k3 s2 p1 bwd",
             "2d * spaced n3c17 h13w15 k3 s2 p1 nopad bwd",
             "2d * nchw n2c17 h19w21 k3x5 s1x2 p0x2 div-3 zeros",
             "2d * nchw n2c17 h19w21 k3 s1 p1 div-3 zeros",
             "2d * nchw n2c17 h9w12 k3 s1 p1 nan",
             "2d * nchw n2c17 h9w12 k3 s2 p1 inf bwd",
             "2d * nchw n2c17 h9w12 k3 s2 p1 tiny bwd",
             "2d * nchw n2c5 h30w20 k9x3 s4x2 p4x1 nopad bwd",
             "2d * nchw n2c5 h11w60 k2x3 s3x2 d2 bwd",
             "2d * nchw n2c5 h21w20 k3x1 s1 p1x0",
             // Divisors that differ from slice to slice, and slices that none or several see.
             "3d * ncdhw n2c3 d7h9w14 k3 s1 p1 nopad",
             "3d * ncdhw n2c3 d7h9w70 k3 s1 p1 nopad",
             "3d * ncdhw n1c3 d9h13w17 k3 s2 p1 nopad",
             "3d * ncdhw n1c3 d9h13w17 k2x3x2 s4x2x1 p1x1x0",
             "3d * ncdhw n1c3 d9h13w40 k4x3x3 s2 p1",
             "1d * ncw n3c70 w65 k3 s1 p1 nopad",
             "1d * ncw n3c70 w301 k4 s2",
             "1d * ncw n1c5 w9000 k5 s1 p2 nopad",
         }) {
      std::string line = problem;
      line.replace(line.find('*'), 1, dtype);
      expect_right("avg" + line, settings);
    }
  }
  expect_right("sum2d f32 nchw n2c9 h17w33 k3 s2 p1 zeros bwd", settings);
  expect_right("sum2d f16 nchw n2c9 h17w33 k3 s1 p1 zeros", settings);
  expect_right("aavg2d f32 nchw n2c40 h20w20 out7 bwd", settings);
  expect_right("aavg2d bf16 nchw n2c9 h31w100 out9x70 bwd", settings);
}

/// So large that results go around the caches, in lines that rows share, and source rows are fetched early. A test each: the reference takes its time.
class LargerThanTheCaches : public ::testing::TestWithParam<const char*> {};

TEST_P(LargerThanTheCaches, IsRight) {
  const Threads two(2);
  expect_right(GetParam(), {{"", &two}});
}

INSTANTIATE_TEST_SUITE_P(
    Problems, LargerThanTheCaches,
    ::testing::Values(
        "max2d f32 nchw n1c9 h1001w1003 k2", "max2d f16 nchw n1c150 h300w301 k2 idx:window bwd",
        "max2d f32 nchw n1c9 h1001w1003 k3 s2", "max2d f32 nchw n1c9 h1001w1003 k5 s2 p2 fwd",
        "max2d f32 nchw n1c600 h102w103 k5x7 p2x3 fwd", "aavg2d f32 nchw n1c600 h102w103 out11x9 fwd",
        "max2d f32 nchw n1c120 h200w203 k5 s1 p2 fwd", "avg2d f32 nchw n1c120 h200w203 k5 s1 p2 fwd",
        "max2d f32 nchw n1c120 h240w241 k3 s2 p1 d2 fwd", "avg2d f32 nchw n1c9 h1001w1003 k4 fwd",
        "avg2d f32 nchw n1c9 h1001w1003 k3 s2", "max2d f64 nhwc n1c17 h530w532 k3 s2",
        "max2d f32 nchw n1c350 h112w113 k3 s2 p1 fwd", "avg2d f32 nchw n1c600 h112w113 k2",
        "avg2d f32 nchw n1c600 h112w112 k2 bwd", "avg2d f16 nchw n1c700 h150w151 k3 s2 p1 bwd",
        "avg2d f32 nchw n1c25001 h17w17 k5 s3 bwd", "avg2d f16 nchw n1c60000 h14w15 k3 s2 p1 bwd",
        "avg2d f32 nchw n1c320 h112w120 k3 s1 p1 nopad bwd", "avg2d f32 nchw n1c320 h150w120 k33x3 s32x2 p0x1 bwd",
        "max2d f32 nchw n1c40000 h14w14 k2 idx:window bwd", "max2d bf16 nchw n1c1200 h121w123 k4x3 s5x4 idx:window bwd",
        "max2d f32 nhwc n1c64 h330w331 k3 s2 p1 fwd", "max2d bf16 nhwc n1c64 h260w261 k2 fwd",
        "max2d f32 nhwc n1c16 h700w803 k3 s2 p1 nan fwd", "max2d f32 nhwc n1c128 h230w301 k3 s2 extreme fwd",
        "max2d f32 nhwc n1c16 h601w500 k3 s1 p1 ties fwd", "max2d f32 nhwc n1c96 h330w331 k3 s3 nan fwd",
        "max2d f32 nhwc n1c64 h2w9000 k2 s1 p3x0:4x0 d5x1 fwd",  // some windows are empty
        "avg2d f32 nhwc n1c64 h260w261 k3 s1 p1 fwd", "avg2d f32 nhwc n1c64 h350w351 k4 fwd",
        "avg2d f32 nhwc n1c64 h400w401 k2 bwd", "avg2d f32 nhwc n1c80 h360w361 k3 s2 p1 nopad bwd",
        "avg2d bf16 nhwc n1c96 h460w461 k3 s2 p1 bwd", "avg2d bf16 nhwc n1c96 h430w432 k2 fwd",
        "avg2d f32 nhwc n1c80 h200w231 k3 s2 p1 nopad bwd", "aavg2d f64 nchw n1c75001 h7w8 out1",
        "max2d f32 nhwc n1c64 h331w330 k3 s2 p1 idx:window bwd", "max2d f32 nhwc n1c64 h400w401 k2 idx:window bwd",
        "max2d f32 nhwc n1c64 h331w330 k8 idx:window bwd", "max2d bf16 nhwc n1c96 h450w451 k2x3 idx:window bwd",
        "max3d f32 ndhwc n1c16 d33h98w97 k2 idx:window bwd", "max2d bf16 nchw n1c70 h330w331 k3 s1 p1 idx:window bwd",
        "amax2d f64 nhwc n1c150 h120w120 out15", "amax2d f32 nchw n1c90 h301w199 out1 bwd",
        "amax1d bf16 ncw n3c40001 w101 out1 zeros bwd", "amax1d f16 ncw n1c300001 w33 out1 idx:window bwd",
        "aavg2d f64 nhwc n1c150 h120w120 out15", "avg2d f32 nhwc n1c64 h700w601 k7 bwd",
        "avg2d bf16 nhwc n1c96 h750w751 k9x8 bwd", "max2d bf16 nhwc n1c96 h450w451 k3 s2 idx:window bwd",
        "max2d f16 nhwc n1c36 h800w701 k3 s2 idx:window bwd",
        // Results that are small beside an input which may stay in the caches.
        "max2d f32 nhwc n1c64 h300w301 k2 fwd", "max2d f32 nhwc n1c400 h120w121 k3 s2 nan fwd",
        "max2d f32 nhwc n1c48 h330w331 k3 s2 p1 fwd", "max2d f32 nhwc n1c64 h270w272 k2 nan fwd",
        "max2d f32 nhwc n1c16 h500w503 k2 fwd idx:window", "avg2d bf16 nhwc n1c96 h331w330 k2 fwd",
        // Maxima with indices whose rows, or next window, are asked for early.
        "max2d f32 nhwc n4c64 h112w113 k3 s2 p1 nan fwd idx:flat64", "max2d f16 nhwc n6c64 h112w113 k3 s2 p1 ties fwd",
        "max2d bf16 nhwc n6c32 h160w113 k3 s2 p1 extreme fwd idx:flat64",
        "max3d bf16 ndhwc n1c64 d17h81w80 k2 ties fwd", "max2d f16 nhwc n3c128 h130w131 k2 ties fwd idx:flat64",
        "max2d f16 nhwc n1c2048 h40w61 k3 s2 p1 nan fwd",
        // Few planes, whose rows threads share, and planes longer than an L2.
        "max2d f32 nchw n1c3 h1501w1400 k3 s2 p1 fwd", "max2d f32 nchw n1c2 h1701w1503 k3 s2 idx:flat32 fwd",
        "avg2d f32 nchw n1c1 h2501w2400 k3 s2 p1 nopad fwd", "max2d f16 nchw n1c3 h1800w2301 k2 nan fwd",
        "max2d f32 nchw n1c1 h2001w1999 k3 s1 p1 d4 fwd", "max3d f32 ncdhw n1c3 d5h500w501 k2 fwd",
        "avg3d f32 ncdhw n1c17 d4h290w301 k2 fwd", "max3d f32 ncdhw n1c9 d7h300w301 k3 s2 p1 fwd",
        "max3d f32 ncdhw n1c9 d9h290w251 k3 fwd",
        // Columns whose inputs are asked for by tiles.
        "max3d f32 ndhwc n1c32 d9h200w201 k3 s2 p1 nan fwd", "max2d f32 nhwc n1c80 h300w370 k3x4 s2 fwd",
        "lp2d f32 nchw n1c600 h112w113 k2 norm2", "lp2d f32 nhwc n1c64 h400w401 k2 ceil norm2",
        "unpool2d f32 nchw n1c64 h130w131 k2 bwd", "lp2d f32 nchw n1c350 h112w113 k4x3 s2x3 norm2 fwd",
        "max2d u8 nchw n1c160 h320w331 k4x3 s3x4 fwd"));

/// The corners SEMANTICS names.
TEST(Differential, Corners) {
  for (const char* line : {
           "max2d f32 nchw n1c1 h6w6 k7 s2 ceil",                        // a window larger than the input
           "max2d f32 nchw n1c1 h1w2 k1x2 s1 p0x1 d1x3",                 // a window without a tap
           "max1d f32 ncw n1c3 w1 k2 s2 p1 d2",                          // the same, nothing else in the output
           "max2d f32 nchw n1c3 h2w4 k2x2 s1 p3x0:4x0 d5x1",             // the first rows' windows have none
           "max3d f32 ncdhw n2c3 d2h3w4 k2x1x1 s1 p3x0x0:4x0x0 d5x1x1",  //
           "max1d f32 ncw n1c3 w2 k2 s1 p3:4 d5",                        //
           "max3d f32 ndhwc n1c3 d1h1w1 k2 s2 p1 d2",                    //
           "avg1d f32 ncw n1c3 w1 k2 s2 p1 d2 nopad",                    // its average divides by nothing
           "avg2d i32 nchw n1c3 h1w1 k2 s2 p1 d2 nopad",                 //
           "sum3d i8 ncdhw n1c3 d1h1w1 k2 s2 p1 d2",                     //
           "lp1d f32 ncw n1c3 w1 k2 s2 p1 d2 norm2",                     //
           "min2d u8 nhwc n1c3 h1w1 k2 s2 p1 d2",                        //
           "amax2d f32 nchw n1c2 h3w3 out5x7",                           // more outputs than inputs
           "aavg1d bf16 ncw n1c2 w3 out70",                              //
           "amax3d f32 ndhwc n2c5 d3h4w5 out*x2x9",                      //
           "max2d f32 nchw n0c3 h4w4 k2",                                // an empty batch
           "aavg2d f32 nhwc n0c3 h4w4 out2",                             //
           "unpool2d f32 nchw n0c3 h4w4 k2",                             //
           "fmax2d f32 nchw n0c3 h4w4 k2 out2",                          //
           "amax2d f32 nchw n2c3 h4w4 out0x2 fwd",                       // an output of size 0
           "max2d f32 nhwc n1c70 h4w5 k1 s1 d2147483647",  // a single tap, and a dilation that leads nowhere
           "max2d f32 nchw n2c3 h8w8 k2 neginf",           // nothing beats the initial value
           "max2d f32 nchw n2c3 h8w20 k3 s1 p1 neginf",    //
           "max2d f32 nchw n1c3 h5w100 k3 s1 p1x1000:1x1000 d1x1000 idx:window",  // padding wider than a row
           "max2d f16 nchw n2c3 h9w9 k3 s2 p1 ceil neginf idx:window",            //
           "max3d f32 ncdhw n2c3 d5h8w20 k3 s2 p1 neginf",                        //
           "max3d f32 ncdhw n2c3 d5h8w9 k2 p1 neginf idx:window",                 //
           "min2d i8 nchw n2c3 h8w8 k3 s1 p1 extreme",                            //
           "max2d i64 nhwc n2c3 h8w8 k3 s1 p1 extreme",                           //
           "sum2d i64 nchw n2c3 h8w8 k3 s1 p1 extreme",                           // sums that wrap around
           "avg2d i64 nchw n2c3 h8w8 k3 s1 p1 extreme div-1",                     //
           "avg2d u8 nhwc n2c3 h8w8 k3 s1 p1 extreme",                            //
           "avg2d i8 nchw n1c1 h4w4 k2 div-3",                                    // truncates toward zero
           "max2d f32 nchw n2c3 h8w8 k3 s2 p1 zeros",                             // the first zero's sign stays
           "max2d bf16 nhwc n2c9 h8w8 k3 s2 p1 zeros",                            //
           "max2d bf16 nhwc n2c64 h8w8 k3 s2 p1 extreme",                         //
           "max2d f16 nchw n2c9 h8w40 k3 s1 p1 extreme",                          //
           "max2d f16 nhwc n2c64 h8w8 k2 neginf",                                 //
           "max2d bf16 nchw n2c9 h8w40 k2 neginf",                                //
           "max2d f32 nchw n2c3 h8w9 k3 s2 p1 tiny",                              // subnormals are numbers
           "avg2d f32 nchw n2c3 h8w9 k3 s2 p1 tiny",                              //
           "avg2d bf16 nhwc n2c70 h40w9 k3 s2 extreme fwd",  // sums that overflow halfway, infinities among them
           "max2d f16 nchw n2c3 h8w9 k3 s2 p1 tiny",         //
           "max2d f32 nchw n1c1 h40w40 k16 s3",              // 256 taps: window indices of 16 bits
           "max2d f32 nchw n1c1 h20w20 k15x17 s1",           // 255 taps: the most 8 bits can tell apart
           "amax2d f32 nhwc n1c3 h40w41 out2",               //
           "max1d f32 ncw n1c1 w65600 k65537 s7",            // and of 32 bits
           "max2d f32 broadcast n2c7 h9w9 k3 s2",            // a zero stride
           "avg3d f32 flipped n2c2 d4h5w6 k2",               // negative strides
           "fmax3d f64 ncdhw n1c2 d6h7w8 k2 out2 seed4",     //
           "lp2d f64 nchw n1c2 h7w7 k3 s2 norminf ceil",     //
           "lp2d f32 nhwc n1c9 h7w7 k3 s2 norm-inf",         //
           "lp1d f32 ncw n1c1 w9 k1 s2 norm0.5 ties",        // the gradient of elements no window sees
       }) {
    expect_right(line, every_target());
  }
}

}  // namespace
}  // namespace cenote::testing
