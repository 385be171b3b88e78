#include "cuda/instances.cuh"

namespace cenote::gpu {

const Kernels& kernels_f64() { return Instances<double>::table; }

}  // namespace cenote::gpu
