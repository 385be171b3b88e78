// Where each winner stands, counted in the input and in its window.
#include "svg_sheet.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cenote::tool {

void draw_indices(Sheet& sheet) {
  const Story& story = sheet.story;
  const double top = sheet.y;
  sheet.heading(kMargin, top, "The indices");
  const double below = top + 44 + (story.spec.dims == 3 ? 14 : 0);
  Grid flat = Sheet::plain_grid(story.output_size, 40);
  flat.cell = Sheet::fitting_cell(flat, 300, 40);
  flat.x = kMargin;
  flat.y = below;
  const std::string soft = fmt::format("fill=\"{}\"", kSoft);
  sheet.canvas.text(kMargin, top + 26, "flat64, flat32: place in the input", 11.5, soft);
  sheet.value_cells(flat, {story.flat64.begin(), story.flat64.end()});
  sheet.slice_names(flat, story.output_size[0]);
  Grid tap = flat;
  tap.x = flat.x + std::max(flat.width(), 210.0) + 40;
  sheet.canvas.text(tap.x, top + 26, "window: which tap won", 11.5, soft);
  sheet.value_cells(tap, {story.window.begin(), story.window.end()});
  sheet.slice_names(tap, story.output_size[0]);

  const double x = tap.x + std::max(tap.width(), 160.0) + kGap;
  const int columns = std::max(40, static_cast<int>((kPage + kMargin - x) / 6.4));
  const char* rule = story.spec.dims == 1   ? "the cell's number"
                     : story.spec.dims == 2 ? "row × width + column"
                                            : "(depth × height + row) × width + column";
  double y = sheet.paragraph(
      x, top + 26, fmt::format("flat: {} in the unpadded input. PyTorch's kind in 8 bytes, or 4.", rule), columns);
  y = sheet.paragraph(x, y + 4,
                      "window: the tap's number in its own window, padding taps counted. 1 byte for up to 255 taps.",
                      columns);
  const auto found =
      std::find_if(story.windows.rbegin(), story.windows.rend(), [](const WindowStory& w) { return w.winner >= 0; });
  if (found != story.windows.rend() && story.spec.dims == 2) {
    const WindowStory& w = *found;
    const Tap& t = w.taps[static_cast<std::size_t>(w.winner)];
    const std::int64_t row = w.winner / w.count[2], column = w.winner % w.count[2];
    y = sheet.paragraph(x, y + 4,
                        fmt::format("Output ({}): flat {} = row {}, column {}. Its window starts at row {}, column {}: "
                                    "tap row {}, tap column {}, number {} × {} + {} = {}.",
                                    coordinates(story, w.output), w.flat, t.at[1], t.at[2], w.start[1], w.start[2], row,
                                    column, row, w.count[2], column, w.winner),
                        columns, 12, kInk);
  }
  sheet.y = std::max(flat.y + flat.height(), y) + kGap;
}

}  // namespace cenote::tool
