// Pools of dense planar tensors through shared memory. A block copies the source of one tile of results there, 16 bytes at a time
// and without caring where rows begin, then folds from there: every byte is read from memory about once, whatever the width.
#pragma once

#include "cuda/backward.cuh"
#include "cuda/pairs.cuh"

#include <cuda_pipeline.h>

namespace cenote::gpu {

/// The rows and slices of the source that one tile needs.
struct Extent {
  std::int32_t z0, z1, y0, y1;
};

/// The source of a tile in shared memory.
template <class T>
struct Staged {
  char* memory;
  Extent extent;
  std::int32_t width, slice, plane;  // elements
  std::int32_t pitch;                // bytes between slices that are apart
  std::int32_t phase,
      phase_step;  // where in its 16 bytes the first slice begins, and how far that moves from slice to slice
  bool joined;     // whole slices follow each other without a gap

  /// The first staged row of slice z of the tile's p-th plane.
  __device__ const T* slice_at(std::int32_t p, std::int32_t z) const {
    if (joined) return reinterpret_cast<const T*>(memory + phase) + p * plane + (z - extent.z0) * slice;
    const std::int32_t i = z - extent.z0;
    return reinterpret_cast<const T*>(memory + i * pitch + ((phase + i * phase_step) & 15));
  }
};

/// Sends for `count` elements, which will lie in shared memory as in memory, modulo 16 bytes: `pieces(to, from, end)` for those of 16
/// bytes, single elements before and after them here.
template <class T, class Pieces>
__device__ inline void send_for_run(char* to, const T* from, std::int32_t count, Pieces pieces) {
  const auto begin = reinterpret_cast<std::uintptr_t>(from), end = reinterpret_cast<std::uintptr_t>(from + count);
  const std::uintptr_t first = (begin + 15) & ~std::uintptr_t{15}, last = end & ~std::uintptr_t{15};
  const std::uintptr_t base = begin & ~std::uintptr_t{15};
  auto copy = [&](std::uintptr_t from_here, std::uintptr_t to_there) {
    const auto at = from_here + threadIdx.x * sizeof(T);
    if (at < to_there) *reinterpret_cast<T*>(to + (at - base)) = *reinterpret_cast<const T*>(at);
  };
  if (first >= last) {
    copy(begin, end);
    return;
  }
  pieces(to + (first - base), first, last);
  copy(begin, first);
  copy(last, end);
}

/// The same by all threads of a block; they wait for it like for any pipeline.
template <int kThreads, class T>
__device__ inline void stage_run(char* to, const T* from, std::int32_t count) {
  send_for_run(to, from, count, [](char* there, std::uintptr_t here, std::uintptr_t end) {
    for (std::uintptr_t at = here + threadIdx.x * 16; at < end; at += kThreads * 16)
      __pipeline_memcpy_async(there + (at - here), reinterpret_cast<const void*>(at), 16);
  });
}

/// Waits for the runs that all threads have sent for: a barrier.
__device__ inline void wait_for_runs() {
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
}

/// The one run of a block, and waits for it. Where the device can, one thread sends for all pieces at once; meanwhile all of them do
/// `meanwhile`, which writes elsewhere.
template <int kThreads, class T, class Meanwhile>
__device__ inline void stage_at_once(char* to, const T* from, std::int32_t count, bool leaves_first,
                                     Meanwhile meanwhile) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  __shared__ __align__(8) std::uint64_t arrived;  // counts the bytes
  const auto barrier = static_cast<unsigned>(__cvta_generic_to_shared(&arrived));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barrier) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  send_for_run(to, from, count, [barrier, leaves_first](char* there, std::uintptr_t here, std::uintptr_t end) {
    if (threadIdx.x != 0) return;
    const auto shared = static_cast<unsigned>(__cvta_generic_to_shared(there)),
               bytes = static_cast<unsigned>(end - here);
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
            "r"(shared),
        "l"(here), "r"(bytes), "r"(barrier), "l"(staying(leaves_first))
        : "memory");
  });
  meanwhile();
  if (threadIdx.x == 0) asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier) : "memory");
  __syncthreads();
  unsigned done = 0;
  do {
    asm volatile(
        "{\n\t.reg .pred done;\n\t"
        "mbarrier.try_wait.parity.shared.b64 done, [%1], 0;\n\t"
        "selp.u32 %0, 1, 0, done;\n\t}"
        : "=r"(done)
        : "r"(barrier)
        : "memory");
  } while (done == 0);
#else
  stage_run<kThreads>(to, from, count);
  meanwhile();
  wait_for_runs();
#endif
}

/// The same, whichever way is faster: at once where elements leave the L2 cache first, else by all threads (measured on an H200).
template <int kThreads, class T>
__device__ inline void stage_planes(char* to, const T* from, std::int32_t count, bool leaves_first) {
  if (leaves_first) {
    stage_at_once<kThreads>(to, from, count, true, [] {});
  } else {
    stage_run<kThreads>(to, from, count);
    wait_for_runs();
  }
}

/// `count` elements from shared memory, where they lie as in memory modulo 16 bytes.
template <int kThreads, class T>
__device__ inline void store_run(T* to, const T* from, std::int32_t count) {
  using Int = std::int32_t;
  constexpr Int kVector = 16 / static_cast<Int>(sizeof(T));
  const Int before = static_cast<Int>((reinterpret_cast<std::uintptr_t>(to) & 15) / sizeof(T));
  const Int head = least((kVector - before) & (kVector - 1), count), pieces = (count - head) / kVector;
  const Int tail = head + pieces * kVector, mine = static_cast<Int>(threadIdx.x);
  auto* to_pieces = reinterpret_cast<uint4*>(to + head);
  const auto* from_pieces = reinterpret_cast<const uint4*>(from + head);
#pragma unroll 4
  for (Int i = mine; i < pieces; i += kThreads) to_pieces[i] = from_pieces[i];
  if (mine < head) to[mine] = from[mine];
  if (mine < count - tail) to[tail + mine] = from[tail + mine];
}

/// Copies planes [plane, plane + planes) of a dense tensor, as far as the extent goes. Ends with a barrier.
template <int kThreads, class T>
__device__ inline Staged<T> stage(char* memory, const T* source, const Extent& extent, std::int64_t plane,
                                  std::int32_t planes, std::int32_t depth, std::int32_t height, std::int32_t width,
                                  std::int32_t pitch) {
  Staged<T> staged;
  staged.memory = memory;
  staged.extent = extent;
  staged.width = width;
  staged.slice = height * width;
  staged.plane = depth * staged.slice;
  staged.pitch = pitch;
  const T* first = source + plane * staged.plane + extent.z0 * staged.slice + extent.y0 * width;
  staged.phase = static_cast<std::int32_t>(reinterpret_cast<std::uintptr_t>(first) & 15);
  staged.phase_step = static_cast<std::int32_t>((staged.slice * sizeof(T)) & 15);
  staged.joined = extent.y1 - extent.y0 == height || (extent.z1 - extent.z0 == 1 && planes == 1);
  if (staged.joined) {
    stage_run<kThreads>(
        memory, first,
        (planes - 1) * staged.plane + (extent.z1 - extent.z0 - 1) * staged.slice + (extent.y1 - extent.y0) * width);
  } else {
    for (std::int32_t i = 0; i < extent.z1 - extent.z0; ++i) {
      stage_run<kThreads>(memory + i * pitch, first + i * staged.slice, (extent.y1 - extent.y0) * width);
    }
  }
  wait_for_runs();
  return staged;
}

/// What the windows of outputs [first, last] reach.
__device__ inline void reach_of_windows(const DeviceAxis<std::int32_t>& axis, std::int32_t first, std::int32_t last,
                                        std::int32_t& begin, std::int32_t& end) {
  const Taps<std::int32_t> low = taps_of(axis, first), high = taps_of(axis, last);
  begin = most(low.start, 0);
  end = least(high.start + (high.whole - 1) * axis.dilation + 1, axis.input);
  if (end < begin) end = begin;
}

/// Which results a block makes.
struct Tile {
  std::int64_t plane;
  std::int32_t planes, z0, z1, y0, y1;
};

__device__ inline Tile tile_of(const Tiling<std::int32_t>& tiling, std::int32_t depth, std::int32_t height) {
  std::int32_t rest = static_cast<std::int32_t>(blockIdx.x);
  Tile tile;
  tile.y0 = take(rest, tiling.tiles_y) * tiling.rows;
  tile.z0 = take(rest, tiling.tiles_z) * tiling.slices;
  tile.plane = static_cast<std::int64_t>(rest) * tiling.planes;
  tile.planes = static_cast<std::int32_t>(least<std::int64_t>(tiling.planes, tiling.total_planes - tile.plane));
  tile.z1 = least(tile.z0 + tiling.slices, depth);
  tile.y1 = least(tile.y0 + tiling.rows, height);
  return tile;
}

/// The forward's source: everything the tile's windows reach.
template <class T, int kThreads>
__device__ inline Staged<T> stage_windows(const Params<std::int32_t>& p, const Pointers& at, const Tile& tile,
                                          char* memory) {
  Extent extent{0, p.axis[0].input, 0, p.axis[1].input};
  if (p.tiling.tiles_z.value > 1) reach_of_windows(p.axis[0], tile.z0, tile.z1 - 1, extent.z0, extent.z1);
  if (p.tiling.tiles_y.value > 1) reach_of_windows(p.axis[1], tile.y0, tile.y1 - 1, extent.y0, extent.y1);
  return stage<kThreads>(memory, static_cast<const T*>(at.input), extent, tile.plane, tile.planes, p.axis[0].input,
                         p.axis[1].input, p.axis[2].input, p.tiling.pitch);
}

/// Which slice of its tensor a plane is where slices are planes.
__device__ inline std::int32_t slice_of(const Params<std::int32_t>& p, std::int32_t plane) {
  return p.axis[0].input == 1 ? 0 : take(plane, p.axis[0].by_input);
}

extern __shared__ __align__(16) char tile_memory[];

/// Small blocks: while some of them wait for memory or at a barrier, others fold.
inline constexpr int kTileBlock = 128;

/// kRows outputs below each other to a thread, which folds each input row once. Square windows of kKernel taps, stride kStride along the height, any along the width.
template <class T, Fold kFold, bool kIndices, int kKernel, int kStride, int kRows>
__global__ void __launch_bounds__(kTileBlock, kIndices&& kRows == 2 ? 10 : 8)
    fold_tiles(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  constexpr int kInputRows = (kRows - 1) * kStride + kKernel;
  const Tile tile = tile_of(p.tiling, p.axis[0].output, p.axis[1].output);
  const Staged<T> staged = stage_windows<T, kTileBlock>(p, at, tile, tile_memory);
  const Int height = p.axis[1].input, width = p.axis[2].input;
  const Int out_width = p.axis[2].output, out_slice = p.axis[1].output * out_width,
            out_plane = p.axis[0].output * out_slice;
  T* output = static_cast<T*>(at.output) + tile.plane * out_plane;
  const bool taps_wanted = p.index_kind == IndexKind::window;
  constexpr bool kAnyOrder = is_in_any_order<T, 1, kFold, kIndices>;
  const Term<kFold, T> term(p.norm_type);
  for (Int item = static_cast<Int>(threadIdx.x); item < p.tiling.items; item += kTileBlock) {
    Int rest = item;
    const Int x = take_of(rest, p.tiling.items_x);
    const Int y = tile.y0 + take_of(rest, p.tiling.items_y) * kRows;
    const Int z = tile.z0 + take_of(rest, p.tiling.items_z);
    if (y >= tile.y1 || z >= tile.z1 || rest >= tile.planes) continue;
    const Taps<Int> depth = taps_of(p.axis[0], z);
    const Int top = y * kStride - p.axis[1].pad_begin, left = x * p.axis[2].stride - p.axis[2].pad_begin;
    // The max family reads an element of the window again in place of one outside: it changes neither the value nor, being the
    // same element, the index.
    bool inside[kKernel];
    Int column[kKernel];
#pragma unroll
    for (int tx = 0; tx < kKernel; ++tx) {
      inside[tx] = static_cast<unsigned>(left + tx) < static_cast<unsigned>(width);
      column[tx] = least(most(left + tx, 0), width - 1);
    }
    Folded<T, kFold> fold[kRows];
    Int codes[kRows];
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      fold[j] = empty_fold<kFold, T>();
      codes[j] = -1;
    }
    for (Int tz = depth.low; tz < depth.high; ++tz) {
      const Int source_z = depth.start + tz * p.axis[0].dilation;
      const T* slice = staged.slice_at(rest, source_z);
      const bool first_slice = tz == depth.low;
#pragma unroll
      for (int r = 0; r < kInputRows; ++r) {
        const Int source_y = least(most(top + r, staged.extent.y0), staged.extent.y1 - 1);
        const T* row = slice + (source_y - staged.extent.y0) * width;
        T value[kKernel];
#pragma unroll
        for (int tx = 0; tx < kKernel; ++tx) value[tx] = row[column[tx]];
        if constexpr (kAnyOrder) {
          T best = value[0];
#pragma unroll
          for (int tx = 1; tx < kKernel; ++tx) best = larger_or_nan(best, value[tx]);
#pragma unroll
          for (int j = 0; j < kRows; ++j) {
            if (r - j * kStride >= 0 && r - j * kStride < kKernel)
              fold[j] = r == j * kStride && first_slice ? best : larger_or_nan(fold[j], best);
          }
        } else if constexpr (is_extreme<kFold>) {
          T best = value[0];
          Int winner = column[0];
#pragma unroll
          for (int tx = 1; tx < kKernel; ++tx) {
            if (beats<kFold>(value[tx], best)) {
              best = value[tx];
              winner = column[tx];
            }
          }
          const Int position = (source_z * height + source_y) * width + winner;
#pragma unroll
          for (int j = 0; j < kRows; ++j) {
            if (r - j * kStride >= 0 && r - j * kStride < kKernel &&
                ((r == j * kStride && first_slice) || beats<kFold>(best, fold[j]))) {
              fold[j] = best;
              if constexpr (kIndices) codes[j] = position;
            }
          }
        } else {
          const bool row_inside = top + r == source_y;
#pragma unroll
          for (int tx = 0; tx < kKernel; ++tx) {
            if (!row_inside || !inside[tx]) value[tx] = identity<kFold, T>();
          }
          if constexpr (kFold == Fold::power) {  // in the order of the kernels for any windows, as strips have it
            static_assert(kKernel == kStride);
#pragma unroll
            for (int tx = 0; tx < kKernel; ++tx) fold[r / kStride] += term(value[tx]);
          } else {
            Accumulator<T> sum = term(value[0]);
#pragma unroll
            for (int tx = 1; tx < kKernel; ++tx) sum += term(value[tx]);
#pragma unroll
            for (int j = 0; j < kRows; ++j) {
              if (r - j * kStride >= 0 && r - j * kStride < kKernel) fold[j] += sum;
            }
          }
        }
      }
    }
    const Int place = rest * out_plane + z * out_slice + y * out_width + x;
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      if (y + j >= tile.y1) break;
      if constexpr (kAnyOrder) {
        if (is_doubtful(fold[j])) {
          fold[j] = empty_fold<kFold, T>();
          for (Int tz = depth.low; tz < depth.high; ++tz) {
            const T* slice = staged.slice_at(rest, depth.start + tz * p.axis[0].dilation);
            for (Int r = 0; r < kKernel; ++r) {
              const Int source_y = least(most(top + j * kStride + r, staged.extent.y0), staged.extent.y1 - 1);
              const T* row = slice + (source_y - staged.extent.y0) * width;
#pragma unroll
              for (int tx = 0; tx < kKernel; ++tx) {
                const T value = row[column[tx]];
                if (beats<kFold>(value, fold[j])) fold[j] = value;
              }
            }
          }
        }
      }
      std::int64_t counted = 1;
      if constexpr (!is_extreme<kFold>) {
        if (kFold != Fold::sum || !p.uniform_divisor) {
          counted = counted_taps<kFold>(p, depth, taps_of(p.axis[1], y + j), taps_of(p.axis[2], x));
        }
      }
      output[place + j * out_width] = finish<kFold, T>(p, fold[j], counted);
      if constexpr (kIndices) {
        Int code[1] = {codes[j]};
        if (taps_wanted) {
          Int place_z = codes[j];
          const Int place_x = take(place_z, p.axis[2].by_input), place_y = take(place_z, p.axis[1].by_input);
          const Int tz = p.axis[0].by_dilation.quotient(place_z - depth.start);
          code[0] = (tz * kKernel + place_y - (top + j * kStride)) * kKernel + place_x - left;
        }
        store_codes(at.indices, p.index_dtype, tile.plane * out_plane + place + j * out_width, code);
      }
    }
  }
}

/// Any windows from shared memory, kGroup threads to each.
template <class T, Fold kFold, bool kIndices, int kGroup>
__global__ void __launch_bounds__(kBlock)
    fold_staged_windows(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  const Tile tile = tile_of(p.tiling, p.axis[0].output, p.axis[1].output);
  const Staged<T> staged = stage_windows<T, kBlock>(p, at, tile, tile_memory);
  const Int width = p.axis[2].input;
  const Int out_width = p.axis[2].output, out_slice = p.axis[1].output * out_width,
            out_plane = p.axis[0].output * out_slice;
  const Int lane = static_cast<Int>(threadIdx.x) % kGroup;
  // Every thread of a warp makes as many rounds: groups that ran out fold nothing, but take part in the exchange.
  for (Int base = 0; base < p.tiling.items; base += kBlock / kGroup) {
    const Int item = base + static_cast<Int>(threadIdx.x) / kGroup;
    Int rest = item;
    const Int x = take_of(rest, p.tiling.items_x);
    const Int y = tile.y0 + take_of(rest, p.tiling.items_y);
    const Int z = tile.z0 + take_of(rest, p.tiling.items_z);
    const bool exists = item < p.tiling.items && y < tile.y1 && z < tile.z1 && rest < tile.planes;
    Folded<T, kFold> fold = empty_fold<kFold, T>();
    Int code = INT32_MAX;
    Taps<Int> taps[3] = {};
    Coding<Int> coding = {};
    if (exists) {
      taps[0] = taps_of(p.axis[0], z);
      taps[1] = taps_of(p.axis[1], y);
      taps[2] = taps_of(p.axis[2], x);
      if (kIndices || kGroup > 1) coding = coding_of(p, taps[0], taps[1], taps[2]);
      const Int step = p.axis[2].dilation;
      for (Int tz = taps[0].low; tz < taps[0].high; ++tz) {
        const T* slice = staged.slice_at(rest, taps[0].start + tz * p.axis[0].dilation);
        // Threads of a group take neighbouring taps of the window laid out row by row.
        const Int row_taps = taps[2].count();
        Int ty = taps[1].low, tx = taps[2].low + lane;
        if (kGroup > 1) {
          while (tx >= taps[2].high && ty < taps[1].high) tx -= row_taps, ++ty;
        }
        while (ty < taps[1].high) {
          const T* row = slice + (taps[1].start + ty * p.axis[1].dilation - staged.extent.y0) * width + taps[2].start;
          const Int row_code = coding.base + tz * coding.d + ty * coding.h;
#pragma unroll 4
          for (; tx < taps[2].high; tx += kGroup) {
            T value = row[tx * step];
            if constexpr (is_extreme<kFold>) {
              if (p.absolute) value = magnitude(value);
              if (beats<kFold>(value, fold)) {
                fold = value;
                if (kIndices || kGroup > 1) code = row_code + tx * coding.w;
              }
            } else {
              fold += widen(value);
            }
          }
          while (tx >= taps[2].high && ty < taps[1].high) tx -= row_taps, ++ty;
        }
      }
    }
    fold_over_group<kFold, T, kGroup>(fold, code);
    if (!exists || lane != 0) continue;
    const std::int64_t place = tile.plane * out_plane + rest * out_plane + z * out_slice + y * out_width + x;
    static_cast<T*>(at.output)[place] = finish<kFold, T>(p, fold, counted_taps<kFold>(p, taps[0], taps[1], taps[2]));
    if constexpr (kIndices) {
      const bool empty = taps[0].count() == 0 || taps[1].count() == 0 || taps[2].count() == 0;
      const Int first = coding.base + taps[0].low * coding.d + taps[1].low * coding.h + taps[2].low * coding.w;
      const Int stored[1] = {code != INT32_MAX ? code : empty ? -1 : first};
      store_codes(at.indices, p.index_dtype, place, stored);
    }
  }
}

}  // namespace cenote::gpu
