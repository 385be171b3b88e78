// Indices of one kind written as another.
#include "geometry/checks.hpp"
#include "geometry/index_math.hpp"

#include <cenote/plan.hpp>

#include <vector>

namespace cenote {
namespace {

double read_sample(const TensorView& samples, std::int64_t at) {
  switch (samples.dtype) {
    case DType::f64: return static_cast<const double*>(samples.data)[at];
    case DType::f32: return static_cast<const float*>(samples.data)[at];
    case DType::f16: return to_float(static_cast<const f16*>(samples.data)[at]);
    default: return to_float(static_cast<const bf16*>(samples.data)[at]);
  }
}

void check_data(const char* argument, const TensorView& view) {
  if (view.device != cpu) {
    Status::failure(ErrorCode::invalid_argument, argument, "convert_indices: %s must be on the cpu, got %s", argument,
                    to_string(view.device).c_str())
        .raise();
  }
  if (view.data == nullptr && element_count(view.shape) > 0) {
    Status::failure(ErrorCode::invalid_argument, argument, "convert_indices: %s is null", argument).raise();
  }
  if (reinterpret_cast<std::uintptr_t>(view.data) % size_of(view.dtype) != 0) {
    Status::failure(ErrorCode::invalid_argument, argument,
                    "convert_indices: %s must be aligned to its elements (%zu bytes)", argument, size_of(view.dtype))
        .raise();
  }
}

}  // namespace

void convert_indices(const TensorDesc& input, const PoolSpec& spec, IndexKind from_kind, const TensorView& from,
                     IndexKind to_kind, const TensorView& to, const TensorView* random_samples) {
  // Described twice, once for each kind: everything but the indices is the same.
  auto described = [&](IndexKind kind, const TensorView& view, bool written) {
    PoolSpec with_kind = spec;
    with_kind.index_kind = kind;
    with_kind.return_indices = true;
    PlanOptions options;
    if (random_samples != nullptr) options.random_samples = *random_samples;
    Described result;
    describe(Pass::forward, input, with_kind, options, result).raise();
    if (!result.problem.with_indices || spec.op == Op::max_unpool) {
      Status::failure(ErrorCode::invalid_argument, "op", "convert_indices: %s has no indices of its own",
                      name_of(spec.op))
          .raise();
    }
    const char* const argument = written ? "to" : "from";
    const Call call{with_kind, Pass::forward, result.input, "convert_indices"};
    TensorDesc indices;
    check_tensor(call, argument, view, result.indices, written, indices).raise();
    check_data(argument, view);
    result.problem.indices = layout_of(indices, input.rank() == spec.dims + 2, spec.dims);
    return result;
  };
  const Described source = described(from_kind, from, false), target = described(to_kind, to, true);
  const Problem &p = source.problem, &q = target.problem;
  const bool fractional = spec.op == Op::fractional_max_pool;
  const bool needs_windows = from_kind == IndexKind::window || to_kind == IndexKind::window;
  const bool has_windows = !fractional || random_samples != nullptr;
  if (needs_windows && !has_windows) {
    Status::failure(ErrorCode::invalid_argument, "random_samples",
                    "convert_indices: window indices of %s need its random_samples", name_of(spec.op))
        .raise();
  }
  if (random_samples != nullptr && fractional) check_data("random_samples", *random_samples);
  std::vector<std::int64_t> table[3];
  const std::int64_t* starts[3] = {};
  for (std::int64_t n = 0; n < p.batch; ++n) {
    for (std::int64_t c = 0; c < p.channels; ++c) {
      for (int a = 3 - p.dims; fractional && has_windows && a < 3; ++a) {
        table[a].resize(static_cast<std::size_t>(p.axis[a].output));
        const Layout& s = p.random_samples;
        const double sample = read_sample(*random_samples, n * s.n + c * s.c + sample_of_axis(p.dims, a) * s.w);
        if (!fractional_starts(p.axis[a], p.dtype, sample, table[a].data())) {
          Status::failure(ErrorCode::invalid_argument, "random_samples",
                          "convert_indices: random_samples must lie in [0, 1), got %g", sample)
              .raise();
        }
        starts[a] = table[a].data();
      }
      for (std::int64_t od = 0; od < p.axis[0].output; ++od) {
        for (std::int64_t oh = 0; oh < p.axis[1].output; ++oh) {
          for (std::int64_t ow = 0; ow < p.axis[2].output; ++ow) {
            const Layout &s = p.indices, &t = q.indices;
            std::int64_t value =
                read_index(from.data, p.index_dtype, n * s.n + c * s.c + od * s.d + oh * s.h + ow * s.w);
            if (value != -1) {
              std::int64_t converted = value >= 0 && value < plane_size(p) ? value : -1;
              if (has_windows) {
                const OutputWindows windows = windows_of(p, starts, od, oh, ow);
                const std::int64_t flat = from_kind == IndexKind::window ? flat_of_tap(p, windows, value) : value;
                converted = !has_tap_at(p, windows, flat)  ? -1
                            : to_kind == IndexKind::window ? tap_of_flat(p, windows, flat)
                                                           : flat;
              }
              if (converted < 0) {
                Status::failure(ErrorCode::invalid_index, "from",
                                "convert_indices: index %lld at output (n %lld, c %lld, d %lld, h %lld, w %lld) is no "
                                "tap of its window",
                                static_cast<long long>(value), static_cast<long long>(n), static_cast<long long>(c),
                                static_cast<long long>(od), static_cast<long long>(oh), static_cast<long long>(ow))
                    .raise();
              }
              value = converted;
            }
            write_index(to.data, q.index_dtype, n * t.n + c * t.c + od * t.d + oh * t.h + ow * t.w, value);
          }
        }
      }
    }
  }
}

}  // namespace cenote
