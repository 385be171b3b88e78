// The device's window arithmetic against geometry/axis.hpp, position by position. Needs no GPU.
#include "cuda/geometry.cuh"

#include <gtest/gtest.h>

#include <vector>

namespace cenote::gpu {
namespace {

template <class Int>
void expect_same(const Axis& axis) {
  const DeviceAxis<Int> device(axis);
  for (std::int64_t o = 0; o < axis.output; ++o) {
    const Window expected = window(axis, o);
    const Taps<Int> taps = taps_of(device, static_cast<Int>(o));
    ASSERT_EQ(taps.count(), expected.count);
    ASSERT_EQ(taps.whole, expected.whole);
    if (expected.padded >= 0) ASSERT_EQ(taps.padded, expected.padded);
    if (expected.count == 0) continue;
    ASSERT_EQ(taps.low, expected.skipped);
    ASSERT_EQ(taps.start + taps.low * device.dilation, expected.first);
  }
  for (std::int64_t i = 0; i < axis.input; ++i) {
    const Cover expected = cover(axis, i);
    const Reach<Int> reach = cover_of(device, static_cast<Int>(i));
    std::vector<std::int64_t> outputs;
    for (Int o = reach.first; o <= reach.last; ++o) {
      const Int tap = tap_of(device, o, static_cast<Int>(i));
      if (tap >= 0) outputs.push_back(o);
      if (tap >= 0 && axis.rule == WindowRule::sliding) {
        ASSERT_EQ(o * axis.stride - axis.pad_begin + tap * axis.dilation, i);
      }
    }
    ASSERT_EQ(static_cast<std::int64_t>(outputs.size()), expected.count);
    for (std::int64_t m = 0; m < expected.count; ++m)
      ASSERT_EQ(outputs[static_cast<std::size_t>(m)], expected.first + m * expected.step);
  }
}

TEST(DeviceGeometry, SlidingAxesAreTheHosts) {
  for (std::int64_t input : {1, 2, 5, 12, 31}) {
    for (std::int64_t kernel = 1; kernel <= 6; ++kernel) {
      for (std::int64_t stride = 1; stride <= 5; ++stride) {
        for (std::int64_t dilation = 1; dilation <= 4; ++dilation) {
          for (std::int64_t pad = 0; pad <= kernel; ++pad) {
            const std::int64_t output = (input + 2 * pad - (kernel - 1) * dilation - 1 + stride) / stride;
            if (output < 1 || input + 2 * pad < (kernel - 1) * dilation + 1) continue;
            const Axis axis{WindowRule::sliding, input, output, kernel, stride, dilation, pad, pad};
            expect_same<std::int32_t>(axis);
            expect_same<std::int64_t>(axis);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST(DeviceGeometry, AdaptiveAxesAreTheHosts) {
  for (std::int64_t input = 1; input <= 40; ++input) {
    for (std::int64_t output = 1; output <= 45; ++output) {
      const Axis axis{WindowRule::adaptive, input, output, input / output + 2, 1, 1, 0, 0};
      expect_same<std::int32_t>(axis);
      expect_same<std::int64_t>(axis);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(DeviceGeometry, FractionalStartsAreTheHosts) {
  for (std::int64_t input : {2, 7, 10, 32, 1000, 70001}) {
    for (std::int64_t kernel : {1, 2, 3}) {
      for (std::int64_t output : {1, 2, 3, 5, 20, 700}) {
        if (output + kernel - 1 > input) continue;
        const Axis axis{WindowRule::fractional, input, output, kernel, 1, 1, 0, 0};
        std::vector<std::int64_t> starts(static_cast<std::size_t>(output));
        for (double sample : {0.0, 0.1, 0.25, 0.3, 0.51171875, 0.9, 0.99999}) {
          ASSERT_TRUE(fractional_starts(axis, DType::f32, static_cast<float>(sample), starts.data()));
          for (std::int64_t o = 0; o < output; ++o) {
            ASSERT_EQ(fractional_start(DeviceAxis<std::int32_t>(axis), static_cast<std::int32_t>(o),
                                       static_cast<float>(sample)),
                      starts[static_cast<std::size_t>(o)]);
          }
          ASSERT_TRUE(fractional_starts(axis, DType::f64, sample, starts.data()));
          for (std::int64_t o = 0; o < output; ++o) {
            ASSERT_EQ(fractional_start(DeviceAxis<std::int64_t>(axis), o, sample), starts[static_cast<std::size_t>(o)]);
          }
        }
      }
    }
  }
}

TEST(DeviceGeometry, DivisionByMultiplicationIsExact) {
  for (std::int64_t d : {1L, 2L, 3L, 5L, 7L, 10L, 641L, 65535L, 65536L, 65537L, 1000003L, 2147483646L, 2147483647L}) {
    const Divisor<std::int32_t> by(d);
    for (std::int64_t base :
         std::vector<std::int64_t>{0, d, 2 * d, 1000 * d, 2147483647 / d * d, 1 << 20, 2147483647}) {
      for (std::int64_t n = base - 2; n <= base + 2; ++n) {
        if (n < 0 || n > 2147483647) continue;
        ASSERT_EQ(by.quotient(static_cast<std::int32_t>(n)), n / d) << n << " / " << d;
      }
    }
  }
}

}  // namespace
}  // namespace cenote::gpu
