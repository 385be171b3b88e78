// The options of every op: aggregates with PyTorch's names and defaults. Name what you set:
//   {.kernel_size = 3, .stride = 2, .padding = 1}
#pragma once

#include <cenote/dims.hpp>
#include <cenote/indices.hpp>

#include <cstdint>
#include <optional>

namespace cenote {

template <int N>
struct MaxPool {
  Dims<N> kernel_size;
  Dims<N> stride{};  ///< empty: kernel_size
  Padding<N> padding = 0;
  Dims<N> dilation = 1;
  bool ceil_mode = false;
  bool return_indices = false;
  IndexKind index_kind = IndexKind::flat64;
};

/// Beyond PyTorch: the smallest element of each window, with max pooling's rules mirrored.
template <int N>
struct MinPool {
  Dims<N> kernel_size;
  Dims<N> stride{};
  Padding<N> padding = 0;
  Dims<N> dilation = 1;
  bool ceil_mode = false;
  bool return_indices = false;
  IndexKind index_kind = IndexKind::flat64;
};

template <int N>
struct AvgPool {
  Dims<N> kernel_size;
  Dims<N> stride{};
  Padding<N> padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<std::int64_t> divisor_override{};
  Dims<N> dilation = 1;  ///< beyond PyTorch
};

/// Beyond PyTorch: the sum of each window. Integers wrap around, as C++'s unsigned ones do.
template <int N>
struct SumPool {
  Dims<N> kernel_size;
  Dims<N> stride{};
  Padding<N> padding = 0;
  Dims<N> dilation = 1;
  bool ceil_mode = false;
};

template <int N>
struct LpPool {
  double norm_type = 2;
  Dims<N> kernel_size;
  Dims<N> stride{};
  bool ceil_mode = false;
  Padding<N> padding = 0;  ///< beyond PyTorch
  Dims<N> dilation = 1;    ///< beyond PyTorch
};

template <int N>
struct AdaptiveMaxPool {
  Dims<N> output_size;  ///< entries may be `keep` in 2d and 3d
  bool return_indices = false;
  IndexKind index_kind = IndexKind::flat64;
};

template <int N>
struct AdaptiveAvgPool {
  Dims<N> output_size;
};

/// Output size over input size, for every axis (`0.5`) or for each in D H W order (`{0.5, 0.7}`); empty: none given.
template <int N>
struct Ratios {
  std::optional<double> values[N] = {};

  Ratios() = default;
  Ratios(double all) noexcept {
    for (auto& value : values) value = all;
  }
  Ratios(double height, double width) noexcept requires(N == 2) : values{height, width} {}
  Ratios(double depth, double height, double width) noexcept requires(N == 3) : values{depth, height, width} {}
  bool empty() const noexcept { return !values[0]; }
};

template <int N>
struct FractionalMaxPool {
  static_assert(N == 2 || N == 3, "fractional max pooling has two or three spatial axes");
  Dims<N> kernel_size;
  Dims<N> output_size{};     ///< one of output_size and output_ratio; output_size wins
  Ratios<N> output_ratio{};  ///< 0.5 or {0.5, 0.7}
  bool return_indices = false;
  IndexKind index_kind = IndexKind::flat64;
  std::uint64_t seed = 0;  ///< for the samples drawn when none are given
};

template <int N>
struct MaxUnpool {
  Dims<N> kernel_size;
  Dims<N> stride{};
  Dims<N> padding = 0;
  DimList output_size{};  ///< one entry per spatial axis, or the pooled input's whole batched shape
  /// Only to read indices of kind `window`: the dilation of the pool that made them.
  Dims<N> dilation = 1;
  IndexKind index_kind = IndexKind::flat64;
};

enum class Op : std::uint8_t {
  max_pool,
  min_pool,
  avg_pool,
  sum_pool,
  lp_pool,
  adaptive_max_pool,
  adaptive_avg_pool,
  fractional_max_pool,
  max_unpool,
};

constexpr const char* name_of(Op op) noexcept {
  switch (op) {
    case Op::max_pool: return "max_pool";
    case Op::min_pool: return "min_pool";
    case Op::avg_pool: return "avg_pool";
    case Op::sum_pool: return "sum_pool";
    case Op::lp_pool: return "lp_pool";
    case Op::adaptive_max_pool: return "adaptive_max_pool";
    case Op::adaptive_avg_pool: return "adaptive_avg_pool";
    case Op::fractional_max_pool: return "fractional_max_pool";
    case Op::max_unpool: return "max_unpool";
  }
  return "?";
}

/// Any op with any options, its spatial rank a run-time number: what the options above become, and what callers that learn
/// the op at run time (tools, bindings, tests) fill in directly. Fields an op does not have are ignored.
struct PoolSpec {
  Op op = Op::max_pool;
  int dims = 2;  ///< spatial axes: 1, 2 or 3
  DimList kernel_size{};
  DimList stride{};
  PaddingList padding{};
  DimList dilation = 1;
  DimList output_size{};
  std::optional<double> output_ratio[3] = {};
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<std::int64_t> divisor_override{};
  double norm_type = 2;
  bool return_indices = false;
  IndexKind index_kind = IndexKind::flat64;
};

namespace detail {

/// Every field the options have; the others keep PoolSpec's defaults.
template <class Options>
PoolSpec spec_of(Op op, int dims, const Options& o) {
  PoolSpec spec{.op = op, .dims = dims};
  if constexpr (requires { o.kernel_size; }) spec.kernel_size = o.kernel_size;
  if constexpr (requires { o.stride; }) spec.stride = o.stride;
  if constexpr (requires { o.padding; }) spec.padding = o.padding;
  if constexpr (requires { o.dilation; }) spec.dilation = o.dilation;
  if constexpr (requires { o.output_size; }) spec.output_size = o.output_size;
  if constexpr (requires { o.output_ratio; }) {
    for (int i = 0; i < dims; ++i) spec.output_ratio[i] = o.output_ratio.values[i];
  }
  if constexpr (requires { o.ceil_mode; }) spec.ceil_mode = o.ceil_mode;
  if constexpr (requires { o.count_include_pad; }) spec.count_include_pad = o.count_include_pad;
  if constexpr (requires { o.divisor_override; }) spec.divisor_override = o.divisor_override;
  if constexpr (requires { o.norm_type; }) spec.norm_type = o.norm_type;
  if constexpr (requires { o.return_indices; }) spec.return_indices = o.return_indices;
  if constexpr (requires { o.index_kind; }) spec.index_kind = o.index_kind;
  return spec;
}

}  // namespace detail

template <int N>
PoolSpec to_spec(const MaxPool<N>& o) {
  return detail::spec_of(Op::max_pool, N, o);
}
template <int N>
PoolSpec to_spec(const MinPool<N>& o) {
  return detail::spec_of(Op::min_pool, N, o);
}
template <int N>
PoolSpec to_spec(const AvgPool<N>& o) {
  return detail::spec_of(Op::avg_pool, N, o);
}
template <int N>
PoolSpec to_spec(const SumPool<N>& o) {
  return detail::spec_of(Op::sum_pool, N, o);
}
template <int N>
PoolSpec to_spec(const LpPool<N>& o) {
  return detail::spec_of(Op::lp_pool, N, o);
}
template <int N>
PoolSpec to_spec(const AdaptiveMaxPool<N>& o) {
  return detail::spec_of(Op::adaptive_max_pool, N, o);
}
template <int N>
PoolSpec to_spec(const AdaptiveAvgPool<N>& o) {
  return detail::spec_of(Op::adaptive_avg_pool, N, o);
}
template <int N>
PoolSpec to_spec(const FractionalMaxPool<N>& o) {
  return detail::spec_of(Op::fractional_max_pool, N, o);
}
template <int N>
PoolSpec to_spec(const MaxUnpool<N>& o) {
  return detail::spec_of(Op::max_unpool, N, o);
}

}  // namespace cenote
