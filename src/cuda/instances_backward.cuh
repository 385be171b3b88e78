// Which instances of the backward's device templates, and of unpooling's, one element type has.
#pragma once

#include "cuda/element.cuh"
#include "cuda/scatter.cuh"

namespace cenote::gpu {

template <class T>
struct BackwardInstances {
  static constexpr int kLanes = Element<T>::kLanes;
  static constexpr bool kFloating = Element<T>::kFloating, kTuned = Element<T>::kTuned, kBytes = Element<T>::kBytes;
  template <bool kIndices>
  static constexpr int kIndexedLanes = Element<T>::template kIndexedLanes<kIndices>;

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

  template <bool kFilled>
  static Function row_window_spreads_of(Share share, DType index) {
    if (share == Share::sum) return function(&gpu::spread_row_sums<T, kFilled>, 1, kLanes);
    if (share != Share::index) return {};
    if (index == DType::i64) return function(&gpu::spread_row_windows<T, std::int64_t, kFilled>, 1, kLanes);
    if (index == DType::i32) return function(&gpu::spread_row_windows<T, std::int32_t, kFilled>, 1, kLanes);
    if (index == DType::u8) return function(&gpu::spread_row_windows<T, std::uint8_t, kFilled>, 1, kLanes);
    return {};
  }
  static Function row_window_spreads(Share share, DType index, bool filled) {
    if constexpr (kTuned)
      return filled ? row_window_spreads_of<true>(share, index) : row_window_spreads_of<false>(share, index);
    return {};
  }

  static Function channel_row_spreads() {
    if constexpr (kTuned) return function(&gpu::spread_channel_rows<T>, 1, kLanes);
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
    if (kernel == 2 && stride == 1)
      return function(&gpu::gather_down<T, kLanesUsed, 2, kShare, Stored, kTaps, 2, 1>, 1, 2, kLanesUsed);
    return {};
  }
  static Function down_gathers(Way way, Share share, DType index, int kernel, int stride) {
    if constexpr (kTuned || Element<T>::kDouble) {
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
  template <Share kShare, class Stored, bool kTaps, int kKernel, int kStride>
  static Function few_gather(bool channels_fastest) {
    return channels_fastest ? function(&gpu::gather_few<T, kShare, Stored, kTaps, kKernel, kStride, true>)
                            : function(&gpu::gather_few<T, kShare, Stored, kTaps, kKernel, kStride, false>);
  }
  template <Share kShare, class Stored, bool kTaps>
  static Function few_gathers_of(int kernel, int stride, bool channels_fastest) {
    if (kernel == 2 && stride == 2) return few_gather<kShare, Stored, kTaps, 2, 2>(channels_fastest);
    if (kernel == 3 && stride == 2) return few_gather<kShare, Stored, kTaps, 3, 2>(channels_fastest);
    if (kernel == 2 && stride == 1) return few_gather<kShare, Stored, kTaps, 2, 1>(channels_fastest);
    if (kernel == 3 && stride == 1) return few_gather<kShare, Stored, kTaps, 3, 1>(channels_fastest);
    return {};
  }
  static Function few_gathers(Share share, DType index, int kernel, int stride, bool channels_fastest) {
    if constexpr (kTuned) {
      if (share == Share::sum) return few_gathers_of<Share::sum, std::int64_t, false>(kernel, stride, channels_fastest);
      if (share != Share::index) return {};
      if (index == DType::u8) return few_gathers_of<Share::index, std::uint8_t, true>(kernel, stride, channels_fastest);
      if (index == DType::i32)
        return few_gathers_of<Share::index, std::int32_t, false>(kernel, stride, channels_fastest);
      if (index == DType::i64)
        return few_gathers_of<Share::index, std::int64_t, false>(kernel, stride, channels_fastest);
    }
    return {};
  }
  template <class Stored, bool kTaps>
  static Function gather_staged_of(int kernel, int stride) {
    if (kernel == 3 && stride == 2)
      return function(&gpu::gather_staged<T, Stored, kTaps, 3, 2>, PlanarCell<2>::kRows, PlanarCell<2>::kColumns);
    if (kernel == 3 && stride == 1)
      return function(&gpu::gather_staged<T, Stored, kTaps, 3, 1>, PlanarCell<1>::kRows, PlanarCell<1>::kColumns);
    return {};
  }
  static Function staged_gathers(DType index, int kernel, int stride) {
    if constexpr (kTuned) {
      if (index == DType::u8) return gather_staged_of<std::uint8_t, true>(kernel, stride);
      if (index == DType::i32) return gather_staged_of<std::int32_t, false>(kernel, stride);
      if (index == DType::i64) return gather_staged_of<std::int64_t, false>(kernel, stride);
    }
    return {};
  }
  template <int kLanesUsed, int kColumns, int kStride>
  static Function column_gathers_of(DType index) {
    if (index == DType::u8)
      return function(&gpu::gather_columns<T, kLanesUsed, kColumns, std::uint8_t, true, kStride>, 1, kColumns,
                      kLanesUsed);
    if (index == DType::i32)
      return function(&gpu::gather_columns<T, kLanesUsed, kColumns, std::int32_t, false, kStride>, 1, kColumns,
                      kLanesUsed);
    if (index == DType::i64)
      return function(&gpu::gather_columns<T, kLanesUsed, kColumns, std::int64_t, false, kStride>, 1, kColumns,
                      kLanesUsed);
    return {};
  }
  static Function column_gathers(Way way, DType index, int stride) {
    if constexpr (kTuned) {
      if (way == Way::columns && stride == 2) return column_gathers_of<1, kLanes, 2>(index);
      // One apart, ten outputs see eight columns: too many registers.
      if constexpr (sizeof(T) == 4) {
        if (way == Way::columns && stride == 1) return column_gathers_of<1, kLanes, 1>(index);
      } else {
        if (way == Way::channels && stride == 2) return column_gathers_of<4, 2, 2>(index);
      }
    }
    return {};
  }
  static Function slice_gathers(DType index) {
    if constexpr (kTuned) {
      if (index == DType::u8) return function(&gpu::gather_slices<T, std::uint8_t, true>, kSliceRows, kSliceColumns<T>);
      if (index == DType::i32)
        return function(&gpu::gather_slices<T, std::int32_t, false>, kSliceRows, kSliceColumns<T>);
      if (index == DType::i64)
        return function(&gpu::gather_slices<T, std::int64_t, false>, kSliceRows, kSliceColumns<T>);
    }
    return {};
  }
  template <class Stored, bool kTaps, int kStride, bool kDeep>
  static Function channel_gather() {
    using Cell = ChannelCell<kStride>;
    return function(&gpu::gather_staged_channels<T, 4, Stored, kTaps, 3, kStride, kDeep>, Cell::kRows, Cell::kColumns,
                    4);
  }
  template <class Stored, bool kTaps>
  static Function channel_gathers_of(int kernel, int stride, bool deep) {
    if (kernel == 3 && stride == 1)
      return deep ? channel_gather<Stored, kTaps, 1, true>() : channel_gather<Stored, kTaps, 1, false>();
    if (kernel == 3 && stride == 2 && deep) return channel_gather<Stored, kTaps, 2, true>();
    return {};
  }
  static Function staged_channel_gathers(DType index, int kernel, int stride, bool deep) {
    if constexpr (kTuned) {
      if (index == DType::u8) return channel_gathers_of<std::uint8_t, true>(kernel, stride, deep);
      if (index == DType::i32) return channel_gathers_of<std::int32_t, false>(kernel, stride, deep);
      if (index == DType::i64) return channel_gathers_of<std::int64_t, false>(kernel, stride, deep);
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
  template <Share kShare, class Stored, int kDepth, int kHeight, int kWidth>
  static Function window_spreads_by(Way way) {
    constexpr int kAcross = kLanes / kWidth > 1 ? kLanes / kWidth : 1;
    if (way == Way::columns)
      return function(&gpu::spread_windows<T, 1, kAcross, kShare, Stored, kDepth, kHeight, kWidth>, 1, kAcross);
    return function(&gpu::spread_windows<T, 1, 1, kShare, Stored, kDepth, kHeight, kWidth>);
  }
  template <Share kShare, class Stored>
  static Function window_spreads_of(Way way, int depth, int height, int width) {
    if (way == Way::channels) {
      constexpr int kUsed = kIndexedLanes<kShare == Share::index>;
      if (depth == 1 && height == 2 && width == 1)
        return function(&gpu::spread_windows<T, kUsed, 1, kShare, Stored, 1, 2, 1>, 1, 1, kUsed);
      if (depth == 1 && height == 3 && width == 3)
        return function(&gpu::spread_windows<T, kUsed, 1, kShare, Stored, 1, 3, 3>, 1, 1, kUsed);
      if constexpr (kShare == Share::sum) {
        if (depth == 1 && height == 2 && width == 2)
          return function(&gpu::spread_windows<T, kLanes, 1, kShare, Stored, 1, 2, 2>, 1, 1, kLanes);
      } else if constexpr (sizeof(T) == 2) {
        if (depth == 2 && height == 2 && width == 2)
          return function(&gpu::spread_windows<T, 4, 1, kShare, Stored, 2, 2, 2>, 1, 1, 4);
      }
      return {};
    }
    if (way == Way::columns && depth == 1 && height == 2 && width == 1) {
      constexpr int kAcross = kIndexedLanes<kShare == Share::index>;
      return function(&gpu::spread_windows<T, 1, kAcross, kShare, Stored, 1, 2, 1>, 1, kAcross);
    }
    if constexpr (kShare == Share::sum) {
      if (depth == 1 && height == 2 && width == 2) return window_spreads_by<kShare, Stored, 1, 2, 2>(way);
    } else if constexpr (sizeof(T) != 4) {  // of four-byte elements 390 us where gather_rows takes 350 (2x2, 1439 MB)
      if (way == Way::columns && height == 2 && width == 2) {
        if (depth == 1) return window_spreads_by<kShare, Stored, 1, 2, 2>(way);
        if (depth == 2) return window_spreads_by<kShare, Stored, 2, 2, 2>(way);
      }
    }
    if (depth != 1) return {};
    if (height == 1 && width == 2) return window_spreads_by<kShare, Stored, 1, 1, 2>(way);
    if (height == 1 && width == 4) return window_spreads_by<kShare, Stored, 1, 1, 4>(way);
    return {};
  }
  static Function window_spreads(Way way, Share share, DType index, int depth, int height, int width) {
    if constexpr (kTuned || Element<T>::kDouble) {
      if (share == Share::sum) return window_spreads_of<Share::sum, std::int64_t>(way, depth, height, width);
      if (share != Share::index) return {};
      if (index == DType::i64) return window_spreads_of<Share::index, std::int64_t>(way, depth, height, width);
      if (index == DType::i32) return window_spreads_of<Share::index, std::int32_t>(way, depth, height, width);
      if (index == DType::u8) return window_spreads_of<Share::index, std::uint8_t>(way, depth, height, width);
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
  static Function apart_spreads(Share share, DType index) {
    if constexpr (kTuned) {
      if (share == Share::sum) return function(&gpu::spread_apart<T, Share::sum, std::int64_t, false>, 1, kLanes);
      if (share != Share::index) return {};
      if (index == DType::i64) return function(&gpu::spread_apart<T, Share::index, std::int64_t, false>, 1, kLanes);
      if (index == DType::i32) return function(&gpu::spread_apart<T, Share::index, std::int32_t, false>, 1, kLanes);
      if (index == DType::u8) return function(&gpu::spread_apart<T, Share::index, std::uint8_t, true>, 1, kLanes);
    }
    return {};
  }
  static Function norm_gathers(bool square) {
    if constexpr (kTuned)
      return square ? function(&gpu::gather_norms<T, true>) : function(&gpu::gather_norms<T, false>);
    return {};
  }
  static Function plane_spreads(Share share) {
    if constexpr (kTuned) {
      if (share == Share::sum) return function(&gpu::spread_planes<T, Share::sum>);
      if (share == Share::index) return function(&gpu::spread_planes<T, Share::index>);
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

  static Function adaptive_plane_spreads() {
    if constexpr (kTuned) return function(&gpu::spread_adaptive_planes<T>);
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

  template <int kLanesUsed, Share kShare, class Stored, bool kTaps, int kDown, int kAcross>
  static Function direct_gather() {
    return function(&gpu::gather_direct<T, kLanesUsed, kShare, Stored, kTaps, kDown, kAcross>, 1, 1, kLanesUsed);
  }
  template <int kLanesUsed, Share kShare, class Stored, bool kTaps>
  static Function direct_gathers_by(int down, int across) {
    if (down <= 1 && across <= 2) return direct_gather<kLanesUsed, kShare, Stored, kTaps, 1, 2>();
    if (down <= 1 && across <= 4) return direct_gather<kLanesUsed, kShare, Stored, kTaps, 1, 4>();
    if (down <= 2 && across <= 1) return direct_gather<kLanesUsed, kShare, Stored, kTaps, 2, 1>();
    if (down <= 2 && across <= 2) return direct_gather<kLanesUsed, kShare, Stored, kTaps, 2, 2>();
    if (down <= 3 && across <= 3) return direct_gather<kLanesUsed, kShare, Stored, kTaps, 3, 3>();
    return {};
  }
  template <Share kShare, class Stored, bool kTaps>
  static Function direct_gathers_of(bool vector, int down, int across) {
    return vector ? direct_gathers_by<kIndexedLanes<true>, kShare, Stored, kTaps>(down, across)
                  : direct_gathers_by<1, kShare, Stored, kTaps>(down, across);
  }
  static Function direct_gathers(bool vector, Share share, DType index, int down, int across) {
    if constexpr (kTuned) {
      if (share == Share::sum) return direct_gathers_of<Share::sum, std::int64_t, false>(vector, down, across);
      if (share != Share::index) return {};
      if (index == DType::u8) return direct_gathers_of<Share::index, std::uint8_t, true>(vector, down, across);
      if (index == DType::i32) return direct_gathers_of<Share::index, std::int32_t, false>(vector, down, across);
      if (index == DType::i64) return direct_gathers_of<Share::index, std::int64_t, false>(vector, down, across);
    }
    return {};
  }

  template <int kLanesUsed, bool kOwnDivisors>
  static Function sum_gathers_of(int down, int across) {
    if (down <= 2 && across <= 2)
      return function(&gpu::gather_sums<T, kLanesUsed, kOwnDivisors, 2, 2>, 1, 1, kLanesUsed);
    if (down <= 3 && across <= 3)
      return function(&gpu::gather_sums<T, kLanesUsed, kOwnDivisors, 3, 3>, 1, 1, kLanesUsed);
    return {};
  }
  static Function sum_gathers(bool vector, bool own_divisors, int down, int across) {
    if constexpr (kTuned) {
      if (own_divisors) return vector ? sum_gathers_of<4, true>(down, across) : sum_gathers_of<1, true>(down, across);
      return vector ? sum_gathers_of<4, false>(down, across) : sum_gathers_of<1, false>(down, across);
    }
    return {};
  }

  template <Share kShare, class Stored, bool kTaps>
  static Function tile_windows_of(bool tall, int across) {
    if (tall) {
      if (across <= 2) return function(&gpu::gather_tile_windows<T, kShare, Stored, kTaps, true, 2>, 1, 2);
      if (across <= 3) return function(&gpu::gather_tile_windows<T, kShare, Stored, kTaps, true, 3>, 1, 3);
      if constexpr (kShare == Share::index) {
        if (across <= 5) return function(&gpu::gather_tile_windows<T, kShare, Stored, kTaps, true, 5>, 1, 5);
        if (across <= 7) return function(&gpu::gather_tile_windows<T, kShare, Stored, kTaps, true, 7>, 1, 7);
      }
      return {};
    }
    if (across <= 2) return function(&gpu::gather_tile_windows<T, kShare, Stored, kTaps, false, 2>, 1, 2);
    if (across <= 4) return function(&gpu::gather_tile_windows<T, kShare, Stored, kTaps, false, 4>, 1, 4);
    if (across <= 8) return function(&gpu::gather_tile_windows<T, kShare, Stored, kTaps, false, 8>, 1, 8);
    return {};
  }
  static Function tile_windows(Share share, DType index, bool tall, int across) {
    if constexpr (kTuned) {
      if (share == Share::sum) return tile_windows_of<Share::sum, std::int64_t, false>(tall, across);
      if (share != Share::index) return {};
      if (index == DType::u8) return tile_windows_of<Share::index, std::uint8_t, true>(tall, across);
      if (index == DType::i32) return tile_windows_of<Share::index, std::int32_t, false>(tall, across);
      if (index == DType::i64) return tile_windows_of<Share::index, std::int64_t, false>(tall, across);
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

  template <class Stored>
  static Function turns_of(bool planar) {
    return planar ? function(&gpu::add_planes_in_turn<T, Stored>) : function(&gpu::add_in_turn<T, Stored>);
  }
  static Function winners(DType index) {
    if constexpr (kTuned) {
      if (index == DType::u8) return function(&gpu::add_for_winners<T, std::uint8_t>);
      if (index == DType::u16) return function(&gpu::add_for_winners<T, std::uint16_t>);
    }
    if constexpr (kFloating) {
      return index == DType::i64 ? function(&gpu::add_for_winners<T, std::int64_t>)
                                 : function(&gpu::add_for_winners<T, void>);
    }
    return {};
  }
  static Function turns(DType index, bool planar) {
    if constexpr (kTuned) {
      if (index == DType::u8) return turns_of<std::uint8_t>(planar);
      if (index == DType::u16) return turns_of<std::uint16_t>(planar);
    }
    if constexpr (kFloating) return index == DType::i64 ? turns_of<std::int64_t>(planar) : turns_of<void>(planar);
    return {};
  }
};

}  // namespace cenote::gpu
