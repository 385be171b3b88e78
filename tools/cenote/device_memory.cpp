#include "device_memory.hpp"

#include "failure.hpp"

#if defined(CENOTE_TOOL_CUDA)
#include <cuda_runtime_api.h>
#endif

#include <string>

namespace cenote::tool {

#if defined(CENOTE_TOOL_CUDA)

namespace {
void check(cudaError_t code) {
  if (code != cudaSuccess) throw Failure::make(ExitCode::device, "cuda: {}", cudaGetErrorString(code));
}
}  // namespace

bool built_with_cuda() noexcept { return true; }

bool cuda_available() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

const char* cuda_description() {
  static const std::string text = [] {
    int count = 0;
    if (const cudaError_t code = cudaGetDeviceCount(&count); code != cudaSuccess)
      return std::string(cudaGetErrorString(code));
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) return std::string("none");
    return fmt::format("{}, {} GiB, {} multiprocessors", properties.name, properties.totalGlobalMem >> 30,
                       properties.multiProcessorCount);
  }();
  return text.c_str();
}

DeviceBuffer::~DeviceBuffer() { cudaFree(data_); }

void* DeviceBuffer::reserve(std::size_t bytes) {
  if (bytes > capacity_) {
    cudaFree(data_);
    data_ = nullptr;
    capacity_ = 0;
    check(cudaMalloc(&data_, bytes));
    capacity_ = bytes;
  }
  return data_;
}
void DeviceBuffer::upload(const void* source, std::size_t bytes) {
  reserve(bytes);
  check(cudaMemcpy(data_, source, bytes, cudaMemcpyHostToDevice));
}
void DeviceBuffer::download(void* destination, std::size_t bytes) const {
  check(cudaMemcpy(destination, data_, bytes, cudaMemcpyDeviceToHost));
}

#else

namespace {
[[noreturn]] void refuse() { throw Failure(ExitCode::device, "--device cuda: this build of cenote has no CUDA"); }
}  // namespace

bool built_with_cuda() noexcept { return false; }
bool cuda_available() { return false; }
const char* cuda_description() { return "not in this build"; }
DeviceBuffer::~DeviceBuffer() = default;
void* DeviceBuffer::reserve(std::size_t) { refuse(); }
void DeviceBuffer::upload(const void*, std::size_t) { refuse(); }
void DeviceBuffer::download(void*, std::size_t) const { refuse(); }

#endif

}  // namespace cenote::tool
