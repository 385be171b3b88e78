#include "problems/problem.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <vector>

namespace cenote::testing {
namespace {

struct OpPrefix {
  Op op;
  const char* prefix;
};
constexpr OpPrefix kPrefixes[] = {
    {Op::max_pool, "max"},
    {Op::min_pool, "min"},
    {Op::avg_pool, "avg"},
    {Op::sum_pool, "sum"},
    {Op::lp_pool, "lp"},
    {Op::adaptive_max_pool, "amax"},
    {Op::adaptive_avg_pool, "aavg"},
    {Op::fractional_max_pool, "fmax"},
    {Op::max_unpool, "unpool"},
};
constexpr const char* kValueKinds[] = {"normal", "ties",  "negative", "nan",    "inf",
                                       "neginf", "zeros", "tiny",     "extreme"};
constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,
                             DType::u8,  DType::i16, DType::i32, DType::i64};
constexpr const char* kPlanarNames[2][3] = {{"cw", "chw", "cdhw"}, {"ncw", "nchw", "ncdhw"}};
constexpr const char* kChannelsLastNames[2][3] = {{"wc", "hwc", "dhwc"}, {"nwc", "nhwc", "ndhwc"}};

[[noreturn]] void refuse(std::string_view word, const std::string& why) {
  throw ProblemError("'" + std::string(word) + "': " + why);
}

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

template <class Number>
Number parse_number(std::string_view word, std::string_view digits) {
  Number value{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    refuse(word, "expected a number, got '" + std::string(digits) + "'");
  }
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

/// "3", "[3]", "3x2", "5x*"
DimList parse_dims(std::string_view word, std::string_view text) {
  const bool bracketed = text.size() > 2 && text.front() == '[' && text.back() == ']';
  if (bracketed) text = text.substr(1, text.size() - 2);
  std::vector<Dim> dims;
  for (std::string_view part : split(text, 'x')) {
    dims.push_back(part == "*" ? Dim(keep) : Dim(parse_number<std::int64_t>(word, part)));
  }
  DimList list{std::span<const Dim>(dims)};
  list.scalar = dims.size() == 1 && !bracketed;
  return list;
}

std::string print(const DimList& list) {
  std::string text;
  for (int i = 0; i < list.count && i < DimList::kCapacity; ++i) {
    text += (i == 0 ? "" : "x") + (list.values[i].is_keep ? std::string("*") : std::to_string(list.values[i].value));
  }
  return list.count == 1 && !list.scalar ? "[" + text + "]" : text;
}

std::string print(double value) {
  char text[32];
  const auto result = std::to_chars(std::begin(text), std::end(text), value);
  return {text, result.ptr};
}

void parse_op(Problem& problem, std::string_view word) {
  for (const OpPrefix& one : kPrefixes) {
    const std::string_view prefix = one.prefix;
    if (!starts_with(word, prefix)) continue;
    const std::string_view rank = word.substr(prefix.size());
    if (rank != "1d" && rank != "2d" && rank != "3d") continue;
    problem.spec.op = one.op;
    problem.spec.dims = rank[0] - '0';
    return;
  }
  refuse(word, "expected an op and its rank: max, min, avg, sum, lp, amax, aavg, fmax or unpool, then 1d, 2d or 3d");
}

void parse_dtype(Problem& problem, std::string_view word) {
  for (DType dtype : kDTypes) {
    if (word == name_of(dtype)) {
      problem.dtype = dtype;
      return;
    }
  }
  refuse(word, "expected a dtype: f32 f64 f16 bf16 i8 u8 i16 i32 i64");
}

/// Returns whether the name says that the input is batched; nothing where the name leaves it open.
std::optional<bool> parse_layout(Problem& problem, std::string_view word) {
  constexpr std::pair<const char*, Layout> kOpen[] = {{"strided", Layout::strided},
                                                      {"spaced", Layout::spaced},
                                                      {"flipped", Layout::flipped},
                                                      {"broadcast", Layout::broadcast}};
  for (const auto& [name, layout] : kOpen) {
    if (word == name) {
      problem.layout = layout;
      return std::nullopt;
    }
  }
  for (bool batched : {false, true}) {
    if (word == kPlanarNames[batched][problem.spec.dims - 1]) {
      problem.layout = Layout::planar;
      return batched;
    }
    if (word == kChannelsLastNames[batched][problem.spec.dims - 1]) {
      problem.layout = Layout::channels_last;
      return batched;
    }
  }
  const int i = problem.spec.dims - 1;
  refuse(word, std::string("expected a layout of this rank: ") + kPlanarNames[1][i] + " " + kChannelsLastNames[1][i] +
                   " " + kPlanarNames[0][i] + " " + kChannelsLastNames[0][i] + " strided spaced flipped broadcast");
}

/// Letters each followed by a number, in the order given: "n2c17", "d4h5w6". False when the word is something else.
bool parse_letters(std::string_view word, std::string_view letters, std::int64_t (&values)[3], bool (&given)[3]) {
  bool found[3] = {};
  std::int64_t read[3] = {};
  std::size_t next = 0;
  while (!word.empty()) {
    const auto letter = letters.find(word[0], next);
    if (letter == std::string_view::npos) return false;
    std::size_t end = 1;
    while (end < word.size() && word[end] >= '0' && word[end] <= '9') ++end;
    if (end == 1) return false;
    const auto [stop, error] = std::from_chars(word.data() + 1, word.data() + end, read[letter]);
    if (error != std::errc() || stop != word.data() + end) return false;
    found[letter] = true;
    next = letter + 1;
    word.remove_prefix(end);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    if (found[i]) values[i] = read[i];
    given[i] = given[i] || found[i];
  }
  return true;
}

/// What the words about the input's shape add up to.
struct Sizes {
  std::int64_t nc[3] = {}, spatial[3] = {};
  bool nc_given[3] = {}, spatial_given[3] = {};
  std::vector<std::int64_t> whole;
};

bool parse_sizes(Sizes& sizes, std::string_view word) {
  if (starts_with(word, "shape")) {
    for (std::string_view part : split(word.substr(5), 'x'))
      sizes.whole.push_back(parse_number<std::int64_t>(word, part));
    if (sizes.whole.size() > static_cast<std::size_t>(kMaxRank)) refuse(word, "a shape has at most 8 sizes");
    return true;
  }
  if (parse_letters(word, "nc", sizes.nc, sizes.nc_given)) return true;
  // "d2" alone is the dilation; sizes always end with the width
  return word.find('w') != std::string_view::npos && parse_letters(word, "dhw", sizes.spatial, sizes.spatial_given);
}

Shape shape_from(const Sizes& sizes, const Problem& problem, std::optional<bool> batched) {
  if (!sizes.whole.empty()) return Shape(std::span<const std::int64_t>(sizes.whole));
  if (!sizes.nc_given[1]) throw ProblemError("the channels are missing: n2c17, or c17 for an unbatched input");
  if (batched && *batched != sizes.nc_given[0]) {
    throw ProblemError(*batched ? "the layout says batched, but the batch size is missing: n2c17"
                                : "the layout says unbatched, but a batch size is given");
  }
  std::vector<std::int64_t> shape;
  if (sizes.nc_given[0]) shape.push_back(sizes.nc[0]);
  shape.push_back(sizes.nc[1]);
  for (int axis = 0; axis < 3; ++axis) {
    const bool wanted = axis >= 3 - problem.spec.dims;
    if (sizes.spatial_given[axis] != wanted) {
      constexpr const char* kExamples[] = {"w31", "h30w31", "d4h30w31"};
      throw ProblemError(std::string("the sizes do not fit the rank: expected something like ") +
                         kExamples[problem.spec.dims - 1]);
    }
    if (wanted) shape.push_back(sizes.spatial[axis]);
  }
  return Shape(std::span<const std::int64_t>(shape));
}

void parse_padding(PaddingList& padding, std::string_view word) {
  const auto parts = split(word.substr(1), ':');
  if (parts.size() > 2) refuse(word, "expected p1x1 or p1x1:2x2");
  const DimList begin = parse_dims(word, parts[0]);
  padding = parts.size() == 1 ? PaddingList(begin) : PaddingList(begin, parse_dims(word, parts[1]));
}

void parse_ratio(PoolSpec& spec, std::string_view word) {
  const auto parts = split(word.substr(5), 'x');
  if (parts.size() != 1 && parts.size() != static_cast<std::size_t>(spec.dims)) {
    refuse(word, "expected one ratio, or one for each axis");
  }
  for (int i = 0; i < spec.dims; ++i) {
    spec.output_ratio[i] = parse_number<double>(word, parts[parts.size() == 1 ? 0 : static_cast<std::size_t>(i)]);
  }
}

void parse_kind(Problem& problem, std::string_view word) {
  for (IndexKind kind : {IndexKind::flat64, IndexKind::flat32, IndexKind::window}) {
    if (word.substr(4) == name_of(kind)) {
      problem.only_kind = kind;
      return;
    }
  }
  refuse(word, "expected idx:flat64, idx:flat32 or idx:window");
}

bool parse_flag(Problem& problem, std::string_view word) {
  PoolSpec& spec = problem.spec;
  if (word == "ceil") return spec.ceil_mode = true;
  if (word == "nopad") return !(spec.count_include_pad = false);
  if (word == "fwd") return problem.passes = Passes::forward, true;
  if (word == "bwd") return problem.passes = Passes::backward, true;
  if (word == "both") return problem.passes = Passes::both, true;
  if (word == "same_upper") return spec.padding.mode = PaddingList::Mode::same_upper, true;
  if (word == "same_lower") return spec.padding.mode = PaddingList::Mode::same_lower, true;
  for (std::size_t i = 0; i < std::size(kValueKinds); ++i) {
    if (word == kValueKinds[i]) return problem.values = static_cast<ValueKind>(i), true;
  }
  return false;
}

/// Words that begin with a name and continue with numbers. Longer names first: "div7" is no dilation.
bool parse_argument(Problem& problem, std::string_view word) {
  PoolSpec& spec = problem.spec;
  if (starts_with(word, "idx:")) return parse_kind(problem, word), true;
  if (starts_with(word, "seed")) return problem.seed = parse_number<std::uint64_t>(word, word.substr(4)), true;
  if (starts_with(word, "div")) return spec.divisor_override = parse_number<std::int64_t>(word, word.substr(3)), true;
  if (starts_with(word, "norm")) return spec.norm_type = parse_number<double>(word, word.substr(4)), true;
  if (starts_with(word, "out")) return spec.output_size = parse_dims(word, word.substr(3)), true;
  if (starts_with(word, "ratio")) return parse_ratio(spec, word), true;
  if (starts_with(word, "k")) return spec.kernel_size = parse_dims(word, word.substr(1)), true;
  if (starts_with(word, "s")) return spec.stride = parse_dims(word, word.substr(1)), true;
  if (starts_with(word, "d")) return spec.dilation = parse_dims(word, word.substr(1)), true;
  if (starts_with(word, "p")) return parse_padding(spec.padding, word), true;
  return false;
}

std::string print_shape(const Problem& problem) {
  const Shape& shape = problem.shape;
  const int dims = problem.spec.dims;
  if (shape.rank() != dims + 1 && shape.rank() != dims + 2) {
    std::string text = " shape";
    for (int i = 0; i < shape.rank(); ++i) text += (i == 0 ? "" : "x") + std::to_string(shape[i]);
    return text;
  }
  std::string text = problem.batched() ? " n" + std::to_string(shape[0]) + "c" : " c";
  text += std::to_string(shape[shape.rank() - dims - 1]) + " ";
  for (int i = 0; i < dims; ++i) text += "dhw"[3 - dims + i] + std::to_string(shape[shape.rank() - dims + i]);
  return text;
}

std::string print_padding(const PaddingList& padding) {
  switch (padding.mode) {
    case PaddingList::Mode::same_upper: return " same_upper";
    case PaddingList::Mode::same_lower: return " same_lower";
    case PaddingList::Mode::asymmetric: return " p" + print(padding.begin) + ":" + print(padding.end);
    case PaddingList::Mode::symmetric: break;
  }
  return padding.begin == DimList(0) ? "" : " p" + print(padding.begin);
}

const char* layout_name(const Problem& problem) {
  const bool batched = problem.shape.rank() != problem.spec.dims + 1;
  switch (problem.layout) {
    case Layout::planar: return kPlanarNames[batched][problem.spec.dims - 1];
    case Layout::channels_last: return kChannelsLastNames[batched][problem.spec.dims - 1];
    case Layout::strided: return "strided";
    case Layout::spaced: return "spaced";
    case Layout::flipped: return "flipped";
    case Layout::broadcast: break;
  }
  return "broadcast";
}

}  // namespace

Problem parse_problem(std::string_view text) {
  Problem problem;
  Sizes sizes;
  std::optional<bool> batched;
  int position = 0;
  for (std::string_view word : split(text, ' ')) {
    if (word.empty()) continue;
    switch (position++) {
      case 0: parse_op(problem, word); break;
      case 1: parse_dtype(problem, word); break;
      case 2: batched = parse_layout(problem, word); break;
      default:
        if (!parse_sizes(sizes, word) && !parse_flag(problem, word) && !parse_argument(problem, word)) {
          refuse(word, "not a word of a problem");
        }
    }
  }
  if (position < 3)
    throw ProblemError("a problem begins with op and rank, dtype and layout: max2d f32 nchw n1c1 h4w4 k2");
  problem.shape = shape_from(sizes, problem, batched);
  return problem;
}

std::string to_string(const Problem& problem) {
  const PoolSpec& spec = problem.spec;
  std::string text = std::string(prefix_of(spec.op)) + std::to_string(spec.dims) + "d " + name_of(problem.dtype) + " " +
                     layout_name(problem) + print_shape(problem);
  if (!spec.kernel_size.empty()) text += " k" + print(spec.kernel_size);
  if (!spec.stride.empty()) text += " s" + print(spec.stride);
  text += print_padding(spec.padding);
  if (!(spec.dilation == DimList(1))) text += " d" + print(spec.dilation);
  if (!spec.output_size.empty()) text += " out" + print(spec.output_size);
  if (spec.output_ratio[0]) {
    text += " ratio";
    for (int i = 0; i < spec.dims; ++i) text += (i == 0 ? "" : "x") + print(spec.output_ratio[i].value_or(0));
  }
  if (spec.op == Op::lp_pool) text += " norm" + print(spec.norm_type);
  if (spec.ceil_mode) text += " ceil";
  if (!spec.count_include_pad) text += " nopad";
  if (spec.divisor_override) text += " div" + std::to_string(*spec.divisor_override);
  if (problem.only_kind) text += std::string(" idx:") + name_of(*problem.only_kind);
  if (problem.values != ValueKind::normal) text += std::string(" ") + kValueKinds[static_cast<int>(problem.values)];
  if (problem.seed != 1) text += " seed" + std::to_string(problem.seed);
  if (problem.passes != Passes::both) text += problem.passes == Passes::forward ? " fwd" : " bwd";
  return text;
}

const char* prefix_of(Op op) {
  for (const OpPrefix& one : kPrefixes) {
    if (one.op == op) return one.prefix;
  }
  return "?";
}

ValueKind value_kind_of(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kValueKinds); ++i) {
    if (name == kValueKinds[i]) return static_cast<ValueKind>(i);
  }
  refuse(name, "expected how values are drawn: normal ties negative nan inf neginf zeros tiny extreme");
}

}  // namespace cenote::testing
