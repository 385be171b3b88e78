// Just enough JSON to read a suite: values in a tree, errors with a line number.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace cenote::bench {

class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;  // in file order

  /// Throws std::runtime_error with the line of the first mistake.
  static Json parse(std::string_view text);

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }

  /// Each throws std::runtime_error when the value is of another kind; `what` names it in the message.
  bool boolean(const std::string& what) const;
  double number(const std::string& what) const;
  long long integer(const std::string& what) const;
  const std::string& string(const std::string& what) const;
  const Array& array(const std::string& what) const;
  const Object& object(const std::string& what) const;

  /// The member of an object, or null when there is none.
  const Json* find(std::string_view key) const;

 private:
  friend class JsonParser;
  std::variant<std::nullptr_t, bool, double, std::string, Array, Object> value_ = nullptr;
};

/// The text as a JSON string, quotes included.
std::string json_quote(std::string_view text);

}  // namespace cenote::bench
