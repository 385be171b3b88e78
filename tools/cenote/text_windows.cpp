#include "formula.hpp"
#include "terminal.hpp"
#include "text_sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace cenote::tool {
namespace {

/// The input with one window in it: padding as dots, taps in brackets, the winner between stars.
Lines window_grid(const Writer& writer, const Story& story, const WindowStory& w, int limit) {
  const int width = widest(story.input);
  std::int64_t low[3], high[3], tap_low[3], tap_high[3];
  for (int a = 0; a < 3; ++a) {
    tap_low[a] = w.taps.front().at[a];
    tap_high[a] = w.taps.back().at[a];
    low[a] = smaller(-story.axis(a).pad_begin, tap_low[a]);
    high[a] = larger(story.input_size[a] - 1 + story.axis(a).pad_end, tap_high[a]);
  }
  // Of a 3d input, the slices the window touches; of a wide one, the columns around it.
  low[0] = tap_low[0];
  high[0] = tap_high[0];
  const std::int64_t room = std::max(1, (limit - 2) / (width + 2));
  bool cut_left = false, cut_right = false;
  if (high[2] - low[2] + 1 > room) {
    const std::int64_t first = std::clamp(tap_low[2] - 1, low[2], high[2] - room + 1);
    cut_left = first > low[2];
    cut_right = first + room - 1 < high[2];
    low[2] = first;
    high[2] = first + room - 1;
  }
  Lines lines;
  for (std::int64_t z = low[0]; z <= high[0]; ++z) {
    if (story.spec.dims == 3)
      lines.push_back(z < 0 || z >= story.input_size[0] ? "depth " + std::to_string(z) + ", padding"
                                                        : fmt::format("depth {}", z));
    for (std::int64_t y = low[1]; y <= high[1]; ++y) {
      std::string line = cut_left ? "…" : "";
      for (std::int64_t x = low[2]; x <= high[2]; ++x) {
        const std::int64_t at[3] = {z, y, x};
        const std::int64_t tap = w.tap_at(at);
        const bool inside =
            z >= 0 && z < story.input_size[0] && y >= 0 && y < story.input_size[1] && x >= 0 && x < story.input_size[2];
        Mark mark = inside ? Mark::plain : Mark::padding;
        if (tap >= 0) {
          const Place place = w.taps[static_cast<std::size_t>(tap)].place;
          mark = place == Place::inside ? Mark::tap : place == Place::padding ? Mark::padding_tap : Mark::outside;
          if (tap == w.winner) mark = Mark::winner;
        }
        const double value =
            inside ? story.input[static_cast<std::size_t>((z * story.input_size[1] + y) * story.input_size[2] + x)] : 0;
        line += writer.cell(number(value), width, mark);
      }
      lines.push_back(trimmed(line + (cut_right ? "…" : "")));
    }
  }
  return lines;
}

Lines window_block(const Writer& writer, const Story& story, const WindowStory& w, int limit) {
  Lines block, cells = window_grid(writer, story, w, limit);
  const int text_width = std::min(limit, std::max(34, display_width(cells[0])));
  const std::string heading = fmt::format("output ({}) = {}", coordinates(story, w.output), number(w.result));
  for (const std::string& line : wrap_text(heading, limit)) block.push_back(writer.paint(line, "1"));
  block.insert(block.end(), std::make_move_iterator(cells.begin()), std::make_move_iterator(cells.end()));
  std::string text = formula(story, w, 48), place;
  if (w.winner >= 0) {
    const Tap& t = w.taps[static_cast<std::size_t>(w.winner)];
    text += fmt::format(" at {}", position(story, t.at));
    place = fmt::format("index {}, tap {}", flat_arithmetic(story, t.at, w.flat), w.winner);
  }
  for (std::string& line : wrap_text(text, text_width)) block.push_back(std::move(line));
  for (std::string& line : wrap_text(place, text_width)) block.push_back(std::move(line));
  return block;
}

std::string padding_in_words(const PoolSpec& spec) {
  switch (spec.op) {
    case Op::max_pool:
      return "Padding counts as minus infinity: it never wins, so an all-negative input stays negative.";
    case Op::min_pool: return "Padding counts as plus infinity: it never wins.";
    case Op::avg_pool:
      if (spec.divisor_override) {
        return fmt::format(
            "Padding adds zeros to the sum; the divisor is {} whatever the window holds (divisor_override).",
            *spec.divisor_override);
      }
      return spec.count_include_pad
                 ? "Padding adds zeros to the sum and is counted by the divisor (count_include_pad), which pulls the "
                   "border towards zero."
                 : "Padding adds nothing and is not counted by the divisor: the border averages the real cells only.";
    default: return "Padding adds zeros to the sum.";
  }
}

}  // namespace

void write_windows(Writer& writer, const Story& story) {
  writer.heading("The windows");
  const auto any = [&](Place place) {
    return std::any_of(story.windows.begin(), story.windows.end(), [&](const WindowStory& w) {
      return std::any_of(w.taps.begin(), w.taps.end(), [&](const Tap& t) { return t.place == place; });
    });
  };
  const bool padded = any(Place::padding);
  std::string legend = "[ ] a tap of the window";
  if (has_winner(story.spec.op)) legend += ", * * the winner";
  if (padded) legend += ", · padding";
  if (any(Place::overhang)) legend += ", [-] overhang beyond the padding";
  writer.paragraph(legend + ".");
  if (padded) writer.paragraph(padding_in_words(story.spec));
  const std::size_t shown =
      writer.style().all_windows ? story.windows.size() : std::min(kWindowsShown, story.windows.size());
  std::vector<Lines> blocks;
  for (std::size_t i = 0; i < shown; ++i)
    blocks.push_back(window_block(writer, story, story.windows[i], writer.style().width - 2));
  writer.blank();
  writer.flow(blocks);
  if (shown < story.windows.size())
    writer.paragraph(fmt::format("... and {} more; --all draws them.", story.windows.size() - shown));
}

}  // namespace cenote::tool
