// Small square windows: a thread walks down a column of outputs and folds each input row once, for all the windows that see it.
// What limits these kernels is the traffic between the L2 cache and the multiprocessors, so that no row should cross twice: strips of
// outputs are as tall as leaves enough threads. A thread's kLanes outputs are neighbouring channels, or neighbouring columns of
// planar tensors with aligned rows.
#pragma once

#include "cuda/pairs.cuh"
#include "cuda/rows.cuh"

namespace cenote::gpu {

/// Replaces the lanes of `best` that `next`, which comes later, beats.
template <Fold kFold, bool kIndices, class T, int kLanes>
__device__ inline void improve(Vector<T, kLanes>& best, std::int32_t (&codes)[kLanes], const Vector<T, kLanes>& next,
                               const std::int32_t (&next_codes)[kLanes]) {
  if constexpr (kFold == Fold::max && sizeof(T) == 2 && Number<T>::floating && kLanes % 2 == 0) {
#pragma unroll
    for (int i = 0; i < kLanes; i += 2) {
      unsigned old, value;
      memcpy(&old, &best.lane[i], 4);
      memcpy(&value, &next.lane[i], 4);
      const unsigned mask = beating_halves<T>(value, old);
      old = (value & mask) | (old & ~mask);
      memcpy(&best.lane[i], &old, 4);
      if constexpr (kIndices) {
        if ((mask & 0xffffU) != 0) codes[i] = next_codes[i];
        if ((mask >> 16) != 0) codes[i + 1] = next_codes[i + 1];
      }
    }
  } else if constexpr (kFold == Fold::max && sizeof(T) == 1 && kLanes % 4 == 0 && !kIndices) {
#pragma unroll
    for (int i = 0; i < kLanes; i += 4) {
      unsigned old, value;
      memcpy(&old, &best.lane[i], 4);
      memcpy(&value, &next.lane[i], 4);
      old = larger_bytes<T>(old, value);
      memcpy(&best.lane[i], &old, 4);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      if (beats<kFold>(next.lane[i], best.lane[i])) {
        best.lane[i] = next.lane[i];
        if constexpr (kIndices) codes[i] = next_codes[i];
      }
    }
  }
}

/// One input row folded along the windows of kLanes outputs: values, and the columns they came from; or sums.
template <class T, int kLanes, Fold kFold>
struct FoldedRow {
  Vector<T, kLanes> best;
  std::int32_t column[kLanes];
};
template <class T, int kLanes, Fold kFold>
requires(!is_extreme<kFold>) struct FoldedRow<T, kLanes, kFold> {
  Accumulator<T> sum[kLanes];
};

enum class Lanes : std::uint8_t { channels, columns };

/// Columns that are read for kLanes outputs, and how.
template <class T, int kLanes, Lanes kAs, Fold kFold, bool kIndices, int kKernel, int kStride, int kPadding>
struct RowReader {
  using Int = std::int32_t;
  Int left, width, step;
  Int column[kKernel];  // of channels: where the taps are; outside, the nearest again
  bool inside[kKernel];

  __device__ RowReader(const Params<Int>& p, Int x)
      : left(x * (kAs == Lanes::channels ? p.axis[2].stride : kStride) - p.axis[2].pad_begin),
        width(p.axis[2].input),
        step(p.input.w) {
    if constexpr (kAs == Lanes::channels) {
#pragma unroll
      for (int t = 0; t < kKernel; ++t) {
        column[t] = least(most(left + t, 0), width - 1);
        inside[t] = column[t] == left + t;
      }
    }
  }

  /// Tap t of every lane's window. Outside, sums have zeros.
  __device__ void load_taps(const T* row, bool row_inside, Vector<T, kLanes> (&taps)[kKernel]) const {
    const Vector<T, kLanes> nothing{};
    if constexpr (kAs == Lanes::channels) {
#pragma unroll
      for (int t = 0; t < kKernel; ++t) {
        taps[t] = load_constant<kLanes>(row + column[t] * step);
        if (!is_extreme<kFold> && !(row_inside && inside[t])) taps[t] = nothing;
      }
    } else {
      constexpr int kOwn = kLanes * kStride;
      constexpr int kRight = kKernel - kStride - kPadding > 0 ? kKernel - kStride - kPadding : 0;
      constexpr int kStep = sizeof(T) * kOwn <= 16 ? kOwn : 16 / static_cast<int>(sizeof(T));
      T span[kPadding + kOwn + kRight];
      const T* own = row + left + kPadding;
#pragma unroll
      for (int i = 0; i < kOwn; i += kStep) {
        const auto piece = load_constant<kStep>(own + i);
#pragma unroll
        for (int j = 0; j < kStep; ++j) span[kPadding + i + j] = piece.lane[j];
      }
      if constexpr (kPadding > 0) {
        span[0] = left >= 0           ? load_constant<1>(own - 1).lane[0]
                  : is_extreme<kFold> ? span[kPadding]
                                      : identity<kFold, T>();
      }
      if constexpr (kRight > 0) {
        span[kPadding + kOwn] = left + kPadding + kOwn < width ? load_constant<1>(own + kOwn).lane[0]
                                : is_extreme<kFold>            ? span[kPadding + kOwn - 1]
                                                               : identity<kFold, T>();
      }
#pragma unroll
      for (int t = 0; t < kKernel; ++t) {
#pragma unroll
        for (int i = 0; i < kLanes; ++i) taps[t].lane[i] = span[i * kStride + t];
        if (!is_extreme<kFold> && !row_inside) taps[t] = nothing;
      }
    }
  }
  __device__ Int column_of(int t, int lane) const {
    if constexpr (kAs == Lanes::channels) {
      return column[t];
    } else {
      return least(most(left + lane * kStride + t, 0), width - 1);
    }
  }

  /// Sums of powers begin with those of the row `above`, if there is one.
  __device__ FoldedRow<T, kLanes, kFold> fold(const Vector<T, kLanes> (&taps)[kKernel], const Term<kFold, T>& term,
                                              const FoldedRow<T, kLanes, kFold>* above) const {
    FoldedRow<T, kLanes, kFold> result;
    if constexpr (is_extreme<kFold>) {
      result.best = taps[0];
#pragma unroll
      for (int i = 0; i < kLanes; ++i) result.column[i] = kIndices ? column_of(0, i) : 0;
#pragma unroll
      for (int t = 1; t < kKernel; ++t) {
        if constexpr (is_in_any_order<T, kLanes, kFold, kIndices>) {
          result.best = larger_lanes(result.best, taps[t]);
        } else {
          Int columns[kLanes];
#pragma unroll
          for (int i = 0; i < kLanes; ++i) columns[i] = kIndices ? column_of(t, i) : 0;
          improve<kFold, kIndices>(result.best, result.column, taps[t], columns);
        }
      }
    } else {
      term.apply([&](auto term_of) {
#pragma unroll
        for (int i = 0; i < kLanes; ++i) {
          result.sum[i] = above != nullptr ? above->sum[i] : Accumulator<T>{0};  // no sum is -0
#pragma unroll
          for (int t = 0; t < kKernel; ++t) result.sum[i] += term_of(taps[t].lane[i]);
        }
      });
    }
    return result;
  }
};

/// Blocks on a multiprocessor that the compiler must leave registers for; 0: as it thinks best. As measured.
template <class T, int kLanes, Lanes kAs, Fold kFold, bool kIndices, int kStride, bool kDeep>
constexpr int count_fewest_blocks() {
  constexpr bool kWords = sizeof(T) == 4;
  if (kDeep) return 0;
  if (kLanes == 1) return kIndices ? 1 : 0;
  if (kStride == 1 && kLanes == 4 && kWords && !kIndices) return 4;
  if (kAs == Lanes::columns) return is_extreme<kFold> && kWords && !kIndices ? 1 : 0;
  return !kWords && kIndices ? 1 : 0;
}
template <class T, int kLanes, Lanes kAs, Fold kFold, bool kIndices, int kStride, bool kDeep>
inline constexpr int fewest_blocks = count_fewest_blocks<T, kLanes, kAs, kFold, kIndices, kStride, kDeep>();

/// Square windows of kKernel taps, stride kStride along the height (and the width, where lanes are columns), no dilation along both,
/// none empty. kDeep: windows of several slices, whose order of folding leaves no row to be used twice.
template <class T, int kLanes, Lanes kAs, Fold kFold, bool kIndices, int kKernel, int kStride, int kPadding, bool kDeep>
__global__ void __launch_bounds__(kBlock, fewest_blocks<T, kLanes, kAs, kFold, kIndices, kStride, kDeep>)
    fold_down(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Line = FoldedRow<T, kLanes, kFold>;
  constexpr int kKept = kDeep ? 0 : kKernel - kStride;  // rows that the next output sees again
  const Int thread = thread_of_grid<Int>();
  if (thread >= p.grid.threads) return;
  Place<Int> place = p.grid.place(thread);
  place.y *= p.strip;
  if constexpr (kAs == Lanes::columns) place.x *= kLanes;
  const Int height = p.axis[1].input, width = p.axis[2].input;
  const RowReader<T, kLanes, kAs, kFold, kIndices, kKernel, kStride, kPadding> reader(p, place.x);
  const Taps<Int> depth = p.grid.flat && p.axis[0].kernel == 1 ? Taps<Int>{0, 0, 1, 1, 1} : taps_of(p.axis[0], place.z);
  const T* input = static_cast<const T*>(at.input) + p.input.plane(place.n, place.c);
  const bool taps_wanted = p.index_kind == IndexKind::window;
  Int top = place.y * kStride - p.axis[1].pad_begin;
  Int source_z = depth.start + depth.low * p.axis[0].dilation;

  auto row_near = [&](Int y) { return least(most(y, 0), height - 1); };
  auto load_row = [&](Int y, Vector<T, kLanes>(&taps)[kKernel]) {
    const Int near = row_near(y);
    reader.load_taps(input + source_z * p.input.d + near * p.input.h, y == near, taps);
  };
  // Rows of outputs that are never aligned: the lanes of a warp exchange what they made, so that neighbours store neighbours. All of them
  // walk down equally far then.
  constexpr bool kExchange = kAs == Lanes::columns && kPadding == 0 && kKernel > kStride;
  __shared__ Vector<T, kLanes> values[kExchange ? kBlock : 1];
  __shared__ Vector<Int, kLanes> places[kExchange && kIndices ? kBlock : 1];
  const Int lane = static_cast<Int>(threadIdx.x) % 32, first_of_warp = static_cast<Int>(threadIdx.x) - lane;
  const bool exchange = kExchange && !p.paired_columns && thread - lane + 32 <= p.grid.threads;
  const Int last = least(place.y + p.strip, p.axis[1].output);
  const Int end = exchange ? place.y + p.strip : last;
  const Term<kFold, T> term(p.norm_type);
  Line line[kKernel];
  // The rows that the next output sees first are under way while this one is folded, where they are few enough for the registers.
  constexpr bool kAhead = !kDeep && kStride == 1 && kLanes > 1 && sizeof(T) == 4 && !kIndices;
  Vector<T, kLanes> next[kAhead ? kStride : 1][kKernel];
  // Terms that cancel out have other roots in another order: powers keep that of the kernels for any windows.
  constexpr bool kInOrder = kFold == Fold::power;
  static_assert(!kInOrder || (kKept == 0 && !kDeep));
  auto read = [&](Int y, const Line* above) {
    Vector<T, kLanes> taps[kKernel];
    load_row(y, taps);
    return reader.fold(taps, term, above);
  };
#pragma unroll
  for (int r = 0; r < kKept; ++r) line[r] = read(top + r, nullptr);
  if constexpr (kAhead) {
#pragma unroll
    for (int r = 0; r < kStride; ++r) load_row(top + kKept + r, next[r]);
  }

  T* output = static_cast<T*>(at.output) + p.output.plane(place.n, place.c) + p.output.at(place.z, place.y, place.x);
  std::int64_t index = p.indices.plane(place.n, place.c) + p.indices.at(place.z, place.y, place.x);
  RowDivisors<T, 1> divisors;
  for (Int y = place.y; y < end; ++y) {
    Line fold;
    Int codes[kLanes];
    for (Int tz = depth.low; tz < (kDeep ? depth.high : depth.low + 1); ++tz) {
      if constexpr (kDeep) source_z = depth.start + tz * p.axis[0].dilation;
      if constexpr (kAhead) {
#pragma unroll
        for (int r = 0; r < kStride; ++r) line[kKept + r] = reader.fold(next[r], term, nullptr);
        if (y + 1 < end) {
#pragma unroll
          for (int r = 0; r < kStride; ++r) load_row(top + kKernel + r, next[r]);
        }
      } else {
        if constexpr (kLanes == 1 && kIndices) {  // all rows are loaded before the first is folded
          Vector<T, kLanes> taps[kKernel - kKept][kKernel];
#pragma unroll
          for (int r = kKept; r < kKernel; ++r) load_row(top + r, taps[r - kKept]);
#pragma unroll
          for (int r = kKept; r < kKernel; ++r) line[r] = reader.fold(taps[r - kKept], term, nullptr);
        } else {
#pragma unroll
          for (int r = kKept; r < kKernel; ++r) line[r] = read(top + r, kInOrder && r > 0 ? &line[r - 1] : nullptr);
        }
      }
#pragma unroll
      for (int r = 0; r < kKernel; ++r) {
        const bool first = r == 0 && (!kDeep || tz == depth.low);
        if constexpr (is_extreme<kFold>) {
          Int here[kLanes];
          if constexpr (kIndices) {
            const Int near = row_near(top + r);
            const Int row_code =
                taps_wanted ? (tz * kKernel + near - top) * kKernel - reader.left : (source_z * height + near) * width;
#pragma unroll
            for (int i = 0; i < kLanes; ++i) {
              here[i] = row_code + line[r].column[i];
              if (kAs == Lanes::columns && taps_wanted) here[i] -= i * kStride;
            }
          }
          if (first) {
            fold.best = line[r].best;
#pragma unroll
            for (int i = 0; i < kLanes; ++i) codes[i] = here[i];
          } else if constexpr (is_in_any_order<T, kLanes, kFold, kIndices>) {
            fold.best = larger_lanes(fold.best, line[r].best);
          } else {
            improve<kFold, kIndices>(fold.best, codes, line[r].best, here);
          }
        } else {
#pragma unroll
          for (int i = 0; i < kLanes; ++i)
            fold.sum[i] = first || kInOrder ? line[r].sum[i] : fold.sum[i] + line[r].sum[i];
        }
      }
    }
    if constexpr (is_in_any_order<T, kLanes, kFold, kIndices>) {
      if (is_doubtful(fold.best.lane[0])) {
        bool begun = false;
        for (Int tz = depth.low; tz < depth.high; ++tz) {
          source_z = depth.start + tz * p.axis[0].dilation;
#pragma unroll
          for (int r = 0; r < kKernel; ++r) {
            Vector<T, kLanes> taps[kKernel];
            load_row(top + r, taps);
#pragma unroll
            for (int t = 0; t < kKernel; ++t) {
              if (!begun || beats<kFold>(taps[t].lane[0], fold.best.lane[0])) fold.best = taps[t];
              begun = true;
            }
          }
        }
      }
    }
    Vector<T, kLanes> result;
    if constexpr (is_extreme<kFold>) {
      result = fold.best;
    } else {
      if (kFold == Fold::sum && p.uniform_divisor) {
        divide_all<T>(p, fold.sum);
#pragma unroll
        for (int i = 0; i < kLanes; ++i) result.lane[i] = narrow<T>(fold.sum[i]);
      } else if constexpr (kFold == Fold::sum && kAs == Lanes::channels) {
        divisors.follow(p, counted_of(p, depth), y, place.x);
        divide_by(fold.sum, divisors.divisor[0], divisors.reciprocal[0]);
#pragma unroll
        for (int i = 0; i < kLanes; ++i) result.lane[i] = narrow<T>(fold.sum[i]);
      } else {
#pragma unroll
        for (int i = 0; i < kLanes; ++i) {
          const Int x = place.x + (kAs == Lanes::columns ? i : 0);
          const std::int64_t counted = counted_taps<kFold>(p, depth, taps_of(p.axis[1], y), taps_of(p.axis[2], x));
          result.lane[i] = finish<kFold, T>(p, fold.sum[i], counted);
        }
      }
    }
    if (kAs == Lanes::channels || p.paired_columns) {
      store(output, result);
      if constexpr (kIndices) store_codes(at.indices, p.index_dtype, index, codes);
    } else if (exchange) {
      values[threadIdx.x] = result;
      if constexpr (kIndices) memcpy(&places[threadIdx.x], codes, sizeof(codes));
      __syncwarp();
      const Int columns = y < last ? p.axis[2].output - place.x : 0;
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        const Int owner = i * (32 / kLanes) + lane / kLanes, column = lane % kLanes;
        const auto to = __shfl_sync(0xffffffffU, reinterpret_cast<unsigned long long>(output), owner);
        const long long index_to = kIndices ? __shfl_sync(0xffffffffU, static_cast<long long>(index), owner) : 0;
        if (column >= __shfl_sync(0xffffffffU, columns, owner)) continue;
        reinterpret_cast<T*>(to)[column] = values[first_of_warp + owner].lane[column];
        if constexpr (kIndices) {
          const Int code[1] = {places[first_of_warp + owner].lane[column]};
          store_codes(at.indices, p.index_dtype, index_to + column, code);
        }
      }
      __syncwarp();
    } else {
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        if (place.x + i >= p.axis[2].output) break;
        output[i] = result.lane[i];
        if constexpr (kIndices) {
          const Int code[1] = {codes[i]};
          store_codes(at.indices, p.index_dtype, index + i, code);
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kKept; ++r) line[r] = line[r + kStride];
    top += kStride;
    output += p.output.h;
    index += p.indices.h;
  }
}

}  // namespace cenote::gpu
