#include "svg_sheet.hpp"

#include "text_writer.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cenote::tool {

bool Sheet::inside(const std::int64_t* at) const {
  for (int a = 0; a < 3; ++a) {
    if (at[a] < 0 || at[a] >= story.input_size[a]) return false;
  }
  return true;
}

double Sheet::input_at(const std::int64_t* at) const {
  return story.input[static_cast<std::size_t>((at[0] * story.input_size[1] + at[1]) * story.input_size[2] + at[2])];
}

bool Sheet::overhang(const std::int64_t* at) const {
  for (int a = 0; a < 3; ++a) {
    if (at[a] >= story.input_size[a] + story.axis(a).pad_end) return true;
  }
  return false;
}

void Sheet::each(const Grid& grid, const std::function<void(const std::int64_t*)>& visit) {
  for (std::int64_t z = grid.low[0]; z <= grid.high[0]; ++z) {
    for (std::int64_t row = grid.low[1]; row <= grid.high[1]; ++row) {
      for (std::int64_t x = grid.low[2]; x <= grid.high[2]; ++x) {
        const std::int64_t at[3] = {z, row, x};
        visit(at);
      }
    }
  }
}

Grid Sheet::plain_grid(const std::int64_t* size, double cell) {
  Grid grid;
  grid.cell = cell;
  for (int a = 0; a < 3; ++a) grid.high[a] = size[a] - 1;
  return grid;
}

Grid Sheet::padded_grid(double cell) const {
  Grid grid = plain_grid(story.input_size, cell);
  for (int a = 0; a < 3; ++a) {
    grid.low[a] = -story.axis(a).pad_begin;
    grid.high[a] += story.axis(a).pad_end;
    for (const WindowStory& w : story.windows) {
      grid.low[a] = std::min(grid.low[a], w.taps.front().at[a]);
      grid.high[a] = std::max(grid.high[a], w.taps.back().at[a]);
    }
  }
  return grid;
}

double Sheet::fitting_cell(const Grid& grid, double width, double largest) {
  const double columns = grid.width() / grid.cell;
  return std::clamp(width / columns, 20.0, largest);
}

void Sheet::heading(double x, double at, const std::string& words, const std::string& note) {
  canvas.text(x, at, words, 15, "font-weight=\"700\" letter-spacing=\"0.2\"");
  if (!note.empty()) canvas.text(x, at + 17, note, 11.5, fmt::format("fill=\"{}\"", kSoft));
}

double Sheet::paragraph(double x, double at, const std::string& words, int columns, double size, const char* color) {
  for (const std::string& line : wrap_text(words, columns)) {
    canvas.text(x, at, line, size, fmt::format("fill=\"{}\"", color));
    at += size * 1.45;
  }
  return at;
}

double Sheet::derivations(double x, double at, const std::vector<Derivation>& all, int columns) {
  for (const Derivation& d : all) {
    canvas.text(x, at, d.heading, 13, "font-weight=\"600\"");
    at += 20;
    for (const Derivation::Step& step : d.steps) {
      canvas.text(x, at, step.what, 12, fmt::format("fill=\"{}\"", kSoft));
      for (const std::string& line : wrap_text(step.arithmetic, columns - 18)) {
        canvas.text(x + 118, at, line, 12);
        at += 17.5;
      }
    }
    at += 3;
    for (const std::string& remark : d.remarks) at = paragraph(x, at, remark, columns + 4, 11.5) + 4;
    at += 8;
  }
  return at;
}

void Sheet::slice_names(const Grid& grid, std::int64_t size) {
  if (story.spec.dims != 3) return;
  for (std::int64_t z = grid.low[0]; z <= grid.high[0]; ++z) {
    const std::int64_t at[3] = {z, grid.low[1], grid.low[2]};
    canvas.text(grid.corner(at).x, grid.y - 6, z < 0 || z >= size ? "padding" : fmt::format("depth {}", z), 10.5,
                fmt::format("fill=\"{}\"", kSoft));
  }
}

std::size_t Sheet::longest(const std::vector<double>& values) {
  std::size_t most = 1;
  for (const double v : values) most = std::max(most, number(v).size());
  return most;
}

double Sheet::label_size(double cell, const std::string& words, std::size_t longest) {
  return std::min(cell * 0.40, cell * 1.36 / static_cast<double>(std::max({longest, words.size(), std::size_t{1}})));
}

void Sheet::label(Point center, double cell, const std::string& words, std::size_t longest,
                  const std::string& attributes) {
  const double size = label_size(cell, words, longest);
  canvas.text(center.x, center.y + size * 0.36, words, size, "text-anchor=\"middle\" " + attributes);
}

void Sheet::tile(const Grid& grid, const std::int64_t* at, std::size_t number) {
  const Point c = grid.corner(at);
  const double size = grid.cell - 2;
  canvas.rect(c.x + 1, c.y + 1, size, size, "rx=\"6\" fill=\"#ffffff\"");
  canvas.rect(
      c.x + 1, c.y + 1, size, size,
      fmt::format("rx=\"6\" fill=\"{0}\" fill-opacity=\"0.14\" stroke=\"{0}\" stroke-width=\"1.6\"", hue(number)));
}

void Sheet::value_cells(const Grid& grid, const std::vector<double>& values) {
  const std::size_t length = longest(values);
  std::size_t i = 0;
  each(grid, [&](const std::int64_t* at) {
    const Point c = grid.corner(at);
    if (values.size() <= kOutlined) {
      tile(grid, at, i);
    } else {
      canvas.rect(c.x + 1, c.y + 1, grid.cell - 2, grid.cell - 2, "rx=\"6\" fill=\"#f3f6fa\" stroke=\"#c3cfdd\"");
    }
    label(grid.center(at), grid.cell, number(values[i]), length, "font-weight=\"700\"");
    ++i;
  });
}

}  // namespace cenote::tool
