// What the examples share beside pictures: their arguments and a small generator of random numbers.
#pragma once

#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <random>

namespace example {

struct Arguments {
  bool brief = false;            ///< --short: as little work as still shows the point
  std::filesystem::path folder;  ///< where pictures go; empty: none are written
};

/// main() for an example: [--short] [FOLDER]. The body returns the exit code.
template <class Body>
int run(int argc, char** argv, const Body& body) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--short") == 0) {
      arguments.brief = true;
    } else if (argv[i][0] != '-' && arguments.folder.empty()) {
      arguments.folder = argv[i];
    } else {
      std::cerr << "usage: " << argv[0] << " [--short] [FOLDER]\nPictures are written to FOLDER, if one is given.\n";
      return 2;
    }
  }
  try {
    if (!arguments.folder.empty()) std::filesystem::create_directories(arguments.folder);
    return body(arguments);
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << "\n";
    return 1;
  }
}

/// The same numbers everywhere: the standard's generator is, its distributions are not.
class Random {
 public:
  explicit Random(std::uint32_t seed) : bits_(seed) {}
  /// In [low, high).
  float uniform(float low, float high) { return low + (high - low) * static_cast<float>(bits_() >> 8) * 0x1p-24f; }
  /// In [0, count).
  int below(int count) { return static_cast<int>(bits_() % static_cast<std::uint32_t>(count)); }
  /// About normal, mean 0 and variance 1: a sum of twelve.
  float normal() {
    float sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform(0, 1);
    return sum;
  }

 private:
  std::mt19937 bits_;
};

}  // namespace example
