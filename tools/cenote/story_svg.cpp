#include "story_svg.hpp"

#include "arguments.hpp"
#include "derivation.hpp"
#include "story_text.hpp"
#include "svg_canvas.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

namespace cenote::tool {
namespace {

constexpr const char* kSoft = "#6b7280";
constexpr double kGap = 56;
constexpr double kPage = 1120;  // the width panels are arranged for
constexpr std::size_t kOutlined = 25;
constexpr std::size_t kFilm = 12;

class Drawing {
 public:
  explicit Drawing(const Story& story) : story_(story) {}

  std::string draw() {
    title();
    if (story_.spec.op == Op::max_unpool) {
      unpool();
    } else {
      pool_and_output();
      film();
      if (!story_.window.empty()) indices();
      gradient();
    }
    return canvas_.finish(describe_in_words(story_.spec));
  }

 private:
  bool inside(const std::int64_t* at) const {
    for (int a = 0; a < 3; ++a) {
      if (at[a] < 0 || at[a] >= story_.input_size[a]) return false;
    }
    return true;
  }
  double input_at(const std::int64_t* at) const {
    return story_
        .input[static_cast<std::size_t>((at[0] * story_.input_size[1] + at[1]) * story_.input_size[2] + at[2])];
  }

  static void each(const Grid& grid, const std::function<void(const std::int64_t*)>& visit) {
    for (std::int64_t z = grid.low[0]; z <= grid.high[0]; ++z) {
      for (std::int64_t y = grid.low[1]; y <= grid.high[1]; ++y) {
        for (std::int64_t x = grid.low[2]; x <= grid.high[2]; ++x) {
          const std::int64_t at[3] = {z, y, x};
          visit(at);
        }
      }
    }
  }

  Grid plain_grid(const std::int64_t* size, double cell) const {
    Grid grid;
    grid.cell = cell;
    for (int a = 0; a < 3; ++a) grid.high[a] = size[a] - 1;
    return grid;
  }

  /// The input with its padding, and what windows reach beyond it.
  Grid padded_grid(double cell) const {
    Grid grid = plain_grid(story_.input_size, cell);
    for (int a = 0; a < 3; ++a) {
      grid.low[a] = -story_.axis(a).pad_begin;
      grid.high[a] += story_.axis(a).pad_end;
      for (const WindowStory& w : story_.windows) {
        grid.low[a] = std::min(grid.low[a], w.taps.front().at[a]);
        grid.high[a] = std::max(grid.high[a], w.taps.back().at[a]);
      }
    }
    return grid;
  }

  double fitting_cell(const Grid& grid, double width, double largest) const {
    const double columns = grid.width() / grid.cell;
    return std::clamp(width / columns, 20.0, largest);
  }

  void heading(double x, double y, const std::string& words, const std::string& note = "") {
    canvas_.text(x, y, words, 15, "font-weight=\"700\" letter-spacing=\"0.2\"");
    if (!note.empty()) canvas_.text(x, y + 17, note, 11.5, fmt::format("fill=\"{}\"", kSoft));
  }

  double paragraph(double x, double y, const std::string& words, int columns, double size = 12,
                   const char* color = kSoft) {
    for (const std::string& line : wrap_text(words, columns)) {
      canvas_.text(x, y, line, size, fmt::format("fill=\"{}\"", color));
      y += size * 1.45;
    }
    return y;
  }

  /// A number that fits its cell; `longest` is the length of the longest one in its grid, so that all have one size.
  void label(Point center, double cell, const std::string& words, std::size_t longest, const std::string& attributes) {
    const double size =
        std::min(cell * 0.40, cell * 1.36 / static_cast<double>(std::max({longest, words.size(), std::size_t{1}})));
    canvas_.text(center.x, center.y + size * 0.36, words, size, "text-anchor=\"middle\" " + attributes);
  }
  static std::size_t longest(const std::vector<double>& values) {
    std::size_t most = 1;
    for (const double v : values) most = std::max(most, number(v).size());
    return most;
  }

  void slice_names(const Grid& grid) {
    if (story_.spec.dims != 3) return;
    for (std::int64_t z = grid.low[0]; z <= grid.high[0]; ++z) {
      const std::int64_t at[3] = {z, grid.low[1], grid.low[2]};
      canvas_.text(grid.corner(at).x, grid.y - 6, z < 0 || z > grid.high[0] ? "padding" : fmt::format("depth {}", z),
                   10.5, fmt::format("fill=\"{}\"", kSoft));
    }
  }

  void title() {
    canvas_.text(kMargin, 52, describe_in_words(story_.spec), 24, "font-weight=\"700\"");
    const auto sizes = [&](const std::int64_t* size) {
      return fmt::format("{}", fmt::join(size + story_.first_axis(), size + 3, " × "));
    };
    canvas_.text(kMargin, 76, fmt::format("{} in, {} out", sizes(story_.input_size), sizes(story_.output_size)), 14,
                 fmt::format("fill=\"{}\"", kSoft));
    y_ = 112;
  }

  /// Input cells: tinted by value, so that the picture shows where the large numbers are.
  void input_cells(const Grid& grid, bool values) {
    double low = INFINITY, high = -INFINITY;
    for (const double v : story_.input) {
      if (std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
    }
    each(grid, [&](const std::int64_t* at) {
      const Point c = grid.corner(at);
      if (!inside(at)) {
        bool overhang = false;
        for (int a = 0; a < 3; ++a) overhang = overhang || at[a] >= story_.input_size[a] + story_.axis(a).pad_end;
        canvas_.rect(c.x, c.y, grid.cell, grid.cell,
                     overhang ? "fill=\"none\" stroke=\"#e5e7eb\" stroke-dasharray=\"2 3\""
                              : "fill=\"url(#padding)\" stroke=\"#d7dde5\"");
        return;
      }
      const double v = input_at(at);
      const double part = high > low && std::isfinite(v) ? (v - low) / (high - low) : 0.5;
      const auto mix = [&](double from, double to) { return static_cast<int>(from + (to - from) * part); };
      canvas_.rect(
          c.x, c.y, grid.cell, grid.cell,
          fmt::format("fill=\"rgb({},{},{})\" stroke=\"#c3cfdd\"", mix(250, 205), mix(251, 222), mix(253, 245)));
      if (values) label(grid.center(at), grid.cell, number(v), longest(story_.input), "");
    });
  }

  std::vector<std::size_t> outlined() const {
    std::vector<std::size_t> chosen;
    if (story_.windows.size() <= kOutlined) {
      for (std::size_t i = 0; i < story_.windows.size(); ++i) chosen.push_back(i);
    } else {
      const auto columns = static_cast<std::size_t>(story_.output_size[2]);
      for (const std::size_t i : {std::size_t{0}, std::size_t{1}, columns, columns + 1, story_.windows.size() - 1}) {
        if (i < story_.windows.size() && (chosen.empty() || chosen.back() < i)) chosen.push_back(i);
      }
    }
    return chosen;
  }

  /// A window's outline in every slice it touches. Neighbours are inset differently, so that overlapping frames stay apart.
  void outline(const Grid& grid, const WindowStory& w, std::size_t i, double opacity) {
    const std::int64_t* first = w.taps.front().at;
    const std::int64_t* last = w.taps.back().at;
    const double inset = 2.5 + 2.2 * static_cast<double>((w.output[1] % 2) * 2 + w.output[2] % 2 + (w.output[0] % 2));
    const bool dilated = story_.axis(1).dilation > 1 || story_.axis(2).dilation > 1;
    const std::int64_t step = story_.axis(0).dilation;
    for (std::int64_t z = first[0]; z <= last[0]; z += std::max<std::int64_t>(step, 1)) {
      const std::int64_t from[3] = {z, first[1], first[2]}, to[3] = {z, last[1], last[2]};
      const Point a = grid.corner(from), b = grid.corner(to);
      canvas_.rect(a.x + inset, a.y + inset, b.x - a.x + grid.cell - 2 * inset, b.y - a.y + grid.cell - 2 * inset,
                   fmt::format("rx=\"7\" fill=\"{0}\" fill-opacity=\"0.035\" stroke=\"{0}\" stroke-width=\"2\" "
                               "stroke-opacity=\"{1}\"{2}",
                               hue(i), opacity, dilated ? " stroke-dasharray=\"5 4\"" : ""));
    }
    if (!dilated) return;
    for (const Tap& t : w.taps) {
      const Point c = grid.corner(t.at);
      canvas_.rect(c.x + inset + 1.5, c.y + inset + 1.5, 6, 6,
                   fmt::format("rx=\"1.5\" fill=\"{}\" fill-opacity=\"0.85\"", hue(i)));
    }
  }

  /// One axis only: windows as brackets in lanes under the row, a dot at each tap.
  double brackets(const Grid& grid) {
    std::vector<double> lane_end;
    for (const std::size_t i : outlined()) {
      const WindowStory& w = story_.windows[i];
      const double from = grid.corner(w.taps.front().at).x + 5, to = grid.corner(w.taps.back().at).x + grid.cell - 5;
      std::size_t lane = 0;
      while (lane < lane_end.size() && lane_end[lane] > from) ++lane;
      if (lane == lane_end.size()) lane_end.push_back(0);
      lane_end[lane] = to;
      const double y = grid.y + grid.cell + 16 + 18 * static_cast<double>(lane);
      canvas_.path(fmt::format("M{:.1f} {:.1f} V{:.1f} H{:.1f} V{:.1f}", from, y - 7, y, to, y - 7),
                   fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"2.2\" stroke-linejoin=\"round\"", hue(i)));
      for (const Tap& t : w.taps) canvas_.circle({grid.center(t.at).x, y}, 3.2, fmt::format("fill=\"{}\"", hue(i)));
    }
    const double bottom = grid.y + grid.cell + 16 + 18 * static_cast<double>(lane_end.size());
    canvas_.reach(0, bottom);
    return bottom;
  }

  /// Winners: a disc in the window's colour; a cell that wins again gets a ring for each further window.
  void winners(const Grid& grid) {
    std::map<std::int64_t, int> times;
    for (const std::size_t i : outlined()) {
      const WindowStory& w = story_.windows[i];
      if (w.winner < 0) continue;
      const Tap& t = w.taps[static_cast<std::size_t>(w.winner)];
      const Point c = grid.center(t.at);
      const int before = times[w.flat]++;
      if (before == 0) {
        canvas_.circle(c, grid.cell * 0.30, fmt::format("fill=\"{}\"", hue(i)));
        label(c, grid.cell * 0.92, number(t.value), longest(story_.input), "fill=\"#ffffff\" font-weight=\"700\"");
      } else {
        canvas_.circle(c, grid.cell * 0.30 + 3.2 * before,
                       fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"2.4\"", hue(i)));
      }
    }
  }

  /// An opaque cell in a window's colour; what was drawn before disappears below it.
  void tile(const Grid& grid, const std::int64_t* at, std::size_t i) {
    const Point c = grid.corner(at);
    const double size = grid.cell - 2;
    canvas_.rect(c.x + 1, c.y + 1, size, size, "rx=\"6\" fill=\"#ffffff\"");
    canvas_.rect(
        c.x + 1, c.y + 1, size, size,
        fmt::format("rx=\"6\" fill=\"{0}\" fill-opacity=\"0.14\" stroke=\"{0}\" stroke-width=\"1.6\"", hue(i)));
  }

  void value_cells(const Grid& grid, const std::vector<double>& values, bool tinted) {
    std::size_t i = 0;
    each(grid, [&](const std::int64_t* at) {
      const Point c = grid.corner(at);
      if (tinted && story_.windows.size() <= kOutlined) {
        tile(grid, at, i);
      } else {
        canvas_.rect(c.x + 1, c.y + 1, grid.cell - 2, grid.cell - 2, "rx=\"6\" fill=\"#f3f6fa\" stroke=\"#c3cfdd\"");
      }
      label(grid.center(at), grid.cell, number(values[i]), longest(values), tinted ? "font-weight=\"700\"" : "");
      ++i;
    });
  }

  void pool_and_output() {
    const double top = y_;
    Grid in = padded_grid(40);
    in.cell = fitting_cell(in, 520, 46);
    in.x = kMargin;
    in.y = top + 42 + (story_.spec.dims == 3 ? 14 : 0);
    const bool padded = in.width() > plain_grid(story_.input_size, in.cell).width() ||
                        in.height() > plain_grid(story_.input_size, in.cell).height();
    heading(kMargin, top + 8, "Input and windows", padded ? "hatched: padding" : "");
    input_cells(in, true);
    slice_names(in);
    double bottom = in.y + in.height();
    if (story_.spec.dims == 1) {
      bottom = brackets(in);
    } else {
      for (const std::size_t i : outlined()) outline(in, story_.windows[i], i, 0.9);
    }
    if (has_winner(story_.spec.op)) winners(in);

    Grid out = plain_grid(story_.output_size, in.cell);
    out.cell = fitting_cell(out, 320, in.cell);
    out.x = in.x + in.width() + 96;
    out.y = in.y + std::max(0.0, (in.height() - out.height()) / 2);
    const double arrow_y = in.y + in.height() / 2;
    canvas_.path(fmt::format("M{:.1f} {:.1f} H{:.1f}", in.x + in.width() + 18, arrow_y, out.x - 18),
                 "fill=\"none\" stroke=\"#9ca3af\" stroke-width=\"2.5\" marker-end=\"url(#tip)\"");
    const char* verb = story_.spec.op == Op::min_pool   ? "min"
                       : has_winner(story_.spec.op)     ? "max"
                       : is_average(story_.spec.op)     ? "mean"
                       : story_.spec.op == Op::sum_pool ? "sum"
                                                        : "norm";
    canvas_.text((in.x + in.width() + out.x) / 2, arrow_y - 9, verb, 12,
                 fmt::format("text-anchor=\"middle\" fill=\"{}\" font-style=\"italic\"", kSoft));
    heading(out.x, out.y - (story_.spec.dims == 3 ? 48 : 34), "Output", "each cell in its window's colour");
    value_cells(out, story_.output, true);
    slice_names(out);
    bottom = std::max(bottom, out.y + out.height());

    // The arithmetic of the size: beside the output where there is room, below otherwise.
    const double beside = out.x + out.width() + kGap;
    const bool room = beside + 330 < kPage + kMargin;
    double x = room ? beside : kMargin, y = room ? top : bottom + 46;
    heading(x, y + 8, "How the output size comes about");
    y += 34;
    const int columns = room ? std::max(44, static_cast<int>((kPage + kMargin - beside) / 6.6)) : 150;
    for (const Derivation& d : derive_sizes(story_)) {
      canvas_.text(x, y, d.heading, 13, "font-weight=\"600\"");
      y += 20;
      for (const Derivation::Step& step : d.steps) {
        canvas_.text(x, y, step.what, 12, fmt::format("fill=\"{}\"", kSoft));
        const auto lines = wrap_text(step.arithmetic, columns - 18);
        for (const std::string& line : lines) {
          canvas_.text(x + 118, y, line, 12);
          y += 17.5;
        }
      }
      y += 3;
      for (const std::string& remark : d.remarks) y = paragraph(x, y, remark, columns + 4, 11.5) + 4;
      y += 8;
    }
    y_ = std::max(bottom, y) + kGap * 0.7;
  }

  /// A panel for each window, all as wide as the widest, so that they stand in columns.
  void film() {
    heading(kMargin, y_, "Window by window");
    const std::size_t shown = std::min(kFilm, story_.windows.size());
    std::vector<Grid> grids;
    std::vector<std::string> formulas;
    double width = 0;
    for (std::size_t i = 0; i < shown; ++i) {
      const WindowStory& w = story_.windows[i];
      Grid grid = padded_grid(20);
      if (story_.spec.dims == 3) {
        grid.low[0] = w.taps.front().at[0];
        grid.high[0] = w.taps.back().at[0];
      }
      const double columns = grid.width() / grid.cell, rows = grid.height() / grid.cell;
      grid.cell = std::clamp(std::min(188.0 / columns, 150.0 / rows), 12.0, 26.0);
      grids.push_back(grid);
      formulas.push_back(formula(story_, w, 31));
      width = std::max({width, grid.width() + 28, 6.6 * static_cast<double>(formulas.back().size()) + 20});
    }
    double x = kMargin, y = y_ + 20, row_height = 0;
    for (std::size_t i = 0; i < shown; ++i) {
      const WindowStory& w = story_.windows[i];
      Grid& grid = grids[i];
      if (x > kMargin && x + width > kPage + kMargin) {
        x = kMargin;
        y += row_height + 16;
        row_height = 0;
      }
      grid.x = x;
      grid.y = y + 22;
      canvas_.circle({x + 6, y + 8}, 5, fmt::format("fill=\"{}\"", hue(i)));
      canvas_.text(x + 17, y + 12,
                   fmt::format("output ({})", fmt::join(w.output + story_.first_axis(), w.output + 3, ", ")), 11.5,
                   "font-weight=\"600\"");
      film_cells(grid, w, i);
      canvas_.text(x, grid.y + grid.height() + 17, formulas[i], 11.5);
      double used = grid.height() + 46;
      if (w.winner >= 0) {
        canvas_.text(x, grid.y + grid.height() + 33, fmt::format("index {}, tap {}", w.flat, w.winner), 11.5,
                     fmt::format("fill=\"{}\"", kSoft));
        used += 16;
      }
      row_height = std::max(row_height, used);
      x += width;
    }
    y_ = y + row_height + 10;
    if (shown < story_.windows.size()) {
      canvas_.text(kMargin, y_, fmt::format("and {} more", story_.windows.size() - shown), 11.5,
                   fmt::format("fill=\"{}\"", kSoft));
      y_ += 16;
    }
    y_ += kGap * 0.5;
  }

  void film_cells(const Grid& grid, const WindowStory& w, std::size_t i) {
    each(grid, [&](const std::int64_t* at) {
      const Point c = grid.corner(at);
      const auto tap =
          std::find_if(w.taps.begin(), w.taps.end(), [&](const Tap& t) { return std::equal(t.at, t.at + 3, at); });
      const bool is_tap = tap != w.taps.end();
      const bool is_winner = is_tap && w.winner >= 0 && tap - w.taps.begin() == w.winner;
      const bool real = inside(at);
      std::string fill = real ? "fill=\"#f7f9fb\"" : "fill=\"url(#padding)\"";
      if (is_tap)
        fill = fmt::format("fill=\"{}\" fill-opacity=\"{}\"", hue(i), is_winner ? "1" : real ? "0.24" : "0.10");
      if (!real && is_tap) canvas_.rect(c.x, c.y, grid.cell, grid.cell, "fill=\"url(#padding)\"");
      canvas_.rect(c.x, c.y, grid.cell, grid.cell, fill + " stroke=\"#d5dde7\" stroke-width=\"0.8\"");
      if (real && grid.cell >= 15) {
        label(grid.center(at), grid.cell, number(input_at(at)), longest(story_.input),
              is_winner ? "fill=\"#ffffff\" font-weight=\"700\""
              : is_tap  ? "font-weight=\"600\""
                        : "fill=\"#9aa5b4\"");
      }
    });
  }

  void indices() {
    const double top = y_;
    heading(kMargin, top, "The indices");
    Grid flat = plain_grid(story_.output_size, 40);
    flat.cell = fitting_cell(flat, 300, 40);
    flat.x = kMargin;
    flat.y = top + 44;
    canvas_.text(kMargin, top + 32, "flat64, flat32: place in the input", 11.5, fmt::format("fill=\"{}\"", kSoft));
    value_cells(flat, {story_.flat64.begin(), story_.flat64.end()}, true);
    Grid tap = flat;
    tap.x = flat.x + std::max(flat.width(), 210.0) + 40;
    canvas_.text(tap.x, top + 32, "window: which tap won", 11.5, fmt::format("fill=\"{}\"", kSoft));
    value_cells(tap, {story_.window.begin(), story_.window.end()}, true);

    const double x = tap.x + std::max(tap.width(), 160.0) + kGap;
    double y = top + 32;
    const int columns = std::max(40, static_cast<int>((kPage + kMargin - x) / 6.4));
    const char* rule = story_.spec.dims == 1   ? "the cell's number"
                       : story_.spec.dims == 2 ? "row × width + column"
                                               : "(depth × height + row) × width + column";
    y = paragraph(x, y, fmt::format("flat: {} in the unpadded input. PyTorch's kind in 8 bytes, or 4.", rule), columns);
    y = paragraph(x, y + 4,
                  "window: the tap's number in its own window, padding taps counted. 1 byte for up to 255 taps.",
                  columns);
    const auto found = std::find_if(story_.windows.rbegin(), story_.windows.rend(),
                                    [](const WindowStory& w) { return w.winner >= 0; });
    if (found != story_.windows.rend() && story_.spec.dims == 2) {
      const WindowStory& w = *found;
      const Tap& t = w.taps[static_cast<std::size_t>(w.winner)];
      const std::int64_t d1 = story_.axis(1).dilation, d2 = story_.axis(2).dilation;
      const std::int64_t row = (t.at[1] - w.start[1]) / d1, column = (t.at[2] - w.start[2]) / d2;
      const std::int64_t taps = (w.taps.back().at[2] - w.taps.front().at[2]) / d2 + 1;
      y = paragraph(x, y + 4,
                    fmt::format("Output ({}, {}): flat {} = row {}, column {}. Its window starts at row {}, column {}: "
                                "tap row {}, tap column {}, number {} × {} + {} = {}.",
                                w.output[1], w.output[2], w.flat, t.at[1], t.at[2], w.start[1], w.start[2], row, column,
                                row, taps, column, w.winner),
                    columns, 12, kInk);
    }
    y_ = std::max(flat.y + flat.height(), y) + kGap;
  }

  void gradient() {
    const double top = y_;
    heading(kMargin, top, "Where the gradient goes", "1 flows into every output; the numbers are what arrives");
    Grid out = plain_grid(story_.output_size, 40), in = plain_grid(story_.input_size, 40);
    in.cell = fitting_cell(in, 480, 42);
    out.cell = std::min(fitting_cell(out, 260, 34), in.cell);
    out.x = kMargin;
    in.x = kMargin + out.width() + 150;
    in.y = top + 44 + (story_.spec.dims == 3 ? 12 : 0);
    out.y = in.y + std::max(0.0, (in.height() - out.height()) / 2);
    if (story_.spec.dims == 1) {  // a row over a row
      out.y = in.y;
      in.y += out.cell + 90;
      in.x = kMargin + std::max(0.0, (out.width() - in.width()) / 2);
      out.x = kMargin + std::max(0.0, (in.width() - out.width()) / 2);
    }
    double most = 0;
    for (const double g : story_.gradient) {
      if (std::isfinite(g)) most = std::max(most, std::abs(g));
    }
    std::size_t i = 0;
    each(in, [&](const std::int64_t* at) {
      const double g = story_.gradient[i++];
      const Point c = in.corner(at);
      const double part = most > 0 && std::isfinite(g) ? std::abs(g) / most : 0;
      canvas_.rect(c.x, c.y, in.cell, in.cell,
                   fmt::format("fill=\"#f97316\" fill-opacity=\"{:.3f}\" stroke=\"#d5dde7\"", 0.62 * part));
    });
    flows(out, in);
    i = 0;
    each(in, [&](const std::int64_t* at) {
      const double g = story_.gradient[i++];
      const Point c = in.center(at);
      label({c.x, c.y - in.cell * 0.06}, in.cell, number(g), longest(story_.gradient),
            g == 0 ? "fill=\"#b6bfca\"" : "font-weight=\"600\"");
    });
    value_cells(out, std::vector<double>(story_.output.size(), 1.0), true);
    slice_names(in);
    slice_names(out);
    const double x = std::max(in.x + in.width(), out.x + out.width()) + kGap;
    const std::string words =
        has_winner(story_.spec.op) ? "All of an output's gradient goes to its winner. A cell that wins several windows "
                                     "collects from each; all others get 0."
        : is_average(story_.spec.op) ? "An output's gradient is divided by its divisor; every real cell of the window "
                                       "gets that share. What falls on padding is lost."
        : story_.spec.op == Op::lp_pool ? "Each cell's share grows with its magnitude."
                                        : "Every real cell of the window gets the whole gradient of the output.";
    const bool room = x + 200 < kPage + kMargin;
    const double end = room
                           ? paragraph(x, in.y + 12, words, std::max(28, static_cast<int>((kPage + kMargin - x) / 6.4)))
                           : paragraph(kMargin, in.y + std::max(in.height(), out.height()) + 24, words, 150);
    y_ = std::max({in.y + in.height(), out.y + out.height(), end}) + 10;
    canvas_.reach(0, y_);
  }

  /// Curves from every output to the cells it feeds, thin where they are many.
  void flows(const Grid& out, const Grid& in) {
    std::size_t lines = 0;
    for (const WindowStory& w : story_.windows)
      lines += has_winner(story_.spec.op) ? 1 : static_cast<std::size_t>(w.inside);
    if (lines > 600) return;
    const double thickness = lines <= 40 ? 1.8 : 0.9, opacity = lines <= 40 ? 0.75 : 0.35;
    for (std::size_t i = 0; i < story_.windows.size(); ++i) {
      const WindowStory& w = story_.windows[i];
      // Lines of one output row leave it one under the other, and run below the numbers of the cells they pass.
      const double spread = out.cell * 0.5 / static_cast<double>(std::max<std::int64_t>(1, story_.output_size[2]));
      const double offset =
          (static_cast<double>(w.output[2]) - 0.5 * static_cast<double>(story_.output_size[2] - 1)) * spread;
      const Point from{out.corner(w.output).x + out.cell - 2, out.center(w.output).y + offset};
      for (std::size_t t = 0; t < w.taps.size(); ++t) {
        if (w.taps[t].place != Place::inside ||
            (has_winner(story_.spec.op) && static_cast<std::int64_t>(t) != w.winner))
          continue;
        const Point center = in.center(w.taps[t].at);
        const std::string attributes =
            fmt::format("stroke=\"{}\" stroke-width=\"{}\" stroke-opacity=\"{}\" stroke-linecap=\"round\"", hue(i),
                        thickness, opacity);
        Point to{center.x, center.y + in.cell * 0.36};
        if (story_.spec.dims == 1) {
          to.y = in.y + 2;
          canvas_.fall({out.center(w.output).x, out.y + out.cell - 2}, to, attributes);
        } else {
          canvas_.curve(from, to, in.x - 4, attributes);
        }
        canvas_.circle(to, 2.4, fmt::format("fill=\"{}\" fill-opacity=\"{}\"", hue(i), std::min(1.0, opacity + 0.2)));
      }
    }
  }

  void unpool() {
    const double top = y_;
    Grid in = plain_grid(story_.input_size, 46), out = plain_grid(story_.output_size, 46);
    in.cell = fitting_cell(in, 300, 46);
    out.cell = fitting_cell(out, 520, 46);
    in.x = kMargin;
    out.x = kMargin + in.width() + 150;
    out.y = top + 44;
    in.y = out.y + std::max(0.0, (out.height() - in.height()) / 2);
    heading(kMargin, in.y - 32, "Values and their indices");
    heading(out.x, top + 8, "Output", "0 wherever no index points");
    each(out, [&](const std::int64_t* at) {
      const Point c = out.corner(at);
      canvas_.rect(c.x, c.y, out.cell, out.cell, "fill=\"#f7f9fb\" stroke=\"#d5dde7\"");
    });
    std::size_t i = 0;
    each(in, [&](const std::int64_t* at) {
      const std::int64_t flat = story_.flat64[i], h = story_.output_size[1], w = story_.output_size[2];
      const std::int64_t to_at[3] = {flat / (h * w), flat / w % h, flat % w};
      // As in the gradient's flow: one under the other out of a row, and below the numbers.
      const double offset = (static_cast<double>(at[2]) - 0.5 * static_cast<double>(in.high[2])) * in.cell * 0.5 /
                            static_cast<double>(in.high[2] + 1);
      const Point from{in.corner(at).x + in.cell - 2, in.center(at).y + offset},
          to{out.corner(to_at).x + 6, out.center(to_at).y + out.cell * 0.34};
      canvas_.curve(from, to, out.x - 4,
                    fmt::format("stroke=\"{}\" stroke-width=\"1.8\" stroke-opacity=\"0.7\"", hue(i)));
      ++i;
    });
    i = 0;
    each(out, [&](const std::int64_t* at) {
      const Point c = out.corner(at);
      const auto flat = static_cast<std::int64_t>(i);
      const auto source = std::find(story_.flat64.rbegin(), story_.flat64.rend(), flat);
      const bool filled = source != story_.flat64.rend();
      if (filled) tile(out, at, static_cast<std::size_t>(story_.flat64.rend() - source) - 1);
      label(out.center(at), out.cell, number(story_.output[i]), longest(story_.output),
            filled ? "font-weight=\"700\"" : "fill=\"#b6bfca\"");
      canvas_.text(c.x + 4, c.y + 10, std::to_string(flat), 7.5, "fill=\"#8a94a3\"");
      ++i;
    });
    i = 0;
    each(in, [&](const std::int64_t* at) {
      tile(in, at, i);
      label({in.center(at).x, in.center(at).y - 4}, in.cell, number(story_.input[i]), longest(story_.input),
            "font-weight=\"700\"");
      canvas_.text(in.center(at).x, in.corner(at).y + in.cell - 6, fmt::format("→ {}", story_.flat64[i]), 9.5,
                   fmt::format("text-anchor=\"middle\" fill=\"{}\"", kSoft));
      ++i;
    });
    slice_names(in);
    slice_names(out);
    StoryInput input{.spec = story_.spec, .values = {}, .indices = {}};
    std::copy(story_.input_size, story_.input_size + 3, input.size);
    double y = std::max(in.y + in.height(), out.y + out.height()) + kGap;
    heading(kMargin, y, "How the output size comes about");
    y += 26;
    for (const Derivation& d : derive_unpool(input)) {
      canvas_.text(kMargin, y, d.heading, 13, "font-weight=\"600\"");
      y += 20;
      for (const Derivation::Step& step : d.steps) {
        canvas_.text(kMargin, y, step.what, 12, fmt::format("fill=\"{}\"", kSoft));
        canvas_.text(kMargin + 118, y, step.arithmetic, 12);
        y += 17.5;
      }
      for (const std::string& remark : d.remarks) y = paragraph(kMargin, y + 3, remark, 120, 11.5);
      y += 10;
    }
    y_ = y;
  }

  const Story& story_;
  Canvas canvas_;
  double y_ = 0;
};

}  // namespace

std::string to_svg(const Story& story) { return Drawing(story).draw(); }

}  // namespace cenote::tool
