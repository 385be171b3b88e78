#include "call.hpp"

#include "terminal.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <cstdio>
#include <string_view>

namespace cenote::tool {

void require(const Status& status, const std::string& path) {
  if (status.ok()) return;
  throw Failure::make(status.code() == ErrorCode::device ? ExitCode::device : ExitCode::refused, "{}: {}", path,
                      status.message());
}

Described describe_whole(const std::string& path, const TensorDesc& input, const PoolSpec& spec,
                         const PlanOptions& options, const std::string& samples) {
  Described described;
  const Status status = describe(Pass::forward, input, spec, options, described);
  require(status, std::string_view(status.argument()) == "random_samples" && !samples.empty() ? samples : path);
  return described;
}

Shape shape_in_file(const std::string& path, const FileAxes& axes, AxisOrder order, const Shape& logical) {
  const Shape shape = file_shape(axes, logical);
  if (format_of(path) == FileFormat::npy) return shape;
  const bool flat = axes.dims == 2 && logical[0] == 1;
  const bool in_order = order == AxisOrder::channels_last || logical[1] == 1;
  if (flat && in_order) return {logical[2], logical[3], logical[1]};
  throw Failure::make(
      ExitCode::output,
      "{}: an array of shape {} is no picture: a .png holds height, width and channels, in this order{}", path,
      to_string(shape), flat ? "; --layout nhwc says that the array has it" : "");
}

Failure bits_without_picture(const std::string& output) {
  return Failure::make(ExitCode::usage, "--bits: {} is no .png; an array keeps its dtype", output);
}

PieceRunner::PieceRunner(const PoolSpec& spec, const Described& whole, const Machine& machine)
    : spec_(spec), whole_(whole), cuda_(machine.cuda), executor_(machine.threads) {}

const Plan& PieceRunner::plan_for(const Piece& piece, const TensorDesc& input, const TensorDesc& output,
                                  const Buffers& buffers) {
  std::vector<std::int64_t> key(piece.pad_begin, piece.pad_begin + 3);
  key.insert(key.end(), piece.pad_end, piece.pad_end + 3);
  for (const TensorDesc* desc : {&input, &output}) {
    key.insert(key.end(), desc->shape.begin(), desc->shape.end());
    key.insert(key.end(), desc->strides.begin(), desc->strides.end());
  }
  if (const auto found = plans_.find(key); found != plans_.end()) return found->second;

  const Device device = cuda_ ? cuda : cpu;
  PlanOptions options;
  options.output = output;
  options.output->device = device;
  if (whole_.problem.with_indices) {
    options.indices = spec_.op == Op::max_unpool ? input : output;
    options.indices->dtype = whole_.problem.index_dtype;
    options.indices->device = device;
  }
  if (buffers.samples_desc) {
    options.random_samples = buffers.samples_desc;
    options.random_samples->device = device;
  }
  TensorDesc placed = input;
  placed.device = device;
  Plan plan = Plan::make(Pass::forward, placed, spec_of(piece, spec_, whole_.problem), options);
  if (!(plan.output_shape() == output.shape)) {
    throw Failure::make(ExitCode::refused,
                        "a piece of the call gives {} where {} was planned; --memory with a larger value avoids pieces",
                        to_string(plan.output_shape()), to_string(output.shape));
  }
  if (explanation_.empty()) explanation_ = plan.explain();
  return plans_.emplace(std::move(key), std::move(plan)).first->second;
}

Status PieceRunner::run(const Piece& piece, const TensorDesc& input, const TensorDesc& output, const Buffers& buffers) {
  const Plan& plan = plan_for(piece, input, output, buffers);
  const bool unpool = spec_.op == Op::max_unpool;
  const bool indices = whole_.problem.with_indices;
  RunArgs args{.input = buffers.input,
               .output = buffers.output,
               .indices = buffers.indices,
               .saved_indices = buffers.saved_indices,
               .random_samples = buffers.random_samples,
               .executor = &executor_};
  const auto bytes_of = [](const TensorDesc& desc, DType dtype) {
    return static_cast<std::size_t>(extent(desc)) * size_of(dtype);
  };
  const std::size_t output_bytes = bytes_of(output, output.dtype);
  const DType index_dtype = whole_.problem.index_dtype;
  if (cuda_) {
    device_input_.upload(buffers.input, bytes_of(input, input.dtype));
    args.input = device_input_.reserve(0);
    args.output = device_output_.reserve(output_bytes);
    if (indices && unpool) {
      device_indices_.upload(buffers.saved_indices, bytes_of(input, index_dtype));
      args.saved_indices = device_indices_.reserve(0);
    } else if (indices) {
      args.indices = device_indices_.reserve(bytes_of(output, index_dtype));
    }
    if (buffers.samples_desc) {
      device_samples_.upload(buffers.random_samples, bytes_of(*buffers.samples_desc, buffers.samples_desc->dtype));
      args.random_samples = device_samples_.reserve(0);
    }
  }
  const Status status = plan.run(args);
  if (cuda_ && status.ok()) {
    device_output_.download(buffers.output, output_bytes);
    if (indices && !unpool) device_indices_.download(buffers.indices, bytes_of(output, index_dtype));
  }
  return status;
}

void report(const Summary& s, const Reporting& reporting) {
  const double rate = s.seconds > 0 ? static_cast<double>(s.bytes) / s.seconds : 0;
  if (reporting.json) {
    fmt::print(
        "{{\"input\": {}, \"output\": {}, {}\"input_shape\": [{}], \"output_shape\": [{}], \"dtype\": \"{}\", "
        "\"bytes\": {}, "
        "\"pieces\": {}, \"seconds\": {:.6f}, \"bytes_per_second\": {:.0f}, \"kernel\": {}}}\n",
        json_string(s.input), json_string(s.output),
        s.indices.empty() ? "" : "\"indices\": " + json_string(s.indices) + ", ", fmt::join(s.input_shape, ", "),
        fmt::join(s.output_shape, ", "), name_of(s.output_desc.dtype), s.bytes, s.pieces, s.seconds, rate,
        json_string(s.kernel));
    std::fflush(stdout);
  } else if (!reporting.quiet && is_terminal(STDERR_FILENO)) {
    fmt::print(stderr, "{} {} -> {} {}{}  {} in {}, {}/s\n", printable(s.input), to_string(s.input_shape),
               printable(s.output), to_string(s.output_shape), s.indices.empty() ? "" : ", " + printable(s.indices),
               human_bytes(static_cast<double>(s.bytes)), human_seconds(s.seconds), human_bytes(rate));
  }
}

}  // namespace cenote::tool
