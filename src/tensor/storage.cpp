#include "tensor/storage.hpp"

#include "tensor/refuse.hpp"

#include <atomic>
#include <cstring>
#include <new>

namespace cenote {

#if defined(CENOTE_HAS_CUDA)
namespace gpu {
void register_device_memory() noexcept;  // calls set_device_memory, once
}
#endif

namespace {

constexpr std::size_t kAlignment = 64;

class CpuMemory final : public DeviceMemory {
 public:
  void* allocate(std::int64_t bytes, Device) const override {
    void* data = ::operator new (static_cast<std::size_t>(bytes), std::align_val_t{kAlignment}, std::nothrow);
    if (data == nullptr) {
      refuse(ErrorCode::out_of_memory, "shape", "cannot allocate " + std::to_string(bytes) + " bytes on the CPU");
    }
    return data;
  }
  void free(void* data, Device) const noexcept override { ::operator delete (data, std::align_val_t{kAlignment}); }
  void copy(void* to, Device, const void* from, Device, std::int64_t bytes) const override {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
};

std::atomic<const DeviceMemory*> cuda_memory{nullptr};

const DeviceMemory& require(Device device) {
  const DeviceMemory* memory = device_memory(device.type);
  if (memory == nullptr) {
    refuse(ErrorCode::device, "device", "device " + to_string(device) + ": this build of cenote has no CUDA backend");
  }
  return *memory;
}

}  // namespace

const DeviceMemory* device_memory(DeviceType type) noexcept {
  if (type == DeviceType::cpu) {
    // Never destroyed: tensors may outlive every static.
    alignas(CpuMemory) static std::byte place[sizeof(CpuMemory)];
    static const CpuMemory* const memory = new (place) CpuMemory;
    return memory;
  }
#if defined(CENOTE_HAS_CUDA)
  gpu::register_device_memory();
#endif
  return cuda_memory.load();
}

void set_device_memory(DeviceType type, const DeviceMemory* memory) noexcept {
  if (type == DeviceType::cuda) cuda_memory.store(memory);
}

std::shared_ptr<Storage> Storage::allocate(std::int64_t bytes, Device device) {
  const DeviceMemory& memory = require(device);
  void* data = memory.allocate(bytes > 0 ? bytes : 1, device);
  return std::make_shared<Storage>(data, device, [&memory, device](void* pointer) { memory.free(pointer, device); });
}

std::shared_ptr<Storage> Storage::wrap(void* data, Device device, Deleter deleter) {
  return std::make_shared<Storage>(data, device, std::move(deleter));
}

void copy_bytes(void* to, Device to_device, const void* from, Device from_device, std::int64_t bytes) {
  if (bytes <= 0) return;
  const Device owner = to_device.type == DeviceType::cpu ? from_device : to_device;
  require(owner).copy(to, to_device, from, from_device, bytes);
}

}  // namespace cenote
