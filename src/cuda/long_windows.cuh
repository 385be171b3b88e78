// Long windows with little stride: along the width, then along the height, each in two passes whatever the window's length.
//
// A line is cut into blocks as long as the window. A window that starts inside a block is the end of that block (folded backwards
// from the block's last element, in place) joined to the beginning of the next (folded forwards while the results are written):
// three folds an element, no subtraction. Sums therefore have the same bits in every run, and the max family keeps its order rule,
// since the left operand of every fold lies before the right one.
#pragma once

#include "cuda/tiles.cuh"

namespace cenote::gpu {

inline constexpr int kLineBlock = 128;

template <class T, Fold kFold>
struct Item {
  Folded<T, kFold> value;
  std::int32_t code;
};

template <class T, Fold kFold, bool kIndices>
struct Line {
  Folded<T, kFold>* values;
  std::int32_t* codes;
  std::int32_t step;

  __device__ Item<T, kFold> get(std::int32_t i) const { return {values[i * step], kIndices ? codes[i * step] : 0}; }
  __device__ void put(std::int32_t i, const Item<T, kFold>& item) const {
    values[i * step] = item.value;
    if constexpr (kIndices) codes[i * step] = item.code;
  }
};

/// `left` lies before `right`.
template <Fold kFold, class T>
__device__ inline Item<T, kFold> join(const Item<T, kFold>& left, const Item<T, kFold>& right) {
  if constexpr (is_extreme<kFold>) {
    return beats<kFold>(right.value, left.value) ? right : left;
  } else {
    return {left.value + right.value, 0};
  }
}

/// Replaces element i by the fold of elements i .. i + window - 1, for all i in [0, length - window].
template <class T, Fold kFold, bool kIndices>
__device__ inline void fold_line(const Line<T, kFold, kIndices>& line, std::int32_t length, std::int32_t window) {
  for (std::int32_t begin = 0; begin + window <= length; begin += window) {
    Item<T, kFold> end = line.get(begin + window - 1);
#pragma unroll 4
    for (std::int32_t i = begin + window - 2; i >= begin; --i) {
      end = join<kFold, T>(line.get(i), end);
      line.put(i, end);
    }
    const std::int32_t last = least(begin + window - 1, length - window);
    if (last <= begin) break;
    Item<T, kFold> start = line.get(begin + window);
    line.put(begin + 1, join<kFold, T>(line.get(begin + 1), start));
#pragma unroll 4
    for (std::int32_t i = begin + 2; i <= last; ++i) {
      start = join<kFold, T>(start, line.get(i + window - 1));
      line.put(i, join<kFold, T>(line.get(i), start));
    }
  }
}

/// Where a block's q-th region lies.
struct Place2 {
  std::int64_t n, c;
  std::int32_t y, x;
  bool exists;
};

__device__ inline Place2 region_of(const Regions& r, std::int32_t q, std::int32_t all_channels) {
  Place2 place;
  if (r.channels_fastest) {
    std::int32_t rest = static_cast<std::int32_t>(blockIdx.x);
    const std::int32_t group = take(rest, r.channel_groups);
    place.x = take(rest, r.tiles_x) * r.columns;
    place.y = take(rest, r.tiles_y) * r.rows;
    place.n = rest;
    place.c = group * r.regions + q;
    place.exists = place.c < all_channels;
  } else {
    std::int32_t rest = static_cast<std::int32_t>(blockIdx.x) * r.regions + q;
    place.exists = rest < r.total_regions;
    place.x = take(rest, r.tiles_x) * r.columns;
    place.y = take(rest, r.tiles_y) * r.rows;
    place.c = take(rest, r.channels);
    place.n = rest;
  }
  return place;
}

template <class T, Fold kFold, bool kIndices>
__global__ void __launch_bounds__(kLineBlock)
    fold_lines(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  using Int = std::int32_t;
  using Value = Folded<T, kFold>;
  const Regions& r = p.regions;
  auto* values = reinterpret_cast<Value*>(tile_memory);
  auto* codes = reinterpret_cast<Int*>(tile_memory + p.tiling.codes_at);
  const Int height = p.axis[1].input, width = p.axis[2].input, channels = r.channels.value;
  const T* input = static_cast<const T*>(at.input);
  // Planar: one region after the other. Channels last: all regions together, which are neighbouring channels of one place.
  const Int together = r.channels_fastest ? r.regions : 1, rounds = r.channels_fastest ? 1 : r.regions;
  const Int count = together * r.source_rows * r.source_columns;
  for (Int round = 0; round < rounds; ++round) {
    const Place2 place = region_of(r, round, channels);
    if (!place.exists) break;
    const Int top = place.y * p.axis[1].stride - p.axis[1].pad_begin,
              left = place.x * p.axis[2].stride - p.axis[2].pad_begin;
    const T* source = input + place.n * p.input.n + place.c * p.input.c;
#pragma unroll 4
    for (Int i = static_cast<Int>(threadIdx.x); i < count; i += kLineBlock) {
      Int row = i;
      const Int q = r.channels_fastest ? take(row, r.by_regions) : 0;
      const Int column = take(row, r.by_source_columns);
      if (r.channels_fastest && place.c + q >= channels) continue;
      const Int y = top + row, x = left + column;
      const Int near_y = least(most(y, 0), height - 1), near_x = least(most(x, 0), width - 1);
      const T value = source[q + near_y * p.input.h + near_x * p.input.w];
      const Int to = (round + q) * r.region_step + row * r.row_step + column * r.column_step;
      if constexpr (is_extreme<kFold>) {
        values[to] = p.absolute ? magnitude(value) : value;  // outside: an element of the window once more
        if constexpr (kIndices) codes[to] = near_y * width + near_x;
      } else {
        values[to] = y == near_y && x == near_x ? term<kFold>(value, p.norm_type) : Value{0};
      }
    }
  }
  __syncthreads();
  const Int lines = r.regions * r.source_rows;
  for (Int i = static_cast<Int>(threadIdx.x); i < lines; i += kLineBlock) {
    Int q, row = i;
    if (r.channels_fastest) {
      q = take(row, r.by_regions);
    } else {
      q = i;
      row = take(q, r.by_source_rows);
    }
    const Int from = q * r.region_step + row * r.row_step;
    fold_line<T, kFold, kIndices>({values + from, codes + from, r.column_step}, r.source_columns, p.axis[2].kernel);
  }
  __syncthreads();
  const Int columns = r.regions * r.columns;
  for (Int i = static_cast<Int>(threadIdx.x); i < columns; i += kLineBlock) {
    Int q, column = i;
    if (r.channels_fastest) {
      q = take(column, r.by_regions);
    } else {
      q = i;
      column = take(q, r.by_columns);
    }
    const Int from = q * r.region_step + column * p.axis[2].stride * r.column_step;
    fold_line<T, kFold, kIndices>({values + from, codes + from, r.row_step}, r.source_rows, p.axis[1].kernel);
  }
  __syncthreads();
  const Int outputs = together * r.rows * r.columns;
  for (Int round = 0; round < rounds; ++round) {
    const Place2 place = region_of(r, round, channels);
    if (!place.exists) break;
    const std::int64_t output = place.n * p.output.n + place.c * p.output.c;
    const std::int64_t index = place.n * p.indices.n + place.c * p.indices.c;
    for (Int i = static_cast<Int>(threadIdx.x); i < outputs; i += kLineBlock) {
      Int row = i;
      const Int q = r.channels_fastest ? take(row, r.by_regions) : 0;
      const Int column = take(row, r.by_columns);
      const Int y = place.y + row, x = place.x + column;
      if ((r.channels_fastest && place.c + q >= channels) || y >= p.axis[1].output || x >= p.axis[2].output) continue;
      const Int from =
          (round + q) * r.region_step + row * p.axis[1].stride * r.row_step + column * p.axis[2].stride * r.column_step;
      std::int64_t counted = 1;
      if constexpr (!is_extreme<kFold>) {
        if (kFold != Fold::sum || !p.uniform_divisor) {
          counted = counted_taps<kFold>(p, taps_of(p.axis[0], Int{0}), taps_of(p.axis[1], y), taps_of(p.axis[2], x));
        }
      }
      static_cast<T*>(at.output)[output + q * p.output.c + y * p.output.h + x * p.output.w] =
          finish<kFold, T>(p, values[from], counted);
      if constexpr (kIndices) {
        Int code[1] = {codes[from]};
        if (p.index_kind == IndexKind::window) {
          Int position = codes[from];
          const Int place_x = take(position, p.axis[2].by_input);
          code[0] = (position - (y * p.axis[1].stride - p.axis[1].pad_begin)) * p.axis[2].kernel + place_x -
                    (x * p.axis[2].stride - p.axis[2].pad_begin);
        }
        store_codes(at.indices, p.index_dtype, index + q * p.indices.c + y * p.indices.h + x * p.indices.w, code);
      }
    }
  }
}

}  // namespace cenote::gpu
