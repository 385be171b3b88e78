// Printing, by PyTorch's rules: four digits, aligned columns, scientific notation where the range asks for it, and the first
// and last three of each dimension when there are more than a thousand elements.
#include "tensor/impl.hpp"
#include "tensor/refuse.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>

namespace cenote {
namespace {

constexpr std::int64_t kSummaryThreshold = 1000;
constexpr std::int64_t kEdgeItems = 3;
constexpr int kLineWidth = 80;
constexpr int kPrefixWidth = 7;  // "tensor("

std::string printed(const char* format, double value) {
  const int length = std::snprintf(nullptr, 0, format, value);
  std::string text(static_cast<std::size_t>(length), '\0');
  std::snprintf(text.data(), text.size() + 1, format, value);
  return text;
}

/// The indices shown along a dimension, -1 for the dots.
std::vector<std::int64_t> shown(std::int64_t size, bool summarise) {
  std::vector<std::int64_t> indices;
  const bool cut = summarise && size > 2 * kEdgeItems;
  for (std::int64_t i = 0; i < size; ++i) {
    if (cut && i == kEdgeItems) {
      indices.push_back(-1);
      i = size - kEdgeItems;
    }
    indices.push_back(i);
  }
  return indices;
}

class Printer {
 public:
  explicit Printer(const Tensor& tensor)
      : tensor_(tensor), floating_(is_floating(tensor.dtype())), summarise_(tensor.numel() > kSummaryThreshold) {
    visit(tensor_, [this](const Tensor& element) { note(element); });
    if (floating_) choose_mode();
  }

  std::string text() const { return print(tensor_, kPrefixWidth); }

 private:
  template <class Body>
  void visit(const Tensor& tensor, const Body& body) const {
    if (tensor.rank() == 0) return body(tensor);
    for (const std::int64_t i : shown(tensor.shape()[0], summarise_)) {
      if (i >= 0) visit(tensor.select(0, i), body);
    }
  }

  void note(const Tensor& element) {
    if (!floating_) {
      width_ = std::max(width_, std::to_string(element.item<std::int64_t>()).size());
      return;
    }
    const double value = element.item();
    if (!std::isfinite(value) || value == 0) return;  // zeros, infinities and NaNs have no say in the format
    values_.push_back(value);
  }

  void choose_mode() {
    if (values_.empty()) return;
    double smallest = std::abs(values_[0]), largest = smallest;
    for (const double value : values_) {
      smallest = std::min(smallest, std::abs(value));
      largest = std::max(largest, std::abs(value));
      whole_ = whole_ && value == std::ceil(value);
    }
    scientific_ = largest / smallest > 1000 || largest > 1e8 || (!whole_ && smallest < 1e-4);
    for (const double value : values_) width_ = std::max(width_, number(value).size());
  }

  std::string number(double value) const {
    if (scientific_) return printed("%.4e", value);
    if (!whole_) return printed("%.4f", value);
    return printed("%.0f", value) + (std::isfinite(value) ? "." : "");
  }

  std::string element(const Tensor& element) const {
    std::string text;
    if (!floating_) {
      text = std::to_string(element.item<std::int64_t>());
    } else {
      const double value = element.item();
      text = std::isnan(value) ? "nan" : number(value);
    }
    return text.size() < width_ ? std::string(width_ - text.size(), ' ') + text : text;
  }

  std::string vector(const Tensor& tensor, int indent) const {
    const auto per_line = static_cast<std::size_t>(std::max(1, (kLineWidth - indent) / static_cast<int>(width_ + 2)));
    std::string text = "[";
    std::size_t on_line = 0;
    bool first = true;
    for (const std::int64_t i : shown(tensor.shape()[0], summarise_)) {
      if (!first) text += ",";
      if (on_line == per_line) {
        text += '\n';
        text.append(static_cast<std::size_t>(indent) + 1, ' ');
        on_line = 0;
      } else if (!first) {
        text += " ";
      }
      text += i < 0 ? " ..." : element(tensor.select(0, i));
      ++on_line;
      first = false;
    }
    return text + "]";
  }

  std::string print(const Tensor& tensor, int indent) const {
    if (tensor.rank() == 0) return element(tensor);
    if (tensor.rank() == 1) return vector(tensor, indent);
    std::string separator = ",";
    separator.append(static_cast<std::size_t>(tensor.rank()) - 1, '\n');
    separator.append(static_cast<std::size_t>(indent) + 1, ' ');
    std::string text = "[";
    bool first = true;
    for (const std::int64_t i : shown(tensor.shape()[0], summarise_)) {
      if (!first) text += separator;
      text += i < 0 ? "..." : print(tensor.select(0, i), indent + 1);
      first = false;
    }
    return text + "]";
  }

  Tensor tensor_;
  bool floating_;
  bool summarise_;
  bool whole_ = true;
  bool scientific_ = false;
  std::size_t width_ = 1;
  std::vector<double> values_;
};

std::string tuple(const Shape& shape) {
  std::string text = "(";
  for (int d = 0; d < shape.rank(); ++d) text += (d > 0 ? ", " : "") + std::to_string(shape[d]);
  return text + (shape.rank() == 1 ? ",)" : ")");
}

}  // namespace

std::string to_string(const Tensor& tensor) {
  if (!tensor.defined()) return "tensor(undefined)";
  const NoGradGuard guard;
  const bool is_empty = tensor.numel() == 0;
  std::string text = "tensor(" + (is_empty ? std::string("[]") : Printer(tensor.to(cpu)).text());

  std::vector<std::string> suffixes;
  if (tensor.device().type != DeviceType::cpu) suffixes.push_back("device='" + to_string(tensor.device()) + "'");
  if (is_empty && tensor.rank() != 1) suffixes.push_back("size=" + tuple(tensor.shape()));
  const bool obvious = tensor.dtype() == DType::f32 || (tensor.dtype() == DType::i64 && !is_empty);
  if (!obvious) suffixes.push_back(std::string("dtype=") + name_of(tensor.dtype()));
  if (!tensor.is_leaf()) {
    suffixes.push_back("grad_fn=<" + tensor.grad_fn() + ">");
  } else if (tensor.requires_grad()) {
    suffixes.emplace_back("requires_grad=True");
  }

  const std::size_t newline = text.rfind('\n');
  std::size_t line = newline == std::string::npos ? text.size() + 2 : text.size() - newline + 1;
  for (const std::string& suffix : suffixes) {
    if (line + suffix.size() + 2 > kLineWidth) {
      text += ",\n";
      text.append(kPrefixWidth, ' ');
      text += suffix;
      line = kPrefixWidth + suffix.size();
    } else {
      text += ", " + suffix;
      line += suffix.size() + 2;
    }
  }
  return text + ")";
}

std::ostream& operator<<(std::ostream& stream, const Tensor& tensor) { return stream << to_string(tensor); }

}  // namespace cenote
