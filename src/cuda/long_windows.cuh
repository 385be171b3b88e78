// Long windows with little stride: along the width, then along the height, each at a cost that grows slowly with the window.
//
// A block keeps regions of the source in shared memory. A thread makes kRun results that follow each other along a line: what all of
// their windows share is folded once, what they have before it from the back, what they have after it from the front. No subtraction,
// so that sums have the same bits in every run; and the left operand of every fold lies before the right one, so that the max family
// keeps its order rule.
#pragma once

#include "cuda/tiles.cuh"

namespace cenote::gpu {

inline constexpr int kLineBlock = 256;

template <class T, Fold kFold>
struct Item {
  Folded<T, kFold> value;
  std::int32_t code;
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

/// Folds kRun windows of `window` elements that start at elements 0, 1, ... of a line. `get(i)` is element i, `middle(i, j)` the fold
/// of elements i .. j.
template <class T, Fold kFold, int kRun, class Get, class Middle>
__device__ inline void fold_run(std::int32_t window, Get get, Middle middle, Item<T, kFold> (&result)[kRun]) {
  if (window < kRun) {
#pragma unroll
    for (int i = 0; i < kRun; ++i) result[i] = middle(i, i + window - 1);
    return;
  }
  result[kRun - 1] = middle(kRun - 1, window - 1);
  if constexpr (kRun > 1) {
    Item<T, kFold> before = get(kRun - 2);
    result[kRun - 2] = join<kFold, T>(before, result[kRun - 1]);
#pragma unroll
    for (int i = kRun - 3; i >= 0; --i) {
      before = join<kFold, T>(get(i), before);
      result[i] = join<kFold, T>(before, result[kRun - 1]);
    }
    Item<T, kFold> after = get(window);
    result[1] = join<kFold, T>(result[1], after);
#pragma unroll
    for (int i = 2; i < kRun; ++i) {
      after = join<kFold, T>(after, get(window + i - 1));
      result[i] = join<kFold, T>(result[i], after);
    }
  }
}

/// What is stored for an element of the plane: its flat index, or its place in the window that begins at (top, left).
__device__ inline std::int32_t stored_code(const Params<std::int32_t>& p, std::int32_t code, std::int32_t top,
                                           std::int32_t left) {
  if (p.index_kind != IndexKind::window) return code;
  std::int32_t y = code;
  const std::int32_t x = take(y, p.axis[2].by_input);
  return (y - top) * p.axis[2].kernel + x - left;
}

/// Where a region of a block lies.
template <class T>
struct RegionPlace {
  const T* input;                   // its plane
  T* output;                        // its first output
  std::int64_t index;               // where that one's index goes
  std::int32_t y, x;                // its first output
  std::int32_t top, left;           // where the window of that one begins
  std::int32_t row_begin, row_end;  // rows of the input that its windows reach
  bool exists;
};

template <class T>
__device__ inline RegionPlace<T> region_of(const Params<std::int32_t>& p, const Pointers& at, std::int32_t q) {
  const Regions& r = p.regions;
  RegionPlace<T> place;
  std::int32_t rest = static_cast<std::int32_t>(blockIdx.x), c = 0;
  if (r.channels_fastest) {
    c = take(rest, r.channel_groups) * r.regions;
    place.exists = true;
  } else {
    rest = rest * r.regions + q;
    place.exists = rest < r.total_regions;
    if (p.input.c == 1) c = take(rest, r.channels);
  }
  place.x = take(rest, r.tiles_x) * r.columns;
  place.y = take(rest, r.tiles_y) * r.rows;
  if (!r.channels_fastest && p.input.c != 1) c = take(rest, r.channels);
  place.top = place.y * p.axis[1].stride - p.axis[1].pad_begin;
  place.left = place.x * p.axis[2].stride - p.axis[2].pad_begin;
  place.row_begin = most(place.top, 0);
  place.row_end = place.exists ? least(place.top + r.reach_rows, p.axis[1].input) : place.row_begin;
  const std::int32_t n = rest;
  place.input = static_cast<const T*>(at.input) + p.input.plane(n, c);
  place.output = static_cast<T*>(at.output) + p.output.plane(n, c) + place.y * p.output.h + place.x * p.output.w;
  place.index = p.indices.plane(n, c) + place.y * p.indices.h + place.x * p.indices.w;
  return place;
}

inline constexpr int kMostRegions = 64;

/// Sliding windows along height and width, no dilation, none empty, no depth. A block's regions are kChannels neighbouring channels of
/// one place, or, where that is 1, any.
template <class T, Fold kFold, bool kIndices, int kRun, int kChannels>
__global__ void __launch_bounds__(kLineBlock)
    fold_lines(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Value = Folded<T, kFold>;
  constexpr Int kWarps = kLineBlock / 32;
  constexpr bool kTogether = kChannels > 1;
  __shared__ RegionPlace<T> places[kTogether ? 1 : kMostRegions];
  const Regions& r = p.regions;
  auto* source = reinterpret_cast<Value*>(tile_memory);
  auto* folded = reinterpret_cast<Value*>(tile_memory + r.folded_at);
  auto* folded_codes = reinterpret_cast<Int*>(tile_memory + r.codes_at);
  const Int width = p.axis[2].input;
  const Int thread = static_cast<Int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  if (thread < (kTogether ? 1 : r.regions)) places[thread] = region_of<T>(p, at, thread);
  __syncthreads();
  Int group = static_cast<Int>(blockIdx.x);
  if constexpr (kTogether) group = take(group, r.channel_groups);
  // Channels beyond the last: their threads do what the others do, with what memory holds, and store nothing.
  const Int present = kTogether ? least<Int>(kChannels, r.channels.value - group * kChannels) : 1;

  // Columns outside: the max family takes the nearest one again, which is in the window; sums take nothing. Rows outside are left out.
  auto stage_element = [&](Value* to, const T* row, Int x) {
    const Int near = least(most(x, 0), width - 1);
    const T* from = row + near * p.input.w;
    if constexpr (std::is_same_v<Value, T> && sizeof(T) >= 4) {
      __pipeline_memcpy_async(to, from, sizeof(T), is_extreme<kFold> || x == near ? 0 : sizeof(T));
    } else if constexpr (is_extreme<kFold>) {
      *to = *from;
    } else {
      *to = x == near ? widen(*from) : Value{0};
    }
  };
  if constexpr (kTogether) {
    const RegionPlace<T>& place = places[0];
    const Int q = lane % kChannels;
    if (q < present) {
      for (Int row = warp; row < place.row_end - place.row_begin; row += kWarps) {
        const T* from = place.input + (place.row_begin + row) * p.input.h + q * p.input.c;
        Value* to = source + row * r.row_step + q;
#pragma unroll 4
        for (Int column = lane / kChannels; column < r.source_columns; column += 32 / kChannels)
          stage_element(to + column * kChannels, from, place.left + column);
      }
    }
  } else {
    auto stage_line = [&](Int line, Int column, Int step) {
      Int q = line;
      const Int row = take_of(q, r.by_source_rows);
      const RegionPlace<T>& place = places[q];
      if (place.row_begin + row >= place.row_end) return;
      const T* from = place.input + (place.row_begin + row) * p.input.h;
      Value* to = source + line * r.row_step;
#pragma unroll 4
      for (Int i = column; i < r.source_columns; i += step) stage_element(to + i, from, place.left + i);
    };
    const Int lines = r.regions * r.source_rows;
    if (r.source_columns <= 48) {  // a thread to an element, so that no lane is idle
      for (Int i = thread; i < lines * r.source_columns; i += kLineBlock) {
        Int line = i;
        const Int column = take(line, r.by_source_columns);
        stage_line(line, column, r.source_columns);
      }
    } else {
      for (Int line = warp; line < lines; line += kWarps) stage_line(line, lane, 32);
    }
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();

  // Along the width: neighbouring threads take neighbouring lines.
  for (Int i = thread; i < r.by_lines.value * r.runs_x; i += kLineBlock) {
    Int run = i;
    const Int line = take(run, r.by_lines);
    Int q = line, row;
    if constexpr (kTogether) {
      row = q / kChannels;
      q = q % kChannels;
    } else {
      row = take_of(q, r.by_source_rows);
    }
    const RegionPlace<T>& place = places[kTogether ? 0 : q];
    if (place.row_begin + row >= place.row_end) continue;
    const Int first = run * kRun;
    const Value* from = source + (kTogether ? row * r.row_step + q : line * r.row_step) + first * kChannels;
    const Int left = place.left + first;
    auto get = [&](Int j) -> Item<T, kFold> { return {from[j * kChannels], left + j}; };
    auto middle = [&](Int begin, Int last) {
      Item<T, kFold> fold = get(begin);
#pragma unroll 4
      for (Int j = begin + 1; j <= last; ++j) fold = join<kFold, T>(fold, get(j));
      return fold;
    };
    Item<T, kFold> result[kRun];
    fold_run<T, kFold, kRun>(p.axis[2].kernel, get, middle, result);
    const Int to = (kTogether ? row * r.folded_row_step + q : line * r.folded_row_step) + first * kChannels;
#pragma unroll
    for (int j = 0; j < kRun; ++j) {
      folded[to + j * kChannels] = result[j].value;
      if constexpr (kIndices) folded_codes[to + j * kChannels] = least(most(result[j].code, 0), width - 1);
    }
  }
  __syncthreads();

  // Along the height: neighbouring threads take neighbouring columns.
  for (Int i = thread; i < r.by_across.value * r.runs_y; i += kLineBlock) {
    Int run = i;
    Int column = take(run, r.by_across), q;
    if constexpr (kTogether) {
      q = column % kChannels;
      column = column / kChannels;
    } else {
      q = column;
      column = take_of(q, r.by_columns);
    }
    const RegionPlace<T>& place = places[kTogether ? 0 : q];
    const Int x = place.x + column;
    if (!place.exists || x >= p.axis[2].output || (kTogether && q >= present)) continue;
    const Int first = run * (r.runs_of_one ? 1 : kRun), top = place.top + first;
    const Int begin_row = place.row_begin, last_row = place.row_end - 1;
    const Int from = (kTogether ? q : q * r.source_rows * r.folded_row_step) + column * p.axis[2].stride * kChannels;
    auto at_row = [&](Int y) -> Item<T, kFold> {
      const Int here = from + (y - begin_row) * r.folded_row_step;
      return {folded[here], kIndices ? y * width + folded_codes[here] : 0};
    };
    auto get = [&](Int j) -> Item<T, kFold> {
      const Int near = least(most(top + j, begin_row), last_row);
      if (!is_extreme<kFold> && near != top + j) return {Value{0}, 0};
      return at_row(near);
    };
    auto middle = [&](Int begin, Int last) -> Item<T, kFold> {
      const Int low = most(top + begin, begin_row), high = least(top + last, last_row);
      if (low > high) return get(begin);
      Item<T, kFold> fold = at_row(low);
#pragma unroll 4
      for (Int y = low + 1; y <= high; ++y) fold = join<kFold, T>(fold, at_row(y));
      return fold;
    };
    T* output = place.output + (kTogether ? q * p.output.c : 0) + column * p.output.w;
    const std::int64_t index = place.index + (kTogether ? q * p.indices.c : 0) + column * p.indices.w;
    auto finish_output = [&](Int j, const Item<T, kFold>& item) {
      Int row = first + j;
      if (p.axis[1].stride != 1) {
        row = p.axis[1].by_stride.quotient(row);
        if (row * p.axis[1].stride != first + j) return;
      }
      const Int y = place.y + row;
      if (row >= r.rows || y >= p.axis[1].output) return;
      std::int64_t counted = 1;
      if constexpr (!is_extreme<kFold>) {
        if (!p.uniform_divisor)
          counted = divisor_of(p, taps_of(p.axis[0], Int{0}), taps_of(p.axis[1], y), taps_of(p.axis[2], x));
      }
      Value value = item.value;
      if constexpr (!is_extreme<kFold>) value += Value{0};  // no sum is -0
      output[row * p.output.h] = finish<kFold, T>(p, value, counted);
      if constexpr (kIndices) {
        const Int code[1] = {stored_code(p, item.code, y * p.axis[1].stride - p.axis[1].pad_begin,
                                         x * p.axis[2].stride - p.axis[2].pad_begin)};
        store_codes(at.indices, p.index_dtype, index + row * p.indices.h, code);
      }
    };
    if (r.runs_of_one) {  // one row to a window
      finish_output(0, get(0));
      continue;
    }
    Item<T, kFold> result[kRun];
    fold_run<T, kFold, kRun>(p.axis[1].kernel, get, middle, result);
#pragma unroll
    for (int j = 0; j < kRun; ++j) finish_output(j, result[j]);
  }
}

}  // namespace cenote::gpu
