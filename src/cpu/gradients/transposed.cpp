#include "cpu/gradients/transposed.hpp"

#include <utility>

namespace cenote::simd {
namespace {

class TransposedKernel final : public Kernel {
 public:
  explicit TransposedKernel(std::unique_ptr<Kernel> forward) : forward_(std::move(forward)) {
    explain = "as a pool of grad_output, for its windows are one apart: " + forward_->explain;
  }

  Status run(const RunArgs& args) const noexcept override {
    RunArgs forward = args;
    forward.input = args.grad_output;
    forward.output = args.grad_input;
    return forward_->run(forward);
  }

 private:
  std::unique_ptr<Kernel> forward_;
};

/// Every input is seen by an output, and the windows of the outputs that see it are one apart.
bool is_transposable(const Axis& axis) {
  return axis.rule == WindowRule::sliding && axis.stride == 1 && (axis.dilation == 1 || axis.kernel == 1) &&
         axis.pad_begin < axis.kernel && axis.pad_end < axis.kernel &&
         axis.output == axis.input + axis.pad_begin + axis.pad_end - (axis.kernel - 1);
}

}  // namespace

std::optional<Described> as_forward(const Described& backward) {
  const Problem& p = backward.problem;
  const bool averages = p.reduction == Reduction::average;
  // Integers truncate each quotient.
  if (p.pass != Pass::backward || !(p.reduction == Reduction::sum || (averages && is_floating(p.dtype)))) return {};
  Described forward = backward;
  Problem& f = forward.problem;
  f.pass = Pass::forward;
  std::int64_t taps = 1, outputs = 1;
  for (int a = 0; a < 3; ++a) {
    const Axis axis = simplified(p.axis[a]);
    if (!is_transposable(axis)) return {};
    outputs *= axis.output;
    const bool counts_all =
        p.divisor_override != 0 || p.count_include_pad || (axis.pad_begin == 0 && axis.pad_end == 0);
    if (averages && !counts_all) return {};
    const std::int64_t reach = axis.kernel - 1;
    f.axis[a] = {WindowRule::sliding,    axis.output,         axis.input, axis.kernel, 1, 1,
                 reach - axis.pad_begin, reach - axis.pad_end};
    taps *= axis.kernel;  // no more than the input and its padding have
  }
  if (outputs == 1) return {};  // filled with one share each
  if (averages && p.divisor_override == 0) f.divisor_override = taps;
  f.count_include_pad = false;
  f.input = p.grad_output;
  f.output = p.grad_input;
  forward.input = backward.grad_output;
  forward.output = backward.grad_input;
  return forward;
}

std::unique_ptr<Kernel> make_transposed_kernel(std::unique_ptr<Kernel> forward) {
  return std::make_unique<TransposedKernel>(std::move(forward));
}

}  // namespace cenote::simd
