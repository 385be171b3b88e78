// Results around the caches, a few lines at a time between the instructions that make them.
#if defined(CENOTE_CPU_VECTORS_PACED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_VECTORS_PACED_INL_H_
#undef CENOTE_CPU_VECTORS_PACED_INL_H_
#else
#define CENOTE_CPU_VECTORS_PACED_INL_H_
#endif

#include <hwy/cache_control.h>

#include <limits>
#include <utility>

#include "cpu/vectors/paced.hpp"
#include "cpu/vectors/stream-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// Whole lines that wait to be written.
struct WaitingLines {
  const char* from;
  char* to;
  std::int64_t count;

  HWY_INLINE void Write(std::int64_t lines) {
    for (; count > 0 && lines > 0; --lines, --count, from += kLine, to += kLine) StreamLine(from, to);
  }
};

/// Rows that follow each other: made where they belong, or put together and then written around the caches. Of two buffers, one is filled while the lines of the other wait,
/// and whoever makes rows writes those between whiles. Written at once they would keep the core waiting with nothing else to do, and be read before they have reached the cache. (2x2/2 backward
/// over 256 planes of 224 x 224: one thread 3626 us at once and 2684 line by line, two 1968 and 1300; after each row 3274, one thread.)
class PacedRows {
 public:
  /// `scratch`: where a line begins.
  PacedRows(const PacedPlan& plan, char* scratch)
      : plan_(plan), filling_(scratch), other_(scratch + plan.buffer()), kept_from_(scratch) {}
  PacedRows(const PacedRows&) = delete;
  PacedRows& operator=(const PacedRows&) = delete;
  ~PacedRows() {
    if (!plan_.streams) return;
    Finish();
    hwy::FlushStream();
  }

  /// The next rows are those from here on.
  void GoTo(void* target) {
    char* to = static_cast<char*>(target);
    if (to == start_ + filled_) return;
    if (plan_.streams) Finish();
    filled_ = plan_.streams ? static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % kLine) : 0;
    others_ = filled_;
    start_ = to - filled_;
    kept_ = 0;
  }

  /// Makes room for so many, no more than the plan's. All rows taken before must be there.
  void Reserve(std::int64_t rows) {
    if (plan_.streams && room() < rows) Turn();
  }
  /// Rows that find room without that.
  std::int64_t room() const {
    return plan_.streams ? (plan_.buffer() - filled_) / plan_.row : std::numeric_limits<std::int64_t>::max();
  }
  /// The next rows.
  char* Take(std::int64_t rows) {
    char* to = (plan_.streams ? filling_ : start_) + filled_;
    filled_ += rows * plan_.row;
    return to;
  }
  HWY_NOINLINE void Zero(std::int64_t rows) {
    for (std::int64_t count = 0; rows > 0; rows -= count) {
      Reserve(1);
      count = smaller(rows, room());
      std::memset(Take(count), 0, static_cast<std::size_t>(count * plan_.row));
    }
  }

  WaitingLines waiting{};

 private:
  /// What has been put together waits, and the other buffer is filled.
  HWY_NOINLINE void Turn() {
    waiting.Write(waiting.count);
    std::memcpy(filling_, kept_from_, static_cast<std::size_t>(kept_));
    const std::int64_t whole = filled_ / kLine;
    waiting = {filling_, start_, whole};
    if (others_ > 0 && whole > 0) {
      std::memcpy(start_ + others_, filling_ + others_, static_cast<std::size_t>(kLine - others_));
      waiting = {filling_ + kLine, start_ + kLine, whole - 1};
      others_ = 0;
    }
    kept_from_ = filling_ + whole * kLine;
    kept_ = filled_ = filled_ - whole * kLine;
    start_ += whole * kLine;
    std::swap(filling_, other_);
  }

  void Finish() {
    Turn();
    waiting.Write(waiting.count);
    if (kept_ > others_) std::memcpy(start_ + others_, kept_from_ + others_, static_cast<std::size_t>(kept_ - others_));
  }

  const PacedPlan& plan_;
  char *filling_, *other_;
  char* start_ = nullptr;    // where the buffer's first byte belongs, a line's; or the first row
  std::int64_t filled_ = 0;  // bytes
  std::int64_t others_ = 0;  // bytes of the first line that are not ours
  const char* kept_from_;    // the line that was not whole when the buffers were turned,
  std::int64_t kept_ = 0;    // and how many bytes of it were there
};

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
