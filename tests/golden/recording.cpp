#include "golden/recording.hpp"

#include <nlohmann/json.hpp>

#include <cstring>
#include <fstream>
#include <iterator>
#include <span>

namespace cenote::testing {
namespace {

using Json = nlohmann::json;

constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,
                             DType::u8,  DType::i16, DType::i32, DType::i64};

DType dtype_named(const std::string& name) {
  for (DType dtype : kDTypes) {
    if (name == name_of(dtype)) return dtype;
  }
  throw RecordingError("unknown dtype '" + name + "'");
}

template <class Element>
Element read(const char* at) {
  Element element;
  std::memcpy(&element, at, sizeof element);
  return element;
}

Array read_array(const Json& json, const std::string& data) {
  Array array;
  array.dtype = dtype_named(json.at("dtype"));
  array.shape = json.at("shape").get<std::vector<std::int64_t>>();
  const auto offset = json.at("offset").get<std::uint64_t>(), bytes = json.at("nbytes").get<std::uint64_t>();
  if (offset > data.size() || bytes > data.size() - offset) throw RecordingError("an array lies outside data.bin");
  const std::size_t size = size_of(array.dtype);
  // element_count refuses negative sizes and products beyond 63 bits
  const auto count = static_cast<std::uint64_t>(element_count(Shape(std::span<const std::int64_t>(array.shape))));
  if (count > bytes || count * size != bytes) throw RecordingError("an array's shape and nbytes disagree");
  for (std::uint64_t i = 0; i < count; ++i) {
    const char* at = data.data() + offset + i * size;
    switch (array.dtype) {
      case DType::f32: array.reals.push_back(read<float>(at)); break;
      case DType::f64: array.reals.push_back(read<double>(at)); break;
      case DType::f16: array.reals.push_back(to_float(read<f16>(at))); break;
      case DType::bf16: array.reals.push_back(to_float(read<bf16>(at))); break;
      case DType::i8: array.integers.push_back(read<std::int8_t>(at)); break;
      case DType::u8: array.integers.push_back(read<std::uint8_t>(at)); break;
      case DType::i16: array.integers.push_back(read<std::int16_t>(at)); break;
      case DType::i32: array.integers.push_back(read<std::int32_t>(at)); break;
      default: array.integers.push_back(read<std::int64_t>(at)); break;
    }
  }
  return array;
}

std::optional<Array> optional_array(const Json& json, const char* name, const std::string& data) {
  if (!json.contains(name) || json.at(name).is_null()) return std::nullopt;
  return read_array(json.at(name), data);
}

/// A number, or a list in which null is PyTorch's None; as given, right or wrong.
DimList dims_of(const Json& json) {
  if (json.is_number()) return DimList(json.get<std::int64_t>());
  std::vector<Dim> dims;
  for (const Json& one : json) dims.push_back(one.is_null() ? Dim(keep) : Dim(one.get<std::int64_t>()));
  return DimList(std::span<const Dim>(dims));
}

void read_op(PoolSpec& spec, const std::string& name) {
  for (int op = 0; op <= static_cast<int>(Op::max_unpool); ++op) {
    for (int dims = 1; dims <= 3; ++dims) {
      if (name != std::string(name_of(static_cast<Op>(op))) + std::to_string(dims) + "d") continue;
      spec.op = static_cast<Op>(op);
      spec.dims = dims;
      return;
    }
  }
  throw RecordingError("unknown op '" + name + "'");
}

void read_arguments(PoolSpec& spec, const Json& args) {
  for (const auto& [name, value] : args.items()) {
    if (name == "kernel_size") {
      spec.kernel_size = dims_of(value);
    } else if (name == "stride") {
      spec.stride = dims_of(value);
    } else if (name == "padding") {
      spec.padding = PaddingList(dims_of(value));
    } else if (name == "dilation") {
      spec.dilation = dims_of(value);
    } else if (name == "output_size") {
      spec.output_size = dims_of(value);
    } else if (name == "output_ratio") {
      for (std::size_t i = 0; i < 3 && (value.is_number() || i < value.size()); ++i) {
        spec.output_ratio[i] = (value.is_number() ? value : value.at(i)).get<double>();
      }
    } else if (name == "ceil_mode") {
      spec.ceil_mode = value.get<bool>();
    } else if (name == "count_include_pad") {
      spec.count_include_pad = value.get<bool>();
    } else if (name == "divisor_override") {
      if (!value.is_null()) spec.divisor_override = value.get<std::int64_t>();
    } else if (name == "norm_type") {
      spec.norm_type = value.get<double>();
    } else {
      throw RecordingError("unknown argument '" + name + "'");
    }
  }
}

Layout layout_named(const std::string& name) {
  if (name == "contiguous") return Layout::planar;
  if (name == "channels_last") return Layout::channels_last;
  if (name == "strided") return Layout::strided;
  throw RecordingError("unknown layout '" + name + "'");
}

Case read_case(const Json& json, const std::string& data) {
  Case one;
  one.id = json.at("id").get<std::int64_t>();
  read_op(one.problem.spec, json.at("op").get<std::string>());
  read_arguments(one.problem.spec, json.at("args"));
  one.problem.layout = layout_named(json.at("layout").get<std::string>());
  one.problem.seed = static_cast<std::uint64_t>(one.id);  // picks among the strided layouts
  const auto values = json.at("values").get<std::string>();
  one.handmade = values == "handmade";
  if (!one.handmade) one.problem.values = value_kind_of(values);
  const double p = one.problem.spec.norm_type;
  one.exact_ties = values == "ties" && (p == 1 || p == 2 || p == 3);
  if (json.contains("error") && !json.at("error").is_null()) one.error = json.at("error").get<std::string>();
  one.input = optional_array(json, "input", data);
  one.output = optional_array(json, "output", data);
  one.indices = optional_array(json, "indices", data);
  one.grad_output = optional_array(json, "grad_output", data);
  one.grad_input = optional_array(json, "grad_input", data);
  one.random_samples = optional_array(json, "random_samples", data);
  if (!one.input) throw RecordingError("the case has no input");
  if (!one.error && !one.output) throw RecordingError("the case has neither output nor error");
  one.problem.dtype = one.input->dtype;
  one.problem.shape = Shape(std::span<const std::int64_t>(one.input->shape));
  return one;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw RecordingError("cannot open " + path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

std::vector<Case> read_recording(const std::string& directory) {
  const std::string path = directory + "/cases.jsonl";
  std::ifstream file(path);
  if (!file) throw RecordingError("cannot open " + path);
  const std::string data = read_file(directory + "/data.bin");
  std::vector<Case> cases;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    try {
      const Json json = Json::parse(line);
      if (number == 1) {
        if (json.at("format") != 1)
          throw RecordingError("format " + json.at("format").dump() + " is not known, only 1");
      } else {
        cases.push_back(read_case(json, data));
      }
    } catch (const std::exception& error) {
      throw RecordingError(path + ", line " + std::to_string(number) + ": " + error.what());
    }
  }
  if (cases.empty()) throw RecordingError(path + " holds no cases");
  return cases;
}

}  // namespace cenote::testing
