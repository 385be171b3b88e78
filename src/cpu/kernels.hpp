// The row kernels of one element type on one instruction set.
#pragma once

#include "cpu/gradients/collect_planes.hpp"
#include "cpu/gradients/expand_planes.hpp"
#include "cpu/gradients/gather_planes.hpp"
#include "cpu/gradients/scatter.hpp"
#include "cpu/planes/strips.hpp"
#include "cpu/planes/whole_planes.hpp"
#include "cpu/rows/rows.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cenote::simd {

using FoldRowsFn = void (*)(const RowPlan&, const RowPointers&, std::int64_t begin, std::int64_t end, char* scratch);
using SumBackwardFn = void (*)(const RowPlan&, const RowPlan* forward, const RowPointers&, std::int64_t begin,
                               std::int64_t end, char* scratch);

/// Returns how many indices were found in their windows; over all units as many as there are outputs, unless one is wrong or "none".
using GatherRowsFn = std::int64_t (*)(const RowPlan&, const RowPointers&, std::int64_t begin, std::int64_t end,
                                      char* scratch);

/// Null where the element type has no such op.
struct RowKernels {
  FoldRowsFn max, min;
  FoldRowsFn max_indexed, min_indexed;
  FoldRowsFn max_absolute, min_absolute;  // Lp with an infinite norm
  FoldRowsFn sum;
  FoldRowsFn sum_wide;  // integers of more than a byte whose sums may not fit in 32 bits
  FoldRowsFn power;
  SumBackwardFn sum_backward, power_backward;
  GatherRowsFn gather, gather_columns;
  GatherPlanesFn gather_planes;
  ExpandPlanesFn expand_planes;
  CollectPlanesFn collect_planes;
  ScatterFn scatter_add, scatter_moved;  // the latter: of halves whose windows share nothing
  WholePlanesFn average_planes, max_planes, spread_planes;
  StripsFn max_strips, max_strips_indexed, sum_strips;
  std::size_t max_lane, fold_lane, wide_lane;  // bytes of the compute type: max without indices, the others, sum_wide
  std::size_t vector_bytes;
};

/// An instruction set of this machine.
struct Target {
  std::string name;
  std::size_t index;  // into Highway's dispatch tables
};
std::vector<Target> targets();

const RowKernels* kernels_of(DType dtype, const Target& target);

/// The entry of one of Highway's tables for the instruction set, or for the best one below it where nothing was compiled for that; the baseline always is. Such kernels have shorter vectors
/// than the target's: whoever takes `vector_bytes` from them and a function of another file from the target must not mix the two.
template <class Function, std::size_t kSize>
Function* best_up_to(Function* const (&table)[kSize], std::size_t target) {
  if (target >= kSize) target = kSize - 1;  // one entry: nothing but the baseline was compiled
  while (table[target] == nullptr && target + 1 < kSize) ++target;
  return table[target];
}

// One function per translation unit.
const RowKernels* kernels_f32(std::size_t target);
const RowKernels* kernels_f64(std::size_t target);
const RowKernels* kernels_f16(std::size_t target);
const RowKernels* kernels_bf16(std::size_t target);
const RowKernels* kernels_i8(std::size_t target);
const RowKernels* kernels_u8(std::size_t target);
const RowKernels* kernels_i16(std::size_t target);
const RowKernels* kernels_i32(std::size_t target);
const RowKernels* kernels_i64(std::size_t target);

}  // namespace cenote::simd
