// What the tests of refusals share: the refusal of a call as data, buffers that notice stray writes, and one valid call of
// every op to spoil.
#pragma once

#include <cenote/cenote.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace cenote::testing {

inline constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();
inline constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t kInt64Min = std::numeric_limits<std::int64_t>::min();

inline constexpr Op kSlidingOps[] = {Op::max_pool, Op::min_pool, Op::avg_pool, Op::sum_pool, Op::lp_pool};
inline constexpr Op kAllOps[] = {Op::max_pool,  Op::min_pool,          Op::avg_pool,          Op::sum_pool,
                                 Op::lp_pool,   Op::adaptive_max_pool, Op::adaptive_avg_pool, Op::fractional_max_pool,
                                 Op::max_unpool};

inline bool exists(Op op, int dims) { return op != Op::fractional_max_pool || dims > 1; }
inline bool is_max_family(Op op) {
  return op == Op::max_pool || op == Op::min_pool || op == Op::adaptive_max_pool || op == Op::fractional_max_pool;
}
inline bool reads_indices(Op op, Pass pass) {
  return op == Op::max_unpool || (pass == Pass::backward && is_max_family(op));
}
inline std::string label(Op op, int dims, Pass pass) {
  return std::string(name_of(op)) + std::to_string(dims) + "d" + (pass == Pass::backward ? " backward" : "");
}

/// How a call ended: code ok and empty texts, or the Error's.
struct Refusal {
  ErrorCode code = ErrorCode::ok;
  std::string argument, message;
};

/// Any other exception is a failure of the test.
template <std::invocable Call>
Refusal refusal_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return {error.code(), error.argument(), error.what()};
  } catch (const std::exception& error) {
    ADD_FAILURE() << "not an Error of cenote: " << error.what();
  }
  return {};
}
inline Refusal refusal_of(const Status& status) { return {status.code(), status.argument(), status.message()}; }

/// The refusal names the argument, and its message holds every one of the words (the value given, the rule).
inline void expect_refusal(const Refusal& refusal, const std::string& argument, const std::vector<std::string>& words,
                           ErrorCode code = ErrorCode::invalid_argument) {
  EXPECT_EQ(static_cast<int>(refusal.code), static_cast<int>(code)) << refusal.message;
  EXPECT_EQ(refusal.argument, argument) << refusal.message;
  for (const std::string& word : words)
    EXPECT_NE(refusal.message.find(word), std::string::npos) << word << " in: " << refusal.message;
}

/// Memory for a described tensor between two stretches of guard bytes, all of it poisoned. Negative and zero strides included.
class Guarded {
 public:
  explicit Guarded(TensorDesc desc) : desc_(std::move(desc)), element_(size_of(desc_.dtype)) {
    if (desc_.strides.empty()) desc_.strides = contiguous_strides(desc_.shape);
    std::int64_t low = 0, high = 1;
    for (int i = 0; i < desc_.rank(); ++i) {
      const std::int64_t reach = desc_.strides[i] * (desc_.shape[i] - 1);
      if (desc_.shape[i] == 0) high = 0;
      if (reach < 0) low += reach;
      if (reach > 0 && high > 0) high += reach;
    }
    size_ = static_cast<std::size_t>(high - low) * element_;
    first_ = kGuard + static_cast<std::size_t>(-low) * element_;
    bytes_.assign(size_ + 2 * kGuard, kPoison);
    std::fill_n(bytes_.begin(), kGuard, kFence);
    std::fill_n(bytes_.end() - static_cast<std::ptrdiff_t>(kGuard), kGuard, kFence);
  }

  const TensorDesc& desc() const { return desc_; }
  void* data() { return bytes_.data() + first_; }
  std::size_t size() const { return size_; }

  /// Number i in row-major order of the logical shape.
  template <class T>
  T& at(std::int64_t i) {
    std::int64_t offset = 0;
    for (int axis = desc_.rank() - 1; axis >= 0; --axis) {
      offset += i % desc_.shape[axis] * desc_.strides[axis];
      i /= desc_.shape[axis];
    }
    return *(static_cast<T*>(data()) + offset);
  }
  std::int64_t count() const { return desc_.numel(); }

  void set(std::int64_t i, double value) {
    switch (desc_.dtype) {
      case DType::f32: at<float>(i) = static_cast<float>(value); break;
      case DType::f64: at<double>(i) = value; break;
      case DType::f16: at<f16>(i) = to_f16(static_cast<float>(value)); break;
      case DType::bf16: at<bf16>(i) = to_bf16(static_cast<float>(value)); break;
      default: set_integer(i, static_cast<std::int64_t>(value)); break;
    }
  }
  void set_integer(std::int64_t i, std::int64_t value) {
    switch (desc_.dtype) {
      case DType::i8: at<std::int8_t>(i) = static_cast<std::int8_t>(value); break;
      case DType::u8: at<std::uint8_t>(i) = static_cast<std::uint8_t>(value); break;
      case DType::i16: at<std::int16_t>(i) = static_cast<std::int16_t>(value); break;
      case DType::u16: at<std::uint16_t>(i) = static_cast<std::uint16_t>(value); break;
      case DType::i32: at<std::int32_t>(i) = static_cast<std::int32_t>(value); break;
      case DType::u32: at<std::uint32_t>(i) = static_cast<std::uint32_t>(value); break;
      default: at<std::int64_t>(i) = value; break;
    }
  }
  double get(std::int64_t i) {
    switch (desc_.dtype) {
      case DType::f32: return at<float>(i);
      case DType::f64: return at<double>(i);
      case DType::f16: return to_float(at<f16>(i));
      case DType::bf16: return to_float(at<bf16>(i));
      default: return static_cast<double>(get_integer(i));
    }
  }
  std::int64_t get_integer(std::int64_t i) {
    switch (desc_.dtype) {
      case DType::i8: return at<std::int8_t>(i);
      case DType::u8: return at<std::uint8_t>(i);
      case DType::i16: return at<std::int16_t>(i);
      case DType::u16: return at<std::uint16_t>(i);
      case DType::i32: return at<std::int32_t>(i);
      case DType::u32: return at<std::uint32_t>(i);
      default: return at<std::int64_t>(i);
    }
  }
  /// Different small numbers, the same for the same shape whatever the strides.
  Guarded& fill() {
    for (std::int64_t i = 0; i < count(); ++i) set(i, static_cast<double>((i * 37 + 11) % 101));
    return *this;
  }
  Guarded& fill(double value) {
    for (std::int64_t i = 0; i < count(); ++i) set(i, value);
    return *this;
  }
  std::vector<double> values() {
    std::vector<double> all;
    for (std::int64_t i = 0; i < count(); ++i) all.push_back(get(i));
    return all;
  }

  bool guards_intact() const {
    for (std::size_t i = 0; i < kGuard; ++i) {
      if (bytes_[i] != kFence || bytes_[bytes_.size() - 1 - i] != kFence) return false;
    }
    return true;
  }
  /// Nobody has written to it since it was made.
  bool untouched() const {
    for (std::size_t i = kGuard; i < bytes_.size() - kGuard; ++i) {
      if (bytes_[i] != kPoison) return false;
    }
    return guards_intact();
  }
  std::vector<unsigned char> snapshot() const { return bytes_; }

 private:
  static constexpr std::size_t kGuard = 256;
  static constexpr unsigned char kPoison = 0xA5, kFence = 0x5C;
  TensorDesc desc_;
  std::size_t element_, size_ = 0, first_ = 0;
  std::vector<unsigned char> bytes_;
};

/// A call that is accepted: input (2, 3, 6...) and windows of 2.
inline PoolSpec valid_spec(Op op, int dims) {
  PoolSpec spec{.op = op, .dims = dims};
  if (op == Op::adaptive_max_pool || op == Op::adaptive_avg_pool) {
    spec.output_size = 4;
  } else {
    spec.kernel_size = 2;
    if (op == Op::fractional_max_pool) spec.output_size = 3;
  }
  return spec;
}
inline Shape valid_shape(int dims, bool batched = true) {
  Shape shape = batched ? Shape{2, 3, 6, 6, 6} : Shape{3, 6, 6, 6};
  return Shape(std::span<const std::int64_t>(shape.begin(), static_cast<std::size_t>(dims + (batched ? 2 : 1))));
}
inline TensorDesc valid_input(int dims, DType dtype = DType::f32) {
  return TensorDesc::contiguous(dtype, valid_shape(dims));
}

inline DimList list_of(std::vector<std::int64_t> values) { return DimList(std::span<const std::int64_t>(values)); }
/// `size` times the same number, as a list.
inline DimList list_of(int size, std::int64_t value) {
  return list_of(std::vector<std::int64_t>(static_cast<std::size_t>(size), value));
}

/// The buffers of one run of a plan, filled so that the run is valid.
class Buffers {
 public:
  explicit Buffers(const Plan& plan);

  RunArgs args() {
    RunArgs args;
    args.executor = &serial_executor();
    const bool forward = plan_.pass() == Pass::forward;
    args.input = input.data();
    if (reads_indices(plan_.spec().op, plan_.pass())) {
      args.saved_indices = indices.data();
    } else {
      args.indices = indices.data();
    }
    args.random_samples = samples.data();
    if (forward) {
      args.output = output.data();
    } else {
      args.grad_output = grad_output.data();
      args.grad_input = grad_input.data();
    }
    return args;
  }
  Status run() { return plan_.run(args()); }
  /// What the run writes: its result, and a forward's indices.
  bool results_untouched() const {
    const bool forward = plan_.pass() == Pass::forward;
    const bool writes_indices = plan_.indices().rank() != 0 && !reads_indices(plan_.spec().op, plan_.pass());
    return (forward ? output : grad_input).untouched() && (!writes_indices || indices.untouched());
  }
  bool guards_intact() const {
    return input.guards_intact() && output.guards_intact() && indices.guards_intact() && grad_output.guards_intact() &&
           grad_input.guards_intact() && samples.guards_intact();
  }

 private:
  const Plan& plan_;

 public:
  Guarded input, output, indices, grad_output, grad_input, samples;
};

inline Buffers::Buffers(const Plan& plan)
    : plan_(plan),
      input(plan.input()),
      output(plan.output()),
      indices(plan.indices()),
      grad_output(plan.pass() == Pass::backward ? plan.grad_output() : plan.output()),
      grad_input(plan.pass() == Pass::backward ? plan.grad_input() : plan.input()),
      samples(plan.random_samples()) {
  input.fill();
  if (plan.random_samples().rank() != 0) samples.fill(0.25);
  if (plan.pass() == Pass::backward) grad_output.fill();
  if (!reads_indices(plan.spec().op, plan.pass())) return;
  if (plan.spec().op == Op::max_unpool) {
    indices.fill(0);  // a place in every plane, and the first tap of every window without padding
    return;
  }
  // The backward's indices are those of its forward.
  PoolSpec spec = plan.spec();
  spec.return_indices = true;
  PlanOptions options;
  options.indices = plan.indices();
  const Plan forward = Plan::make(Pass::forward, plan.input(), spec, options);
  Guarded values(forward.output()), drawn(forward.random_samples());
  if (forward.random_samples().rank() != 0) drawn.fill(0.25);
  const Status status = forward.run(
      {.input = input.data(), .output = values.data(), .indices = indices.data(), .random_samples = drawn.data()});
  EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace cenote::testing
