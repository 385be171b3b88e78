#include "cuda/instances.cuh"

namespace cenote::gpu {

const Kernels& kernels_bf16() { return Instances<__nv_bfloat16>::table; }

}  // namespace cenote::gpu
