#include "file_axes.hpp"

#include "failure.hpp"

#include <algorithm>

namespace cenote::tool {

FileAxes file_axes(const std::string& path, const Shape& shape, int dims, AxisOrder order) {
  FileAxes axes{.dims = dims, .rank = shape.rank()};
  if (shape.rank() < dims || shape.rank() > dims + 2) {
    throw Failure::make(
        ExitCode::refused,
        "{}: shape {} has {} dimensions; pooling {} spatial ax{} takes {} to {} (--dims changes the number of axes)",
        path, to_string(shape), shape.rank(), dims, dims == 1 ? "is" : "es", dims, dims + 2);
  }
  const bool batch = shape.rank() == dims + 2, channel = shape.rank() >= dims + 1;
  int next = 0;
  if (batch) axes.logical[next++] = 0;
  if (channel && order == AxisOrder::channels_first) axes.logical[next++] = 1;
  for (int a = 0; a < dims; ++a) axes.logical[next++] = 2 + a;
  if (channel && order == AxisOrder::channels_last) axes.logical[next++] = 1;
  return axes;
}

TensorDesc logical_desc(const FileAxes& axes, DType dtype, const Shape& file_shape, bool fortran_order) {
  const std::int64_t total = std::max<std::int64_t>(element_count(file_shape), 1);
  TensorDesc desc;
  desc.dtype = dtype;
  std::int64_t sizes[5], steps[5];
  std::fill(sizes, sizes + 5, 1);
  std::fill(steps, steps + 5, total);
  std::int64_t step = 1;
  for (int i = 0; i < axes.rank; ++i) {
    const int f = fortran_order ? i : axes.rank - 1 - i;
    sizes[axes.logical[f]] = file_shape[f];
    steps[axes.logical[f]] = step;
    step *= std::max<std::int64_t>(file_shape[f], 1);
  }
  const auto rank = static_cast<std::size_t>(axes.logical_rank());
  desc.shape = Shape(std::span<const std::int64_t>(sizes, rank));
  desc.strides = Shape(std::span<const std::int64_t>(steps, rank));
  return desc;
}

Shape file_shape(const FileAxes& axes, const Shape& logical) {
  std::int64_t sizes[5] = {};
  for (int f = 0; f < axes.rank; ++f) sizes[f] = logical[axes.logical[f]];
  return Shape(std::span<const std::int64_t>(sizes, static_cast<std::size_t>(axes.rank)));
}

Reading read_for(const ArraySource& source, const OpArguments& op, std::optional<AxisOrder> layout) {
  const bool picture = source.picture().has_value();
  Reading reading;
  reading.order = layout.value_or(picture ? AxisOrder::channels_last : AxisOrder::channels_first);
  if (picture && reading.order != AxisOrder::channels_last) {
    throw Failure::make(ExitCode::usage, "--layout: {} is a picture, whose channels are last (nhwc)", source.path());
  }
  if (source.shape().rank() == 0)
    throw Failure::make(ExitCode::refused, "{}: a single number has no axis to pool", source.path());
  if (source.dtype() == DType::u16 || source.dtype() == DType::u32) {
    throw Failure::make(ExitCode::refused, "{}: {} is for indices; no op computes in it, i32 and i64 hold its values",
                        source.path(), name_of(source.dtype()));
  }
  const int dims = picture ? op.said_dims().value_or(2) : spatial_rank(op, source.shape().rank());
  if (picture && dims != 2)
    throw Failure::make(ExitCode::refused, "{}: a picture has 2 spatial axes, not {}", source.path(), dims);
  reading.axes = file_axes(source.path(), source.shape(), dims, reading.order);
  reading.desc = logical_desc(reading.axes, source.dtype(), source.shape(), source.fortran_order());
  return reading;
}

}  // namespace cenote::tool
