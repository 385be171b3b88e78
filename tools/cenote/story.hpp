// A small pooling call told in full: every window with its taps and winner, indices in all kinds, the gradient's way.
// The numbers come from the library (plans in f64, the geometry's windows); this only arranges them.
#pragma once

#include "geometry/problem.hpp"

#include <cenote/options.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace cenote::tool {

enum class Place : std::uint8_t { inside, padding, overhang };

/// One tap of a window, in row-major order of the whole window.
struct Tap {
  std::int64_t at[3];  ///< depth, height, width; outside the input where place says so
  Place place;
  double value;  ///< inside only
  bool counted;  ///< inside, or padding that the divisor counts
};

struct WindowStory {
  std::int64_t output[3];
  std::int64_t start[3];  ///< of the unclipped window
  std::int64_t step[3];   ///< from tap to tap
  std::int64_t count[3];  ///< taps along each axis
  std::vector<Tap> taps;
  std::int64_t winner = -1;  ///< tap number of the max family's winner; -1: none
  double sum = 0;            ///< of the taps inside
  std::int64_t inside = 0;
  double divisor = 1;  ///< averages only
  double result = 0;
  std::int64_t flat = -1;

  /// The number of the tap at a place; -1 where the window has none.
  std::int64_t tap_at(const std::int64_t* at) const;
};

struct Story {
  PoolSpec spec;
  Problem problem{};
  std::int64_t input_size[3] = {1, 1, 1};
  std::int64_t output_size[3] = {1, 1, 1};
  std::vector<double> input;
  std::vector<double> output;
  std::vector<std::int64_t> flat64;  ///< max family and unpool only
  std::vector<std::int64_t> flat32;
  std::vector<std::int64_t> window;
  std::vector<double> gradient;                     ///< of the input, for a gradient of 1 at every output
  std::vector<WindowStory> windows;                 ///< none for unpool
  double samples[3] = {};                           ///< fractional: by sample number
  std::array<std::vector<std::int64_t>, 3> starts;  ///< fractional: of the windows, by axis

  std::int64_t inputs() const { return input_size[0] * input_size[1] * input_size[2]; }
  std::int64_t outputs() const { return output_size[0] * output_size[1] * output_size[2]; }
  const Axis& axis(int a) const { return problem.axis[a]; }
  int first_axis() const { return 3 - spec.dims; }  ///< axes first_axis()..2 exist
};

bool has_winner(Op op);
bool is_average(Op op);

/// More cells than this in a drawing help nobody.
inline constexpr std::int64_t kMostCells = 4096;

/// What the story is about. `values` has the product of the last `spec.dims` sizes; `indices` is for unpool.
struct StoryInput {
  PoolSpec spec;
  std::int64_t size[3] = {1, 1, 1};
  std::vector<double> values;
  std::vector<std::int64_t> indices;
  std::uint64_t seed = 0;
};

/// Throws the library's Error where it refuses the call, and Failure where it has more cells or taps than a drawing can show.
Story tell(const StoryInput& input);

/// "depth", "height", "width"; "length" for the only axis of a 1d call.
const char* axis_name(int dims, int axis);
/// "2, 3": a place's coordinates along the axes the story has.
std::string coordinates(const Story& story, const std::int64_t* at);
/// Shortest text that tells the number: "3", "0.5", "1.667", "-inf".
std::string number(double value);

}  // namespace cenote::tool
