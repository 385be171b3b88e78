// Backward pools whose windows overlap little or not at all: a thread walks down a column of grad_input and looks at the outputs
// only where another window begins or ends.
#pragma once

#include "cuda/backward.cuh"
#include "cuda/fold_down.cuh"

namespace cenote::gpu {

inline constexpr int kPieces = 2;

/// Brings all of grad_output and of the indices into the L2 cache, by the first blocks, to stay there. Where they are small beside
/// grad_input, the loads of later blocks would wait behind the stores of earlier ones.
__device__ inline void keep_small_operands(const Params<std::int32_t>& p, const Pointers& at) {
  using Int = std::int32_t;
  constexpr Int kLine = 128, kBlocks = 132 * 8;
  const Int blocks = least(static_cast<Int>(gridDim.x), kBlocks), block = static_cast<Int>(blockIdx.x);
  if (p.gradient_bytes == 0 || block >= blocks) return;
  auto keep = [&](const void* from, Int bytes) {
    const Int lines = (bytes + kLine - 1) / kLine, share = (lines + blocks - 1) / blocks;
    for (Int i = static_cast<Int>(threadIdx.x); i < share && block * share + i < lines;
         i += static_cast<Int>(blockDim.x))
      asm volatile(
          "prefetch.global.L2::evict_last [%0];" ::"l"(static_cast<const char*>(from) + (block * share + i) * kLine));
  };
  keep(at.grad_output, p.gradient_bytes);
  if (p.index_bytes != 0) keep(at.saved_indices, p.index_bytes);
}

template <class Int>
__device__ inline Int window_start(const DeviceAxis<Int>& axis, Int o) {
  return axis.rule == WindowRule::adaptive ? adaptive_first(axis, o) : o * axis.stride - axis.pad_begin;
}
template <class Int>
__device__ inline Int window_end(const DeviceAxis<Int>& axis, Int o) {
  return axis.rule == WindowRule::adaptive ? adaptive_last(axis, o) : o * axis.stride - axis.pad_begin + axis.kernel;
}

/// Whether an index names an element of the window of output (oz, oy, ox), or is -1. No dilation.
__device__ inline bool names_element(const Params<std::int32_t>& p, std::int64_t code, std::int32_t oz, std::int32_t oy,
                                     std::int32_t ox) {
  using Int = std::int32_t;
  if (code == -1) return true;
  const auto low = static_cast<Int>(code);
  if (code != low || low < 0) return false;
  const Int start[3] = {window_start(p.axis[0], oz), window_start(p.axis[1], oy), window_start(p.axis[2], ox)};
  const Int size[3] = {window_end(p.axis[0], oz) - start[0], window_end(p.axis[1], oy) - start[1],
                       window_end(p.axis[2], ox) - start[2]};
  Int tap[3];
  Int rest = low;
  if (p.index_kind == IndexKind::window) {
    bool whole = true;  // then every tap is an element, and none needs to be taken apart
#pragma unroll
    for (int a = 0; a < 3; ++a) whole = whole && start[a] >= 0 && start[a] + size[a] <= p.axis[a].input;
    if (whole) return low < size[0] * size[1] * size[2];
    const Int row = row_of_tap(low, size[2]);
    tap[2] = low - row * size[2];
    tap[0] = row_of_tap(row, size[1]);
    tap[1] = row - tap[0] * size[1];
  } else {
    tap[2] = take(rest, p.axis[2].by_input) - start[2];
    tap[1] = take(rest, p.axis[1].by_input) - start[1];
    tap[0] = rest - start[0];
  }
  bool inside = true;
#pragma unroll
  for (int a = 0; a < 3; ++a) {
    inside = inside && static_cast<unsigned>(tap[a]) < static_cast<unsigned>(size[a]) &&
             static_cast<unsigned>(start[a] + tap[a]) < static_cast<unsigned>(p.axis[a].input);
  }
  return inside;
}

/// Sliding windows without dilation, and adaptive ones.
template <class T, int kLanes, Share kShare>
__global__ void __launch_bounds__(kBlock)
    spread_down(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  keep_small_operands(p, at);
  using Int = std::int32_t;
  using Sum = Accumulator<T>;
  const Int thread = thread_of_grid<Int>();
  if (thread >= p.grid.threads) return;
  Place<Int> place = p.grid.place(thread);
  place.y *= p.strip;
  const Int height = p.axis[1].input, width = p.axis[2].input, outputs = p.axis[1].output;
  const Int end = least(place.y + p.strip, height);
  const bool flat = p.grid.flat && p.axis[0].output == 1;
  const Reach<Int> deep = flat ? Reach<Int>{0, 0} : cover_of(p.axis[0], place.z);
  const Reach<Int> across = cover_of(p.axis[2], place.x);
  const bool single = deep.first == deep.last && across.first == across.last;
  const T* grad = static_cast<const T*>(at.grad_output) + p.grad_output.plane(place.n, place.c);
  const std::int64_t indices = p.indices.plane(place.n, place.c);
  T* result = static_cast<T*>(at.grad_input) + p.grad_input.plane(place.n, place.c) +
              p.grad_input.at(place.z, place.y, place.x);
  bool right = true;

  Reach<Int> down;
  Int changes = place.y;       // the next row that other outputs see
  Sum value[kLanes] = {};      // sums: of the outputs that see this row; one output alone: its gradient
  Int codes[kLanes] = {};      // and its index; the low words decide, others are reported
  Int mine = 0, next_row = 0;  // by which code it names this row's element, and the next one's
  bool alone = false;

  auto receive = [&](Int oz, Int oy, Int ox, Vector<T, kLanes>& sent, std::int64_t(&sent_codes)[kLanes]) {
    sent = load_constant<kLanes>(grad + p.grad_output.at(oz, oy, ox));
    if constexpr (kShare == Share::index) {
      load_codes(at.saved_indices, p.index_dtype, indices + p.indices.at(oz, oy, ox), sent_codes);
      // The first column of a window vouches for its index.
      if (place.x == most<Int>(window_start(p.axis[2], ox), 0)) {
#pragma unroll
        for (int l = 0; l < kLanes; ++l) right = right && names_element(p, sent_codes[l], oz, oy, ox);
      }
    }
  };
  // The code by which an index names this column's element in row y, in the window of an output; and from row to row.
  auto code_of = [&](Int oz, Int oy, Int ox, Int y, Int& step) -> Int {
    step = width;
    if (p.index_kind != IndexKind::window) return (place.z * height + y) * width + place.x;
    const Int whole_h = window_end(p.axis[1], oy) - window_start(p.axis[1], oy);
    step = window_end(p.axis[2], ox) - window_start(p.axis[2], ox);
    return ((place.z - window_start(p.axis[0], oz)) * whole_h + y - window_start(p.axis[1], oy)) * step + place.x -
           window_start(p.axis[2], ox);
  };
  auto enter = [&](Int y) {
    down = cover_of(p.axis[1], y);
    changes = down.last + 1 < outputs ? window_start<Int>(p.axis[1], down.last + 1) : height;
    if (down.first <= down.last) changes = least(changes, window_end(p.axis[1], down.first));
    alone = single && down.first == down.last;
#pragma unroll
    for (int l = 0; l < kLanes; ++l) value[l] = Sum{0};
    if (kShare == Share::index && !alone) return;
    for (Int oz = deep.first; oz <= deep.last; ++oz) {
      for (Int oy = down.first; oy <= down.last; ++oy) {
        for (Int ox = across.first; ox <= across.last; ++ox) {
          Vector<T, kLanes> sent;
          std::int64_t sent_codes[kLanes];
          receive(oz, oy, ox, sent, sent_codes);
          if constexpr (kShare == Share::index) mine = code_of(oz, oy, ox, y, next_row);
          std::int64_t divisor = 1;
          if (kShare == Share::sum && !p.uniform_divisor)
            divisor = divisor_of(p, taps_of(p.axis[0], oz), taps_of(p.axis[1], oy), taps_of(p.axis[2], ox));
#pragma unroll
          for (int l = 0; l < kLanes; ++l) {
            const Sum share = widen(sent.lane[l]);
            value[l] += kShare == Share::index || p.uniform_divisor ? share : divide<T>(share, divisor);
            if constexpr (kShare == Share::index) codes[l] = static_cast<Int>(sent_codes[l]);
          }
        }
      }
    }
    if constexpr (kShare == Share::sum) {
      if (p.uniform_divisor) {
#pragma unroll
        for (int l = 0; l < kLanes; ++l) value[l] = average_of<T>(p, value[l], 1);
      }
    }
  };
  for (Int y = place.y; y < end; ++y) {
    if (y >= changes) enter(y);
    Vector<T, kLanes> row;
    if constexpr (kShare == Share::sum) {
#pragma unroll
      for (int l = 0; l < kLanes; ++l) row.lane[l] = narrow<T>(value[l]);
    } else if (alone) {
#pragma unroll
      for (int l = 0; l < kLanes; ++l) row.lane[l] = narrow<T>(codes[l] == mine ? value[l] : Sum{0});
      mine += next_row;
    } else {
      Sum sum[kLanes] = {};
      for (Int oz = deep.first; oz <= deep.last; ++oz) {
        for (Int oy = down.first; oy <= down.last; ++oy) {
          for (Int ox = across.first; ox <= across.last; ++ox) {
            Vector<T, kLanes> sent;
            std::int64_t sent_codes[kLanes];
            receive(oz, oy, ox, sent, sent_codes);
            Int step;
            const Int named = code_of(oz, oy, ox, y, step);
#pragma unroll
            for (int l = 0; l < kLanes; ++l) {
              if (sent_codes[l] == named) sum[l] += widen(sent.lane[l]);
            }
          }
        }
      }
#pragma unroll
      for (int l = 0; l < kLanes; ++l) row.lane[l] = narrow<T>(sum[l]);
    }
    store(result, row);
    result += p.grad_input.h;
  }
  if constexpr (kShare == Share::index) {
    if (!right) report(at.fault, kFaultIndex);
  }
}

/// Windows that do not overlap, planar tensors: a thread makes kRun elements of every row of a strip. The width is a multiple of kRun,
/// rows begin aligned, windows slide without dilation.
template <class T, int kRun, Share kShare>
__global__ void __launch_bounds__(kBlock, kShare == Share::sum && sizeof(T) == 4 ? 8 : 0)
    spread_runs(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  keep_small_operands(p, at);
  using Int = std::int32_t;
  using Sum = Accumulator<T>;
  const Int thread = thread_of_grid<Int>();
  if (thread >= p.grid.threads) return;
  Place<Int> place = p.grid.place(thread);
  place.x *= kRun;
  place.y *= p.strip;
  const DeviceAxis<Int>&d = p.axis[0], &h = p.axis[1], &w = p.axis[2];
  const bool flat = p.grid.flat && d.kernel == 1;
  const Int oz = flat ? 0 : d.by_stride.quotient(place.z + d.pad_begin), tz = place.z + d.pad_begin - oz * d.stride;
  const bool seen = tz < d.kernel && oz < d.output;
  // The columns' outputs.
  Int ox[kRun], tx[kRun];
  ox[0] = w.by_stride.quotient(place.x + w.pad_begin);
  tx[0] = place.x + w.pad_begin - ox[0] * w.stride;
#pragma unroll
  for (int i = 1; i < kRun; ++i) {
    const bool next = tx[i - 1] + 1 == w.stride;
    ox[i] = ox[i - 1] + (next ? 1 : 0);
    tx[i] = next ? 0 : tx[i - 1] + 1;
  }
  const T* grad = static_cast<const T*>(at.grad_output) + p.grad_output.plane(place.n, place.c) + oz * p.grad_output.d;
  const std::int64_t indices = p.indices.plane(place.n, place.c) + oz * p.indices.d;
  const bool taps = p.index_kind == IndexKind::window;
  const Int unit = taps ? w.kernel : w.input;  // from row to row, in codes
  const bool first_slice = tz == 0 || place.z == 0;
  bool right = true;
  T* result = static_cast<T*>(at.grad_input) + p.grad_input.plane(place.n, place.c) +
              p.grad_input.at(place.z, place.y, place.x);
  const Int end = least(place.y + p.strip, h.input);
  Int oy = h.by_stride.quotient(place.y + h.pad_begin), ty = place.y + h.pad_begin - oy * h.stride;
  Vector<T, kRun> value;
  Int code[kRun];  // counted from the row at hand
  bool fresh = true;
  for (Int y = place.y; y < end; ++y) {
    if (fresh) {
      const bool exists = seen && oy < h.output;
#pragma unroll
      for (int i = 0; i < kRun; ++i) {
        value.lane[i] = narrow<T>(Sum{0});
        code[i] = -1;
        if (!exists || tx[i] >= w.kernel || ox[i] >= w.output) continue;
        if (i > 0 && tx[i] > 0) {  // the output of the column before
          value.lane[i] = value.lane[i - 1];
          code[i] = code[i - 1] - 1;
          continue;
        }
        Sum sum = Sum{0} + widen(load_constant<1>(grad + oy * p.grad_output.h + ox[i] * p.grad_output.w).lane[0]);
        if constexpr (kShare == Share::index) {
          std::int64_t read[1];
          load_codes(at.saved_indices, p.index_dtype, indices + oy * p.indices.h + ox[i] * p.indices.w, read);
          code[i] = static_cast<Int>(read[0]) -
                    (taps ? (tz * h.kernel + ty) * w.kernel + tx[i] : (place.z * h.input + y) * w.input + place.x + i);
          if (read[0] == -1) sum = Sum{0};
          if (first_slice && (tx[i] == 0 || place.x + i == 0)) {  // the window's first column vouches for its index
            Int position;
            const Int top = oy * h.stride - h.pad_begin, left = ox[i] * w.stride - w.pad_begin;
            right = right && (taps ? names_element(p, read[0], oz, oy, ox[i])
                                   : read[0] == -1 || is_flat_tap(p, taps_of(d, oz), top, left, read[0], position));
          }
        } else if (p.uniform_divisor) {
          sum = average_of<T>(p, sum, 1);
        } else {
          sum = divide<T>(sum, divisor_of(p, taps_of(d, oz), taps_of(h, oy), taps_of(w, ox[i])));
        }
        value.lane[i] = narrow<T>(sum);
      }
    }
    Vector<T, kRun> run;
    const bool covered = ty < h.kernel;
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      const bool wins = covered && (kShare == Share::sum || code[i] == 0);
      run.lane[i] = wins ? value.lane[i] : narrow<T>(Sum{0});
      if constexpr (kShare == Share::index) code[i] -= unit;
    }
    store(result, run);
    result += p.grad_input.h;
    fresh = ++ty == h.stride;
    if (fresh) ty = 0, ++oy;
  }
  if constexpr (kShare == Share::index) {
    if (!right) report(at.fault, kFaultIndex);
  }
}

/// Windows that are whole planes, dense planar tensors: a thread makes kPieces pieces of 16 bytes of grad_input, wherever planes begin.
/// A plane has at least as many elements as one piece.
template <class T, Share kShare>
__global__ void __launch_bounds__(kBlock)
    spread_planes(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  keep_small_operands(p, at);
  using Int = std::int32_t;
  using Sum = Accumulator<T>;
  constexpr int kRun = 16 / static_cast<int>(sizeof(T));
  const Int size = p.axis[2].input;
  bool right = true;
  Int begin[kPieces], place[kPieces];
  T sent[kPieces][2];
  Int code[kPieces][2];
  // What all pieces need is under way before the first is made.
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
    begin[piece] = ((static_cast<Int>(blockIdx.x) * kPieces + piece) * kBlock + static_cast<Int>(threadIdx.x)) * kRun;
    Int plane = least(begin[piece], p.grid.threads - 1);
    place[piece] = take(plane, p.axis[2].by_input);
    // A piece lies in one plane or in two; the tensor's last one may be short.
    const bool two = place[piece] + kRun > size && begin[piece] + kRun <= p.grid.threads;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const Int from = plane + (two ? i : 0);
      sent[piece][i] = load_constant<1>(static_cast<const T*>(at.grad_output) + from).lane[0];
      code[piece][i] = -1;
      if constexpr (kShare == Share::index) {
        std::int64_t read[1];
        load_codes(at.saved_indices, p.index_dtype, from, read);
        right = right && read[0] >= -1 && read[0] < size;
        code[piece][i] = static_cast<Int>(read[0]);
      }
    }
  }
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
    Sum value[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      value[i] = Sum{0} + widen(sent[piece][i]);
      if constexpr (kShare == Share::sum) value[i] = average_of<T>(p, value[i], size);
    }
    Vector<T, kRun> run;
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      const bool second = place[piece] + i >= size;
      Sum mine = second ? value[1] : value[0];
      if constexpr (kShare == Share::index) {
        if ((second ? code[piece][1] + size : code[piece][0]) != place[piece] + i) mine = Sum{0};
      }
      run.lane[i] = narrow<T>(mine);
    }
    T* result = static_cast<T*>(at.grad_input) + begin[piece];
    if (begin[piece] + kRun <= p.grid.threads) {
      store(result, run);
    } else {
#pragma unroll
      for (int i = 0; i < kRun; ++i) {
        if (begin[piece] + i < p.grid.threads) result[i] = run.lane[i];
      }
    }
  }
  if constexpr (kShare == Share::index) {
    if (!right) report(at.fault, kFaultIndex);
  }
}

}  // namespace cenote::gpu
