#include "cuda/instances.cuh"

namespace cenote::gpu {

const Kernels& kernels_i8() { return Instances<std::int8_t>::table; }

}  // namespace cenote::gpu
