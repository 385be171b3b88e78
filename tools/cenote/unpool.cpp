#include "call.hpp"
#include "commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace cenote::tool {
namespace {

IndexKind kind_of(const UnpoolCommand& command, const ArraySource& indices) {
  const DType dtype = indices.dtype();
  const bool window = dtype == DType::u8 || dtype == DType::u16 || dtype == DType::u32;
  if (!window && dtype != DType::i64 && dtype != DType::i32) {
    throw Failure::make(ExitCode::refused, "{}: indices are i64, i32, u8, u16 or u32, not {}", indices.path(),
                        name_of(dtype));
  }
  const IndexKind kind = window ? IndexKind::window : dtype == DType::i64 ? IndexKind::flat64 : IndexKind::flat32;
  if (command.index_kind && *command.index_kind != kind) {
    throw Failure::make(ExitCode::usage, "--index-kind {}: {} holds {}, which is {}", name_of(*command.index_kind),
                        indices.path(), name_of(dtype), name_of(kind));
  }
  return kind;
}

}  // namespace

void run_unpool(const UnpoolCommand& command) {
  ArraySource source(command.input);
  ArraySource indices(command.indices);
  const bool picture = source.picture().has_value();
  const AxisOrder order = command.layout.value_or(picture ? AxisOrder::channels_last : AxisOrder::channels_first);
  const int dims = picture ? 2 : spatial_rank(command.op, source.shape().rank());
  const FileAxes axes = file_axes(source.path(), source.shape(), dims, order);
  if (!(indices.shape() == source.shape()) || indices.fortran_order() != source.fortran_order()) {
    throw Failure::make(ExitCode::refused, "{}: shape {}{}; the values in {} have {}{}", indices.path(),
                        to_string(indices.shape()), indices.fortran_order() ? " in Fortran order" : "", source.path(),
                        to_string(source.shape()), source.fortran_order() ? " in Fortran order" : "");
  }
  PoolSpec spec = to_spec(command.op, dims);
  spec.index_kind = kind_of(command, indices);
  const TensorDesc input = logical_desc(axes, source.dtype(), source.shape(), source.fortran_order());
  PlanOptions options;
  options.indices = input;
  options.indices->dtype = indices.dtype();
  const Described whole = describe_whole(source.path(), input, spec, options);
  const Shape output_shape = file_shape(axes, whole.output.shape);
  const TensorDesc output = logical_desc(axes, source.dtype(), output_shape, source.fortran_order());
  const int bits = command.bits.value_or(picture ? source.picture()->bits : 8);
  if (same_file(command.output, command.indices)) {
    throw Failure::make(ExitCode::usage, "{}: the output would replace the indices; name another file", command.output);
  }
  ArraySink sink(command.output, source.dtype(), shape_in_file(command.output, axes, order, whole.output.shape),
                 source.fortran_order(), bits);

  const Pieces pieces(whole, axes, source.fortran_order(), command.machine.memory, false);
  PieceRunner runner(spec, whole, command.machine);
  const std::int64_t total = output.numel() * static_cast<std::int64_t>(size_of(output.dtype));
  Progress progress(command.input, total, !command.reporting.quiet && !command.reporting.json);
  std::vector<std::byte> buffer;
  for (std::int64_t i = 0; i < pieces.count(); ++i) {
    const Piece piece = pieces.at(i);
    const TensorDesc in = input_of(piece, input), out = output_of(piece, output);
    const std::int64_t first = first_element(piece.input_begin, input), length = extent(in);
    const std::int64_t bytes = out.numel() * static_cast<std::int64_t>(size_of(out.dtype));
    PieceRunner::Buffers buffers{.input = length > 0 ? source.load(first, length) : nullptr,
                                 .saved_indices = length > 0 ? indices.load(first, length) : nullptr};
    if (bytes > command.machine.memory && sink.mappable_offset() >= 0) {
      // A plane larger than the budget is unpooled straight into the file: the kernel writes its pages out as it must.
      const std::int64_t offset =
          first_element(piece.output_begin, output) * static_cast<std::int64_t>(size_of(output.dtype));
      const Mapping mapping = sink.file().map(sink.mappable_offset() + offset, bytes);
      buffers.output = mapping.data();
      runner.run(piece, in, out, buffers);
    } else {
      buffer.resize(static_cast<std::size_t>(bytes));
      buffers.output = buffer.data();
      if (bytes > 0 && length > 0) runner.run(piece, in, out, buffers);
      sink.write(buffer);
    }
    progress.add(bytes);
  }
  progress.clear();
  sink.file().finish();
  sink.file().commit();
  const Summary summary{
      .input = command.input,
      .output = command.output,
      .indices = command.indices,
      .input_desc = input,
      .output_desc = output,
      .input_shape = source.shape(),
      .output_shape = output_shape,
      .bytes = total + input.numel() * static_cast<std::int64_t>(size_of(input.dtype) + size_of(indices.dtype())),
      .pieces = pieces.count(),
      .seconds = progress.seconds(),
      .kernel = runner.explanation()};
  if (!(command.output == "-" && command.reporting.json)) report(summary, command.reporting);
}

}  // namespace cenote::tool
