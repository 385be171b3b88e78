// The reference against PyTorch's recorded results: what all other tests measure the library with must itself be right.
#include "golden/judge.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <tuple>

namespace cenote::testing {
namespace {

/// The reference's exact answer must lie within the same tolerance that is granted to the library's rounded one.
template <class T>
std::vector<T> rounded(DType dtype, const Values<T>& values) {
  std::vector<T> result;
  for (auto value : values.value) {
    if constexpr (std::is_same_v<T, double>) {
      result.push_back(reference::round_to(dtype, value));
    } else {
      result.push_back(value);
    }
  }
  return result;
}

template <class T>
std::string compare(const Case& recorded) {
  const Problem& problem = recorded.problem;
  const Pool pool = reference::resolve(problem.spec, problem.dtype, problem.shape);
  const Shape output = reference::output_shape(pool, problem.shape);
  if (!std::ranges::equal(output, recorded.output->shape)) return "output shape " + to_string(output);
  Given<T> given = given_by<T>(recorded);
  const bool backward = recorded.grad_input.has_value();
  if (!backward) given.grad_output.assign(recorded.output->reals.size() + recorded.output->integers.size(), 0);
  const Expectation<T> answer = expect_reference(problem, pool, given);
  const Expectation<T> expected = expected_by(recorded, pool, given);
  auto text = first_difference("output", problem.dtype, output, expected.output, rounded(problem.dtype, answer.output));
  if (text.empty()) text = first_difference("indices", output, expected.flat, answer.flat);
  if (text.empty() && backward) {
    text = first_difference("grad_input", problem.dtype, problem.shape, *expected.grad_input,
                            rounded(problem.dtype, *answer.grad_input));
  }
  return text;
}

TEST(Reference, AnswersAsRecorded) {
  int answered = 0;
  for (const Case& recorded : read_recording(CENOTE_GOLDEN_DIR)) {
    if (recorded.error) continue;
    ++answered;
    const std::string text =
        is_floating(recorded.problem.dtype) ? compare<double>(recorded) : compare<std::int64_t>(recorded);
    EXPECT_EQ(text, "") << "case " << recorded.id << ": " << to_string(recorded.problem);
  }
  EXPECT_GT(answered, 1000);
}

TEST(Recording, ProblemsSurviveTheirText) {
  for (const Case& recorded : read_recording(CENOTE_GOLDEN_DIR)) {
    const std::string text = to_string(recorded.problem);
    EXPECT_EQ(to_string(parse_problem(text)), text) << "case " << recorded.id;
  }
}

/// What read_recording says about a recording of these files.
std::string complaint(const std::string& cases, const std::string& data) {
  const std::string folder = ::testing::TempDir() + "/cenote-recording";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/cases.jsonl") << cases;
  std::ofstream(folder + "/data.bin") << data;
  try {
    read_recording(folder);
  } catch (const RecordingError& error) {
    return error.what();
  }
  return "";
}

TEST(Recording, WrongOnesSayWhere) {
  const std::string head = "{\"format\": 1}\n";
  const auto one_case = [&](const std::string& op, const std::string& args, const std::string& input) {
    return head + R"({"id": 0, "op": ")" + op + R"(", "args": )" + args +
           R"(, "layout": "contiguous", "values": "normal", "error": "refused", "input": )" + input + "}\n";
  };
  const std::string array = R"({"dtype": "f32", "shape": [1, 1, 2], "offset": 0, "nbytes": 8})";
  EXPECT_EQ(complaint(one_case("max_pool1d", R"({"kernel_size": 2})", array), "12345678"), "");
  const std::tuple<std::string, std::string, const char*> wrong[] = {
      {head + "{\"id\": ", "", "line 2"},
      {"{\"format\": 2}\n", "", "format 2"},
      {head, "", "no cases"},
      {one_case("max_pool4d", "{}", array), "12345678", "unknown op 'max_pool4d'"},
      {one_case("max_pool1d", R"({"kernel": 2})", array), "12345678", "unknown argument 'kernel'"},
      {one_case("max_pool1d", R"({"kernel_size": "two"})", array), "12345678", "line 2"},
      {one_case("max_pool1d", "{}", array), "1234567", "outside data.bin"},
      {one_case("max_pool1d", "{}", R"({"dtype": "f32", "shape": [3], "offset": 0, "nbytes": 8})"), "12345678",
       "disagree"},
      {one_case("max_pool1d", "{}", R"({"dtype": "f32", "shape": [-1], "offset": 0, "nbytes": 8})"), "12345678",
       "line 2"},
      {one_case("max_pool1d", "{}", R"({"dtype": "f31", "shape": [2], "offset": 0, "nbytes": 8})"), "12345678",
       "'f31'"},
  };
  for (const auto& [cases, data, message] : wrong) {
    const std::string said = complaint(cases, data);
    EXPECT_NE(said.find(message), std::string::npos) << "expected '" << message << "', got '" << said << "'";
  }
}

}  // namespace
}  // namespace cenote::testing
