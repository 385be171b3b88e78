// What a user's first program does, with nothing but the installed headers: pool, be refused, pool through a plan.
#include <cenote/cenote.hpp>

#include <cstdint>
#include <cstdio>
#include <vector>

namespace F = cenote::functional;

int main() {
  int failures = 0;
  const auto expect = [&](bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "not so: %s\n", what);
    ++failures;
  };

  std::vector<float> values(16);
  for (int i = 0; i < 16; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>(i + 1);
  const std::vector<float> maxima = {6, 8, 14, 16};
  const std::vector<std::int64_t> places = {5, 7, 13, 15};

  const auto desc = cenote::TensorDesc::contiguous(cenote::DType::f32, {1, 1, 4, 4});
  const auto plan = cenote::Plan::max_pool<2>(desc, {.kernel_size = 2, .return_indices = true});
  std::vector<float> output(4);
  std::vector<std::int64_t> indices(4);
  const cenote::Status status = plan.run({.input = values.data(), .output = output.data(), .indices = indices.data()});
  expect(status.ok(), "the plan ran");
  expect(output == maxima, "the plan's maxima are 6, 8, 14, 16");
  expect(indices == places, "the plan's indices are 5, 7, 13, 15");

  // An exception must pass the library's border and be recognised on this side.
  bool refused = false;
  try {
    (void)cenote::Plan::max_pool<2>(desc, {.kernel_size = 5});
  } catch (const cenote::Error& error) {
    refused = error.code() == cenote::ErrorCode::invalid_argument;
  }
  expect(refused, "a kernel larger than the input is refused with a cenote::Error");

  const cenote::Tensor x = cenote::arange(1, 17).reshape({1, 1, 4, 4});
  const cenote::Tensor y = F::max_pool2d(x, {.kernel_size = 2});
  expect(y.shape() == cenote::Shape{1, 1, 2, 2}, "functional::max_pool2d gives 2x2");
  cenote::nn::MaxPool2d pool({.kernel_size = 2});
  expect(pool(x).shape() == y.shape(), "nn::MaxPool2d gives the same shape");

  if (failures == 0) std::puts("consumer: ok");
  return failures == 0 ? 0 : 1;
}
