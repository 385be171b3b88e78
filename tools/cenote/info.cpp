#include "commands.hpp"
#include "device_memory.hpp"
#include "terminal.hpp"

#include <cenote/executor.hpp>
#include <cenote/plan.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace cenote::tool {

void run_info(const InfoCommand& command) {
  const std::vector<std::string> targets = cpu_targets();
  const int threads = default_executor().concurrency();
  const std::string gpu = cuda_description();
  if (command.json) {
    std::vector<std::string> quoted(targets.size());
    std::transform(targets.begin(), targets.end(), quoted.begin(), json_string);
    fmt::print(
        "{{\"version\": {}, \"targets\": [{}], \"threads\": {}, \"cuda\": {{\"built\": {}, \"available\": {}, "
        "\"device\": {}}}}}\n",
        json_string(kVersion), fmt::join(quoted, ", "), threads, built_with_cuda(), cuda_available(), json_string(gpu));
    return;
  }
  fmt::print("cenote {}\n", kVersion);
  fmt::print("instruction sets  {} (best first; {} is used)\n", fmt::join(targets, " "),
             targets.empty() ? "none" : targets.front());
  fmt::print("threads           {} (OMP_NUM_THREADS or --threads changes it)\n", threads);
  fmt::print("cuda              {}\n", gpu);
  fmt::print("dtypes            f32 f64 f16 bf16 i8 u8 i16 i32 i64\n");
  fmt::print(
      "files             .npy (versions 1.0 to 3.0, C and Fortran order), .png (read 1 to 16 bit, written 8 or 16)\n");
}

}  // namespace cenote::tool
