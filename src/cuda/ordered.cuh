// The backward of max pools whose windows overlap much: too many outputs see an element for it to ask them all. A thread owns a part
// of a plane and walks through the outputs that see it in ascending order, adding each gradient where its index points. What a part
// gathers is kept for one element of every column at a time: a sliding window's maximum moves down each column and never back up, so
// that an element is finished when a lower one of its column takes over. Indices that no pool made may come back: then what was
// stored is read again, or, where storing has rounded it, add_in_order does the whole thing again.
#pragma once

#include "cuda/scatter.cuh"

namespace cenote::gpu {

inline constexpr int kPartBlock = 64;
inline constexpr int kPartBatch = 8;  // outputs loaded at once, while those before them are added
inline constexpr int kPartVector = 4;

/// What one column of a part gathers: the sum of the element in row `row`; -1 before the first.
template <class Sum>
struct alignas(2 * sizeof(Sum)) ColumnSum {
  Sum sum;
  std::int16_t row, lowest;  // and the lowest row there was
};

/// Where an index points: row and column of the plane. False for one that points nowhere; `wrong` unless it says so itself.
__device__ inline bool locate(const Params<std::int32_t>& p, std::int64_t code, std::int32_t top, std::int32_t left,
                              std::int32_t& y, std::int32_t& x, bool& wrong) {
  using Int = std::int32_t;
  const Int height = p.axis[1].input, width = p.axis[2].input, kernel_w = p.axis[2].kernel;
  Int rest = static_cast<Int>(code);
  bool right;
  if (p.index_kind == IndexKind::window) {
    right = static_cast<std::uint64_t>(code) < static_cast<std::uint64_t>(p.axis[1].kernel * kernel_w);
    x = left + take(rest, p.parts.by_kernel_w);
    y = top + rest;
    right = right && static_cast<unsigned>(x) < static_cast<unsigned>(width) &&
            static_cast<unsigned>(y) < static_cast<unsigned>(height);
  } else {
    right = static_cast<std::uint64_t>(code) < static_cast<std::uint64_t>(height * width);
    x = take(rest, p.axis[2].by_input);
    y = rest;
    right = right && static_cast<unsigned>(y - top) < static_cast<unsigned>(p.axis[1].kernel) &&
            static_cast<unsigned>(x - left) < static_cast<unsigned>(kernel_w);
  }
  wrong = wrong || (!right && code != -1);
  return right;
}

/// Sliding windows along height and width, no dilation, no depth. kVector: outputs that follow each other in aligned rows.
template <class T, bool kVector>
__global__ void __launch_bounds__(kPartBlock)
    add_by_columns(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  using Int = std::int32_t;
  using Sum = Accumulator<T>;
  using Column = ColumnSum<Sum>;
  extern __shared__ __align__(16) char part_memory[];
  Column* columns = reinterpret_cast<Column*>(part_memory) + threadIdx.x;
  const Parts& parts = p.parts;
  const Int height = p.axis[1].input, width = p.axis[2].input;
  Int rest = static_cast<Int>(blockIdx.x) * kPartBlock + static_cast<Int>(threadIdx.x);
  const bool exists = rest < parts.total;
  Int c = 0;
  if (parts.channels_fastest) c = take(rest, parts.channels);
  const Int x0 = take_of(rest, parts.across) * parts.columns, y0 = take_of(rest, parts.down) * parts.rows;
  if (!parts.channels_fastest) c = take(rest, parts.channels);
  const std::int64_t n = rest;
  const Int rows = exists ? least(parts.rows, height - y0) : 0, wide = exists ? least(parts.columns, width - x0) : 0;
  T* result = static_cast<T*>(at.grad_input) + n * p.grad_input.n + c * p.grad_input.c + y0 * p.grad_input.h +
              x0 * p.grad_input.w;
  for (Int i = 0; i < wide; ++i) columns[i * kPartBlock] = {Sum{0}, -1, -1};

  // Zeros first: by each thread where neighbours own neighbouring channels, else by the warp, part after part.
  if (parts.channels_fastest) {
    for (Int y = 0; y < rows; ++y) {
      for (Int x = 0; x < wide; ++x) result[y * p.grad_input.h + x * p.grad_input.w] = narrow<T>(Sum{0});
    }
  } else {
    const Int lane = static_cast<Int>(threadIdx.x) % 32;
    for (int owner = 0; owner < 32; ++owner) {
      T* to = reinterpret_cast<T*>(__shfl_sync(0xffffffffU, reinterpret_cast<unsigned long long>(result), owner));
      Int run = __shfl_sync(0xffffffffU, wide, owner), runs = __shfl_sync(0xffffffffU, rows, owner);
      if (run == p.grad_input.h && p.grad_input.w == 1)
        run *= runs, runs = run > 0 ? 1 : 0;  // rows that follow each other
      for (Int y = 0; y < runs; ++y) {
        for (Int x = lane; x < run; x += 32) to[y * p.grad_input.h + x * p.grad_input.w] = narrow<T>(Sum{0});
      }
    }
  }
  __syncwarp();
  if (!exists) return;

  const Int first_y = cover_of(p.axis[1], y0).first, last_y = cover_of<Int>(p.axis[1], y0 + rows - 1).last;
  const Int first_x = cover_of(p.axis[2], x0).first, last_x = cover_of<Int>(p.axis[2], x0 + wide - 1).last;
  const T* grad = static_cast<const T*>(at.grad_output) + n * p.grad_output.n + c * p.grad_output.c;
  const std::int64_t indices = n * p.indices.n + c * p.indices.c;
  bool wrong = false, again = false;
  struct Batch {
    T sent[kPartBatch];
    std::int64_t codes[kPartBatch];
  };
  auto fetch = [&](Int oy, Int ox, Batch& batch) {
    const T* grad_row = grad + oy * p.grad_output.h;
    const std::int64_t index_row = indices + oy * p.indices.h;
    if constexpr (kVector) {
#pragma unroll
      for (int i = 0; i < kPartBatch; i += kPartVector) {
        std::int64_t codes[kPartVector] = {-1, -1, -1, -1};
        Vector<T, kPartVector> sent{};
        if (ox + i <= last_x) {
          sent = load_constant<kPartVector>(grad_row + ox + i);
          load_codes(at.saved_indices, p.index_dtype, index_row + ox + i, codes);
        }
#pragma unroll
        for (int j = 0; j < kPartVector; ++j) {
          batch.sent[i + j] = sent.lane[j];
          batch.codes[i + j] = codes[j];
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < kPartBatch; ++i) {
        std::int64_t code[1] = {-1};
        if (ox + i <= last_x) {
          batch.sent[i] = load_constant<1>(grad_row + (ox + i) * p.grad_output.w).lane[0];
          load_codes(at.saved_indices, p.index_dtype, index_row + (ox + i) * p.indices.w, code);
        }
        batch.codes[i] = code[0];
      }
    }
  };
  const Int begin_x = kVector ? first_x / kPartVector * kPartVector : first_x;
  Int next_y = first_y, next_x = begin_x;
  Batch next;
  if (next_y <= last_y && next_x <= last_x) fetch(next_y, next_x, next);
  while (next_y <= last_y && next_x <= last_x) {
    const Batch batch = next;
    const Int oy = next_y, ox = next_x;
    next_x += kPartBatch;
    if (next_x > last_x) next_x = begin_x, ++next_y;
    if (next_y <= last_y) fetch(next_y, next_x, next);
    const Int top = oy * p.axis[1].stride - p.axis[1].pad_begin;
    // Where all of them point, side by side; only then one after the other what depends on it.
    Int row[kPartBatch], place[kPartBatch];
#pragma unroll
    for (int i = 0; i < kPartBatch; ++i) {
      Int y = -1, x = 0;
      const Int left = (ox + i) * p.axis[2].stride - p.axis[2].pad_begin;
      const bool points = locate(p, batch.codes[i], top, left, y, x, wrong);
      y -= y0;
      x -= x0;
      const bool mine = points && static_cast<unsigned>(y) < static_cast<unsigned>(rows) &&
                        static_cast<unsigned>(x) < static_cast<unsigned>(wide);
      row[i] = mine ? y : -1;
      place[i] = x;
    }
#pragma unroll
    for (int i = 0; i < kPartBatch; ++i) {
      const Int y = row[i], x = place[i];
      if (y < 0) continue;
      Column column = columns[x * kPartBlock];
      if (column.row != y) {
        if (column.row >= 0) result[column.row * p.grad_input.h + x * p.grad_input.w] = narrow<T>(column.sum);
        column.sum = Sum{0};
        if (y <= column.lowest) {
          column.sum = widen(result[y * p.grad_input.h + x * p.grad_input.w]);
          again = true;
        } else {
          column.lowest = static_cast<std::int16_t>(y);
        }
        column.row = static_cast<std::int16_t>(y);
      }
      column.sum += widen(batch.sent[i]);
      columns[x * kPartBlock] = column;
    }
  }
  for (Int x = 0; x < wide; ++x) {
    const Column column = columns[x * kPartBlock];
    if (column.row >= 0) result[column.row * p.grad_input.h + x * p.grad_input.w] = narrow<T>(column.sum);
  }
  if (wrong) report(at.fault, kFaultIndex);
  if (again && sizeof(T) < sizeof(Sum)) *static_cast<volatile unsigned*>(at.irregular) = 1;
}

}  // namespace cenote::gpu
