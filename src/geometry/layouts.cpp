// Where tensors lie: default layouts, and checks of those that callers bring.
#include "geometry/checked.hpp"
#include "geometry/checks.hpp"

#include <cstdlib>

namespace cenote {
namespace {

/// Conservative and exact for the layouts that occur: sorted by stride, each step must clear everything below it.
bool elements_share_memory(const TensorDesc& desc) {
  struct Extent {
    std::int64_t stride, size;
  };
  Extent extents[kMaxRank];
  int count = 0;
  for (int i = 0; i < desc.rank(); ++i) {
    if (desc.shape[i] == 0) return false;
    if (desc.shape[i] == 1) continue;
    int at = count++;  // insertion keeps the strides ascending
    const Extent extent{std::llabs(desc.strides[i]), desc.shape[i]};
    for (; at > 0 && extents[at - 1].stride > extent.stride; --at) extents[at] = extents[at - 1];
    extents[at] = extent;
  }
  std::int64_t reach = 0;
  for (int i = 0; i < count; ++i) {
    if (extents[i].stride <= reach) return true;
    reach += extents[i].stride * (extents[i].size - 1);
  }
  return false;
}

}  // namespace

Status check_strides(const Call& call, const char* argument, TensorDesc& desc) {
  std::int64_t count = 1;
  for (std::int64_t size : desc.shape) {
    if (size < 0)
      return call.refuse(argument, "%s has a negative size in its shape %s", argument, to_string(desc.shape).c_str());
    if (!checked_mul(count, larger(size, 1), count)) {
      return call.refuse(argument, "the number of elements of %s's shape %s does not fit in 63 bits", argument,
                         to_string(desc.shape).c_str());
    }
  }
  std::int64_t bytes = 0;
  if (!checked_mul(count, static_cast<std::int64_t>(size_of(desc.dtype)), bytes)) {
    return call.refuse(argument, "the bytes of %s's shape %s do not fit in 63 bits", argument,
                       to_string(desc.shape).c_str());
  }
  if (desc.strides.empty()) {
    desc.strides = contiguous_strides(desc.shape);
    return {};
  }
  if (desc.strides.rank() != desc.rank()) {
    return call.refuse(argument, "%s has %d strides for %d dimensions", argument, desc.strides.rank(), desc.rank());
  }
  std::int64_t reach = 0;
  for (int i = 0; i < desc.rank(); ++i) {
    std::int64_t extent = 0;
    if (desc.shape[i] <= 1) continue;
    if (desc.strides[i] == INT64_MIN || !checked_mul(std::llabs(desc.strides[i]), desc.shape[i] - 1, extent) ||
        !checked_add(reach, extent, reach)) {
      return call.refuse(argument, "the strides %s of %s reach beyond 63 bits", to_string(desc.strides).c_str(),
                         argument);
    }
  }
  if (!checked_add(reach, 1, reach) || !checked_mul(reach, static_cast<std::int64_t>(size_of(desc.dtype)), reach)) {
    return call.refuse(argument, "the strides %s of %s reach beyond 63 bits", to_string(desc.strides).c_str(),
                       argument);
  }
  return {};
}

Status check_tensor(const Call& call, const char* argument, const std::optional<TensorDesc>& given,
                    const TensorDesc& expected, bool written, TensorDesc& result) {
  if (!given) {
    result = expected;
    return check_strides(call, argument, result);
  }
  result = *given;
  if (result.dtype != expected.dtype) {
    return call.refuse(argument, "%s must have dtype %s, got %s", argument, name_of(expected.dtype),
                       name_of(result.dtype));
  }
  if (!(result.shape == expected.shape)) {
    return call.refuse(argument, "%s must have shape %s, got %s", argument, to_string(expected.shape).c_str(),
                       to_string(result.shape).c_str());
  }
  if (result.device != expected.device) {
    return call.refuse(argument, "%s must be on %s like the input, got %s", argument,
                       to_string(expected.device).c_str(), to_string(result.device).c_str());
  }
  CENOTE_RETURN_IF_FAILED(check_strides(call, argument, result));
  if (written && elements_share_memory(result)) {
    return call.refuse(argument, "two elements of %s share memory (shape %s, strides %s): it cannot be written to",
                       argument, to_string(result.shape).c_str(), to_string(result.strides).c_str());
  }
  return {};
}

Layout layout_of(const TensorDesc& desc, bool batched, int dims) {
  const int channel = batched ? 1 : 0;
  Layout layout{batched ? desc.strides[0] : 0, desc.strides[channel], 0, 0, 0};
  std::int64_t* axes[3] = {&layout.d, &layout.h, &layout.w};
  for (int i = 0; i < dims; ++i) *axes[3 - dims + i] = desc.strides[channel + 1 + i];
  return layout;
}

bool is_channels_last(const TensorDesc& desc, bool batched, int dims) {
  if (batched) return dims > 1 && desc.is_channels_last();
  if (dims != 3) return false;  // PyTorch: an unbatched 2d input is never channels-last
  TensorDesc with_batch = desc;
  with_batch.shape = {1, desc.shape[0], desc.shape[1], desc.shape[2], desc.shape[3]};
  with_batch.strides = {0, desc.strides[0], desc.strides[1], desc.strides[2], desc.strides[3]};
  return with_batch.is_channels_last();
}

}  // namespace cenote
