// What a Tensor handle points to, and the record the tape keeps.
#pragma once

#include "tensor/storage.hpp"

#include <cenote/tensor.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace cenote::detail {

struct Node;

struct TensorImpl {
  TensorDesc desc;  // strides always filled in
  std::shared_ptr<Storage> storage;
  std::int64_t offset = 0;  // of element 0, in elements

  bool requires_grad = false;           // leaves; whatever has a grad_fn requires one as well
  std::shared_ptr<TensorImpl> grad;     // leaves
  std::shared_ptr<const Node> grad_fn;  // null for leaves
};

/// Where the gradient of one input of an op goes: to the op that made the input, or into a leaf. Neither: nobody asks.
struct Edge {
  std::shared_ptr<const Node> node;
  std::shared_ptr<TensorImpl> leaf;
  bool wanted() const noexcept { return node != nullptr || leaf != nullptr; }
};

/// From the gradient of an op's result to those of its inputs, in order; an undefined tensor means none.
/// Captures detached tensors only, so that no node ever holds a tensor that holds a node: there are no cycles.
using Backward = std::function<std::vector<Tensor>(const Tensor& grad_output)>;

/// One recorded op. Nodes point from results to inputs.
struct Node {
  std::string name;
  std::uint64_t sequence = 0;  // larger than that of every node it leads to
  mutable std::vector<Edge> inputs;
  Backward backward;

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();  // without recursion: a record may be long
};

struct Access {
  static const std::shared_ptr<TensorImpl>& impl(const Tensor& tensor) { return tensor.impl_; }
  static Tensor make(std::shared_ptr<TensorImpl> impl) { return Tensor(std::move(impl)); }
};

/// A tensor of that description over that memory, off the tape.
Tensor make_tensor(const TensorDesc& desc, std::shared_ptr<Storage> storage, std::int64_t offset);
/// Another description over the same memory, off the tape; offset relative to the tensor's first element.
Tensor alias(const Tensor& tensor, const Shape& shape, const Strides& strides, std::int64_t offset = 0);

/// True when results computed from it must be recorded.
bool recording(const Tensor& tensor);

/// Puts `result`, fresh and off the tape, on it where any input asks for that.
Tensor record(std::string name, Tensor result, const std::vector<Tensor>& inputs, Backward backward);

/// dim counted from the end when negative, checked against rank.
int normalise_dim(int dim, int rank, const char* argument = "dim");

/// Sum of a gradient down to the shape from which it was broadcast.
Tensor sum_to(const Tensor& tensor, const Shape& shape);

/// Where element 0 lies, and how far the elements reach below and beyond it, in elements.
struct Extent {
  std::int64_t below;
  std::int64_t beyond;  // exclusive
};
Extent extent_of(const Shape& shape, const Strides& strides);

}  // namespace cenote::detail
