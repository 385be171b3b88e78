// DLPack, in and out: the memory layout of its structs as version 1.0 of the specification gives it, and conversions.
//
// The structs are declared here under cenote's own names, so that <dlpack/dlpack.h> may be included beside this header; a
// pointer to one of its structs may be cast to a pointer to the struct of the same shape here.
#pragma once

#include <cenote/error.hpp>
#include <cenote/export.hpp>
#include <cenote/view.hpp>

#include <cstdint>

namespace cenote::dlpack {

struct DeviceTag {
  std::int32_t type;  ///< 1: CPU, 2: CUDA, 3: pinned host memory, 13: managed memory
  std::int32_t index;
};
struct DataTag {
  std::uint8_t code;  ///< 0: signed, 1: unsigned, 2: floating point, 4: bfloat
  std::uint8_t bits;
  std::uint16_t lanes;
};
/// DLTensor
struct PlainTensor {
  void* data;
  DeviceTag device;
  std::int32_t rank;
  DataTag dtype;
  std::int64_t* shape;
  std::int64_t* strides;  ///< in elements; null: row-major
  std::uint64_t byte_offset;
};
/// DLManagedTensor
struct ManagedTensor {
  PlainTensor tensor;
  void* manager;
  void (*deleter)(ManagedTensor*);
};
struct Version {
  std::uint32_t major, minor;
};
/// DLManagedTensorVersioned
struct VersionedTensor {
  Version version;
  void* manager;
  void (*deleter)(VersionedTensor*);
  std::uint64_t flags;  ///< bit 0: read-only, bit 1: a copy
  PlainTensor tensor;
};

/// The tensor as a view; who owns it does not change. Status: dtype, device, rank or version that cenote does not have.
CENOTE_API Status view_of(const PlainTensor& tensor, TensorView& view) noexcept;
CENOTE_API Status view_of(const ManagedTensor& tensor, TensorView& view) noexcept;
CENOTE_API Status view_of(const VersionedTensor& tensor, TensorView& view) noexcept;

/// A struct on the heap for somebody's memory; its deleter calls release(owner), unless null, and frees the struct. Null with a
/// failed status for a dtype DLPack does not have or where memory is short.
CENOTE_API ManagedTensor* managed(const TensorView& view, void* owner, void (*release)(void*), Status& status) noexcept;
CENOTE_API VersionedTensor* versioned(const TensorView& view, void* owner, void (*release)(void*),
                                      Status& status) noexcept;

}  // namespace cenote::dlpack
