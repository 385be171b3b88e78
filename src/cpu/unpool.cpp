// Unpooling and its backward for every element size, once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/unpool.cpp"
#include <hwy/foreach_target.h>

#include "cpu/scatter-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

ScatterFn PutOf(std::size_t size) {
  switch (size) {
    case 1: return ScatterPut<std::uint8_t>;
    case 2: return ScatterPut<std::uint16_t>;
    case 4: return ScatterPut<std::uint32_t>;
    default: return ScatterPut<std::uint64_t>;
  }
}

ScatterFn TakeOf(std::size_t size) {
  switch (size) {
    case 1: return ScatterTake<std::uint8_t>;
    case 2: return ScatterTake<std::uint16_t>;
    case 4: return ScatterTake<std::uint32_t>;
    default: return ScatterTake<std::uint64_t>;
  }
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote::simd {
HWY_EXPORT(PutOf);
HWY_EXPORT(TakeOf);
ScatterFn scatter_put(std::size_t target, std::size_t size) { return HWY_DISPATCH_TABLE(PutOf)[target](size); }
ScatterFn scatter_take(std::size_t target, std::size_t size) { return HWY_DISPATCH_TABLE(TakeOf)[target](size); }
}  // namespace cenote::simd
#endif
