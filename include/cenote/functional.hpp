// cenote::functional: every pooling op as a function over tensors, with PyTorch's names.
//
//   namespace F = cenote::functional;
//   auto y            = F::max_pool2d(x, {.kernel_size = 3, .stride = 2, .padding = 1});
//   auto [z, indices] = F::max_pool2d_with_indices(x, {.kernel_size = 2});
//
// A wrong argument is an Error that names it. Results lie in memory as PyTorch's do: channels-last inputs give channels-last
// outputs where theirs do. Gradients flow through every op; for a max (or min) pool the tape keeps one byte per output (the
// `window` kind), and where neither indices nor a gradient are asked for none are computed. There is no double backward.
#pragma once

#include <cenote/export.hpp>
#include <cenote/options.hpp>
#include <cenote/tensor.hpp>

#include <utility>

namespace cenote::functional {

// --- any op: what the named functions below call, and what callers that learn the op at run time use --------------------

/// Everything but max_unpool. For fractional_max_pool, random_samples of shape (N, C, dims) and the input's dtype may be
/// given; otherwise they are drawn from the seed: rand({N, C, dims}, {.seed = seed}).
CENOTE_API Tensor pool(const Tensor& input, const PoolSpec& spec, const Tensor& random_samples = {},
                       std::uint64_t seed = 0);
/// The max family: values and indices of spec.index_kind.
CENOTE_API std::pair<Tensor, Tensor> pool_with_indices(const Tensor& input, const PoolSpec& spec,
                                                       const Tensor& random_samples = {}, std::uint64_t seed = 0);
/// spec.op is max_unpool.
CENOTE_API Tensor unpool(const Tensor& input, const Tensor& indices, const PoolSpec& spec);

/// The gradient of the input from that of the output, for people who keep their own tape. `input` describes the forward's
/// input (a tensor will do). `indices`, of spec.index_kind, are the forward's for the max family and max_unpool's own; other
/// ops take none. random_samples: only for fractional_max_pool with indices of kind `window`.
CENOTE_API Tensor pool_backward(const Tensor& grad_output, const TensorDesc& input, const PoolSpec& spec,
                                const Tensor& indices = {}, const Tensor& random_samples = {});
/// lp_pool's, which needs the elements of the input as well.
CENOTE_API Tensor lp_pool_backward(const Tensor& grad_output, const Tensor& input, const PoolSpec& spec);

/// The whole plane of each channel as one window; the spatial axes keep size 1. Op: max_pool, min_pool, avg_pool or sum_pool.
CENOTE_API Tensor global_pool(const Tensor& input, Op op, int dims);
CENOTE_API std::pair<Tensor, Tensor> global_pool_with_indices(const Tensor& input, Op op, int dims,
                                                              IndexKind kind = IndexKind::flat64);

// --- the shapes of calls ------------------------------------------------------------------------------------------------

using Pair = std::pair<Tensor, Tensor>;  ///< values, indices

template <class Options>
struct Pooling {
  Tensor operator()(const Tensor& input, const Options& options) const { return pool(input, to_spec(options)); }
};
template <class Options>
struct PoolingWithIndices {
  Pair operator()(const Tensor& input, const Options& options) const {
    return pool_with_indices(input, to_spec(options));
  }
};
template <int N>
struct FractionalPooling {
  Tensor operator()(const Tensor& input, const FractionalMaxPool<N>& options, const Tensor& random_samples = {}) const {
    return pool(input, to_spec(options), random_samples, options.seed);
  }
};
template <int N>
struct FractionalPoolingWithIndices {
  Pair operator()(const Tensor& input, const FractionalMaxPool<N>& options, const Tensor& random_samples = {}) const {
    return pool_with_indices(input, to_spec(options), random_samples, options.seed);
  }
};
template <int N>
struct Unpooling {
  Tensor operator()(const Tensor& input, const Tensor& indices, const MaxUnpool<N>& options) const {
    return unpool(input, indices, to_spec(options));
  }
};
template <Op kOp, int N>
struct GlobalPooling {
  Tensor operator()(const Tensor& input) const { return global_pool(input, kOp, N); }
};
template <Op kOp, int N>
struct GlobalPoolingWithIndices {
  Pair operator()(const Tensor& input, IndexKind kind = IndexKind::flat64) const {
    return global_pool_with_indices(input, kOp, N, kind);
  }
};
template <class Options>
struct Backward {
  Tensor operator()(const Tensor& grad_output, const TensorDesc& input, const Options& options) const {
    return pool_backward(grad_output, input, to_spec(options));
  }
};
template <class Options>
struct BackwardFromIndices {
  Tensor operator()(const Tensor& grad_output, const TensorDesc& input, const Tensor& indices,
                    const Options& options) const {
    return pool_backward(grad_output, input, to_spec(options), indices);
  }
};
template <int N>
struct FractionalBackward {
  Tensor operator()(const Tensor& grad_output, const TensorDesc& input, const Tensor& indices,
                    const FractionalMaxPool<N>& options, const Tensor& random_samples = {}) const {
    return pool_backward(grad_output, input, to_spec(options), indices, random_samples);
  }
};
template <int N>
struct LpBackward {
  Tensor operator()(const Tensor& grad_output, const Tensor& input, const LpPool<N>& options) const {
    return lp_pool_backward(grad_output, input, to_spec(options));
  }
};

// --- the named functions ------------------------------------------------------------------------------------------------

inline constexpr Pooling<MaxPool<1>> max_pool1d;
inline constexpr Pooling<MaxPool<2>> max_pool2d;
inline constexpr Pooling<MaxPool<3>> max_pool3d;
inline constexpr PoolingWithIndices<MaxPool<1>> max_pool1d_with_indices;
inline constexpr PoolingWithIndices<MaxPool<2>> max_pool2d_with_indices;
inline constexpr PoolingWithIndices<MaxPool<3>> max_pool3d_with_indices;

inline constexpr Pooling<MinPool<1>> min_pool1d;
inline constexpr Pooling<MinPool<2>> min_pool2d;
inline constexpr Pooling<MinPool<3>> min_pool3d;
inline constexpr PoolingWithIndices<MinPool<1>> min_pool1d_with_indices;
inline constexpr PoolingWithIndices<MinPool<2>> min_pool2d_with_indices;
inline constexpr PoolingWithIndices<MinPool<3>> min_pool3d_with_indices;

inline constexpr Pooling<AvgPool<1>> avg_pool1d;
inline constexpr Pooling<AvgPool<2>> avg_pool2d;
inline constexpr Pooling<AvgPool<3>> avg_pool3d;

inline constexpr Pooling<SumPool<1>> sum_pool1d;
inline constexpr Pooling<SumPool<2>> sum_pool2d;
inline constexpr Pooling<SumPool<3>> sum_pool3d;

inline constexpr Pooling<LpPool<1>> lp_pool1d;
inline constexpr Pooling<LpPool<2>> lp_pool2d;
inline constexpr Pooling<LpPool<3>> lp_pool3d;

inline constexpr Pooling<AdaptiveMaxPool<1>> adaptive_max_pool1d;
inline constexpr Pooling<AdaptiveMaxPool<2>> adaptive_max_pool2d;
inline constexpr Pooling<AdaptiveMaxPool<3>> adaptive_max_pool3d;
inline constexpr PoolingWithIndices<AdaptiveMaxPool<1>> adaptive_max_pool1d_with_indices;
inline constexpr PoolingWithIndices<AdaptiveMaxPool<2>> adaptive_max_pool2d_with_indices;
inline constexpr PoolingWithIndices<AdaptiveMaxPool<3>> adaptive_max_pool3d_with_indices;

inline constexpr Pooling<AdaptiveAvgPool<1>> adaptive_avg_pool1d;
inline constexpr Pooling<AdaptiveAvgPool<2>> adaptive_avg_pool2d;
inline constexpr Pooling<AdaptiveAvgPool<3>> adaptive_avg_pool3d;

inline constexpr FractionalPooling<2> fractional_max_pool2d;
inline constexpr FractionalPooling<3> fractional_max_pool3d;
inline constexpr FractionalPoolingWithIndices<2> fractional_max_pool2d_with_indices;
inline constexpr FractionalPoolingWithIndices<3> fractional_max_pool3d_with_indices;

inline constexpr Unpooling<1> max_unpool1d;
inline constexpr Unpooling<2> max_unpool2d;
inline constexpr Unpooling<3> max_unpool3d;

inline constexpr GlobalPooling<Op::max_pool, 1> global_max_pool1d;
inline constexpr GlobalPooling<Op::max_pool, 2> global_max_pool2d;
inline constexpr GlobalPooling<Op::max_pool, 3> global_max_pool3d;
inline constexpr GlobalPooling<Op::min_pool, 1> global_min_pool1d;
inline constexpr GlobalPooling<Op::min_pool, 2> global_min_pool2d;
inline constexpr GlobalPooling<Op::min_pool, 3> global_min_pool3d;
inline constexpr GlobalPooling<Op::avg_pool, 1> global_avg_pool1d;
inline constexpr GlobalPooling<Op::avg_pool, 2> global_avg_pool2d;
inline constexpr GlobalPooling<Op::avg_pool, 3> global_avg_pool3d;
inline constexpr GlobalPooling<Op::sum_pool, 1> global_sum_pool1d;
inline constexpr GlobalPooling<Op::sum_pool, 2> global_sum_pool2d;
inline constexpr GlobalPooling<Op::sum_pool, 3> global_sum_pool3d;
inline constexpr GlobalPoolingWithIndices<Op::max_pool, 1> global_max_pool1d_with_indices;
inline constexpr GlobalPoolingWithIndices<Op::max_pool, 2> global_max_pool2d_with_indices;
inline constexpr GlobalPoolingWithIndices<Op::max_pool, 3> global_max_pool3d_with_indices;
inline constexpr GlobalPoolingWithIndices<Op::min_pool, 1> global_min_pool1d_with_indices;
inline constexpr GlobalPoolingWithIndices<Op::min_pool, 2> global_min_pool2d_with_indices;
inline constexpr GlobalPoolingWithIndices<Op::min_pool, 3> global_min_pool3d_with_indices;

// Backward, by hand: grad_output, the forward's input, the indices where the op has them, the forward's options.
inline constexpr BackwardFromIndices<MaxPool<1>> max_pool1d_backward;
inline constexpr BackwardFromIndices<MaxPool<2>> max_pool2d_backward;
inline constexpr BackwardFromIndices<MaxPool<3>> max_pool3d_backward;
inline constexpr BackwardFromIndices<MinPool<1>> min_pool1d_backward;
inline constexpr BackwardFromIndices<MinPool<2>> min_pool2d_backward;
inline constexpr BackwardFromIndices<MinPool<3>> min_pool3d_backward;
inline constexpr Backward<AvgPool<1>> avg_pool1d_backward;
inline constexpr Backward<AvgPool<2>> avg_pool2d_backward;
inline constexpr Backward<AvgPool<3>> avg_pool3d_backward;
inline constexpr Backward<SumPool<1>> sum_pool1d_backward;
inline constexpr Backward<SumPool<2>> sum_pool2d_backward;
inline constexpr Backward<SumPool<3>> sum_pool3d_backward;
inline constexpr LpBackward<1> lp_pool1d_backward;
inline constexpr LpBackward<2> lp_pool2d_backward;
inline constexpr LpBackward<3> lp_pool3d_backward;
inline constexpr BackwardFromIndices<AdaptiveMaxPool<1>> adaptive_max_pool1d_backward;
inline constexpr BackwardFromIndices<AdaptiveMaxPool<2>> adaptive_max_pool2d_backward;
inline constexpr BackwardFromIndices<AdaptiveMaxPool<3>> adaptive_max_pool3d_backward;
inline constexpr Backward<AdaptiveAvgPool<1>> adaptive_avg_pool1d_backward;
inline constexpr Backward<AdaptiveAvgPool<2>> adaptive_avg_pool2d_backward;
inline constexpr Backward<AdaptiveAvgPool<3>> adaptive_avg_pool3d_backward;
inline constexpr FractionalBackward<2> fractional_max_pool2d_backward;
inline constexpr FractionalBackward<3> fractional_max_pool3d_backward;
inline constexpr BackwardFromIndices<MaxUnpool<1>> max_unpool1d_backward;
inline constexpr BackwardFromIndices<MaxUnpool<2>> max_unpool2d_backward;
inline constexpr BackwardFromIndices<MaxUnpool<3>> max_unpool3d_backward;

}  // namespace cenote::functional
