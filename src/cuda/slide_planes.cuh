// Windows of 2x2 or 3x3 one apart, and of 3x3 two apart, over small planes of dense planar tensors: a block keeps a few whole planes in
// shared memory, and so their results, which leave in pieces of 16 bytes wherever rows begin.
#pragma once

#include "cuda/pairs.cuh"
#include "cuda/tiles.cuh"

namespace cenote::gpu {

inline constexpr int kSlideBlock = 128;

/// Elements behind a row that a thread may read and never uses; before it there are 16 bytes of them.
inline constexpr int kSlideMargin = 16, kSlideBefore = 16;

/// Codes kept in shared memory so that groups of them lie there as aligned as the indices they become lie in memory.
template <class Stored>
struct CodeRun {
  using Int = std::int32_t;
  static constexpr Int kGroup = sizeof(Stored) == 8 ? 2 : 4;

  /// How many codes of a group come before the first.
  __device__ static Int phase_of(const Stored* indices) {
    return static_cast<Int>(reinterpret_cast<std::uintptr_t>(indices) / sizeof(Stored) % kGroup);
  }
  template <int kThreads>
  __device__ static void store_all(Stored* to, const Int* codes, Int count) {
    const Int mine = static_cast<Int>(threadIdx.x);
    const Int head = least((kGroup - phase_of(to)) % kGroup, count), groups = (count - head) / kGroup;
    auto stored = [](Int code) { return static_cast<Stored>(code); };
#pragma unroll 2
    for (Int i = mine; i < groups; i += kThreads) {
      const auto group = load<kGroup>(codes + head + i * kGroup);
      Vector<Stored, kGroup> piece;
#pragma unroll
      for (int j = 0; j < kGroup; ++j) piece.lane[j] = stored(group.lane[j]);
      store(to + head + i * kGroup, piece);
    }
    if (mine < head) to[mine] = stored(codes[mine]);
    const Int tail = head + groups * kGroup;
    if (mine < count - tail) to[tail + mine] = stored(codes[tail + mine]);
  }
};

/// Calls `work` with a null pointer of the type that indices are stored in.
template <class Work>
__device__ inline void with_stored_type(DType dtype, Work work) {
  switch (dtype) {
    case DType::i64: work(static_cast<std::int64_t*>(nullptr)); break;
    case DType::i32: work(static_cast<std::int32_t*>(nullptr)); break;
    default: work(static_cast<std::uint8_t*>(nullptr)); break;
  }
}

/// An element and where it lies in its plane.
template <class T>
struct Found {
  T value;
  std::int32_t code;
};

/// A thread walks down a strip of kColumns outputs beside each other, folds each row along their windows once, then down. No dilation, no
/// depth, no window without an element. Sums: the same divisor for all, unless kOwnDivisors. Maxima without indices that are zero or a
/// NaN are folded again in the order that the rule asks for.
template <class T, Fold kFold, bool kIndices, int kKernel, int kStride, int kColumns, bool kOwnDivisors>
__global__ void __launch_bounds__(kSlideBlock, kColumns > 3 || kIndices ? 8 : 10)
    slide_planes(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Value = std::conditional_t<kIndices, Found<T>, Folded<T, kFold>>;
  constexpr int kTaps = (kColumns - 1) * kStride + kKernel, kKept = kKernel - kStride;
  static_assert(kTaps <= kSlideMargin && kKept > 0);
  const Tiling<Int>& tiling = p.tiling;
  const Int first_plane = static_cast<Int>(blockIdx.x) * tiling.planes;
  const Int planes = least(tiling.planes, tiling.total_planes - first_plane);
  const Int height = p.axis[1].input, width = p.axis[2].input;
  const Int out_height = p.axis[1].output, out_width = p.axis[2].output, outputs = out_height * out_width;
  const T* source = static_cast<const T*>(at.input) + static_cast<std::int64_t>(first_plane) * (height * width);
  const std::int64_t first_output = static_cast<std::int64_t>(first_plane) * outputs;
  T* target = static_cast<T*>(at.output) + first_output;
  // A row of nothing stands for those outside. Elements lie in shared memory as in memory, modulo 16 bytes.
  auto* outside = reinterpret_cast<T*>(tile_memory + kSlideBefore);
  char* kept = tile_memory + tiling.pitch;
  const auto* input = reinterpret_cast<const T*>(kept + (reinterpret_cast<std::uintptr_t>(source) & 15));
  auto* results =
      reinterpret_cast<T*>(tile_memory + tiling.results_at + (reinterpret_cast<std::uintptr_t>(target) & 15));
  Int* codes = nullptr;
  if constexpr (kIndices) {
    codes = reinterpret_cast<Int*>(tile_memory + tiling.codes_at);
    with_stored_type(p.index_dtype, [&]<class Stored>(Stored*) {
      codes += CodeRun<Stored>::phase_of(static_cast<const Stored*>(at.indices) + first_output);
    });
  }
  stage_at_once<kSlideBlock>(kept, source, planes * (height * width), false, [&] {
    if constexpr (!kIndices) {
      for (Int i = static_cast<Int>(threadIdx.x); i < width + kSlideMargin; i += kSlideBlock)
        outside[i] = identity<kFold, T>();
    }
  });

  auto joined = [](Value a, Value b) {
    if constexpr (kIndices) {
      return beats<kFold>(b.value, a.value) ? b : a;
    } else if constexpr (is_extreme<kFold>) {
      return larger_or_nan(a, b);
    } else {
      return a + b;
    }
  };
  for (Int item = static_cast<Int>(threadIdx.x); item < tiling.items; item += kSlideBlock) {
    Int plane = item;
    const Int x = take(plane, tiling.items_x) * kColumns, first = take_of(plane, tiling.items_y) * p.strip;
    if (plane >= planes) break;
    const Int end = least(first + p.strip, out_height), left = x * kStride - p.axis[2].pad_begin;
    // With indices, elements of the window stand for those outside, the nearest ones: they change no maximum, nor where it is.
    bool inside[kTaps];
    Int column[kTaps];
#pragma unroll
    for (int t = 0; t < kTaps; ++t) {
      inside[t] = static_cast<unsigned>(left + t) < static_cast<unsigned>(width);
      column[t] = kIndices ? least(most(left + t, 0), width - 1) : 0;
    }
    bool exists[kColumns];
#pragma unroll
    for (int i = 0; i < kColumns; ++i) exists[i] = x + i < out_width;
    RowDivisors<T, kColumns> divisors;
    const Term<kFold, T> term(p.norm_type);
    Int y = first * kStride - p.axis[1].pad_begin;
    const T* plane_input = input + plane * (height * width);
    const T* from = plane_input + y * width + left;
    // The next row along the windows.
    auto fold_row = [&](Value(&line)[kColumns]) {
      Value taps[kTaps];
      if constexpr (kIndices) {
        const Int row = least(most(y, 0), height - 1) * width;
#pragma unroll
        for (int t = 0; t < kTaps; ++t) taps[t] = {plane_input[row + column[t]], row + column[t]};
      } else {
        const T* row = static_cast<unsigned>(y) < static_cast<unsigned>(height) ? from : outside + left;
#pragma unroll
        for (int t = 0; t < kTaps; ++t) {
          if constexpr (is_extreme<kFold>) {
            taps[t] = inside[t] ? row[t] : identity<kFold, T>();
          } else {
            // Every tap is loaded, also one that is none: what a question before each load would cost, conversions hide.
            const Value tap = term(row[t]);
            taps[t] = inside[t] ? tap : Value{0};
          }
        }
        from += width;
      }
#pragma unroll
      for (int i = 0; i < kColumns; ++i) {
        line[i] = taps[i * kStride];
        if constexpr (!is_extreme<kFold>) line[i] = Value{0} + line[i];  // no sum is -0
#pragma unroll
        for (int t = 1; t < kKernel; ++t) line[i] = joined(line[i], taps[i * kStride + t]);
      }
      ++y;
    };
    Value line[kKernel][kColumns];
#pragma unroll
    for (int r = 0; r < kKept; ++r) fold_row(line[r]);
    T* result = results + plane * outputs + first * out_width + x;
    Int* code = codes + plane * outputs + first * out_width + x;
#pragma unroll 2
    for (Int out = first; out < end; ++out) {
      Value window[kColumns];
#pragma unroll
      for (int r = kKept; r < kKernel; ++r) fold_row(line[r]);
#pragma unroll
      for (int i = 0; i < kColumns; ++i) {
        window[i] = line[0][i];
#pragma unroll
        for (int r = 1; r < kKernel; ++r) window[i] = joined(window[i], line[r][i]);
#pragma unroll
        for (int r = 0; r < kKept; ++r) line[r][i] = line[r + kStride][i];
      }
      const Int top = y - kKernel;
      if constexpr (kIndices) {
#pragma unroll
        for (int i = 0; i < kColumns; ++i) {
          if (!exists[i]) break;
          result[i] = window[i].value;
          Int place = window[i].code;
          if (p.index_kind == IndexKind::window) {
            const Int across = take(place, p.axis[2].by_input) - (left + i * kStride);
            place = (place - top) * kKernel + across;
          }
          code[i] = place;
        }
        code += out_width;
      } else if constexpr (is_extreme<kFold>) {
        bool doubtful = false;
#pragma unroll
        for (int i = 0; i < kColumns; ++i) doubtful = doubtful || is_doubtful(window[i]);
        if (doubtful) {
          for (Int r = most(top, 0); r < least(y, height); ++r) {
            const T* row = plane_input + r * width + left;
#pragma unroll
            for (int i = 0; i < kColumns; ++i) {
              bool begun = r > most(top, 0);
#pragma unroll
              for (int t = i * kStride; t < i * kStride + kKernel; ++t) {
                if (!inside[t]) continue;
                if (!begun || beats<kFold>(row[t], window[i])) window[i] = row[t];
                begun = true;
              }
            }
          }
        }
#pragma unroll
        for (int i = 0; i < kColumns; ++i) {
          if (exists[i]) result[i] = window[i];
        }
      } else {
        if constexpr (kOwnDivisors) {
          divisors.follow(p, 1, out, x);
#pragma unroll
          for (int i = 0; i < kColumns; ++i)
            window[i] = quotient(window[i], divisors.divisor[i], divisors.reciprocal[i]);
        } else {
          divide_all<T>(p, window);
        }
#pragma unroll
        for (int i = 0; i < kColumns; ++i) {
          if constexpr (kFold == Fold::square) window[i] = sqrt(window[i] * static_cast<Value>(kKernel * kKernel));
          if (exists[i]) result[i] = narrow<T>(window[i]);
        }
      }
      result += out_width;
    }
  }
  __syncthreads();
  store_run<kSlideBlock>(target, results, planes * outputs);
  if constexpr (kIndices) {
    with_stored_type(p.index_dtype, [&]<class Stored>(Stored*) {
      CodeRun<Stored>::template store_all<kSlideBlock>(static_cast<Stored*>(at.indices) + first_output, codes,
                                                       planes * outputs);
    });
  }
}

}  // namespace cenote::gpu
