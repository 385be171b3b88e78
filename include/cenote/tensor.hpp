// Tensor: owning, reference-counted, printable, with a small reverse-mode gradient tape.
//
// A Tensor is a handle: copies share their elements, as PyTorch's do; clone() copies them. Views (slice, permute, expand, ...)
// share too. Elements live in memory aligned to 64 bytes.
//
// Pools run on every device a build has. The arithmetic below is the glue around pools (losses, tests, examples): it computes
// on the CPU, and a tensor elsewhere is brought there and its result sent back.
#pragma once

#include <cenote/dtype.hpp>
#include <cenote/error.hpp>
#include <cenote/export.hpp>
#include <cenote/view.hpp>

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cenote {

class Tensor;

namespace detail {
struct TensorImpl;
struct Access;  // how the library itself reaches a tensor's insides

/// Brings an element to T and back: to_float and to_bf16/to_f16 for the 16-bit types, otherwise static_cast.
[[noreturn]] CENOTE_API void refuse_element_type(const Tensor& tensor, DType asked);
}  // namespace detail

/// What a factory may be told beyond the shape.
struct TensorOptions {
  DType dtype = DType::f32;
  Device device = cpu;
  bool requires_grad = false;
};

/// The same with a seed. Element i of a random tensor depends on the seed and on i alone: the same bits on every machine.
struct RandomOptions {
  std::uint64_t seed = 0;
  DType dtype = DType::f32;
  Device device = cpu;
  bool requires_grad = false;
};

enum class Ownership : std::uint8_t {
  copy,    ///< the tensor gets its own memory
  borrow,  ///< the tensor uses the caller's memory, which must outlive it and its views
};

struct Slice {
  std::optional<std::int64_t> start{};  ///< negative: from the end; empty: the first, for a negative step the last
  std::optional<std::int64_t> stop{};   ///< exclusive; negative: from the end; empty: through the last (first)
  std::int64_t step = 1;                ///< not 0; negative runs backwards
};

struct CloseOptions {
  double rtol = 1e-5;
  double atol = 1e-8;
  bool equal_nan = false;
};

class CENOTE_API Tensor {
 public:
  /// No tensor at all: defined() is false and everything else is refused.
  Tensor() noexcept = default;

  bool defined() const noexcept { return impl_ != nullptr; }
  const TensorDesc& desc() const;
  /// A tensor serves wherever only its description is asked for.
  operator const TensorDesc&() const { return desc(); }
  const Shape& shape() const { return desc().shape; }
  const Strides& strides() const { return desc().strides; }  ///< in elements; never empty unless the rank is 0
  DType dtype() const { return desc().dtype; }
  Device device() const { return desc().device; }
  int rank() const { return desc().rank(); }
  /// Negative dimensions count from the end.
  std::int64_t size(int dim) const;
  std::int64_t numel() const { return desc().numel(); }
  bool is_contiguous(MemoryFormat format = MemoryFormat::contiguous) const;
  /// Pointer, shape and strides for a Plan; valid while a tensor that shares the elements lives.
  TensorView as_view() const;
  /// True when both use the same memory block (they may be different views of it).
  bool shares_storage_with(const Tensor& other) const noexcept;

  // --- elements -----------------------------------------------------------------------------------------------------

  /// Address of the first element (index 0 in every dimension). On the CPU dtype and T must agree.
  template <class T>
  T* data() const {
    return static_cast<T*>(checked_data(dtype_of<T>));
  }
  void* data() const;

  /// A reference to one element of a CPU tensor; negative indices count from the end.
  template <class T>
  T& at(const Shape& index) const {
    return data<T>()[offset_of(index)];
  }

  /// The only element of a one-element tensor.
  template <class T = double>
  T item() const {
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(item_as_double());
    } else {
      static_assert(std::is_integral_v<T>, "item() gives C++ numbers: take f16 and bf16 as float");
      return static_cast<T>(item_as_int64());
    }
  }

  /// All elements of a contiguous CPU tensor, in row-major order.
  template <class T>
  std::span<T> span() const {
    return {static_cast<T*>(checked_span(dtype_of<T>)), static_cast<std::size_t>(numel())};
  }

  /// All elements in row-major order, converted, whatever the strides and the device.
  std::vector<double> to_vector() const;

  Tensor& fill(double value);
  /// Copies the other's elements into this tensor; shapes must be equal, dtypes may differ. Not recorded on the tape.
  Tensor& copy_from(const Tensor& other);

  // --- layout, dtype, device ----------------------------------------------------------------------------------------

  /// Itself where it has that layout already, otherwise a copy. channels_last: rank 3 to 5.
  Tensor contiguous(MemoryFormat format = MemoryFormat::contiguous) const;
  /// A copy of its own. Dense layouts are kept, others become contiguous.
  Tensor clone() const;
  /// Itself where nothing changes. Numbers out of an integer type's range saturate, NaN becomes 0, fractions are dropped;
  /// wider integers wrap around.
  Tensor to(DType dtype) const;
  Tensor to(Device device) const;

  // --- views --------------------------------------------------------------------------------------------------------

  Tensor narrow(int dim, std::int64_t start, std::int64_t length) const;
  /// Python's x[start:stop:step] along one dimension. Out-of-range bounds are clamped, as Python does.
  Tensor slice(int dim, const Slice& slice) const;
  /// Removes a dimension by fixing its index.
  Tensor select(int dim, std::int64_t index) const;
  /// x[index]: select along the first dimension.
  Tensor operator[](std::int64_t index) const { return select(0, index); }
  Tensor transpose(int dim0, int dim1) const;
  Tensor permute(std::initializer_list<int> dims) const { return permute(std::span(dims.begin(), dims.size())); }
  Tensor permute(std::span<const int> dims) const;
  Tensor squeeze() const;         ///< removes all dimensions of size 1
  Tensor squeeze(int dim) const;  ///< removes that one if its size is 1
  Tensor unsqueeze(int dim) const;
  /// Repeats dimensions of size 1 without copying (stride 0); -1 keeps a size; more dimensions may be put in front.
  Tensor expand(const Shape& shape) const;
  /// The same elements in another shape, sharing memory; refused where strides do not allow it. One size may be -1.
  Tensor view(const Shape& shape) const;
  /// view where possible, otherwise a copy.
  Tensor reshape(const Shape& shape) const;
  Tensor flatten(int start_dim = 0, int end_dim = -1) const;

  // --- arithmetic: equal dtypes, broadcast shapes -------------------------------------------------------------------

  /// Of all elements. Floating types add in f64 in row-major order and round once; integers give i64, wrapping around.
  Tensor sum() const;
  /// Floating types only.
  Tensor mean() const;
  /// Along one dimension.
  Tensor sum(int dim, bool keepdim = false) const;
  Tensor add(const Tensor& other) const;
  Tensor sub(const Tensor& other) const;
  Tensor mul(const Tensor& other) const;
  Tensor div(const Tensor& other) const;  ///< floating types only
  Tensor add(double scalar) const;
  Tensor sub(double scalar) const;
  Tensor mul(double scalar) const;
  Tensor div(double scalar) const;  ///< floating types only
  Tensor neg() const;

  // --- the tape -----------------------------------------------------------------------------------------------------
  //
  // Ops on tensors that require a gradient are recorded; backward() walks the record in reverse and adds to the grad() of
  // every leaf. The record lives as long as the tensors that were computed; backward() may be called again. Results are
  // deterministic: contributions are added in the order in which the ops ran, last first. Gradients are not recorded
  // themselves: there is no double backward. Writing into elements that a recorded op has saved spoils its gradient and is
  // not noticed.

  bool requires_grad() const;
  /// Leaves of a floating type only. Returns itself.
  Tensor& set_requires_grad(bool required = true);
  bool is_leaf() const;
  /// The gradient accumulated so far, in the leaf's own layout where that is dense; undefined when there is none.
  Tensor grad() const;
  /// Forgets the gradient.
  void zero_grad() const;
  /// For a one-element tensor, or with the gradient of this tensor.
  void backward(const Tensor& grad_output = {}) const;
  /// The same elements, off the tape.
  Tensor detach() const;
  /// The name of the op that made it ("MaxPool2dBackward"), empty for a leaf.
  std::string grad_fn() const;

 private:
  friend struct detail::Access;
  explicit Tensor(std::shared_ptr<detail::TensorImpl> impl) noexcept : impl_(std::move(impl)) {}
  void* checked_data(DType asked) const;
  void* checked_span(DType asked) const;
  std::int64_t offset_of(const Shape& index) const;
  double item_as_double() const;
  std::int64_t item_as_int64() const;

  std::shared_ptr<detail::TensorImpl> impl_;
};

/// While one lives, nothing that this thread computes is recorded.
class CENOTE_API NoGradGuard {
 public:
  NoGradGuard() noexcept;
  ~NoGradGuard();
  NoGradGuard(const NoGradGuard&) = delete;
  NoGradGuard& operator=(const NoGradGuard&) = delete;

 private:
  bool previous_;
};
CENOTE_API bool grad_enabled() noexcept;

// --- factories --------------------------------------------------------------------------------------------------------

CENOTE_API Tensor empty(const Shape& shape, const TensorOptions& options = {});
/// Uninitialised memory of exactly this description; the strides may leave gaps but not overlap or be negative.
CENOTE_API Tensor empty(const TensorDesc& desc);
CENOTE_API Tensor zeros(const Shape& shape, const TensorOptions& options = {});
CENOTE_API Tensor ones(const Shape& shape, const TensorOptions& options = {});
CENOTE_API Tensor full(const Shape& shape, double value, const TensorOptions& options = {});
CENOTE_API Tensor zeros_like(const Tensor& other);
CENOTE_API Tensor ones_like(const Tensor& other);
/// start, start + step, ... below (above) end.
CENOTE_API Tensor arange(double start, double end, double step = 1, const TensorOptions& options = {});
inline Tensor arange(double end, const TensorOptions& options = {}) { return arange(0, end, 1, options); }
/// Uniform in [0, 1): multiples of 2^-24 (f64: 2^-53, f16: 2^-11, bf16: 2^-8).
CENOTE_API Tensor rand(const Shape& shape, const RandomOptions& options = {});
/// Normal, mean 0 and variance 1.
CENOTE_API Tensor randn(const Shape& shape, const RandomOptions& options = {});

/// A tensor over, or with a copy of, somebody else's elements.
CENOTE_API Tensor from_view(const TensorView& view, Ownership ownership = Ownership::copy);

/// A copy of the values, row-major. The number of values must be the shape's.
template <class T>
Tensor tensor(std::span<const T> values, const Shape& shape) {
  if (std::int64_t{element_count(shape)} != static_cast<std::int64_t>(values.size())) {
    Status::failure(ErrorCode::invalid_argument, "shape", "shape %s has %lld elements, but %zu values are given",
                    to_string(shape).c_str(), static_cast<long long>(element_count(shape)), values.size())
        .raise();
  }
  TensorView view;
  static_cast<TensorDesc&>(view) = TensorDesc::contiguous(dtype_of<T>, shape);
  view.data = const_cast<T*>(values.data());  // only read: from_view copies
  return from_view(view, Ownership::copy);
}
template <class T>
Tensor tensor(std::initializer_list<T> values, const Shape& shape) {
  return tensor(std::span<const T>(values.begin(), values.size()), shape);
}
template <class T>
Tensor tensor(std::initializer_list<T> values) {
  return tensor(values, {static_cast<std::int64_t>(values.size())});
}
template <class T>
Tensor tensor(const std::vector<T>& values, const Shape& shape) {
  return tensor(std::span<const T>(values), shape);
}
/// One element, rank 0.
CENOTE_API Tensor scalar(double value, const TensorOptions& options = {});

// --- operators and comparisons ----------------------------------------------------------------------------------------

inline Tensor operator+(const Tensor& a, const Tensor& b) { return a.add(b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return a.sub(b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return a.mul(b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return a.div(b); }
inline Tensor operator+(const Tensor& a, double b) { return a.add(b); }
inline Tensor operator-(const Tensor& a, double b) { return a.sub(b); }
inline Tensor operator*(const Tensor& a, double b) { return a.mul(b); }
inline Tensor operator/(const Tensor& a, double b) { return a.div(b); }
inline Tensor operator+(double a, const Tensor& b) { return b.add(a); }
inline Tensor operator-(double a, const Tensor& b) { return b.neg().add(a); }
inline Tensor operator*(double a, const Tensor& b) { return b.mul(a); }
inline Tensor operator-(const Tensor& a) { return a.neg(); }

/// Same shape, dtype and values. NaN equals nothing; +0 and -0 are equal.
CENOTE_API bool equal(const Tensor& a, const Tensor& b);
/// Same shape and dtype, and |a - b| <= atol + rtol * |b| everywhere.
CENOTE_API bool allclose(const Tensor& a, const Tensor& b, const CloseOptions& options = {});

/// As PyTorch prints it, with cenote's dtype names: tensor([1., 2.], dtype=f64).
CENOTE_API std::string to_string(const Tensor& tensor);
CENOTE_API std::ostream& operator<<(std::ostream& stream, const Tensor& tensor);

}  // namespace cenote
