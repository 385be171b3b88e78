// Long windows one apart over planar tensors with aligned rows. A lane owns four columns, a warp a row or several short ones: what a
// window needs of other columns comes from the lanes that own them. Then the warp walks down: rows are taken in blocks as long as the
// window, which is the end of one block and the beginning of the next (van Herk), so that an output costs three folds whatever the
// window. Only its own lane reads what is kept in shared memory: no barriers.
#pragma once

#include "cuda/stacks.cuh"

namespace cenote::gpu {

inline constexpr int kQuadBlock = 64;
inline constexpr int kQuadAhead = 4;  // rows under way

/// Four columns of one row.
template <class T, Fold kFold>
using Quad = Stack<T, kFold, 4>;

template <Joining kJoining, class T, Fold kFold>
__device__ inline Item<T, kFold> item_from(const Item<T, kFold>& item, std::int32_t lane) {
  Item<T, kFold> result;
  result.value = __shfl_sync(0xffffffffU, item.value, lane);
  result.code = kJoining == Joining::indexed ? __shfl_sync(0xffffffffU, item.code, lane) : 0;
  return result;
}

/// The lanes that hold what a window reaches: `suffix` where it begins, then whole ones, then `prefix` where it ends.
struct QuadLanes {
  std::int32_t suffix[2];  // of columns before the padding's remainder, and of the others
  std::int32_t whole[3];   // the first whole one of the former; the last ones
  std::int32_t prefix[3];
};

/// Folds along the width. kBefore, kRest: remainders of the padding and of the window less one by four.
template <class T, Fold kFold, Joining kJoining, int kBefore, int kRest, class Between>
__device__ inline void fold_across(const Quad<T, kFold>& own, const QuadLanes& lanes, bool any_whole, Between between,
                                   Quad<T, kFold>& result) {
  using One = Item<T, kFold>;
  auto joined = [](const One& left, const One& right) { return join_as<kFold, kJoining>(left, right); };
  One prefix[4], suffix[4];
  prefix[0] = own.at[0];
  suffix[3] = own.at[3];
#pragma unroll
  for (int i = 1; i < 4; ++i) {
    prefix[i] = joined(prefix[i - 1], own.at[i]);
    suffix[3 - i] = joined(own.at[3 - i], suffix[4 - i]);
  }
  const One& whole = prefix[3];
  // Whole lanes between: those of all four windows, and what some have before or after.
  One early, late;  // of columns before the remainder, and of the others
  const One after = item_from<kJoining>(whole, lanes.whole[1]), last = item_from<kJoining>(whole, lanes.whole[2]);
  if (any_whole) {
    const One common = between.template operator()<kJoining>(whole);
    if (kBefore > 0) early = joined(item_from<kJoining>(whole, lanes.whole[0]), common);
    late = joined(common, after);
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const bool before = j < kBefore;
    const int from = (j - kBefore + 4) % 4, to = (j - kBefore + kRest + 4) % 4;
    const bool further = from + kRest >= 4;  // one more whole lane
    One window = item_from<kJoining>(suffix[from], lanes.suffix[before ? 0 : 1]);
    if (any_whole) window = joined(window, before ? early : late);
    if (further) window = joined(window, before ? after : last);
    const int end = (before ? 0 : 1) + (further ? 1 : 0);
    result.at[j] = joined(window, item_from<kJoining>(prefix[to], lanes.prefix[end]));
  }
}

/// Calls what is compiled for `remainders`: of the padding by four, times four, and of the window less one.
template <class Work>
__device__ inline void with_remainders(int remainders, Work work) {
  switch (remainders) {
    case 0: work.template operator()<0>(); break;
    case 1: work.template operator()<1>(); break;
    case 2: work.template operator()<2>(); break;
    case 3: work.template operator()<3>(); break;
    case 4: work.template operator()<4>(); break;
    case 5: work.template operator()<5>(); break;
    case 6: work.template operator()<6>(); break;
    case 7: work.template operator()<7>(); break;
    case 8: work.template operator()<8>(); break;
    case 9: work.template operator()<9>(); break;
    case 10: work.template operator()<10>(); break;
    case 11: work.template operator()<11>(); break;
    case 12: work.template operator()<12>(); break;
    case 13: work.template operator()<13>(); break;
    case 14: work.template operator()<14>(); break;
    default: work.template operator()<15>(); break;
  }
}

/// Sliding windows of at least five taps along the width, no dilation, stride 1 along height and width, none empty, no depth.
/// kAligned: pointers to multiples of 16 bytes.
template <class T, Fold kFold, bool kIndices, bool kAligned>
__global__ void __launch_bounds__(kQuadBlock)
    fold_quads(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using One = Item<T, kFold>;
  const Quads& quads = p.quads;
  const Int lane = static_cast<Int>(threadIdx.x) % 32, warp = static_cast<Int>(threadIdx.x) / 32;
  const Int height = p.axis[1].input, width = p.axis[2].input;
  const Int kernel_y = p.axis[1].kernel, kernel_x = p.axis[2].kernel;
  // This lane's place: which of the warp's rows, and which four columns.
  const Int group = quads.lanes.quotient(lane), position = lane - group * quads.lanes.value;
  Int unit = (static_cast<Int>(blockIdx.x) * (kQuadBlock / 32) + warp) * quads.groups + group;
  const bool exists = group < quads.groups && unit < quads.total;
  if (!exists) unit = 0;
  const Int segment = take_of(unit, quads.segments);
  Int n = unit;
  const Int plane_of_all = take(n, quads.planes);
  const Int first_y = n * quads.rows;  // strips are slowest: the rows of a warp are nearly always at one height
  n = plane_of_all;
  const Int c = take(n, quads.channels);
  const Int x = (segment * quads.useful - quads.before + position) * 4;
  const bool has_source = exists && static_cast<unsigned>(x) < static_cast<unsigned>(width);
  const bool stores = exists && position >= quads.before && position < quads.before + quads.useful &&
                      static_cast<unsigned>(x) < static_cast<unsigned>(p.axis[2].output);

  QuadLanes lanes;
  const Int pad = p.axis[2].pad_begin, wholes = (kernel_x - 1) / 4 - 1;
  auto lane_at = [&](Int offset) {  // the warp's last lane where there is none: it holds nothing then
    const Int there = position + offset;
    return static_cast<unsigned>(there) < static_cast<unsigned>(quads.lanes.value) ? lane + offset : 31;
  };
  const Int start = -(pad / 4);
  lanes.suffix[0] = lane_at(start - 1);
  lanes.suffix[1] = lanes.whole[0] = lane_at(start);
  lanes.whole[1] = lanes.prefix[0] = lane_at(start + wholes);
  lanes.whole[2] = lanes.prefix[1] = lane_at(start + wholes + 1);
  lanes.prefix[2] = lane_at(start + wholes + 2);
  const One nothing{empty_fold<kFold, T>(), -1};
  auto between = [&]<Joining kJoining>(const One& whole) {
    One fold = nothing;
    for (Int i = 1; i < wholes; ++i) {
      const One next = item_from<kJoining>(whole, lane_at(start + i));
      fold = i == 1 ? next : join_as<kFold, kJoining>(fold, next);
    }
    return fold;
  };

  // In shared memory, of this lane alone: rows that are under way, and a block of folded rows.
  char* memory = tile_memory + warp * quads.warp_bytes;
  auto* arriving = reinterpret_cast<Vector<T, 4>*>(memory) + lane;
  BlockWalk<T, kFold, kIndices, 4> walk;
  walk.kept = {reinterpret_cast<Vector<Folded<T, kFold>, 4>*>(memory + quads.kept_at) + lane,
               reinterpret_cast<Vector<Int, 4>*>(memory + quads.codes_at) + lane, 32};
  walk.kernel = kernel_y;
  const Int top = first_y - p.axis[1].pad_begin;
  const T* source = static_cast<const T*>(at.input) + p.input.plane(n, c) + x;
  const Int count = least(quads.rows, p.axis[1].output - first_y);
  const Int all = quads.rows + kernel_y - 1;
  // Rows above the plane hold nothing: the walk begins below them.
  const Int above = __reduce_min_sync(0xffffffffU, most(-top, 0));
  auto is_inside = [&](Int row) {
    return has_source && static_cast<unsigned>(top + row) < static_cast<unsigned>(height) && row < all;
  };
  auto send_for = [&](Int row) {
    if (is_inside(row)) send_for_stack<kAligned>(arriving + row % kQuadAhead * 32, source + (top + row) * p.input.h);
    __pipeline_commit();
  };
#pragma unroll
  for (int i = 0; i < kQuadAhead; ++i) send_for(above + i);
  {
    Quad<T, kFold> empty;
#pragma unroll
    for (int i = 0; i < 4; ++i) empty.at[i] = nothing;
    walk.begin_after(above, empty);
  }
  T* output = static_cast<T*>(at.output) + p.output.plane(n, c) + first_y * p.output.h + x;
  std::int64_t index = p.indices.plane(n, c) + first_y * p.indices.h + x;

  const bool any_whole = wholes > 0;
  const int remainders = static_cast<int>(pad % 4 * 4 + (kernel_x - 1) % 4);
  // A walk for each of the remainders; with indices it takes too many registers for that.
  constexpr int kAskInEachRow = -1;
  auto take_row = [&]<Joining kJoining, int kBoth>(Int row, bool inside, const Vector<T, 4>& loaded) {
    Quad<T, kFold> folded;
    if (__any_sync(0xffffffffU, inside)) {
      Quad<T, kFold> own;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if constexpr (is_extreme<kFold>) {
          own.at[i].value = inside ? loaded.lane[i] : nothing.value;
        } else {
          own.at[i].value = inside ? widen(loaded.lane[i]) : nothing.value;
        }
        own.at[i].code = inside ? (top + row) * width + x + i : -1;
      }
      if constexpr (kBoth == kAskInEachRow) {
        with_remainders(remainders, [&]<int kRemainders>() {
          fold_across<T, kFold, kJoining, kRemainders / 4, kRemainders % 4>(own, lanes, any_whole, between, folded);
        });
      } else {
        fold_across<T, kFold, kJoining, kBoth / 4, kBoth % 4>(own, lanes, any_whole, between, folded);
      }
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) folded.at[i] = nothing;
    }
    walk.template enter<kJoining>(folded);
    const Int y = row - (kernel_y - 1);
    if (y >= 0) {
      const Quad<T, kFold> window = walk.template window<kJoining>();
      if (stores && y < count)
        store_windows<T, kFold, kIndices, 4, true, kAligned>(p, at, window, output, index, first_y + y, x);
      output += p.output.h;
      index += p.indices.h;
    }
    walk.template keep<kJoining>(folded);
  };
  auto arrived = [&](Int row, bool inside) {
    __pipeline_wait_prior(kQuadAhead - 1);
    Vector<T, 4> loaded{};
    if (inside) loaded = arriving[row % kQuadAhead * 32];
    return loaded;
  };
  auto walk_down = [&]<int kBoth>() {
    Int row = above;
    if constexpr (kFold == Fold::max && !kIndices) {
      for (; row < all; ++row) {
        const bool inside = is_inside(row);
        const Vector<T, 4> loaded = arrived(row, inside);
        bool plain = true;
#pragma unroll
        for (int i = 0; i < 4; ++i) plain = plain && is_plain(loaded.lane[i]);
        if (!__all_sync(0xffffffffU, plain)) break;
        take_row.template operator()<Joining::plain, kBoth>(row, inside, loaded);
        send_for(row + kQuadAhead);
      }
    }
    for (; row < all; ++row) {
      const bool inside = is_inside(row);
      const Vector<T, 4> loaded = arrived(row, inside);
      take_row.template operator()<kIndices ? Joining::indexed : Joining::ordered, kBoth>(row, inside, loaded);
      send_for(row + kQuadAhead);
    }
  };
  if constexpr (kIndices) {
    walk_down.template operator()<kAskInEachRow>();
  } else {
    switch (remainders) {  // here, not in with_remainders: the compiler keeps the walk in registers only so
      case 0: walk_down.template operator()<0>(); break;
      case 1: walk_down.template operator()<1>(); break;
      case 2: walk_down.template operator()<2>(); break;
      case 3: walk_down.template operator()<3>(); break;
      case 4: walk_down.template operator()<4>(); break;
      case 5: walk_down.template operator()<5>(); break;
      case 6: walk_down.template operator()<6>(); break;
      case 7: walk_down.template operator()<7>(); break;
      case 8: walk_down.template operator()<8>(); break;
      case 9: walk_down.template operator()<9>(); break;
      case 10: walk_down.template operator()<10>(); break;
      case 11: walk_down.template operator()<11>(); break;
      case 12: walk_down.template operator()<12>(); break;
      case 13: walk_down.template operator()<13>(); break;
      case 14: walk_down.template operator()<14>(); break;
      default: walk_down.template operator()<15>(); break;
    }
  }
}

}  // namespace cenote::gpu
