// What the tables of device functions ask of an element type.
#pragma once

#include "cuda/kernels.hpp"

namespace cenote::gpu {

template <class Parameters>
Function function(void (*entry)(Parameters, Pointers), int rows = 1, int columns = 1, int lanes = 1) {
  return {reinterpret_cast<const void*>(entry), rows, columns, lanes};
}

/// Of kernels that are given their pointers with the parameters.
template <class Parameters>
Function function(void (*entry)(Parameters)) {
  return {reinterpret_cast<const void*>(entry), 1, 1, 1};
}

template <class T>
struct Element {
  static constexpr int kLanes = 16 / static_cast<int>(sizeof(T));
  static constexpr bool kFloating = Number<T>::floating;
  /// Integers are rare enough to be served by the general kernels alone, and f64 but for small square windows.
  static constexpr bool kTuned = kFloating && sizeof(T) <= 4, kDouble = kFloating && sizeof(T) == 8;
  static constexpr bool kBytes = sizeof(T) == 1;

  /// Eight-byte indices of eight channels would be stored in pieces too far apart: four at a time then.
  template <bool kIndices>
  static constexpr int kIndexedLanes = kIndices&& kLanes > 4 ? 4 : kLanes;
};

}  // namespace cenote::gpu
