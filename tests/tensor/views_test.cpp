// Views share memory, and their shapes and strides follow PyTorch's rules.
#include "expect.hpp"

namespace cenote::test {
namespace {

using List = std::vector<std::int64_t>;

TEST(Slices, FollowPythonsRules) {
  struct Case {
    Slice slice;
    std::vector<double> expected;
  };
  const Case cases[] = {
      {{}, {0, 1, 2, 3, 4}},
      {{.start = 1, .stop = 4}, {1, 2, 3}},
      {{.start = -2}, {3, 4}},
      {{.stop = -3}, {0, 1}},
      {{.step = 2}, {0, 2, 4}},
      {{.start = 1, .step = 3}, {1, 4}},
      {{.step = -1}, {4, 3, 2, 1, 0}},
      {{.start = 3, .stop = 0, .step = -2}, {3, 1}},
      {{.start = 99, .step = -3}, {4, 1}},
      {{.start = -99, .stop = 99}, {0, 1, 2, 3, 4}},
      {{.stop = -99, .step = -1}, {4, 3, 2, 1, 0}},
      {{.start = 3, .stop = 2}, {}},
      {{.start = 7}, {}},
      {{.start = -99, .step = -1}, {}},
      {{.step = INT64_MAX}, {0}},
      {{.step = INT64_MIN}, {4}},
  };
  const Tensor x = arange(5);
  for (const Case& c : cases) expect_values(x.slice(0, c.slice), c.expected);
  expect_refused([&] { x.slice(0, {.step = 0}); }, "step");
  expect_refused([&] { x.slice(1, {}); }, "dim", "rank 1");
}

TEST(Slices, OfSlices) {
  const Tensor x = arange(24).reshape({4, 6});
  expect_values(x.slice(1, {.step = -2}).slice(0, {.start = 1, .step = 2}), {11, 9, 7, 23, 21, 19});
  expect_values(x.slice(1, {.step = -1}).slice(1, {.step = -1}).narrow(0, 2, 1), {12, 13, 14, 15, 16, 17});
}

TEST(Slices, Narrow) {
  const Tensor x = arange(5);
  expect_values(x.narrow(0, 1, 3), {1, 2, 3});
  expect_values(x.narrow(0, -2, 2), {3, 4});
  expect_values(x.narrow(0, 5, 0), {});
  expect_refused([&] { x.narrow(0, 3, 3); }, "length");
  expect_refused([&] { x.narrow(0, 0, -1); }, "length");
  expect_refused([&] { x.narrow(0, 6, 0); }, "start");
}

TEST(Views, SelectPermuteSqueeze) {
  const Tensor x = arange(24).reshape({2, 3, 4});
  expect_values(x[1][2], {20, 21, 22, 23});
  expect_values(x.select(-1, -1), {3, 7, 11, 15, 19, 23});
  EXPECT_EQ(x[1][2][3].rank(), 0);
  EXPECT_EQ(to_list(x.permute({2, 0, 1}).shape()), (List{4, 2, 3}));
  EXPECT_EQ(to_list(x.permute({2, 0, 1}).strides()), (List{1, 12, 4}));
  EXPECT_EQ(to_list(x.transpose(0, -1).shape()), (List{4, 3, 2}));
  EXPECT_EQ(to_list(x.unsqueeze(0).shape()), (List{1, 2, 3, 4}));
  EXPECT_EQ(to_list(x.unsqueeze(-1).shape()), (List{2, 3, 4, 1}));
  EXPECT_EQ(to_list(x.unsqueeze(1).unsqueeze(0).squeeze().shape()), (List{2, 3, 4}));
  EXPECT_EQ(to_list(x.squeeze(0).shape()), (List{2, 3, 4}));
  expect_refused([&] { x.select(0, 2); }, "index");
  expect_refused([&] { x.permute({0, 1}); }, "dims");
  expect_refused([&] { x.permute({0, 1, 1}); }, "dims", "twice");
  expect_refused([&] { x.unsqueeze(5); }, "dim");
  expect_refused([&] { scalar(1)[0]; }, "dim");
}

TEST(Views, ExpandRepeatsWithoutCopying) {
  const Tensor x = arange(3).reshape({3, 1});
  const Tensor wide = x.expand({2, 3, 4});
  EXPECT_EQ(to_list(wide.strides()), (List{0, 1, 0}));
  EXPECT_TRUE(wide.shares_storage_with(x));
  expect_values(wide[1], {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2});
  EXPECT_EQ(to_list(x.expand({-1, 4}).shape()), (List{3, 4}));
  expect_refused([&] { x.expand({2, 4}); }, "shape");
  expect_refused([&] { x.expand({-1, 3, 4}); }, "shape");
  expect_refused([&] { x.expand({3}); }, "shape");
  expect_refused([&] { x.expand({std::int64_t{1} << 62, 3, 4}); }, "shape");
}

TEST(Views, ViewSharesOrRefusesAndReshapeCopies) {
  const Tensor x = arange(24).reshape({2, 3, 4});
  EXPECT_TRUE(x.view({6, -1}).shares_storage_with(x));
  EXPECT_EQ(to_list(x.view({6, -1}).shape()), (List{6, 4}));
  // Dimensions that continue each other in memory merge; others do not.
  const Tensor swapped = x.transpose(0, 1);  // 3 2 4
  EXPECT_EQ(to_list(swapped.view({3, 2, 2, 2}).strides()), (List{4, 12, 2, 1}));
  expect_refused([&] { swapped.view({6, 4}); }, "shape", "reshape()");
  const Tensor copied = swapped.reshape({6, 4});
  EXPECT_FALSE(copied.shares_storage_with(x));
  expect_values(copied[1], {12, 13, 14, 15});
  // A backwards row is still one run of memory.
  EXPECT_TRUE(arange(6).slice(0, {.step = -1}).view({2, 3}).is_contiguous() == false);
  expect_values(arange(6).slice(0, {.step = -1}).view({2, 3}), {5, 4, 3, 2, 1, 0});
  EXPECT_EQ(to_list(x.flatten(1).shape()), (List{2, 12}));
  EXPECT_EQ(to_list(zeros({0, 3}).view({3, 0}).shape()), (List{3, 0}));
  expect_refused([&] { x.view({5, -1}); }, "shape");
  expect_refused([&] { x.view({-1, -1}); }, "shape");
  expect_refused([&] { x.view({23}); }, "shape");
  expect_refused([&] { zeros({0}).view({0, -1}); }, "shape");
}

TEST(Views, WritingThroughAViewReachesTheTensor) {
  Tensor x = zeros({2, 3});
  x.slice(1, {.step = -2}).fill(1);
  expect_values(x, {1, 0, 1, 1, 0, 1});
}

}  // namespace
}  // namespace cenote::test
