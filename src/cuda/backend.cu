// Plans on a CUDA device: what they hold, and running them.
#include "cuda/choose.hpp"
#include "cuda/device.hpp"

namespace cenote::gpu {
namespace {

class CudaKernel final : public Kernel {
 public:
  CudaKernel(const Described& described) : problem_(described.problem), device_(described.input.device.index) {}

  Status prepare() {
    register_device_memory();
    int devices = 0;
    cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess) return device_failure(error, "looking for devices");
    if (device_ < 0 || device_ >= devices) {
      return Status::failure(ErrorCode::device, "device", "cuda:%d does not exist: this machine has %d CUDA device%s",
                             device_, devices, devices == 1 ? "" : "s");
    }
    if (Status status = choose(problem_, launches_); !status.ok()) return status;
    const CurrentDevice current(device_);
    error = current.error();
    // Loading code now keeps it out of run(), where a capture may be under way.
    for (const Launch* launch : {&launches_.vector, &launches_.scalar, &launches_.then}) {
      cudaFuncAttributes attributes{};
      if (error == cudaSuccess && launch->entry != nullptr) error = cudaFuncGetAttributes(&attributes, launch->entry);
      if (error == cudaSuccess && launch->shared_bytes + attributes.sharedSizeBytes > (48 << 10)) {
        // The same for all plans, which share the function.
        error =
            cudaFuncSetAttribute(launch->entry, cudaFuncAttributeMaxDynamicSharedMemorySize, launch->most_shared_bytes);
      }
    }
    int major = 0;
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device_);
    early_ = major >= 9;
    if (error == cudaSuccess && (problem_.with_indices || problem_.op == Op::fractional_max_pool))
      error = fault_.allocate();
    if (error == cudaSuccess && launches_.then.entry != nullptr) error = irregular_.allocate();
    if (error != cudaSuccess) return device_failure(error, "preparing a plan");
    target = "cuda";
    explain = "cuda: " + launches_.name;
    if (launches_.vector.lanes > 1) explain += ", " + std::to_string(launches_.vector.lanes) + " channels at once";
    return {};
  }

  Status run(const RunArgs& args) const noexcept override {
    if (Status status = check(); !status.ok()) return status;
    const CurrentDevice current(device_);
    if (current.error() != cudaSuccess) return device_failure(current.error(), "choosing the device");
    Pointers at{args.input,       args.output,     args.indices,     args.saved_indices,  args.random_samples,
                args.grad_output, args.grad_input, fault_.address(), irregular_.address()};
    if (launches_.mirrored) {
      at.input = args.grad_output;
      at.output = args.grad_input;
    }
    const auto stream = static_cast<cudaStream_t>(args.stream);
    const bool vector = launches_.vector.entry != nullptr && is_aligned(at);
    if (vector && launches_.aligned_unpool) {
      at.grad_output = args.input;
      at.grad_input = args.output;
    }
    cudaError_t error = run_launch(vector ? launches_.vector : launches_.scalar, launches_.problem, at, early_, stream);
    if (error == cudaSuccess && launches_.then.entry != nullptr)
      error = run_launch(launches_.then, launches_.problem, at, early_, stream);
    return error == cudaSuccess ? Status() : device_failure(error, "launching a kernel");
  }

  Status check() const noexcept override {
    switch (fault_.fetch()) {
      case 0: return {};
      case kFaultSample:
        return Status::failure(ErrorCode::invalid_argument, "random_samples",
                               "%s%dd: an earlier run of this plan met a random sample outside [0, 1)",
                               name_of(problem_.op), problem_.dims);
      default:
        return Status::failure(
            ErrorCode::invalid_index, "saved_indices",
            "%s%dd%s: an earlier run of this plan met an index outside its %s", name_of(problem_.op), problem_.dims,
            problem_.pass == Pass::backward ? " backward" : "",
            problem_.op == Op::max_unpool || problem_.op == Op::fractional_max_pool ? "plane" : "window");
    }
  }

 private:
  static bool is_aligned(const Pointers& at) noexcept {
    std::uintptr_t all = 0;
    for (const void* pointer : {at.input, static_cast<const void*>(at.output), static_cast<const void*>(at.indices),
                                at.saved_indices, at.grad_output, static_cast<const void*>(at.grad_input)}) {
      all |= reinterpret_cast<std::uintptr_t>(pointer);
    }
    return all % 16 == 0;
  }

  Problem problem_;
  int device_;
  bool early_ = false;  // what wait_for_grid_before waits for
  Launches launches_;
  FaultWord fault_;
  DeviceWord irregular_;
};

}  // namespace
}  // namespace cenote::gpu

namespace cenote {

std::unique_ptr<Kernel> make_cuda_kernel(const Described& described, const PlanOptions&, Status& status) {
  auto kernel = std::make_unique<gpu::CudaKernel>(described);
  status = kernel->prepare();
  if (!status.ok()) return nullptr;
  return kernel;
}

}  // namespace cenote
