// cenote-gpu-test: everything that needs a GPU, and nothing else. CENOTE_TEST_SEED picks other problems, CENOTE_TEST_PROBLEMS how
// many, CENOTE_GOLDEN_DIR another recording. A failure prints the problem's line.
#include "cuda/elsewhere.hpp"
#include "cuda/kernel_problems.hpp"
#include "golden/judge.hpp"
#include "problems/buffer.hpp"
#include "problems/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <span>
#include <string_view>
#include <thread>
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
std::vector<Setting> settings_for(const Problem& problem, Gpu& with_vectors, Gpu& without) {
  std::vector<Setting> settings;
  if (is_max_family(problem)) settings.push_back({});
  settings.push_back({"", nullptr, &with_vectors});
  settings.push_back({"", nullptr, &without});
  return settings;
}

void expect_right(const Problem& problem) {
  EXPECT_EQ(check_problem(problem, settings_for(problem, aligned(), misaligned())), "")
      << "problem: " << to_string(problem);
}

/// Several lines at a time: nearly all of it is the host's work. settings_of(problem, aligned, misaligned): how each is run.
template <class SettingsOf>
void expect_all(std::span<const char* const> lines, SettingsOf settings_of) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::string> troubles(lines.size());
  auto work = [&] {
    Gpu with_vectors(Gpu::Alignment::vectors), without(Gpu::Alignment::elements);
    for (std::size_t i = next++; i < lines.size(); i = next++) {
      const Problem problem = parse_problem(lines[i]);
      troubles[i] = check_problem(problem, settings_of(problem, with_vectors, without));
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::clamp(std::thread::hardware_concurrency(), 1U, 8U); ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(troubles[i], "") << "problem: " << lines[i];
}

void expect_all_right(std::span<const char* const> lines) { expect_all(lines, settings_for); }

/// Every line so many times, with the same bits.
void expect_same_bits(std::span<const char* const> lines, std::size_t times) {
  expect_all(lines, [&](const Problem&, Gpu& gpu, Gpu&) {
    return std::vector<Setting>(times, Setting{"", nullptr, &gpu});
  });
}

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

TEST(Gpu, EveryKernel) { expect_all_right(kEveryKernel); }

TEST(Gpu, LongStrips) { expect_all_right(kLongStrips); }

TEST(Gpu, TilesOfCells) { expect_all_right(kCells); }

TEST(Gpu, StraightFromMemory) { expect_all_right(kDirect); }

TEST(Gpu, TilesOfWindows) { expect_all_right(kTileWindows); }

TEST(Gpu, MoreThanFew) { expect_all_right(kMoreThanFew); }

TEST(Gpu, ManySmallPlanes) { expect_all_right(kManyPlanes); }

TEST(Gpu, KeptPlanes) { expect_all_right(kKeptPlanes); }

TEST(Gpu, WindowsAlongRows) { expect_all_right(kRowWindows); }

TEST(Gpu, AnySize) { expect_all_right(kAnySize); }

TEST(Gpu, Powers) { expect_all_right(kPowers); }

TEST(Gpu, FewChannels) { expect_all_right(kFewChannels); }

TEST(Gpu, SameBitsTwentyTimes) {
  expect_same_bits(kEveryKernel, 20);
  expect_same_bits(kCells, 20);
  expect_same_bits(kDirect, 20);
  expect_same_bits(kTileWindows, 3);
  expect_same_bits(kManyPlanes, 3);
  expect_same_bits(kKeptPlanes, 3);
  expect_same_bits(kRowWindows, 3);
  expect_same_bits(kAnySize, 3);
  expect_same_bits(kPowers, 3);
  expect_same_bits(kFewChannels, 3);
}

/// A refused run touches nothing but its result, and says so afterwards, once.
TEST(Gpu, IndicesOutsideTheirWindowsAreReported) {
  for (const char* line : {"max2d f32 nchw n2c3 h12w12 k3 s2 p1",
                           "max2d f32 nhwc n2c4 h12w12 k2",
                           "max2d f32 nchw n2c3 h20w20 k13 s1 p6",
                           "max2d f32 nchw n67c128 h8w8 k5 s1 p2",
                           "max2d f32 nchw n16c129 h14w14 k2",
                           "max1d f32 ncw n2c3 w64 k4",
                           "max2d f32 nchw n3c9 h55w55 k3 s2",
                           "max2d f32 nchw n45c101 h7w19 k3 s2 p1",
                           "max2d f32 nhwc n2c20 h43w51 k3 s1 p1",
                           "max3d f32 ndhwc n2c20 d9h23w21 k3 s2 p1",
                           "max2d f16 nchw n2c3 h13w16 k3 s2 p1",
                           "max3d f16 ncdhw n2c3 d4h6w8 k2",
                           "max3d f16 ndhwc n2c8 d4h6w8 k2",
                           "max2d bf16 nchw n2c3 h12w16 k2",
                           "max2d f32 nchw n2c3 h12w16 k3 s1 p1",
                           "max2d f16 nhwc n2c8 h13w15 k3 s2 p1",
                           "amax2d f32 nchw n2c3 h12w12 out5",
                           "fmax2d f32 nchw n2c3 h12w12 k2 out5",
                           "max1d f64 ncw n2c3 w20 k3 s1",
                           "unpool2d f32 nchw n2c3 h6w6 k2",
                           "max2d f32 nchw n17c5 h32w36 k3 s2 p1",
                           "max2d f32 nhwc n11c8 h31w33 k2",
                           "max2d f16 nchw n17c5 h32w40 k3 s2 p1",
                           "max2d f16 nhwc n17c8 h31w33 k3 s2 p1",
                           "max2d f32 nchw n37c5 h21w24 k3 s1 p1",
                           "max2d bf16 nchw n30c5 h20w32 k2",
                           "max2d f32 nchw n2c3 h12w12 k3 s1 p1 d2",
                           "max2d f32 nhwc n2c4 h12w12 k4 s2 p1",
                           "max1d f32 ncw n2c3 w64 k3 s2 p1",
                           "max3d f32 ncdhw n2c3 d6h8w8 k3 s2 p1",
                           "max1d f32 ncw n17c9 w501 k3 s2 p1",
                           "max2d f32 nchw n23c5 h31w33 k3 s1 p1 d2",
                           "amax2d f32 nchw n50c4 h20w20 out7",
                           "max2d f16 nchw n31c5 h30w34 k4 s2 p1",
                           "max3d f32 ncdhw n9c2 d7h25w27 k1x2x2 s1",
                           "max2d f32 nhwc n23c4 h31w33 k2 s1",
                           "max1d f32 ncw n17c9 w501 k3",
                           "max1d f16 ncw n17c9 w502 k5 s6",
                           "max1d f32 ncw n17c9 w600 k13",
                           "max2d f32 nchw n17c9 h20w31 k3",
                           "max2d f16 nchw n17c9 h20w40 k2x1",
                           "max2d f32 nchw n5c9 h40w40 k5 s1 p2",
                           "max2d f32 nchw n3c9 h61w63 k7 s1 p3",
                           "max2d f64 nchw n2c3 h12w12 k2"}) {
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
                                   {"max2d f32 nchw n2c3 h12w16 k3 s1 p1", 9},
                                   {"max2d f16 nhwc n2c8 h13w15 k3 s2 p1", 9},
                                   {"max2d f32 nchw n2c3 h32w32 k2", 4},
                                   {"max3d f32 ncdhw n1c3 d6h16w16 k2", 8},
                                   {"max3d f16 ncdhw n1c3 d6h16w16 k2", 8},
                                   {"max2d f16 nchw n2c3 h32w32 k2", 4},
                                   {"max2d f32 nhwc n133c40 h8w8 k5 s1 p2", 25},
                                   {"max2d f32 nchw n67c128 h8w8 k5 s1 p2", 25},
                                   {"max2d f32 nhwc n2c8 h32w32 k3 s2 p1", 9},
                                   {"max2d f32 nchw n3c9 h55w55 k3 s2 p1", 9},
                                   {"max2d f32 nhwc n2c20 h43w51 k3 s1 p1", 9},
                                   {"max3d f32 ndhwc n2c20 d9h23w21 k3 s2 p1", 27},
                                   {"max2d f32 nchw n2c3 h20w20 k13 s1 p6", 169},
                                   {"max2d f32 nchw n17c5 h32w36 k3 s2 p1", 9},
                                   {"max2d f16 nchw n17c5 h32w40 k3 s2 p1", 9},
                                   {"max2d f16 nhwc n17c8 h31w33 k3 s2 p1", 9},
                                   {"max2d f32 nchw n37c5 h21w24 k3 s1 p1", 9},
                                   {"max2d f32 nchw n2c3 h12w16 k3 s1 p1 d2", 9},
                                   {"max2d f32 nhwc n2c8 h13w15 k4 s2 p1", 16},
                                   {"max1d f32 ncw n2c3 w64 k3 s2 p1", 3},
                                   {"max1d f32 ncw n17c9 w501 k3 s2 p1", 3},
                                   {"max2d f32 nchw n23c5 h31w33 k3 s1 p1 d2", 9},
                                   {"max2d f32 nchw n31c9 h30w34 k4 s2 p1", 16},
                                   {"max2d f32 nhwc n23c4 h31w33 k2 s1 p1", 4},
                                   {"max3d f32 ncdhw n2c3 d6h8w8 k3 s2 p1", 27},
                                   {"max1d f32 ncw n17c9 w501 k3", 3},
                                   {"max1d bf16 ncw n17c9 w502 k5 s6", 5},
                                   {"max1d f32 ncw n17c9 w600 k13", 13},
                                   {"max2d f32 nchw n17c9 h20w31 k3", 9},
                                   {"max2d f16 nchw n17c9 h20w40 k2x1", 2},
                                   {"max2d f32 nchw n5c9 h40w40 k5 s1 p2", 25},
                                   {"max2d f32 nchw n3c9 h61w63 k7 s1 p3", 49},
                                   {"max2d f32 nhwc n3c8 h20w40 k3", 9},
                                   {"max2d f32 nhwc n3c8 h21w42 k3", 9},
                                   {"max2d f32 nhwc n3c8 h20w40 k2x1", 2},
                                   {"max2d f64 nchw n2c3 h12w12 k2", 4}}) {
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
    if (std::string_view(line).find(" s1 p") != std::string_view::npos) {  // the last window hangs over
      EXPECT_NE(trouble(expectation.ordinal.size() - 1, taps - 1).find("index outside"), std::string::npos)
          << line << " a tap in the padding behind";
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
  for (const char* line : {"max2d f32 nchw n2c3 h20w20 k7 s1 p3",     "max2d f16 nchw n2c3 h20w20 k7 s1 p3",
                           "max2d f32 nchw n67c128 h8w8 k5 s1 p2",    "max2d f16 nhwc n133c40 h8w8 k5 s1 p2",
                           "max2d f16 nchw n16c129 h14w14 k2",        "max2d bf16 nhwc n2c4 h33w20 k9 s1 p4",
                           "max2d f32 nhwc n2c8 h21w23 k3 s2 p1",     "max2d f16 nchw n2c3 h24w32 k3 s1 p1",
                           "amax2d f32 nhwc n2c4 h14w14 out5",        "max2d f32 nchw n2c3 h24w32 k4",
                           "max2d f16 nchw n2c3 h25w32 k3 s2 p1",     "max3d f16 ncdhw n2c3 d4h6w8 k2",
                           "max2d f32 nchw n3c9 h55w55 k3 s2",        "max2d bf16 nchw n2c7 h71w83 k3 s1 p1",
                           "max2d f32 nhwc n2c20 h43w51 k3 s1 p1",    "max3d f16 ndhwc n2c20 d9h23w21 k3 s2 p1",
                           "max2d f32 nchw n2c3 h12w16 k3 s1 p1",     "max2d f16 nhwc n2c8 h13w15 k3 s2 p1",
                           "max2d f32 nchw n37c5 h21w24 k3 s1 p1",    "max2d f16 nhwc n17c8 h31w33 k3 s2 p1",
                           "max2d f32 nchw n2c3 h12w12 k3 s1 p1 d2",  "max2d f32 nhwc n2c4 h12w12 k4 s2 p1",
                           "max1d f32 ncw n2c3 w64 k3 s2 p1",         "max3d f32 ncdhw n2c3 d6h8w8 k3 s2 p1",
                           "max1d f32 ncw n17c9 w501 k3 s2 p1",       "max2d f32 nchw n23c5 h31w33 k3 s1 p1 d2",
                           "amax2d f32 nchw n50c4 h20w20 out7",       "max2d f16 nchw n31c5 h30w34 k4 s2 p1",
                           "max3d f32 ncdhw n9c2 d7h25w27 k1x2x2 s1", "max2d f32 nhwc n23c4 h31w33 k2 s1"}) {
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
