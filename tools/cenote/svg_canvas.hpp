// What SVG pictures are drawn with: a canvas that knows how far it reaches, and grids of cells.
#pragma once

#include <cstdint>
#include <string>

namespace cenote::tool {

inline constexpr const char* kInk = "#1f2937";
inline constexpr double kMargin = 40;

/// Colours for things that must be told apart; they repeat after twelve.
const char* hue(std::size_t i);

struct Point {
  double x = 0, y = 0;
};

/// Collects elements and how far they reach.
class Canvas {
 public:
  void rect(double x, double y, double w, double h, const std::string& attributes);
  void circle(Point c, double r, const std::string& attributes);
  void text(double x, double y, const std::string& words, double size, const std::string& attributes = "");
  void path(const std::string& d, const std::string& attributes);
  /// From one point to another, leaving and arriving horizontally; the last part, from x = `straight` on, is straight.
  void curve(Point from, Point to, double straight, const std::string& attributes);
  /// The same from top to bottom.
  void fall(Point from, Point to, const std::string& attributes);
  void reach(double x, double y);
  /// The whole document.
  std::string finish(const std::string& title) const;

 private:
  void add(const std::string& element);
  std::string body_;
  double width_ = 0, height_ = 0;
};

/// A block of cells [low, high] along each axis, its slices side by side.
struct Grid {
  double x = 0, y = 0, cell = 40;
  std::int64_t low[3] = {0, 0, 0}, high[3] = {0, 0, 0};

  double slice_width() const { return static_cast<double>(high[2] - low[2] + 1) * cell; }
  double height() const { return static_cast<double>(high[1] - low[1] + 1) * cell; }
  double width() const {
    const double slices = static_cast<double>(high[0] - low[0] + 1);
    return slices * slice_width() + (slices - 1) * cell * 0.6;
  }
  Point corner(const std::int64_t* at) const {
    return {x + static_cast<double>(at[0] - low[0]) * (slice_width() + cell * 0.6) +
                static_cast<double>(at[2] - low[2]) * cell,
            y + static_cast<double>(at[1] - low[1]) * cell};
  }
  Point center(const std::int64_t* at) const {
    const Point c = corner(at);
    return {c.x + cell / 2, c.y + cell / 2};
  }
};

}  // namespace cenote::tool
