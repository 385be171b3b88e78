#include "cpu/plain/plane_kernel.hpp"

#include "cpu/check_indices.hpp"
#include "cpu/scratch.hpp"
#include "cpu/split.hpp"

namespace cenote::simd {
namespace {

/// One plane at a time. Fractional pools compute each plane's window starts from its samples.
class PlaneKernel final : public Kernel {
 public:
  PlaneKernel(const Problem& p, PlaneFn plane, std::int64_t bytes)
      : problem_(p),
        plane_(plane),
        bytes_(bytes),
        fractional_(p.op == Op::fractional_max_pool),
        starts_bytes_(fractional_ ? static_cast<std::size_t>(p.axis[0].output + p.axis[1].output + p.axis[2].output) * 8
                                  : 0),
        half_sums_((p.dtype == DType::f16 || p.dtype == DType::bf16) && plane == plain_max_backward),
        scratch_(slot_count(), starts_bytes_ + (half_sums_ ? static_cast<std::size_t>(plane_size(p)) * 4 : 0)) {}

  Status run(const RunArgs& args) const noexcept override {
    const bool sampled = fractional_ && (problem_.pass == Pass::forward || problem_.index_kind == IndexKind::window);
    if (sampled) {
      if (Status status = check_samples(args.random_samples); !status.ok()) return status;
    }
    std::atomic<std::int64_t> invalid{0};
    split(args.executor, problem_.batch * problem_.channels, bytes_, [&](std::int64_t begin, std::int64_t end) {
      const ScratchPool::Lease lease(scratch_);
      auto* table = reinterpret_cast<std::int64_t*>(lease.data());
      auto* sums = half_sums_ ? reinterpret_cast<double*>(lease.data() + starts_bytes_) : nullptr;
      for (std::int64_t i = begin; i < end; ++i) {
        PlaneRun plane{problem_, args, i / problem_.channels, i % problem_.channels, {}, &invalid, sums};
        std::int64_t* starts = table;
        for (int a = 3 - problem_.dims; sampled && a < 3; ++a) {
          fractional_starts(problem_.axis[a], problem_.dtype, sample(args.random_samples, plane.n, plane.c, a), starts);
          plane.starts[a] = starts;
          starts += problem_.axis[a].output;
        }
        plane_(plane);
      }
    });
    return invalid == 0 ? Status() : find_invalid_index(problem_, args.saved_indices);
  }

 private:
  double sample(const void* samples, std::int64_t n, std::int64_t c, int axis) const noexcept {
    const Layout& l = problem_.random_samples;
    const std::int64_t at = n * l.n + c * l.c + sample_of_axis(problem_.dims, axis) * l.w;
    switch (problem_.dtype) {
      case DType::f64: return static_cast<const double*>(samples)[at];
      case DType::f32: return static_cast<const float*>(samples)[at];
      case DType::f16: return to_float(static_cast<const f16*>(samples)[at]);
      default: return to_float(static_cast<const bf16*>(samples)[at]);
    }
  }

  Status check_samples(const void* samples) const noexcept {
    for (std::int64_t i = 0; i < problem_.batch * problem_.channels; ++i) {
      for (int a = 3 - problem_.dims; a < 3; ++a) {
        const double value = sample(samples, i / problem_.channels, i % problem_.channels, a);
        if (value >= 0 && value < 1) continue;
        return Status::failure(
            ErrorCode::invalid_argument, "random_samples",
            "%s%dd: random_samples must lie in [0, 1), got %g at (n %lld, c %lld)", name_of(problem_.op), problem_.dims,
            value, static_cast<long long>(i / problem_.channels), static_cast<long long>(i % problem_.channels));
      }
    }
    return {};
  }

  Problem problem_;
  PlaneFn plane_;
  std::int64_t bytes_;
  bool fractional_;
  std::size_t starts_bytes_;
  bool half_sums_;
  ScratchPool scratch_;
};

}  // namespace

std::unique_ptr<Kernel> make_plane_kernel(const Described& described, PlaneFn plane) {
  return std::make_unique<PlaneKernel>(described.problem, plane, described.bytes_moved);
}

}  // namespace cenote::simd
