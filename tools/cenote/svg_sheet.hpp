// A story's sheet: what its panels share. Grids of cells, numbers in them, headings and sentences, from top to bottom.
#pragma once

#include "derivation.hpp"
#include "story.hpp"
#include "svg_canvas.hpp"

#include <functional>
#include <string>
#include <vector>

namespace cenote::tool {

inline constexpr const char* kSoft = "#6b7280";
inline constexpr double kGap = 56;
inline constexpr double kPage = 1120;         ///< the width panels are arranged for
inline constexpr std::size_t kOutlined = 25;  ///< most windows that are told apart by colour

struct Sheet {
  const Story& story;
  Canvas canvas{};
  double y = 0;  ///< where the next panel starts

  bool inside(const std::int64_t* at) const;
  double input_at(const std::int64_t* at) const;
  /// Whether a place lies beyond the padding, where only windows of ceil_mode reach.
  bool overhang(const std::int64_t* at) const;

  static void each(const Grid& grid, const std::function<void(const std::int64_t*)>& visit);
  static Grid plain_grid(const std::int64_t* size, double cell);
  /// The input with its padding, and what windows reach beyond it.
  Grid padded_grid(double cell) const;
  /// The cell size at which the grid is `width` wide, within reason.
  static double fitting_cell(const Grid& grid, double width, double largest);

  void heading(double x, double at, const std::string& words, const std::string& note = "");
  /// Returns where the next line goes, as the following ones do.
  double paragraph(double x, double at, const std::string& words, int columns, double size = 12,
                   const char* color = kSoft);
  double derivations(double x, double at, const std::vector<Derivation>& all, int columns);
  /// "depth 0", "depth 1" over the slices of a 3d grid; `size` of them are real.
  void slice_names(const Grid& grid, std::int64_t size);

  /// The length of the longest number, so that all of a grid have one size.
  static std::size_t longest(const std::vector<double>& values);
  static double label_size(double cell, const std::string& words, std::size_t longest);
  void label(Point center, double cell, const std::string& words, std::size_t longest, const std::string& attributes);
  /// An opaque cell in a window's colour; what was drawn before disappears below it.
  void tile(const Grid& grid, const std::int64_t* at, std::size_t number);
  /// Values in tiles, in their windows' colours where these can be told apart.
  void value_cells(const Grid& grid, const std::vector<double>& values);
};

// The panels, in the order in which they may follow each other.
void draw_windows(Sheet& sheet);   ///< input with windows and winners, output, how its size comes about
void draw_film(Sheet& sheet);      ///< one small picture a window
void draw_indices(Sheet& sheet);   ///< in both ways of counting
void draw_gradient(Sheet& sheet);  ///< from the outputs back to the input
void draw_unpool(Sheet& sheet);    ///< from the values to their places, and how the size comes about

}  // namespace cenote::tool
