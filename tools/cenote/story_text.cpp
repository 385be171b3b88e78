#include "story_text.hpp"

#include "arguments.hpp"
#include "derivation.hpp"
#include "text_sections.hpp"
#include "text_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cenote::tool {
namespace {

void write_derivations(Writer& writer, const std::vector<Derivation>& derivations) {
  for (const Derivation& d : derivations) {
    writer.paragraph(writer.paint(d.heading, "1"));
    std::size_t label = 0;
    for (const Derivation::Step& step : d.steps) label = std::max(label, step.what.size());
    const int beside = writer.style().width - 6 - static_cast<int>(label);
    for (const Derivation::Step& step : d.steps) {
      if (beside < 14) {  // too narrow for two columns
        writer.paragraph(step.what, 4);
        writer.paragraph(step.arithmetic, 6);
        continue;
      }
      const Lines lines = wrap_text(step.arithmetic, beside);
      for (std::size_t i = 0; i < lines.size(); ++i) {
        writer.lines({fmt::format("{:<{}}  {}", i == 0 ? step.what : "", label, lines[i])}, 4);
      }
    }
    for (const std::string& remark : d.remarks) writer.paragraph(remark, 4);
  }
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
  writer.flow({left, right});
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
