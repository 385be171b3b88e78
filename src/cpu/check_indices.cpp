#include "cpu/check_indices.hpp"

#include "geometry/index_math.hpp"

namespace cenote::simd {

Status find_invalid_index(const Problem& p, const void* indices, const std::int64_t* const (&starts)[3]) noexcept {
  const bool unpool = p.op == Op::max_unpool, fractional = p.op == Op::fractional_max_pool;
  for (std::int64_t n = 0; n < p.batch; ++n) {
    for (std::int64_t c = 0; c < p.channels; ++c) {
      for (std::int64_t od = 0; od < p.axis[0].output; ++od) {
        for (std::int64_t oh = 0; oh < p.axis[1].output; ++oh) {
          for (std::int64_t ow = 0; ow < p.axis[2].output; ++ow) {
            const Layout& l = p.indices;
            const std::int64_t index =
                read_index(indices, p.index_dtype, n * l.n + c * l.c + od * l.d + oh * l.h + ow * l.w);
            if (index == -1 && !unpool) continue;
            bool valid = false;
            if (p.index_kind == IndexKind::window) {
              // Fractional windows lie inside the input wherever they start.
              valid = fractional ? index >= 0 && index < p.axis[0].kernel * p.axis[1].kernel * p.axis[2].kernel
                                 : flat_of_tap(p, windows_of(p, starts, od, oh, ow), index) >= 0;
            } else {
              valid = unpool || fractional ? index >= 0 && index < plane_size(p)
                                           : has_tap_at(p, windows_of(p, starts, od, oh, ow), index);
            }
            if (valid) continue;
            return Status::failure(ErrorCode::invalid_index, "saved_indices",
                                   "%s%dd%s: index %lld at (n %lld, c %lld, d %lld, h %lld, w %lld) is not %s",
                                   name_of(p.op), p.dims, p.pass == Pass::backward ? " backward" : "",
                                   static_cast<long long>(index), static_cast<long long>(n), static_cast<long long>(c),
                                   static_cast<long long>(od), static_cast<long long>(oh), static_cast<long long>(ow),
                                   unpool ? "a place in the plane it points into"
                                   : fractional && p.index_kind != IndexKind::window
                                       ? "-1 or a place in the plane it points into"
                                       : "-1 or an element of its window");
          }
        }
      }
    }
  }
  return {};
}

bool has_empty_windows(const Problem& p) {
  for (const Axis& axis : p.axis) {
    for (std::int64_t o = 0; axis.dilation > 1 && o < axis.output; ++o) {
      if (window(axis, o).count == 0) return true;
    }
  }
  return false;
}

bool empty_windows_are_none(const Problem& p, const void* indices) noexcept {
  const std::int64_t* const no_starts[3] = {};
  for (std::int64_t od = 0; od < p.axis[0].output; ++od) {
    for (std::int64_t oh = 0; oh < p.axis[1].output; ++oh) {
      for (std::int64_t ow = 0; ow < p.axis[2].output; ++ow) {
        const OutputWindows w = windows_of(p, no_starts, od, oh, ow);
        if (w.axis[0].count != 0 && w.axis[1].count != 0 && w.axis[2].count != 0) continue;
        const Layout& l = p.indices;
        for (std::int64_t i = 0; i < p.batch * p.channels; ++i) {
          const std::int64_t at = i / p.channels * l.n + i % p.channels * l.c + od * l.d + oh * l.h + ow * l.w;
          if (read_index(indices, p.index_dtype, at) != -1) return false;
        }
      }
    }
  }
  return true;
}

}  // namespace cenote::simd
