#include "arrays.hpp"
#include "commands.hpp"
#include "file_axes.hpp"
#include "files.hpp"
#include "story.hpp"
#include "story_svg.hpp"
#include "story_text.hpp"
#include "terminal.hpp"
#include "text_writer.hpp"

#include <cenote/plan.hpp>

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>

namespace cenote::tool {
namespace {

constexpr std::int64_t kLargeAxis = 16;
constexpr std::int64_t kDefaultCrop = 8;

struct Numbers {
  std::vector<std::int64_t> shape;  // slices, rows, columns as written
  std::vector<double> values;
};

/// "1 3 2; 5 6 1 | ..." or Python's [[1, 3, 2], [5, 6, 1]].
Numbers parse_numbers(const std::string& option, const std::string& text) {
  std::string plain;
  for (const char c : text) {
    if (c != ' ' || !plain.empty()) plain += c == '\t' || c == '\n' ? ' ' : c;
  }
  if (plain.find('[') != std::string::npos) {
    std::string tight;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      const bool beside =
          plain[i] == ' ' && ((i > 0 && std::string("[],").find(plain[i - 1]) != std::string::npos) ||
                              (i + 1 < plain.size() && std::string("[], ").find(plain[i + 1]) != std::string::npos));
      if (!beside) tight += plain[i];
    }
    const auto replace = [&](const std::string& from, const std::string& to) {
      for (std::size_t at = tight.find(from); at != std::string::npos; at = tight.find(from, at + to.size()))
        tight.replace(at, from.size(), to);
    };
    replace("]],[[", "|");
    replace("],[", ";");
    std::erase(tight, '[');
    std::erase(tight, ']');
    plain = tight;
  }
  Numbers result;
  std::int64_t rows = -1, columns = -1;
  const auto slices = split(plain, "|");
  for (const std::string_view slice : slices) {
    std::string_view body = slice;
    while (!body.empty() && (body.back() == ' ' || body.back() == ';')) body.remove_suffix(1);
    const auto lines = split(body, ";");
    if (rows >= 0 && rows != std::ssize(lines))
      throw Failure::make(ExitCode::usage, "{}: slices of {} and {} rows", option, rows, lines.size());
    rows = std::ssize(lines);
    for (const std::string_view line : lines) {
      std::int64_t count = 0;
      for (const std::string_view word : split(line, " ,")) {
        if (word.empty()) continue;
        result.values.push_back(word == "nan" || word == "NaN" ? std::numeric_limits<double>::quiet_NaN()
                                                               : parse_number(option, word));
        ++count;
      }
      if (count == 0)
        throw Failure::make(ExitCode::usage, "{}: '{}' has an empty row; write for example \"1 3 2; 5 6 1\"", option,
                            text);
      if (columns >= 0 && columns != count)
        throw Failure::make(ExitCode::usage, "{}: rows of {} and {} numbers", option, columns, count);
      columns = count;
    }
  }
  if (slices.size() > 1)
    result.shape = {std::ssize(slices), rows, columns};
  else if (rows > 1)
    result.shape = {rows, columns};
  else
    result.shape = {columns};
  return result;
}

/// "8x8+16+24": sizes, then the first cell of each axis.
void parse_crop(const std::string& text, int dims, std::int64_t* size, std::int64_t* begin) {
  const auto parts = split(text, "+");
  const Shape sizes = parse_shape("--crop", parts[0]);
  if (sizes.rank() != dims || (parts.size() != 1 && std::ssize(parts) != dims + 1)) {
    throw Failure::make(
        ExitCode::usage,
        "--crop: '{}' does not fit {} axes; write for example 8x8+16+24 for 8 rows and columns from row 16, column 24",
        text, dims);
  }
  for (int a = 0; a < dims; ++a) {
    size[a] = sizes[a];
    begin[a] = parts.size() == 1 ? 0 : parse_integer("--crop", parts[static_cast<std::size_t>(a) + 1]);
  }
}

/// What the story is told about, and what must be said about where it comes from.
struct Subject {
  StoryInput input;
  std::string note;
};

void set_size(StoryInput& input, const std::vector<std::int64_t>& sizes) {
  std::copy(sizes.begin(), sizes.end(), input.size + 3 - input.spec.dims);
}

Subject from_file(const ExplainCommand& command) {
  ArraySource source(command.file);
  const Reading reading = read_for(source, command.op, command.layout);
  const FileAxes& axes = reading.axes;
  const TensorDesc& desc = reading.desc;
  const int dims = axes.dims;
  const std::int64_t planes = desc.shape[0] * desc.shape[1], plane = command.plane.value_or(0);
  if (plane >= planes) {
    throw Failure::make(ExitCode::usage, "--plane: {}; {} has {} plane{}, numbered from 0", plane, source.path(),
                        planes, planes == 1 ? "" : "s");
  }
  std::int64_t size[3], begin[3] = {0, 0, 0};
  bool large = false;
  for (int a = 0; a < dims; ++a) {
    size[a] = desc.shape[2 + a];
    large = large || size[a] > kLargeAxis;
  }
  if (command.crop) {
    parse_crop(*command.crop, dims, size, begin);
  } else if (large) {
    for (int a = 0; a < dims; ++a) size[a] = smaller(size[a], kDefaultCrop);
  }
  const std::int64_t first = plane / desc.shape[1] * desc.strides[0] + plane % desc.shape[1] * desc.strides[1];
  std::int64_t cells = 1;
  for (int a = 0; a < dims; ++a) {
    if (begin[a] < 0 || size[a] < 1 || begin[a] > desc.shape[2 + a] - size[a]) {
      throw Failure::make(ExitCode::usage, "--crop: {} cells from {} on do not lie in an axis of {}", size[a], begin[a],
                          desc.shape[2 + a]);
    }
    cells = cells > kMostCells ? cells : cells * size[a];
  }
  if (cells > kMostCells)
    throw Failure::make(ExitCode::usage, "--crop: more than {} cells cannot be drawn; take fewer", kMostCells);

  Subject subject;
  subject.input.spec = to_spec(command.op, dims);
  set_size(subject.input, std::vector<std::int64_t>(size, size + dims));
  std::int64_t step[3] = {0, 0, 0}, low[3] = {0, 0, 0};
  for (int a = 0; a < dims; ++a) {
    step[3 - dims + a] = desc.strides[2 + a];
    low[3 - dims + a] = begin[a];
  }
  const std::int64_t* n = subject.input.size;
  for (std::int64_t z = 0; z < n[0]; ++z) {
    for (std::int64_t y = 0; y < n[1]; ++y) {
      for (std::int64_t x = 0; x < n[2]; ++x) {
        const std::int64_t at = first + (low[0] + z) * step[0] + (low[1] + y) * step[1] + (low[2] + x) * step[2];
        subject.input.values.push_back(element_as_double(source.dtype(), source.load(at, 1)));
      }
    }
  }
  subject.note = fmt::format(
      "{}: shape {}, {}; plane {} of {}", printable(source.path()), to_string(source.shape()),
      source.picture() ? fmt::format("{}-bit picture", source.picture()->bits) : std::string(name_of(source.dtype())),
      plane, planes);
  if (large || command.crop) {
    PoolSpec spec = subject.input.spec;
    Described whole;
    if (describe(Pass::forward, desc, spec, {}, whole).ok()) {
      subject.note += fmt::format("; the whole becomes {}", to_string(file_shape(axes, whole.output.shape)));
    }
    subject.note +=
        fmt::format(". Explained here: a part of {} cells from ({}), as if it were the whole (--crop takes another)",
                    fmt::join(size, size + dims, " x "), fmt::join(begin, begin + dims, ", "));
  }
  return subject;
}

Subject from_words(const ExplainCommand& command) {
  Subject subject;
  std::vector<std::int64_t> shape;
  if (command.values) {
    Numbers numbers = parse_numbers("--values", *command.values);
    shape = std::move(numbers.shape);
    subject.input.values = std::move(numbers.values);
  } else if (command.size) {
    shape.assign(command.size->begin(), command.size->end());
  }
  // Here every size written is a spatial one; a single number may stand for all axes that the arguments name.
  const int written = static_cast<int>(shape.size());
  const int dims = command.op.said_dims().value_or(written >= 2 ? std::min(written, 3)
                                                                : spatial_rank(command.op, written == 0 ? 4 : 1));
  subject.input.spec = to_spec(command.op, dims);
  if (shape.empty()) {
    // Large enough for two windows along each axis.
    const bool unpool = command.op.op == Op::max_unpool;
    for (int a = 0; a < dims; ++a) {
      std::int64_t wanted = unpool ? 2 : dims == 3 ? 4 : 6;
      if (command.op.kernel_size && !unpool) {
        const Dim& k =
            command.op.kernel_size
                ->values[command.op.kernel_size->count == 1 ? 0 : std::min(a, command.op.kernel_size->count - 1)];
        if (k.value > 0 && k.value <= 16) wanted = larger(wanted, k.value + 2);
      }
      shape.push_back(wanted);
    }
  }
  if (shape.size() == 1 && dims > 1 && !command.values)
    shape.assign(static_cast<std::size_t>(dims), shape[0]);  // --size 4 for a square
  while (std::ssize(shape) < dims) shape.insert(shape.begin(), 1);
  while (std::ssize(shape) > dims && shape.front() == 1) shape.erase(shape.begin());
  if (std::ssize(shape) != dims) {
    throw Failure::make(ExitCode::usage,
                        "{} sizes for {} spatial axes; explain shows one plane (--dims changes the number of axes)",
                        shape.size(), dims);
  }
  set_size(subject.input, shape);
  std::int64_t cells = 1;
  for (const std::int64_t n : shape) {
    if (n < 1) throw Failure(ExitCode::usage, "--size: every axis needs at least one cell");
    if (n > kMostCells || (cells *= n) > kMostCells) {
      throw Failure::make(ExitCode::usage, "{}: more than {} cells cannot be drawn",
                          command.values ? "--values" : "--size", kMostCells);
    }
  }
  if (subject.input.values.empty()) {
    subject.input.values.resize(static_cast<std::size_t>(cells));
    std::iota(subject.input.values.begin(), subject.input.values.end(), 1.0);
  }
  return subject;
}

/// The indices an unpool is explained with: given, or those that pooling 1..n of the result's size would give.
void add_indices(const ExplainCommand& command, StoryInput& input) {
  if (command.indices) {
    for (const double value : parse_numbers("--indices", *command.indices).values) {
      constexpr double kMost = 9007199254740992;  // to here doubles count one by one
      if (!(std::abs(value) <= kMost) || value != std::floor(value))
        throw Failure::make(ExitCode::usage, "--indices: {} is no place; write whole numbers", value);
      input.indices.push_back(static_cast<std::int64_t>(value));
    }
    if (input.indices.size() != input.values.size()) {
      throw Failure::make(ExitCode::usage, "--indices: {} of them for {} values", input.indices.size(),
                          input.values.size());
    }
    return;
  }
  std::vector<std::int64_t> sizes = {1, 1};
  sizes.insert(sizes.end(), input.size + 3 - input.spec.dims, input.size + 3);
  Described described;
  describe(Pass::forward, TensorDesc::contiguous(DType::f64, Shape(sizes)), input.spec, {}, described).raise();
  // In every window of the pool that this undoes, counted numbers put the largest at the last tap inside.
  const Axis* axis = described.problem.axis;
  for (std::int64_t z = 0; z < input.size[0]; ++z) {
    for (std::int64_t y = 0; y < input.size[1]; ++y) {
      for (std::int64_t x = 0; x < input.size[2]; ++x) {
        const Window w[3] = {window(axis[0], z), window(axis[1], y), window(axis[2], x)};
        std::int64_t at[3];
        for (int a = 0; a < 3; ++a)
          at[a] = std::clamp<std::int64_t>(w[a].first + (w[a].count - 1) * w[a].step, 0, axis[a].input - 1);
        input.indices.push_back((at[0] * axis[1].input + at[1]) * axis[2].input + at[2]);
      }
    }
  }
}

}  // namespace

void run_explain(const ExplainCommand& command) {
  Subject subject = command.file.empty() ? from_words(command) : from_file(command);
  StoryInput& input = subject.input;
  input.seed = command.seed.value_or(0);
  const bool terminal = is_terminal(STDOUT_FILENO);
  const TextStyle style{
      .width = command.width > 0 ? command.width : std::max(20, columns_of(STDOUT_FILENO, 100)),
      .color = command.color == "always" || (command.color == "auto" && terminal && wants_color(STDOUT_FILENO)),
      .all_windows = command.all_windows};
  Story story;
  try {
    if (input.spec.op == Op::max_unpool) add_indices(command, input);
    story = tell(input);
  } catch (const Error& error) {
    std::fputs(to_text_refused(input, error.what(), style).c_str(), stdout);
    throw Failure(ExitCode::refused, error.what());
  }
  // First, so that a reader who closes the pipe early (head) still gets the picture.
  if (command.svg) {
    if (same_file(*command.svg, command.file)) {
      throw Failure::make(ExitCode::usage, "--svg: {} is the input; name another file", *command.svg);
    }
    const std::string svg = to_svg(story);
    OutputFile file(*command.svg);
    file.write(std::as_bytes(std::span(svg)));
    file.finish();
    file.commit();
  }
  if (!subject.note.empty()) {
    for (const std::string& line : wrap_text(subject.note, style.width)) fmt::print("{}\n", line);
    fmt::print("\n");
  }
  std::fputs(to_text(story, style).c_str(), stdout);
  if (command.svg && terminal) fmt::print("\ndrawn: {}\n", printable(*command.svg));
}

}  // namespace cenote::tool
