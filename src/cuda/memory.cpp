// Device memory for tensors. Allocations are ordered on the default stream, copies return when they are done.
#include "cuda/device.hpp"
#include "tensor/storage.hpp"

#include <mutex>

namespace cenote::gpu {
namespace {

void require(cudaError_t error, const char* doing) {
  if (error != cudaSuccess) device_failure(error, doing).raise();
}

class CudaMemory final : public DeviceMemory {
 public:
  void* allocate(std::int64_t bytes, Device device) const override {
    const CurrentDevice current(device.index);
    require(current.error(), "choosing the device");
    void* data = nullptr;
    require(cudaMallocAsync(&data, static_cast<std::size_t>(bytes), nullptr), "allocating device memory");
    return data;
  }
  void free(void* data, Device device) const noexcept override {
    const CurrentDevice current(device.index);
    static_cast<void>(cudaFreeAsync(data, nullptr));
  }
  void copy(void* to, Device to_device, const void* from, Device from_device, std::int64_t bytes) const override {
    const CurrentDevice current(to_device.type == DeviceType::cuda ? to_device.index : from_device.index);
    require(current.error(), "choosing the device");
    require(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, nullptr), "copying");
    require(cudaStreamSynchronize(nullptr), "copying");
  }
};

}  // namespace

void register_device_memory() noexcept {
  static const CudaMemory* memory = [] {
    static const CudaMemory instance;
    set_device_memory(DeviceType::cuda, &instance);
    return &instance;
  }();
  static_cast<void>(memory);
}

namespace {
/// Linked in with the library: tensors find the device without a plan having been made.
const bool registered = (register_device_memory(), true);
}  // namespace

}  // namespace cenote::gpu
