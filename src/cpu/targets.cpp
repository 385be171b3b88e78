// The instruction sets that were compiled and that this machine has, best first.
#include "cpu/kernels.hpp"

#include <hwy/highway.h>
#include <hwy/targets.h>

namespace cenote::simd {

std::vector<Target> targets() {
  std::vector<Target> result;
  // Highway's tables have one entry where one instruction set was compiled, as with -march=native, and one for each it knows otherwise.
  constexpr bool kSingle = (HWY_TARGETS & (HWY_TARGETS - 1)) == 0;
  auto add = [&](std::int64_t target) {
    hwy::ChosenTarget chosen;
    chosen.Update(target);
    result.push_back({hwy::TargetName(target), kSingle ? 0 : chosen.GetIndex()});
  };
  const std::int64_t supported = hwy::SupportedTargets() & HWY_TARGETS;
  for (std::int64_t bits = supported; bits != 0; bits &= bits - 1) add(bits & -bits);
  return result;
}

}  // namespace cenote::simd
