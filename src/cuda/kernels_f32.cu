#include "cuda/instances.cuh"

namespace cenote::gpu {

const Kernels& kernels_f32() { return Instances<float>::table; }

}  // namespace cenote::gpu
