// Long windows one apart, channels last, sums and maxima without indices, as long as no NaN and no -0 is among them: down first, by blocks as long as the window, then
// along the width in runs. A thread owns a few channels of one column while it walks down and hands a few rows at a time over through
// shared memory; then it makes a run of neighbouring outputs of one of them, which share most of what they fold.
#pragma once

#include "cuda/stacks.cuh"

namespace cenote::gpu {

inline constexpr int kPaneRows = 4;  // under way at a time

/// Folds kRun windows of at least as many elements that begin at elements 0, 1, ... of a line; `get(i)` is element i.
template <Joining kJoining, int kRun, class Some, class Get>
__device__ inline void fold_stack_run(std::int32_t window, Get get, Some (&result)[kRun]) {
  Some shared = get(kRun - 1);
#pragma unroll 4
  for (std::int32_t i = kRun; i < window; ++i) shared = join_stacks<kJoining>(shared, get(i));
  result[kRun - 1] = shared;
  Some before = get(kRun - 2);
  result[kRun - 2] = join_stacks<kJoining>(before, shared);
#pragma unroll
  for (int i = kRun - 3; i >= 0; --i) {
    before = join_stacks<kJoining>(get(i), before);
    result[i] = join_stacks<kJoining>(before, shared);
  }
  Some after = get(window);
  result[1] = join_stacks<kJoining>(result[1], after);
#pragma unroll
  for (int i = 2; i < kRun; ++i) {
    after = join_stacks<kJoining>(after, get(window + i - 1));
    result[i] = join_stacks<kJoining>(result[i], after);
  }
}

/// What fold_panes computes, for one block that hands kHanded rows over at a time. False: it met a NaN or a -0, and what it has stored is
/// to be overwritten.
template <class T, Fold kFold, int kLanes, bool kAligned, int kRun, int kHanded>
__device__ inline bool fold_panes_down(const Params<std::int32_t>& p, const Pointers& at) {
  using Int = std::int32_t;
  using Some = Stack<T, kFold, kLanes>;
  using Value = Folded<T, kFold>;
  constexpr Joining kJoining = is_extreme<kFold> ? Joining::plain : Joining::ordered;
  const Panes& panes = p.panes;
  const Int thread = static_cast<Int>(threadIdx.x), threads = static_cast<Int>(blockDim.x);
  const Int height = p.axis[1].input, groups = panes.groups.value;
  const Int kernel_y = p.axis[1].kernel, kernel_x = p.axis[2].kernel;
  const Int column = panes.groups.quotient(thread), lane = thread - column * groups;
  Int rest = static_cast<Int>(blockIdx.x);
  const Int first_c = take(rest, panes.blocks_c) * groups * kLanes;
  const Int first_x = take(rest, panes.blocks_x) * panes.useful, n = take(rest, panes.batch),
            first_y = rest * panes.rows;
  const Int count = least(panes.rows, p.axis[1].output - first_y);
  // Of lines that are handed over: element 0 is where the first window begins, which may lie outside.
  const Int x = panes.whole ? column : first_x - p.axis[2].pad_begin + column;
  const Int place = panes.whole ? column + p.axis[2].pad_begin : column;
  const bool has_source =
      first_c + lane * kLanes < panes.channels && static_cast<unsigned>(x) < static_cast<unsigned>(p.axis[2].input);
  // One element further after each run, so that runs beside each other lie in different banks.
  auto apart = [](Int i) { return i + i / kRun; };

  auto* kept = reinterpret_cast<Vector<Value, kLanes>*>(tile_memory);
  auto* lines = kept + kernel_y * threads;
  BlockWalk<T, kFold, false, kLanes> walk;
  walk.kept = {kept + thread, nullptr, threads};
  walk.kernel = kernel_y;
  walk.in_block = 0;
  auto put = [&](Vector<Value, kLanes>* to, const Some& some) {
    Vector<Value, kLanes> values;
#pragma unroll
    for (int i = 0; i < kLanes; ++i) values.lane[i] = some.at[i].value;
    *to = values;
  };
  Some empty;
#pragma unroll
  for (int i = 0; i < kLanes; ++i) empty.at[i] = {empty_fold<kFold, T>(), 0};
  for (Int i = thread; i < kHanded * panes.line_step; i += threads) put(lines + i, empty);
  __syncthreads();

  const Int top = first_y - p.axis[1].pad_begin, all = count + kernel_y - 1;
  const T* source = static_cast<const T*>(at.input) + p.input.plane(n, first_c + lane * kLanes) + x * p.input.w;
  using Rows = Vector<T, kLanes>[kPaneRows];
  const Staying policy = staying(p.leaves_first);
  auto fetch = [&](Int first, Rows& rows) {
#pragma unroll
    for (int r = 0; r < kPaneRows; ++r) {
      const Int row = first + r;
#pragma unroll
      for (int i = 0; i < kLanes; ++i) rows[r].lane[i] = identity<kFold, T>();
      if (has_source && static_cast<unsigned>(row) < static_cast<unsigned>(all) &&
          static_cast<unsigned>(top + row) < static_cast<unsigned>(height)) {
        const T* from = source + (top + row) * p.input.h;
        rows[r] = kAligned ? load_staying<kLanes>(from, policy) : load_constant_if<kLanes>(false, from);
      }
    }
  };
  const Int items = panes.runs.value * groups * kHanded;
  bool plain = true;
  Rows next;
  // The first row that ends a window is the first that is handed over.
  const Int begin = -((kHanded - (kernel_y - 1) % kHanded) % kHanded);
  fetch(begin, next);
  for (Int first = begin; first < all; first += kHanded) {
    const bool ends = first >= kernel_y - 1;
#pragma unroll 1
    for (Int done = 0; done < kHanded; done += kPaneRows) {
      Rows rows;
#pragma unroll
      for (int r = 0; r < kPaneRows; ++r) rows[r] = next[r];
      fetch(first + done + kPaneRows, next);
#pragma unroll
      for (int r = 0; r < kPaneRows; ++r) {
        Some line;
#pragma unroll
        for (int i = 0; i < kLanes; ++i) {
          if constexpr (is_extreme<kFold>) {
            plain = plain && is_plain(rows[r].lane[i]);
            line.at[i] = {rows[r].lane[i], 0};
          } else {
            line.at[i] = {widen(rows[r].lane[i]), 0};
          }
        }
        walk.template enter<kJoining>(line);
        if (ends)
          put(lines + (done + r) * panes.line_step + apart(place) * groups + lane, walk.template window<kJoining>());
        walk.template keep<kJoining>(line);
      }
    }
    if (!ends) continue;
    if constexpr (is_extreme<kFold>) {
      if (__syncthreads_and(plain) == 0) return false;
    } else {
      __syncthreads();
    }
    for (Int item = thread; item < items; item += threads) {
      Int r = item;
      const Int g = take(r, panes.groups), run = take(r, panes.runs);
      const Vector<Value, kLanes>* line = lines + r * panes.line_step + apart(run * kRun) * groups + g;
      auto get = [&](Int i) {
        const Vector<Value, kLanes> values = line[apart(i) * groups];
        Some some;
#pragma unroll
        for (int k = 0; k < kLanes; ++k) some.at[k] = {values.lane[k], 0};
        return some;
      };
      Some windows[kRun];
      fold_stack_run<kJoining>(kernel_x, get, windows);
      const Int c = first_c + g * kLanes, y = first - (kernel_y - 1) + r;
      if (c >= panes.channels || y >= count) continue;
      T* output = static_cast<T*>(at.output) + p.output.plane(n, c) + p.output.at(0, first_y + y, first_x + run * kRun);
#pragma unroll
      for (int i = 0; i < kRun; ++i) {
        const Int out_x = run * kRun + i;
        if (out_x < panes.useful && first_x + out_x < p.axis[2].output) {
          store_windows<T, kFold, false, kLanes, false, kAligned>(p, at, windows[i], output + i * p.output.w, 0,
                                                                  first_y + y, first_x + out_x);
        }
      }
    }
    __syncthreads();
  }
  return true;
}

}  // namespace cenote::gpu
