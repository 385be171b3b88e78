// What the story's sentences and grids are written with: never wider than asked, coloured or plain.
#pragma once

#include "story_text.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cenote::tool {

using Lines = std::vector<std::string>;

/// How a cell of a grid looks.
enum class Mark : std::uint8_t { plain, tap, winner, padding, outside, padding_tap };

class Writer {
 public:
  explicit Writer(const TextStyle& style) : style_(style) {}

  const TextStyle& style() const { return style_; }
  /// `code` is a terminal's colour ("1;36").
  std::string paint(const std::string& text, const char* code) const;
  std::string cell(const std::string& text, int width, Mark mark) const;

  void heading(const std::string& text);
  void paragraph(const std::string& text, int indent = 2);
  void lines(const Lines& block, int indent = 2);
  void blank() { out_ += '\n'; }
  /// Blocks side by side, as many as fit.
  void flow(const std::vector<Lines>& blocks);
  std::string take() { return std::move(out_); }

 private:
  TextStyle style_;
  std::string out_;
};

/// Words put on lines of at most `width` columns.
Lines wrap_text(const std::string& text, int width);

/// Without the blanks at its end.
std::string trimmed(std::string line);

/// Columns of the widest number.
int widest(const std::vector<double>& values);

/// A grid of numbers, one slice under the other, cut at the right where it would be too wide.
Lines grid(const Writer& writer, const std::int64_t* size, const std::vector<double>& values,
           const std::function<Mark(std::int64_t)>& mark = {}, int width_limit = 0);

}  // namespace cenote::tool
