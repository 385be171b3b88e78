// Windows that are whole planes of dense planar tensors: a few threads to a plane, 16 bytes at a time wherever planes begin, straight
// from memory.
#pragma once

#include "cuda/forward.cuh"

namespace cenote::gpu {

/// A plane has at least as many elements as 16 bytes. kGroup threads to it.
template <class T, Fold kFold, bool kIndices, int kGroup>
__global__ void __launch_bounds__(kBlock)
    fold_planes(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  constexpr int kVector = 16 / static_cast<int>(sizeof(T)), kBatch = 4;
  const Int thread = static_cast<Int>(blockIdx.x) * kBlock + static_cast<Int>(threadIdx.x);
  const Int plane = thread / kGroup, lane = thread % kGroup;
  const Int size = p.axis[2].input, total = p.grid.threads * size;
  const bool exists = plane < p.grid.threads;
  const Int begin = exists ? plane * size : 0, end = exists ? begin + size : 0;
  const T* input = static_cast<const T*>(at.input);
  Folded<T, kFold> fold = empty_fold<kFold, T>();
  Int code = INT32_MAX;
  const Int step = kGroup * kVector;
  for (Int from = begin / kVector * kVector + lane * kVector; from < end; from += kBatch * step) {
    Vector<T, kVector> batch[kBatch];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const Int here = from + b * step;
      batch[b] = Vector<T, kVector>{};
      if (here + kVector <= total) {
        if (here < end) batch[b] = load_constant_if<kVector>(is_extreme<kFold> || p.aligned, input + here);
      } else {
#pragma unroll
        for (int i = 0; i < kVector; ++i) {
          if (here + i < total) batch[b].lane[i] = input[here + i];
        }
      }
    }
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        const Int element = from + b * step + i - begin;
        const bool inside = static_cast<unsigned>(element) < static_cast<unsigned>(end - begin);
        const T value = batch[b].lane[i];
        if constexpr (is_extreme<kFold>) {
          if (inside && beats<kFold>(value, fold)) {
            fold = value;
            code = element;
          }
        } else {
          fold += inside ? term<kFold>(value, p.norm_type) : Accumulator<T>{0};
        }
      }
    }
  }
  fold_over_group<kFold, T, kGroup>(fold, code);
  if (!exists || lane != 0) return;
  static_cast<T*>(at.output)[plane] = finish<kFold, T>(p, fold, size);
  if constexpr (kIndices) {
    const Int stored[1] = {code == INT32_MAX ? 0 : code};
    store_codes(at.indices, p.index_dtype, plane, stored);
  }
}

}  // namespace cenote::gpu
