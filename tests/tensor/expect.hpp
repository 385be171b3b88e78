// Comparisons and refusals, short to write in tables.
#pragma once

#include <cenote/tensor.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace cenote::test {

inline std::vector<std::int64_t> to_list(const Shape& shape) { return {shape.begin(), shape.end()}; }

/// Every element within `tolerance` (absolute); 0 means equal, and NaN equals NaN.
inline void expect_values(const Tensor& tensor, const std::vector<double>& expected, double tolerance = 0) {
  const std::vector<double> values = tensor.to_vector();
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(values[i])) << "element " << i << " is " << values[i];
    } else if (tolerance == 0 || std::isinf(expected[i])) {
      EXPECT_EQ(values[i], expected[i]) << "element " << i << " of " << to_string(tensor);
    } else {
      EXPECT_NEAR(values[i], expected[i], tolerance) << "element " << i << " of " << to_string(tensor);
    }
  }
}

/// The call is refused, names that argument, and says these words.
inline void expect_refused(const std::function<void()>& call, const std::string& argument,
                           const std::string& words = "") {
  try {
    call();
    ADD_FAILURE() << "not refused; expected an error about " << argument;
  } catch (const Error& error) {
    EXPECT_EQ(error.argument(), argument) << error.what();
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

}  // namespace cenote::test
