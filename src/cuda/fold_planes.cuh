// Windows that are whole planes of dense planar tensors: a few threads to a plane, or all of a block, 16 bytes at a time wherever planes
// begin, straight from memory.
#pragma once

#include "cuda/pairs.cuh"
#include "cuda/tiles.cuh"

namespace cenote::gpu {

/// fold_over_group for groups of several warps of a block of kThreads.
template <Fold kFold, class T, int kGroup, int kThreads>
__device__ inline void fold_over_threads(Folded<T, kFold>& fold, std::int32_t& code) {
  if constexpr (kGroup <= 32) {
    fold_over_group<kFold, T, kGroup>(fold, code);
  } else {
    constexpr int kWarps = kGroup / 32;
    __shared__ Folded<T, kFold> folds[kThreads / 32];
    __shared__ std::int32_t codes[kThreads / 32];
    fold_over_group<kFold, T, 32>(fold, code);
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    if (lane == 0) {
      folds[warp] = fold;
      codes[warp] = code;
    }
    __syncthreads();
    // The first warp of a group takes one of its warps to a lane.
    const int other = warp / kWarps * kWarps + lane % kWarps;
    fold = folds[other];
    code = codes[other];
    fold_over_group<kFold, T, kWarps>(fold, code);
  }
}

/// A plane has at least as many elements as 16 bytes. kGroup threads to it. kStaged: a block's planes come through shared memory, so
/// that those which begin inside a sector of the L2 cache do not have it read twice.
template <class T, Fold kFold, bool kIndices, int kGroup, bool kStaged>
__global__ void __launch_bounds__(kBlock)
    fold_planes(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  constexpr int kVector = 16 / static_cast<int>(sizeof(T)), kBatch = 4;
  const Int thread = thread_of_grid<Int>();
  const Int plane = thread / kGroup, lane = thread % kGroup;
  const Int size = p.axis[2].input, total = p.grid.threads * size;
  const bool exists = plane < p.grid.threads;
  const Int begin = exists ? plane * size : 0, end = exists ? begin + size : 0;
  const T* input = static_cast<const T*>(at.input);
  const bool aligned = p.aligned;
  const T* kept =
      nullptr;  // where elements from `origin` on lie in shared memory, and pieces of 16 bytes as `aligned` as in memory
  Int origin = 0;
  if constexpr (kStaged) {
    constexpr Int kPlanes = kBlock / kGroup;
    const Int first = static_cast<Int>(blockIdx.x) * kPlanes;
    const T* source = input + first * size;
    origin = first * size / kVector * kVector;
    char* memory = tile_memory + 16;
    kept =
        reinterpret_cast<const T*>(memory + (reinterpret_cast<std::uintptr_t>(source) & 15)) - (first * size - origin);
    stage_planes<kBlock>(memory, source, least(kPlanes, p.grid.threads - first) * size, p.leaves_first);
  }
  // A plane's pieces that this thread takes, and where each begins in it.
  auto for_each_piece = [&](auto take_piece) {
    const Int step = kGroup * kVector;
    for (Int from = begin / kVector * kVector + lane * kVector; from < end; from += kBatch * step) {
      Vector<T, kVector> batch[kBatch];
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        const Int here = from + b * step;
        batch[b] = Vector<T, kVector>{};
        if (kStaged) {
          if (here < end) batch[b] = load_if<kVector>(aligned, kept + (here - origin));
        } else if (here + kVector <= total) {
          if (here < end) {
            batch[b] = aligned && p.leaves_first ? load_leaving<kVector>(input + here)
                                                 : load_constant_if<kVector>(aligned, input + here);
          }
        } else {
#pragma unroll
          for (int i = 0; i < kVector; ++i) {
            if (here + i < total) batch[b].lane[i] = input[here + i];
          }
        }
      }
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        if (from + b * step >= end) break;
        take_piece(batch[b], from + b * step - begin);
      }
    }
  };
  auto is_inside = [&](Int element) { return static_cast<unsigned>(element) < static_cast<unsigned>(end - begin); };
  Folded<T, kFold> fold = empty_fold<kFold, T>();
  Int code = INT32_MAX;
  auto take_in_order = [&](const Vector<T, kVector>& piece, Int first) {
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      const T value = piece.lane[i];
      if constexpr (is_extreme<kFold>) {
        if (is_inside(first + i) && beats<kFold>(value, fold)) {
          fold = value;
          code = first + i;
        }
      } else {
        fold += is_inside(first + i) ? widen(value) : Accumulator<T>{0};
      }
    }
  };
  if constexpr (kFold == Fold::max && !kIndices) {
    // In any order, and again as the rule asks for where that may give other bits.
    Vector<T, kVector> best;
#pragma unroll
    for (int i = 0; i < kVector; ++i) best.lane[i] = fold;
    for_each_piece([&](Vector<T, kVector> piece, Int first) {
      if (first < 0 || first + kVector > end - begin) {
#pragma unroll
        for (int i = 0; i < kVector; ++i) {
          if (!is_inside(first + i)) piece.lane[i] = fold;
        }
      }
      best = larger_lanes(best, piece);
    });
    T maximum = best.lane[0];
#pragma unroll
    for (int i = 1; i < kVector; ++i) maximum = larger_or_nan(maximum, best.lane[i]);
    constexpr int kLanes = kGroup < 32 ? kGroup : 32;
#pragma unroll
    for (int offset = kLanes / 2; offset > 0; offset /= 2)
      maximum = larger_or_nan(maximum, __shfl_xor_sync(0xffffffffU, maximum, offset, kLanes));
    bool again = false;
    if constexpr (kGroup <= 32) {
      again = __any_sync(0xffffffffU, exists && is_doubtful(maximum));
    } else {
      // A NaN of one warp is one of the plane; a zero of one may be less than what others found.
      constexpr int kWarps = kGroup / 32;
      __shared__ T maxima[kBlock / 32];
      const int warp = static_cast<int>(threadIdx.x) / 32;
      if (threadIdx.x % 32 == 0) maxima[warp] = maximum;
      __syncthreads();
#pragma unroll
      for (int w = 0; w < kWarps; ++w) maximum = larger_or_nan(maximum, maxima[warp / kWarps * kWarps + w]);
      again = __syncthreads_or(exists && is_doubtful(maximum)) != 0;
    }
    if (again) {
      for_each_piece(take_in_order);
      fold_over_threads<kFold, T, kGroup, kBlock>(fold, code);
    } else {
      fold = maximum;
    }
  } else {
    for_each_piece(take_in_order);
    fold_over_threads<kFold, T, kGroup, kBlock>(fold, code);
  }
  if (!exists || lane != 0) return;
  static_cast<T*>(at.output)[plane] = finish<kFold, T>(p, fold, size);
  if constexpr (kIndices) {
    const Int stored[1] = {code == INT32_MAX ? 0 : code};
    store_codes(at.indices, p.index_dtype, plane, stored);
  }
}

/// Sums of the same for elements of two bytes: a block keeps many planes in shared memory, a thread to each, two elements at a time.
template <class T>
__global__ void __launch_bounds__(kBlock)
    sum_planes(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  const Int size = p.axis[2].input;
  const Int first_plane = static_cast<Int>(blockIdx.x) * p.tiling.planes;
  const Int planes = least(p.tiling.planes, p.tiling.total_planes - first_plane);
  const T* source = static_cast<const T*>(at.input) + static_cast<std::int64_t>(first_plane) * size;
  const auto* input = reinterpret_cast<const T*>(tile_memory + (reinterpret_cast<std::uintptr_t>(source) & 15));
  stage_planes<kBlock>(tile_memory, source, planes * size, p.leaves_first);
  for (Int plane = static_cast<Int>(threadIdx.x); plane < planes; plane += kBlock) {
    const T* from = input + plane * size;
    const T* end = from + size;
    Accumulator<T> sum = 0;
    if (reinterpret_cast<std::uintptr_t>(from) % 4 != 0) sum += widen(*from++);
#pragma unroll 4
    for (; from + 1 < end; from += 2) {
      const auto pair = load<2>(from);
      sum += widen(pair.lane[0]);
      sum += widen(pair.lane[1]);
    }
    if (from < end) sum += widen(*from);
    static_cast<T*>(at.output)[first_plane + plane] = finish<Fold::sum, T>(p, sum, size);
  }
}

}  // namespace cenote::gpu
