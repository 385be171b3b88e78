// A recording of what PyTorch answered, read from cases.jsonl and data.bin (README.md beside this file has the format).
#pragma once

#include "problems/problem.hpp"

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace cenote::testing {

/// A recording that cannot be read; the message names the file and line.
struct RecordingError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Array {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::vector<double> reals;           // of floating-point arrays
  std::vector<std::int64_t> integers;  // of integer arrays
};

struct Case {
  std::int64_t id = 0;
  Problem problem;  // op, arguments, layout and input shape; its values are the recorded ones
  bool handmade = false;
  bool exact_ties = false;           // small integers: their sums are exact in every type
  std::optional<std::string> error;  // PyTorch refused
  std::optional<Array> input, output, indices, grad_output, grad_input, random_samples;
};

/// Throws RecordingError.
std::vector<Case> read_recording(const std::string& directory);

}  // namespace cenote::testing
