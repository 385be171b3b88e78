// The pieces describe() is made of. Each returns the first rule that is broken.
#pragma once

#include "geometry/problem.hpp"

#include <string>

namespace cenote {

/// The call being checked: who it is, for messages, and what the input looks like once N and C are told apart.
struct Call {
  const PoolSpec& spec;
  Pass pass;
  const TensorDesc& input;
  std::string name;  // "max_pool2d", "max_pool2d backward"
  bool batched = false;
  std::int64_t spatial[3] = {1, 1, 1};  // depth, height, width of the input

  [[gnu::format(printf, 3, 4)]] Status refuse(const char* argument, const char* format, ...) const;
};

#define CENOTE_RETURN_IF_FAILED(expression)                           \
  do {                                                                \
    if (Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

/// Rank, empty dimensions, dtype; fills in call.batched and call.spatial.
Status check_rank(const Call& call);
Status check_input(Call& call);

/// Resolves kernel, stride, padding, dilation or output_size into axes. Missing leading axes have length 1.
Status resolve_axes(const Call& call, Axis (&axis)[3]);

/// The description a caller gave for a tensor, or the default one; checks shape, dtype, device and strides.
Status check_tensor(const Call& call, const char* argument, const std::optional<TensorDesc>& given,
                    const TensorDesc& expected, bool written, TensorDesc& result);

/// Refuses strides of the wrong length and offsets that do not fit in 63 bits; fills in contiguous strides where none are given.
Status check_strides(const Call& call, const char* argument, TensorDesc& desc);

Layout layout_of(const TensorDesc& desc, bool batched, int dims);

/// Dense channels-last strides for (N, C, spatial), batched or not.
bool is_channels_last(const TensorDesc& desc, bool batched, int dims);

}  // namespace cenote
