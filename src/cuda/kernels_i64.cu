#include "cuda/instances.cuh"

namespace cenote::gpu {

const Kernels& kernels_i64() { return Instances<std::int64_t>::table; }

}  // namespace cenote::gpu
