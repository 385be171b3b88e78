#include "cuda/instances.cuh"

namespace cenote::gpu {

const Kernels& kernels_i16() { return Instances<std::int16_t>::table; }

}  // namespace cenote::gpu
