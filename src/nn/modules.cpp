// How modules print themselves, and what their constructors refuse.
#include "tensor/refuse.hpp"

#include <cenote/nn.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ostream>

namespace cenote::nn {
namespace {

std::string python(const Dim& dim) { return dim.is_keep ? "None" : std::to_string(dim.value); }
std::string python(bool value) { return value ? "True" : "False"; }

std::string python(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (std::isnan(value)) return "nan";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;  // shortest that reads back the same
  return {text, end};
}

/// 3, (3, 2) or (3,); empty: None.
std::string python(const DimList& list) {
  if (list.empty()) return "None";
  if (list.scalar) return python(list.values[0]);
  std::string text = "(";
  const int count = std::min(list.count, DimList::kCapacity);
  for (int i = 0; i < count; ++i) text += (i > 0 ? ", " : "") + python(list.values[i]);
  return text + (list.count == 1 ? ",)" : list.count > count ? ", ...)" : ")");
}

std::string python(const PaddingList& padding) {
  switch (padding.mode) {
    case PaddingList::Mode::symmetric: break;
    case PaddingList::Mode::asymmetric:
      return std::string("(").append(python(padding.begin)) + ", " + python(padding.end) + ")";
    case PaddingList::Mode::same_upper: return "'same_upper'";
    case PaddingList::Mode::same_lower: return "'same_lower'";
  }
  return python(padding.begin);
}

/// Some of PyTorch's constructors write one number out for each axis.
DimList per_axis(const DimList& list, int dims) {
  if (!list.scalar) return list;
  const std::vector<Dim> values(static_cast<std::size_t>(dims), list.values[0]);
  return DimList(std::span<const Dim>(values));
}

void print(std::string& text, const Module& module, std::size_t indent) {
  const auto children = module.children();
  const std::string extra = module.extra_repr();
  text += module.name() + "(" + extra;
  if (!children.empty()) {
    const std::string margin(indent, ' ');
    text += "\n";
    for (const auto& [name, child] : children) {
      text += margin + "  (" + name + "): ";
      print(text, *child, indent + 2);
      text += "\n";
    }
    text += margin;
  }
  text += ")";
}

}  // namespace

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> all;
  for (const auto& [name, child] : children()) {
    for (const Tensor& parameter : child->parameters()) all.push_back(parameter);
  }
  return all;
}

void Module::zero_grad() const {
  for (const Tensor& parameter : parameters()) parameter.zero_grad();
}

std::string to_string(const Module& module) {
  std::string text;
  print(text, module, 0);
  return text;
}

std::ostream& operator<<(std::ostream& stream, const Module& module) { return stream << to_string(module); }

namespace detail {

std::string module_name(const PoolSpec& spec) {
  const char* name = "";
  switch (spec.op) {
    case Op::max_pool: name = "MaxPool"; break;
    case Op::min_pool: name = "MinPool"; break;
    case Op::avg_pool: name = "AvgPool"; break;
    case Op::sum_pool: name = "SumPool"; break;
    case Op::lp_pool: name = "LPPool"; break;
    case Op::adaptive_max_pool: name = "AdaptiveMaxPool"; break;
    case Op::adaptive_avg_pool: name = "AdaptiveAvgPool"; break;
    case Op::fractional_max_pool: name = "FractionalMaxPool"; break;
    case Op::max_unpool: name = "MaxUnpool"; break;
  }
  return name + std::to_string(spec.dims) + "d";
}

std::string module_repr(const PoolSpec& spec) {
  const DimList stride = spec.stride.empty() ? spec.kernel_size : spec.stride;
  const auto window = [](const std::string& kernel_size, const std::string& strides, const std::string& padding) {
    return "kernel_size=" + kernel_size + ", stride=" + strides + ", padding=" + padding;
  };
  switch (spec.op) {
    case Op::max_pool:
    case Op::min_pool:
      return window(python(spec.kernel_size), python(stride), python(spec.padding)) +
             ", dilation=" + python(spec.dilation) + ", ceil_mode=" + python(spec.ceil_mode);
    case Op::avg_pool:
      if (spec.dims == 1 && spec.padding.mode == PaddingList::Mode::symmetric) {
        return window(python(per_axis(spec.kernel_size, 1)), python(per_axis(stride, 1)),
                      python(per_axis(spec.padding.begin, 1)));
      }
      return window(python(spec.kernel_size), python(stride), python(spec.padding));
    case Op::sum_pool: return window(python(spec.kernel_size), python(stride), python(spec.padding));
    case Op::lp_pool:
      return "norm_type=" + python(spec.norm_type) + ", kernel_size=" + python(spec.kernel_size) +
             ", stride=" + python(spec.stride) + ", ceil_mode=" + python(spec.ceil_mode);
    case Op::adaptive_max_pool:
    case Op::adaptive_avg_pool: return "output_size=" + python(spec.output_size);
    case Op::fractional_max_pool: return {};  // PyTorch prints nothing here
    case Op::max_unpool:
      return window(python(per_axis(spec.kernel_size, spec.dims)), python(per_axis(stride, spec.dims)),
                    python(per_axis(spec.padding.begin, spec.dims)));
  }
  return {};
}

void check_fractional(const PoolSpec& spec) {
  const std::string name = module_name(spec);
  const int entries = std::min(spec.kernel_size.count, DimList::kCapacity);
  for (int i = 0; i < entries; ++i) {
    if (spec.kernel_size.values[i].value <= 0) {
      refuse("kernel_size", name + ": kernel_size must be greater than 0, got " + python(spec.kernel_size));
    }
  }
  const bool has_ratio = spec.output_ratio[0].has_value();
  if (has_ratio == !spec.output_size.empty()) {
    refuse("output_size", name + ": exactly one of output_size and output_ratio must be given, " +
                              (has_ratio ? "both are" : "neither is"));
  }
  for (int i = 0; has_ratio && i < spec.dims; ++i) {
    const double ratio = spec.output_ratio[i].value_or(0);
    if (!(ratio > 0 && ratio < 1)) {
      refuse("output_ratio", name + ": output_ratio must lie between 0 and 1, bounds excluded, got " + python(ratio));
    }
  }
}

}  // namespace detail
}  // namespace cenote::nn
