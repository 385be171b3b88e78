#include "story_svg.hpp"

#include "arguments.hpp"
#include "svg_sheet.hpp"

#include <fmt/format.h>

namespace cenote::tool {

std::string to_svg(const Story& story) {
  Sheet sheet{.story = story};
  const std::string title = describe_in_words(story.spec);
  sheet.canvas.text(kMargin, 52, title, 24, "font-weight=\"700\"");
  const auto sizes = [&](const std::int64_t* size) {
    return fmt::format("{}", fmt::join(size + story.first_axis(), size + 3, " × "));
  };
  sheet.canvas.text(kMargin, 76, fmt::format("{} in, {} out", sizes(story.input_size), sizes(story.output_size)), 14,
                    fmt::format("fill=\"{}\"", kSoft));
  sheet.y = 112;
  if (story.spec.op == Op::max_unpool) {
    draw_unpool(sheet);
  } else {
    draw_windows(sheet);
    draw_film(sheet);
    if (!story.window.empty()) draw_indices(sheet);
    draw_gradient(sheet);
  }
  return sheet.canvas.finish(title);
}

}  // namespace cenote::tool
