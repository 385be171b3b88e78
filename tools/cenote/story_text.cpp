#include "story_text.hpp"

#include "arguments.hpp"
#include "terminal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <sstream>
#include <utility>

namespace cenote::tool {
namespace {

using Lines = std::vector<std::string>;
constexpr std::size_t kWindowsShown = 12;

enum class Mark : std::uint8_t { plain, tap, winner, padding, outside, padding_tap };

class Writer {
 public:
  explicit Writer(const TextStyle& style) : style_(style) {}

  const TextStyle& style() const { return style_; }
  std::string paint(const std::string& text, const char* code) const {
    return style_.color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
  }

  void heading(const std::string& text) {
    if (!out_.empty()) out_ += '\n';
    for (const std::string& line : wrap(text, style_.width)) out_ += paint(line, "1;36") + "\n";
  }
  void paragraph(const std::string& text, int indent = 2) {
    for (const std::string& line : wrap(text, style_.width - indent))
      out_ += std::string(static_cast<std::size_t>(indent), ' ') + line + "\n";
  }
  void lines(const Lines& block, int indent = 2) {
    for (const std::string& line : block) out_ += std::string(static_cast<std::size_t>(indent), ' ') + line + "\n";
  }
  void blank() { out_ += '\n'; }
  std::string take() { return std::move(out_); }

  static Lines wrap(const std::string& text, int width) { return wrap_text(text, width); }

  std::string cell(const std::string& text, int width, Mark mark) const {
    const std::string padded = fmt::format("{:>{}}", text, width);
    switch (mark) {
      case Mark::plain: return " " + padded + " ";
      case Mark::tap: return paint("[" + padded + "]", "97;44");
      case Mark::winner: return paint("*" + padded + "*", "1;30;43");
      case Mark::padding: return std::string(static_cast<std::size_t>(width), ' ') + paint("·", "2") + " ";
      case Mark::padding_tap:
        return paint("[" + std::string(static_cast<std::size_t>(width - 1), ' ') + "·" + "]", "2;97;44");
      case Mark::outside: return paint("[" + std::string(static_cast<std::size_t>(width - 1), ' ') + "-" + "]", "2");
    }
    return "";
  }

 private:
  TextStyle style_;
  std::string out_;
};

std::string trimmed(std::string line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

int widest(const std::vector<double>& values) {
  int width = 1;
  for (const double v : values) width = std::max(width, static_cast<int>(number(v).size()));
  return width;
}

std::vector<double> as_doubles(const std::vector<std::int64_t>& values) { return {values.begin(), values.end()}; }

/// A grid of numbers, one slice under the other, cut at the right where it would be too wide.
Lines grid(const Writer& writer, const std::int64_t* size, const std::vector<double>& values,
           const std::function<Mark(std::int64_t)>& mark = {}, int width_limit = 0) {
  const int width = widest(values), limit = width_limit > 0 ? width_limit : writer.style().width - 4;
  const bool fits = size[2] * (width + 2) <= limit;
  const std::int64_t columns = fits ? size[2] : std::max(1, (limit - 1) / (width + 2));  // one column for the ellipsis
  Lines lines;
  for (std::int64_t z = 0; z < size[0]; ++z) {
    if (size[0] > 1) lines.push_back(fmt::format("depth {}", z));
    for (std::int64_t y = 0; y < size[1]; ++y) {
      std::string line;
      for (std::int64_t x = 0; x < columns; ++x) {
        const std::int64_t i = (z * size[1] + y) * size[2] + x;
        line += writer.cell(number(values[static_cast<std::size_t>(i)]), width, mark ? mark(i) : Mark::plain);
      }
      lines.push_back(trimmed(line + (columns < size[2] ? "…" : "")));
    }
  }
  return lines;
}

std::string position(const Story& story, const std::int64_t* at) {
  const int dims = story.spec.dims;
  if (dims == 1) return fmt::format("cell {}", at[2]);
  if (dims == 2) return fmt::format("row {}, column {}", at[1], at[2]);
  return fmt::format("depth {}, row {}, column {}", at[0], at[1], at[2]);
}

std::string coordinates(const Story& story, const std::int64_t* at) {
  return fmt::format("{}", fmt::join(at + story.first_axis(), at + 3, ", "));
}

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
        const auto tap =
            std::find_if(w.taps.begin(), w.taps.end(), [&](const Tap& t) { return std::equal(t.at, t.at + 3, at); });
        const bool inside =
            z >= 0 && z < story.input_size[0] && y >= 0 && y < story.input_size[1] && x >= 0 && x < story.input_size[2];
        Mark mark = inside ? Mark::plain : Mark::padding;
        if (tap != w.taps.end()) {
          mark = tap->place == Place::inside    ? Mark::tap
                 : tap->place == Place::padding ? Mark::padding_tap
                                                : Mark::outside;
          if (w.winner >= 0 && tap - w.taps.begin() == w.winner) mark = Mark::winner;
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

std::string flat_arithmetic(const Story& story, const std::int64_t* at, std::int64_t flat) {
  const std::int64_t h = story.input_size[1], w = story.input_size[2];
  switch (story.spec.dims) {
    case 1: return fmt::format("{}", flat);
    case 2: return fmt::format("{} * {} + {} = {}", at[1], w, at[2], flat);
    default: return fmt::format("({} * {} + {}) * {} + {} = {}", at[0], h, at[1], w, at[2], flat);
  }
}

Lines window_block(const Writer& writer, const Story& story, const WindowStory& w, int limit) {
  Lines block = {writer.paint(fmt::format("output ({}) = {}", coordinates(story, w.output), number(w.result)), "1")};
  for (std::string& line : window_grid(writer, story, w, limit)) block.push_back(std::move(line));
  const int text_width = std::min(limit, std::max(34, display_width(block[1])));
  std::string text = formula(story, w, 48), place;
  if (w.winner >= 0) {
    const Tap& t = w.taps[static_cast<std::size_t>(w.winner)];
    text += fmt::format(" at {}", position(story, t.at));
    place = fmt::format("index {}, tap {}", flat_arithmetic(story, t.at, w.flat), w.winner);
  }
  for (std::string& line : Writer::wrap(text, text_width)) block.push_back(std::move(line));
  for (std::string& line : Writer::wrap(place, text_width)) block.push_back(std::move(line));
  return block;
}

/// Blocks side by side, as many as fit.
void flow(Writer& writer, const std::vector<Lines>& blocks) {
  const int limit = writer.style().width - 2;
  std::size_t next = 0;
  while (next < blocks.size()) {
    std::size_t count = 0, height = 0;
    std::vector<int> widths;
    int used = 0;
    while (next + count < blocks.size()) {
      int width = 0;
      for (const std::string& line : blocks[next + count]) width = std::max(width, display_width(line));
      if (count > 0 && used + 4 + width > limit) break;
      used += (count > 0 ? 4 : 0) + width;
      widths.push_back(width);
      height = std::max(height, blocks[next + count].size());
      ++count;
    }
    for (std::size_t row = 0; row < height; ++row) {
      std::string line;
      for (std::size_t i = 0; i < count; ++i) {
        const Lines& block = blocks[next + i];
        const std::string part = row < block.size() ? block[row] : "";
        line += part;
        if (i + 1 < count) line += std::string(static_cast<std::size_t>(widths[i] - display_width(part) + 4), ' ');
      }
      writer.lines({trimmed(line)});
    }
    next += count;
    if (next < blocks.size()) writer.blank();
  }
}

void write_derivations(Writer& writer, const std::vector<Derivation>& derivations) {
  for (const Derivation& d : derivations) {
    writer.paragraph(writer.paint(d.heading, "1"));
    std::size_t label = 0;
    for (const Derivation::Step& step : d.steps) label = std::max(label, step.what.size());
    for (const Derivation::Step& step : d.steps) {
      const Lines lines =
          Writer::wrap(step.arithmetic, std::max(12, writer.style().width - 6 - static_cast<int>(label)));
      for (std::size_t i = 0; i < lines.size(); ++i) {
        writer.lines({fmt::format("{:<{}}  {}", i == 0 ? step.what : "", label, lines[i])}, 4);
      }
    }
    for (const std::string& remark : d.remarks) writer.paragraph(remark, 4);
  }
}

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
  if (padded) {
    switch (story.spec.op) {
      case Op::max_pool:
        writer.paragraph("Padding counts as minus infinity: it never wins, so an all-negative input stays negative.");
        break;
      case Op::min_pool: writer.paragraph("Padding counts as plus infinity: it never wins."); break;
      case Op::avg_pool:
        if (story.spec.divisor_override) {
          writer.paragraph(fmt::format(
              "Padding adds zeros to the sum; the divisor is {} whatever the window holds (divisor_override).",
              *story.spec.divisor_override));
        } else {
          writer.paragraph(
              story.spec.count_include_pad
                  ? "Padding adds zeros to the sum and is counted by the divisor (count_include_pad), which pulls the "
                    "border towards zero."
                  : "Padding adds nothing and is not counted by the divisor: the border averages the real cells only.");
        }
        break;
      case Op::lp_pool:
      case Op::sum_pool: writer.paragraph("Padding adds zeros to the sum."); break;
      default: break;
    }
  }
  const std::size_t shown =
      writer.style().all_windows ? story.windows.size() : std::min(kWindowsShown, story.windows.size());
  std::vector<Lines> blocks;
  for (std::size_t i = 0; i < shown; ++i)
    blocks.push_back(window_block(writer, story, story.windows[i], writer.style().width - 2));
  writer.blank();
  flow(writer, blocks);
  if (shown < story.windows.size())
    writer.paragraph(fmt::format("... and {} more; --all draws them.", story.windows.size() - shown));
}

void write_indices(Writer& writer, const Story& story) {
  const std::vector<double> flat = as_doubles(story.flat64), window = as_doubles(story.window);
  const std::int64_t taps = story.windows.empty() ? 0 : std::ssize(story.windows.front().taps);
  writer.heading("The indices");
  const char* rule = story.spec.dims == 1   ? "the cell's number"
                     : story.spec.dims == 2 ? "row * width + column"
                                            : "(depth * height + row) * width + column";
  writer.paragraph(
      fmt::format("flat64, PyTorch's kind, 8 bytes: the winner's place in the unpadded input, {}. Not relative to the "
                  "window, padding not counted.",
                  rule));
  writer.lines(grid(writer, story.output_size, flat), 4);
  writer.paragraph("flat32, 4 bytes: the same numbers.");
  writer.paragraph(
      fmt::format("window, {} a maximum: which tap of its own window won, 0 to {} row by row, taps in the padding "
                  "counted. An eighth of the memory; what cenote keeps "
                  "for the gradient.",
                  taps <= 255     ? "1 byte"
                  : taps <= 65535 ? "2 bytes"
                                  : "4 bytes",
                  larger(taps - 1, 0)));
  writer.lines(grid(writer, story.output_size, window), 4);

  // The conversion, for the window where it is most interesting: the last one with a winner.
  const auto found =
      std::find_if(story.windows.rbegin(), story.windows.rend(), [](const WindowStory& w) { return w.winner >= 0; });
  if (found == story.windows.rend()) return;
  const WindowStory& w = *found;
  const Tap& t = w.taps[static_cast<std::size_t>(w.winner)];
  const std::int64_t height = story.input_size[1], width = story.input_size[2];
  std::int64_t tap[3];
  std::int64_t taps_of[3];
  for (int a = 0; a < 3; ++a) {
    const Axis& axis = story.axis(a);
    tap[a] = (t.at[a] - w.start[a]) / axis.dilation;
    taps_of[a] = (w.taps.back().at[a] - w.taps.front().at[a]) / axis.dilation + 1;
  }
  writer.paragraph(fmt::format("From one to the other, for output ({}):", coordinates(story, w.output)));
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
                      ? fmt::format("window index {} * {} + {} = {}", tap[1], taps_of[2], tap[2], w.winner)
                      : fmt::format("window index ({} * {} + {}) * {} + {} = {}", tap[0], taps_of[1], tap[1],
                                    taps_of[2], tap[2], w.winner));
  steps.push_back(fmt::format("and back: start + tap{} gives {}, and {} is {}",
                              story.axis(2).dilation == 1 ? "" : " * dilation", position(story, t.at), rule,
                              flat_arithmetic(story, t.at, w.flat)));
  for (const std::string& step : steps) writer.paragraph(step, 4);
}

void write_gradient(Writer& writer, const Story& story) {
  writer.heading("Where the gradient goes (a gradient of 1 at every output)");
  const double given = static_cast<double>(story.outputs());
  const double arrived = std::accumulate(story.gradient.begin(), story.gradient.end(), 0.0);
  std::string text;
  if (story.spec.op == Op::max_unpool) {
    text = "Each value takes the gradient of the one place it was put at; the zeros in between pass nothing on.";
  } else if (has_winner(story.spec.op)) {
    const double most = story.gradient.empty() ? 0 : *std::max_element(story.gradient.begin(), story.gradient.end());
    text = "Each output hands its whole gradient to its winner; every other cell gets 0.";
    if (most > 1) text += fmt::format(" Where windows overlap a cell can win several: {} here at most.", number(most));
  } else if (is_average(story.spec.op)) {
    text = "Each output's gradient is divided by its divisor and every real cell of its window gets that share.";
    if (std::abs(arrived - given) > 1e-9) {
      text += fmt::format(" {} of {} arrive: {}.", number(arrived), number(given),
                          story.spec.divisor_override ? "the divisor was overridden"
                                                      : "the rest belongs to padding cells, which are nobody's");
    }
  } else if (story.spec.op == Op::lp_pool) {
    text = "Each cell gets a share that grows with its magnitude: (x / y) to the power p - 1.";
  } else {
    text = "Each output hands its whole gradient to every real cell of its window.";
  }
  writer.paragraph(text);
  writer.lines(
      grid(writer, story.input_size, story.gradient,
           [&](std::int64_t i) { return story.gradient[static_cast<std::size_t>(i)] != 0 ? Mark::tap : Mark::plain; }),
      4);
}

void write_max_or_average(Writer& writer, const Story& story) {
  if (story.spec.op != Op::max_pool && story.spec.op != Op::avg_pool) return;
  std::vector<double> maxima, means;
  for (const WindowStory& w : story.windows) {
    double best = -INFINITY;
    for (const Tap& t : w.taps) {
      if (t.place == Place::inside) best = std::max(best, t.value);
    }
    maxima.push_back(best);
    means.push_back(w.inside > 0 ? w.sum / static_cast<double>(w.inside) : 0);
  }
  writer.heading("Max or average?");
  writer.paragraph(
      "Max asks whether something is there and keeps the strongest answer; average asks how much there is and keeps "
      "the overall level. "
      "The same windows, both ways (real cells only):");
  Lines left = grid(writer, story.output_size, maxima, {}, writer.style().width / 2 - 6);
  Lines right = grid(writer, story.output_size, means, {}, writer.style().width / 2 - 6);
  left.insert(left.begin(), "max");
  right.insert(right.begin(), "average");
  flow(writer, {left, right});
}

void write_unpool(Writer& writer, const Story& story) {
  writer.heading("Every value goes where its index says");
  const std::int64_t height = story.output_size[1], width = story.output_size[2];
  for (std::size_t i = 0; i < story.input.size() && i < 2 * kWindowsShown; ++i) {
    const std::int64_t flat = story.flat64[i];
    const std::int64_t at[3] = {flat / (height * width), flat / width % height, flat % width};
    writer.paragraph(fmt::format("value {}, index {} -> {}", number(story.input[i]), flat, position(story, at)));
  }
  if (story.input.size() > 2 * kWindowsShown)
    writer.paragraph(fmt::format("... and {} more.", story.input.size() - 2 * kWindowsShown));
  writer.paragraph("Everything else is 0. Where two values meet, the last in row-major order stays.");
}

}  // namespace

std::vector<std::string> wrap_text(const std::string& text, int width) {
  std::vector<std::string> result;
  std::istringstream words(text);
  std::string word, line;
  while (words >> word) {
    while (display_width(word) > width) {  // a word longer than the line is cut
      if (!line.empty()) result.push_back(std::exchange(line, ""));
      result.push_back(word.substr(0, static_cast<std::size_t>(width)));
      word.erase(0, static_cast<std::size_t>(width));
    }
    if (!line.empty() && display_width(line) + 1 + display_width(word) > width)
      result.push_back(std::exchange(line, ""));
    line += (line.empty() ? "" : " ") + word;
  }
  if (!line.empty()) result.push_back(line);
  return result;
}

std::string formula(const Story& story, const WindowStory& w, std::size_t longest) {
  const Op op = story.spec.op;
  std::vector<std::string> terms;
  for (const Tap& t : w.taps) {
    if (t.place == Place::inside)
      terms.push_back(number(t.value));
    else if (t.counted)
      terms.push_back("0");
  }
  const std::string result = number(w.result);
  std::string text;
  if (terms.empty()) return fmt::format("no real cell in this window: {}, no index", result);
  if (has_winner(op)) {
    const char* name = op == Op::min_pool ? "min" : "max";
    text = fmt::format("{}({}) = {}", name, fmt::join(terms, ", "), result);
    if (text.size() > longest) text = fmt::format("{} of {} cells = {}", name, w.inside, result);
  } else if (is_average(op)) {
    text = fmt::format("({}) / {} = {}", fmt::join(terms, " + "), number(w.divisor), result);
    if (text.size() > longest) text = fmt::format("sum {} / {} = {}", number(w.sum), number(w.divisor), result);
  } else if (op == Op::sum_pool) {
    text = fmt::format("{} = {}", fmt::join(terms, " + "), result);
    if (text.size() > longest) text = fmt::format("sum of {} cells = {}", w.inside, result);
  } else {
    const std::string p = number(story.spec.norm_type);
    if (std::isinf(story.spec.norm_type)) {
      text = fmt::format("{} |x| of {} = {}", story.spec.norm_type > 0 ? "largest" : "smallest", fmt::join(terms, ", "),
                         result);
    } else {
      for (std::string& term : terms) term += "^" + p;
      text = fmt::format("({})^(1/{}) = {}", fmt::join(terms, " + "), p, result);
    }
    if (text.size() > longest) text = fmt::format("{}-norm of {} cells = {}", p, w.inside, result);
  }
  return text;
}

std::string to_text(const Story& story, const TextStyle& style) {
  Writer writer(style);
  const bool unpool = story.spec.op == Op::max_unpool;
  writer.heading(describe_in_words(story.spec));
  const auto sizes = [&](const std::int64_t* size) {
    return fmt::format("{}", fmt::join(size + story.first_axis(), size + 3, " x "));
  };
  writer.paragraph(fmt::format("input {}, output {}", sizes(story.input_size), sizes(story.output_size)));
  writer.lines(grid(writer, story.input_size, story.input), 4);

  writer.heading("How the output size comes about");
  if (unpool) {
    StoryInput input{.spec = story.spec, .values = {}, .indices = {}};
    std::copy(story.input_size, story.input_size + 3, input.size);
    write_derivations(writer, derive_unpool(input));
    write_unpool(writer, story);
  } else {
    write_derivations(writer, derive_sizes(story));
    write_windows(writer, story);
  }
  writer.heading("The output");
  writer.lines(grid(writer, story.output_size, story.output), 4);
  if (!story.window.empty()) write_indices(writer, story);
  write_gradient(writer, story);
  write_max_or_average(writer, story);
  return writer.take();
}

std::string to_text_refused(const StoryInput& input, const std::string& reason, const TextStyle& style) {
  Writer writer(style);
  writer.heading(describe_in_words(input.spec));
  writer.paragraph(fmt::format("input {}", fmt::join(input.size + 3 - input.spec.dims, input.size + 3, " x ")));
  const std::vector<Derivation> derivations = derive_refused(input);
  if (!derivations.empty()) {
    writer.heading("What the sizes say");
    write_derivations(writer, derivations);
  }
  writer.heading("Refused");
  writer.paragraph(reason);
  return writer.take();
}

}  // namespace cenote::tool
