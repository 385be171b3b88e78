#include "text_sections.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cenote::tool {
namespace {

std::vector<double> as_doubles(const std::vector<std::int64_t>& values) { return {values.begin(), values.end()}; }

const char* flat_rule(int dims) {
  return dims == 1   ? "the cell's number"
         : dims == 2 ? "row * width + column"
                     : "(depth * height + row) * width + column";
}

/// How one output's flat index becomes its window index, step by step, and back.
Lines conversion(const Story& story, const WindowStory& w) {
  const Tap& t = w.taps[static_cast<std::size_t>(w.winner)];
  const std::int64_t height = story.input_size[1], width = story.input_size[2];
  std::int64_t tap[3];
  for (int a = 0; a < 3; ++a) tap[a] = (t.at[a] - w.start[a]) / w.step[a];
  Lines steps;
  switch (story.spec.dims) {
    case 1: steps.push_back(fmt::format("flat {} is cell {}", w.flat, t.at[2])); break;
    case 2:
      steps.push_back(
          fmt::format("flat {0} is row {0} div {1} = {2}, column {0} mod {1} = {3}", w.flat, width, t.at[1], t.at[2]));
      break;
    default:
      steps.push_back(fmt::format("flat {} is depth {} div {} = {}, row {}, column {}", w.flat, w.flat, height * width,
                                  t.at[0], t.at[1], t.at[2]));
  }
  std::string starts, offsets;
  for (int a = story.first_axis(); a < 3; ++a) {
    const Axis& axis = story.axis(a);
    const char* sep = a > story.first_axis() ? "; " : "";
    const char* name = axis_name(story.spec.dims, a);
    starts += axis.rule == WindowRule::sliding ? fmt::format("{}{} {} * {} - {} = {}", sep, name, w.output[a],
                                                             axis.stride, axis.pad_begin, w.start[a])
                                               : fmt::format("{}{} {}", sep, name, w.start[a]);
    offsets += axis.dilation == 1
                   ? fmt::format("{}{} {} - ({}) = {}", sep, name, t.at[a], w.start[a], tap[a])
                   : fmt::format("{}{} ({} - ({})) / {} = {}", sep, name, t.at[a], w.start[a], axis.dilation, tap[a]);
  }
  steps.push_back("its window starts at " + starts);
  steps.push_back("so the tap is " + offsets);
  steps.push_back(story.spec.dims == 1 ? fmt::format("window index {}", w.winner)
                  : story.spec.dims == 2
                      ? fmt::format("window index {} * {} + {} = {}", tap[1], w.count[2], tap[2], w.winner)
                      : fmt::format("window index ({} * {} + {}) * {} + {} = {}", tap[0], w.count[1], tap[1],
                                    w.count[2], tap[2], w.winner));
  steps.push_back(fmt::format("and back: start + tap{} gives {}, and {} is {}",
                              story.axis(2).dilation == 1 ? "" : " * dilation", position(story, t.at),
                              flat_rule(story.spec.dims), flat_arithmetic(story, t.at, w.flat)));
  return steps;
}

}  // namespace

std::string position(const Story& story, const std::int64_t* at) {
  const int dims = story.spec.dims;
  if (dims == 1) return fmt::format("cell {}", at[2]);
  if (dims == 2) return fmt::format("row {}, column {}", at[1], at[2]);
  return fmt::format("depth {}, row {}, column {}", at[0], at[1], at[2]);
}

std::string flat_arithmetic(const Story& story, const std::int64_t* at, std::int64_t flat) {
  const std::int64_t h = story.input_size[1], w = story.input_size[2];
  switch (story.spec.dims) {
    case 1: return fmt::format("{}", flat);
    case 2: return fmt::format("{} * {} + {} = {}", at[1], w, at[2], flat);
    default: return fmt::format("({} * {} + {}) * {} + {} = {}", at[0], h, at[1], w, at[2], flat);
  }
}

void write_indices(Writer& writer, const Story& story) {
  const std::vector<double> flat = as_doubles(story.flat64), window = as_doubles(story.window);
  std::int64_t taps = 0;
  for (const WindowStory& w : story.windows) taps = larger(taps, std::ssize(w.taps));
  writer.heading("The indices");
  writer.paragraph(
      fmt::format("flat64, PyTorch's kind, 8 bytes: the winner's place in the unpadded input, {}. Not relative to the "
                  "window, padding not counted.",
                  flat_rule(story.spec.dims)));
  writer.lines(grid(writer, story.output_size, flat), 4);
  writer.paragraph("flat32, 4 bytes: the same numbers.");
  writer.paragraph(
      fmt::format("window, {} an output: which tap of its own window won, 0 to {} row by row, taps in the padding "
                  "counted. {} of the memory; what cenote keeps for the gradient.",
                  taps <= 255     ? "1 byte"
                  : taps <= 65535 ? "2 bytes"
                                  : "4 bytes",
                  larger(taps - 1, 0),
                  taps <= 255     ? "An eighth"
                  : taps <= 65535 ? "A quarter"
                                  : "Half"));
  writer.lines(grid(writer, story.output_size, window), 4);

  // The conversion, for the window where it is most interesting: the last one with a winner.
  const auto found =
      std::find_if(story.windows.rbegin(), story.windows.rend(), [](const WindowStory& w) { return w.winner >= 0; });
  if (found == story.windows.rend()) return;
  writer.paragraph(fmt::format("From one to the other, for output ({}):", coordinates(story, found->output)));
  for (const std::string& step : conversion(story, *found)) writer.paragraph(step, 4);
}

}  // namespace cenote::tool
