// The memory behind tensors, on any device. A device backend plugs in by providing a DeviceMemory.
#pragma once

#include <cenote/view.hpp>

#include <cstdint>
#include <functional>
#include <memory>

namespace cenote {

/// What a backend must offer for tensors to live on its device. Failures are thrown as Error.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  /// At least `bytes` bytes (which is not 0), aligned to 64 or better. ErrorCode::out_of_memory when there are none.
  virtual void* allocate(std::int64_t bytes, Device device) const = 0;
  virtual void free(void* data, Device device) const noexcept = 0;
  /// Copies between two devices one of which is this one; returns when the bytes have arrived.
  virtual void copy(void* to, Device to_device, const void* from, Device from_device, std::int64_t bytes) const = 0;
};

/// Null where this build has no such device.
const DeviceMemory* device_memory(DeviceType type) noexcept;
/// Called by a backend, once, before its device is used. The object must live forever.
void set_device_memory(DeviceType type, const DeviceMemory* memory) noexcept;

/// One block of memory, freed by its deleter when the last tensor that uses it is gone.
class Storage {
 public:
  using Deleter = std::function<void(void*)>;

  /// Aligned to 64 bytes. Throws Error: out_of_memory, or device where the build has no such device.
  static std::shared_ptr<Storage> allocate(std::int64_t bytes, Device device);
  /// Memory from elsewhere; a null deleter leaves it to its owner.
  static std::shared_ptr<Storage> wrap(void* data, Device device, Deleter deleter = nullptr);

  Storage(void* data, Device device, Deleter deleter) : data_(data), device_(device), deleter_(std::move(deleter)) {}
  ~Storage() {
    if (deleter_) deleter_(data_);
  }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const noexcept { return data_; }
  Device device() const noexcept { return device_; }

 private:
  void* data_;
  Device device_;
  Deleter deleter_;
};

/// Between any two devices of the build.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device, std::int64_t bytes);

}  // namespace cenote
