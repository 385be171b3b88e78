// Values put where their indices point, and gradients taken from there. One loop reads an index, checks it and moves the element: the
// processor then has many of them under way at once, and memory is all that it waits for. Bits are moved, whatever the dtype.
#include "cpu/plain/unpool_kernel.hpp"

#include "cpu/check_indices.hpp"
#include "cpu/split.hpp"
#include "cpu/thresholds.hpp"
#include "geometry/index_math.hpp"

#include <hwy/cache_control.h>

#include <atomic>
#include <cstring>
#include <utility>

namespace cenote::simd {
namespace {

/// Made once per plan, read-only in run().
struct UnpoolPlan {
  Problem problem;
  Layout small, large;  // the pooled and the unpooled side
  bool forward;
  std::int64_t places;         // of the unpooled plane
  std::int64_t step;           // elements from one of them to the next
  bool columns_apart;          // channels-last: the stretches are the channels of each column, not rows
  bool joined = false;         // or all rows of a part, which follow each other
  std::int64_t columns, rows;  // of a pooled plane
  std::int64_t pieces = 1;     // of the rows of a backward, for threads to share
  std::int64_t chunk = 1;      // channels of a unit
  std::int64_t chunks;         // of a batch entry
  // Of a forward in columns: so many slices, or rows, of the pooled side are tried by themselves, as if no index led out of their windows. Then their places stay in a cache from when they are
  // zeroed.
  std::int64_t band = 0, bands = 0;
  std::int64_t places_each = 0;  // see Stretch

  std::int64_t units() const { return problem.batch * chunks * pieces; }
  /// The axis that is cut into bands.
  int band_axis() const { return problem.axis[0].output > 1 ? 0 : 1; }
};

/// Rows of the pooled side, and the places that they may point to.
struct UnpoolPart {
  std::int64_t n, c, channels;
  std::int64_t row, row_end;
  std::int64_t place, place_end;
};

/// A stretch of elements and of indices, each as far apart as the gaps say. The place of index k is `step` * k elements away, and `along` more for
/// each element of the stretch. Those from `first` on are places, so many.
struct Stretch {
  const void* indices;
  std::int64_t index_gap, gap, count, step, along;
  std::int64_t first;
  std::uint64_t places;
  std::int64_t
      places_each;  // that belong to each element of the stretch, as far as can be told; 0: nothing is asked for early
};

/// Elements of a stretch between two requests for the places that later ones most likely point to. (2x2 over 64 planes of 360 x 480, two threads: 2457 us without and 1155 so.)
constexpr std::int64_t kAskedElements = 512;

/// Asks for the places that elements from `first` on most likely point to.
template <class T>
void ask_for(const T* from, std::int64_t first, std::int64_t each) {
  const auto bytes = static_cast<std::uintptr_t>(each) * sizeof(T);
  // Numbers, for they may lie beyond the tensor.
  const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(from) + static_cast<std::uintptr_t>(first) * bytes;
  for (std::uintptr_t i = 0; i < kAskedElements * bytes; i += 64) hwy::Prefetch(reinterpret_cast<const char*>(at + i));
}

/// What is known about stretches when they are compiled: nothing, that they are rows whose elements, indices and places follow each other, or that they are columns of such elements and indices.
enum class Shape : std::uint8_t { any, rows, columns };

/// The gaps of a stretch, constants where they are known.
template <Shape kShape>
struct Gaps {
  explicit Gaps(const Stretch& s)
      : index(kShape == Shape::any ? s.index_gap : 1),
        element(kShape == Shape::any ? s.gap : 1),
        step(kShape == Shape::rows ? 1 : s.step),
        along(kShape == Shape::any       ? s.along
              : kShape == Shape::columns ? 1
                                         : 0) {}
  const std::int64_t index, element, step, along;
};

// Both end with the first index that is no place.
template <Shape kShape, class T, class Index>
bool put(const Stretch& stretch, const T* from, T* to) {
  const Gaps<kShape> gaps(stretch);
  const auto* indices = static_cast<const Index*>(stretch.indices);
  const std::int64_t first = stretch.first, count = stretch.count;
  const std::uint64_t places = stretch.places;
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t index = indices[i * gaps.index];
    if (static_cast<std::uint64_t>(index) - static_cast<std::uint64_t>(first) >= places) return false;
    to[index * gaps.step + i * gaps.along] = from[i * gaps.element];
  }
  return true;
}

template <Shape kShape, class T, class Index>
bool take(const Stretch& stretch, const T* from, T* to) {
  const Gaps<kShape> gaps(stretch);
  const auto* indices = static_cast<const Index*>(stretch.indices);
  const std::uint64_t places = stretch.places;
  for (std::int64_t begin = 0; begin < stretch.count; begin += kAskedElements) {
    const std::int64_t end = smaller(begin + kAskedElements, stretch.count);
    if (stretch.places_each > 0) ask_for(from, begin + kAskedElements, stretch.places_each);
#pragma GCC unroll 4
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t index = indices[i * gaps.index];
      if (static_cast<std::uint64_t>(index) >= places) return false;
      to[i * gaps.element] = from[index * gaps.step + i * gaps.along];
    }
  }
  return true;
}

/// Runs units of a plan, for elements of one size.
template <class T>
class Unpooling {
 public:
  Unpooling(const UnpoolPlan& plan, const RunArgs& args)
      : plan_(plan),
        indices_(static_cast<const char*>(args.saved_indices)),
        index_bytes_(static_cast<std::int64_t>(size_of(plan.problem.index_dtype))),
        from_(static_cast<const T*>(plan.forward ? args.input : args.grad_output)),
        to_(static_cast<T*>(plan.forward ? args.output : args.grad_input)) {}

  /// False when an index was wrong.
  bool run(std::int64_t unit) const {
    const std::int64_t piece = unit % plan_.pieces, group = unit / plan_.pieces;
    const std::int64_t c = group % plan_.chunks * plan_.chunk;
    return run({group / plan_.chunks, c, smaller(plan_.chunk, plan_.problem.channels - c),
                plan_.rows * piece / plan_.pieces, plan_.rows * (piece + 1) / plan_.pieces, 0, plan_.places});
  }

  /// False when an index led out of the band, right or wrong.
  bool run_band(std::int64_t unit) const {
    const Problem& p = plan_.problem;
    const int a = plan_.band_axis();
    const Axis& axis = p.axis[a];
    const std::int64_t first = unit % plan_.bands * plan_.band, end = smaller(first + plan_.band, axis.output);
    const std::int64_t rows = a == 0 ? p.axis[1].output : 1, places = plan_.places / axis.input;
    return run({unit / plan_.bands, 0, p.channels, first * rows, end * rows,
                first == 0 ? 0 : window(axis, first).first * places,
                end == axis.output ? plan_.places : window(axis, end).first * places});
  }

 private:
  bool run(const UnpoolPart& part) const {
    if (plan_.forward) zero(part);
    if (!plan_.columns_apart && plan_.joined)
      return run_stretch(part, part.row, 0, (part.row_end - part.row) * plan_.columns, 0);
    bool valid = true;
    for (std::int64_t row = part.row; row < part.row_end; ++row) {
      if (!plan_.columns_apart) {
        valid = run_stretch(part, row, 0, plan_.columns, 0) && valid;
        continue;
      }
      for (std::int64_t ow = 0; ow < plan_.columns; ++ow) valid = run_stretch(part, row, ow, part.channels, 1) && valid;
    }
    return valid;
  }

  void zero(const UnpoolPart& part) const {
    T* plane = to_ + part.n * plan_.large.n + part.c * plan_.large.c;
    if (plan_.step == part.channels) {
      std::memset(plane + part.place * plan_.step, 0,
                  static_cast<std::size_t>((part.place_end - part.place) * part.channels) * sizeof(T));
      return;
    }
    for (std::int64_t i = part.place; i < part.place_end; ++i)
      std::memset(plane + i * plan_.step, 0, static_cast<std::size_t>(part.channels) * sizeof(T));
  }

  /// From column `ow` of a row on. `along`: 1 for the channels of a column, 0 for the columns of a row.
  bool run_stretch(const UnpoolPart& part, std::int64_t row, std::int64_t ow, std::int64_t count,
                   std::int64_t along) const {
    const Problem& p = plan_.problem;
    const std::int64_t n = part.n, c = part.c, od = row / p.axis[1].output, oh = row % p.axis[1].output;
    auto offset = [&](const Layout& l) { return n * l.n + c * l.c + od * l.d + oh * l.h + ow * l.w; };
    auto gap = [&](const Layout& l) { return along > 0 ? l.c : l.w; };
    const std::int64_t small = offset(plan_.small), large = n * plan_.large.n + c * plan_.large.c;
    const std::int64_t at = offset(p.indices), index_gap = gap(p.indices);
    Stretch stretch{indices_ + at * index_bytes_,
                    index_gap,
                    gap(plan_.small),
                    count,
                    plan_.step,
                    along,
                    part.place,
                    static_cast<std::uint64_t>(part.place_end - part.place),
                    plan_.places_each};
    if (p.index_kind != IndexKind::window) {
      return p.index_dtype == DType::i64 ? move<std::int64_t>(stretch, small, large)
                                         : move<std::int32_t>(stretch, small, large);
    }
    constexpr std::int64_t kLocated = 256;
    std::int64_t located[kLocated];
    stretch.indices = located;
    stretch.index_gap = 1;
    OutputWindows windows{{window(p.axis[0], od), window(p.axis[1], oh), {}}};
    bool valid = true;
    for (std::int64_t first = 0; first < count; first += kLocated) {
      stretch.count = smaller(kLocated, count - first);
      for (std::int64_t i = 0; i < stretch.count; ++i) {
        windows.axis[2] = window(p.axis[2], along > 0 ? ow : first + i);
        located[i] = flat_of_tap(p, windows, read_index(indices_, p.index_dtype, at + (first + i) * index_gap));
      }
      valid = move<std::int64_t>(stretch, small + first * stretch.gap, large + first * along) && valid;
    }
    return valid;
  }

  template <class Index>
  bool move(const Stretch& stretch, std::int64_t small, std::int64_t large) const {
    const bool next = stretch.index_gap == 1 && stretch.gap == 1;
    if (next && stretch.along == 0 && stretch.step == 1) return move<Shape::rows, Index>(stretch, small, large);
    if (next && stretch.along == 1) return move<Shape::columns, Index>(stretch, small, large);
    return move<Shape::any, Index>(stretch, small, large);
  }

  template <Shape kShape, class Index>
  bool move(const Stretch& stretch, std::int64_t small, std::int64_t large) const {
    return plan_.forward ? put<kShape, T, Index>(stretch, from_ + small, to_ + large)
                         : take<kShape, T, Index>(stretch, from_ + large, to_ + small);
  }

  const UnpoolPlan& plan_;
  const char* indices_;
  std::int64_t index_bytes_;
  const T* from_;
  T* to_;
};

class UnpoolKernel final : public Kernel {
 public:
  UnpoolKernel(UnpoolPlan plan, std::int64_t bytes) : plan_(std::move(plan)), bytes_(bytes) {}

  Status run(const RunArgs& args) const noexcept override {
    switch (size_of(plan_.problem.dtype)) {
      case 1: return run_as<std::uint8_t>(args);
      case 2: return run_as<std::uint16_t>(args);
      case 4: return run_as<std::uint32_t>(args);
      default: return run_as<std::uint64_t>(args);
    }
  }

 private:
  template <class T>
  Status run_as(const RunArgs& args) const noexcept {
    const Unpooling<T> unpooling(plan_, args);
    const std::int64_t bands = plan_.problem.batch * plan_.bands;
    if (bands > 0 && run_all(args, bands, [&](std::int64_t band) { return unpooling.run_band(band); })) return {};
    if (run_all(args, plan_.units(), [&](std::int64_t unit) { return unpooling.run(unit); })) return {};
    return find_invalid_index(plan_.problem, args.saved_indices);
  }

  /// Whether all of them were right.
  template <class Run>
  bool run_all(const RunArgs& args, std::int64_t count, const Run& run_one) const noexcept {
    std::atomic<bool> valid{true};
    split(args.executor, count, bytes_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        if (!run_one(i)) valid.store(false, std::memory_order_relaxed);
      }
    });
    return valid;
  }

  UnpoolPlan plan_;
  std::int64_t bytes_;
};

/// The step from each position of a plane to the next; 0 where there is none.
std::int64_t step_of(const Problem& p, const Layout& l) {
  const std::int64_t strides[3] = {l.d, l.h, l.w};
  std::int64_t step = 0, positions = 1;
  for (int a = 2; a >= 0; --a) {
    if (p.axis[a].input == 1) continue;
    if (step == 0) step = strides[a];
    if (strides[a] != step * positions) return 0;
    positions *= p.axis[a].input;
  }
  return positions == 1 ? 1 : step;
}

/// Whether stretches of outputs along this axis have the places of stretches of the plane, one behind the other: windows that share nothing and begin inside.
bool has_bands(const Problem& p, int a) {
  const Axis& axis = p.axis[a];
  return (a == 0 || p.axis[0].input == 1) && axis.output > 1 && axis.kernel <= axis.stride && axis.dilation == 1 &&
         axis.pad_begin < axis.kernel && (axis.output - 1) * axis.stride - axis.pad_begin < axis.input;
}

}  // namespace

std::unique_ptr<Kernel> make_unpool_kernel(const Described& described) {
  const Problem& p = described.problem;
  if (p.op != Op::max_unpool) return nullptr;
  UnpoolPlan plan;
  plan.problem = p;
  plan.forward = p.pass == Pass::forward;
  plan.large = plan.forward ? p.output : p.grad_output;
  plan.small = plan.forward ? p.input : p.grad_input;
  plan.places = plane_size(p);
  plan.step = step_of(p, plan.large);
  if (plan.step == 0) return nullptr;
  const Axis &depth = p.axis[0], &height = p.axis[1], &width = p.axis[2];

  plan.rows = depth.output * height.output;
  plan.columns = width.output;
  const auto size = static_cast<std::int64_t>(size_of(p.dtype));
  plan.columns_apart = is_channels_last(p, plan.large);
  if (plan.columns_apart) plan.chunk = p.channels;
  if (plan.columns_apart && plan.forward) {  // no two threads put values in one plane, where the order decides
    while (plan.chunk >= 2 * kLeastChunk && p.batch * ceil_div(p.channels, plan.chunk) < kFewestUnits)
      plan.chunk = ceil_div(plan.chunk / 2, kLeastChunk) * kLeastChunk;
  }
  plan.chunks = ceil_div(p.channels, plan.chunk);
  if (!plan.forward) plan.pieces = smaller(plan.rows, ceil_div(kFewestUnits, p.batch * plan.chunks));
  const std::int64_t wide = plan.places * p.channels * size;
  if (plan.forward && plan.columns_apart && wide > kUnpooledBytes && plan.step == p.channels &&
      has_bands(p, plan.band_axis())) {
    const std::int64_t outputs = p.axis[plan.band_axis()].output;
    plan.band = larger(1, outputs / ceil_div(wide, kUnpooledBytes));
    plan.bands = ceil_div(outputs, plan.band);
  }
  auto follow = [&](const Layout& l) {
    return (height.output == 1 || l.h == width.output * l.w) &&
           (depth.output == 1 || l.d == height.output * width.output * l.w);
  };
  if (!plan.columns_apart && follow(plan.small) && follow(p.indices) && p.index_kind != IndexKind::window) {
    plan.joined = true;
    // Of windows that share next to nothing, every line of the plane has elements that are asked for.
    const std::int64_t each = plan.places / (plan.rows * plan.columns);
    if (plan.step == 1 && plan.pieces == 1 && described.bytes_moved >= kStreamBytes && each * size * 2 <= 64)
      plan.places_each = each;
  }
  auto kernel = std::make_unique<UnpoolKernel>(std::move(plan), described.bytes_moved);
  kernel->explain = p.pass == Pass::forward ? "zeros, then each value where its index points"
                                            : "each gradient from where its index points";
  return kernel;
}

}  // namespace cenote::simd
