// What kernels of long windows fold: a few neighbouring elements at once, kept in shared memory, in blocks as long as the window.
#pragma once

#include "cuda/long_windows.cuh"

namespace cenote::gpu {

/// How elements are folded. plain: no NaN and no -0 has been met, so that any maximum is the right one.
enum class Joining : std::uint8_t { plain, ordered, indexed };

/// Whether maxima of such elements may be taken in any order.
template <class T>
__device__ inline bool is_plain(T value) {
  if constexpr (sizeof(T) == 4) {
    return value == value && __float_as_uint(value) != 0x80000000U;
  } else {
    unsigned short bits;
    memcpy(&bits, &value, 2);
    return value == value && bits != 0x8000U;
  }
}

/// `left` lies before `right`.
template <Fold kFold, Joining kJoining, class T>
__device__ inline Item<T, kFold> join_as(const Item<T, kFold>& left, const Item<T, kFold>& right) {
  if constexpr (kJoining == Joining::plain && sizeof(T) == 4) {
    return {fmaxf(left.value, right.value), 0};
  } else if constexpr (kJoining == Joining::plain) {
    return {__hmax(left.value, right.value), 0};
  } else if constexpr (kJoining == Joining::indexed) {
    // What lies outside has no code and gives way to everything.
    return beats<kFold>(right.value, left.value) || left.code < 0 ? right : left;
  } else {
    return join<kFold, T>(left, right);
  }
}

/// kLanes neighbouring elements.
template <class T, Fold kFold, int kLanes>
struct Stack {
  Item<T, kFold> at[kLanes];
};

template <Joining kJoining, class T, Fold kFold, int kLanes>
__device__ inline Stack<T, kFold, kLanes> join_stacks(const Stack<T, kFold, kLanes>& left,
                                                      const Stack<T, kFold, kLanes>& right) {
  Stack<T, kFold, kLanes> result;
#pragma unroll
  for (int i = 0; i < kLanes; ++i) result.at[i] = join_as<kFold, kJoining>(left.at[i], right.at[i]);
  return result;
}

/// Stacks in shared memory, `step` places apart.
template <class T, Fold kFold, bool kIndices, int kLanes>
struct Shelf {
  using Value = Folded<T, kFold>;
  Vector<Value, kLanes>* values;
  Vector<std::int32_t, kLanes>* codes;
  std::int32_t step;

  __device__ void put(std::int32_t slot, const Stack<T, kFold, kLanes>& stack) const {
    Vector<Value, kLanes> value;
    Vector<std::int32_t, kLanes> code;
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      value.lane[i] = stack.at[i].value;
      code.lane[i] = stack.at[i].code;
    }
    values[slot * step] = value;
    if constexpr (kIndices) codes[slot * step] = code;
  }
  __device__ Stack<T, kFold, kLanes> get(std::int32_t slot) const {
    const Vector<Value, kLanes> value = values[slot * step];
    Vector<std::int32_t, kLanes> code{};
    if constexpr (kIndices) code = codes[slot * step];
    Stack<T, kFold, kLanes> stack;
#pragma unroll
    for (int i = 0; i < kLanes; ++i) stack.at[i] = {value.lane[i], code.lane[i]};
    return stack;
  }
};

/// A walk along lines of stacks that are folded in windows of `kernel`: the end of one block and the beginning of the next.
template <class T, Fold kFold, bool kIndices, int kLanes>
struct BlockWalk {
  using Some = Stack<T, kFold, kLanes>;
  Shelf<T, kFold, kIndices, kLanes> kept;  // of the block at hand; further on, folded to its end, of the one before
  std::int32_t kernel;
  std::int32_t in_block;
  Some front;  // of the block at hand

  /// Begins as if so many lines of nothing had been kept, less than a window has.
  __device__ void begin_after(std::int32_t lines, const Some& nothing) {
    in_block = lines;
    front = nothing;
    for (std::int32_t slot = 0; slot < lines; ++slot) kept.put(slot, nothing);
  }
  template <Joining kJoining>
  __device__ void enter(const Some& line) {
    front = in_block == 0 ? line : join_stacks<kJoining>(front, line);
  }
  /// Of the window that ends with the line entered last; there were as many lines as it has.
  template <Joining kJoining>
  __device__ Some window() const {
    return in_block == kernel - 1 ? front : join_stacks<kJoining>(kept.get(in_block + 1), front);
  }
  template <Joining kJoining>
  __device__ void keep(const Some& line) {
    kept.put(in_block, line);
    if (++in_block < kernel) return;
    in_block = 0;
    Some back = line;
    for (std::int32_t slot = kernel - 2; slot > 0; --slot) {
      back = join_stacks<kJoining>(kept.get(slot), back);
      kept.put(slot, back);
    }
  }
};

/// Sends for neighbouring elements.
template <bool kAligned, class T, int kLanes>
__device__ inline void send_for_stack(Vector<T, kLanes>* to, const T* from) {
  if constexpr (kAligned) {
    __pipeline_memcpy_async(to, from, sizeof(*to));
  } else if constexpr (sizeof(T) == 4) {
#pragma unroll
    for (int i = 0; i < kLanes; ++i) __pipeline_memcpy_async(&to->lane[i], from + i, sizeof(T));
  } else {
    *to = load_constant_if<kLanes>(false, from);
  }
}

/// Stores what a window's stack has come to: the results of kLanes outputs beside each other, or of as many channels of one.
template <class T, Fold kFold, bool kIndices, int kLanes, bool kColumns, bool kAligned>
__device__ inline void store_windows(const Params<std::int32_t>& p, const Pointers& at,
                                     const Stack<T, kFold, kLanes>& window, T* output, std::int64_t index,
                                     std::int32_t y, std::int32_t x) {
  using Int = std::int32_t;
  Vector<T, kLanes> result;
  if constexpr (is_extreme<kFold>) {
#pragma unroll
    for (int i = 0; i < kLanes; ++i) result.lane[i] = window.at[i].value;
  } else {
    Folded<T, kFold> sums[kLanes];
#pragma unroll
    for (int i = 0; i < kLanes; ++i) sums[i] = window.at[i].value + Folded<T, kFold>{0};  // no sum is -0
    if (p.uniform_divisor) {
      divide_all<T>(p, sums);
    } else {
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        sums[i] = average_of<T>(p, sums[i],
                                divisor_of(p, taps_of(p.axis[0], Int{0}), taps_of(p.axis[1], y),
                                           taps_of<Int>(p.axis[2], x + (kColumns ? i : 0))));
      }
    }
#pragma unroll
    for (int i = 0; i < kLanes; ++i) result.lane[i] = narrow<T>(sums[i]);
  }
  store_if(kAligned, output, result);
  if constexpr (kIndices) {
    Int codes[kLanes];
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      codes[i] = stored_code(p, window.at[i].code, y * p.axis[1].stride - p.axis[1].pad_begin,
                             (x + (kColumns ? i : 0)) * p.axis[2].stride - p.axis[2].pad_begin);
    }
    store_codes(at.indices, p.index_dtype, index, codes);
  }
}

}  // namespace cenote::gpu
