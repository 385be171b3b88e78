#include "cpu/gradients/pick_columns_kernel.hpp"

#include "cpu/gradients/pick_columns.hpp"
#include "cpu/thresholds.hpp"
#include "cpu/unit_kernel.hpp"

#include <hwy/cache_control.h>

#include <cstring>
#include <utility>
#include <vector>

namespace cenote::simd {
namespace {

struct PickColumnsPlan {
  RowTensor source, target, indices;
  Axis axis[3];
  std::vector<Window> windows;  // along the width
  std::int64_t channels, size;  // bytes of an element
  // Strides of inputs along the height: more than there are outputs where inputs are left behind the last. Slices are written one after the other, as they lie.
  std::int64_t row_groups;
  std::int64_t inner_first, inner_end;  // outputs of a row all of whose inputs are there
  bool streams;  // the target is written around the caches where it begins with a line: then all its columns do
  PickColumns columns;
  std::size_t bytes;  // of scratch: none
};

/// The inputs of one group of rows of a slice, for every group of columns.
class OwnedInputs {
 public:
  /// `tap`: along the depth, -1 between windows; `to`: the slice.
  OwnedInputs(const PickColumnsPlan& plan, char* to, std::int64_t tap, std::int64_t oh) : plan_(plan) {
    const Axis& height = plan.axis[1];
    for (std::int64_t y = 0; y < height.stride; ++y) {
      const std::int64_t in = oh * height.stride - height.pad_begin + y;
      if (in < 0 || in >= height.input) continue;
      const bool gap = tap < 0 || y >= height.kernel;
      rows_[count_++] = {to + (in * plan.target.height - plan.axis[2].pad_begin * plan.channels) * plan.size,
                         gap ? -1 : (tap * height.kernel + y) * plan.axis[2].kernel};
    }
  }

  /// Those that lie in the input. Returns how many.
  int find(std::int64_t group, OwnedInput* inputs) const {
    const Axis& width = plan_.axis[2];
    int count = 0;
    for (int row = 0; row < count_; ++row) {
      for (std::int64_t x = 0; x < width.stride; ++x) {
        const std::int64_t in_x = group * width.stride - width.pad_begin + x;
        if (in_x < 0 || in_x >= width.input) continue;
        const bool gap = rows_[row].number < 0 || x >= width.kernel;
        inputs[count++] = {rows_[row].first + x * plan_.channels * plan_.size,
                           gap ? kGapTap : static_cast<std::uint8_t>(rows_[row].number + x)};
      }
    }
    return count;
  }

  /// Those of all groups from this one on, which no output sees.
  void zero_from(std::int64_t group) const {
    const Axis& width = plan_.axis[2];
    const std::int64_t column = plan_.channels * plan_.size;
    const std::int64_t first = larger(group * width.stride, width.pad_begin), end = width.pad_begin + width.input;
    if (first >= end) return;
    for (int row = 0; row < count_; ++row)
      std::memset(rows_[row].first + first * column, 0, static_cast<std::size_t>((end - first) * column));
  }

 private:
  struct Row {
    char* first;          // of the first group's inputs, where the padding would be
    std::int64_t number;  // of the first tap that it is; -1 where it lies between windows
  };
  const PickColumnsPlan& plan_;
  Row rows_[kMostOwned];
  int count_ = 0;
};

/// Units [begin, end), the inputs of a row of outputs each. False where an index is wrong.
bool pick_rows(const PickColumnsPlan& plan, const RowPointers& pointers, std::int64_t begin, std::int64_t end, char*) {
  const Axis &depth = plan.axis[0], &height = plan.axis[1], &width = plan.axis[2];
  const RowTensor &source = plan.source, &taken = plan.indices;
  PickedRow row{};
  row.channels = plan.channels;
  row.apart = width.stride * plan.channels;
  row.streams = plan.streams && reinterpret_cast<std::uintptr_t>(pointers.target) % 64 == 0;
  bool valid = true;
  OwnedInput inputs[kMostOwned];
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t oh = unit % plan.row_groups, z = unit / plan.row_groups % depth.input,
                       n = unit / plan.row_groups / depth.input;
    const std::int64_t od = (z + depth.pad_begin) / depth.stride, tap = (z + depth.pad_begin) % depth.stride;
    const bool seen = od < depth.output && tap < depth.kernel;
    char* to = static_cast<char*>(pointers.target) + (n * plan.target.outer_major + z * plan.target.depth) * plan.size;
    const OwnedInputs owned(plan, to, seen ? tap : -1, oh);
    std::int64_t outputs = 0;
    if (seen && oh < height.output) {
      outputs = width.output;
      row.gradients = static_cast<const char*>(pointers.source) +
                      (n * source.outer_major + od * source.depth + oh * source.height) * plan.size;
      row.taps = static_cast<const std::uint8_t*>(pointers.indices) + n * taken.outer_major + od * taken.depth +
                 oh * taken.height;
      const Window deep = window(depth, od);
      valid = (deep.first != z || plan.columns.check(plan.axis, plan.windows.data(), outputs, plan.channels, deep,
                                                     window(height, oh), row.taps)) &&
              valid;
    }
    for (std::int64_t group = 0; group < outputs;) {
      const std::int64_t next = group == plan.inner_first && plan.inner_end > group ? plan.inner_end : group + 1;
      plan.columns.pick(row, group, next, inputs, owned.find(group, inputs));
      group = next;
    }
    owned.zero_from(outputs);
  }
  if (row.streams) hwy::FlushStream();
  return valid;
}

}  // namespace

std::unique_ptr<Kernel> make_pick_columns_kernel(const Described& described, const Target& target,
                                                 const RowWork* rows) {
  if (rows == nullptr || !rows->reads_indices()) return nullptr;
  const RowPlan& row_plan = rows->plan();
  const Problem& p = row_plan.problem;
  PickColumnsPlan plan{};
  plan.columns = pick_columns(target.index, size_of(p.dtype));
  if (plan.columns.pick == nullptr || row_plan.inner == 1 || row_plan.inner < plan.columns.lanes ||
      !row_plan.target.dense)
    return nullptr;
  for (int a = 0; a < 3; ++a) {
    const Axis& axis = p.axis[a];
    if (axis.kernel > axis.stride || (axis.kernel > 1 && axis.dilation != 1)) return nullptr;
    plan.axis[a] = axis;
  }
  const Axis &height = p.axis[1], &width = p.axis[2];
  if (height.stride > kMostOwned || width.stride > kMostOwned / height.stride) return nullptr;
  plan.row_groups = ceil_div(height.input + height.pad_begin, height.stride);
  plan.inner_first = smaller(ceil_div(width.pad_begin, width.stride), width.output);
  plan.inner_end = smaller((width.input + width.pad_begin) / width.stride, width.output);
  plan.source = row_plan.source;
  plan.target = row_plan.target;
  plan.indices = row_plan.indices;
  plan.channels = row_plan.inner;
  plan.size = static_cast<std::int64_t>(size_of(p.dtype));
  plan.windows = row_plan.windows;
  const bool sparse = p.axis[0].kernel * height.kernel * width.kernel >= kSparseTaps;
  plan.streams = described.bytes_moved >= (sparse ? kStreamSparseBytes : kStreamGradientBytes) && row_plan.whole_lines;
  const std::int64_t units = p.batch * p.axis[0].input * plan.row_groups;
  return make_unit_kernel(
      described, std::move(plan), units, pick_rows,
      "vectors across channels: each gradient is stored to the inputs of its window, as zeros where its index names "
      "another, because windows share nothing");
}

}  // namespace cenote::simd
