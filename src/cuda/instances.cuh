// Which instances of the device templates one element type has.
#pragma once

#include "cuda/kernels.hpp"
#include "cuda/scatter.cuh"

namespace cenote::gpu {

template <class Parameters>
Function function(void (*entry)(Parameters, Pointers), int rows = 1, int columns = 1, int lanes = 1) {
  return {reinterpret_cast<const void*>(entry), rows, columns, lanes};
}

template <class T>
struct Instances {
  static constexpr int kLanes = 16 / static_cast<int>(sizeof(T));
  static constexpr bool kFloating = Number<T>::floating;
  /// Integers and f64 are rare enough to be served by the general kernels alone.
  static constexpr bool kTuned = kFloating && sizeof(T) <= 4;
  static constexpr bool kBytes = sizeof(T) == 1;

  template <Fold kFold, bool kIndices>
  static Function windows_of(bool vector, bool wide) {
    if (wide) return function(&fold_windows<T, 1, kFold, kIndices, std::int64_t>);
    if (vector) return function(&fold_windows<T, kLanes, kFold, kIndices, std::int32_t>);
    return function(&fold_windows<T, 1, kFold, kIndices, std::int32_t>);
  }
  static Function windows(bool vector, Fold fold, bool indices, bool wide) {
    switch (fold) {
      case Fold::max:
        return indices ? windows_of<Fold::max, true>(vector, wide) : windows_of<Fold::max, false>(vector, wide);
      case Fold::min:
        return indices ? windows_of<Fold::min, true>(vector, wide) : windows_of<Fold::min, false>(vector, wide);
      case Fold::sum: return windows_of<Fold::sum, false>(vector, wide);
      default:
        if constexpr (kFloating) {
          if (vector) return {};
          if (fold == Fold::power && wide) return function(&fold_windows<T, 1, Fold::power, false, std::int64_t>);
          if (fold == Fold::power) return function(&fold_windows<T, 1, Fold::power, false, std::int32_t>);
          if (!wide) return function(&fold_windows<T, 1, Fold::square, false, std::int32_t>);
        }
        return {};
    }
  }

  template <Fold kFold, bool kIndices>
  static Function streams_of(bool vector) {
    return vector ? function(&gpu::fold_streams<T, kLanes, kFold, kIndices>, 1, 1, kLanes)
                  : function(&gpu::fold_streams<T, 1, kFold, kIndices>);
  }
  static Function streams(bool vector, Fold fold, bool indices) {
    if constexpr (kTuned && sizeof(T) == 4) {  // eight channels of two bytes would take too many registers
      if (fold == Fold::max)
        return indices ? streams_of<Fold::max, true>(vector) : streams_of<Fold::max, false>(vector);
      if (fold == Fold::sum) return streams_of<Fold::sum, false>(vector);
    }
    return {};
  }

  /// Eight-byte indices of eight channels would be stored in pieces too far apart: four at a time then.
  template <bool kIndices>
  static constexpr int kIndexedLanes = kIndices&& kLanes > 4 ? 4 : kLanes;

  template <Fold kFold, bool kIndices, int kKernel, int kStride, int kPadding, bool kDeep>
  static Function down_by(Way way) {
    constexpr int kUsed = kIndexedLanes<kIndices>;
    if (way == Way::single)
      return function(&gpu::fold_down<T, 1, Lanes::channels, kFold, kIndices, kKernel, kStride, 0, kDeep>);
    if (way == Way::channels)
      return function(&gpu::fold_down<T, kUsed, Lanes::channels, kFold, kIndices, kKernel, kStride, 0, kDeep>, 1, 1,
                      kUsed);
    constexpr int kAcross = sizeof(T) == 1 ? 8 : 4;
    return function(&gpu::fold_down<T, kAcross, Lanes::columns, kFold, kIndices, kKernel, kStride, kPadding, kDeep>, 1,
                    kAcross);
  }
  template <Fold kFold, bool kIndices, bool kDeep>
  static Function down_of(Way way, int kernel, int stride, int padding) {
    const bool columns = way == Way::columns;
    if (kernel == 2 && stride == 2 && (padding == 0 || !columns)) return down_by<kFold, kIndices, 2, 2, 0, kDeep>(way);
    if (kernel == 3 && stride == 2 && columns && padding == 0) return down_by<kFold, kIndices, 3, 2, 0, kDeep>(way);
    if (kernel == 3 && stride == 2 && (padding == 1 || !columns)) return down_by<kFold, kIndices, 3, 2, 1, kDeep>(way);
    if (kernel == 3 && stride == 1 && (padding == 1 || !columns)) return down_by<kFold, kIndices, 3, 1, 1, kDeep>(way);
    return {};
  }
  static Function down(Way way, Fold fold, bool indices, int kernel, int stride, int padding, bool deep) {
    if constexpr (kBytes) {
      if (fold == Fold::max && !indices && !deep) return down_of<Fold::max, false, false>(way, kernel, stride, padding);
    }
    if constexpr (kTuned) {
      if (fold == Fold::max && indices) {
        return deep ? down_of<Fold::max, true, true>(way, kernel, stride, padding)
                    : down_of<Fold::max, true, false>(way, kernel, stride, padding);
      }
      if (fold == Fold::max) {
        return deep ? down_of<Fold::max, false, true>(way, kernel, stride, padding)
                    : down_of<Fold::max, false, false>(way, kernel, stride, padding);
      }
      if (fold == Fold::sum) {
        return deep ? down_of<Fold::sum, false, true>(way, kernel, stride, padding)
                    : down_of<Fold::sum, false, false>(way, kernel, stride, padding);
      }
      if (fold == Fold::square && kernel == 2 && stride == 2 && !deep && (padding == 0 || way != Way::columns))
        return down_by<Fold::square, false, 2, 2, 0, false>(way);
    }
    return {};
  }

  static Function packed_pairs(Fold fold, bool indices) {
    if constexpr (kTuned) {
      if (fold == Fold::max)
        return indices ? function(&gpu::fold_packed_pairs<T, Fold::max, true>, 1, 2)
                       : function(&gpu::fold_packed_pairs<T, Fold::max, false>, 1, kLanes);
      if (fold == Fold::sum) return function(&gpu::fold_packed_pairs<T, Fold::sum, false>, 1, kLanes);
    }
    return {};
  }
  static Function packed_pair_spreads(Share share, DType index) {
    if constexpr (kTuned) {
      constexpr int kPairs = kLanes / 2;
      if (share == Share::sum) return function(&gpu::spread_packed_pairs<T, Share::sum, std::int64_t>, 1, kPairs);
      if (share != Share::index) return {};
      if (index == DType::i64) return function(&gpu::spread_packed_pairs<T, Share::index, std::int64_t>, 1, kPairs);
      if (index == DType::i32) return function(&gpu::spread_packed_pairs<T, Share::index, std::int32_t>, 1, kPairs);
      if (index == DType::u8) return function(&gpu::spread_packed_pairs<T, Share::index, std::uint8_t>, 1, kPairs);
    }
    return {};
  }

  static Function slides(Way way, bool planar) {
    if constexpr (kTuned) {
      if constexpr (sizeof(T) == 4) {
        if (way == Way::channels) return function(&gpu::slide_down<T, kLanes, false, 1>, 1, 1, kLanes);
      }
      return planar ? function(&gpu::slide_down<T, 1, true, 4>) : function(&gpu::slide_down<T, 1, false, 4>);
    }
    return {};
  }

  template <Share kShare, class Stored, bool kTaps, int kLanesUsed>
  static Function gather_down_of(int kernel, int stride) {
    if (kernel == 2 && stride == 2)
      return function(&gpu::gather_down<T, kLanesUsed, 2, kShare, Stored, kTaps, 2, 2>, 1, 2, kLanesUsed);
    if (kernel == 3 && stride == 2)
      return function(&gpu::gather_down<T, kLanesUsed, 2, kShare, Stored, kTaps, 3, 2>, 1, 2, kLanesUsed);
    if (kernel == 3 && stride == 1)
      return function(&gpu::gather_down<T, kLanesUsed, 1, kShare, Stored, kTaps, 3, 1>, 1, 1, kLanesUsed);
    return {};
  }
  static Function down_gathers(Way way, Share share, DType index, int kernel, int stride) {
    if constexpr (kTuned) {
      const bool vector = way == Way::channels;
      constexpr int kUsed = kIndexedLanes<true>;
      if (share == Share::sum) {
        return vector ? gather_down_of<Share::sum, std::int64_t, false, kUsed>(kernel, stride)
                      : gather_down_of<Share::sum, std::int64_t, false, 1>(kernel, stride);
      }
      if (share == Share::index && index == DType::u8) {
        return vector ? gather_down_of<Share::index, std::uint8_t, true, kUsed>(kernel, stride)
                      : gather_down_of<Share::index, std::uint8_t, true, 1>(kernel, stride);
      }
      if (share == Share::index && index == DType::i32) {
        return vector ? gather_down_of<Share::index, std::int32_t, false, kUsed>(kernel, stride)
                      : gather_down_of<Share::index, std::int32_t, false, 1>(kernel, stride);
      }
      if (share == Share::index && index == DType::i64) {
        return vector ? gather_down_of<Share::index, std::int64_t, false, kUsed>(kernel, stride)
                      : gather_down_of<Share::index, std::int64_t, false, 1>(kernel, stride);
      }
    }
    return {};
  }
  static Function down_spreads(Way way, Share share) {
    if constexpr (kTuned) {
      constexpr int kUsed = kIndexedLanes<true>;
      const bool vector = way == Way::channels;
      if (share == Share::sum) {
        return vector ? function(&gpu::spread_down<T, kLanes, Share::sum>, 1, 1, kLanes)
                      : function(&gpu::spread_down<T, 1, Share::sum>);
      }
      if (share == Share::index) {
        return vector ? function(&gpu::spread_down<T, kUsed, Share::index>, 1, 1, kUsed)
                      : function(&gpu::spread_down<T, 1, Share::index>);
      }
    }
    return {};
  }
  template <Share kShare, class Stored, int kHeight, int kWidth>
  static Function window_spreads_by(Way way) {
    constexpr int kAcross = kLanes / kWidth > 1 ? kLanes / kWidth : 1;
    if (way == Way::columns)
      return function(&gpu::spread_windows<T, 1, kAcross, kShare, Stored, kHeight, kWidth>, 1, kAcross);
    return function(&gpu::spread_windows<T, 1, 1, kShare, Stored, kHeight, kWidth>);
  }
  template <Share kShare, class Stored>
  static Function window_spreads_of(Way way, int height, int width) {
    if (way == Way::channels) {
      if constexpr (kShare == Share::sum) {
        if (height == 2 && width == 2)
          return function(&gpu::spread_windows<T, kLanes, 1, kShare, Stored, 2, 2>, 1, 1, kLanes);
      }
      return {};
    }
    if constexpr (kShare == Share::sum) {
      if (height == 2 && width == 2) return window_spreads_by<kShare, Stored, 2, 2>(way);
    }
    if (height == 1 && width == 2) return window_spreads_by<kShare, Stored, 1, 2>(way);
    if (height == 1 && width == 4) return window_spreads_by<kShare, Stored, 1, 4>(way);
    return {};
  }
  static Function window_spreads(Way way, Share share, DType index, int height, int width) {
    if constexpr (kTuned) {
      if (share == Share::sum) return window_spreads_of<Share::sum, std::int64_t>(way, height, width);
      if (share != Share::index) return {};
      if (index == DType::i64) return window_spreads_of<Share::index, std::int64_t>(way, height, width);
      if (index == DType::i32) return window_spreads_of<Share::index, std::int32_t>(way, height, width);
      if (index == DType::u8) return window_spreads_of<Share::index, std::uint8_t>(way, height, width);
    }
    return {};
  }
  template <Share kShare>
  static Function run_spreads_of(int columns) {
    if (columns % kLanes == 0) return function(&gpu::spread_runs<T, kLanes, kShare>, 1, kLanes);
    if (columns % 4 == 0) return function(&gpu::spread_runs<T, 4, kShare>, 1, 4);
    if (columns % 2 == 0) return function(&gpu::spread_runs<T, 2, kShare>, 1, 2);
    return {};
  }
  static Function run_spreads(Share share, int columns) {
    if constexpr (kTuned) {
      if (share == Share::sum) return run_spreads_of<Share::sum>(columns);
      if (share == Share::index) return run_spreads_of<Share::index>(columns);
    }
    return {};
  }
  template <bool kSquare>
  static Function norm_spreads_of(Way way) {
    constexpr int kAcross = kLanes / 2;
    if (way == Way::columns) return function(&gpu::spread_square_norms<T, kAcross, kSquare>, 1, kAcross);
    return function(&gpu::spread_norms<T, kSquare>);
  }
  static Function norm_spreads(Way way, bool square) {
    if constexpr (kFloating) return square ? norm_spreads_of<true>(way) : norm_spreads_of<false>(way);
    return {};
  }
  static Function plane_spreads(Share share) {
    if constexpr (kTuned) {
      if (share == Share::sum) return function(&gpu::spread_planes<T, Share::sum>);
      if (share == Share::index) return function(&gpu::spread_planes<T, Share::index>);
    }
    return {};
  }

  template <Fold kFold, bool kIndices>
  static Function rows_of(int height, int kernel, int stride, int padding) {
    // Along one axis alone: windows that follow each other.
    if (height == 1 && padding == 0 && kernel == stride) {
      if (kernel == 2) return function(&gpu::fold_rows<T, kFold, kIndices, 1, 2, 2, 0, 1, 4>, 1, 4);
      if (kernel == 4) return function(&gpu::fold_rows<T, kFold, kIndices, 1, 4, 4, 0, 1, 4>, 1, 4);
    }
    if constexpr (kBytes && kIndices) {
      if (height != kernel) return {};
      if (kernel == 2 && stride == 2 && padding == 0)
        return function(&gpu::fold_rows<T, kFold, kIndices, 2, 2, 2, 0, 2, 4>, 2, 4);
      if (kernel == 3 && stride == 2 && padding == 1)
        return function(&gpu::fold_rows<T, kFold, kIndices, 3, 3, 2, 1, 2, 4>, 2, 4);
      if (kernel == 3 && stride == 2 && padding == 0)
        return function(&gpu::fold_rows<T, kFold, kIndices, 3, 3, 2, 0, 2, 4>, 2, 4);
      if (kernel == 3 && stride == 1 && padding == 1)
        return function(&gpu::fold_rows<T, kFold, kIndices, 3, 3, 1, 1, 4, 4>, 4, 4);
    }
    return {};
  }
  static Function rows(Fold fold, bool indices, int height, int kernel, int stride, int padding) {
    if constexpr (kTuned || kBytes) {
      if (fold == Fold::max) {
        return indices ? rows_of<Fold::max, true>(height, kernel, stride, padding)
                       : rows_of<Fold::max, false>(height, kernel, stride, padding);
      }
    }
    if constexpr (kTuned) {
      if (fold == Fold::sum) return rows_of<Fold::sum, false>(height, kernel, stride, padding);
      if (fold == Fold::square) return rows_of<Fold::square, false>(height, kernel, stride, padding);
    }
    return {};
  }

  template <Fold kFold, bool kIndices>
  static Function tiles_of(int kernel, int stride) {
    if (kernel == 2 && stride == 2) return function(&gpu::fold_tiles<T, kFold, kIndices, 2, 2, 2>, 2);
    if constexpr (kFold != Fold::square) {
      if (kernel == 3 && stride == 2) return function(&gpu::fold_tiles<T, kFold, kIndices, 3, 2, 4>, 4);
      if (kernel == 3 && stride == 1) return function(&gpu::fold_tiles<T, kFold, kIndices, 3, 1, 4>, 4);
    }
    return {};
  }
  static Function tiles(Fold fold, bool indices, int kernel, int stride) {
    if constexpr (kTuned || kBytes) {
      if (fold == Fold::max)
        return indices ? tiles_of<Fold::max, true>(kernel, stride) : tiles_of<Fold::max, false>(kernel, stride);
    }
    if constexpr (kTuned) {
      if (fold == Fold::sum) return tiles_of<Fold::sum, false>(kernel, stride);
      if (fold == Fold::square) return tiles_of<Fold::square, false>(kernel, stride);
    }
    return {};
  }

  template <Fold kFold, bool kIndices>
  static Function staged_of(int group) {
    if (group == 1) return function(&fold_staged_windows<T, kFold, kIndices, 1>);
    return group == 8 ? function(&fold_staged_windows<T, kFold, kIndices, 8>)
                      : function(&fold_staged_windows<T, kFold, kIndices, 32>);
  }
  static Function staged(Fold fold, bool indices, int group) {
    if constexpr (kTuned) {
      if (fold == Fold::max) return indices ? staged_of<Fold::max, true>(group) : staged_of<Fold::max, false>(group);
      if (fold == Fold::sum) return staged_of<Fold::sum, false>(group);
    }
    return {};
  }

  static Function adaptive_averages(Way way) {
    if constexpr (kTuned) {
      return way == Way::channels ? function(&gpu::average_adaptive<T, kLanes>, 1, 1, kLanes)
                                  : function(&gpu::average_adaptive<T, 1>);
    }
    return {};
  }
  static Function adaptive_spreads(Way way) {
    if constexpr (kTuned) {
      return way == Way::channels ? function(&gpu::spread_adaptive<T, kLanes>, 1, 1, kLanes)
                                  : function(&gpu::spread_adaptive<T, 1>);
    }
    return {};
  }

  template <Fold kFold, bool kIndices>
  static Function turned_of(bool vector) {
    return vector ? function(&gpu::fold_turned<T, 4, kFold, kIndices>, 1, 1, 4)
                  : function(&gpu::fold_turned<T, 1, kFold, kIndices>);
  }
  static Function turned(bool vector, Fold fold, bool indices) {
    if constexpr (kTuned) {
      if (fold == Fold::max) return indices ? turned_of<Fold::max, true>(vector) : turned_of<Fold::max, false>(vector);
      if (fold == Fold::sum) return turned_of<Fold::sum, false>(vector);
    }
    return {};
  }

  template <Fold kFold, bool kIndices>
  static Function bands_of(int columns) {
    if (columns % kLanes == 0) return function(&gpu::fold_bands<T, kFold, kIndices, kLanes>, 1, kLanes);
    if (columns % 2 == 0) return function(&gpu::fold_bands<T, kFold, kIndices, 2>, 1, 2);
    return function(&gpu::fold_bands<T, kFold, kIndices, 1>);
  }
  static Function bands(Fold fold, bool indices, int columns) {
    if constexpr (kTuned) {
      if (fold == Fold::max) return indices ? bands_of<Fold::max, true>(columns) : bands_of<Fold::max, false>(columns);
      if (fold == Fold::sum) return bands_of<Fold::sum, false>(columns);
    }
    return {};
  }

  template <Fold kFold, bool kIndices, int kChannels>
  static Function lines_of(int run) {
    if (run == 4) return function(&gpu::fold_lines<T, kFold, kIndices, 4, kChannels>, 1, 1, kChannels);
    if (run == 8) return function(&gpu::fold_lines<T, kFold, kIndices, 8, kChannels>, 1, 1, kChannels);
    return function(&gpu::fold_lines<T, kFold, kIndices, 16, kChannels>, 1, 1, kChannels);
  }
  static Function lines(bool vector, Fold fold, bool indices, int run) {
    if constexpr (kTuned) {
      constexpr int kSector = 2 * kLanes;  // channels in 32 bytes
      if (fold == Fold::max && indices)
        return vector ? lines_of<Fold::max, true, kSector>(run) : lines_of<Fold::max, true, 1>(run);
      if (fold == Fold::max)
        return vector ? lines_of<Fold::max, false, kSector>(run) : lines_of<Fold::max, false, 1>(run);
      if (fold == Fold::sum)
        return vector ? lines_of<Fold::sum, false, kSector>(run) : lines_of<Fold::sum, false, 1>(run);
    }
    return {};
  }

  static Function slides_along() {
    if constexpr (kTuned) return function(&gpu::slide_along<T>);
    return {};
  }

  template <Share kShare, bool kTaps>
  static Function gather_rows_of(int kernel, int stride, int padding) {
    if (kernel == 2 && stride == 2 && padding == 0)
      return function(&gpu::gather_rows<T, kShare, kTaps, 2, 2, 0, 2, 8>, 2, 8);
    if (kernel == 3 && stride == 2 && padding == 1)
      return function(&gpu::gather_rows<T, kShare, kTaps, 3, 2, 1, 2, 8>, 2, 8);
    if (kernel == 3 && stride == 1 && padding == 1)
      return function(&gpu::gather_rows<T, kShare, kTaps, 3, 1, 1, 2, 4>, 2, 4);
    return {};
  }
  static Function aligned_gathers(Share share, bool taps, int kernel, int stride, int padding) {
    if constexpr (kTuned) {
      if (share == Share::sum) return gather_rows_of<Share::sum, false>(kernel, stride, padding);
      if (share == Share::last && !taps) return gather_rows_of<Share::last, false>(kernel, stride, padding);
      if (share == Share::index) {
        return taps ? gather_rows_of<Share::index, true>(kernel, stride, padding)
                    : gather_rows_of<Share::index, false>(kernel, stride, padding);
      }
    }
    return {};
  }

  template <Gather kGather>
  static Function gather_tiles_of(int rows) {
    return rows == 4 ? function(&gpu::gather_tiles<T, kGather, 4>, 4) : function(&gpu::gather_tiles<T, kGather, 1>);
  }
  static Function tile_gathers(Gather gather, int rows) {
    if constexpr (kTuned) {
      if (gather == Gather::selected) return gather_tiles_of<Gather::selected>(rows);
      if (gather == Gather::average) return gather_tiles_of<Gather::average>(rows);
      return gather_tiles_of<Gather::last>(rows);
    }
    return {};
  }
  static Function spread(Gather gather) {
    if constexpr (kTuned) {
      if (gather == Gather::selected) return function(&gpu::spread_tiles<T, Gather::selected>);
      if (gather == Gather::average) return function(&gpu::spread_tiles<T, Gather::average>);
      return function(&gpu::spread_tiles<T, Gather::last>);
    }
    return {};
  }
  template <Gather kGather>
  static Function tile_cells_of(int kernel, int stride, int phase) {
    if (kernel == 2 && stride == 2 && phase == 0)
      return function(&gpu::gather_tile_cells<T, kGather, 2, 2, 0, 2, 2>, 2, 2);
    if (kernel == 3 && stride == 2 && phase == 0)
      return function(&gpu::gather_tile_cells<T, kGather, 3, 2, 0, 4, 2>, 4, 2);
    if (kernel == 3 && stride == 2 && phase == 1)
      return function(&gpu::gather_tile_cells<T, kGather, 3, 2, 1, 4, 2>, 4, 2);
    if (kernel == 3 && stride == 1) return function(&gpu::gather_tile_cells<T, kGather, 3, 1, 0, 4, 1>, 4, 1);
    return {};
  }
  static Function tile_cells(Gather gather, int kernel, int stride, int phase) {
    if constexpr (kTuned) {
      if (gather == Gather::selected) return tile_cells_of<Gather::selected>(kernel, stride, phase);
      if (gather == Gather::average) return tile_cells_of<Gather::average>(kernel, stride, phase);
      return tile_cells_of<Gather::last>(kernel, stride, phase);
    }
    return {};
  }

  template <Share kShare>
  static Function gather_of(bool vector, bool wide) {
    if (wide) return function(&gather_windows<T, 1, kShare, std::int64_t, 1>);
    if (vector) return function(&gather_windows<T, kLanes, kShare, std::int32_t, 8>, 8);
    return function(&gather_windows<T, 1, kShare, std::int32_t, 1>);
  }
  static Function gather(bool vector, Share share, bool wide) {
    if (share == Share::index) return gather_of<Share::index>(vector, wide);
    if (share == Share::sum) return gather_of<Share::sum>(vector, wide);
    if constexpr (kFloating) {
      if (vector) return {};
      if (share == Share::power) {
        return wide ? function(&gather_windows<T, 1, Share::power, std::int64_t, 1>)
                    : function(&gather_windows<T, 1, Share::power, std::int32_t, 1>);
      }
      return wide ? function(&gather_windows<T, 1, Share::infinite, std::int64_t, 1>)
                  : function(&gather_windows<T, 1, Share::infinite, std::int32_t, 1>);
    }
    return {};
  }

  template <Share kShare, bool kTaps, int kLanesUsed>
  static Function cells_of(int kernel, int stride, int phase) {
    constexpr int kTall = kLanesUsed == 1 ? 4 : 2, kWide = kLanesUsed == 1 ? 4 : 2, kNarrow = kLanesUsed == 1 ? 2 : 1;
    if (kernel == 2 && stride == 2 && phase == 0)
      return function(&gpu::gather_cells<T, kLanesUsed, kShare, kTaps, 2, 2, 0, 2, kWide>, 2, kWide);
    if (kernel == 3 && stride == 2 && phase == 0)
      return function(&gpu::gather_cells<T, kLanesUsed, kShare, kTaps, 3, 2, 0, 2, kWide>, 2, kWide);
    if (kernel == 3 && stride == 2 && phase == 1)
      return function(&gpu::gather_cells<T, kLanesUsed, kShare, kTaps, 3, 2, 1, 2, kWide>, 2, kWide);
    if (kernel == 3 && stride == 1)
      return function(&gpu::gather_cells<T, kLanesUsed, kShare, kTaps, 3, 1, 0, kTall, kNarrow>, kTall, kNarrow);
    return {};
  }
  template <Share kShare, bool kTaps>
  static Function cells_of(bool vector, int kernel, int stride, int phase) {
    return vector ? cells_of<kShare, kTaps, kLanes>(kernel, stride, phase)
                  : cells_of<kShare, kTaps, 1>(kernel, stride, phase);
  }
  static Function cells(bool vector, Share share, bool taps, int kernel, int stride, int phase) {
    if constexpr (kTuned) {
      if (share == Share::index) {
        return taps ? cells_of<Share::index, true>(vector, kernel, stride, phase)
                    : cells_of<Share::index, false>(vector, kernel, stride, phase);
      }
      if (share == Share::sum) return cells_of<Share::sum, false>(vector, kernel, stride, phase);
    }
    return {};
  }

  static Function unpool_in_windows(bool vector) {
    return vector ? function(&unpool_windows<T, kLanes>) : function(&unpool_windows<T, 1>);
  }
  static Function unpool_anywhere(bool wide) {
    return wide ? function(&unpool_ranges<T, std::int64_t>) : function(&unpool_ranges<T, std::int32_t>);
  }
  static Function take(bool wide) {
    return wide ? function(&take_at_indices<T, std::int64_t>) : function(&take_at_indices<T, std::int32_t>);
  }
  static Function take_dense() { return function(&gpu::take_from_planes<T>); }
  static Function ordered(bool wide) {
    if constexpr (kFloating) {
      return wide ? function(&add_in_order<T, std::int64_t>) : function(&add_in_order<T, std::int32_t>);
    }
    return {};
  }

  static Function winners(bool plain) {
    if constexpr (kFloating)
      return plain ? function(&gpu::add_for_winners<T, std::int64_t>) : function(&gpu::add_for_winners<T, void>);
    return {};
  }
  static Function turns(bool plain, bool vector) {
    if constexpr (kFloating) {
      if (plain && vector) return function(&gpu::add_in_turn<T, std::int64_t, true>);
      return plain ? function(&gpu::add_in_turn<T, std::int64_t, false>) : function(&gpu::add_in_turn<T, void, false>);
    }
    return {};
  }

  static constexpr Kernels table{
      .lanes = kLanes,
      .fold_windows = windows,
      .fold_streams = streams,
      .fold_down = down,
      .fold_packed_pairs = packed_pairs,
      .spread_packed_pairs = packed_pair_spreads,
      .slide_down = slides,
      .fold_rows = rows,
      .fold_tiles = tiles,
      .fold_staged = staged,
      .average_adaptive = adaptive_averages,
      .spread_adaptive = adaptive_spreads,
      .fold_turned = turned,
      .fold_bands = bands,
      .fold_lines = lines,
      .slide_along = slides_along,
      .gather_windows = gather,
      .gather_cells = cells,
      .gather_down = down_gathers,
      .spread_down = down_spreads,
      .spread_runs = run_spreads,
      .spread_windows = window_spreads,
      .spread_planes = plane_spreads,
      .gather_rows = aligned_gathers,
      .spread_norms = norm_spreads,
      .gather_tiles = tile_gathers,
      .spread_tiles = spread,
      .gather_tile_cells = tile_cells,
      .unpool_windows = unpool_in_windows,
      .unpool_ranges = unpool_anywhere,
      .take_at_indices = take,
      .take_from_planes = take_dense,
      .add_in_order = ordered,
      .add_for_winners = winners,
      .add_in_turn = turns,
  };
};

}  // namespace cenote::gpu
