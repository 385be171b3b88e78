#include "cuda/simplify.hpp"

namespace cenote::gpu {
namespace {

/// The layouts of the tensors a run touches: on the large side of the pool, and on the small one.
struct Touched {
  Layout* large[2];
  Layout* small[3];
};
Touched touched_by(Problem& p) {
  const bool forward = p.pass == Pass::forward, unpool = p.op == Op::max_unpool;
  const bool reads_input = forward || p.reduction == Reduction::power || p.absolute;
  Touched touched{};
  if (unpool) {
    touched.large[0] = forward ? &p.output : &p.grad_output;
    touched.small[0] = forward ? &p.input : &p.grad_input;
  } else {
    touched.large[0] = reads_input ? &p.input : nullptr;
    touched.large[1] = forward ? nullptr : &p.grad_input;
    touched.small[0] = forward ? &p.output : &p.grad_output;
  }
  touched.small[1] = p.with_indices ? &p.indices : nullptr;
  touched.small[2] = p.op == Op::fractional_max_pool ? &p.random_samples : nullptr;
  return touched;
}

/// One batch entry of many channels is a division less than many entries.
void merge_batch(Problem& p) {
  const Touched touched = touched_by(p);
  std::int64_t elements = p.batch * p.channels;
  for (const Axis& axis : p.axis) elements *= larger(axis.input, axis.output) + axis.pad_begin + axis.pad_end + 4;
  if (p.batch < 2 || elements > (std::int64_t{1} << 30)) return;
  auto mergeable = [&](const Layout* layout) { return layout == nullptr || layout->n == p.channels * layout->c; };
  for (const Layout* layout : touched.large) {
    if (!mergeable(layout)) return;
  }
  for (const Layout* layout : touched.small) {
    if (!mergeable(layout)) return;
  }
  p.channels *= p.batch;
  p.batch = 1;
}

/// Windows that are the whole plane are one long row of it, where its rows follow each other.
void join_rows(Problem& p) {
  const Touched touched = touched_by(p);
  for (const Axis& axis : p.axis) {
    if (axis.rule != WindowRule::sliding || axis.output != 1 || axis.kernel != axis.input || axis.pad_begin != 0 ||
        axis.dilation != 1)
      return;
  }
  const std::int64_t depth = p.axis[0].input, height = p.axis[1].input, width = p.axis[2].input;
  if (depth * height == 1) return;
  for (const Layout* layout : touched.large) {
    if (layout == nullptr) continue;
    if ((height > 1 && layout->h != width * layout->w) || (depth > 1 && layout->d != height * width * layout->w))
      return;
    if (p.pass == Pass::backward && layout->w != 1) return;  // channels last: rows share what a column costs
  }
  const std::int64_t length = depth * height * width;
  p.axis[0] = p.axis[1] = {WindowRule::sliding, 1, 1, 1, 1, 1, 0, 0};
  p.axis[2] = {WindowRule::sliding, length, 1, length, length, 1, 0, 0};
}

}  // namespace

Problem simplified(const Problem& given) {
  Problem p = given;
  for (Axis& axis : p.axis) axis = cenote::simplified(axis);
  merge_batch(p);
  if (p.op != Op::max_unpool && p.op != Op::fractional_max_pool && p.reduction != Reduction::power) join_rows(p);
  return p;
}

}  // namespace cenote::gpu
