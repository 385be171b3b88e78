#include "cuda/instances.cuh"

namespace cenote::gpu {

const Kernels& kernels_f16() { return Instances<__half>::table; }

}  // namespace cenote::gpu
