// Where a piece's buffers live: in this process's memory, or on the GPU with copies there and back.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cenote::tool {

/// Whether this build can use CUDA at all.
bool built_with_cuda() noexcept;
/// One line about the first GPU ("NVIDIA H200, 139 GiB"), or why there is none.
const char* cuda_description();
bool cuda_available();

/// Memory on the GPU; grows, never shrinks. Throws Failure (device).
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  ~DeviceBuffer();  // NOLINT(performance-trivially-destructible): frees where there is CUDA
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  void* reserve(std::size_t bytes);
  void upload(const void* source, std::size_t bytes);
  void download(void* destination, std::size_t bytes) const;

 private:
  void* data_ = nullptr;
  std::size_t capacity_ = 0;
};

}  // namespace cenote::tool
