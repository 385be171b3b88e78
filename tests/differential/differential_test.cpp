// The library against the reference on problems drawn at random: every op, dtype, layout, index kind and instruction set.
//
// CENOTE_TEST_SEED picks other problems, CENOTE_TEST_PROBLEMS how many (of the small ones; the other tests scale along).
// A failure prints the problem's line: `cenote check '<line>'` replays it.
#include "differential/differential.hpp"
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

/// Averages over rows that end anywhere in a vector, the last of them where the tensor does.
TEST(Differential, EveryWholeRow) {
  const auto settings = every_target();
  for (const std::string dtype : {"f32", "f64", "f16", "bf16"}) {
    for (int width = 1; width <= 140; ++width)
      expect_right("aavg1d " + dtype + " ncw n3c7 w" + std::to_string(width) + " out1", settings);
    expect_right("aavg1d " + dtype + " spaced n3c19 w77 out1 zeros", settings);
    expect_right("aavg1d " + dtype + " ncw n2c40 w1001 out1 inf", settings);
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
