#include "commands.hpp"
#include "terminal.hpp"

#include "geometry/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

namespace cenote::tool {
namespace {

struct Layer {
  std::string text;
  bool convolution = false;
  std::int64_t channels = 0;  // of a convolution's output
  OpArguments op;
};

/// "max k3 s2 p1", "conv c64 k7 s2 p3", "adaptive-avg o1x1", "avg k3 s2 ceil": blanks between arguments, x between sizes.
Layer parse_layer(const std::string& text) {
  Layer layer{.text = text, .op = {}};
  const auto fail = [&](std::string_view word, const char* what) {
    return Failure::make(ExitCode::usage,
                         "layer \"{}\": '{}' {}; a layer is for example \"max k3 s2 p1\" or \"conv c64 k3 p1\"", text,
                         word, what);
  };
  bool first = true;
  std::string given;  // the letters so far
  for (const std::string_view word : split(text, " \t")) {
    if (word.empty()) continue;
    if (std::exchange(first, false)) {
      if (word == "conv") {
        layer.convolution = true;
      } else {
        try {
          parse_op(word, false, layer.op);
        } catch (const Failure& failure) {
          throw Failure::make(ExitCode::usage, "layer \"{}\": {}", text, failure.what());
        }
        if (layer.op.op == Op::max_unpool || layer.op.op == Op::fractional_max_pool)
          throw fail(word, "has no fixed windows to follow");
      }
      continue;
    }
    const std::string_view value = word.substr(1);
    const std::string option = fmt::format("layer \"{}\": '{}'", text, word);
    const char letter = word == "ceil" ? '^' : word == "same" ? 'p' : word[0];
    if (given.find(letter) != std::string::npos) throw fail(word, "says again what was said before");
    given += letter;
    if (value.empty() && std::string_view("kspdoc").find(letter) != std::string_view::npos)
      throw fail(word, "lacks its number");
    if (word == "ceil")
      layer.op.ceil_mode = true;
    else if (word[0] == 'k')
      layer.op.kernel_size = parse_dims(option, value);
    else if (word == "same")
      layer.op.padding = parse_padding(option, "same");
    else if (word[0] == 's')
      layer.op.stride = parse_dims(option, value);
    else if (word[0] == 'p')
      layer.op.padding = parse_padding(option, value);
    else if (word[0] == 'd')
      layer.op.dilation = parse_dims(option, value);
    else if (word[0] == 'o')
      layer.op.output_size = parse_output_size(option, value);
    else if (word[0] == 'c' && !layer.convolution)
      throw fail(word, "is for conv; a pool keeps its input's channels");
    else if (word[0] == 'c')
      layer.channels = parse_integer(option, value);
    else
      throw fail(word, "is no argument (k kernel, s stride, p padding, d dilation, o output size, c channels, ceil)");
  }
  if (first) throw Failure(ExitCode::usage, "a layer is empty; write for example \"max k3 s2 p1\"");
  if (layer.convolution) {
    if (!layer.op.kernel_size) throw fail("conv", "needs a kernel");
    if (layer.op.output_size || layer.op.ceil_mode) throw fail("conv", "takes k, s, p, d and c only");
    if (layer.channels < 0) throw fail("conv", "has a negative number of channels");
    // A convolution's windows are a pool's with stride 1 by default and any padding; only the sizes matter here.
    if (!layer.op.stride) layer.op.stride = DimList(1);
    if (layer.op.padding && layer.op.padding->mode == PaddingList::Mode::symmetric)
      layer.op.padding->mode = PaddingList::Mode::asymmetric;
  } else {
    try {
      check_op_arguments(layer.op);
    } catch (const Failure& failure) {
      throw Failure::make(ExitCode::usage, "layer \"{}\": {} (k is --kernel, o is --output-size)", text,
                          failure.what());
    }
  }
  return layer;
}

struct Row {
  std::string layer;
  Shape output;
  std::int64_t bytes = 0;
  std::int64_t index_bytes = 0;   // max family: kept for the gradient, one tap number each
  std::int64_t flat64_bytes = 0;  // the same in PyTorch's kind
  double field[3] = {1, 1, 1};    // input cells one output sees, by axis
  double jump[3] = {1, 1, 1};     // input cells between neighbouring outputs
};

std::string joined(const double* values, int dims) {
  std::string text;
  for (int a = 3 - dims; a < 3; ++a) text += fmt::format("{}{:g}", text.empty() ? "" : "x", values[a]);
  return text;
}

std::string sizes(const Shape& shape) { return fmt::format("{}", fmt::join(shape, "x")); }

void print_json(const ShapeCommand& command, const std::vector<Row>& rows, int dims) {
  fmt::print("{{\"input\": [{}], \"dtype\": \"{}\", \"layers\": [", fmt::join(command.input, ", "),
             name_of(command.dtype));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    fmt::print(
        "{}{{\"layer\": {}, \"output\": [{}], \"bytes\": {}, \"index_bytes\": {}, \"receptive_field\": [{}], \"jump\": "
        "[{}]}}",
        i > 0 ? ", " : "", json_string(row.layer), fmt::join(row.output, ", "), row.bytes, row.index_bytes,
        fmt::join(row.field + 3 - dims, row.field + 3, ", "), fmt::join(row.jump + 3 - dims, row.jump + 3, ", "));
  }
  fmt::print("]}}\n");
}

}  // namespace

void run_shape(const ShapeCommand& command) {
  std::vector<Layer> layers;
  for (const std::string& text : command.layers) layers.push_back(parse_layer(text));
  const int given = command.input.rank();
  if (given == 0) throw Failure(ExitCode::usage, "INPUT: no sizes; write for example 1x3x224x224");
  int dims = given == 1 ? 1 : given <= 4 ? 2 : 3;
  for (const Layer& layer : layers) {
    if (const int said = spatial_rank(layer.op, given); said != dims) {
      dims = said;
      break;
    }
  }
  if (given < dims || given > dims + 2) {
    throw Failure::make(ExitCode::refused, "INPUT {}: {} sizes for layers of {} spatial axes; {} to {} are possible",
                        sizes(command.input), given, dims, dims, dims + 2);
  }
  Shape shape = command.input;
  std::vector<std::int64_t> full(static_cast<std::size_t>(dims + 2 - given), 1);
  full.insert(full.end(), shape.begin(), shape.end());
  TensorDesc desc = TensorDesc::contiguous(command.dtype, Shape(full));

  std::vector<Row> rows;
  Row previous{.layer = "input", .output = shape};
  previous.bytes = desc.numel() * static_cast<std::int64_t>(size_of(command.dtype));
  for (const Layer& layer : layers) {
    PoolSpec spec = to_spec(layer.op, dims);
    if (layer.convolution) spec.op = Op::max_pool;
    const bool max_family =
        !layer.convolution && (spec.op == Op::max_pool || spec.op == Op::min_pool || spec.op == Op::adaptive_max_pool);
    spec.return_indices = max_family;
    spec.index_kind = IndexKind::window;
    Described described;
    if (const Status status = describe(Pass::forward, desc, spec, {}, described); !status.ok()) {
      throw Failure::make(ExitCode::refused, "layer \"{}\" on {}: {}", layer.text, sizes(previous.output),
                          status.message());
    }
    Row row = previous;
    row.layer = layer.text;
    for (int a = 3 - dims; a < 3; ++a) {
      const Axis& axis = described.problem.axis[a];
      // Along an adaptive axis windows differ by one cell and stand input / output apart on average: the widest one counts.
      const double reach = axis.rule == WindowRule::adaptive ? static_cast<double>(axis.kernel - 1)
                                                             : static_cast<double>((axis.kernel - 1) * axis.dilation);
      const double step = axis.rule == WindowRule::adaptive
                              ? static_cast<double>(axis.input) / static_cast<double>(larger(axis.output, 1))
                              : static_cast<double>(axis.stride);
      row.field[a] += reach * row.jump[a];
      row.jump[a] *= step;
    }
    desc = TensorDesc::contiguous(command.dtype, described.output.shape);
    if (layer.convolution && layer.channels > 0) desc.shape[1] = layer.channels;
    desc = TensorDesc::contiguous(command.dtype, desc.shape);
    const std::int64_t count = desc.numel();
    row.bytes = count * static_cast<std::int64_t>(size_of(command.dtype));
    row.index_bytes = max_family ? count * static_cast<std::int64_t>(size_of(described.problem.index_dtype)) : 0;
    row.flat64_bytes = max_family ? count * 8 : 0;
    std::vector<std::int64_t> shown(desc.shape.begin() + (dims + 2 - given), desc.shape.end());
    if (given == dims && layer.channels > 0) shown.insert(shown.begin(), layer.channels);
    row.output = Shape(shown);
    rows.push_back(row);
    previous = row;
  }
  if (command.json) {
    print_json(command, rows, dims);
    return;
  }
  std::size_t name_width = 5, shape_width = 6;
  for (const Row& row : rows) {
    name_width = std::max(name_width, row.layer.size());
    shape_width = std::max(shape_width, sizes(row.output).size());
  }
  shape_width = std::max(shape_width, sizes(command.input).size());
  const std::int64_t input_bytes = element_count(command.input) * static_cast<std::int64_t>(size_of(command.dtype));
  fmt::print("{:<{}}  {:<{}}  {:>10}  {:>10}  {:>9}  {:>9}\n", "layer", name_width, "output", shape_width,
             name_of(command.dtype), "indices", "sees", "step");
  fmt::print("{:<{}}  {:<{}}  {:>10}  {:>10}  {:>9}  {:>9}\n", "input", name_width, sizes(command.input), shape_width,
             human_bytes(static_cast<double>(input_bytes)), "", "", "");
  std::int64_t total = 0, index_total = 0, flat64_total = 0;
  for (const Row& row : rows) {
    fmt::print("{:<{}}  {:<{}}  {:>10}  {:>10}  {:>9}  {:>9}\n", row.layer, name_width, sizes(row.output), shape_width,
               human_bytes(static_cast<double>(row.bytes)),
               row.index_bytes > 0 ? human_bytes(static_cast<double>(row.index_bytes)) : "-", joined(row.field, dims),
               joined(row.jump, dims));
    total += row.bytes;
    index_total += row.index_bytes;
    flat64_total += row.flat64_bytes;
  }
  fmt::print(
      "\nsees: input cells one output value depends on (the receptive field). step: input cells between neighbouring "
      "outputs.\n");
  fmt::print("All outputs: {}. ", human_bytes(static_cast<double>(total)));
  if (index_total > 0) {
    fmt::print("Indices kept for the gradient: {} as tap numbers (window), {} in PyTorch's flat64.",
               human_bytes(static_cast<double>(index_total)), human_bytes(static_cast<double>(flat64_total)));
  }
  fmt::print("\n");
}

}  // namespace cenote::tool
