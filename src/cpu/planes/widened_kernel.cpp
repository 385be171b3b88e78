#include "cpu/planes/widened_kernel.hpp"

#include "cpu/check_indices.hpp"
#include "cpu/dense_planes.hpp"
#include "cpu/scratch.hpp"
#include "cpu/split.hpp"
#include "cpu/thresholds.hpp"
#include "cpu/vectors/widen.hpp"

#include <cenote/executor.hpp>

#include <atomic>
#include <utility>

namespace cenote::simd {
namespace {

/// A tensor of planes, and where some of them are f32.
struct WidenedPlanes : DensePlanes {
  std::size_t at = 0;  // bytes from the start of a slot
};

/// What is read and what is written.
struct WidenedTensors {
  WidenedPlanes read, written, input;  // the last: the backward of norms
  bool reads_input = false;
  std::int64_t index_pitch = 0;  // bytes from the indices of a plane to those of the next
  std::size_t bytes = 0;
};

class WidenedKernel final : public Kernel {
 public:
  /// `rest`: of the last planes, where they are fewer.
  WidenedKernel(const Described& described, const WidenedTensors& tensors, const Widening& widening, std::int64_t group,
                std::unique_ptr<Kernel> kernel, std::unique_ptr<Kernel> rest)
      : problem_(described.problem),
        tensors_(tensors),
        widening_(widening),
        size_(static_cast<std::int64_t>(size_of(problem_.dtype))),
        planes_(problem_.batch * problem_.channels),
        group_(group),
        bytes_(described.bytes_moved),
        kernel_(std::move(kernel)),
        rest_(std::move(rest)),
        scratch_(slot_count(), tensors.bytes) {
    explain = std::to_string(group_) + (group_ == 1 ? " plane" : " planes") + " at a time, as f32: " + kernel_->explain;
  }

  Status run(const RunArgs& args) const noexcept override {
    std::atomic<bool> valid{true};
    split(args.executor, ceil_div(planes_, group_), bytes_, [&](std::int64_t begin, std::int64_t end) {
      const ScratchPool::Lease lease(scratch_);
      for (std::int64_t group = begin; group < end; ++group) {
        if (!run_group(args, group * group_, lease.data())) valid.store(false, std::memory_order_relaxed);
      }
    });
    return valid ? Status{} : find_invalid_index(problem_, args.saved_indices);
  }

 private:
  bool run_group(const RunArgs& args, std::int64_t first, char* scratch) const {
    const std::int64_t planes = smaller(group_, planes_ - first);
    const bool forward = problem_.pass == Pass::forward;
    RunArgs wide;
    wide.executor = &serial_executor();
    const float* read = widen(tensors_.read, forward ? args.input : args.grad_output, first, planes, scratch);
    auto* written = reinterpret_cast<float*>(scratch + tensors_.written.at);
    if (forward) {
      wide.input = read;
      wide.output = written;
      if (args.indices != nullptr) wide.indices = static_cast<char*>(args.indices) + first * tensors_.index_pitch;
    } else {
      wide.grad_output = read;
      wide.grad_input = written;
      if (args.saved_indices != nullptr)
        wide.saved_indices = static_cast<const char*>(args.saved_indices) + first * tensors_.index_pitch;
      if (tensors_.reads_input) wide.input = widen(tensors_.input, args.input, first, planes, scratch);
    }
    const Status status = (planes == group_ ? kernel_ : rest_)->run(wide);
    narrow(tensors_.written, written, forward ? args.output : args.grad_input, first, planes);
    return status.ok();
  }

  const float* widen(const WidenedPlanes& t, const void* from, std::int64_t first, std::int64_t planes,
                     char* scratch) const {
    auto* to = reinterpret_cast<float*>(scratch + t.at);
    for_runs(t, planes, [&](std::int64_t plane, std::int64_t count) {
      widening_.widen(static_cast<const char*>(from) + (first + plane) * t.pitch * size_, to + plane * t.count, count);
    });
    return to;
  }

  void narrow(const WidenedPlanes& t, const float* from, void* to, std::int64_t first, std::int64_t planes) const {
    for_runs(t, planes, [&](std::int64_t plane, std::int64_t count) {
      widening_.narrow(from + plane * t.count, static_cast<char*>(to) + (first + plane) * t.pitch * size_, count);
    });
  }

  /// Calls body(plane, elements) for planes that follow each other in one go.
  template <class Body>
  static void for_runs(const WidenedPlanes& t, std::int64_t planes, const Body& body) {
    if (t.pitch == t.count) return body(0, planes * t.count);
    for (std::int64_t plane = 0; plane < planes; ++plane) body(plane, t.count);
  }

  Problem problem_;
  WidenedTensors tensors_;
  Widening widening_;
  std::int64_t size_, planes_, group_, bytes_;
  std::unique_ptr<Kernel> kernel_, rest_;
  ScratchPool scratch_;
};

/// The same pool of `planes` planes of f32 that follow each other.
Described widened(const Described& described, std::int64_t planes) {
  Described result = described;
  Problem& p = result.problem;
  p.dtype = DType::f32;
  p.batch = 1;
  p.channels = planes;
  const auto layout = [&](bool large) {
    const auto extent = [&](int a) { return large ? p.axis[a].input : p.axis[a].output; };
    const std::int64_t row = extent(2), slice = row * extent(1), plane = slice * extent(0);
    return Layout{planes * plane, plane, slice, row, 1};
  };
  p.input = p.grad_input = layout(true);
  p.output = p.grad_output = layout(false);
  if (p.with_indices) p.indices = layout(false);
  for (TensorDesc* desc : {&result.input, &result.output, &result.grad_output, &result.grad_input})
    desc->dtype = DType::f32;
  const std::int64_t all = described.problem.batch * described.problem.channels;
  result.bytes_moved = described.bytes_moved / all * planes * static_cast<std::int64_t>(sizeof(float)) /
                       static_cast<std::int64_t>(size_of(described.problem.dtype));
  return result;
}

/// Whether a pool of bytes is one of floats whose results are rounded toward zero: sums are whole numbers that floats hold, and are divided once.
bool is_exact(const Problem& p) {
  constexpr std::int64_t kExact = std::int64_t{1} << 24, kMostByte = 255;
  std::int64_t taps = 1;
  for (const Axis& axis : p.axis) {
    if (axis.kernel >= kExact / kMostByte / taps) return false;
    taps *= axis.kernel;
  }
  return p.pass == Pass::forward;
}

}  // namespace

std::unique_ptr<Kernel> make_widened_kernel(const Described& described, const Target& target, const RowWork* rows,
                                            MakeKernelFn make_wide) {
  const Problem& p = described.problem;
  // Long rows are folded as fast as halves.
  const bool in_order =
      rows != nullptr && rows->plan().columns != Columns::gathered && rows->plan().columns != Columns::spanned;
  if (in_order && p.axis[2].input >= kLongWidened) return nullptr;
  const Widening widening = simd::widening(target.index, p.dtype);
  if (widening.widen == nullptr || p.op == Op::max_unpool || p.op == Op::fractional_max_pool) return nullptr;
  const bool forward = p.pass == Pass::forward;
  if (!is_floating(p.dtype) && !is_exact(p)) return nullptr;
  WidenedTensors tensors;
  tensors.read = {dense_planes(p, forward ? p.input : p.grad_output, forward)};
  tensors.written = {dense_planes(p, forward ? p.output : p.grad_input, !forward)};
  tensors.reads_input = !forward && (p.reduction == Reduction::power || p.absolute);
  if (tensors.reads_input) tensors.input = {dense_planes(p, p.input, true)};
  if (!tensors.read.dense || !tensors.written.dense || (tensors.reads_input && !tensors.input.dense)) return nullptr;
  if (p.with_indices) {
    const DensePlanes indices = dense_planes(p, p.indices, false);
    if (!indices.dense || indices.pitch != indices.count) return nullptr;
    tensors.index_pitch = indices.pitch * static_cast<std::int64_t>(size_of(p.index_dtype));
  }
  const std::int64_t elements =
      tensors.read.count + tensors.written.count + (tensors.reads_input ? tensors.input.count : 0);
  if (elements > kMostWidened) return nullptr;
  const std::int64_t planes = p.batch * p.channels;
  const std::int64_t most = larger(1, smaller(planes, kWidened / elements));
  const std::int64_t group = ceil_div(planes, ceil_div(planes, most)), rest = planes % group;
  if (described.bytes_moved >= kSerialBytes && ceil_div(planes, group) < kFewestUnits) return nullptr;
  for (WidenedPlanes* t : {&tensors.read, &tensors.written, &tensors.input}) {
    if (t->count == 0) continue;
    t->at = tensors.bytes;
    // What is written lies half a page from what is read: a load that agrees with a store before it in its last 12 bits waits for it.
    if (t == &tensors.written) t->at = (t->at + 2047) / 4096 * 4096 + 2048;
    tensors.bytes = t->at + (static_cast<std::size_t>(group * t->count) * sizeof(float) + 63) / 64 * 64;
  }
  std::unique_ptr<Kernel> of_group = make_wide(widened(described, group), target), of_rest;
  if (!of_group) return nullptr;
  if (rest != 0) {
    of_rest = make_wide(widened(described, rest), target);
    if (!of_rest) return nullptr;
  }
  return std::make_unique<WidenedKernel>(described, tensors, widening, group, std::move(of_group), std::move(of_rest));
}

}  // namespace cenote::simd
