// The windows over the input and what comes out of them: all in one panel, then one by one.
#include "formula.hpp"
#include "svg_sheet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace cenote::tool {
namespace {

constexpr std::size_t kFilm = 12;  // windows shown one by one

/// Cells that are none of the input's.
const char* outside_look(const Sheet& sheet, const std::int64_t* at) {
  return sheet.overhang(at) ? "fill=\"none\" stroke=\"#e5e7eb\" stroke-dasharray=\"2 3\""
                            : "fill=\"url(#padding)\" stroke=\"#d7dde5\"";
}

/// Input cells: tinted by value, so that the picture shows where the large numbers are.
void input_cells(Sheet& sheet, const Grid& grid) {
  const Story& story = sheet.story;
  double low = INFINITY, high = -INFINITY;
  for (const double v : story.input) {
    if (std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
  }
  const std::size_t length = Sheet::longest(story.input);
  Sheet::each(grid, [&](const std::int64_t* at) {
    const Point c = grid.corner(at);
    if (!sheet.inside(at)) {
      sheet.canvas.rect(c.x, c.y, grid.cell, grid.cell, outside_look(sheet, at));
      return;
    }
    const double v = sheet.input_at(at);
    const double part = high > low && std::isfinite(v) ? (v - low) / (high - low) : 0.5;
    const auto mix = [&](double from, double to) { return static_cast<int>(from + (to - from) * part); };
    sheet.canvas.rect(
        c.x, c.y, grid.cell, grid.cell,
        fmt::format("fill=\"rgb({},{},{})\" stroke=\"#c3cfdd\"", mix(250, 205), mix(251, 222), mix(253, 245)));
    sheet.label(grid.center(at), grid.cell, number(v), length, "");
  });
}

/// What the cells around the input are.
std::string notes(const Sheet& sheet, const Grid& grid) {
  bool padding = false;
  for (const Axis& axis : sheet.story.problem.axis) padding = padding || axis.pad_begin > 0 || axis.pad_end > 0;
  const bool overhang = sheet.overhang(grid.high);
  return fmt::format("{}{}{}", padding ? "hatched: padding" : "", padding && overhang ? "; " : "",
                     overhang ? "dashed: beyond it, ignored" : "");
}

/// Every window, or of too many the first ones and the last.
std::vector<std::size_t> outlined(const Story& story) {
  std::vector<std::size_t> chosen;
  if (story.windows.size() <= kOutlined) {
    for (std::size_t i = 0; i < story.windows.size(); ++i) chosen.push_back(i);
    return chosen;
  }
  const auto columns = static_cast<std::size_t>(story.output_size[2]);
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}, columns, columns + 1, story.windows.size() - 1}) {
    if (i < story.windows.size() && (chosen.empty() || chosen.back() < i)) chosen.push_back(i);
  }
  return chosen;
}

/// A window's outline in every slice it touches. Neighbours are inset differently, so that overlapping frames stay apart.
void outline(Sheet& sheet, const Grid& grid, std::size_t number) {
  const Story& story = sheet.story;
  const WindowStory& w = story.windows[number];
  const std::int64_t* first = w.taps.front().at;
  const std::int64_t* last = w.taps.back().at;
  const double inset = 2.5 + 2.2 * static_cast<double>((w.output[1] % 2) * 2 + w.output[2] % 2 + (w.output[0] % 2));
  const bool dilated = story.axis(1).dilation > 1 || story.axis(2).dilation > 1;
  for (std::int64_t z = first[0]; z <= last[0]; z += w.step[0]) {
    const std::int64_t from[3] = {z, first[1], first[2]}, to[3] = {z, last[1], last[2]};
    const Point a = grid.corner(from), b = grid.corner(to);
    sheet.canvas.rect(a.x + inset, a.y + inset, b.x - a.x + grid.cell - 2 * inset, b.y - a.y + grid.cell - 2 * inset,
                      fmt::format("rx=\"7\" fill=\"{0}\" fill-opacity=\"0.035\" stroke=\"{0}\" stroke-width=\"2\" "
                                  "stroke-opacity=\"0.9\"{1}",
                                  hue(number), dilated ? " stroke-dasharray=\"5 4\"" : ""));
  }
  if (!dilated) return;
  for (const Tap& t : w.taps) {
    const Point c = grid.corner(t.at);
    sheet.canvas.rect(c.x + inset + 1.5, c.y + inset + 1.5, 6, 6,
                      fmt::format("rx=\"1.5\" fill=\"{}\" fill-opacity=\"0.85\"", hue(number)));
  }
}

/// One axis only: windows as brackets in lanes under the row, a dot at each tap. Returns where they end.
double brackets(Sheet& sheet, const Grid& grid) {
  std::vector<double> lane_end;
  for (const std::size_t i : outlined(sheet.story)) {
    const WindowStory& w = sheet.story.windows[i];
    const double from = grid.corner(w.taps.front().at).x + 5, to = grid.corner(w.taps.back().at).x + grid.cell - 5;
    std::size_t lane = 0;
    while (lane < lane_end.size() && lane_end[lane] > from) ++lane;
    if (lane == lane_end.size()) lane_end.push_back(0);
    lane_end[lane] = to;
    const double y = grid.y + grid.cell + 16 + 18 * static_cast<double>(lane);
    sheet.canvas.path(
        fmt::format("M{:.1f} {:.1f} V{:.1f} H{:.1f} V{:.1f}", from, y - 7, y, to, y - 7),
        fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"2.2\" stroke-linejoin=\"round\"", hue(i)));
    for (const Tap& t : w.taps) sheet.canvas.circle({grid.center(t.at).x, y}, 3.2, fmt::format("fill=\"{}\"", hue(i)));
  }
  const double bottom = grid.y + grid.cell + 16 + 18 * static_cast<double>(lane_end.size());
  sheet.canvas.reach(0, bottom);
  return bottom;
}

/// Winners: a disc in the window's colour, stretched to hold a long number; a cell that wins again gets a ring for each further
/// window.
void winners(Sheet& sheet, const Grid& grid) {
  std::map<std::int64_t, int> times;
  const std::size_t length = Sheet::longest(sheet.story.input);
  const double cell = grid.cell * 0.92;
  for (const std::size_t i : outlined(sheet.story)) {
    const WindowStory& w = sheet.story.windows[i];
    if (w.winner < 0) continue;
    const Tap& t = w.taps[static_cast<std::size_t>(w.winner)];
    const Point c = grid.center(t.at);
    const int before = times[w.flat]++;
    const std::string words = number(t.value);
    const double height = grid.cell * 0.60 + 6.4 * before;
    const double text = 0.64 * Sheet::label_size(cell, words, length) * static_cast<double>(words.size());
    const double width = std::max(height, std::min(text + 5 + 6.4 * before, grid.cell - 2));
    sheet.canvas.rect(
        c.x - width / 2, c.y - height / 2, width, height,
        fmt::format("rx=\"{:.1f}\" {}", height / 2,
                    before == 0 ? fmt::format("fill=\"{}\"", hue(i))
                                : fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"2.4\"", hue(i))));
    if (before == 0) sheet.label(c, cell, words, length, "fill=\"#ffffff\" font-weight=\"700\"");
  }
}

/// Arrow and word between the input and the output.
void arrow(Sheet& sheet, double from, double to, double y) {
  const Op op = sheet.story.spec.op;
  sheet.canvas.path(fmt::format("M{:.1f} {:.1f} H{:.1f}", from + 18, y, to - 18),
                    "fill=\"none\" stroke=\"#9ca3af\" stroke-width=\"2.5\" marker-end=\"url(#tip)\"");
  const char* verb = op == Op::min_pool   ? "min"
                     : has_winner(op)     ? "max"
                     : is_average(op)     ? "mean"
                     : op == Op::sum_pool ? "sum"
                                          : "norm";
  sheet.canvas.text((from + to) / 2, y - 9, verb, 12,
                    fmt::format("text-anchor=\"middle\" fill=\"{}\" font-style=\"italic\"", kSoft));
}

void film_cells(Sheet& sheet, const Grid& grid, std::size_t i) {
  const WindowStory& w = sheet.story.windows[i];
  const std::size_t length = Sheet::longest(sheet.story.input);
  Sheet::each(grid, [&](const std::int64_t* at) {
    const Point c = grid.corner(at);
    const std::int64_t tap = w.tap_at(at);
    const bool is_tap = tap >= 0, is_winner = is_tap && tap == w.winner, real = sheet.inside(at);
    if (!real) sheet.canvas.rect(c.x, c.y, grid.cell, grid.cell, outside_look(sheet, at));
    const std::string fill = is_tap ? fmt::format("fill=\"{}\" fill-opacity=\"{}\"", hue(i),
                                                  is_winner ? "1"
                                                  : real    ? "0.24"
                                                            : "0.10")
                                    : "fill=\"#f7f9fb\"";
    if (real || is_tap) {
      sheet.canvas.rect(c.x, c.y, grid.cell, grid.cell, fill + " stroke=\"#d5dde7\" stroke-width=\"0.8\"");
    }
    if (real && grid.cell >= 15) {
      sheet.label(grid.center(at), grid.cell, number(sheet.input_at(at)), length,
                  is_winner ? "fill=\"#ffffff\" font-weight=\"700\""
                  : is_tap  ? "font-weight=\"600\""
                            : "fill=\"#9aa5b4\"");
    }
  });
}

}  // namespace

void draw_windows(Sheet& sheet) {
  const Story& story = sheet.story;
  const double top = sheet.y;
  Grid in = sheet.padded_grid(40);
  in.cell = Sheet::fitting_cell(in, 520, 46);
  in.x = kMargin;
  in.y = top + 42 + (story.spec.dims == 3 ? 14 : 0);
  sheet.heading(kMargin, top + 8, "Input and windows", notes(sheet, in));
  input_cells(sheet, in);
  sheet.slice_names(in, story.input_size[0]);
  double bottom = in.y + in.height();
  if (story.spec.dims == 1) {
    bottom = brackets(sheet, in);
  } else {
    for (const std::size_t i : outlined(story)) outline(sheet, in, i);
  }
  if (has_winner(story.spec.op)) winners(sheet, in);

  Grid out = Sheet::plain_grid(story.output_size, in.cell);
  out.cell = Sheet::fitting_cell(out, 320, in.cell);
  out.x = in.x + in.width() + 96;
  out.y = in.y + std::max(0.0, (in.height() - out.height()) / 2);
  arrow(sheet, in.x + in.width(), out.x, in.y + in.height() / 2);
  sheet.heading(out.x, out.y - (story.spec.dims == 3 ? 48 : 34), "Output",
                story.windows.size() <= kOutlined ? "each cell in its window's colour" : "");
  sheet.value_cells(out, story.output);
  sheet.slice_names(out, story.output_size[0]);
  bottom = std::max(bottom, out.y + out.height());

  // The arithmetic of the size: beside the output where there is room, below otherwise.
  const double beside = out.x + std::max(out.width(), 190.0) + kGap;
  const bool room = beside + 330 < kPage + kMargin;
  const double x = room ? beside : kMargin, y = room ? top : bottom + 46;
  sheet.heading(x, y + 8, "How the output size comes about");
  const int columns = room ? std::max(44, static_cast<int>((kPage + kMargin - beside) / 6.6)) : 150;
  sheet.y = std::max(bottom, sheet.derivations(x, y + 34, derive_sizes(story), columns)) + kGap * 0.7;
}

void draw_film(Sheet& sheet) {
  const Story& story = sheet.story;
  sheet.heading(kMargin, sheet.y, "Window by window");
  const std::size_t shown = std::min(kFilm, story.windows.size());
  std::vector<Grid> grids;
  std::vector<std::string> formulas;
  double width = 0;  // all as wide as the widest, so that they stand in columns
  const Grid whole = sheet.padded_grid(20);
  for (std::size_t i = 0; i < shown; ++i) {
    const WindowStory& w = story.windows[i];
    Grid grid = whole;
    if (story.spec.dims == 3) {
      grid.low[0] = w.taps.front().at[0];
      grid.high[0] = w.taps.back().at[0];
    }
    const double columns = grid.width() / grid.cell, rows = grid.height() / grid.cell;
    grid.cell = std::clamp(std::min(188.0 / columns, 150.0 / rows), 12.0, 26.0);
    grids.push_back(grid);
    formulas.push_back(formula(story, w, 31));
    width = std::max({width, grid.width() + 28, 6.6 * static_cast<double>(formulas.back().size()) + 20});
  }
  double x = kMargin, y = sheet.y + 20, row_height = 0;
  for (std::size_t i = 0; i < shown; ++i) {
    const WindowStory& w = story.windows[i];
    Grid& grid = grids[i];
    if (x > kMargin && x + width > kPage + kMargin) {
      x = kMargin;
      y += row_height + 16;
      row_height = 0;
    }
    grid.x = x;
    grid.y = y + 22;
    sheet.canvas.circle({x + 6, y + 8}, 5, fmt::format("fill=\"{}\"", hue(i)));
    sheet.canvas.text(x + 17, y + 12, fmt::format("output ({})", coordinates(story, w.output)), 11.5,
                      "font-weight=\"600\"");
    film_cells(sheet, grid, i);
    sheet.canvas.text(x, grid.y + grid.height() + 17, formulas[i], 11.5);
    double used = grid.height() + 46;
    if (w.winner >= 0) {
      sheet.canvas.text(x, grid.y + grid.height() + 33, fmt::format("index {}, tap {}", w.flat, w.winner), 11.5,
                        fmt::format("fill=\"{}\"", kSoft));
      used += 16;
    }
    row_height = std::max(row_height, used);
    x += width;
  }
  sheet.y = y + row_height + 10;
  if (shown < story.windows.size()) {
    sheet.canvas.text(kMargin, sheet.y, fmt::format("and {} more", story.windows.size() - shown), 11.5,
                      fmt::format("fill=\"{}\"", kSoft));
    sheet.y += 16;
  }
  sheet.y += kGap * 0.5;
}

}  // namespace cenote::tool
