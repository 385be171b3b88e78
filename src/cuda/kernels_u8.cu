#include "cuda/instances.cuh"

namespace cenote::gpu {

const Kernels& kernels_u8() { return Instances<std::uint8_t>::table; }

}  // namespace cenote::gpu
