#include "data.hpp"

#include "expected.hpp"

#include <cenote/executor.hpp>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

namespace cenote::bench {

Buffer::Buffer(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
  if (!data_) throw std::bad_alloc();
}

void Buffer::Free::operator()(std::byte* p) const { std::free(p); }

namespace {

std::size_t bytes(std::int64_t count, std::size_t element) { return static_cast<std::size_t>(count) * element; }

bool wants(const Case& pool, RowPass pass) {
  for (const RowPass p : pool.passes) {
    if (p == pass) return true;
  }
  return false;
}

/// A permutation of planes: element (plane, position) of planar memory to (position, channel) within its batch entry.
/// Both ways are one transposition per batch entry, done in tiles that fit the cache.
template <class T>
void to_channels_last(const T* planar, T* interleaved, std::int64_t batch, std::int64_t channels,
                      std::int64_t positions) {
  constexpr std::int64_t kTile = 32;
  for (std::int64_t n = 0; n < batch; ++n, planar += channels * positions, interleaved += channels * positions) {
    for (std::int64_t p0 = 0; p0 < positions; p0 += kTile) {
      for (std::int64_t c0 = 0; c0 < channels; c0 += kTile) {
        const std::int64_t p1 = std::min(p0 + kTile, positions), c1 = std::min(c0 + kTile, channels);
        for (std::int64_t p = p0; p < p1; ++p) {
          for (std::int64_t c = c0; c < c1; ++c) interleaved[p * channels + c] = planar[c * positions + p];
        }
      }
    }
  }
}

Buffer interleaved(const Buffer& planar, std::size_t element, const Geometry& g, const Geometry::PerAxis& size) {
  Buffer result(planar.size());
  if (planar.size() == 0) return result;
  const std::int64_t positions = Geometry::volume(size);
  switch (element) {
    case 1:
      to_channels_last(planar.as<std::uint8_t>(), result.as<std::uint8_t>(), g.batch, g.channels, positions);
      break;
    case 2:
      to_channels_last(planar.as<std::uint16_t>(), result.as<std::uint16_t>(), g.batch, g.channels, positions);
      break;
    case 4:
      to_channels_last(planar.as<std::uint32_t>(), result.as<std::uint32_t>(), g.batch, g.channels, positions);
      break;
    default:
      to_channels_last(planar.as<std::uint64_t>(), result.as<std::uint64_t>(), g.batch, g.channels, positions);
      break;
  }
  return result;
}

template <class T>
std::string compare(const void* got_bytes, const void* want_bytes, std::int64_t count, double tolerance,
                    const char* what) {
  const T* got = static_cast<const T*>(got_bytes);
  const T* want = static_cast<const T*>(want_bytes);
  for (std::int64_t i = 0; i < count; ++i) {
    const double a = to_double(got[i]), b = to_double(want[i]);
    const bool both_nan = std::isnan(a) && std::isnan(b);  // odd norms of negative sums
    if (a == b || both_nan || std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b))) continue;
    return std::string(what) + '[' + std::to_string(i) + "] is " + std::to_string(a) + ", must be " + std::to_string(b);
  }
  return {};
}

}  // namespace

CaseData make_case_data(const Case& pool, DType dtype, const Executor& executor) {
  const Geometry& g = pool.geometry;
  const std::size_t element = size_of(dtype);
  const bool unpool = pool.spec.op == Op::max_unpool;
  CaseData data;
  data.input = Buffer(bytes(g.input_count(), element));
  fill_random(data.input.data(), dtype, g.input_count(), 1);
  if (unpool) {
    data.saved_indices = Buffer(bytes(g.input_count(), 8));
    fill_unpool_indices(g, data.saved_indices.as<std::int64_t>());
  }
  const bool backward = wants(pool, RowPass::backward);
  const bool saves_indices = uses_saved_indices({&pool, dtype, MemoryFormat::contiguous, RowPass::backward}) && !unpool;
  data.output = Buffer(bytes(g.output_count(), element));
  if (saves_indices || wants(pool, RowPass::forward_indices)) data.indices = Buffer(bytes(g.output_count(), 8));
  if (backward) {
    data.grad_output = Buffer(bytes(g.output_count(), element));
    data.grad_input = Buffer(bytes(g.input_count(), element));
    fill_random(data.grad_output.data(), dtype, g.output_count(), 2);
  }
  compute_expected(pool, dtype, executor, data);
  return data;
}

RowData::RowData(const CaseData& data, const Case& pool, DType dtype, MemoryFormat layout)
    : data_(data),
      output_(data.output.size()),
      indices_(data.indices.size()),
      grad_input_(data.grad_input.size()),
      planar_(layout == MemoryFormat::contiguous) {
  if (planar_) return;
  const Geometry& g = pool.geometry;
  const std::size_t element = size_of(dtype);
  input_ = interleaved(data.input, element, g, g.input);
  expected_output_ = interleaved(data.output, element, g, g.output);
  expected_indices_ = interleaved(data.indices, 8, g, g.output);
  saved_indices_ = interleaved(data.saved_indices, 8, g, g.input);  // max_unpool's; a pool's are the expected ones
  grad_output_ = interleaved(data.grad_output, element, g, g.output);
  expected_grad_input_ = interleaved(data.grad_input, element, g, g.input);
}

Workload RowData::workload(const Row& row, int threads) const {
  Workload w{.row = row, .threads = threads};
  w.input = (planar_ ? data_.input : input_).data();
  w.output = output_.data();
  if (row.pass == RowPass::forward_indices) w.indices = indices_.as<std::int64_t>();
  if (uses_saved_indices(row)) {
    const bool unpool = row.pool->spec.op == Op::max_unpool;
    w.saved_indices =
        (unpool ? (planar_ ? data_.saved_indices : saved_indices_) : (planar_ ? data_.indices : expected_indices_))
            .as<std::int64_t>();
  }
  if (row.pass == RowPass::backward) {
    w.grad_output = (planar_ ? data_.grad_output : grad_output_).data();
    w.grad_input = grad_input_.data();
  }
  return w;
}

void RowData::spoil(const Row& row) const {
  constexpr int kGarbage = 0x7b;  // large in every floating-point format, and no index of any plane
  if (row.pass == RowPass::backward) {
    std::memset(grad_input_.data(), kGarbage, grad_input_.size());
    return;
  }
  std::memset(output_.data(), kGarbage, output_.size());
  if (row.pass == RowPass::forward_indices) std::memset(indices_.data(), kGarbage, indices_.size());
}

std::string RowData::difference(const Row& row) const {
  const Geometry& g = row.pool->geometry;
  return with_type(row.dtype, [&]<class T>(T) -> std::string {
    if (row.pass == RowPass::backward) {
      return compare<T>(grad_input_.data(), (planar_ ? data_.grad_input : expected_grad_input_).data(), g.input_count(),
                        data_.grad_tolerance, "grad_input");
    }
    std::string found = compare<T>(output_.data(), (planar_ ? data_.output : expected_output_).data(), g.output_count(),
                                   data_.output_tolerance, "output");
    if (!found.empty() || row.pass != RowPass::forward_indices) return found;
    return compare<std::int64_t>(indices_.data(), (planar_ ? data_.indices : expected_indices_).data(),
                                 g.output_count(), 0, "indices");
  });
}

}  // namespace cenote::bench
