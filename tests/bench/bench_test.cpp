// The comparison's own parts: a benchmark that miscounts bytes or misreads its suite would be believed.
#include "common/copy_bandwidth.hpp"
#include "common/data.hpp"
#include "common/json.hpp"
#include "common/run.hpp"
#include "common/suite.hpp"
#include "compare/report.hpp"

#include <cenote/plan.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <sstream>

namespace cenote::bench {
namespace {

Plan plan_of(const Row& row) {
  PoolSpec spec = row.pool->spec;
  spec.return_indices = row.pass == RowPass::forward_indices;
  const Shape shape{std::span<const std::int64_t>(row.pool->shape)};
  const TensorDesc input = row.layout == MemoryFormat::channels_last ? TensorDesc::channels_last(row.dtype, shape)
                                                                     : TensorDesc::contiguous(row.dtype, shape);
  if (row.pass == RowPass::backward && spec.op != Op::max_unpool) spec.index_kind = row.saved_kind;
  return Plan::make(row.pass == RowPass::backward ? Pass::backward : Pass::forward, input, spec);
}

TEST(Suite, CountsTheBytesAndSizesThePlanCounts) {
  const std::vector<Case> cases = parse_suite(default_suite());
  for (const IndexKind saved : {IndexKind::window, IndexKind::flat64}) {
    const std::vector<Row> rows = rows_of(cases, "", saved);
    ASSERT_GT(rows.size(), 100U);
    for (const Row& row : rows) {
      const Plan plan = plan_of(row);
      EXPECT_EQ(bytes_of(row), plan.bytes_moved()) << label(row) << " from " << name_of(saved);
      EXPECT_EQ(row.pool->geometry.output_count(), plan.output().numel()) << label(row);
    }
  }
}

TEST(Suite, FilterLooksAtTheWholeLabel) {
  const std::vector<Case> cases = parse_suite(default_suite());
  const std::vector<Row> rows = rows_of(cases, "^resnet50-stem f32 planar");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(label(rows[0]), "resnet50-stem f32 planar forward");
  EXPECT_TRUE(rows_of(cases, "no such case").empty());
}

TEST(Suite, WholeNumbersHaveNoGradients) {
  const std::vector<Case> cases = parse_suite(R"({"cases": [{"name": "a", "op": "avg_pool1d", "shape": [1, 1, 8],
    "args": {"kernel_size": 2}, "dtypes": ["u8", "f16"], "layouts": ["planar"], "passes": ["forward", "backward"]}]})");
  const std::vector<Row> rows = rows_of(cases, "");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(label(rows[0]), "a u8 planar forward");
  EXPECT_EQ(label(rows[2]), "a f16 planar backward");
}

TEST(Suite, MistakesAreNamed) {
  const auto message_of = [](const std::string& text) -> std::string {
    try {
      parse_suite(text);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  const auto with = [](const std::string& op, const std::string& shape, const std::string& args) {
    return "{\"cases\": [{\"name\": \"x\", \"op\": \"" + op + "\", \"shape\": " + shape + ", \"args\": " + args +
           ", \"dtypes\": [\"f32\"], \"layouts\": [\"planar\"], \"passes\": [\"forward\"]}]}";
  };
  EXPECT_EQ(message_of(with("max_pool2d", "[1, 2, 4, 4]", "{\"kernel_size\": 2}")), "");
  EXPECT_EQ(message_of(with("max_pool4d", "[1, 2, 4, 4]", "{}")), "case 'x': op: unknown name 'max_pool4d'");
  EXPECT_EQ(message_of(with("max_pool2d", "[2, 4, 4]", "{\"kernel_size\": 2}")),
            "case 'x': shape must have N, C and 2 spatial sizes");
  EXPECT_EQ(message_of(with("max_pool2d", "[1, 2, 4, 4]", "{\"kernel\": 2}")),
            "case 'x': args: unknown argument 'kernel'");
  EXPECT_EQ(message_of(with("max_pool2d", "[1, 2, 4, 4]", "{\"kernel_size\": [2, 2, 2]}")),
            "case 'x': kernel_size must have 1 or 2 entries");
  EXPECT_EQ(message_of(with("max_pool2d", "[1, 2, 4, 4]", "{\"kernel_size\": 5}")),
            "case 'x': the output would be empty");
  EXPECT_EQ(message_of("{\n\"cases\": [\n}"), "line 3: expected a value");
  EXPECT_EQ(message_of(std::string(1000, '[')), "line 1: nested too deeply");
}

/// Everything but the competitor is the real thing.
class FakeCall final : public Call {
 public:
  explicit FakeCall(std::function<void()> body) : body_(std::move(body)) {}
  void run() override { body_(); }

 private:
  std::function<void()> body_;
};
class Fake final : public Competitor {
 public:
  Fake(std::string name, bool right) : name_(std::move(name)), right_(right) {}
  std::string name() const override { return name_; }
  std::string version() const override { return "1"; }
  std::unique_ptr<Call> prepare(const Workload& w) override {
    return std::make_unique<FakeCall>([w, right = right_] {
      // kernel_size 1: the result is the input
      if (right) std::memcpy(w.output, w.input, static_cast<std::size_t>(w.geometry().input_count()) * 4);
    });
  }

 private:
  std::string name_;
  bool right_;
};

TEST(Run, WrongResultsAreNotTimedAndTheReportIsComplete) {
  const std::vector<Case> cases = parse_suite(
      "{\"cases\": [{\"name\": \"copy\", \"op\": \"max_pool2d\", \"shape\": [1, 3, 5, 7], \"args\": {\"kernel_size\": "
      "1}, "
      "\"dtypes\": [\"f32\"], \"layouts\": [\"planar\", \"channels_last\"], \"passes\": [\"forward\"]}]}");
  std::vector<std::unique_ptr<Competitor>> competitors;
  competitors.push_back(std::make_unique<Fake>("cenote", true));
  competitors.push_back(std::make_unique<Fake>("good", true));
  competitors.push_back(std::make_unique<Fake>("bad", false));
  const RunResult result = run_rows(rows_of(cases, ""), competitors, {.threads = 1, .seconds_per_competitor = 0.001});
  ASSERT_EQ(result.rows.size(), 2U);
  EXPECT_GT(result.copy_gbps, 0);
  for (const RowResult& row : result.rows) {
    EXPECT_EQ(row.bytes, 2 * 3 * 5 * 7 * 4);
    EXPECT_GT(row.time_of("cenote"), 0);
    EXPECT_GT(row.time_of("good"), 0);
    EXPECT_EQ(row.time_of("bad"), 0);
    ASSERT_EQ(row.wrong.size(), 1U);
    EXPECT_TRUE(row.wrong[0].starts_with("bad: output[0] is ")) << row.wrong[0];
    EXPECT_EQ(row.best_peer().first, "good");
  }

  std::stringstream text;
  write_json(text, result);
  const Json json = Json::parse(text.str());
  EXPECT_EQ(json.find("threads")->integer("threads"), 1);
  const Json& row = json.find("rows")->array("rows").at(1);
  EXPECT_EQ(row.find("case")->string(""), "copy");
  EXPECT_EQ(row.find("op")->string(""), "max_pool2d");
  EXPECT_EQ(row.find("layout")->string(""), "channels_last");
  EXPECT_EQ(row.find("pass")->string(""), "forward");
  EXPECT_EQ(row.find("best_peer")->string(""), "good");
  EXPECT_EQ(row.find("ns")->find("bad"), nullptr);
  const double ratio = row.find("ns")->find("good")->number("") / row.find("ns")->find("cenote")->number("");
  EXPECT_NEAR(row.find("ratio_to_best_peer")->number(""), ratio, 0.05 * ratio);
}

TEST(Data, ChannelsLastHoldsTheSameElements) {
  const std::vector<Case> cases = parse_suite(
      "{\"cases\": [{\"name\": \"x\", \"op\": \"max_pool2d\", \"shape\": [2, 35, 6, 7], \"args\": {\"kernel_size\": "
      "2}, "
      "\"dtypes\": [\"f32\"], \"layouts\": [\"channels_last\"], \"passes\": [\"backward\"]}]}");
  const Row row = rows_of(cases, "").at(0);
  const CaseData planar = make_case_data(cases[0], DType::f32, serial_executor());
  const RowData data(planar, cases[0], DType::f32, MemoryFormat::channels_last);
  const auto* interleaved = static_cast<const float*>(data.workload(row, 1).input);
  const float* plain = planar.input.as<float>();
  for (int n = 0; n < 2; ++n) {
    for (int c = 0; c < 35; ++c) {
      for (int p = 0; p < 42; ++p) ASSERT_EQ(interleaved[(n * 42 + p) * 35 + c], plain[(n * 35 + c) * 42 + p]);
    }
  }
}

TEST(Median, OfOddAndEvenNumbers) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
}

}  // namespace
}  // namespace cenote::bench
