// Which instances of the forward's device templates one element type has.
#pragma once

#include "cuda/element.cuh"

namespace cenote::gpu {

template <class T>
struct ForwardInstances {
  static constexpr int kLanes = Element<T>::kLanes;
  static constexpr bool kFloating = Element<T>::kFloating, kTuned = Element<T>::kTuned, kBytes = Element<T>::kBytes;
  template <bool kIndices>
  static constexpr int kIndexedLanes = Element<T>::template kIndexedLanes<kIndices>;

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
  template <Fold kFold, bool kIndices, int kParts>
  static Function stream_parts_by(bool vector) {
    constexpr int kUsed = kIndexedLanes<kIndices>;
    return vector ? function(&gpu::fold_stream_parts<T, kUsed, kFold, kIndices, kParts>, 1, 1, kUsed)
                  : function(&gpu::fold_stream_parts<T, 1, kFold, kIndices, kParts>);
  }
  template <Fold kFold, bool kIndices>
  static Function stream_parts_of(bool vector, int parts) {
    if (parts == 8) return stream_parts_by<kFold, kIndices, 8>(vector);
    return parts == 16 ? stream_parts_by<kFold, kIndices, 16>(vector) : stream_parts_by<kFold, kIndices, 32>(vector);
  }
  static Function stream_parts(bool vector, Fold fold, bool indices, int parts) {
    if constexpr (kTuned) {
      if (fold == Fold::max)
        return indices ? stream_parts_of<Fold::max, true>(vector, parts)
                       : stream_parts_of<Fold::max, false>(vector, parts);
      if (fold == Fold::sum) return stream_parts_of<Fold::sum, false>(vector, parts);
    }
    return {};
  }
  static Function deep_maxima(Way way, int padding, int stride) {
    if constexpr (kTuned) {
      if (way == Way::channels)
        return stride == 1 ? function(&gpu::fold_deep<T, 4, Lanes::channels, 0, 1>, 1, 1, 4)
                           : function(&gpu::fold_deep<T, 4, Lanes::channels, 0, 2>, 1, 1, 4);
      if (way == Way::columns && padding == 1)
        return stride == 1 ? function(&gpu::fold_deep<T, 4, Lanes::columns, 1, 1>, 1, 4)
                           : function(&gpu::fold_deep<T, 4, Lanes::columns, 1, 2>, 1, 4);
      if (way == Way::columns && padding == 0 && stride == 2)
        return function(&gpu::fold_deep<T, 4, Lanes::columns, 0, 2>, 1, 4);
    }
    return {};
  }
  static Function packed_maxima(bool indices, int columns) {
    if constexpr (kBytes) {
      if (indices) return {};
      return columns == 16 ? function(&gpu::fold_bytes<T, 16>, 1, 16) : function(&gpu::fold_bytes<T, 8>, 1, 8);
    }
    if constexpr (kFloating && sizeof(T) == 2) {
      if (indices) return function(&gpu::find_halves<T, 4>, 1, 4);
      return columns == 8 ? function(&gpu::fold_halves<T, 8>, 1, 8) : function(&gpu::fold_halves<T, 4>, 1, 4);
    }
    return {};
  }
  static Function streams(bool vector, Fold fold, bool indices) {
    if constexpr (kTuned && sizeof(T) == 4) {  // eight channels of two bytes would take too many registers
      if (fold == Fold::max)
        return indices ? streams_of<Fold::max, true>(vector) : streams_of<Fold::max, false>(vector);
      if (fold == Fold::sum) return streams_of<Fold::sum, false>(vector);
    }
    return {};
  }

  template <Fold kFold, bool kIndices, int kKernel, int kStride, int kPadding, bool kDeep>
  static Function down_by(Way way) {
    constexpr int kUsed = kIndexedLanes<kIndices>;
    if (way == Way::single)
      return function(&gpu::fold_down<T, 1, Lanes::channels, kFold, kIndices, kKernel, kStride, 0, kDeep>);
    if (way == Way::channels)
      return function(&gpu::fold_down<T, kUsed, Lanes::channels, kFold, kIndices, kKernel, kStride, 0, kDeep>, 1, 1,
                      kUsed);
    if (way == Way::half_channels) {
      if constexpr (kDeep || kUsed < 4) {
        return {};
      } else {
        constexpr int kHalf = kUsed / 2;
        return function(&gpu::fold_down<T, kHalf, Lanes::channels, kFold, kIndices, kKernel, kStride, 0, kDeep>, 1, 1,
                        kHalf);
      }
    }
    if constexpr (Element<T>::kDouble) {
      return {};
    } else {
      constexpr int kAcross = sizeof(T) == 1 ? 8 : 4;
      return function(&gpu::fold_down<T, kAcross, Lanes::columns, kFold, kIndices, kKernel, kStride, kPadding, kDeep>,
                      1, kAcross);
    }
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
    if constexpr (Element<T>::kDouble) {
      if (deep) return {};
      if (fold == Fold::max)
        return indices ? down_of<Fold::max, true, false>(way, kernel, stride, padding)
                       : down_of<Fold::max, false, false>(way, kernel, stride, padding);
      if (fold == Fold::sum) return down_of<Fold::sum, false, false>(way, kernel, stride, padding);
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
      if (kernel == 2 && stride == 2 && !deep && (padding == 0 || way != Way::columns)) {
        if (fold == Fold::square) return down_by<Fold::square, false, 2, 2, 0, false>(way);
        if (fold == Fold::power) return down_by<Fold::power, false, 2, 2, 0, false>(way);
      }
    }
    return {};
  }

  template <int kLanesUsed, Fold kFold, bool kIndices, int kHeight, int kWidth>
  static Function direct_fold() {
    return function(&gpu::fold_direct<T, kLanesUsed, kFold, kIndices, kHeight, kWidth>, 1, 1, kLanesUsed);
  }
  template <int kLanesUsed, Fold kFold, bool kIndices>
  static Function directly_by(int height, int width) {
    if constexpr (kFold == Fold::power) {  // fewer kernels: norms of windows that are not dense or not planar are rare
      if (height <= 1 && width <= 8) return direct_fold<kLanesUsed, kFold, kIndices, 1, 8>();
      if (height <= 3 && width <= 3) return direct_fold<kLanesUsed, kFold, kIndices, 3, 3>();
      if (height <= 5 && width <= 5)  // eight channels of two bytes would take too many registers
        return direct_fold<(kLanesUsed > 4 ? 4 : kLanesUsed), kFold, kIndices, 5, 5>();
    } else {
      if (height <= 1 && width <= 3) return direct_fold<kLanesUsed, kFold, kIndices, 1, 3>();
      if (height <= 1 && width <= 8) return direct_fold<kLanesUsed, kFold, kIndices, 1, 8>();
      if (height <= 2 && width <= 2) return direct_fold<kLanesUsed, kFold, kIndices, 2, 2>();
      if (height <= 3 && width <= 1) return direct_fold<kLanesUsed, kFold, kIndices, 3, 1>();
      if (height <= 3 && width <= 3) return direct_fold<kLanesUsed, kFold, kIndices, 3, 3>();
      if (height <= 4 && width <= 4) return direct_fold<kLanesUsed, kFold, kIndices, 4, 4>();
      if (height <= 5 && width <= 5) return direct_fold<kLanesUsed, kFold, kIndices, 5, 5>();
    }
    return {};
  }
  template <Fold kFold, bool kIndices>
  static Function directly_of(bool vector, int height, int width) {
    constexpr int kUsed = kIndexedLanes<kIndices>;
    return vector ? directly_by<kUsed, kFold, kIndices>(height, width) : directly_by<1, kFold, kIndices>(height, width);
  }
  static Function directly(bool vector, Fold fold, bool indices, int height, int width) {
    if constexpr (kTuned) {
      if (fold == Fold::max && indices) return directly_of<Fold::max, true>(vector, height, width);
      if (fold == Fold::max) return directly_of<Fold::max, false>(vector, height, width);
      if (fold == Fold::sum) return directly_of<Fold::sum, false>(vector, height, width);
      if (fold == Fold::square || fold == Fold::power) return directly_of<Fold::power, false>(vector, height, width);
    }
    return {};
  }

  template <Fold kFold, bool kIndices>
  static Function tile_windows_of(int height, int width) {
    if (height > 1) {
      if (width == 1 && height <= 3) return function(&gpu::fold_tile_windows<T, kFold, kIndices, 3, 1>);
      const int size = height > width ? height : width;
      if (size <= 2) return function(&gpu::fold_tile_windows<T, kFold, kIndices, 2, 2>);
      if (size <= 3) return function(&gpu::fold_tile_windows<T, kFold, kIndices, 3, 3>);
      if (size <= 5) return function(&gpu::fold_tile_windows<T, kFold, kIndices, 5, 5>);
      return {};
    }
    if (width <= 2) return function(&gpu::fold_tile_windows<T, kFold, kIndices, 1, 2>);
    if (width <= 3) return function(&gpu::fold_tile_windows<T, kFold, kIndices, 1, 3>);
    if (width <= 5) return function(&gpu::fold_tile_windows<T, kFold, kIndices, 1, 5>);
    if (width <= 8) return function(&gpu::fold_tile_windows<T, kFold, kIndices, 1, 8>);
    return function(&gpu::fold_tile_windows<T, kFold, kIndices, 1, 0>);
  }
  static Function tile_windows(Fold fold, bool indices, int height, int width) {
    if constexpr (kTuned) {
      if (fold == Fold::max)
        return indices ? tile_windows_of<Fold::max, true>(height, width)
                       : tile_windows_of<Fold::max, false>(height, width);
      if (fold == Fold::sum) return tile_windows_of<Fold::sum, false>(height, width);
      if (fold == Fold::square) return tile_windows_of<Fold::square, false>(height, width);
      if (fold == Fold::power) return tile_windows_of<Fold::power, false>(height, width);
    }
    return {};
  }

  template <Fold kFold, bool kIndices>
  static Function row_windows_of(int width) {
    if (width == 2) return function(&gpu::fold_row_windows<T, kFold, kIndices, 2, false>);
    if (width == 3) return function(&gpu::fold_row_windows<T, kFold, kIndices, 3, false>);
    if (width == 4) return function(&gpu::fold_row_windows<T, kFold, kIndices, 4, false>);
    return width <= 8 ? function(&gpu::fold_row_windows<T, kFold, kIndices, 8, false>) : Function{};
  }
  static Function row_windows(Fold fold, bool indices, int width, bool padded) {
    if constexpr (kTuned) {
      if (padded) {
        if (fold == Fold::sum && width == 2) return function(&gpu::fold_row_windows<T, Fold::sum, false, 2, true>);
        if (fold == Fold::sum && width == 3) return function(&gpu::fold_row_windows<T, Fold::sum, false, 3, true>);
        return {};
      }
      if (fold == Fold::max)
        return indices ? row_windows_of<Fold::max, true>(width) : row_windows_of<Fold::max, false>(width);
      if (fold == Fold::sum) return row_windows_of<Fold::sum, false>(width);
      if (fold == Fold::square) return row_windows_of<Fold::square, false>(width);
      if (fold == Fold::power) return row_windows_of<Fold::power, false>(width);
    }
    return {};
  }

  static Function channel_rows(int height, int width) {
    if constexpr (kTuned) {
      if (height == 2 && width == 2) return function(&gpu::fold_channel_rows<T, 2, 2, 4>, 1, 4);
      if (height == 3 && width == 3) return function(&gpu::fold_channel_rows<T, 3, 3, 2>, 1, 2);
    }
    return {};
  }

  template <Fold kFold, bool kIndices>
  static Function few_of(int kernel, bool channels_fastest) {
    if (kernel == 2)
      return channels_fastest ? function(&gpu::fold_few<T, kFold, kIndices, 2, true>)
                              : function(&gpu::fold_few<T, kFold, kIndices, 2, false>);
    if (kernel == 3)
      return channels_fastest ? function(&gpu::fold_few<T, kFold, kIndices, 3, true>)
                              : function(&gpu::fold_few<T, kFold, kIndices, 3, false>);
    return {};
  }
  static Function few(Fold fold, bool indices, int kernel, bool channels_fastest) {
    if constexpr (kTuned) {
      if (fold == Fold::max && indices) return few_of<Fold::max, true>(kernel, channels_fastest);
      if (fold == Fold::sum) return few_of<Fold::sum, false>(kernel, channels_fastest);
    }
    if (indices) return {};
    if (fold == Fold::max) return few_of<Fold::max, false>(kernel, channels_fastest);
    if (fold == Fold::min) return few_of<Fold::min, false>(kernel, channels_fastest);
    return {};
  }

  static Function packed_pairs(Fold fold, bool indices) {
    if constexpr (kTuned) {
      if (fold == Fold::max)
        return indices ? function(&gpu::fold_packed_pairs<T, Fold::max, true>, 1, kPackedOutputs<true>)
                       : function(&gpu::fold_packed_pairs<T, Fold::max, false>, 1, kPackedOutputs<false>);
      if (fold == Fold::sum) return function(&gpu::fold_packed_pairs<T, Fold::sum, false>, 1, kPackedOutputs<false>);
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

  static Function lane_slides() {
    if constexpr (kTuned) return function(&gpu::slide_lanes<T, 4>);
    return {};
  }
  template <Fold kFold, bool kIndices, bool kOwnDivisors>
  static Function plane_slides_of(int kernel, int stride) {
    // Three words of shared memory to a thread: neighbours' lie in different banks. With indices, fewer registers.
    constexpr int kColumns = kIndices ? 3 : 12 / static_cast<int>(sizeof(T));
    if (kernel == 3 && stride == 1)
      return function(&gpu::slide_planes<T, kFold, kIndices, 3, 1, kColumns, kOwnDivisors>, 1, kColumns);
    if (kernel == 2 && stride == 1)
      return function(&gpu::slide_planes<T, kFold, kIndices, 2, 1, kColumns, kOwnDivisors>, 1, kColumns);
    if constexpr (!is_extreme<kFold>) {
      if (kernel == 3 && stride == 2)
        return function(&gpu::slide_planes<T, kFold, kIndices, 3, 2, 3, kOwnDivisors>, 1, 3);
    }
    return {};
  }
  static Function plane_slides(Fold fold, bool indices, int kernel, int stride, bool own_divisors) {
    if constexpr (kTuned) {
      if (fold == Fold::sum)
        return own_divisors ? plane_slides_of<Fold::sum, false, true>(kernel, stride)
                            : plane_slides_of<Fold::sum, false, false>(kernel, stride);
      if (fold == Fold::square) return plane_slides_of<Fold::square, false, true>(kernel, stride);
      if (fold == Fold::max)
        return indices ? plane_slides_of<Fold::max, true, false>(kernel, stride)
                       : plane_slides_of<Fold::max, false, false>(kernel, stride);
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
    if constexpr (kTuned && (is_extreme<kFold> || kFold == Fold::sum)) {
      if (height == 4 && kernel == 4 && stride == 4 && padding == 0) {
        constexpr int kAcross = kLanes / 4;
        return function(&gpu::fold_rows<T, kFold, kIndices, 4, 4, 4, 0, 1, kAcross>, 1, kAcross);
      }
      if (height == 1 && padding == 1 && kernel == 3) {
        if (stride == 1) return function(&gpu::fold_rows<T, kFold, kIndices, 1, 3, 1, 1, 1, 4>, 1, 4);
        if (stride == 2) return function(&gpu::fold_rows<T, kFold, kIndices, 1, 3, 2, 1, 1, 4>, 1, 4);
      }
      if (height == 1 && padding == 2 && kernel == 5 && stride == 1)
        return function(&gpu::fold_rows<T, kFold, kIndices, 1, 5, 1, 2, 1, 4>, 1, 4);
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
      if (fold == Fold::power) return rows_of<Fold::power, false>(height, kernel, stride, padding);
    }
    return {};
  }

  template <Fold kFold, bool kIndices>
  static Function tiles_of(int kernel, int stride) {
    if (kernel == 2 && stride == 2) return function(&gpu::fold_tiles<T, kFold, kIndices, 2, 2, 2>, 2);
    if constexpr (is_extreme<kFold> || kFold == Fold::sum) {
      constexpr int kRows = kIndices ? 2 : 4;
      if (kernel == 3 && stride == 2) return function(&gpu::fold_tiles<T, kFold, kIndices, 3, 2, kRows>, kRows);
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
      if (fold == Fold::power) return tiles_of<Fold::power, false>(kernel, stride);
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

  template <Fold kFold, bool kIndices>
  static Function planes_of(int group, bool staged) {
    if (group == 256) return function(&gpu::fold_planes<T, kFold, kIndices, 256, false>);
    if (group == 128) return function(&gpu::fold_planes<T, kFold, kIndices, 128, false>);
    if (group == 64) return function(&gpu::fold_planes<T, kFold, kIndices, 64, false>);
    if (group == 32) return function(&gpu::fold_planes<T, kFold, kIndices, 32, false>);
    if (staged)
      return group == 4 ? function(&gpu::fold_planes<T, kFold, kIndices, 4, true>)
                        : function(&gpu::fold_planes<T, kFold, kIndices, 8, true>);
    return group == 4 ? function(&gpu::fold_planes<T, kFold, kIndices, 4, false>)
                      : function(&gpu::fold_planes<T, kFold, kIndices, 8, false>);
  }
  static Function planes(Fold fold, bool indices, int group, bool staged) {
    if constexpr (kTuned) {
      if (fold == Fold::max && !indices) return planes_of<Fold::max, false>(group, staged);
      if (fold == Fold::sum) return planes_of<Fold::sum, false>(group, staged);
      if constexpr (sizeof(T) == 4) {
        if (fold == Fold::max) return planes_of<Fold::max, true>(group, staged);
      }
    }
    return {};
  }

  static Function plane_sums() {
    if constexpr (kFloating && sizeof(T) == 2) return function(&gpu::sum_planes<T>);
    return {};
  }

  static Function adaptive_averages(Way way) {
    if constexpr (kTuned) {
      constexpr int kUsed = 4;  // eight channels of two bytes would take too many registers
      return way == Way::channels ? function(&gpu::average_adaptive<T, kUsed>, 1, 1, kUsed)
                                  : function(&gpu::average_adaptive<T, 1>);
    }
    return {};
  }

  static Function adaptive_plane_averages(int most) {
    if constexpr (kTuned)
      return most <= 2 ? function(&gpu::average_adaptive_planes<T, 2>) : function(&gpu::average_adaptive_planes<T, 4>);
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

  static Function quads(Fold fold, bool indices, bool aligned) {
    if constexpr (kTuned) {
      if (fold == Fold::max && aligned && indices) return function(&gpu::fold_quads<T, Fold::max, true, true>);
      if (fold == Fold::max && aligned) return function(&gpu::fold_quads<T, Fold::max, false, true>);
      if (fold == Fold::sum && aligned) return function(&gpu::fold_quads<T, Fold::sum, false, true>);
      if (fold == Fold::sum) return function(&gpu::fold_quads<T, Fold::sum, false, false>);
    }
    return {};
  }

  static Function panes(Fold fold, bool indices, bool aligned) {
    if constexpr (kTuned) {
      if (fold == Fold::max && aligned && indices)
        return function(&gpu::fold_panes<T, Fold::max, true, 4, true>, 1, 1, 4);
      if (fold == Fold::max && aligned) return function(&gpu::fold_panes<T, Fold::max, false, 4, true>, 1, 1, 4);
      if (fold == Fold::sum && aligned) return function(&gpu::fold_panes<T, Fold::sum, false, 4, true>, 1, 1, 4);
      if (fold == Fold::sum) return function(&gpu::fold_panes<T, Fold::sum, false, 4, false>, 1, 1, 4);
    }
    return {};
  }

  static Function slides_along() {
    if constexpr (kTuned) return function(&gpu::slide_along<T>);
    return {};
  }
};

}  // namespace cenote::gpu
