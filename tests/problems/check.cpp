#include "problems/check.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace cenote::testing {
namespace {

std::uint64_t bits_of(std::int64_t value) { return static_cast<std::uint64_t>(value); }
std::uint64_t bits_of(double value) {
  return std::isnan(value) ? ~std::uint64_t{0} : std::bit_cast<std::uint64_t>(value);
}

template <class T>
void append(Fingerprint* fingerprint, const std::vector<T>& values) {
  if (fingerprint == nullptr) return;
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (T value : values) {
    hash = (hash ^ bits_of(value)) * 0x100000001b3U;
    hash ^= hash >> 32;  // a product keeps the highest bit, which is the sign, to itself: two of them would cancel out
  }
  fingerprint->push_back(hash);
}

std::vector<IndexKind> kinds_of(const Problem& problem) {
  if (problem.only_kind) return {*problem.only_kind};
  return {IndexKind::flat64, IndexKind::flat32, IndexKind::window};
}

template <class T>
std::string judge_forward(const Problem& problem, const Expectation<T>& expectation, const Outcome<T>& outcome,
                          std::optional<IndexKind> kind, Fingerprint* fingerprint) {
  if (!outcome.trouble.empty()) return outcome.trouble;
  append(fingerprint, outcome.result);
  append(fingerprint, outcome.indices);
  auto text = first_difference("output", problem.dtype, outcome.shape, expectation.output, outcome.result);
  if (text.empty() && kind && problem.spec.op != Op::max_unpool) {
    const Integers& indices = *kind == IndexKind::window ? expectation.ordinal : expectation.flat;
    text = first_difference("indices", outcome.indices_shape, indices, outcome.indices);
  }
  return text;
}

template <class T>
std::string check_forward(const Problem& problem, const Given<T>& given, const Expectation<T>& expectation,
                          const Setting& setting, std::optional<IndexKind> kind, Fingerprint* fingerprint) {
  const auto text = judge_forward(problem, expectation, run_forward(problem, given, kind, setting), kind, fingerprint);
  if (text.empty()) return {};
  return kind ? std::string("forward with ") + name_of(*kind) + " indices: " + text : "forward: " + text;
}

template <class T>
std::string check_backward(const Problem& problem, const Given<T>& given, const Expectation<T>& expectation,
                           const Setting& setting, IndexKind kind, Fingerprint* fingerprint) {
  const Integers& saved = kind == IndexKind::window ? expectation.ordinal : expectation.flat;
  const Outcome<T> outcome = run_backward(problem, given, kind, saved, setting);
  std::string text = outcome.trouble;
  if (text.empty()) {
    append(fingerprint, outcome.result);
    text = first_difference("grad_input", problem.dtype, outcome.shape, *expectation.grad_input, outcome.result);
  }
  if (text.empty()) return {};
  return saved.empty() ? "backward: " + text : std::string("backward from ") + name_of(kind) + " indices: " + text;
}

std::string setting_name(const Setting& setting) {
  if (setting.elsewhere != nullptr) return to_string(setting.elsewhere->device());
  const std::string target = setting.target.empty() ? "best target" : setting.target;
  return setting.executor == nullptr ? target
                                     : target + " with " + std::to_string(setting.executor->concurrency()) + " threads";
}

template <class T>
std::string check_against_reference(const Problem& problem, const Pool& pool, const std::vector<Setting>& settings) {
  const Given<T> given = draw_given<T>(problem, pool);
  const Expectation<T> expectation = expect_reference(problem, pool, given);
  Fingerprint first;
  for (const Setting& setting : settings) {
    Fingerprint fingerprint;
    const std::string text = check_call(problem, given, expectation, setting, &fingerprint);
    if (!text.empty()) return setting_name(setting) + ": " + text;
    if (first.empty()) first = fingerprint;
    if (fingerprint != first) {
      return setting_name(setting) + ": the results are right, but their bits differ from those of " +
             setting_name(settings[0]);
    }
  }
  return {};
}

}  // namespace

template <class T>
std::string check_call(const Problem& problem, const Given<T>& given, const Expectation<T>& expectation,
                       const Setting& setting, Fingerprint* fingerprint) {
  const Op op = problem.spec.op;
  const bool indexed = has_indices(op);
  std::string text;
  if (problem.passes != Passes::backward) {
    if (op != Op::max_unpool) text = check_forward(problem, given, expectation, setting, std::nullopt, fingerprint);
    for (IndexKind kind : kinds_of(problem)) {
      if (indexed && text.empty()) text = check_forward(problem, given, expectation, setting, kind, fingerprint);
    }
  }
  if (problem.passes != Passes::forward && expectation.grad_input) {
    for (IndexKind kind : kinds_of(problem)) {
      if (text.empty()) text = check_backward(problem, given, expectation, setting, kind, fingerprint);
      if (!indexed) break;
    }
  }
  return text;
}
template std::string check_call(const Problem&, const Given<double>&, const Expectation<double>&, const Setting&,
                                Fingerprint*);
template std::string check_call(const Problem&, const Given<std::int64_t>&, const Expectation<std::int64_t>&,
                                const Setting&, Fingerprint*);

std::string check_problem(const Problem& problem, const std::vector<Setting>& settings) {
  const int rank = problem.shape.rank();
  const Op op = problem.spec.op;
  const bool adaptive = op == Op::adaptive_max_pool || op == Op::adaptive_avg_pool;
  if (rank != problem.spec.dims + 1 && rank != problem.spec.dims + 2)
    throw ProblemError("the shape does not fit the rank");
  if (adaptive ? problem.spec.output_size.empty() : problem.spec.kernel_size.empty()) {
    throw ProblemError(adaptive ? "output_size is missing: out5x5" : "kernel_size is missing: k3x3");
  }
  if (op == Op::fractional_max_pool && problem.spec.output_size.empty() && !problem.spec.output_ratio[0]) {
    throw ProblemError("output_size or output_ratio is missing: out5x5, ratio0.5x0.6");
  }
  // The library refuses what is not valid; only what it accepts has an answer to compare. Its refusal is its own answer.
  try {
    (void)Plan::make(Pass::forward, TensorDesc{problem.dtype, problem.shape, {}, cpu}, problem.spec);
  } catch (const Error& error) {
    return std::string("refused: ") + error.what();
  }
  const Pool pool = reference::resolve(problem.spec, problem.dtype, problem.shape);
  return is_floating(problem.dtype) ? check_against_reference<double>(problem, pool, settings)
                                    : check_against_reference<std::int64_t>(problem, pool, settings);
}

std::vector<Setting> every_target() {
  std::vector<Setting> settings;
  for (const std::string& target : cpu_targets()) settings.push_back({target, nullptr});
  return settings;
}

}  // namespace cenote::testing
