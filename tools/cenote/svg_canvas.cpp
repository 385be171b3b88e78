#include "svg_canvas.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace cenote::tool {
namespace {

constexpr std::array kHues = {"#2563eb", "#ea580c", "#059669", "#c026d3", "#b45309", "#0891b2",
                              "#dc2626", "#7c3aed", "#4d7c0f", "#db2777", "#0f766e", "#9333ea"};

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      default: result += c;
    }
  }
  return result;
}

}  // namespace

const char* hue(std::size_t i) { return kHues[i % kHues.size()]; }

void Canvas::add(const std::string& element) { body_ += element + "\n"; }

void Canvas::reach(double x, double y) {
  width_ = std::max(width_, x);
  height_ = std::max(height_, y);
}

void Canvas::rect(double x, double y, double w, double h, const std::string& attributes) {
  add(fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" {}/>", x, y, w, h, attributes));
  reach(x + w, y + h);
}

void Canvas::circle(Point c, double r, const std::string& attributes) {
  add(fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" {}/>", c.x, c.y, r, attributes));
}

void Canvas::text(double x, double y, const std::string& words, double size, const std::string& attributes) {
  add(fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.1f}\" {}>{}</text>", x, y, size, attributes,
                  escaped(words)));
  // No font is at hand to measure with: 0.56 em a character is what proportional digits and letters take on average.
  const bool centred = attributes.find("middle") != std::string::npos;
  if (!centred) reach(x + 0.56 * size * static_cast<double>(words.size()), y + size * 0.4);
}

void Canvas::path(const std::string& d, const std::string& attributes) {
  add(fmt::format("<path d=\"{}\" {}/>", d, attributes));
}

void Canvas::curve(Point from, Point to, double straight, const std::string& attributes) {
  const double end = std::min(straight, to.x), bend = (end - from.x) * 0.5;
  path(fmt::format("M{:.1f} {:.1f} C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f} H{:.1f}", from.x, from.y, from.x + bend,
                   from.y, end - bend, to.y, end, to.y, to.x),
       "fill=\"none\" " + attributes);
}

void Canvas::fall(Point from, Point to, const std::string& attributes) {
  const double bend = (to.y - from.y) * 0.5;
  path(fmt::format("M{:.1f} {:.1f} C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", from.x, from.y, from.x, from.y + bend,
                   to.x, to.y - bend, to.x, to.y),
       "fill=\"none\" " + attributes);
}

std::string Canvas::finish(const std::string& title) const {
  const double w = width_ + kMargin, h = height_ + kMargin;
  return fmt::format(
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
             "{1:.0f}\" "
             "font-family=\"Inter, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif\" "
             "fill=\"{2}\">\n<title>{3}</title>\n"
             "<defs>\n<pattern id=\"padding\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" "
             "patternTransform=\"rotate(45)\">"
             "<rect width=\"7\" height=\"7\" fill=\"#f8fafc\"/><line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"7\" "
             "stroke=\"#d7dde5\" stroke-width=\"2\"/></pattern>\n"
             "<marker id=\"tip\" viewBox=\"0 0 10 10\" refX=\"8\" refY=\"5\" markerWidth=\"7\" markerHeight=\"7\" "
             "orient=\"auto\">"
             "<path d=\"M0 1 L9 5 L0 9 z\" fill=\"#9ca3af\"/></marker>\n</defs>\n<rect width=\"100%\" "
             "height=\"100%\" fill=\"#ffffff\"/>\n",
             w, h, kInk, escaped(title)) +
         body_ + "</svg>\n";
}

}  // namespace cenote::tool
