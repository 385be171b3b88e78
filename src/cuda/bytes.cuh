// Maxima of 3x3 windows two apart over planar rows of bytes: every second byte of a word in the halves of a register, first down, then
// along the row.
#pragma once

#include "cuda/packed_strip.cuh"

namespace cenote::gpu {

/// kOut outputs beside each other to a thread, which walks down a strip. Padding 1 on the left and above; rows of a multiple of kOut * 2
/// elements, aligned, and as many outputs as half of them.
template <class T, int kOut>
__global__ void __launch_bounds__(kBlock)
    fold_bytes(const __grid_constant__ Params<std::int32_t> p, const __grid_constant__ Pointers at) {
  wait_for_grid_before();
  using Int = std::int32_t;
  static_assert(kOut == 8 || kOut == 16);
  constexpr int kWords = kOut / 2;
  // Signed bytes are compared as unsigned ones, half of the range away.
  constexpr unsigned kBias = Number<T>::dtype == DType::u8 ? 0 : 0x80808080U;
  if (thread_of_grid() >= p.grid.threads) return;
  PackedStrip<T, kOut> strip(p, at);
  struct Row {
    unsigned even[kWords], odd[kWords];
    unsigned before;  // the column before the thread's own, in the upper half
  };
  auto load_row = [&](Int y) {
    const T* from = strip.row_near(p, y);
    Row row;
#pragma unroll
    for (int i = 0; i < kWords; i += 4) {
      const uint4 four = __ldg(reinterpret_cast<const uint4*>(from + 4 * i));
      const unsigned words[4] = {four.x ^ kBias, four.y ^ kBias, four.z ^ kBias, four.w ^ kBias};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        row.even[i + j] = words[j] & 0x00ff00ffU;
        row.odd[i + j] = __byte_perm(words[j], 0, 0x4341);
      }
    }
    // Left of the input the first column stands in once more: it changes nothing.
    row.before = row.even[0] << 16;
    if (strip.place.x > 0)
      row.before = (static_cast<unsigned>(static_cast<std::uint8_t>(__ldg(from - 1))) ^ (kBias & 0xff)) << 16;
    return row;
  };
  Row above = load_row(2 * strip.place.y - 1);
  for (Int y = strip.place.y; y < strip.end; ++y) {
    const Row middle = load_row(2 * y), below = load_row(2 * y + 1);
    auto down = [](unsigned a, unsigned b, unsigned c) { return __vmaxu2(__vmaxu2(a, b), c); };
    unsigned previous = down(above.before, middle.before, below.before), result[kWords];
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      const unsigned even = down(above.even[i], middle.even[i], below.even[i]),
                     odd = down(above.odd[i], middle.odd[i], below.odd[i]);
      result[i] = down(__byte_perm(previous, odd, 0x5432), even, odd);
      previous = odd;
    }
    unsigned packed[kWords / 2];
#pragma unroll
    for (int i = 0; i < kWords; i += 2) packed[i / 2] = __byte_perm(result[i], result[i + 1], 0x6420) ^ kBias;
    if constexpr (kOut == 16) {
      *reinterpret_cast<uint4*>(strip.output) = {packed[0], packed[1], packed[2], packed[3]};
    } else {
      *reinterpret_cast<uint2*>(strip.output) = {packed[0], packed[1]};
    }
    strip.output += p.output.h;
    above = below;
  }
}

}  // namespace cenote::gpu
