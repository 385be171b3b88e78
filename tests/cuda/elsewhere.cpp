#include "cuda/elsewhere.hpp"

#include <cstdio>
#include <cstdlib>

namespace cenote::testing {
namespace {
constexpr std::size_t kArena = std::size_t{1} << 29;
}

void require(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "cuda: %s while %s\n", cudaGetErrorString(error), doing);
  std::abort();
}

Gpu::Gpu(Alignment alignment) : alignment_(alignment) {
  void* arena = nullptr;
  require(cudaMalloc(&arena, kArena), "allocating the arena");
  arena_ = static_cast<char*>(arena);
}

Gpu::~Gpu() { static_cast<void>(cudaFree(arena_)); }

void* Gpu::send(const void* bytes, std::size_t size, std::size_t origin) {
  // Byte `origin` goes to a multiple of 256, or 8 bytes past one: aligned to every element, to no vector.
  const std::size_t wanted = alignment_ == Alignment::vectors ? 0 : 8;
  std::size_t start = used_ + (256 - (used_ + origin) % 256) % 256 + wanted;
  if (start + size > kArena) {
    std::fputs("the arena of the GPU tests is too small for this problem\n", stderr);
    std::abort();
  }
  blocks_.push_back({arena_ + start, size});
  used_ = start + size;
  if (size > 0) require(cudaMemcpy(arena_ + start, bytes, size, cudaMemcpyHostToDevice), "sending a buffer");
  return arena_ + start + origin;
}

void Gpu::fetch(std::size_t number, void* bytes) {
  const Block& block = blocks_[number];
  if (block.size > 0) require(cudaMemcpy(bytes, block.begin, block.size, cudaMemcpyDeviceToHost), "fetching a buffer");
}

void Gpu::forget() {
  blocks_.clear();
  used_ = 0;
}

DeviceArray::DeviceArray(std::int64_t bytes) {
  require(cudaMalloc(&data_, static_cast<std::size_t>(bytes)), "allocating");
}
DeviceArray::~DeviceArray() { static_cast<void>(cudaFree(data_)); }

}  // namespace cenote::testing
