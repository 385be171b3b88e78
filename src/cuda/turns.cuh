// The backward of max pools whose windows overlap much, many small planes: a block takes 32 of them, keeps their sums in shared memory
// and walks through all of their outputs. Some warps find out where outputs point; one, a lane to a plane, adds those that came before,
// in ascending output order.
#pragma once

#include "cuda/winners.cuh"

namespace cenote::gpu {

inline constexpr int kFinders = 3;                      // warps that find out where outputs point
inline constexpr int kTurnBlock = (kFinders + 1) * 32;  // and one that adds
inline constexpr int kFound = 4;                        // outputs that a finder looks at at once
inline constexpr int kTurn = kFinders * kFound;
inline constexpr std::uint16_t kNowhere = 0xffff;

/// What the finders hand over: for each of 32 planes, a few outputs' sums and what is added to them.
template <class T>
struct Turn {
  T sent[kTurn][32];
  std::uint16_t place[kTurn][32];
};

/// Sliding windows along height and width, no dilation, no depth; rows follow each other without a gap. A finder's lane looks at a few
/// outputs of its plane at once.
template <class T, class Stored>
__global__ void __launch_bounds__(kTurnBlock)
    add_in_turn(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Sum = Accumulator<T>;
  constexpr bool kFlat = std::is_same_v<Stored, std::int64_t>;  // an index is the element's place
  extern __shared__ __align__(16) char part_memory[];
  auto* sums = reinterpret_cast<Sum*>(part_memory);
  __shared__ Turn<T> turns[2];
  const Parts& parts = p.parts;
  const Int thread = static_cast<Int>(threadIdx.x), lane = thread % 32;
  // The warp that adds is another one from block to block: each scheduler of a multiprocessor has its share of them.
  const Int warp = (thread / 32 + static_cast<Int>(blockIdx.x)) % (kFinders + 1);
  Int c, n = static_cast<Int>(blockIdx.x);
  bool exists;
  if (parts.channels_fastest) {
    c = take(n, parts.groups) * 32 + lane;
    exists = c < parts.channels.value;
    c = least(c, parts.channels.value - 1);
  } else {
    n = n * 32 + lane;
    exists = n < parts.total;
    n = least(n, parts.total - 1);
    c = take(n, parts.channels);
  }
  const Int elements = p.axis[1].input * p.axis[2].input, outputs = p.axis[1].output * p.axis[2].output;
  for (Int i = thread; i < elements * 32; i += kTurnBlock) sums[i] = Sum{0};
  T* result = static_cast<T*>(at.grad_input) + p.grad_input.plane(n, c);
  // A sum lies in its lane's bank; planar, one further from element to element, so that a warp can also write one plane together.
  auto place_of = [&](Int element, Int owner) {
    return element * 32 + (parts.channels_fastest ? owner : (owner + element) & 31);
  };
  const T* grad = static_cast<const T*>(at.grad_output) + p.grad_output.plane(n, c);
  const std::int64_t indices = p.indices.plane(n, c);
  struct Batch {
    T sent[kFound];
    CodeOf<Stored> codes[kFound];
  };
  auto fetch = [&](Int o, Batch& batch) {
#pragma unroll
    for (int i = 0; i < kFound; ++i) {
      if (o + i >= outputs) break;
      batch.sent[i] = load_streaming(grad + (o + i) * p.grad_output.w);
      batch.codes[i] = load_code<Stored, true>(p, at.saved_indices, indices + (o + i) * p.indices.w);
    }
  };
  bool wrong = false;
  // A turn's outputs are found while those of the turn before are added.
  const Int all = (outputs + kTurn - 1) / kTurn;
  Int o = warp * kFound, oy = o;
  Int ox = take(oy, p.axis[2].by_output);
  // What they hold is under way two turns before.
  Batch even, odd;
  if (warp < kFinders) {
    fetch(o, even);
    fetch(o + kTurn, odd);
  }
  __syncthreads();
  auto take_turn = [&](Int turn, Batch& next) {
    if (warp < kFinders && turn < all) {
      const Batch batch = next;
      fetch(o + 2 * kTurn, next);
      Turn<T>& found = turns[turn % 2];
      Int top = oy * p.axis[1].stride - p.axis[1].pad_begin, left = ox * p.axis[2].stride - p.axis[2].pad_begin;
      const Int behind = p.axis[2].output * p.axis[2].stride - p.axis[2].pad_begin;
#pragma unroll
      for (int i = 0; i < kFound; ++i) {
        Int y, x;
        const bool points = o + i < outputs && locate<Stored>(p, batch.codes[i], top, left, y, x, wrong);
        const Int element = kFlat ? static_cast<Int>(batch.codes[i]) : y * p.axis[2].input + x;
        found.sent[warp * kFound + i][lane] = batch.sent[i];
        found.place[warp * kFound + i][lane] = points ? static_cast<std::uint16_t>(place_of(element, lane)) : kNowhere;
        left += p.axis[2].stride;
        if (left == behind) {
          left = -p.axis[2].pad_begin;
          top += p.axis[1].stride;
        }
      }
      o += kTurn;
      oy = o;
      ox = take(oy, p.axis[2].by_output);
    }
    if (warp == kFinders && turn > 0 && turn <= all) {
      const Turn<T>& found = turns[(turn - 1) % 2];
      Int place[kTurn];
      Sum sent[kTurn];
#pragma unroll
      for (int i = 0; i < kTurn; ++i) {
        place[i] = found.place[i][lane];
        sent[i] = widen(found.sent[i][lane]);
      }
#pragma unroll
      for (int i = 0; i < kTurn; ++i) {
        if (place[i] != kNowhere) sums[place[i]] += sent[i];
      }
    }
    __syncthreads();
  };
  for (Int turn = 0; turn <= all; turn += 2) {
    take_turn(turn, even);
    take_turn(turn + 1, odd);
  }
  if (wrong && exists) report(at.fault, kFaultIndex);
  if (parts.channels_fastest) {
    if (!exists) return;
#pragma unroll 4
    for (Int e = warp; e < elements; e += kFinders + 1) result[e * p.grad_input.w] = narrow<T>(sums[place_of(e, lane)]);
    return;
  }
  const unsigned present = __ballot_sync(0xffffffffU, exists);
  for (int owner = warp; owner < 32; owner += kFinders + 1) {
    T* to = reinterpret_cast<T*>(__shfl_sync(0xffffffffU, reinterpret_cast<unsigned long long>(result), owner));
    if ((present >> owner & 1) == 0) continue;
#pragma unroll 4
    for (Int e = lane; e < elements; e += 32) to[e * p.grad_input.w] = narrow<T>(sums[place_of(e, owner)]);
  }
}

inline constexpr int kPlaneFinders = 4;
inline constexpr int kPlaneBlock = (kPlaneFinders + 1) * 32;
inline constexpr int kPlaneTurn = 16;  // outputs of each plane

/// The same for dense planar tensors: half a warp looks at neighbouring outputs of one plane.
template <class T, class Stored>
__global__ void __launch_bounds__(kPlaneBlock)
    add_planes_in_turn(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  using Sum = Accumulator<T>;
  constexpr bool kFlat = std::is_same_v<Stored, std::int64_t>;  // an index is the element's place
  constexpr int kShare = 16 / kPlaneFinders;                    // pairs of planes to a finder
  extern __shared__ __align__(16) char part_memory[];
  auto* sums = reinterpret_cast<Sum*>(part_memory);
  // For each of 32 planes, a few outputs' sums and what is added to them.
  __shared__ T sent[2][kPlaneTurn * 32];
  __shared__ std::uint16_t chosen[2][kPlaneTurn * 32];
  const Int thread = static_cast<Int>(threadIdx.x), lane = thread % 32;
  // The warp that adds is another one from block to block: each scheduler of a multiprocessor has its share of them.
  const Int warp = (thread / 32 + static_cast<Int>(blockIdx.x)) % (kPlaneFinders + 1);
  const Int elements = p.axis[1].input * p.axis[2].input, outputs = p.axis[1].output * p.axis[2].output;
  const Int first_plane = static_cast<Int>(blockIdx.x) * 32, planes = least(p.parts.total - first_plane, 32);
  for (Int i = thread; i < elements * 32; i += kPlaneBlock) sums[i] = Sum{0};
  // One bank further from element to element, so that a warp can write one plane together; two from output to output, so that
  // half a warp can hand over outputs of one plane, and the other those of the next.
  auto place_of = [](Int element, Int plane) { return element * 32 + ((plane + element) & 31); };
  auto turn_place = [](Int output, Int plane) { return output * 32 + ((plane + 2 * output) & 31); };
  const Int slot = lane % kPlaneTurn, half = lane / kPlaneTurn;
  const std::int64_t begin = static_cast<std::int64_t>(first_plane) * outputs;
  const T* grad = static_cast<const T*>(at.grad_output) + begin;
  struct Batch {
    T sent[kShare];
    CodeOf<Stored> codes[kShare];
  };
  auto plane_at = [&](int i) { return 2 * (warp * kShare + i) + half; };
  auto fetch = [&](Int o, Batch& batch) {
#pragma unroll
    for (int i = 0; i < kShare; ++i) {
      batch.sent[i] = narrow<T>(Sum{0});
      batch.codes[i] = kNoCode<Stored>;
      const Int plane = plane_at(i), from = plane * outputs + o;
      if (o >= outputs || plane >= planes) continue;
      batch.sent[i] = load_streaming(grad + from);
      batch.codes[i] = load_code<Stored, true>(p, at.saved_indices, begin + from);
    }
  };
  bool wrong = false;
  const Int turns = (outputs + kPlaneTurn - 1) / kPlaneTurn;
  // What a turn's outputs hold is under way two turns before.
  Batch even, odd;
  if (warp < kPlaneFinders) {
    fetch(slot, even);
    fetch(slot + kPlaneTurn, odd);
  }
  __syncthreads();
  // They are found while those of the turn before are added.
  auto take_turn = [&](Int turn, Batch& next) {
    if (warp < kPlaneFinders && turn < turns) {
      const Batch batch = next;
      const Int o = turn * kPlaneTurn + slot;
      fetch(o + 2 * kPlaneTurn, next);
      Int oy = o;
      const Int ox = take(oy, p.axis[2].by_output);
      const Int top = oy * p.axis[1].stride - p.axis[1].pad_begin, left = ox * p.axis[2].stride - p.axis[2].pad_begin;
#pragma unroll
      for (int i = 0; i < kShare; ++i) {
        Int y, x;
        const bool points = locate<Stored>(p, batch.codes[i], top, left, y, x, wrong);
        const Int element = kFlat ? static_cast<Int>(batch.codes[i]) : y * p.axis[2].input + x;
        const Int plane = plane_at(i), to = turn_place(slot, plane);
        sent[turn % 2][to] = batch.sent[i];
        chosen[turn % 2][to] = points ? static_cast<std::uint16_t>(place_of(element, plane)) : kNowhere;
      }
    }
    if (warp == kPlaneFinders && turn > 0 && turn <= turns) {
      Int place[kPlaneTurn];
      Sum value[kPlaneTurn];
#pragma unroll
      for (int i = 0; i < kPlaneTurn; ++i) {
        place[i] = chosen[(turn - 1) % 2][turn_place(i, lane)];
        value[i] = widen(sent[(turn - 1) % 2][turn_place(i, lane)]);
      }
#pragma unroll
      for (int i = 0; i < kPlaneTurn; ++i) {
        if (place[i] != kNowhere) sums[place[i]] += value[i];
      }
    }
    __syncthreads();
  };
  for (Int turn = 0; turn <= turns; turn += 2) {
    take_turn(turn, even);
    take_turn(turn + 1, odd);
  }
  if (wrong) report(at.fault, kFaultIndex);
  for (Int plane = thread / 32; plane < planes; plane += kPlaneFinders + 1) {
    Int n = first_plane + plane;
    const Int c = take(n, p.parts.channels);
    T* result = static_cast<T*>(at.grad_input) + p.grad_input.plane(n, c);
#pragma unroll 4
    for (Int e = lane; e < elements; e += 32) result[e * p.grad_input.w] = narrow<T>(sums[place_of(e, plane)]);
  }
}

}  // namespace cenote::gpu
