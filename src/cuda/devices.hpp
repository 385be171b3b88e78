#pragma once

namespace cenote {

/// 0 where the build or the machine has none. Provided by the CUDA backend or by its stand-in.
int cuda_device_count() noexcept;

}  // namespace cenote
