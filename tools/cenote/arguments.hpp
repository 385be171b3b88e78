// From what a person types ("3x2", "1:2", "same", "max_pool2d") to the library's options.
#pragma once

#include <cenote/options.hpp>
#include <cenote/view.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cenote::tool {

/// "3", "3,2", "3x2"; "keep" (or "none") where an axis keeps its size. `option` names the option in the failure.
DimList parse_dims(const std::string& option, std::string_view text);
/// The same for a result's size, which cannot be negative.
DimList parse_output_size(const std::string& option, std::string_view text);
/// "1", "1,2", "0:1,2:3" (begin:end per axis), "same" or "same-upper", "same-lower".
PaddingList parse_padding(const std::string& option, std::string_view text);
/// "1x64x112x112" or "1,64,112,112"; sizes of at least 0.
Shape parse_shape(const std::string& option, std::string_view text);
/// "512M", "2G", "65536": bytes.
std::int64_t parse_bytes(const std::string& option, std::string_view text);
std::int64_t parse_integer(const std::string& option, std::string_view text);
double parse_number(const std::string& option, std::string_view text);
std::vector<std::string_view> split(std::string_view text, std::string_view separators);

/// The closest of `known` where it is close enough to have been meant; empty otherwise.
std::string closest(std::string_view given, std::span<const std::string> known);
/// ", did you mean 'x'?", or nothing.
std::string did_you_mean(std::string_view given, std::span<const std::string> known);

/// How a file's axes are read.
enum class AxisOrder : std::uint8_t { channels_first, channels_last };
AxisOrder parse_layout(std::string_view text);
IndexKind parse_index_kind(std::string_view text);

/// An op with its arguments, before the input's rank is known.
struct OpArguments {
  Op op = Op::max_pool;
  bool global = false;              ///< global-max, global-avg: adaptive with every output size 1
  std::optional<int> dims;          ///< from --dims
  std::optional<int> dims_in_name;  ///< from a name such as max_pool2d
  std::optional<DimList> kernel_size, stride, dilation, output_size;
  std::optional<PaddingList> padding;
  std::vector<double> output_ratio;
  bool ceil_mode = false;
  bool exclude_pad = false;
  std::optional<std::int64_t> divisor_override;
  std::optional<double> norm_type;

  std::optional<int> said_dims() const { return dims ? dims : dims_in_name; }
};

/// Sets op, global and (for names that say it) dims: "max", "avg", "lp", "adaptive-max", "fractional", "max_pool2d", "MaxPool2d", ...
/// `unpool`: whether a failure names that op too.
void parse_op(std::string_view text, bool unpool, OpArguments& arguments);
/// The ops' short names.
std::vector<std::string> op_names(bool unpool);

/// Refuses options the op does not have and missing ones that it needs, naming the option.
void check_op_arguments(const OpArguments& arguments);

/// The number of spatial axes: said, or the length of a list, or what the rank suggests (1: 1, 2 to 4: 2, 5: 3).
int spatial_rank(const OpArguments& arguments, int rank);

PoolSpec to_spec(const OpArguments& arguments, int dims);

/// How the command would be typed, for headings: "max pooling, kernel_size 3, stride 2".
std::string describe_in_words(const PoolSpec& spec);
std::string to_string(const DimList& list);

}  // namespace cenote::tool
