#include "cpu/merged.hpp"

#include "cpu/check_indices.hpp"
#include "cpu/thresholds.hpp"
#include "geometry/checked.hpp"

#include <utility>

namespace cenote::simd {
namespace {

class MergedKernel final : public Kernel {
 public:
  MergedKernel(const Described& described, std::unique_ptr<Kernel> kernel)
      : problem_(described.problem), kernel_(std::move(kernel)) {
    explain = "as a pool of fewer axes: " + kernel_->explain;
  }

  Status run(const RunArgs& args) const noexcept override {
    const Status status = kernel_->run(args);
    // Nothing but an index can be wrong. Where it is, in the caller's axes, is asked of the caller's problem.
    return status.ok() ? Status{} : find_invalid_index(problem_, args.saved_indices);
  }

 private:
  Problem problem_;
  std::unique_ptr<Kernel> kernel_;
};

/// The layouts of the tensors that a call reads and writes.
struct Layouts {
  Layout* layout[4];
  int count = 0;

  explicit Layouts(Problem& p) {
    const bool forward = p.pass == Pass::forward;
    layout[count++] = forward ? &p.input : &p.grad_input;
    layout[count++] = forward ? &p.output : &p.grad_output;
    if (p.with_indices) layout[count++] = &p.indices;
    if (!forward && (p.reduction == Reduction::power || p.absolute)) layout[count++] = &p.input;
  }

  Layout* const* begin() const { return layout; }
  Layout* const* end() const { return layout + count; }
};

/// Whether `outer` steps over `size` positions, `inner` apart, in every tensor.
bool follow(const Layouts& layouts, std::int64_t Layout::*inner, std::int64_t size, std::int64_t Layout::*outer) {
  std::int64_t reach = 0;
  for (const Layout* l : layouts) {
    if (!checked_mul(size, l->*inner, reach) || l->*outer != reach) return false;
  }
  return true;
}

/// Slices of a volume become planes of their own: of more channels, or (where those of a pixel lie together) of more batch entries.
bool merge_slices(const Layouts& layouts, Problem& p) {
  const Axis depth = simplified(p.axis[0]);
  if (!is_identity(depth) || depth.input < 2) return false;
  const bool planar = p.channels == 1 || follow(layouts, &Layout::d, depth.input, &Layout::c);
  if (!planar && p.batch != 1 && !follow(layouts, &Layout::d, depth.input, &Layout::n)) return false;
  std::int64_t& planes = planar ? p.channels : p.batch;
  if (!checked_mul(planes, depth.input, planes)) return false;
  for (Layout* l : layouts) {
    (planar ? l->c : l->n) = l->d;
    l->d = 0;
  }
  p.axis[0] = {WindowRule::sliding, 1, 1, 1, 1, 1, 0, 0};
  return true;
}

/// Whole rows are whole planes, which have kernels of their own. Forward, only types whose kernels take several rows at once gain by having them.
bool gains_by_rows(const Problem& p) {
  if (is_whole(simplified(p.axis[2]))) return false;
  return p.pass == Pass::backward || p.dtype == DType::f32 || size_of(p.dtype) == 1 ||
         (is_floating(p.dtype) && size_of(p.dtype) == 2);
}

/// Rows of planes that follow each other become those of one.
bool stack_rows(const Layouts& layouts, Problem& p) {
  const Axis height = simplified(p.axis[1]);
  if (p.axis[0].input != 1 || p.axis[0].output != 1 || !is_identity(height) || !gains_by_rows(p)) return false;
  const bool planes_follow =
      p.channels > 1 && (height.input == 1 || follow(layouts, &Layout::h, height.input, &Layout::c));
  if (!planes_follow) return false;
  for (const Layout* l : layouts) {
    if (l->w != 1) return false;
  }
  const bool all = p.batch == 1 || follow(layouts, &Layout::c, p.channels, &Layout::n);
  const std::int64_t planes = all ? p.batch * p.channels : p.channels;
  const std::int64_t most = kStackedElements / larger(1, smaller(height.input, kStackedElements)) / p.axis[2].input;
  std::int64_t together = 1;
  for (std::int64_t g = 2; g <= smaller(most, planes); ++g) {
    if (planes % g == 0) together = g;
  }
  if (together < kFewestStacked) return false;
  std::int64_t plane = 0;
  for (const Layout* l : layouts) {
    if (!checked_mul(l->c, together, plane)) return false;
  }
  for (Layout* l : layouts) {
    if (height.input == 1) l->h = l->c;
    l->c *= together;
  }
  if (all) p.batch = 1;
  p.channels = planes / together;
  p.axis[1] = height;
  p.axis[1].input *= together;
  p.axis[1].output *= together;
  return true;
}

}  // namespace

std::optional<Described> merged(const Described& described) {
  Described result = described;
  Problem& p = result.problem;
  if (p.op == Op::max_unpool || p.op == Op::fractional_max_pool) return {};
  // Positions in the plane count the axes that would be gone.
  if (p.with_indices && p.index_kind != IndexKind::window) return {};
  const Layouts layouts(p);
  const bool slices = merge_slices(layouts, p);
  if (!stack_rows(layouts, p) && !slices) return {};
  return result;
}

std::unique_ptr<Kernel> make_merged_kernel(const Described& described, std::unique_ptr<Kernel> kernel) {
  return std::make_unique<MergedKernel>(described, std::move(kernel));
}

}  // namespace cenote::simd
