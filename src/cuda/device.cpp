#include "cuda/device.hpp"

#include "cuda/devices.hpp"

#include <atomic>
#include <mutex>
#include <vector>

namespace cenote::gpu {

Status device_failure(cudaError_t error, const char* doing) noexcept {
  const ErrorCode code = error == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::device;
  return Status::failure(code, "device", "cuda: %s (%s) while %s", cudaGetErrorString(error), cudaGetErrorName(error),
                         doing);
}

namespace {

/// Pinning pages costs much more than the word a plan needs: pages are shared and kept.
class WordPool {
 public:
  cudaError_t take(unsigned*& word) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) {
      constexpr std::size_t kWords = 1024;
      void* page = nullptr;
      const cudaError_t error =
          cudaHostAlloc(&page, kWords * sizeof(unsigned), cudaHostAllocMapped | cudaHostAllocPortable);
      if (error != cudaSuccess) return error;
      try {
        free_.reserve(free_.capacity() + kWords);
      } catch (...) {
        static_cast<void>(cudaFreeHost(page));
        return cudaErrorMemoryAllocation;
      }
      for (std::size_t i = 0; i < kWords; ++i) free_.push_back(static_cast<unsigned*>(page) + i);
    }
    word = free_.back();
    free_.pop_back();
    *word = 0;
    return cudaSuccess;
  }
  void give_back(unsigned* word) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(word);  // never beyond the capacity reserved when it was made
  }

 private:
  std::mutex mutex_;
  std::vector<unsigned*> free_;
};

WordPool& words() {
  static WordPool* pool = new WordPool;  // outlives every plan with static storage
  return *pool;
}

}  // namespace

FaultWord::~FaultWord() {
  if (word_ != nullptr) words().give_back(word_);
}
cudaError_t FaultWord::allocate() noexcept { return words().take(word_); }
unsigned FaultWord::fetch() const noexcept {
  if (word_ == nullptr || std::atomic_ref<unsigned>(*word_).load(std::memory_order_relaxed) == 0) return 0;
  return std::atomic_ref<unsigned>(*word_).exchange(0);
}

DeviceWord::~DeviceWord() {
  if (word_ != nullptr) static_cast<void>(cudaFree(word_));
}
cudaError_t DeviceWord::allocate() noexcept {
  void* data = nullptr;
  cudaError_t error = cudaMalloc(&data, sizeof(unsigned));
  if (error != cudaSuccess) return error;
  word_ = static_cast<unsigned*>(data);
  error = cudaMemset(word_, 0, sizeof(unsigned));
  return error == cudaSuccess ? cudaStreamSynchronize(nullptr) : error;
}

}  // namespace cenote::gpu

namespace cenote {

int cuda_device_count() noexcept {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

}  // namespace cenote
