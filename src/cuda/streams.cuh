// Windows of many taps over neighbouring channels: a thread folds one window, or a part of it, for 16 bytes of channels. There are few such threads, so
// that each keeps many loads under way: while one batch of taps is folded, the next is on its way, across rows and slices.
#pragma once

#include "cuda/pairs.cuh"

namespace cenote::gpu {

/// Small blocks, so that few multiprocessors wait for the last.
inline constexpr int kStreamBlock = 128;

/// The taps of a window in row-major order: where they lie, and by which codes they are known.
struct TapWalk {
  using Int = std::int32_t;
  Int across, down;                // taps in a row, rows in a slice
  Int step, row_step, slice_step;  // from tap to tap; further at a row's end; further still at a slice's
  Int at, x, y;

  __device__ TapWalk(Int first, Int across_taps, Int down_taps, Int w, Int h, Int d)
      : across(across_taps),
        down(down_taps),
        step(w),
        row_step(h - across_taps * w),
        slice_step(d - down_taps * h),
        at(first),
        x(0),
        y(0) {}
  __device__ Int next() {
    const Int here = at;
    at += step;
    if (++x == across) {
      x = 0;
      at += row_step;
      if (++y == down) {
        y = 0;
        at += slice_step;
      }
    }
    return here;
  }
};

/// Any windows but drawn ones. The same order of folding as fold_windows: the same bits.
template <class T, int kLanes, Fold kFold, bool kIndices>
__global__ void __launch_bounds__(kStreamBlock, 4)
    fold_streams(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  constexpr int kBatch = 8;
  const Int thread = thread_of_grid<Int, kStreamBlock>();
  if (thread >= p.grid.threads) return;
  const Place<Int> place = p.grid.place(thread);
  const Taps<Int> deep = p.grid.flat && p.axis[0].kernel == 1 ? Taps<Int>{0, 0, 1, 1, 1} : taps_of(p.axis[0], place.z);
  const Taps<Int> down = taps_of(p.axis[1], place.y), wide = taps_of(p.axis[2], place.x);
  const T* input = static_cast<const T*>(at.input) + p.input.plane(place.n, place.c);
  const Int taps = deep.count() * down.count() * wide.count();
  TapWalk source(p.input.at(deep.start + deep.low * p.axis[0].dilation, down.start + down.low * p.axis[1].dilation,
                            wide.start + wide.low * p.axis[2].dilation),
                 wide.count(), down.count(), p.axis[2].dilation * p.input.w, p.axis[1].dilation * p.input.h,
                 p.axis[0].dilation * p.input.d);
  const Coding<Int> coding = kIndices ? coding_of(p, deep, down, wide) : Coding<Int>{};
  TapWalk names(coding.base + deep.low * coding.d + down.low * coding.h + wide.low * coding.w, wide.count(),
                down.count(), coding.w, coding.h, coding.d);
  // What the end needs of the place is worked out before the taps take the registers.
  T* output = static_cast<T*>(at.output) + p.output.plane(place.n, place.c) + p.output.at(place.z, place.y, place.x);
  const std::int64_t index = kIndices ? p.indices.plane(place.n, place.c) + p.indices.at(place.z, place.y, place.x) : 0;
  const auto counted = static_cast<Int>(counted_taps<kFold>(p, deep, down, wide));
  Folded<T, kFold> fold[kLanes];
  Int codes[kLanes];
#pragma unroll
  for (int i = 0; i < kLanes; ++i) {
    fold[i] = empty_fold<kFold, T>();
    codes[i] = taps > 0 ? names.at : -1;
  }
  using Batch = Vector<T, kLanes>[kBatch];
  auto fetch = [&](Batch& batch, Int left) {
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      const Int here = source.next();
      if (j < left) batch[j] = load_constant<kLanes>(input + here);
    }
  };
  auto add_tap = [&](const Vector<T, kLanes>& tap) {
    Int code = 0;
    if constexpr (kIndices) code = names.next();
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      if constexpr (is_extreme<kFold>) {
        if (beats<kFold>(tap.lane[i], fold[i])) {
          fold[i] = tap.lane[i];
          if constexpr (kIndices) codes[i] = code;
        }
      } else {
        fold[i] += widen(tap.lane[i]);
      }
    }
  };
  auto add = [&](const Batch& batch, Int left) {
    if (left >= kBatch) {
#pragma unroll
      for (int j = 0; j < kBatch; ++j) add_tap(batch[j]);
    } else {
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        if (j < left) add_tap(batch[j]);
      }
    }
  };
  Batch even, odd;
  fetch(even, taps);
  for (Int left = taps; left > 0; left -= 2 * kBatch) {
    fetch(odd, left - kBatch);
    add(even, left);
    fetch(even, left - 2 * kBatch);
    add(odd, left - kBatch);
  }
  Vector<T, kLanes> result;
  if constexpr (kFold == Fold::sum) {
    if (p.uniform_divisor) {
      divide_all<T>(p, fold);
    } else {
      divide_all_by<T>(fold, counted);
    }
#pragma unroll
    for (int i = 0; i < kLanes; ++i) result.lane[i] = narrow<T>(fold[i]);
  } else {
#pragma unroll
    for (int i = 0; i < kLanes; ++i) result.lane[i] = finish<kFold, T>(p, fold[i], counted);
  }
  store(output, result);
  if constexpr (kIndices) store_codes(at.indices, p.index_dtype, index, codes);
}

/// Adds elements to sums. Pairs of bf16 in this order: the compiler would widen those of all loads first, and run out of registers.
template <class T, int kLanes>
__device__ inline void add_lanes(Vector<Accumulator<T>, kLanes>& sum, const Vector<T, kLanes>& tap) {
  if constexpr (Number<T>::dtype == DType::bf16 && kLanes % 2 == 0) {
#pragma unroll
    for (int i = 0; i < kLanes; i += 2) {
      unsigned pair;
      memcpy(&pair, &tap.lane[i], 4);
      asm volatile(
          "{ .reg .f32 low, high; .reg .b32 word;\n\t"
          "shl.b32 word, %2, 16;\n\t mov.b32 low, word;\n\t add.rn.f32 %0, %0, low;\n\t"
          "and.b32 word, %2, 0xffff0000;\n\t mov.b32 high, word;\n\t add.rn.f32 %1, %1, high; }"
          : "+f"(sum.lane[i]), "+f"(sum.lane[i + 1])
          : "r"(pair));
    }
  } else {
#pragma unroll
    for (int i = 0; i < kLanes; ++i) sum.lane[i] += widen(tap.lane[i]);
  }
}

/// What is folded of a window's taps, with the numbers of the taps that won where indices are wanted.
template <class T, int kLanes, Fold kFold, bool kIndices>
struct Partial : Vector<Folded<T, kFold>, kLanes> {};
template <class T, int kLanes, Fold kFold>
struct Partial<T, kLanes, kFold, true> : Vector<T, kLanes> {
  std::int32_t tap[kLanes];
};

/// Sums and maxima of windows side by side, all of them whole: kParts threads of one block to a window, a run of its taps each.
/// (Maxima of halves would spill.)
template <class T, int kLanes, Fold kFold, bool kIndices, int kParts>
__global__ void __launch_bounds__(kBlock, is_extreme<kFold> && sizeof(T) < sizeof(float) ? 0 : 4)
    fold_stream_parts(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Several = Partial<T, kLanes, kFold, kIndices>;
  constexpr int kBatch = 8, kPlaces = kBlock / kParts;
  __shared__ Several folds[kParts][kPlaces];
  const Int slot = static_cast<Int>(threadIdx.x) % kPlaces, part = static_cast<Int>(threadIdx.x) / kPlaces;
  const Int thread = static_cast<Int>(blockIdx.x) * kPlaces + slot;
  const bool exists = thread < p.grid.threads;
  const Place<Int> place = p.grid.place(exists ? thread : Int{0});
  const Int across = p.axis[2].kernel, down = p.axis[1].kernel, taps = p.axis[0].kernel * down * across;
  auto begin_of = [&](Int which) { return static_cast<Int>(static_cast<std::int64_t>(taps) * which / kParts); };
  Int z = begin_of(part);
  const Int x = take(z, p.axis[2].by_stride), y = take(z, p.axis[1].by_stride);
  TapWalk source(p.input.at(place.z * p.axis[0].stride + z, place.y * down + y, place.x * across + x), across, down,
                 p.input.w, p.input.h, p.input.d);
  source.x = x;
  source.y = y;
  const T* input = static_cast<const T*>(at.input) + p.input.plane(place.n, place.c);
  // The taps of a part in order, then the parts.
  auto fold_window = [&](auto empty, auto add_tap, auto add_part) {
    Several fold = empty();
    TapWalk walk = source;
    // Batches of about the same size: one load alone would take as long as eight.
    const Int begin = begin_of(part), end = begin_of(part + 1);
    const Int batches = (end - begin + kBatch - 1) / kBatch, each = (end - begin + batches - 1) / batches;
    for (Int tap = begin; tap < end; tap += each) {
      Vector<T, kLanes> batch[kBatch];
      const Int here_taps = least(each, end - tap);
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        if (j < here_taps) batch[j] = load_once<kLanes>(input + walk.next());
      }
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        if (j < here_taps) add_tap(fold, batch[j], tap + j);
      }
    }
    folds[part][slot] = fold;
    __syncthreads();
    if (part == 0) {
#pragma unroll
      for (int other = 1; other < kParts; ++other) add_part(fold, folds[other][slot]);
    }
    return fold;
  };
  auto empty = [&] {
    Several fold;
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      fold.lane[i] = empty_fold<kFold, T>();
      if constexpr (kIndices) fold.tap[i] = begin_of(part);
    }
    return fold;
  };
  Several fold;
  if constexpr (kIndices) {
    auto improve = [](Several& best, const Vector<T, kLanes>& next, auto tap_of_lane) {
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        if (!beats<kFold>(next.lane[i], best.lane[i])) continue;
        best.lane[i] = next.lane[i];
        best.tap[i] = tap_of_lane(i);
      }
    };
    fold = fold_window(
        empty,
        [&](Several& best, const Vector<T, kLanes>& next, Int tap) { improve(best, next, [tap](int) { return tap; }); },
        [&](Several& best, const Several& next) { improve(best, next, [&next](int i) { return next.tap[i]; }); });
  } else if constexpr (is_extreme<kFold>) {
    auto larger = [](Several& best, const Vector<T, kLanes>& next, auto...) {
      static_cast<Vector<T, kLanes>&>(best) = larger_lanes<T, kLanes>(best, next);
    };
    fold = fold_window(empty, larger, larger);
    bool doubtful = false;
#pragma unroll
    for (int i = 0; i < kLanes; ++i) doubtful = doubtful || is_doubtful(fold.lane[i]);
    if (__syncthreads_or(part == 0 && exists && doubtful)) {  // again in the order that the rule asks for
      auto improve = [](Several& best, const Vector<T, kLanes>& next, auto...) {
#pragma unroll
        for (int i = 0; i < kLanes; ++i) {
          if (beats<kFold>(next.lane[i], best.lane[i])) best.lane[i] = next.lane[i];
        }
      };
      fold = fold_window(empty, improve, improve);
    }
  } else {
    fold = fold_window(
        empty, [](Several& sum, const Vector<T, kLanes>& tap, Int) { add_lanes<T, kLanes>(sum, tap); },
        [](Several& sum, const Several& next) {
#pragma unroll
          for (int i = 0; i < kLanes; ++i) sum.lane[i] += next.lane[i];
        });
  }
  if (part != 0 || !exists) return;
  if constexpr (!is_extreme<kFold>) divide_all<T>(p, fold.lane);
  Vector<T, kLanes> result;
#pragma unroll
  for (int i = 0; i < kLanes; ++i) {
    if constexpr (is_extreme<kFold>) {
      result.lane[i] = fold.lane[i];
    } else {
      result.lane[i] = narrow<T>(fold.lane[i]);
    }
  }
  store(static_cast<T*>(at.output) + p.output.plane(place.n, place.c) + p.output.at(place.z, place.y, place.x), result);
  if constexpr (kIndices) {
    Int codes[kLanes];
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      codes[i] = fold.tap[i];
      if (p.index_kind == IndexKind::window) continue;
      Int tz = codes[i];
      const Int tx = take(tz, p.axis[2].by_stride), ty = take(tz, p.axis[1].by_stride);
      codes[i] = ((place.z * p.axis[0].stride + tz) * p.axis[1].input + place.y * down + ty) * p.axis[2].input +
                 place.x * across + tx;
    }
    store_codes(at.indices, p.index_dtype, p.indices.plane(place.n, place.c) + p.indices.at(place.z, place.y, place.x),
                codes);
  }
}

}  // namespace cenote::gpu
