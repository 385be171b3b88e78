#include "cuda/instances.cuh"

namespace cenote::gpu {

const Kernels& kernels_i32() { return Instances<std::int32_t>::table; }

}  // namespace cenote::gpu
