#include "golden/judge.hpp"

#include <cmath>

namespace cenote::testing {
namespace {

using reference::Rounding;

/// Where the recording rounds. f32 and f64 have one type for everything; for f16 and bf16 PyTorch adds averages in f32, but 3d
/// adaptive averages and every gradient in the tensor's own type.
Rounding recorded_forward(const Pool& pool) {
  const bool own_type = pool.op == Op::adaptive_avg_pool && pool.dims == 3;
  return own_type ? Rounding::every_step(pool.dtype) : Rounding::once(pool.dtype);
}

/// Adds one side's errors to those already there.
void widen(std::vector<long double>& tolerance, const std::vector<long double>& more) {
  for (std::size_t i = 0; i < tolerance.size(); ++i) tolerance[i] += more[i];
}

/// The recorded elements, each with the tolerance of cenote's sum and of PyTorch's.
Values<double> recorded_sums(const std::vector<double>& recorded, const std::vector<reference::Sum>& sums,
                             const Rounding& theirs, int our_divisions, int their_divisions, DType dtype) {
  Values<double> values = values_of(sums, our_divisions, Rounding::once(dtype));
  widen(values.tolerance, values_of(sums, their_divisions, theirs).tolerance);
  values.value.assign(recorded.begin(), recorded.end());
  return values;
}

void expect_power(const Case& recorded, const Pool& pool, const Given<double>& given,
                  Expectation<double>& expectation) {
  auto tolerance =
      power_tolerance(pool, given.input, given.grad_output, Rounding::once(pool.dtype), recorded.exact_ties);
  Rounding theirs = Rounding::every_step(pool.dtype);
  theirs.sum = reference::accumulator(pool.dtype);  // the average inside adds in f32
  const auto more = power_tolerance(pool, given.input, given.grad_output, theirs, recorded.exact_ties);
  widen(tolerance.output, more.output);
  expectation.output.tolerance = std::move(tolerance.output);
  if (!recorded.grad_input) return;
  widen(tolerance.grad_input, more.grad_input);
  expectation.grad_input = Values<double>{{recorded.grad_input->reals.begin(), recorded.grad_input->reals.end()},
                                          std::move(tolerance.grad_input)};
}

void expect_sums(const Case& recorded, const Pool& pool, const Given<double>& given, Expectation<double>& expectation) {
  const int divisions = divisions_of(pool);
  expectation.output = recorded_sums(recorded.output->reals, sum(pool, given.input), recorded_forward(pool), divisions,
                                     divisions, pool.dtype);
  if (!recorded.grad_input) return;
  // avg_pool's backward in PyTorch rounds the divisor to the tensor's type first: one more rounding a term.
  const int theirs = divisions + (pool.op == Op::avg_pool ? 1 : 0);
  expectation.grad_input = recorded_sums(recorded.grad_input->reals, sum_backward(pool, given.grad_output),
                                         Rounding::every_step(pool.dtype), divisions, theirs, pool.dtype);
}

const std::vector<double>& elements(const Array& array, double) { return array.reals; }
const std::vector<std::int64_t>& elements(const Array& array, std::int64_t) { return array.integers; }

template <class T>
void expect_extremum(const Case& recorded, const Pool& pool, const Given<T>& given, Expectation<T>& expectation) {
  expectation.flat = recorded.indices->integers;
  expectation.ordinal = extremum(pool, given.input, given.samples).ordinal;
  if constexpr (std::is_same_v<T, double>) {
    if (!recorded.grad_input) return;
    const auto sums = extremum_backward(pool, given.grad_output, expectation.flat);
    expectation.grad_input =
        recorded_sums(recorded.grad_input->reals, sums, Rounding::every_step(pool.dtype), 0, 0, pool.dtype);
  }
}

/// An unpool's indices come as flat ones; as taps of their windows only where they are some.
template <class T>
void add_ordinals(const Pool& pool, Given<T>& given) {
  given.ordinal.assign(given.flat.size(), -1);
  for_each_box(pool, {}, [&](const reference::Box& box) {
    const auto o = static_cast<std::size_t>(box.output);
    for_each_tap(pool, box, [&](std::int64_t, std::int64_t flat, std::int64_t ordinal) {
      if (flat == given.flat[o]) given.ordinal[o] = ordinal;
    });
  });
}

template <class T>
bool every_index_is_a_tap(const Given<T>& given) {
  for (std::int64_t ordinal : given.ordinal) {
    if (ordinal < 0) return false;
  }
  return true;
}

/// A case that PyTorch refused must be refused when planned or when run.
template <class T>
std::string judge_refusal(const Case& recorded, const Setting& setting) {
  Given<T> given = given_by<T>(recorded);
  const auto kind = has_indices(recorded.problem.spec.op) ? std::optional(IndexKind::flat64) : std::nullopt;
  const auto outcome = run_forward(recorded.problem, given, kind, setting);
  return outcome.trouble.substr(0, 7) == "refused" ? "" : "accepted, but PyTorch refuses it: " + *recorded.error;
}

template <class T>
std::string judge_answer(const Case& recorded, const Setting& setting) {
  const Problem& problem = recorded.problem;
  const Pool pool = reference::resolve(problem.spec, problem.dtype, problem.shape);
  Given<T> given = given_by<T>(recorded);
  Problem tried = problem;
  if (!recorded.grad_input) tried.passes = Passes::forward;
  if (problem.spec.op == Op::max_unpool) {
    add_ordinals(pool, given);
    if (!every_index_is_a_tap(given)) {  // the window kind cannot write this index
      for (IndexKind kind : {IndexKind::flat64, IndexKind::flat32}) {
        tried.only_kind = kind;
        if (auto text = check_call(tried, given, expected_by(recorded, pool, given), setting); !text.empty())
          return text;
      }
      return {};
    }
  }
  return check_call(tried, given, expected_by(recorded, pool, given), setting);
}

}  // namespace

template <class T>
Given<T> given_by(const Case& recorded) {
  Given<T> given;
  given.input = elements(*recorded.input, T{});
  if (recorded.grad_output) given.grad_output = elements(*recorded.grad_output, T{});
  if (recorded.random_samples) {
    given.samples = recorded.random_samples->reals;
    given.samples_shape = Shape(std::span<const std::int64_t>(recorded.random_samples->shape));
  }
  if (recorded.problem.spec.op == Op::max_unpool && recorded.indices) given.flat = recorded.indices->integers;
  return given;
}
template Given<double> given_by(const Case&);
template Given<std::int64_t> given_by(const Case&);

template <class T>
Expectation<T> expected_by(const Case& recorded, const Pool& pool, const Given<T>& given) {
  Expectation<T> expectation;
  const std::vector<T>& output = elements(*recorded.output, T{});
  expectation.output = Values<T>::bits(output);
  if (pool.op == Op::max_unpool) {
    expectation.flat = given.flat;
    expectation.ordinal = given.ordinal;
    if (recorded.grad_input) expectation.grad_input = Values<T>::bits(elements(*recorded.grad_input, T{}));
  } else if (pool.is_extremum()) {
    expect_extremum(recorded, pool, given, expectation);
  } else if constexpr (std::is_same_v<T, double>) {
    expectation.output.signed_zeros = false;
    pool.op == Op::lp_pool ? expect_power(recorded, pool, given, expectation)
                           : expect_sums(recorded, pool, given, expectation);
  }
  return expectation;
}
template Expectation<double> expected_by(const Case&, const Pool&, const Given<double>&);
template Expectation<std::int64_t> expected_by(const Case&, const Pool&, const Given<std::int64_t>&);

std::string judge(const Case& recorded, const Setting& setting) {
  if (is_floating(recorded.problem.dtype))
    return recorded.error ? judge_refusal<double>(recorded, setting) : judge_answer<double>(recorded, setting);
  return recorded.error ? judge_refusal<std::int64_t>(recorded, setting)
                        : judge_answer<std::int64_t>(recorded, setting);
}

}  // namespace cenote::testing
