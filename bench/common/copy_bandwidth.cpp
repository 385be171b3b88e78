#include "copy_bandwidth.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace cenote::bench {

namespace {

constexpr std::size_t kBytes = std::size_t{256} << 20;
constexpr std::size_t kPiece = std::size_t{128} << 10;  // small enough that memcpy keeps to ordinary stores
constexpr int kRepetitions = 5;

using Copy = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);

void copy_whole(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

void copy_in_pieces(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kPiece) std::memcpy(to + at, from + at, std::min(kPiece, bytes - at));
}

#if defined(__SSE2__)
void copy_streaming(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += 64) {
    const auto* source = reinterpret_cast<const __m128i*>(from + at);
    auto* target = reinterpret_cast<__m128i*>(to + at);
    const __m128i a = _mm_load_si128(source), b = _mm_load_si128(source + 1);
    const __m128i c = _mm_load_si128(source + 2), d = _mm_load_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  _mm_sfence();
}
constexpr Copy kWays[] = {copy_whole, copy_in_pieces, copy_streaming};
#else
constexpr Copy kWays[] = {copy_whole, copy_in_pieces};
#endif

struct Job {
  Copy copy;
  std::byte* to;
  const std::byte* from;
  std::size_t share;

  static void run(void* context, std::int64_t i) noexcept {
    const Job& job = *static_cast<const Job*>(context);
    const std::size_t begin = static_cast<std::size_t>(i) * job.share;
    if (begin < kBytes) job.copy(job.to + begin, job.from + begin, std::min(job.share, kBytes - begin));
  }
};

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const std::size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle), values.end());
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle] + *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle))) / 2;
}

CopyBandwidth::CopyBandwidth(const Executor& executor) : executor_(executor), from_(kBytes), to_(kBytes) {
  std::memset(from_.data(), 1, kBytes);
  std::memset(to_.data(), 2, kBytes);
}

void CopyBandwidth::measure() {
  using Clock = std::chrono::steady_clock;
  const auto threads = static_cast<std::size_t>(std::max(1, executor_.concurrency()));
  const std::size_t share = (kBytes / threads + 63) / 64 * 64;
  double best = 0;
  for (const Copy copy : kWays) {
    Job job{copy, to_.data(), from_.data(), share};
    std::vector<double> speeds;
    for (int i = 0; i <= kRepetitions; ++i) {
      const auto start = Clock::now();
      executor_.parallel_for(static_cast<std::int64_t>((kBytes + share - 1) / share), Job::run, &job);
      const std::chrono::duration<double, std::nano> taken = Clock::now() - start;
      if (i > 0) speeds.push_back(2.0 * static_cast<double>(kBytes) / taken.count());  // the first run only warms up
    }
    best = std::max(best, median(std::move(speeds)));
  }
  measured_.push_back(best);
}

double CopyBandwidth::gigabytes_per_second() const { return median(measured_); }

}  // namespace cenote::bench
