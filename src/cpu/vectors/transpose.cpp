// The transposers for every group and element size, once per instruction set.
#include "cpu/vectors/transpose.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/vectors/transpose.cpp"
#include <hwy/foreach_target.h>

#include "cpu/vectors/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

template <int kGroup>
Transposer TransposerOfSize(std::size_t size) {
  switch (size) {
    case 1: return {PlanesToColumns<kGroup, std::uint8_t>, ColumnsToPlanes<kGroup, std::uint8_t>};
    case 2: return {PlanesToColumns<kGroup, std::uint16_t>, ColumnsToPlanes<kGroup, std::uint16_t>};
    case 4: return {PlanesToColumns<kGroup, std::uint32_t>, ColumnsToPlanes<kGroup, std::uint32_t>};
    default: return {PlanesToColumns<kGroup, std::uint64_t>, ColumnsToPlanes<kGroup, std::uint64_t>};
  }
}

Transposer TransposerOf(int group, std::size_t size) {
  switch (group) {
    case 8: return TransposerOfSize<8>(size);
    case 16: return TransposerOfSize<16>(size);
    case 32: return TransposerOfSize<32>(size);
    default: return TransposerOfSize<64>(size);
  }
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(TransposerOf);
Transposer transposer(std::size_t target, int group, std::size_t size) {
  return HWY_DISPATCH_TABLE(TransposerOf)[target](group, size);
}
}  // namespace cenote::simd
#endif
