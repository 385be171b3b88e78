// Fetching early: the source rows that a later target row will read, in the order in which they lie in memory.
#if defined(CENOTE_CPU_VECTORS_AHEAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_VECTORS_AHEAD_INL_H_
#undef CENOTE_CPU_VECTORS_AHEAD_INL_H_
#else
#define CENOTE_CPU_VECTORS_AHEAD_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "cpu/rows/rows.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// Two rows that are read side by side are two streams to the memory, and come at half the speed of one: so they are asked for
/// one after the other, a few target rows before they are read.
class Ahead {
 public:
  Ahead() = default;
  /// `rows`: where the target row's first source row starts in the tile; its columns take `bytes`. The same at `depths` depths.
  Ahead(const RowPlan& plan, const void* rows, std::int64_t bytes, std::int64_t depths)
      : next_(static_cast<const char*>(rows) + plan.fetch_ahead),
        row_end_(next_ + bytes),
        row_bytes_(bytes),
        pitch_(plan.fetch_pitch),
        depth_pitch_(plan.fetch_depth_pitch),
        depths_(depths),
        left_(plan.fetch_ahead == 0 ? 0 : plan.fetch_rows * bytes),
        share_(plan.fetch_rows) {}

  /// Asks for as much as belongs to `bytes` of each row having been read.
  HWY_INLINE void Move(std::int64_t bytes) {
    if (left_ > 0) Fetch(bytes);
  }

 private:
  HWY_NOINLINE void Fetch(std::int64_t bytes) {
    for (due_ += bytes * share_; due_ > 0; due_ -= 64) {
      for (std::int64_t z = 0; z < depths_; ++z) hwy::Prefetch(next_ + z * depth_pitch_);
      next_ += 64;
      if (next_ >= row_end_) {
        row_end_ += pitch_;
        next_ = row_end_ - row_bytes_;
      }
    }
    left_ -= bytes * share_;
  }

  const char* next_ = nullptr;
  const char* row_end_ = nullptr;
  std::int64_t row_bytes_ = 0, pitch_ = 0, depth_pitch_ = 0, depths_ = 0, left_ = 0, share_ = 0, due_ = 0;
};

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
