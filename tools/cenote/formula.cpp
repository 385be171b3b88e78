#include "formula.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

namespace cenote::tool {

std::string formula(const Story& story, const WindowStory& w, std::size_t longest) {
  const Op op = story.spec.op;
  std::vector<std::string> terms;
  for (const Tap& t : w.taps) {
    if (t.place == Place::inside)
      terms.push_back(number(t.value));
    else if (t.counted)
      terms.emplace_back("0");
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

}  // namespace cenote::tool
