// Results around the caches, in whole lines whatever the length of their rows.
#if defined(CENOTE_CPU_VECTORS_STREAM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_VECTORS_STREAM_INL_H_
#undef CENOTE_CPU_VECTORS_STREAM_INL_H_
#else
#define CENOTE_CPU_VECTORS_STREAM_INL_H_
#endif

#include <hwy/cache_control.h>

#include "cpu/rows/rows.hpp"
#include "cpu/vectors/convert-inl.h"
#include "cpu/vectors/paced.hpp"
#include "cpu/vectors/unroll.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

/// Whether columns that go around the caches need not be put together before.
inline bool StreamsWholeLines(const RowPlan& plan, const void* to) {
  return plan.streams && plan.whole_lines && to != nullptr && reinterpret_cast<std::uintptr_t>(to) % 64 == 0;
}

/// A line around the caches. `to` is where one begins.
HWY_INLINE void StreamLine(const char* from, char* to) {
  const hn::ScalableTag<std::uint8_t> d;
  CENOTE_UNROLL
  for (std::size_t part = 0; part < kLine; part += hn::Lanes(d)) {
    hn::Stream(hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(from) + part), d,
               reinterpret_cast<std::uint8_t*>(to) + part);
  }
}

/// Rows that follow each other in memory share a line where one ends and the next begins. It is kept until it is whole: a line written
/// in two parts costs a read and a write through the caches more.
class StreamWriter {
 public:
  StreamWriter() = default;
  StreamWriter(const StreamWriter&) = delete;
  StreamWriter& operator=(const StreamWriter&) = delete;
  HWY_NOINLINE ~StreamWriter() {
    if (next_ == nullptr) return;
    WriteKept();
    hwy::FlushStream();
  }

  /// count values of C, rounded to T.
  template <class T, class C>
  void Write(const C* values, T* to, std::int64_t count) {
    if constexpr (std::is_same_v<T, C>) {
      WriteBytes(reinterpret_cast<const char*>(values), reinterpret_cast<char*>(to),
                 static_cast<std::size_t>(count) * sizeof(T));
    } else {
      constexpr std::int64_t kPiece = 512;
      HWY_ALIGN T piece[kPiece];
      for (std::int64_t i = 0; i < count; i += kPiece) {
        const std::int64_t n = count - i < kPiece ? count - i : kPiece;
        StoreAs(values + i, piece, n);
        WriteBytes(reinterpret_cast<const char*>(piece), reinterpret_cast<char*>(to + i),
                   static_cast<std::size_t>(n) * sizeof(T));
      }
    }
  }

 private:
  HWY_NOINLINE void WriteBytes(const char* from, char* to, std::size_t bytes) {
    if (to != next_) {
      WriteKept();
      next_ = to;
      kept_first_ = Place();
    }
    if (const std::size_t place = Place(); place != 0) {  // in the midst of a line
      const std::size_t taken = std::min(kLine - place, bytes);
      std::memcpy(kept_ + place, from, taken);
      next_ += taken;
      if (place + taken < kLine) return;
      if (kept_first_ == 0) {
        StreamLine(kept_, next_ - kLine);
      } else {
        std::memcpy(next_ - (kLine - kept_first_), kept_ + kept_first_, kLine - kept_first_);
      }
      kept_first_ = 0;
      from += taken;
      bytes -= taken;
    }
    for (; bytes >= kLine; from += kLine, bytes -= kLine, next_ += kLine) StreamLine(from, next_);
    std::memcpy(kept_, from, bytes);
    next_ += bytes;
  }

  /// The line that is not whole, as far as it goes.
  void WriteKept() {
    const std::size_t place = Place();
    if (place > kept_first_) std::memcpy(next_ - (place - kept_first_), kept_ + kept_first_, place - kept_first_);
  }

  std::size_t Place() const { return reinterpret_cast<std::uintptr_t>(next_) % kLine; }

  char* next_ = nullptr;        // where the next byte belongs
  std::size_t kept_first_ = 0;  // bytes of its line that are not ours
  HWY_ALIGN char kept_[kLine];
};

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
