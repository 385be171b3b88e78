#include "text_writer.hpp"

#include "terminal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

namespace cenote::tool {

std::string Writer::paint(const std::string& text, const char* code) const {
  return style_.color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}

std::string Writer::cell(const std::string& text, int width, Mark mark) const {
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

void Writer::heading(const std::string& text) {
  if (!out_.empty()) out_ += '\n';
  for (const std::string& line : wrap_text(text, style_.width)) out_ += paint(line, "1;36") + "\n";
}

void Writer::paragraph(const std::string& text, int indent) { lines(wrap_text(text, style_.width - indent), indent); }

void Writer::lines(const Lines& block, int indent) {
  for (const std::string& line : block) out_ += std::string(static_cast<std::size_t>(indent), ' ') + line + "\n";
}

void Writer::flow(const std::vector<Lines>& blocks) {
  const int limit = style_.width - 2;
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
      lines({trimmed(line)});
    }
    next += count;
    if (next < blocks.size()) blank();
  }
}

Lines wrap_text(const std::string& text, int width) {
  Lines result;
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

std::string trimmed(std::string line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

int widest(const std::vector<double>& values) {
  int width = 1;
  for (const double v : values) width = std::max(width, static_cast<int>(number(v).size()));
  return width;
}

Lines grid(const Writer& writer, const std::int64_t* size, const std::vector<double>& values,
           const std::function<Mark(std::int64_t)>& mark, int width_limit) {
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

}  // namespace cenote::tool
