// The tests' way to the GPU: buffers in one arena of device memory, at addresses aligned for vectors or on purpose not.
#pragma once

#include "problems/execute.hpp"

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

namespace cenote::testing {

/// Ends the test program on an error of the runtime: nothing that follows would mean anything.
void require(cudaError_t error, const char* doing);

class Gpu final : public Elsewhere {
 public:
  enum class Alignment { vectors, elements };

  explicit Gpu(Alignment alignment);
  ~Gpu() override;
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  Device device() const override { return cuda; }
  void* send(const void* bytes, std::size_t size, std::size_t origin) override;
  void fetch(std::size_t number, void* bytes) override;
  void forget() override;

 private:
  struct Block {
    char* begin;
    std::size_t size;
  };
  Alignment alignment_;
  char* arena_ = nullptr;
  std::size_t used_ = 0;
  std::vector<Block> blocks_;
};

/// Device memory of one test, freed at its end.
class DeviceArray {
 public:
  explicit DeviceArray(std::int64_t bytes);
  ~DeviceArray();
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  template <class T = void>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

}  // namespace cenote::testing
