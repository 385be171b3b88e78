// The table of row kernels for one element type, on the instruction set being compiled.
#if defined(CENOTE_CPU_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_KERNELS_INL_H_
#undef CENOTE_CPU_KERNELS_INL_H_
#else
#define CENOTE_CPU_KERNELS_INL_H_
#endif

#include "cpu/gradients/collect_planes-inl.h"
#include "cpu/gradients/expand_planes-inl.h"
#include "cpu/gradients/gather-inl.h"
#include "cpu/gradients/gather_columns-inl.h"
#include "cpu/gradients/gather_planes-inl.h"
#include "cpu/gradients/scatter-inl.h"
#include "cpu/kernels.hpp"
#include "cpu/planes/strip_planes-inl.h"
#include "cpu/planes/whole_planes-inl.h"
#include "cpu/rows/sum_backward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// Compute type of maxima without indices: exact and as narrow as can be.
template <class T>
using MaxLane = std::conditional_t<kIsHalf<T>, float, T>;
/// Compute type of everything else.
template <class T>
using FoldLane =
    std::conditional_t<kIsHalf<T>, float, std::conditional_t<std::is_integral_v<T> && sizeof(T) < 4, std::int32_t, T>>;

template <class T>
constexpr RowKernels MakeKernels() {
  constexpr bool floating = !std::is_integral_v<T>;
  using M = MaxLane<T>;
  using C = FoldLane<T>;
  RowKernels k{};
  k.max = FoldRows<Fold::max, Map::identity, T, M>;
  k.min = FoldRows<Fold::max, Map::negate, T, M>;
  k.max_indexed = FoldRows<Fold::max_indexed, Map::identity, T, C>;
  k.min_indexed = FoldRows<Fold::max_indexed, Map::negate, T, C>;
  k.sum = FoldRows<Fold::sum, Map::identity, T, C>;
  k.sum_backward = SumBackwardRows<Map::identity, T, C>;
  // Of sums of bytes the low bits are kept: those with a sign and those without are alike.
  k.scatter_add = ScatterAdd<std::conditional_t<std::is_same_v<T, std::uint8_t>, std::int8_t, T>, C>;
  if constexpr (floating) {
#if HWY_TARGET != HWY_SCALAR
    if constexpr (kIsHalf<T>) k.scatter_moved = ScatterAdd<MovedHalf, MovedHalf>;
    if constexpr (kHasGathers) {
      k.gather = GatherRows<T, C>;
      k.gather_columns = GatherColumnRows<T, C>;
    }
    k.average_planes = AverageWholePlanes<T, C>;
    k.spread_planes = SpreadWholePlanes<T, C>;
    if constexpr (kHasStrips && sizeof(C) == sizeof(float)) {
      k.gather_planes = GatherPlanes<T>;
      k.expand_planes = ExpandPlanes<T>;
      k.collect_planes = CollectPlanes<T>;
      k.sum_strips = FoldPlanesInStrips<Fold::sum, T, C>;
    }
    if constexpr (kHasStrips) {
      k.max_planes = MaxOfWholePlanes<T, M>;
      k.max_strips = FoldPlanesInStrips<Fold::max, T, M>;
      k.max_strips_indexed = FoldPlanesInStrips<Fold::max_indexed, T, C>;
    }
#endif
    k.max_absolute = k.min_absolute = FoldRows<Fold::max, Map::absolute, T, M>;
    k.power = FoldRows<Fold::sum, Map::power, T, C>;
    k.power_backward = SumBackwardRows<Map::power, T, C>;
  } else if constexpr (sizeof(T) > 1) {  // bytes need 8 million of them to go beyond 32 bits
    k.sum_wide = FoldRows<Fold::sum, Map::identity, T, std::int64_t>;
  }
  k.max_lane = sizeof(M);
  k.fold_lane = sizeof(C);
  k.wide_lane = floating ? sizeof(C) : sizeof(std::int64_t);
  k.vector_bytes = hn::MaxLanes(hn::ScalableTag<std::uint8_t>());
  return k;
}

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
