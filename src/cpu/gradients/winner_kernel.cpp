// Planes of zeros, each with the gradient of its one output where the index says. Bits are moved, whatever the dtype; what goes around the caches is written line by line, the
// winners' lines with them in it.
#include "cpu/gradients/winner_kernel.hpp"

#include "cpu/check_indices.hpp"
#include "cpu/dense_planes.hpp"
#include "cpu/split.hpp"
#include "cpu/thresholds.hpp"
#include "cpu/vectors/paced.hpp"

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace cenote::simd {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Made once per plan, read-only in run().
struct WinnerPlan {
  std::int64_t planes, count;  // and elements of each
  std::int64_t source_pitch, target_pitch, index_pitch;
  DType index_dtype;
  std::int64_t size;  // of an element, in bytes
  bool floating;
  bool streams;
  std::int64_t group;  // planes that are filled before their winners are put in
};

/// Zeros around the caches, but for what is put in, from the front to the back.
class StreamedZeros {
 public:
  StreamedZeros(char* begin, char* end) : next_(begin), end_(end) {}

  /// `to`: behind all before, and not across a line.
  void Put(const void* value, std::size_t size, char* to) {
    char* line = to - reinterpret_cast<std::uintptr_t>(to) % kLine;
    if (line != line_) {
      Write();
      ZeroTo(std::max(line, next_));
      line_ = line;
      std::memset(kept_, 0, sizeof(kept_));
    }
    std::memcpy(kept_ + (to - line), value, size);
  }

  void Finish() {
    Write();
    ZeroTo(end_);
    hwy::FlushStream();
  }

 private:
  /// The line that values were put in, as far as it is ours.
  void Write() {
    if (line_ == nullptr) return;
    char* stop = std::min(line_ + kLine, end_);
    if (next_ == line_ && stop == line_ + kLine) {
      StreamLine(kept_, line_);
    } else {
      std::memcpy(next_, kept_ + (next_ - line_), static_cast<std::size_t>(stop - next_));
    }
    next_ = stop;
    line_ = nullptr;
  }

  void ZeroTo(char* stop) {
    const auto before = static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(next_) % kLine);
    const std::int64_t first = std::min<std::int64_t>(before, stop - next_);
    std::memset(next_, 0, static_cast<std::size_t>(first));
    next_ += first;
    alignas(64) static constexpr char kZeros[kLine] = {};
    for (; stop - next_ >= kLine; next_ += kLine) StreamLine(kZeros, next_);
    std::memset(next_, 0, static_cast<std::size_t>(stop - next_));
    next_ = stop;
  }

  static void StreamLine(const char* from, char* to) {
    const hn::CappedTag<std::uint8_t, 16> d;
    for (std::size_t part = 0; part < kLine; part += hn::Lanes(d)) {
      hn::Stream(hn::Load(d, reinterpret_cast<const std::uint8_t*>(from) + part), d,
                 reinterpret_cast<std::uint8_t*>(to) + part);
    }
  }

  char *next_, *end_;     // what is still to be written
  char* line_ = nullptr;  // of what is kept
  alignas(64) char kept_[kLine];
};

/// Looked at together: which of their types it is is asked once.
constexpr std::int64_t kIndicesAtOnce = 128;

template <class Index>
void read_indices(const void* indices, std::int64_t at, std::int64_t pitch, std::int64_t count, std::int64_t* to) {
  const Index* from = static_cast<const Index*>(indices) + at;
  constexpr Index none = static_cast<Index>(-1);
  for (std::int64_t i = 0; i < count; ++i) {
    const Index index = from[i * pitch];
    to[i] = index == none ? -1 : static_cast<std::int64_t>(index);
  }
}

/// `count` of them, from element `at` on; "none" is -1.
void read_indices(const void* indices, DType dtype, std::int64_t at, std::int64_t pitch, std::int64_t count,
                  std::int64_t* to) {
  switch (dtype) {
    case DType::i64: return read_indices<std::int64_t>(indices, at, pitch, count, to);
    case DType::i32: return read_indices<std::int32_t>(indices, at, pitch, count, to);
    case DType::u8: return read_indices<std::uint8_t>(indices, at, pitch, count, to);
    case DType::u16: return read_indices<std::uint16_t>(indices, at, pitch, count, to);
    default: return read_indices<std::uint32_t>(indices, at, pitch, count, to);
  }
}

/// Planes [begin, end). False if an index is no element of its plane. Bits: an unsigned integer of the element's size.
template <class Bits>
bool put_winners(const WinnerPlan& plan, const RunArgs& args, std::int64_t begin, std::int64_t end) {
  const auto* source = static_cast<const Bits*>(args.grad_output);
  auto* target = static_cast<Bits*>(args.grad_input);
  bool valid = true;
  const Bits negative_zero = plan.floating ? static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1)) : Bits{0};
  // Calls put(value, where it belongs) for each winner of these planes.
  auto for_winners = [&](std::int64_t first, std::int64_t last, const auto& put) {
    std::int64_t indices[kIndicesAtOnce];
    for (; first < last; first += kIndicesAtOnce) {
      const std::int64_t count = smaller(last - first, kIndicesAtOnce);
      read_indices(args.saved_indices, plan.index_dtype, first * plan.index_pitch, plan.index_pitch, count, indices);
      for (std::int64_t i = 0; i < count; ++i) {
        if (static_cast<std::uint64_t>(indices[i]) >= static_cast<std::uint64_t>(plan.count)) {
          valid = valid && indices[i] == -1;
          continue;
        }
        const std::int64_t plane = first + i;
        const Bits value = source[plane * plan.source_pitch];
        put(value == negative_zero ? Bits{0} : value,
            target + plane * plan.target_pitch + indices[i]);  // a sum is no -0
      }
    }
  };
  const bool follow = plan.target_pitch == plan.count;
  if (plan.streams && follow && reinterpret_cast<std::uintptr_t>(target) % sizeof(Bits) == 0) {
    StreamedZeros zeros(reinterpret_cast<char*>(target + begin * plan.count),
                        reinterpret_cast<char*>(target + end * plan.count));
    for_winners(begin, end,
                [&](Bits value, Bits* to) { zeros.Put(&value, sizeof(Bits), reinterpret_cast<char*>(to)); });
    zeros.Finish();
    return valid;
  }
  const std::int64_t together = follow ? plan.group : 1;
  for (std::int64_t plane = begin; plane < end; plane += together) {
    const std::int64_t last = smaller(plane + together, end);
    std::memset(target + plane * plan.target_pitch, 0,
                static_cast<std::size_t>((last - plane) * plan.count) * sizeof(Bits));
    for_winners(plane, last, [](Bits value, Bits* to) { *to = value; });
  }
  return valid;
}

class WinnerKernel final : public Kernel {
 public:
  WinnerKernel(const Described& described, const WinnerPlan& plan)
      : problem_(described.problem), plan_(plan), bytes_(described.bytes_moved) {
    explain = "planes of zeros, each with its gradient where the index points, because windows are whole planes";
  }

  Status run(const RunArgs& args) const noexcept override {
    std::atomic<bool> valid{true};
    const auto put = plan_.size == 1   ? put_winners<std::uint8_t>
                     : plan_.size == 2 ? put_winners<std::uint16_t>
                     : plan_.size == 4 ? put_winners<std::uint32_t>
                                       : put_winners<std::uint64_t>;
    split(args.executor, plan_.planes, bytes_, [&](std::int64_t begin, std::int64_t end) {
      if (!put(plan_, args, begin, end)) valid.store(false, std::memory_order_relaxed);
    });
    return valid ? Status{} : find_invalid_index(problem_, args.saved_indices);
  }

 private:
  Problem problem_;
  WinnerPlan plan_;
  std::int64_t bytes_;
};

}  // namespace

std::unique_ptr<Kernel> make_winner_kernel(const Described& described) {
  const Problem& p = described.problem;
  if (p.pass != Pass::backward || !p.with_indices || p.absolute || p.op == Op::fractional_max_pool ||
      p.op == Op::max_unpool)
    return nullptr;
  for (const Axis& axis : p.axis) {
    if (!is_whole(simplified(axis))) return nullptr;  // an index is then a place in the plane, whatever its kind
  }
  const DensePlanes source = dense_planes(p, p.grad_output, false), indices = dense_planes(p, p.indices, false);
  const DensePlanes target = dense_planes(p, p.grad_input, true);
  if (!source.dense || !indices.dense || !target.dense || target.count < kLeastWinner) return nullptr;
  WinnerPlan plan{};
  plan.planes = p.batch * p.channels;
  plan.count = target.count;
  plan.source_pitch = source.pitch;
  plan.target_pitch = target.pitch;
  plan.index_pitch = indices.pitch;
  plan.index_dtype = p.index_dtype;
  plan.size = static_cast<std::int64_t>(size_of(p.dtype));
  plan.floating = is_floating(p.dtype);
  plan.streams = described.bytes_moved >= kStreamIndexBytes;
  plan.group = larger(1, kApartBytes / (plan.count * plan.size));
  if (plan.planes < kFewestUnits && described.bytes_moved >= kSerialBytes) return nullptr;
  return std::make_unique<WinnerKernel>(described, plan);
}

}  // namespace cenote::simd
