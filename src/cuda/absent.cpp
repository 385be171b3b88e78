// The CUDA backend of a build without a CUDA compiler.
#include "cuda/devices.hpp"
#include "plan/kernel.hpp"

namespace cenote {

int cuda_device_count() noexcept { return 0; }

std::unique_ptr<Kernel> make_cuda_kernel(const Described& described, const PlanOptions&, Status& status) {
  status = Status::failure(ErrorCode::device, "device", "%s: this build of cenote has no CUDA backend",
                           to_string(described.input.device).c_str());
  return nullptr;
}

}  // namespace cenote
