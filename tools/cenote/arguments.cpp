#include "arguments.hpp"

#include "failure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>

namespace cenote::tool {
namespace {

template <class... Args>
Failure usage(fmt::format_string<Args...> format, Args&&... args) {
  return Failure(ExitCode::usage, fmt::format(format, std::forward<Args>(args)...));
}

bool is_too_large(std::string_view text) {
  std::int64_t value = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc::result_out_of_range;
}

Failure too_large(const std::string& option, std::string_view text) {
  return usage("{}: '{}' is more than 63 bits can count", option, text);
}

std::optional<std::int64_t> to_integer(std::string_view text) {
  std::int64_t value = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1), before(b.size() + 1), two_before(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) before[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({before[j] + 1, row[j - 1] + 1, before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], two_before[j - 2] + 1);
    }
    std::swap(two_before, before);
    std::swap(before, row);
  }
  return before[b.size()];
}

struct OpName {
  const char* name;
  Op op;
  bool global;
};
constexpr OpName kShortNames[] = {
    {"max", Op::max_pool, false},
    {"min", Op::min_pool, false},
    {"avg", Op::avg_pool, false},
    {"sum", Op::sum_pool, false},
    {"lp", Op::lp_pool, false},
    {"adaptive-max", Op::adaptive_max_pool, false},
    {"adaptive-avg", Op::adaptive_avg_pool, false},
    {"fractional-max", Op::fractional_max_pool, false},
    {"global-max", Op::adaptive_max_pool, true},
    {"global-avg", Op::adaptive_avg_pool, true},
    {"unpool", Op::max_unpool, false},
};

const char* short_name(const OpArguments& arguments) {
  for (const OpName& entry : kShortNames) {
    if (entry.op == arguments.op && entry.global == arguments.global) return entry.name;
  }
  return "?";
}

bool is_sliding(Op op) {
  return op == Op::max_pool || op == Op::min_pool || op == Op::avg_pool || op == Op::sum_pool || op == Op::lp_pool;
}

}  // namespace

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find_first_of(separators);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::int64_t parse_integer(const std::string& option, std::string_view text) {
  const auto value = to_integer(text);
  if (is_too_large(text)) throw too_large(option, text);
  if (!value) throw usage("{}: '{}' is not a whole number", option, text);
  return *value;
}

double parse_number(const std::string& option, std::string_view text) {
  const std::string word = lower(text);
  if (word == "inf" || word == "+inf") return std::numeric_limits<double>::infinity();
  if (word == "-inf") return -std::numeric_limits<double>::infinity();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) throw usage("{}: '{}' is not a number", option, text);
  return value;
}

DimList parse_dims(const std::string& option, std::string_view text) {
  const auto parts = split(text, ",x");
  std::vector<Dim> values;
  for (const std::string_view part : parts) {
    if (part == "keep" || part == "none" || part == "None") {
      values.emplace_back(keep);
    } else if (const auto value = to_integer(part)) {
      values.emplace_back(*value);
    } else if (is_too_large(part)) {
      throw too_large(option, part);
    } else {
      throw usage("{}: '{}' is not a size; write one number for all axes (3) or one for each (3x2)", option, text);
    }
  }
  if (values.size() == 1) return values[0].is_keep ? DimList(keep) : DimList(values[0].value);
  return DimList(std::span<const Dim>(values));
}

DimList parse_output_size(const std::string& option, std::string_view text) {
  const DimList sizes = parse_dims(option, text);
  for (int i = 0; i < std::min(sizes.count, DimList::kCapacity); ++i) {
    if (!sizes.values[i].is_keep && sizes.values[i].value < 0)
      throw usage("{}: '{}' is negative; a size is 0 or more, or keep", option, text);
  }
  return sizes;
}

PaddingList parse_padding(const std::string& option, std::string_view text) {
  PaddingList padding;
  if (text == "same" || text == "same-upper" || text == "same-lower") {
    padding.mode = text == "same-lower" ? PaddingList::Mode::same_lower : PaddingList::Mode::same_upper;
    return padding;
  }
  const bool ends_differ = text.find(':') != std::string_view::npos;
  std::vector<Dim> begin, end;
  for (const std::string_view part : split(text, ",x")) {
    const auto ends = split(part, ":");
    const auto first = to_integer(ends[0]);
    const auto second = ends.size() == 2 ? to_integer(ends[1]) : first;
    for (const std::string_view one : ends) {
      if (is_too_large(one)) throw too_large(option, one);
    }
    if (!first || !second || ends.size() > 2) {
      throw usage("{}: '{}' is no padding; write 1, 1x2, begin:end (0:1) or same", option, text);
    }
    begin.emplace_back(*first);
    end.emplace_back(*second);
  }
  if (!ends_differ)
    return PaddingList(begin.size() == 1 ? DimList(begin[0].value) : DimList(std::span<const Dim>(begin)));
  if (begin.size() == 1) return {DimList(begin[0].value), DimList(end[0].value)};
  return {DimList(std::span<const Dim>(begin)), DimList(std::span<const Dim>(end))};
}

Shape parse_shape(const std::string& option, std::string_view text) {
  std::vector<std::int64_t> sizes;
  for (const std::string_view part : split(text, ",x")) {
    const auto value = to_integer(part);
    if (is_too_large(part)) throw too_large(option, part);
    if (!value || *value < 0)
      throw usage("{}: '{}' is no shape; write sizes joined by x, as in 64x112x112", option, text);
    sizes.push_back(*value);
  }
  if (sizes.size() > 5) throw usage("{}: '{}' has {} dimensions; at most 5 can be pooled", option, text, sizes.size());
  return Shape(sizes);
}

std::int64_t parse_bytes(const std::string& option, std::string_view text) {
  std::string_view digits = text;
  int shift = 0;
  if (digits.ends_with('B') || digits.ends_with('b')) digits.remove_suffix(1);
  if (digits.ends_with('i')) digits.remove_suffix(1);
  if (!digits.empty()) {
    const char unit = static_cast<char>(std::tolower(static_cast<unsigned char>(digits.back())));
    shift = unit == 'k' ? 10 : unit == 'm' ? 20 : unit == 'g' ? 30 : 0;
    if (shift != 0) digits.remove_suffix(1);
  }
  const auto value = to_integer(digits);
  if (!value || *value <= 0 || *value > (std::numeric_limits<std::int64_t>::max() >> shift)) {
    throw usage("{}: '{}' is no amount of memory; write for example 512M or 2G", option, text);
  }
  return *value << shift;
}

std::string closest(std::string_view given, std::span<const std::string> known) {
  std::string best;
  std::size_t best_distance = 1 + std::max<std::size_t>(1, std::min<std::size_t>(3, given.size() / 3));
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(given, candidate);
    const bool extends = given.size() >= 4 && candidate.starts_with(given);
    if (distance < best_distance || (extends && best.empty())) {
      best = candidate;
      best_distance = std::min(distance, best_distance);
    }
  }
  return best;
}

std::string did_you_mean(std::string_view given, std::span<const std::string> known) {
  const std::string best = closest(given, known);
  return best.empty() ? "" : fmt::format("; did you mean '{}'?", best);
}

AxisOrder parse_layout(std::string_view text) {
  const std::string word = lower(text);
  for (const char* name : {"nchw", "chw", "ncl", "cl", "ncdhw", "cdhw", "channels-first", "channels_first"}) {
    if (word == name) return AxisOrder::channels_first;
  }
  for (const char* name : {"nhwc", "hwc", "nlc", "lc", "ndhwc", "dhwc", "channels-last", "channels_last"}) {
    if (word == name) return AxisOrder::channels_last;
  }
  throw usage("--layout: '{}' is unknown; write nchw (channels first) or nhwc (channels last)", text);
}

IndexKind parse_index_kind(std::string_view text) {
  const std::vector<std::string> kinds = {"flat64", "flat32", "window"};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (text == kinds[i]) return static_cast<IndexKind>(i);
  }
  throw usage("--index-kind: '{}' is unknown; write flat64, flat32 or window{}", text, did_you_mean(text, kinds));
}

std::vector<std::string> op_names(bool unpool) {
  std::vector<std::string> names;
  for (const OpName& entry : kShortNames) {
    if (unpool || entry.op != Op::max_unpool) names.emplace_back(entry.name);
  }
  return names;
}

void parse_op(std::string_view text, bool unpool, OpArguments& arguments) {
  // MaxPool2d, max_pool2d and max-pool2d all become maxpool2d, the short names lose their hyphens.
  std::string word;
  for (const char c : lower(text)) {
    if (c != '_' && c != '-') word += c;
  }
  if (word.size() > 2 && word.back() == 'd' && word[word.size() - 2] >= '1' && word[word.size() - 2] <= '3') {
    arguments.dims_in_name = word[word.size() - 2] - '0';
    word.resize(word.size() - 2);
  }
  struct Alias {
    const char* name;
    const char* canonical;
  };
  constexpr Alias kAliases[] = {{"average", "avg"},
                                {"mean", "avg"},
                                {"maximum", "max"},
                                {"lppool", "lp"},
                                {"fractional", "fractionalmax"},
                                {"maxunpool", "unpool"},
                                {"globalaverage", "globalavg"}};
  if (word.ends_with("pool") && word != "unpool" && word != "maxunpool") word.resize(word.size() - 4);
  for (const Alias& alias : kAliases) {
    if (word == alias.name) word = alias.canonical;
  }
  for (const OpName& entry : kShortNames) {
    std::string plain = entry.name;
    std::erase(plain, '-');
    if (word == plain) {
      arguments.op = entry.op;
      arguments.global = entry.global;
      return;
    }
  }
  const std::vector<std::string> known = op_names(unpool);
  throw usage("--op: '{}' is unknown; known are {}{}", text, fmt::join(known, ", "), did_you_mean(text, known));
}

void check_op_arguments(const OpArguments& a) {
  const char* name = short_name(a);
  const bool sliding = is_sliding(a.op);
  const bool unpool = a.op == Op::max_unpool;
  const bool fractional = a.op == Op::fractional_max_pool;
  const auto refuse = [&](bool given, const char* option, const char* instead) {
    if (given) throw usage("{} has no meaning for {}; it takes {}", option, name, instead);
  };
  const char* takes = a.global     ? "no arguments: every window is the whole plane"
                      : sliding    ? "--kernel, --stride, --padding, --dilation and --ceil-mode"
                      : fractional ? "--kernel and --output-size or --output-ratio"
                      : unpool     ? "--kernel, --stride, --padding and --output-size"
                                   : "--output-size";
  const bool adaptive = !sliding && !fractional && !unpool;
  refuse(adaptive && a.kernel_size.has_value(), "--kernel", takes);
  refuse((adaptive || fractional) && a.stride.has_value(), "--stride", takes);
  refuse((adaptive || fractional) && a.padding.has_value(), "--padding", takes);
  refuse((adaptive || fractional) && a.dilation.has_value(), "--dilation", takes);
  refuse(!sliding && a.ceil_mode, "--ceil-mode", takes);
  refuse((sliding || a.global) && a.output_size.has_value(), "--output-size", takes);
  refuse(!fractional && !a.output_ratio.empty(), "--output-ratio", takes);
  refuse(a.op != Op::avg_pool && a.exclude_pad, "--no-count-include-pad", takes);
  refuse(a.op != Op::avg_pool && a.divisor_override.has_value(), "--divisor-override", takes);
  refuse(a.op != Op::lp_pool && a.norm_type.has_value(), "--norm-type", takes);
  if (unpool && a.padding && a.padding->mode != PaddingList::Mode::symmetric)
    throw usage("--padding: unpool takes the same padding at both ends: 1 or 1x2");
  if (a.dims && a.dims_in_name && *a.dims != *a.dims_in_name)
    throw usage("--dims {} contradicts the op's name, which says {}", *a.dims, *a.dims_in_name);
  if ((sliding || fractional || unpool) && !a.kernel_size)
    throw usage("{} needs --kernel, for example --kernel 3 or --kernel 3x2", name);
  if (adaptive && !a.global && !a.output_size)
    throw usage("{} needs --output-size, for example --output-size 7 or --output-size 7xkeep", name);
  if (fractional && a.output_size.has_value() == !a.output_ratio.empty()) {
    throw usage("{} needs one of --output-size and --output-ratio{}", name, a.output_size ? ", not both" : "");
  }
}

int spatial_rank(const OpArguments& a, int rank) {
  if (const std::optional<int> said = a.said_dims()) return *said;
  for (const auto* list : {&a.kernel_size, &a.stride, &a.dilation}) {
    if (*list && (*list)->count >= 2 && (*list)->count <= 3) return (*list)->count;
  }
  if (a.output_size && a.output_size->count >= 2 && a.output_size->count <= 3) return a.output_size->count;
  if (a.padding && a.padding->begin.count >= 2 && a.padding->begin.count <= 3) return a.padding->begin.count;
  return rank <= 1 ? 1 : rank <= 4 ? 2 : 3;
}

PoolSpec to_spec(const OpArguments& a, int dims) {
  PoolSpec spec{.op = a.op, .dims = dims};
  if (a.kernel_size) spec.kernel_size = *a.kernel_size;
  if (a.stride) spec.stride = *a.stride;
  if (a.padding) spec.padding = *a.padding;
  if (a.dilation) spec.dilation = *a.dilation;
  if (a.output_size) spec.output_size = *a.output_size;
  if (a.global) spec.output_size = 1;
  // One ratio stands for every axis, as one kernel size does.
  for (std::size_t i = 0; i < static_cast<std::size_t>(dims) && !a.output_ratio.empty(); ++i) {
    if (a.output_ratio.size() == 1)
      spec.output_ratio[i] = a.output_ratio[0];
    else if (i < a.output_ratio.size())
      spec.output_ratio[i] = a.output_ratio[i];
  }
  if (a.output_ratio.size() > 1 && static_cast<int>(a.output_ratio.size()) != dims) {
    throw usage("--output-ratio: {} ratios for {} spatial axes", a.output_ratio.size(), dims);
  }
  spec.ceil_mode = a.ceil_mode;
  spec.count_include_pad = !a.exclude_pad;
  spec.divisor_override = a.divisor_override;
  if (a.norm_type) spec.norm_type = *a.norm_type;
  return spec;
}

std::string to_string(const DimList& list) {
  const auto one = [](const Dim& dim) { return dim.is_keep ? std::string("keep") : std::to_string(dim.value); };
  if (list.empty()) return "()";
  if (list.scalar) return one(list.values[0]);
  std::string text = "(";
  for (int i = 0; i < std::min(list.count, DimList::kCapacity); ++i) text += (i > 0 ? ", " : "") + one(list.values[i]);
  return text + ")";
}

std::string describe_in_words(const PoolSpec& spec) {
  std::string text = fmt::format("{}{}d", name_of(spec.op), spec.dims);
  const auto add = [&](const char* name, const std::string& value) { text += fmt::format(", {} {}", name, value); };
  const bool sliding = is_sliding(spec.op);
  if (spec.op == Op::lp_pool) add("norm_type", fmt::format("{:g}", spec.norm_type));
  if (!spec.kernel_size.empty()) add("kernel_size", to_string(spec.kernel_size));
  if (!spec.stride.empty()) add("stride", to_string(spec.stride));
  if (spec.padding.mode == PaddingList::Mode::same_upper)
    add("padding", "same");
  else if (spec.padding.mode == PaddingList::Mode::same_lower)
    add("padding", "same-lower");
  else if (!(spec.padding == PaddingList())) {
    add("padding", spec.padding.mode == PaddingList::Mode::asymmetric
                       ? to_string(spec.padding.begin) + " before and " + to_string(spec.padding.end) + " after"
                       : to_string(spec.padding.begin));
  }
  if (!(spec.dilation == DimList(1))) add("dilation", to_string(spec.dilation));
  if (!spec.output_size.empty()) add("output_size", to_string(spec.output_size));
  if (spec.output_ratio[0]) add("output_ratio", fmt::format("{:g}", *spec.output_ratio[0]));
  if (sliding && spec.ceil_mode) text += ", ceil_mode";
  if (spec.op == Op::avg_pool && !spec.count_include_pad) text += ", padding not counted";
  if (spec.divisor_override) add("divisor_override", std::to_string(*spec.divisor_override));
  return text;
}

}  // namespace cenote::tool
