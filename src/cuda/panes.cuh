// Long windows one apart, channels last. A thread owns a few channels of one column, a block some columns. Where the order matters, for
// indices and where there are NaN or -0, a row is handed over through shared memory and folded along the width, four columns at a time
// first; then each thread walks down: rows are taken in blocks as long as the window, which is the end of one block and the beginning
// of the next (van Herk).
#pragma once

#include "cuda/panes_down.cuh"

namespace cenote::gpu {

inline constexpr int kMostPaneThreads = 256;

/// Sliding windows, no dilation, stride 1 along height and width, none empty, no depth. kAligned: pointers to multiples of 16 bytes.
template <class T, Fold kFold, bool kIndices, int kLanes, bool kAligned>
__global__ void __launch_bounds__(kMostPaneThreads, 2)
    fold_panes(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  if constexpr (!kIndices) {
    const bool done = p.panes.run == 4      ? fold_panes_down<T, kFold, kLanes, kAligned, 4, 4>(p, at)
                      : p.panes.handed == 4 ? fold_panes_down<T, kFold, kLanes, kAligned, 8, 4>(p, at)
                                            : fold_panes_down<T, kFold, kLanes, kAligned, 8, 8>(p, at);
    if (!is_extreme<kFold> || done) return;
  }
  using Int = std::int32_t;
  using Some = Stack<T, kFold, kLanes>;
  constexpr int kAhead = 4;  // rows under way
  const Panes& panes = p.panes;
  const Int thread = static_cast<Int>(threadIdx.x), threads = static_cast<Int>(blockDim.x);
  const Int height = p.axis[1].input, width = p.axis[2].input;
  const Int kernel_y = p.axis[1].kernel, kernel_x = p.axis[2].kernel, groups = panes.groups.value;
  // This thread's place: a column of the pane, and channels.
  const Int column = panes.groups.quotient(thread), lane = thread - column * groups;
  Int rest = static_cast<Int>(blockIdx.x);
  const Int c = (take(rest, panes.blocks_c) * groups + lane) * kLanes;
  const Int pane = take(rest, panes.blocks_x), n = take(rest, panes.batch), first_y = rest * panes.rows;
  const bool exists = c < panes.channels;
  const Int first_x = pane * panes.useful;  // the pane's first output
  // Of the source: a pane that is the whole width has no columns outside, others begin with their first window.
  const Int x = panes.whole ? column : first_x - p.axis[2].pad_begin + column;
  const bool has_source = exists && static_cast<unsigned>(x) < static_cast<unsigned>(width);
  const Int out_x = first_x + column;
  const bool makes = exists && column < panes.useful && out_x < p.axis[2].output;
  // Its window, in columns of the pane.
  Int begin = panes.whole ? out_x - p.axis[2].pad_begin : column, end = begin + kernel_x;
  begin = most(begin, 0);
  end = least(end, panes.columns);
  Some empty;
#pragma unroll
  for (int i = 0; i < kLanes; ++i) empty.at[i] = {empty_fold<kFold, T>(), -1};

  // Shared memory: rows that are under way and a block of rows, of this thread alone; then a row's columns, and fours of them.
  auto* arriving = reinterpret_cast<Vector<T, kLanes>*>(tile_memory) + thread;
  auto shelf_at = [&](Int first, Int step) {
    return Shelf<T, kFold, kIndices, kLanes>{
        reinterpret_cast<Vector<Folded<T, kFold>, kLanes>*>(tile_memory + panes.values_at) + first * threads + thread,
        reinterpret_cast<Vector<Int, kLanes>*>(tile_memory + panes.codes_at) + first * threads + thread, step};
  };
  BlockWalk<T, kFold, kIndices, kLanes> walk;
  walk.kept = shelf_at(0, threads);
  walk.kernel = kernel_y;
  walk.in_block = 0;
  // Two rows of either, by turns, so that nobody writes where others still read. Neighbouring columns are a step apart.
  const auto singles_at = [&](Int row) { return shelf_at(kernel_y + (row & 1), groups); };
  const auto fours_at = [&](Int row) { return shelf_at(kernel_y + 2 + (row & 1), groups); };
  const Int top = first_y - p.axis[1].pad_begin, all = panes.rows + kernel_y - 1;
  const T* source = static_cast<const T*>(at.input) + p.input.plane(n, c) + x * p.input.w;
  auto is_inside = [&](Int row) {
    return has_source && static_cast<unsigned>(top + row) < static_cast<unsigned>(height) && row < all;
  };
  auto send_for = [&](Int row) {
    if (is_inside(row)) send_for_stack<kAligned>(arriving + row % kAhead * threads, source + (top + row) * p.input.h);
    __pipeline_commit();
  };
#pragma unroll
  for (int i = 0; i < kAhead; ++i) send_for(i);
  T* output = static_cast<T*>(at.output) + p.output.plane(n, c) + p.output.at(0, first_y, out_x);
  const std::int64_t index = p.indices.plane(n, c) + p.indices.at(0, first_y, out_x);
  const Int count = least(panes.rows, p.axis[1].output - first_y);

  // `inside`: the row lies in the plane, and its columns are in shared memory.
  auto take_row = [&]<Joining kJoining>(Int row, bool inside, const Some& own) {
    Some folded = empty;
    if (inside) {
      const auto singles = singles_at(row), fours = fours_at(row);
      Some four = own;
#pragma unroll
      for (int i = 1; i < 4; ++i) {
        if (column + i < panes.columns) four = join_stacks<kJoining>(four, singles.get(i));
      }
      fours.put(0, four);
      __syncthreads();
      if (makes) {
        Int from = begin;
        bool first = true;
        auto add = [&](const Some& next) {
          folded = first ? next : join_stacks<kJoining>(folded, next);
          first = false;
        };
        for (; from + 4 <= end; from += 4) add(fours.get(from - column));
        for (; from < end; ++from) add(singles.get(from - column));
      }
    }
    walk.template enter<kJoining>(folded);
    const Int y = row - (kernel_y - 1);
    if (y >= 0 && makes && y < count) {
      store_windows<T, kFold, kIndices, kLanes, false, kAligned>(p, at, walk.template window<kJoining>(),
                                                                 output + y * p.output.h, index + y * p.indices.h,
                                                                 first_y + y, out_x);
    }
    walk.template keep<kJoining>(folded);
  };
  auto own_of = [&](Int row, bool inside) {
    __pipeline_wait_prior(kAhead - 1);
    Some own = empty;
    if (inside && has_source) {
      const Vector<T, kLanes> loaded = arriving[row % kAhead * threads];
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        own.at[i].code = (top + row) * width + x;
        if constexpr (is_extreme<kFold>) {
          own.at[i].value = loaded.lane[i];
        } else {
          own.at[i].value = widen(loaded.lane[i]);
        }
      }
    }
    if (inside) singles_at(row).put(0, own);
    return own;
  };
  auto row_inside = [&](Int row) { return static_cast<unsigned>(top + row) < static_cast<unsigned>(height); };
  for (Int row = 0; row < all; ++row) {
    const bool inside = row_inside(row);
    const Some own = own_of(row, inside);
    if (inside) __syncthreads();
    take_row.template operator()<kIndices ? Joining::indexed : Joining::ordered>(row, inside, own);
    send_for(row + kAhead);
  }
}

}  // namespace cenote::gpu
