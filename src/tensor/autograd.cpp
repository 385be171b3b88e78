// The tape: what is recorded, and the walk back.
#include "tensor/impl.hpp"
#include "tensor/refuse.hpp"

#include <atomic>
#include <queue>
#include <unordered_map>

namespace cenote {
namespace {

thread_local bool recording_enabled = true;
std::atomic<std::uint64_t> next_sequence{0};

}  // namespace

namespace detail {

Node::~Node() {
  std::vector<std::shared_ptr<const Node>> pending;
  const auto take_inputs = [&pending](const Node& node) {
    for (Edge& edge : node.inputs) {
      if (edge.node) pending.push_back(std::move(edge.node));
    }
    node.inputs.clear();
  };
  take_inputs(*this);
  while (!pending.empty()) {
    const std::shared_ptr<const Node> node = std::move(pending.back());
    pending.pop_back();
    if (node.use_count() == 1) take_inputs(*node);
  }
}

bool recording(const Tensor& tensor) { return recording_enabled && tensor.requires_grad(); }

Tensor record(std::string name, Tensor result, const std::vector<Tensor>& inputs, Backward backward) {
  bool wanted = false;
  for (const Tensor& input : inputs) wanted = wanted || recording(input);
  if (!wanted) return result;
  auto node = std::make_shared<Node>();
  node->name = std::move(name);
  node->sequence = next_sequence++;
  node->backward = std::move(backward);
  for (const Tensor& input : inputs) {
    const auto& impl = Access::impl(input);
    node->inputs.push_back({impl->grad_fn, impl->grad_fn == nullptr && impl->requires_grad ? impl : nullptr});
  }
  Access::impl(result)->grad_fn = std::move(node);
  return result;
}

namespace {

/// Adds to what is there. A gradient that nobody else can reach becomes the leaf's own; any other is copied.
void accumulate(TensorImpl& leaf, const Tensor& grad) {
  if (leaf.grad) {
    Tensor sum = Access::make(leaf.grad);
    sum.copy_from(sum.add(grad));
    return;
  }
  const TensorDesc& desc = leaf.desc;
  const TensorDesc wanted = desc.is_channels_last() ? TensorDesc::channels_last(desc.dtype, desc.shape, desc.device)
                                                    : TensorDesc::contiguous(desc.dtype, desc.shape, desc.device);
  const std::shared_ptr<TensorImpl>& impl = Access::impl(grad);
  if (impl.use_count() == 1 && impl->storage.use_count() == 1 && impl->desc == wanted) {
    leaf.grad = impl;
    return;
  }
  Tensor own = empty(wanted);
  own.copy_from(grad);
  leaf.grad = Access::impl(own);
}

}  // namespace
}  // namespace detail

using detail::Access;

bool grad_enabled() noexcept { return recording_enabled; }
NoGradGuard::NoGradGuard() noexcept : previous_(recording_enabled) { recording_enabled = false; }
NoGradGuard::~NoGradGuard() { recording_enabled = previous_; }

bool Tensor::requires_grad() const { return desc(), impl_->requires_grad || impl_->grad_fn != nullptr; }

bool Tensor::is_leaf() const { return desc(), impl_->grad_fn == nullptr; }

Tensor& Tensor::set_requires_grad(bool required) {
  if (required && !is_floating(dtype())) {
    refuse("requires_grad", std::string("only floating types have gradients, this tensor is ") + name_of(dtype()) +
                                ": convert it with to(DType::f32)");
  }
  if (!is_leaf()) {
    if (!required)
      refuse("requires_grad", "this tensor was computed (" + grad_fn() + "): use detach() to take it off the tape");
    return *this;
  }
  impl_->requires_grad = required;
  return *this;
}

Tensor Tensor::grad() const { return desc(), impl_->grad ? Access::make(impl_->grad) : Tensor(); }

void Tensor::zero_grad() const { desc(), impl_->grad.reset(); }

Tensor Tensor::detach() const { return detail::alias(*this, shape(), strides()); }

std::string Tensor::grad_fn() const { return desc(), impl_->grad_fn ? impl_->grad_fn->name : std::string(); }

void Tensor::backward(const Tensor& grad_output) const {
  if (!requires_grad()) {
    refuse("tensor", "backward: this tensor does not depend on any that requires a gradient");
  }
  Tensor seed = grad_output;
  if (!seed.defined()) {
    if (numel() != 1) {
      refuse("grad_output",
             "backward without grad_output needs a tensor of one element, the shape is " + to_string(shape()));
    }
    seed = ones(shape(), {.dtype = dtype(), .device = device()});
  } else if (seed.shape() != shape() || seed.dtype() != dtype() || seed.device() != device()) {
    refuse("grad_output", "grad_output is " + std::string(name_of(seed.dtype())) + to_string(seed.shape()) + " on " +
                              to_string(seed.device()) + ", the tensor is " + name_of(dtype()) + to_string(shape()) +
                              " on " + to_string(device()));
  }
  const NoGradGuard guard;
  if (is_leaf()) return detail::accumulate(*impl_, seed);

  // Latest op first: by then every op that used its result has been through here.
  const auto earlier = [](const detail::Node* a, const detail::Node* b) { return a->sequence < b->sequence; };
  std::priority_queue<const detail::Node*, std::vector<const detail::Node*>, decltype(earlier)> ready(earlier);
  std::unordered_map<const detail::Node*, Tensor> gradients;
  gradients.emplace(impl_->grad_fn.get(), seed.detach());
  ready.push(impl_->grad_fn.get());
  while (!ready.empty()) {
    const detail::Node& node = *ready.top();
    ready.pop();
    const auto found = gradients.find(&node);
    const Tensor grad = found->second;
    gradients.erase(found);
    const std::vector<Tensor> input_gradients = node.backward(grad);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const detail::Edge& edge = node.inputs[i];
      if (!edge.wanted() || !input_gradients[i].defined()) continue;
      if (edge.leaf) {
        detail::accumulate(*edge.leaf, input_gradients[i]);
        continue;
      }
      const auto [slot, first] = gradients.try_emplace(edge.node.get(), input_gradients[i]);
      if (first) {
        ready.push(edge.node.get());
      } else {
        slot->second = slot->second.add(input_gradients[i]);
      }
    }
  }
}

}  // namespace cenote
