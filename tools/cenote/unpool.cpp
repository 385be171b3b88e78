#include "call.hpp"
#include "commands.hpp"

#include "geometry/index_math.hpp"

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

/// The first index of a piece that points nowhere, with its place in the file: the library counts in the piece.
Failure wrong_index(const ArraySource& indices, const FileAxes& axes, const Described& whole, const Piece& piece,
                    const TensorDesc& in, const void* data) {
  const Problem& p = whole.problem;
  const bool window = p.index_kind == IndexKind::window;
  const std::int64_t* const no_starts[3] = {};
  std::int64_t at[5] = {};
  for (std::int64_t i = 0; i < in.numel(); ++i) {
    std::int64_t rest = i, offset = 0;
    for (int d = in.rank() - 1; d >= 0; --d) {
      at[d] = rest % in.shape[d];
      rest /= in.shape[d];
      offset += at[d] * in.strides[d];
      at[d] += piece.input_begin[d];
    }
    const std::int64_t index = read_index(data, p.index_dtype, offset);
    std::int64_t place[3] = {0, 0, 0};
    std::copy(at + 2, at + in.rank(), place + 3 - p.dims);
    const bool inside = window ? flat_of_tap(p, windows_of(p, no_starts, place[0], place[1], place[2]), index) >= 0
                               : index >= 0 && index < plane_size(p);
    if (inside) continue;
    const Shape where = file_shape(axes, Shape(std::span<const std::int64_t>(at, static_cast<std::size_t>(in.rank()))));
    if (window) {
      return Failure::make(ExitCode::refused,
                           "{}: tap {} at {} is none of its window's taps inside the plane of {} cells", indices.path(),
                           index, to_string(where), plane_size(p));
    }
    return Failure::make(ExitCode::refused, "{}: index {} at {} is outside the plane, whose {} cells are 0 to {}",
                         indices.path(), index, to_string(where), plane_size(p), plane_size(p) - 1);
  }
  return Failure::make(ExitCode::refused, "{}: an index points outside its plane", indices.path());
}

}  // namespace

void run_unpool(const UnpoolCommand& command) {
  ArraySource source(command.input);
  ArraySource indices(command.indices);
  const Reading reading = read_for(source, command.op, command.layout);
  const FileAxes& axes = reading.axes;
  const TensorDesc& input = reading.desc;
  if (command.bits && format_of(command.output) != FileFormat::png) throw bits_without_picture(command.output);
  if (!(indices.shape() == source.shape()) || indices.fortran_order() != source.fortran_order()) {
    throw Failure::make(ExitCode::refused, "{}: shape {}{}; the values in {} have {}{}", indices.path(),
                        to_string(indices.shape()), indices.fortran_order() ? " in Fortran order" : "", source.path(),
                        to_string(source.shape()), source.fortran_order() ? " in Fortran order" : "");
  }
  PoolSpec spec = to_spec(command.op, axes.dims);
  spec.index_kind = kind_of(command, indices);
  PlanOptions options;
  options.indices = input;
  options.indices->dtype = indices.dtype();
  const Described whole = describe_whole(source.path(), input, spec, options);
  const Shape output_shape = file_shape(axes, whole.output.shape);
  const TensorDesc output = logical_desc(axes, source.dtype(), output_shape, source.fortran_order());
  const int bits = command.bits.value_or(source.picture() ? source.picture()->bits : 8);
  if (same_file(command.output, command.indices)) {
    throw Failure::make(ExitCode::usage, "{}: the output would replace the indices; name another file", command.output);
  }
  ArraySink sink(command.output, source.dtype(), shape_in_file(command.output, axes, reading.order, whole.output.shape),
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
    const auto run = [&] {
      const Status status = runner.run(piece, in, out, buffers);
      if (status.code() == ErrorCode::invalid_index)
        throw wrong_index(indices, axes, whole, piece, in, buffers.saved_indices);
      require(status, source.path());
    };
    if (bytes > command.machine.memory && sink.mappable_offset() >= 0) {
      // A plane larger than the budget is unpooled straight into the file: the kernel writes its pages out as it must.
      const std::int64_t offset =
          first_element(piece.output_begin, output) * static_cast<std::int64_t>(size_of(output.dtype));
      const Mapping mapping = sink.file().map(sink.mappable_offset() + offset, bytes);
      buffers.output = mapping.data();
      run();
    } else {
      buffer.resize(static_cast<std::size_t>(bytes));
      buffers.output = buffer.data();
      if (bytes > 0 && length > 0) run();
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
  report(summary, command.reporting);
}

}  // namespace cenote::tool
