#include "suite.hpp"

#include <cenote/plan.hpp>

#include "json.hpp"
#include "reference/reference.hpp"

#include <fstream>
#include <regex>
#include <span>
#include <sstream>
#include <stdexcept>

namespace cenote::bench {

const char* name_of(RowPass pass) noexcept {
  switch (pass) {
    case RowPass::forward: return "forward";
    case RowPass::forward_indices: return "forward_indices";
    case RowPass::backward: return "backward";
  }
  return "?";
}

const char* name_of(MemoryFormat layout) noexcept {
  return layout == MemoryFormat::contiguous ? "planar" : "channels_last";
}

namespace {

template <class Enum>
Enum named(const std::string& name, std::initializer_list<Enum> all, const std::string& what) {
  for (const Enum value : all) {
    if (name == name_of(value)) return value;
  }
  throw std::runtime_error(what + ": unknown name '" + name + "'");
}

DimList dim_list(const Json& json, const std::string& what) {
  if (!json.is_array()) return DimList(std::int64_t{json.integer(what)});
  std::vector<Dim> values;
  for (const Json& item : json.array(what)) {
    values.push_back(item.is_null() ? Dim(keep) : Dim(std::int64_t{item.integer(what)}));
  }
  return DimList(std::span<const Dim>(values));
}

/// "max_pool2d" -> Op::max_pool, 2
void parse_op(const std::string& name, PoolSpec& spec) {
  if (name.size() > 2 && name.back() == 'd' && name[name.size() - 2] >= '1' && name[name.size() - 2] <= '3') {
    spec.dims = name[name.size() - 2] - '0';
    spec.op = named(name.substr(0, name.size() - 2),
                    {Op::max_pool, Op::min_pool, Op::avg_pool, Op::sum_pool, Op::lp_pool, Op::adaptive_max_pool,
                     Op::adaptive_avg_pool, Op::max_unpool},
                    "op");
    return;
  }
  throw std::runtime_error("op: unknown name '" + name + "'");
}

void parse_argument(const std::string& key, const Json& value, PoolSpec& spec) {
  if (key == "kernel_size") {
    spec.kernel_size = dim_list(value, key);
  } else if (key == "stride") {
    spec.stride = dim_list(value, key);
  } else if (key == "padding") {
    spec.padding = PaddingList(dim_list(value, key));
  } else if (key == "dilation") {
    spec.dilation = dim_list(value, key);
  } else if (key == "output_size") {
    spec.output_size = dim_list(value, key);
  } else if (key == "ceil_mode") {
    spec.ceil_mode = value.boolean(key);
  } else if (key == "count_include_pad") {
    spec.count_include_pad = value.boolean(key);
  } else if (key == "divisor_override") {
    if (!value.is_null()) spec.divisor_override = value.integer(key);
  } else if (key == "norm_type") {
    spec.norm_type = value.number(key);
  } else {
    throw std::runtime_error("args: unknown argument '" + key + "'");
  }
}

const Json& member(const Json& json, const char* key) {
  if (const Json* found = json.find(key)) return *found;
  throw std::runtime_error(std::string(key) + " is missing");
}

Case parse_case(const Json& json) {
  Case result;
  result.op = member(json, "op").string("op");
  parse_op(result.op, result.spec);
  for (const auto& [key, value] : member(json, "args").object("args")) parse_argument(key, value, result.spec);
  for (const Json& size : member(json, "shape").array("shape")) result.shape.push_back(size.integer("shape"));
  for (const Json& name : member(json, "dtypes").array("dtypes")) {
    result.dtypes.push_back(named(
        name.string("dtypes"),
        {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::u8, DType::i16, DType::i32, DType::i64},
        "dtypes"));
  }
  for (const Json& name : member(json, "layouts").array("layouts")) {
    result.layouts.push_back(
        named(name.string("layouts"), {MemoryFormat::contiguous, MemoryFormat::channels_last}, "layouts"));
  }
  for (const Json& name : member(json, "passes").array("passes")) {
    result.passes.push_back(
        named(name.string("passes"), {RowPass::forward, RowPass::forward_indices, RowPass::backward}, "passes"));
  }
  result.geometry = resolve(result.spec, result.shape);
  // PyTorch pads by half a kernel at most, dilated or not. Some suites ask for more: cenote can, if told both ends.
  for (std::size_t a = 0; a < 3; ++a) {
    if (result.geometry.padding[a] > result.geometry.kernel_size[a] / 2) {
      result.spec.padding = PaddingList(result.spec.padding.begin, result.spec.padding.begin);
    }
  }
  return result;
}

bool is_adaptive(Op op) { return op == Op::adaptive_max_pool || op == Op::adaptive_avg_pool; }

/// One number, or one for each axis.
void check_entries(const DimList& list, int dims, const char* name) {
  if (list.count != 1 && list.count != dims) {
    throw std::runtime_error(std::string(name) + " must have 1 or " + std::to_string(dims) + " entries");
  }
}

}  // namespace

Geometry resolve(const PoolSpec& spec, const std::vector<std::int64_t>& shape) {
  if (static_cast<int>(shape.size()) != spec.dims + 2) {
    throw std::runtime_error("shape must have N, C and " + std::to_string(spec.dims) + " spatial sizes");
  }
  for (const std::int64_t size : shape) {
    if (size < 1) throw std::runtime_error("shape must have sizes of at least 1");
  }
  if (spec.op == Op::fractional_max_pool) throw std::runtime_error("fractional pools are not benchmarked");
  using Mode = PaddingList::Mode;
  const bool same_at_both_ends = spec.padding.mode == Mode::symmetric ||
                                 (spec.padding.mode == Mode::asymmetric && spec.padding.begin == spec.padding.end);
  if (!same_at_both_ends) throw std::runtime_error("padding must be the same at both ends");
  const bool adaptive = is_adaptive(spec.op);
  if (adaptive) {
    check_entries(spec.output_size, spec.dims, "output_size");
  } else {
    check_entries(spec.kernel_size, spec.dims, "kernel_size");
    if (!spec.stride.empty()) check_entries(spec.stride, spec.dims, "stride");
    check_entries(spec.padding.begin, spec.dims, "padding");
    check_entries(spec.dilation, spec.dims, "dilation");
    if (!spec.output_size.empty()) throw std::runtime_error("output_size belongs to adaptive pools here");
  }
  const reference::Pool pool = reference::resolve(spec, DType::f32, Shape(std::span<const std::int64_t>(shape)));
  Geometry g;
  g.batch = pool.batch;
  g.channels = pool.channels;
  for (std::size_t a = 0; a < 3; ++a) {
    g.input[a] = pool.op == Op::max_unpool ? pool.output[a] : pool.input[a];
    g.output[a] = pool.op == Op::max_unpool ? pool.input[a] : pool.output[a];
    if (pool.stride[a] < 1 || pool.kernel[a] < 1 || g.output[a] < 1)
      throw std::runtime_error("the output would be empty");
    g.kernel_size[a] = pool.kernel[a];
    g.stride[a] = pool.stride[a];
    g.padding[a] = pool.pad_begin[a];
    g.dilation[a] = pool.dilation[a];
    if (!adaptive) continue;
    g.uniform = g.uniform && g.input[a] % g.output[a] == 0;
    g.kernel_size[a] = g.stride[a] = g.input[a] / g.output[a];
  }
  return g;
}

std::vector<Case> parse_suite(std::string_view text) {
  const Json suite = Json::parse(text);
  std::vector<Case> cases;
  for (const Json& json : member(suite, "cases").array("cases")) {
    const std::string name = member(json, "name").string("name");
    try {
      cases.push_back(parse_case(json));
      cases.back().name = name;
    } catch (const std::runtime_error& error) {
      throw std::runtime_error("case '" + name + "': " + error.what());
    }
  }
  return cases;
}

std::vector<Case> load_suite(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  if (!file || !(text << file.rdbuf())) throw std::runtime_error(path + ": cannot be read");
  try {
    return parse_suite(text.str());
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(path + ": " + error.what());
  }
}

std::string label(const Row& row) {
  return row.pool->name + ' ' + name_of(row.dtype) + ' ' + name_of(row.layout) + ' ' + name_of(row.pass);
}

std::vector<Row> rows_of(const std::vector<Case>& cases, const std::string& filter, IndexKind saved_kind) {
  const std::regex wanted(filter.empty() ? ".*" : filter);
  std::vector<Row> rows;
  for (const Case& pool : cases) {
    for (const DType dtype : pool.dtypes) {
      for (const MemoryFormat layout : pool.layouts) {
        for (const RowPass pass : pool.passes) {
          // Whole numbers have no gradients in any of the libraries, nor in the reference.
          if (pass == RowPass::backward && !is_floating(dtype)) continue;
          const Row row{&pool, dtype, layout, pass, saved_kind};
          if (std::regex_search(label(row), wanted)) rows.push_back(row);
        }
      }
    }
  }
  return rows;
}

bool uses_saved_indices(const Row& row) {
  const Op op = row.pool->spec.op;
  if (op == Op::max_unpool) return true;
  return row.pass == RowPass::backward && (op == Op::max_pool || op == Op::min_pool || op == Op::adaptive_max_pool);
}

DType saved_index_dtype(const Row& row) {
  PoolSpec spec = row.pool->spec;
  if (spec.op == Op::max_unpool) return DType::i64;
  spec.return_indices = true;
  spec.index_kind = row.saved_kind;
  const Shape input{std::span<const std::int64_t>(row.pool->shape)};
  return Plan::make(Pass::forward, TensorDesc::contiguous(row.dtype, input), spec).indices().dtype;
}

std::int64_t bytes_of(const Row& row) {
  const Geometry& g = row.pool->geometry;
  const auto element = static_cast<std::int64_t>(size_of(row.dtype));
  // Forward and backward move the same two tensors in opposite directions; Lp's gradient needs the input besides.
  std::int64_t bytes = (g.input_count() + g.output_count()) * element;
  if (row.pool->spec.op == Op::lp_pool && row.pass == RowPass::backward) bytes += g.input_count() * element;
  const std::int64_t indices = row.pool->spec.op == Op::max_unpool ? g.input_count() : g.output_count();
  if (row.pass == RowPass::forward_indices && row.pool->spec.op != Op::max_unpool) return bytes + indices * 8;
  if (uses_saved_indices(row)) bytes += indices * static_cast<std::int64_t>(size_of(saved_index_dtype(row)));
  return bytes;
}

}  // namespace cenote::bench
