// Numbers that travel: the gradient from the outputs to the cells it reaches, unpooled values to their places.
#include "svg_sheet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace cenote::tool {
namespace {

// More curves than this are a thicket.
constexpr std::size_t kMostCurves = 600;

/// Two grids side by side, the larger one on the right; of one axis, a row over a row.
struct Pair {
  Grid from, to;
  bool stacked = false;

  double bottom() const { return std::max(from.y + from.height(), to.y + to.height()); }
  double right() const { return std::max(from.x + from.width(), to.x + to.width()); }
};

Pair arrange(const Sheet& sheet, Grid from, Grid to, double top) {
  const bool stacked = sheet.story.spec.dims == 1;
  from.x = kMargin;
  to.x = kMargin + from.width() + 150;
  to.y = top + (sheet.story.spec.dims == 3 ? 12 : 0);
  from.y = to.y + std::max(0.0, (to.height() - from.height()) / 2);
  if (stacked) {
    from.y = to.y;
    to.y += from.cell + 90;
    to.x = kMargin + std::max(0.0, (from.width() - to.width()) / 2);
    from.x = kMargin + std::max(0.0, (to.width() - from.width()) / 2);
  }
  return {from, to, stacked};
}

/// A number's way from one cell to another, in its own lane: lines of one row leave it one under the other, and stay apart
/// where they pass below the numbers of the cells on their way. Returns where it ends.
Point travel(Sheet& sheet, const Pair& pair, const std::int64_t* from, const std::int64_t* to, std::size_t number,
             double thickness, double opacity) {
  const std::string attributes =
      fmt::format("stroke=\"{}\" stroke-width=\"{}\" stroke-opacity=\"{}\" stroke-linecap=\"round\"", hue(number),
                  thickness, opacity);
  if (pair.stacked) {
    const Point end{pair.to.center(to).x, pair.to.y + 2};
    sheet.canvas.fall({pair.from.center(from).x, pair.from.y + pair.from.cell - 2}, end, attributes);
    return end;
  }
  const double columns = static_cast<double>(pair.from.high[2] + 1);
  const double lane = static_cast<double>(from[2]) - 0.5 * (columns - 1);
  const Point start{pair.from.corner(from).x + pair.from.cell - 2,
                    pair.from.center(from).y + lane * pair.from.cell * 0.5 / columns};
  const double apart = std::min(thickness + 0.6, pair.to.cell * 0.22 / columns);
  const Point end{pair.to.center(to).x, pair.to.center(to).y + pair.to.cell * 0.35 + lane * apart};
  sheet.canvas.curve(start, end, pair.to.x - 4, attributes);
  return end;
}

const char* gradient_in_words(Op op) {
  if (has_winner(op))
    return "All of an output's gradient goes to its winner. A cell that wins several windows collects from each; all "
           "others get 0.";
  if (is_average(op))
    return "An output's gradient is divided by its divisor; every real cell of the window gets that share. What falls "
           "on padding is lost.";
  if (op == Op::lp_pool) return "Each cell's share grows with its magnitude.";
  return "Every real cell of the window gets the whole gradient of the output.";
}

/// Curves from every output to the cells it feeds, thin where they are many.
void gradient_curves(Sheet& sheet, const Pair& pair) {
  const Story& story = sheet.story;
  const bool winner_only = has_winner(story.spec.op);
  std::size_t curves = 0;
  for (const WindowStory& w : story.windows) curves += winner_only ? 1 : static_cast<std::size_t>(w.inside);
  if (curves > kMostCurves) return;
  const double thickness = curves <= 40 ? 1.8 : 0.9, opacity = curves <= 40 ? 0.75 : 0.35;
  for (std::size_t i = 0; i < story.windows.size(); ++i) {
    const WindowStory& w = story.windows[i];
    for (std::size_t t = 0; t < w.taps.size(); ++t) {
      if (w.taps[t].place != Place::inside || (winner_only && static_cast<std::int64_t>(t) != w.winner)) continue;
      const Point end = travel(sheet, pair, w.output, w.taps[t].at, i, thickness, opacity);
      sheet.canvas.circle(end, 2.4,
                          fmt::format("fill=\"{}\" fill-opacity=\"{}\"", hue(i), std::min(1.0, opacity + 0.2)));
    }
  }
}

}  // namespace

void draw_gradient(Sheet& sheet) {
  const Story& story = sheet.story;
  const double top = sheet.y;
  sheet.heading(kMargin, top, "Where the gradient goes", "1 flows into every output; the numbers are what arrives");
  Grid out = Sheet::plain_grid(story.output_size, 40), in = Sheet::plain_grid(story.input_size, 40);
  in.cell = Sheet::fitting_cell(in, 480, 42);
  out.cell = std::min(Sheet::fitting_cell(out, 260, 34), in.cell);
  const Pair pair = arrange(sheet, out, in, top + 44);
  double most = 0;
  for (const double g : story.gradient) {
    if (std::isfinite(g)) most = std::max(most, std::abs(g));
  }
  std::size_t i = 0;
  Sheet::each(pair.to, [&](const std::int64_t* at) {
    const double g = story.gradient[i++];
    const Point c = pair.to.corner(at);
    const double part = most > 0 && std::isfinite(g) ? std::abs(g) / most : 0;
    sheet.canvas.rect(c.x, c.y, pair.to.cell, pair.to.cell,
                      fmt::format("fill=\"#f97316\" fill-opacity=\"{:.3f}\" stroke=\"#d5dde7\"", 0.62 * part));
  });
  gradient_curves(sheet, pair);
  const std::size_t length = Sheet::longest(story.gradient);
  i = 0;
  Sheet::each(pair.to, [&](const std::int64_t* at) {
    const double g = story.gradient[i++];
    const Point c = pair.to.center(at);
    sheet.label({c.x, c.y - pair.to.cell * 0.06}, pair.to.cell, number(g), length,
                g == 0 ? "fill=\"#b6bfca\"" : "font-weight=\"600\"");
  });
  sheet.value_cells(pair.from, std::vector<double>(story.output.size(), 1.0));
  sheet.slice_names(pair.to, story.input_size[0]);
  sheet.slice_names(pair.from, story.output_size[0]);

  const double x = pair.right() + kGap;
  const bool room = x + 200 < kPage + kMargin;
  const std::string words = gradient_in_words(story.spec.op);
  const double end =
      room ? sheet.paragraph(x, pair.to.y + 12, words, std::max(28, static_cast<int>((kPage + kMargin - x) / 6.4)))
           : sheet.paragraph(kMargin, pair.bottom() + 24, words, 150);
  sheet.y = std::max(pair.bottom(), end) + 10;
  sheet.canvas.reach(0, sheet.y);
}

void draw_unpool(Sheet& sheet) {
  const Story& story = sheet.story;
  const double top = sheet.y;
  Grid in = Sheet::plain_grid(story.input_size, 46), out = Sheet::plain_grid(story.output_size, 46);
  in.cell = Sheet::fitting_cell(in, 300, 46);
  out.cell = Sheet::fitting_cell(out, 520, 46);
  const Pair pair = arrange(sheet, in, out, top + 44);
  const double lift = story.spec.dims == 3 ? 48 : 32;
  sheet.heading(pair.from.x, pair.from.y - lift, "Values and their indices");
  if (pair.stacked) {
    sheet.canvas.text(pair.from.x, pair.to.y + pair.to.height() + 18, "0 wherever no index points", 11.5,
                      fmt::format("fill=\"{}\"", kSoft));
  } else {
    sheet.heading(pair.to.x, top + 8, "Output", "0 wherever no index points");
  }
  Sheet::each(pair.to, [&](const std::int64_t* at) {
    const Point c = pair.to.corner(at);
    sheet.canvas.rect(c.x, c.y, pair.to.cell, pair.to.cell, "fill=\"#f7f9fb\" stroke=\"#d5dde7\"");
  });
  std::size_t i = 0;
  Sheet::each(pair.from, [&](const std::int64_t* at) {
    const std::int64_t flat = story.flat64[i], h = story.output_size[1], w = story.output_size[2];
    const std::int64_t place[3] = {flat / (h * w), flat / w % h, flat % w};
    if (story.flat64.size() <= kMostCurves) travel(sheet, pair, at, place, i, 1.8, 0.7);
    ++i;
  });
  const std::size_t out_length = Sheet::longest(story.output), in_length = Sheet::longest(story.input);
  std::vector<std::ptrdiff_t> source(story.output.size(), -1);  // the last value that goes to a place stays there
  for (std::size_t v = 0; v < story.flat64.size(); ++v)
    source[static_cast<std::size_t>(story.flat64[v])] = static_cast<std::ptrdiff_t>(v);
  i = 0;
  Sheet::each(pair.to, [&](const std::int64_t* at) {
    const Point c = pair.to.corner(at);
    const bool filled = source[i] >= 0;
    if (filled) sheet.tile(pair.to, at, static_cast<std::size_t>(source[i]));
    sheet.label(pair.to.center(at), pair.to.cell, number(story.output[i]), out_length,
                filled ? "font-weight=\"700\"" : "fill=\"#b6bfca\"");
    if (pair.to.cell >= 30) sheet.canvas.text(c.x + 4, c.y + 10, std::to_string(i), 7.5, "fill=\"#8a94a3\"");
    ++i;
  });
  i = 0;
  Sheet::each(pair.from, [&](const std::int64_t* at) {
    sheet.tile(pair.from, at, i);
    const Point c = pair.from.center(at);
    sheet.label({c.x, c.y - 4}, pair.from.cell, number(story.input[i]), in_length, "font-weight=\"700\"");
    sheet.canvas.text(c.x, pair.from.corner(at).y + pair.from.cell - 6, fmt::format("→ {}", story.flat64[i]),
                      std::min(9.5, pair.from.cell * 0.21), fmt::format("text-anchor=\"middle\" fill=\"{}\"", kSoft));
    ++i;
  });
  sheet.slice_names(pair.from, story.input_size[0]);
  sheet.slice_names(pair.to, story.output_size[0]);
  StoryInput input{.spec = story.spec, .values = {}, .indices = {}};
  std::copy(story.input_size, story.input_size + 3, input.size);
  const double y = pair.bottom() + kGap + (pair.stacked ? 14 : 0);
  sheet.heading(kMargin, y, "How the output size comes about");
  sheet.y = sheet.derivations(kMargin, y + 26, derive_unpool(input), 116);
}

}  // namespace cenote::tool
