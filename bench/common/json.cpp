#include "json.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace cenote::bench {

namespace {
constexpr int kMaxDepth = 64;  // deeper nesting is refused rather than recursed into
}

class JsonParser {
 public:
  explicit JsonParser(std::string_view text) : text_(text) {}

  Json document() {
    Json result = value(0);
    skip_space();
    if (at_ != text_.size()) fail("text after the end of the document");
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    int line = 1;
    for (std::size_t i = 0; i < at_ && i < text_.size(); ++i) line += text_[i] == '\n';
    throw std::runtime_error("line " + std::to_string(line) + ": " + what);
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(std::string("expected '") + c + "'");
  }
  bool take_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Json value(int depth) {
    if (depth > kMaxDepth) fail("nested too deeply");
    skip_space();
    Json result;
    if (take('{')) {
      Json::Object members;
      if (!take('}')) {
        do {
          skip_space();
          std::string key = string();
          expect(':');
          members.emplace_back(std::move(key), value(depth + 1));
        } while (take(','));
        expect('}');
      }
      result.value_ = std::move(members);
    } else if (take('[')) {
      Json::Array items;
      if (!take(']')) {
        do items.push_back(value(depth + 1));
        while (take(','));
        expect(']');
      }
      result.value_ = std::move(items);
    } else if (at_ < text_.size() && text_[at_] == '"') {
      result.value_ = string();
    } else if (take_word("true")) {
      result.value_ = true;
    } else if (take_word("false")) {
      result.value_ = false;
    } else if (!take_word("null")) {
      result.value_ = number();
    }
    return result;
  }

  std::string string() {
    if (at_ >= text_.size() || text_[at_] != '"') fail("expected a string");
    std::string result;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] != '\\') {
        result += text_[at_];
        continue;
      }
      if (++at_ == text_.size()) break;
      switch (text_[at_]) {
        case 'n': result += '\n'; break;
        case 't': result += '\t'; break;
        case '"':
        case '\\':
        case '/': result += text_[at_]; break;
        default: fail("this escape is not understood here");
      }
    }
    if (at_ >= text_.size()) fail("a string has no end");
    ++at_;
    return result;
  }

  double number() {
    double result = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), result);
    if (error != std::errc()) fail("expected a value");
    at_ = static_cast<std::size_t>(end - text_.data());
    return result;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

Json Json::parse(std::string_view text) { return JsonParser(text).document(); }

namespace {
template <class T, class Variant>
const T& get(const Variant& value, const std::string& what, const char* kind) {
  if (const T* found = std::get_if<T>(&value)) return *found;
  throw std::runtime_error(what + " must be " + kind);
}
}  // namespace

bool Json::boolean(const std::string& what) const { return get<bool>(value_, what, "true or false"); }
double Json::number(const std::string& what) const { return get<double>(value_, what, "a number"); }
const std::string& Json::string(const std::string& what) const { return get<std::string>(value_, what, "a string"); }
const Json::Array& Json::array(const std::string& what) const { return get<Array>(value_, what, "a list"); }
const Json::Object& Json::object(const std::string& what) const { return get<Object>(value_, what, "an object"); }

long long Json::integer(const std::string& what) const {
  const double value = number(what);
  if (value != std::floor(value) || std::abs(value) > 0x1p53)
    throw std::runtime_error(what + " must be a whole number");
  return static_cast<long long>(value);
}

const Json* Json::find(std::string_view key) const {
  if (const Object* members = std::get_if<Object>(&value_)) {
    for (const auto& [name, value] : *members) {
      if (name == key) return &value;
    }
  }
  return nullptr;
}

std::string json_quote(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      result += escape;
    } else {
      result += c;
    }
  }
  return result + '"';
}

}  // namespace cenote::bench
