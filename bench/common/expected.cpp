#include "expected.hpp"

#include "reference/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <span>
#include <type_traits>
#include <vector>

namespace cenote::bench {

namespace {

class Random {  // splitmix64
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15U) {}
  std::uint64_t operator()() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

template <class T>
T from_double(double value) {
  if constexpr (std::is_same_v<T, f16>) {
    return to_f16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, bf16>) {
    return to_bf16(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

double epsilon(DType dtype) {
  switch (dtype) {
    case DType::f64: return std::numeric_limits<double>::epsilon();
    case DType::f16: return 0x1p-10;
    case DType::bf16: return 0x1p-7;
    case DType::f32: return std::numeric_limits<float>::epsilon();
    default: return 0;
  }
}

/// The sums that make one tensor: their worst length and size bound what rounding can do.
struct SumSize {
  std::int64_t terms = 0;
  double magnitude = 0;

  void include(std::int64_t other_terms, double other_magnitude) {
    terms = std::max(terms, other_terms);
    magnitude = std::max(magnitude, other_magnitude);
  }
};

/// One plane of a case through the reference. Planes are independent, so this is what the threads share out.
template <class T>
class Plane {
 public:
  using Element = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;
  using Elements = std::vector<Element>;

  Plane(const reference::Pool& pool, const CaseData& data, std::int64_t plane) : pool_(pool) {
    pool_.batch = pool_.channels = 1;
    const bool unpool = pool_.op == Op::max_unpool;
    const std::int64_t large = pool_.input_plane(), small = pool_.output_plane();
    inputs_ = unpool ? small : large;
    outputs_ = unpool ? large : small;
    input_ = data.input.as<T>() + plane * inputs_;
    output_ = data.output.as<T>() + plane * outputs_;
    if (data.indices.size() != 0) indices_ = data.indices.as<std::int64_t>() + plane * outputs_;
    if (unpool) saved_indices_ = data.saved_indices.as<std::int64_t>() + plane * inputs_;
    if (data.grad_input.size() != 0) {
      grad_output_ = data.grad_output.as<T>() + plane * outputs_;
      grad_input_ = data.grad_input.as<T>() + plane * inputs_;
    }
  }

  /// Returns the sizes of the gradient's sums.
  SumSize compute() {
    const Elements input = load(input_, inputs_);
    const Elements grad_output = grad_input_ != nullptr ? load(grad_output_, outputs_) : Elements{};
    if (pool_.op == Op::max_unpool) {
      const reference::Integers flat(saved_indices_, saved_indices_ + inputs_);
      store(reference::unpool(pool_, input, flat), output_);
      if (grad_input_ != nullptr) store(reference::unpool_backward(pool_, grad_output, flat), grad_input_);
      return {};
    }
    if (pool_.is_extremum()) {
      const auto result = reference::extremum(pool_, input);
      store(result.value, output_);
      if (indices_ != nullptr) std::copy(result.flat.begin(), result.flat.end(), indices_);
      if constexpr (!std::is_integral_v<T>) {
        if (grad_input_ != nullptr) return store_sums(reference::extremum_backward(pool_, grad_output, result.flat));
      }
      return {};
    }
    if constexpr (std::is_integral_v<T>) {
      store(reference::sum(pool_, input), output_);
      return {};
    } else {
      return pool_.op == Op::lp_pool ? norm(input, grad_output) : mean(input, grad_output);
    }
  }

 private:
  static Elements load(const T* values, std::int64_t count) {
    Elements result(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < result.size(); ++i) {
      if constexpr (std::is_integral_v<T>) {
        result[i] = values[i];
      } else {
        result[i] = to_double(values[i]);
      }
    }
    return result;
  }
  static void store(const Elements& values, T* to) {
    for (const Element value : values) *to++ = from_double<T>(static_cast<double>(value));
  }
  SumSize store_sums(const std::vector<reference::Sum>& sums) {
    SumSize size;
    T* to = grad_input_;
    for (const reference::Sum& sum : sums) {
      *to++ = from_double<T>(static_cast<double>(sum.exact));
      size.include(sum.terms, static_cast<double>(sum.magnitude));
    }
    return size;
  }

  SumSize mean(const Elements& input, const Elements& grad_output) {
    T* to = output_;
    for (const reference::Sum& sum : reference::sum(pool_, input))
      *to++ = from_double<T>(static_cast<double>(sum.exact));
    if (grad_input_ == nullptr) return {};
    return store_sums(reference::sum_backward(pool_, grad_output));
  }

  SumSize norm(const Elements& input, const Elements& grad_output) {
    const std::vector<reference::Power> windows = reference::power(pool_, input);
    T* to = output_;
    for (const reference::Power& window : windows) *to++ = from_double<T>(static_cast<double>(window.y));
    if (grad_input_ == nullptr) return {};
    std::vector<reference::Sum> sums = reference::power_backward(pool_, windows, grad_output);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const long double factor = reference::power_derivative(pool_, input[i]);
      sums[i].exact *= factor;
      sums[i].magnitude *= std::abs(factor);
    }
    return store_sums(sums);
  }

  reference::Pool pool_;
  std::int64_t inputs_ = 0, outputs_ = 0;
  const T* input_ = nullptr;
  T* output_ = nullptr;
  std::int64_t* indices_ = nullptr;
  const std::int64_t* saved_indices_ = nullptr;
  const T* grad_output_ = nullptr;
  T* grad_input_ = nullptr;
};

/// One plane at a time on the executor's threads.
template <class F>
void for_each_plane(std::int64_t planes, const Executor& executor, F& f) {
  executor.parallel_for(
      planes, [](void* context, std::int64_t i) noexcept { (*static_cast<F*>(context))(i); }, &f);
}

}  // namespace

void fill_random(void* data, DType dtype, std::int64_t count, std::uint64_t seed) {
  Random random(seed);
  with_type(dtype, [&]<class T>(T) {
    T* values = static_cast<T*>(data);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint64_t bits = random() >> 40;
      if constexpr (std::is_integral_v<T>) {
        values[i] = static_cast<T>(bits);
      } else {
        values[i] = from_double<T>(static_cast<double>(bits) * 0x1p-23 - 1);
      }
    }
  });
}

void fill_unpool_indices(const Geometry& g, std::int64_t* indices) {
  Random random(3);
  for (std::int64_t plane = 0; plane < g.planes(); ++plane) {
    for (std::int64_t z = 0; z < g.input[0]; ++z) {
      for (std::int64_t y = 0; y < g.input[1]; ++y) {
        for (std::int64_t x = 0; x < g.input[2]; ++x) {
          const std::int64_t position[3] = {z, y, x};
          std::int64_t index = 0;
          for (std::size_t a = 0; a < 3; ++a) {
            const std::int64_t free = std::max<std::int64_t>(1, std::min(g.stride[a], g.kernel_size[a]) - g.padding[a]);
            const bool apart = g.stride[a] >= g.kernel_size[a] && g.padding[a] == 0;
            const std::int64_t tap = apart ? static_cast<std::int64_t>(random() >> 33) % free : 0;
            index = index * g.output[a] + std::min(position[a] * g.stride[a] + tap, g.output[a] - 1);
          }
          *indices++ = index;
        }
      }
    }
  }
}

void compute_expected(const Case& pool, DType dtype, const Executor& executor, CaseData& data) {
  const reference::Pool reference_pool =
      reference::resolve(pool.spec, dtype, Shape(std::span<const std::int64_t>(pool.shape)));
  SumSize size;
  std::mutex mutex;
  with_type(dtype, [&]<class T>(T) {
    auto one_plane = [&](std::int64_t plane) {
      const SumSize found = Plane<T>(reference_pool, data, plane).compute();
      const std::lock_guard lock(mutex);
      size.include(found.terms, found.magnitude);
    };
    for_each_plane(pool.geometry.planes(), executor, one_plane);
  });
  if (!is_floating(dtype) || reference_pool.op == Op::max_unpool) return;
  const bool sums = !reference_pool.is_extremum();
  // A sum of n terms of at most 1, divided by n: n roundings while adding, a few more for division, root and the result.
  const auto taps = static_cast<double>(reference::most_taps(reference_pool));
  const double accumulation = dtype == DType::f64 ? epsilon(DType::f64) : epsilon(DType::f32);
  if (sums) data.output_tolerance = (taps + 4) * accumulation + epsilon(dtype);
  // PyTorch rounds a gradient to its own type at every addition, and each window's share a few times before.
  const double roundings = static_cast<double>(size.terms) + (sums ? 4 : 0);
  if (sums || size.terms > 1) data.grad_tolerance = roundings * epsilon(dtype) * size.magnitude;
}

}  // namespace cenote::bench
