// How a file's axes are read: which are batch, channels and space, and the array as the library sees it.
#pragma once

#include "arguments.hpp"
#include "arrays.hpp"

#include <cenote/view.hpp>

#include <optional>
#include <string>

namespace cenote::tool {

/// Which logical dimension (0 batch, 1 channel, 2... spatial) each axis of a file is.
struct FileAxes {
  int dims = 2;
  int rank = 4;
  int logical[5] = {};

  int logical_rank() const noexcept { return dims + 2; }
};

/// Ranks dims (one plane), dims + 1 (with channels) and dims + 2 (with a batch) are known; a Failure names `path` otherwise.
FileAxes file_axes(const std::string& path, const Shape& shape, int dims, AxisOrder order);

/// The file's array as the library sees it: N, C, spatial; what the file lacks has size 1.
TensorDesc logical_desc(const FileAxes& axes, DType dtype, const Shape& file_shape, bool fortran_order);
/// The other way: what a result of this logical shape is called in a file with these axes.
Shape file_shape(const FileAxes& axes, const Shape& logical);

/// An input read for an op.
struct Reading {
  AxisOrder order = AxisOrder::channels_first;
  FileAxes axes;
  TensorDesc desc;  ///< logical
};
/// The op's number of spatial axes and the layout, where they are said, else what the file suggests: a picture has two axes and
/// its channels last. Throws Failure where these do not fit the file, or where no op computes in its dtype.
Reading read_for(const ArraySource& source, const OpArguments& op, std::optional<AxisOrder> layout);

}  // namespace cenote::tool
