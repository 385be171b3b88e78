// The CUDA runtime as this library sees it: its errors as Status, the current device restored, words for faults.
#pragma once

#include <cenote/error.hpp>

#include <cuda_runtime.h>

namespace cenote::gpu {

/// What the runtime said, as our error. `doing` completes "cuda: ... while <doing>".
Status device_failure(cudaError_t error, const char* doing) noexcept;

/// Makes a device current for a scope.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) noexcept {
    error_ = cudaGetDevice(&before_);
    if (error_ == cudaSuccess && before_ != device) {
      error_ = cudaSetDevice(device);
      changed_ = error_ == cudaSuccess;
    }
  }
  ~CurrentDevice() {
    if (changed_) static_cast<void>(cudaSetDevice(before_));
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  cudaError_t error() const noexcept { return error_; }

 private:
  int before_ = 0;
  bool changed_ = false;
  cudaError_t error_;
};

/// A word of host memory that kernels of every device can write to and the host can read at any time without synchronising.
class FaultWord {
 public:
  FaultWord() = default;
  ~FaultWord();
  FaultWord(const FaultWord&) = delete;
  FaultWord& operator=(const FaultWord&) = delete;

  cudaError_t allocate() noexcept;
  unsigned* address() const noexcept { return word_; }
  /// What was reported since the last call.
  unsigned fetch() const noexcept;

 private:
  unsigned* word_ = nullptr;
};

/// A word of device memory, zero at first.
class DeviceWord {
 public:
  DeviceWord() = default;
  ~DeviceWord();
  DeviceWord(const DeviceWord&) = delete;
  DeviceWord& operator=(const DeviceWord&) = delete;

  cudaError_t allocate() noexcept;  // on the current device
  unsigned* address() const noexcept { return word_; }

 private:
  unsigned* word_ = nullptr;
};

/// Registers device memory for tensors; called when the first plan or tensor asks for the device.
void register_device_memory() noexcept;

}  // namespace cenote::gpu
